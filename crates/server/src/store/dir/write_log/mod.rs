//! Stable WRITEs from one log for all files (`nfskit serve --write-log`), or several on several
//! devices: the crate `log` decides, here are its threads, its files, and the ways in and out.
//!
//! ```text
//!   WRITE (stable) --pwrite--> page cache, submit --"nfskit-log-0"--> one frame --> replies
//!                                        |
//!               a quarter full, or 5 s --'--"nfskit-destage-0"--> fsync of each file, past
//! ```
//!
//! **What is logged**: a stable WRITE of at most 256 KiB that did not change the file's mode
//! (set-id bits); a SETATTR; what UNSTABLE WRITEs gave a file since it was stable, at their COMMIT,
//! if that is little (`log::unstable`); the last two only where the log is faster than the
//! directory's disk. All of a file of which the inode itself is stable with its attributes, because
//! it was synced since, or not changed since the server began with a sync of all (`covers.rs`). All
//! else is made stable in its place, as without a log: names, large writes, and what finds no room.
//!
//! **A log that fills** holds WRITEs back as the disk is slow, before their data are in the page
//! cache (`entry.rs`): it is slow, does not get full, and is never an error.
//!
//! **Replies** to calls that must not be executed twice go there, too (`replies.rs`): behind what
//! they answer, or while that is made stable in its place.
//!
//! **What becomes stable without the log** while its file has records is answered when the log
//! knows (`Log::sync`). A file whose sync has failed is not past its records until they were
//! replayed: whatever is to be stable in it is an error until the server is started again.
//!
//! **A log that cannot be written** is given up (`failure.rs`): its files are synced, and then
//! the server ends, or goes on without.
//!
//! **Memory**: 32 bytes for each frame in the log and 16 for each record (16 MiB at most), two
//! buffers of 1.3 MiB for each log, 16 MiB of UNSTABLE WRITEs, 0.7 MiB of replies, and at most
//! 1,024 open files.

mod alone;
mod covers;
mod device;
mod effects;
mod entry;
mod error;
mod evidence;
mod failure;
mod file;
mod keys;
mod marker;
mod measure;
mod memory;
mod options;
mod overtaken;
mod recover;
mod replies;
mod set;
mod shared;
mod submit;
mod threads;
mod ticket;
mod times;

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread::{self, JoinHandle};

use log::journal::Begin;
use log::scan::Found;
pub use log::scan::{Lost, Unreadable};
use log::{EncodedReply, Journal, Limits};
use parking_lot::{Condvar, Mutex};
use rustix::fs::{Mode, OFlags};
use tokio::sync::{Notify, oneshot};

pub use self::alone::{Alone, Peek, Writer, begins_as_of_proxy};
use self::covers::Covers;
pub(super) use self::effects::file_id;
use self::entry::Entry;
use self::error::Trouble;
pub use self::error::{DeviceTrouble, LogError, LogTrouble};
use self::file::Aligned;
#[cfg(test)]
pub(super) use self::file::{UNREADABLE, WRITES_FAIL};
use self::keys::key;
pub(super) use self::marker::ATTRIBUTE as MARK;
use self::marker::Marker;
pub use self::measure::Latencies;
pub use self::memory::{has_dir as is_in_memory, is_below as is_above_memory};
pub use self::options::{OnFailure, Progress, Stage, WriteLog};
pub use self::overtaken::{NAMED_MAX, Named, Replaced};
pub use self::recover::Recovered;
pub use self::set::Inspection;
use self::set::LogFiles;
pub use self::shared::GivenUp;
use self::shared::{Failed, Shared, State, Waiter};
pub(super) use self::ticket::Ticket;
pub(super) use self::times::stamp;
use super::objects::Object;
use super::stat::Stat;
use super::sync::Syncer;
use super::sync::group::Need;
use crate::durable::Durable;
use crate::locked::Locked;
use crate::metrics::Reading;
use crate::store::logged;
use crate::types::{Status, Verifier};

/// What a directory's last server left, without a log being given.
pub(super) fn refuse_without(root: &OwnedFd) -> Result<(), LogError> {
    match Marker::of(root).map_err(LogError::Mark)? {
        Some(marker) => Err(LogError::Missing { files: marker.files }),
        None => Ok(()),
    }
}

