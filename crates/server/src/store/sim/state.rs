//! What changes: the way to the disk, the cache, and what is dirty in which file.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use perf::units::Instant;

use crate::store::mem::MemStore;
use crate::types::{Attr, Handle, Status, Time};

use super::cache::Cache;
use super::extents::Extents;
use super::journal::{Entry, Op};
use super::options::{AfterFailedSync, SimOptions, WriteBack};
use super::pipeline::{Pipeline, Ticket};
use super::write_log::{LogTicket, WriteLog};

/// Most bytes of one entry, so that a large dirty file is not copied in one piece.
const ENTRY_DATA_MAX: u64 = 1 << 20;

#[derive(Debug)]
pub(super) struct State {
    pub(super) pipeline: Pipeline,
    pub(super) cache: Cache,
    pub(super) write_log: Option<WriteLog>,
    /// Files with data that are not known to be stable, by their number.
    files: BTreeMap<u64, File>,
    /// Those with dirty data.
    dirty: BTreeSet<u64>,
    /// Of all files.
    dirty_bytes: u64,
}

#[derive(Debug)]
struct File {
    handle: Handle,
    dirty: Extents,
    /// In which its last data went.
    batch: u64,
}

impl State {
    pub(super) fn new(pipeline: Pipeline, cache: Cache, write_log: Option<WriteLog>) -> Self {
        let (files, dirty) = (BTreeMap::new(), BTreeSet::new());
        Self { pipeline, cache, write_log, files, dirty, dirty_bytes: 0 }
    }

    /// Bytes that a crash now could lose: dirty, or on their way.
    pub(super) fn unstable_bytes(&self) -> u64 {
        self.dirty_bytes + self.pipeline.data_bytes
    }

    /// Does what is due by `now`.
    pub(super) fn settle(
        &mut self,
        now: Instant,
        live: &MemStore,
        after_failed_sync: AfterFailedSync,
    ) {
        self.pipeline.settle(now);
        for entry in std::mem::take(&mut self.pipeline.failed) {
            // A file may be gone or shorter by now: then nothing, or less, is left to be written.
            if let Entry::Data { handle, file, offset, len, .. } = entry
                && after_failed_sync == AfterFailedSync::KeepDirty
                && let Ok((_, attr)) = live.peek(&handle, 0, 0)
            {
                self.wrote(&handle, &attr, file, offset, len);
            }
        }
        self.sweep(now, live);
    }

    /// Files that have had records for long, or more than their log has room for, start for their
    /// disk.
    fn sweep(&mut self, now: Instant, live: &MemStore) {
        let Some(write_log) = &mut self.write_log else { return };
        write_log.settle(now);
        let files = write_log.sweep_due(now);
        if files.is_empty() {
            return;
        }
        for &file in &files {
            self.send(now, live, file);
        }
        // Also for a file that is gone: that it is, may not be stable yet.
        let ticket = self.pipeline.start(now, true);
        let Some(write_log) = &mut self.write_log else { return };
        for file in files {
            if let Some(through) = write_log.mark(file) {
                write_log.leaves(file, through, ticket.clone());
            }
        }
    }

    /// Takes up a stable WRITE that is in the live image, if there is a log that admits it.
    pub(super) fn submit(
        &mut self,
        now: Instant,
        (handle, file, attr): (&Handle, u64, &Attr),
        offset: u64,
        data: &Bytes,
    ) -> Option<LogTicket> {
        let (write_log, synced) = (self.write_log.as_mut()?, self.pipeline.synced_batch);
        let entry = || {
            let (len, data) = (data.len() as u64, data.clone());
            Entry::Data { handle: *handle, file, offset, len, data, attr: *attr }
        };
        let admits = write_log.admits(file, data.len(), synced);
        admits.then(|| write_log.submit(now, (file, attr), offset, data.clone(), entry))
    }

    /// Up to which record a file is past its records when what begins now has made it stable.
    pub(super) fn mark(&self, file: u64) -> Option<u64> {
        self.write_log.as_ref()?.mark(file)
    }

    /// Whether the log has given up a file, of which nothing can be made stable any more.
    pub(super) fn is_doubtful(&self, file: u64) -> bool {
        self.write_log.as_ref().is_some_and(|log| log.is_doubtful(file))
    }

