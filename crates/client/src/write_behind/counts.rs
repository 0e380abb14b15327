//! What the engine has counted, and what it holds now.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use wire::nfs3::FileHandle;

use super::engine::Engine;
use super::file::File;
use super::index::Sums;

/// Events since the start.
#[derive(Debug, Default)]
pub(super) struct Counts {
    pub(super) writes_sent: AtomicU64,
    pub(super) commits_sent: AtomicU64,
    pub(super) bytes_sent: AtomicU64,
    pub(super) writer_waits: AtomicU64,
    pub(super) forced_flushes: AtomicU64,
    pub(super) short_writes: AtomicU64,
    pub(super) jukebox_waits: AtomicU64,
    pub(super) lost_bytes: AtomicU64,
    pub(super) dropped_bytes: AtomicU64,
}

pub(super) fn count(counter: &AtomicU64, by: u64) {
    counter.fetch_add(by, Ordering::Relaxed);
}

impl Engine {
    pub(super) fn dirty_files(&self) -> Vec<(FileHandle, u64)> {
        let sums = |file: Arc<File>| (file.handle, file.state.lock().index.sums());
        let bytes = |sums: Sums| sums.unanswered_bytes + sums.unstable_bytes;
        let files = self.all_files().into_iter().map(sums);
        files.map(|(handle, sums)| (handle, bytes(sums))).filter(|(_, bytes)| *bytes > 0).collect()
    }

    pub(super) fn counters(&self) -> Counters {
        let files = self.all_files();
        let (mut dirty_bytes, mut uncommitted_bytes) = (0, 0);
        for file in &files {
            let sums = file.state.lock().index.sums();
            dirty_bytes += sums.unanswered_bytes;
            uncommitted_bytes += sums.unstable_bytes;
        }
        let (outstanding, window) = {
            let sending = self.sending.lock();
            (sending.outstanding, sending.window.limit())
        };
        let of = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counters {
            outstanding,
            window,
            dirty_bytes,
            uncommitted_bytes,
            files: files.len(),
            writers_waiting: self.room.lock().writers_waiting(),
            writes_sent: of(&self.counts.writes_sent),
            commits_sent: of(&self.counts.commits_sent),
            bytes_sent: of(&self.counts.bytes_sent),
            writer_waits: of(&self.counts.writer_waits),
            forced_flushes: of(&self.counts.forced_flushes),
            short_writes: of(&self.counts.short_writes),
            jukebox_waits: of(&self.counts.jukebox_waits),
            lost_bytes: of(&self.counts.lost_bytes),
            dropped_bytes: of(&self.counts.dropped_bytes),
        }
    }
}

/// What has happened since the start, and is the case now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// Calls outstanding now, and how many may be.
    pub outstanding: u32,
    pub window: u32,
    /// Bytes not yet acknowledged, and acknowledged but not yet stable.
    pub dirty_bytes: u64,
    pub uncommitted_bytes: u64,
    /// Files with any of them, or with an error to report.
    pub files: usize,
    /// Writers that wait for room now.
    pub writers_waiting: usize,
    pub writes_sent: u64,
    pub commits_sent: u64,
    pub bytes_sent: u64,
    /// How often a writer waited for room, or slept at the limit of the mount's requests.
    pub writer_waits: u64,
    /// How often a writer flushed its file at the limit of its requests.
    pub forced_flushes: u64,
    /// WRITEs that took only a part.
    pub short_writes: u64,
    /// JUKEBOX replies.
    pub jukebox_waits: u64,
    /// Bytes that the server lost after it had acknowledged them; they were written again.
    pub lost_bytes: u64,
    /// Bytes that could not be written and were given up.
    pub dropped_bytes: u64,
}