/// Of a directory above, in the same file system, the last server may have left records of files
/// that are in here.
pub(super) fn refuse_inside(root: &OwnedFd) -> Result<(), LogError> {
    let open = |dir: &OwnedFd, name, access| {
        let flags = access | OFlags::DIRECTORY | OFlags::CLOEXEC;
        rustix::fs::openat(dir, name, flags, Mode::empty()).ok()
    };
    let identity = |dir: &OwnedFd| Stat::of(dir).ok().map(|stat| stat.identity());
    let mut here = open(root, c".", OFlags::PATH);
    while let Some(dir) = here {
        let up = open(&dir, c"..", OFlags::PATH);
        // The root is its own parent; another file system has other files.
        here = up.filter(|up| {
            let (up, dir) = (identity(up), identity(&dir));
            up != dir && up.map(|up| up.device) == dir.map(|dir| dir.device)
        });
        let readable = here.as_ref().and_then(|up| open(up, c".", OFlags::RDONLY));
        if let Some(up) = readable
            && let Ok(Some(Marker { files, .. })) = Marker::of(&up)
        {
            return Err(LogError::Above {
                dir: overtaken::path_of(&up).unwrap_or_default(),
                files,
            });
        }
    }
    Ok(())
}

/// Whether a directory has a log of its own, without which it is not served. Who asks has looked
/// for [`MARK`].
pub(super) fn has_own(dir: &OwnedFd) -> bool {
    // Also where that cannot be read.
    Marker::of(dir).map_or(true, |marker| marker.is_some())
}

/// The logs that a directory names without being believed, if it does: another user may have set
/// that, or it is a copy of a directory that has logs.
pub fn named_in_vain(dir: &Path) -> Option<Vec<PathBuf>> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let root = rustix::fs::open(dir, flags, Mode::empty()).ok()?;
    Marker::strange(&root).map(|marker| marker.files)
}

/// Looks at the logs of a directory, which no server may have: all that a recovery needs is read.
pub fn inspect(paths: &[PathBuf]) -> Result<Inspection, LogError> {
    set::inspect(paths)
}

/// A log in use.
pub(super) struct Log {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    on_failure: OnFailure,
    /// Tests let its writes fail.
    #[cfg(test)]
    pub(super) logs: Option<Arc<LogFiles>>,
    pub(super) recovered: Recovered,
    /// Of each log.
    pub(super) latencies: Vec<Latencies>,
    pub(super) places: Vec<(PathBuf, u64)>,
    covers: Covers,
    keeps_replies: bool,
    /// Of the directory.
    _lock: Locked,
    /// Replies that were found at the start.
    found: Mutex<Vec<EncodedReply>>,
}

/// Files do not have records for longer.
const SWEEP_SECONDS: u32 = 5;

impl Log {
    /// Finds or makes the log, and brings what it holds to its place.
    pub(super) fn open(
        options: &WriteLog,
        open_files_max: Option<usize>,
        root: &OwnedFd,
        syncer: Syncer,
    ) -> Result<Self, LogError> {
        let first = options.files.first().map_or_else(|| Path::new(""), PathBuf::as_path);
        let boot = options.boot.map_or_else(|| file::known_boot(first), Ok)?;
        let lock = file::lock_dir(root).map_err(|trouble| trouble.about(first))?;
        let logs = LogFiles::open_or_make(options, root, boot)?;
        let (found, recovered, replies) = recover::recover(&logs, options, root, boot, &syncer)?;
        let replies = replies::without_outage(replies, times::now());
        let marker = logs.marker();
        let is_new = Marker::of(root).map_err(LogError::Mark)?.is_none();
        let of = (boot, limits(open_files_max));
        let begun = go_on(&logs, &marker, found, &replies, of, root);
        let (mut journal, free) = begun.inspect_err(|_| {
            // Nobody was answered from it, and the directory does without as before.
            let _ = if is_new { marker.remove(root) } else { Ok(()) };
        })?;
        let unwritable = |cause| logs.error(Trouble::from(cause).in_doing(WRITING));
        let latencies = Latencies::measure(&logs, free, root).map_err(unwritable)?;
        for (log, latencies) in latencies.iter().enumerate() {
            journal.allow_in_flight(log, latencies.frames_at_a_time());
        }
        let is_slow = Latencies::slowest(&latencies).is_log_slow();
        let covers = Covers::from_now(root, options.is_faster.unwrap_or(!is_slow));
        let root = rustix::io::fcntl_dupfd_cloexec(root, 0)
            .map_err(|errno| logs.error(Trouble::from(errno).in_doing("no descriptor for it")))?;
        let count = logs.files.len();
        let shared = Arc::new(Shared {
            state: Mutex::new(State::new(journal, count)),
            to_write: (0..count).map(|_| Condvar::new()).collect(),
            to_sync: Condvar::new(),
            to_let_in: Condvar::new(),
            submissions: AtomicU64::new(0),
            room: Notify::new(),
            root,
            marker,
            syncer,
        });
        let mut log = Self {
            shared,
            threads: Vec::new(),
            on_failure: options.on_failure,
            #[cfg(test)]
            logs: None,
            recovered,
            latencies,
            places: logs.places(),
            covers,
            keeps_replies: options.keeps_replies,
            _lock: lock,
            found: Mutex::new(replies),
        };
        let logs = Arc::new(logs);
        let started = log.start(&logs);
        started.map_err(|cause| logs.error(Trouble::from(cause).in_doing("threads")))?;
        Ok(log)
    }

