//! READ, WRITE and COMMIT.
//!
//! | operation                  | system calls with a warm cache |
//! |----------------------------|--------------------------------|
//! | read, in the page cache    | statx, preadv2                 |
//! | read, from the disk        | the same, and pread on a thread of the store |
//! | write, unstable            | statx, pwrite, statx           |
//! | write, stable              | the same, then fdatasync or fsync on a thread |
//! | commit                     | statx, fsync on a thread, statx |
//!
//! With a write log, a stable write and the commit of a little wait for a frame of the log instead.
//!
//! Attributes of a READ are taken *before* the data. If the file changes in between, the client
//! holds newer data under older attributes and will look again; the other way round it would keep
//! old data for new.
//!
//! DATA_SYNC is fdatasync: the data and all that is needed to read them back. FILE_SYNC and
//! COMMIT are fsync, though fdatasync would do for the data: a crash could then set the
//! modification time back to one for which some client still caches the data from before.
//!
//! A write goes to the page cache on the caller's thread. When the kernel throttles writers because
//! too much is dirty, it blocks there; early writeback makes that rare.

use std::io::IoSliceMut;
use std::os::fd::BorrowedFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use log::reply::Effect;
use rustix::io::{Errno, ReadWriteFlags};
use tokio::sync::oneshot;

use super::buffers::Buffer;
use super::errno::status;
use super::file_system::FileSystem;
use super::objects::Object;
use super::stat::Stat;
use super::sync::group::Need;
use super::sys;
use super::tree::{Tree, wcc};
use super::write_log::{self, Log, Ticket};
use crate::durable::{Committed, Durable};
use crate::replies::Outcome;
use crate::store::{Changed, Extent, Looked, Written};
use crate::types::{Attr, Caller, Handle, Stability, Status, Verifier, Wcc};

/// A read under way: what is in the buffer so far.
struct Reading {
    buffer: Buffer,
    filled: usize,
    /// As much as there was when the file was last looked at.
    wanted: usize,
}

/// A stable WRITE that the log has taken up.
struct Logged<'t> {
    log: &'t Log,
    ticket: Ticket,
}