    /// Data have come to a file; `attr` is the file's.
    pub(super) fn wrote(&mut self, handle: &Handle, attr: &Attr, id: u64, offset: u64, bytes: u64) {
        let new = || File { handle: *handle, dirty: Extents::default(), batch: 0 };
        let file = self.files.entry(id).or_insert_with(new);
        let before = file.dirty.bytes();
        file.dirty.add(offset, bytes);
        file.dirty.cut(attr.size);
        self.dirty.insert(id);
        self.dirty_bytes = self.dirty_bytes - before + file.dirty.bytes();
    }

    /// A file has this size now, and what was behind it is gone.
    pub(super) fn cut(&mut self, attr: &Attr) {
        if let Some(file) = self.files.get_mut(&attr.fileid) {
            let before = file.dirty.bytes();
            file.dirty.cut(attr.size);
            self.dirty_bytes = self.dirty_bytes - before + file.dirty.bytes();
        }
    }

    /// A file may have lost its last name.
    pub(super) fn forget_if_gone(&mut self, live: &MemStore, handle: &Handle, id: u64) {
        if live.peek(handle, 0, 0) == Err(Status::Stale) {
            self.dirty.remove(&id);
            if let Some(file) = self.files.remove(&id) {
                self.dirty_bytes -= file.dirty.bytes();
            }
            self.pipeline.blocks.forget(id);
        }
    }

    /// All of a file that has records starts for the disk, so that it is past them with what comes
    /// next.
    pub(super) fn send_logged(&mut self, now: Instant, live: &MemStore, file: u64) -> Option<u64> {
        let through = self.mark(file)?;
        self.send(now, live, file);
        Some(through)
    }

    /// A file is made by what was logged last.
    pub(super) fn made(&mut self, file: u64, batch: u64) {
        let synced = self.pipeline.synced_batch;
        if let Some(write_log) = &mut self.write_log {
            write_log.made(file, batch, synced);
        }
    }

    /// A change of names or attributes is to be stable.
    pub(super) fn log(&mut self, now: Instant, op: Op, time: Time) -> Ticket {
        self.pipeline.push(now, Entry::Names { op, time });
        self.pipeline.start(now, true)
    }

    /// What to wait for until a file's data are stable; none when they are.
    pub(super) fn stabilise(&mut self, now: Instant, live: &MemStore, id: u64) -> Option<Ticket> {
        self.send(now, live, id);
        let batch = self.files.get(&id)?.batch;
        if batch <= self.pipeline.synced_batch {
            self.files.remove(&id);
            return None;
        }
        let covered = self.pipeline.syncing(batch);
        let ticket = covered.unwrap_or_else(|| self.pipeline.start(now, true));
        (!self.pipeline.faults.switches().committing_early).then_some(ticket)
    }

    /// Begins to write what is dirty, as far as it is time.
    pub(super) fn write_back(
        &mut self,
        now: Instant,
        live: &MemStore,
        id: u64,
        options: &SimOptions,
    ) -> Option<Ticket> {
        if self.unstable_bytes() > options.dirty_bytes_max {
            while let Some(id) = self.dirty.pop_first() {
                self.send(now, live, id);
            }
            return Some(self.pipeline.start(now, false));
        }
        let dirty = self.files.get(&id).map_or(0, |file| file.dirty.bytes());
        if let WriteBack::Early { bytes } = options.write_back
            && dirty >= bytes
        {
            self.send(now, live, id);
            self.pipeline.start(now, false);
        }
        None
    }

    /// A file's dirty data start for the disk.
    fn send(&mut self, now: Instant, live: &MemStore, id: u64) {
        self.dirty.remove(&id);
        let Some(file) = self.files.get_mut(&id) else {
            return;
        };
        self.dirty_bytes -= file.dirty.bytes();
        let handle = file.handle;
        let carries_data = self.pipeline.stable.is_some();
        for (offset, bytes) in file.dirty.take() {
            for (offset, len) in pieces(offset, bytes) {
                let wanted = if carries_data { len } else { 0 };
                let wanted = usize::try_from(wanted).unwrap_or(usize::MAX);
                // It is gone only where it was removed, and then nobody misses it.
                let Ok((data, attr)) = live.peek(&handle, offset, wanted) else {
                    continue;
                };
                let entry = Entry::Data { handle, file: id, offset, len, data, attr };
                file.batch = self.pipeline.push(now, entry);
            }
        }
    }
}

fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64)> {
    let end = offset + bytes;
    let step = usize::try_from(ENTRY_DATA_MAX).unwrap_or(usize::MAX);
    (offset..end).step_by(step).map(move |at| (at, ENTRY_DATA_MAX.min(end - at)))
}