    fn start(&mut self, logs: &Arc<LogFiles>) -> std::io::Result<()> {
        let spawn = |name: &str, work: Box<dyn FnOnce() + Send>| {
            thread::Builder::new().name(name.to_owned()).spawn(work)
        };
        #[cfg(test)]
        self.logs.replace(Arc::clone(logs));
        let each = self.latencies.iter().enumerate();
        let each = each.flat_map(|(log, one)| std::iter::repeat_n(log, one.frames_at_a_time()));
        for (index, log) in each.enumerate() {
            let (shared, logs) = (Arc::clone(&self.shared), Arc::clone(logs));
            let work = Box::new(move || shared.write_frames(log, &logs.files[log]));
            self.threads.push(spawn(&format!("nfskit-log-{index}"), work)?);
        }
        let shared = Arc::clone(&self.shared);
        self.threads.push(spawn("nfskit-destage-0", Box::new(move || shared.destage()))?);
        let shared = Arc::clone(&self.shared);
        self.threads.push(spawn("nfskit-pace-0", Box::new(move || shared.let_in()))?);
        Ok(())
    }

    /// Waits until a stable WRITE may come in. None: it is not for the log.
    pub(super) async fn entry(&self, object: &Object, len: usize) -> Option<Entry> {
        self.shared.entry(object, len).await
    }

    /// Waits until the log has a WRITE, or else its file.
    pub(super) async fn stable(
        &self,
        ticket: Ticket,
        object: &Arc<Object>,
        verifier: Verifier,
    ) -> Result<Durable, Status> {
        match Durable::after_log(ticket.outcome().await, verifier) {
            Ok(durable) => Ok(durable),
            Err(failed) => {
                self.without_log(failed).await?;
                self.sync(object, Need::File).await
            }
        }
    }

    /// Makes a file stable as it is now; if it has records, it is past them when this is answered.
    pub(super) async fn sync(&self, object: &Arc<Object>, need: Need) -> Result<Durable, Status> {
        let key = key(object);
        let mark = key.and_then(|key| self.shared.state.lock().journal.mark(&key));
        // A replay would have set the times, too.
        let need = if mark.is_some() { need.max(Need::File) } else { need };
        let outcome = self.shared.syncer.sync(object, need).await;
        if let (Some(key), Some(through)) = (key, mark) {
            let (waiter, ticket) = oneshot::channel();
            self.shared.synced(object, key, through, outcome.is_ok(), Some(waiter));
            // No reply: it is not past them.
            if let Err(failed) = ticket.await.unwrap_or(Err(Failed)) {
                self.without_log(failed).await?;
            }
        }
        if outcome.is_ok() && need >= Need::File {
            object.is_rooted.store(true, Ordering::Release);
        }
        outcome
    }

    /// Whether a file has records.
    pub(super) fn has(&self, object: &Object) -> bool {
        key(object).is_some_and(|key| self.shared.state.lock().journal.mark(&key).is_some())
    }

    /// To be called about once a second.
    pub(super) fn tend(&self, second: u32) {
        self.covers.tend();
        let mut state = self.shared.state.lock();
        if state.journal.say_decided() {
            self.shared.wake(&mut state);
        }
        if state.objects.is_empty() || second < state.swept_at.saturating_add(SWEEP_SECONDS) {
            return;
        }
        state.swept_at = second;
        state.is_sweep_due = true;
        self.shared.to_sync.notify_one();
    }

    /// Brings everything to its place and notes that, so that the directory can be served without
    /// the log. No WRITE is logged any more.
    ///
    /// # Errors
    /// Some file could not be synced, or the log not be written: it is to be given again.
    pub(super) async fn end(&self) -> Result<(), String> {
        let (waiter, ended) = oneshot::channel();
        self.shared.state.lock().ending = Some(waiter);
        self.shared.to_sync.notify_one();
        ended.await.unwrap_or_else(|_| Err("its thread has ended".to_owned()))
    }