impl Tree {
    pub(super) async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        let (object, stat) = match self.regular(handle).and_then(looked_at) {
            Ok(found) => found,
            Err(status) => {
                return Looked { attr: self.attr(handle).ok(), result: Err(status) };
            }
        };
        if let Err(status) = self.check_read(caller, &object, &stat) {
            return Looked { attr: Some(stat.attr()), result: Err(status) };
        }
        Looked {
            attr: Some(stat.attr()),
            result: self.read_object(object, stat.size(), offset, count).await,
        }
    }

    async fn read_object(
        &self,
        object: Arc<Object>,
        size: u64,
        offset: u64,
        count: u32,
    ) -> Result<Extent, Status> {
        let fd = self.with_room(|| object.reading(&self.proc))?;
        let left = size.saturating_sub(offset);
        let wanted = usize::try_from(left.min(u64::from(count))).unwrap_or(0);
        let mut reading = Reading { buffer: self.buffers.take(wanted), filled: 0, wanted };
        if wanted > 0 {
            reading.filled = self.file_system.read_cached(fd, &mut reading, offset)?;
        }
        if reading.filled < wanted {
            reading = self.read_cold(object, reading, offset).await?;
        }
        let Reading { buffer, filled, .. } = reading;
        // Short of what there was: the file was truncated meanwhile, and this is its end now.
        let eof = filled < wanted || offset.saturating_add(filled as u64) >= size;
        let data = buffer.into_bytes(filled);
        Ok(Extent { data, eof })
    }

    /// Reads what the page cache did not have, on a thread that may wait for the disk.
    async fn read_cold(
        &self,
        object: Arc<Object>,
        mut reading: Reading,
        offset: u64,
    ) -> Result<Reading, Status> {
        let (done, outcome) = oneshot::channel();
        let proc = Arc::clone(&self.proc);
        self.readers.run(Box::new(move || {
            let read = object
                .reading(&proc)
                .and_then(|fd| reading.fill(fd, offset).map_err(status))
                .map(|()| reading);
            // The caller may have gone away.
            let _ = done.send(read);
        }));
        outcome.await.unwrap_or(Err(Status::ServerFault))
    }

    pub(super) async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        let object = match self.regular(handle) {
            Ok(object) => object,
            Err(status) => return Changed::failed(status),
        };
        let entry = match &self.log {
            Some(log) if stability != Stability::Unstable => log.entry(&object, data.len()).await,
            _ => None,
        };
        // Before the data: if they are lost, the reply must carry a verifier that no longer holds.
        let verifier = self.syncer.verifier();
        let (wcc, written) =
            self.write_object(caller, &object, offset, &data, (stability, verifier));
        drop(entry);
        let result = match written {
            Ok((count, Some(Logged { log, ticket }))) => log
                .stable(ticket, &object, verifier)
                .await
                .map(|durable| Committed::Stable(stability, durable))
                .map(|committed| Written { count, committed }),
            Ok((count, None)) => match stability {
                Stability::Unstable => Ok(Committed::Unstable(verifier)),
                Stability::DataSync => self.committed(&object, Need::Data, stability).await,
                Stability::FileSync => self.committed(&object, Need::File, stability).await,
            }
            .map(|committed| Written { count, committed }),
            Err(status) => Err(status),
        };
        Changed { wcc, result }
    }

    async fn committed(
        &self,
        object: &Arc<Object>,
        need: Need,
        stability: Stability,
    ) -> Result<Committed, Status> {
        let durable = self.sync(object, need).await?;
        Ok(Committed::Stable(stability, durable))
    }

    fn write_object<'t>(
        &'t self,
        caller: &Caller,
        object: &Arc<Object>,
        offset: u64,
        data: &Bytes,
        (stability, verifier): (Stability, Verifier),
    ) -> (Wcc, Result<(u32, Option<Logged<'t>>), Status>) {
        let _order = object.order.lock();
        let before = match object.stat() {
            Ok(stat) => stat,
            Err(status) => return (Wcc::default(), Err(status)),
        };
        // The kernel too must know who writes: for quotas, and for set-id bits, which only root's
        // writes leave.
        let fd = self
            .check_change(caller, object, &before)
            .and_then(|()| self.acting.act_as(caller))
            .and_then(|()| self.with_room(|| object.writing(&self.proc)));
        let fd = match fd {
            Ok(fd) => fd,
            Err(status) => return (wcc(&before, object), Err(status)),
        };
        if let Some(log) = &self.log {
            log.meets(object, &before);
        }
        let result = write_all(fd, data, offset);
        // Even if it failed: part of it may have been written.
        object.unsynced.store(true, Ordering::Release);
        if result.is_ok() {
            self.write_back_early(object, offset, data.len() as u64);
        }
        let count = result.and_then(|()| u32::try_from(data.len()).map_err(|_| Status::TooLarge));
        let wcc = wcc(&before, object);
        let logged = match (&self.log, &wcc.after, &count) {
            (Some(log), Some(after), &Ok(count)) if stability != Stability::Unstable => {
                let outcome = Outcome::Written { file: &wcc, count, stability, verifier };
                let reply = log.encode_reply(&object.handle, Effect::Logged, &outcome);
                let ticket = log.submit(object, offset, data, (&before, after), reply);
                ticket.map(|ticket| Logged { log, ticket })
            }
            _ => None,
        };
        if self.log.is_some() {
            note(object, offset, data, stability, &before, wcc.after.filter(|_| count.is_ok()));
        }
        (wcc, count.map(|count| (count, logged)))
    }

    /// Only a hint: dropped when the disk is so busy that hints pile up.
    fn write_back_early(&self, object: &Arc<Object>, offset: u64, len: u64) {
        let Some(pool) = &self.writers else {
            return;
        };
        let due = object.writeback.lock().wrote(offset, len);
        if let Some(due) = due {
            let object = Arc::clone(object);
            pool.offer(Box::new(move || {
                if let Some(fd) = object.opened() {
                    // Errors are not lost: the next sync meets them.
                    let _ = sys::start_writeback(fd, due.offset, due.len);
                }
            }));
        }
    }

    /// The whole file is synced, whatever the range: that is never less than was requested. Or,
    /// with a write log, what is unstable of it goes there, if that is known and little.
    ///
    /// Others may write to it during the sync. A client takes what lies between the attributes
    /// before and after for its own doing, so that both are those of one look.
    pub(super) async fn commit(&self, caller: &Caller, handle: &Handle) -> Changed<Durable> {
        let (object, stat) = match self.regular(handle).and_then(looked_at) {
            Ok(found) => found,
            Err(status) => return Changed::failed(status),
        };
        if let Err(status) = self.check_write(caller, &object, &stat) {
            return Changed { wcc: Wcc::unchanged(stat.attr()), result: Err(status) };
        }
        // Before the data are looked for, as in a WRITE.
        let verifier = self.syncer.verifier();
        let logged = self.log.as_ref().and_then(|log| Some((log, log.submit_commit(&object)?)));
        let result = match logged {
            Some((log, ticket)) => log.stable(ticket, &object, verifier).await,
            None => self.sync(&object, Need::File).await,
        };
        let wcc = object.stat().map(|stat| Wcc::unchanged(stat.attr()));
        Changed { wcc: wcc.unwrap_or_default(), result }
    }
}