    #[cfg(test)]
    pub(super) fn is_sweeping(&self) -> bool {
        self.shared.state.lock().is_sweep_due
    }

    pub(super) fn has_failed(&self) -> bool {
        self.shared.state.lock().journal.is_failed()
    }

    pub(super) fn readings(&self) -> Vec<Reading> {
        let state = self.shared.state.lock();
        let mut readings = logged::readings(&state.journal);
        let failed = u64::from(state.journal.is_failed());
        let slowest = Latencies::slowest(&self.latencies);
        let rows = [
            ("nfskit_log_files", "Files with records in the log.", state.objects.len() as u64),
            (
                "nfskit_log_sync_microseconds",
                "What a write of 4 KiB to the log took at the start.",
                u64::try_from(slowest.log.as_micros()).unwrap_or(u64::MAX),
            ),
            (
                "nfskit_log_in_flight_max",
                "Frames of the log on their way at the same time.",
                self.latencies.iter().map(Latencies::frames_at_a_time).sum::<usize>() as u64,
            ),
            ("nfskit_log_failed", "1 when the log could not be written.", failed),
        ];
        readings.extend(rows.map(|(name, help, value)| Reading::new(name, help, value as f64)));
        readings
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        self.shared.state.lock().is_closed = true;
        self.shared.to_write.iter().for_each(|threads| {
            threads.notify_all();
        });
        self.shared.to_sync.notify_all();
        self.shared.to_let_in.notify_all();
        for thread in self.threads.drain(..) {
            // It has panicked, which its own message tells.
            let _ = thread.join();
        }
    }
}

/// The frames that a start begins with.
struct Begun {
    /// The last of them.
    frame: u64,
    /// Which log it is in, and from where on nothing else of that log is needed.
    free: (usize, u64),
}

/// The journal behind what was found, all of which is in its place, and what of a log is free. A
/// log that is full to its end is begun anew.
fn go_on(
    logs: &LogFiles,
    marker: &Marker,
    found: Found,
    replies: &[EncodedReply],
    (boot, limits): ([u8; 16], Limits),
    root: &OwnedFd,
) -> Result<(Journal<Waiter>, (usize, u64)), LogError> {
    let not_remembered = |errno| logs.not_remembered(errno);
    let behind = |found: &Found| {
        let mut journal = Journal::new(&logs.set, boot, Some(found), limits);
        for reply in replies {
            // In the frame by which those that have them now are needed no more.
            journal.submit_reply(reply.clone(), false, None);
        }
        journal
    };
    marker.set(root).map_err(not_remembered)?;
    let mut journal = behind(&found);
    let begun = match begin(&mut journal, logs)? {
        None => {
            marker.begins_anew(root).map_err(not_remembered)?;
            journal = behind(&Found { frames: Vec::new(), ..found });
            begin(&mut journal, logs)?
        }
        begun => begun,
    };
    let no_room = || logs.error(Trouble::other("it has no room for a frame"));
    let Begun { frame, free } = begun.ok_or_else(no_room)?;
    marker.started(root, frame).map_err(not_remembered)?;
    Ok((journal, free))
}

/// From here on it is known that there is nothing to be done again. None: there is no room.
fn begin(journal: &mut Journal<Waiter>, logs: &LogFiles) -> Result<Option<Begun>, LogError> {
    let mut begun = None;
    while begun.is_none() || journal.is_waiting() {
        match begin_next(journal, logs)? {
            None => break,
            next => begun = next,
        }
    }
    Ok(begun)
}

fn begin_next(journal: &mut Journal<Waiter>, logs: &LogFiles) -> Result<Option<Begun>, LogError> {
    let mut buffer = Vec::new();
    for (log, file) in logs.files.iter().enumerate() {
        let Begin::Write { at, frame } = journal.begin(log, &mut buffer) else { continue };
        let written = file.write(at, Aligned::default().copy(&buffer));
        written.map_err(|cause| file.error(Trouble::from(cause).in_doing(WRITING)))?;
        journal.finish(frame, true);
        return Ok(Some(Begun { frame, free: (log, at + buffer.len() as u64) }));
    }
    Ok(None)
}

const WRITING: &str = "it cannot be written";

/// Of the descriptors that a store may have, a quarter is for files with records, at three a file.
fn limits(open_files_max: Option<usize>) -> Limits {
    let limits = Limits::default();
    let files_max = open_files_max.map_or(limits.files_max, |fds| limits.files_max.min(fds / 12));
    Limits { files_max, ..limits }
}