/// For a COMMIT from the write log: what came, and what of that will be unstable. The caller holds
/// the file's order. `after` is missing if it is not known what was written.
fn note(
    object: &Object,
    offset: u64,
    data: &Bytes,
    stability: Stability,
    before: &Stat,
    after: Option<Attr>,
) {
    let mut unstable = object.unstable.lock();
    match after {
        // Of set-id bits that are gone the log would not know.
        Some(after) if after.mode == before.attr().mode => {
            let changed = write_log::stamp(after.changed);
            match stability {
                Stability::Unstable => unstable.wrote(offset, data, changed),
                _ => unstable.overwrote(offset, data.len() as u64, changed),
            }
        }
        _ => unstable.spoil(),
    }
}

fn looked_at(object: Arc<Object>) -> Result<(Arc<Object>, Stat), Status> {
    let stat = object.stat()?;
    Ok((object, stat))
}

impl FileSystem {
    /// Reads what is there without waiting for a disk; how much, is given back.
    fn read_cached(
        &self,
        fd: BorrowedFd<'_>,
        reading: &mut Reading,
        offset: u64,
    ) -> Result<usize, Status> {
        let buffer = &mut reading.buffer.as_mut()[..reading.wanted];
        // In memory there is nothing to wait for.
        if self.is_memory() {
            return rustix::io::pread(fd, buffer, offset).map_err(status);
        }
        if self.lacks_nowait.load(Ordering::Relaxed) {
            return Ok(0);
        }
        let buffers = &mut [IoSliceMut::new(buffer)];
        match rustix::io::preadv2(fd, buffers, offset, ReadWriteFlags::NOWAIT) {
            Err(Errno::AGAIN | Errno::INTR) => Ok(0),
            Err(Errno::OPNOTSUPP | Errno::NOSYS) => {
                self.lacks_nowait.store(true, Ordering::Relaxed);
                Ok(0)
            }
            outcome => outcome.map_err(status),
        }
    }
}

impl Reading {
    /// Reads on to what is wanted or the end of the file.
    fn fill(&mut self, fd: BorrowedFd<'_>, offset: u64) -> Result<(), Errno> {
        while self.filled < self.wanted {
            let rest = &mut self.buffer.as_mut()[self.filled..self.wanted];
            match rustix::io::pread(fd, rest, offset + self.filled as u64) {
                Ok(0) => break,
                Ok(count) => self.filled += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(())
    }
}

fn write_all(fd: BorrowedFd<'_>, data: &[u8], offset: u64) -> Result<(), Status> {
    let end = offset.checked_add(data.len() as u64);
    if end.is_none_or(|end| i64::try_from(end).is_err()) {
        return Err(Status::TooLarge);
    }
    let mut written = 0;
    while written < data.len() {
        match rustix::io::pwrite(fd, &data[written..], offset + written as u64) {
            Ok(0) => return Err(Status::Io),
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(status(errno)),
        }
    }
    Ok(())
}
