//! What a log holds is brought to its place, before anything is served.
//!
//! On a machine that was switched off (or whose log says that a sync had failed) each WRITE that
//! its file is not past is done again, in order, and each SETATTR that its inode on the disk is not
//! known to have (`evidence.rs`); then each file gets the modification time that its last record
//! was answered with, and is synced. On a machine that was not, the page cache has it all, and
//! newer things besides: files are synced, and nothing is written.
//!
//! A file that is gone needs nothing. Anything else that keeps a file from getting its bytes (no
//! space, a file system that is read-only) ends the start: the log stays as it is.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, OwnedFd};

use log::frame::DOUBT;
use log::replay::{Answered, Needed, Plan, executed};
use log::scan::{Found, Lost, ScanError, Unreadable};
use log::{Attributes, EncodedReply, Key, Medium, Op, Stamp};
use rustix::fs::{Gid, Mode, OFlags, Timespec, Timestamps, Uid};
use rustix::io::Errno;
use rustix::time::{ClockId, clock_gettime};

use super::effects;
use super::error::{LogError, LogTrouble, Trouble};
use super::evidence::{Evidence, Known};
use super::keys::find;
use super::marker::Marker;
use super::options::{Progress, Stage, WriteLog};
use super::overtaken::{self, Overtaken, Replaced};
use super::set::LogFiles;
use super::times::{now, stamp};
use crate::store::dir::file_system::FileSystem;
use crate::store::dir::handles;
use crate::store::dir::stat::Stat;
use crate::store::dir::sync::Syncer;
use crate::store::dir::sync::group::Need;
use crate::store::dir::sys;
use crate::types::FileKind;

/// What was found and done at the start.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Recovered {
    /// Files that had records, and what was written to them again.
    pub files: u64,
    pub records: u64,
    /// Of the records, the SETATTRs.
    pub attributes: u64,
    pub bytes: u64,
    /// Of these files, those that are not there any more.
    pub gone: u64,
    /// Those that were changed after their last logged WRITE: by UNSTABLE WRITEs that were not
    /// committed, or by programs on the server.
    pub changed: u64,
    /// Of these, the ones that had other bytes where WRITEs were done again.
    pub replaced: Replaced,
    /// And the ones that were shorter than they are now.
    pub lengthened: Replaced,
    /// The machine had not been switched off: files were synced, and nothing was written.
    pub was_running: bool,
    /// The log was damaged, and this of it is given up.
    pub lost: Option<Lost>,
    /// More may be lost of which nothing is known: no whole frame is there, or none of the newest
    /// start.
    pub is_end_lost: bool,
    /// Bytes of the log that were cut off, with whatever was in them.
    pub cut_bytes: u64,
    /// Blocks of the log that cannot be read, and hold nothing that is known to be needed.
    pub unreadable: Option<Unreadable>,
}

impl Recovered {
    /// Not all that the log had held was known.
    fn is_damaged(&self) -> bool {
        self.lost.is_some() || self.cut_bytes > 0
    }
}

/// Who hears of it, not more often than every so many bytes: logs that are brought to their place
/// in a moment are not heard of.
const PROGRESS_BYTES: u64 = 128 << 20;

struct Observer {
    tell: Option<fn(Progress)>,
    stage: Stage,
    all_bytes: u64,
    done_bytes: Cell<u64>,
}

impl Observer {
    fn at(&self, done_bytes: u64) {
        let before = self.done_bytes.replace(done_bytes);
        if let Some(tell) = self.tell
            && done_bytes / PROGRESS_BYTES > before / PROGRESS_BYTES
        {
            tell(Progress { stage: self.stage, done_bytes, all_bytes: self.all_bytes });
        }
    }
}

/// Logs that are read from their beginning to their end, one after the other.
struct Observed<'l> {
    logs: &'l LogFiles,
    observer: Observer,
}

impl Medium for Observed<'_> {
    fn read(&self, log: usize, at: u64, into: &mut [u8]) -> io::Result<()> {
        self.logs.read(log, at, into)?;
        let before: u64 = self.logs.set.bytes.iter().take(log).sum();
        self.observer.at(before + at + into.len() as u64);
        Ok(())
    }
}

/// A file to be written.
struct Target {
    fd: OwnedFd,
    /// When it was last changed, as the disk had it.
    known: Known,
    /// What it is to be in the end.
    modified: Stamp,
    accessed: Option<Stamp>,
    /// Its bytes before, if it is newer than its records.
    newer_bytes: Option<u64>,
}

const OLD_COPY: &str = "it is a copy of an earlier time: the directory has seen a later start of \
                        its server, and what this holds may be older than its files";

#[derive(Debug, thiserror::Error)]
enum Stop {
    #[error("{0}")]
    Log(#[from] ScanError),
    #[error("file {key}: {errno}")]
    File { key: Key, errno: Errno },
    #[error("file {key} cannot be synced: {errno}")]
    Unsynced { key: Key, errno: Errno },
    #[error("its file system: {0}")]
    System(Errno),
}

impl Stop {
    /// A sync has failed, and the kernel has perhaps thrown pages away.
    fn is_of_sync(&self) -> bool {
        matches!(self, Self::Unsynced { .. } | Self::System(_))
    }

    /// With the place of the file, and what can be done about it.
    fn sentence(&self, root: &OwnedFd) -> String {
        let &(Self::File { ref key, errno } | Self::Unsynced { ref key, errno }) = self else {
            return self.to_string();
        };
        let file = find(root, key).and_then(|file| overtaken::place(root, &file));
        let file = file.unwrap_or_else(|_| format!("file {key}"));
        format!("{file}: {errno}{}", advice(errno))
    }
}

fn advice(errno: Errno) -> &'static str {
    match errno {
        Errno::ACCESS => ", it has to be written by this server's user",
        Errno::PERM => ", it may be immutable or append-only: lsattr and chattr -i -a",
        Errno::TXTBSY => ", a program runs from it and has to be ended first: fuser",
        Errno::ROFS => ", mount its file system for writing",
        Errno::NOSPC | Errno::DQUOT => ", its bytes need room there",
        _ => "",
    }
}

/// A torn end was never answered. One that cannot be read may have been.
fn has_newest(found: &Found, logs: &LogFiles) -> Result<(), LogError> {
    let Some(unreadable) = found.unreadable.filter(|unread| unread.may_be_newest) else {
        return Ok(());
    };
    let what = format!("what was answered last may be lost: {unreadable}");
    Err(logs.error(Trouble::new(LogTrouble::Damaged, what)))
}

/// Does what is to be done.
pub(super) fn recover(
    logs: &LogFiles,
    options: &WriteLog,
    root: &OwnedFd,
    boot: [u8; 16],
    syncer: &Syncer,
) -> Result<(Found, Recovered, Vec<EncodedReply>), LogError> {
    let observer = |stage, all_bytes| {
        let (tell, done_bytes) = (options.progress, Cell::new(0));
        Observer { tell, stage, all_bytes, done_bytes }
    };
    let all_bytes = logs.set.all_bytes();
    let observed = Observed { logs, observer: observer(Stage::Reading, all_bytes) };
    let is_anew = logs.marker().is_begun_anew(root);
    let (found, lost) = logs.scan_with(options.salvages || is_anew, &observed)?;
    let lost = lost.filter(|_| !is_anew);
    let cut_bytes = logs.cut_bytes();
    let is_old = !is_anew && found.last.sequence < logs.marker().newest_start(root);
    if is_old && lost.is_none() && cut_bytes == 0 {
        return Err(logs.error(Trouble::new(LogTrouble::OfAnother, OLD_COPY)));
    }
    let mut plan = logs.plan(&found)?;
    if is_anew {
        plan.files.clear();
    }
    let has_doubts = found.last.flags & DOUBT != 0 || Marker::is_in_doubt(root);
    let is_same_boot = found.last.boot == boot;
    let is_cached = is_same_boot && is_cached(root, &plan);
    let was_running = is_cached && !has_doubts;
    if !was_running && !is_anew && !options.salvages {
        has_newest(&found, logs)?;
    }
    // A test's boot says nothing of the times that files have.
    let began = (!was_running && options.boot.is_none()).then(boot_began);
    let evidence = Evidence {
        replays_since: Marker::replays_since(root),
        began: began.filter(|_| !is_same_boot),
        mounted_since: newest(&plan).filter(|_| !is_cached && replays_names(root)),
    };
    let since = evidence.changes_since().into_iter().chain(began).min();
    let replies = look(root, std::mem::take(&mut plan.replies), since);
    let mut recovered = Recovered {
        was_running,
        lost,
        is_end_lost: is_old || lost.is_some() && found.frames.is_empty(),
        cut_bytes,
        unreadable: found.unreadable,
        ..Recovered::default()
    };
    let all_bytes = plan.files.values().map(|needed| needed.bytes).sum();
    let writing = observer(Stage::Writing, all_bytes);
    let outcome = open_all(root, &plan, &evidence, &mut recovered).and_then(|targets| {
        if !was_running && !targets.is_empty() {
            replay(logs, (&plan, &found), root, &targets, (&mut recovered, &writing))?;
        }
        finish(&targets, &plan, was_running, syncer)
    });
    let outcome = outcome.and_then(|()| match recovered.is_damaged() || replies.has_open {
        // The files of lost records are not known; on a machine that ran on they have their bytes.
        // What calls did that were not answered is there, and perhaps not yet stable.
        true => syncer.call(root.as_fd(), Need::FileSystem).map_err(Stop::System),
        false => Ok(()),
    });
    let outcome = outcome.and_then(|()| logs.name_again().map_err(|cause| Stop::Log(cause.into())));
    outcome.map_err(|stop| logs.error(not_in_place(root, &stop)))?;
    Ok((found, recovered, replies.executed))
}

/// Does again what the log holds, in order.
fn replay(
    logs: &LogFiles,
    (plan, found): (&Plan, &Found),
    root: &OwnedFd,
    targets: &BTreeMap<Key, Target>,
    (recovered, observer): (&mut Recovered, &Observer),
) -> Result<(), Stop> {
    if Marker::replays_since(root).is_none() {
        Marker::replays(root, now()).map_err(Stop::System)?;
    }
    let overtaken = overtaken(targets, plan, logs, found)?;
    plan.run(logs, &logs.set, found, |record| {
        let Some(target) = targets.get(&record.key) else { return Ok(()) };
        let stop = |errno| Stop::File { key: record.key, errno };
        if !target.again(&record.op).map_err(stop)? {
            return Ok(());
        }
        recovered.records += 1;
        recovered.attributes += u64::from(matches!(record.op, Op::Attributes { .. }));
        if let Op::Data { data, .. } = record.op {
            recovered.bytes += data.len() as u64;
        }
        observer.at(recovered.bytes);
        Ok::<_, Stop>(())
    })?;
    let replaced = overtaken.replaced(root, |key| Some(&targets.get(key)?.fd));
    [recovered.replaced, recovered.lengthened] =
        replaced.map_err(|(key, errno)| Stop::File { key, errno })?;
    Ok(())
}

/// A recovery that did not come to its end, as the start reports it.
fn not_in_place(root: &OwnedFd, stop: &Stop) -> Trouble {
    // The kernel reports it once: the next sync would say that all is well.
    let noted = if stop.is_of_sync() { Marker::doubt(root) } else { Ok(()) };
    let unless = match noted {
        Ok(()) => String::new(),
        Err(errno) => format!(
            ". Restart the machine before it: the directory cannot note that a sync has failed \
             ({errno})"
        ),
    };
    Trouble::other(format!(
        "what it holds cannot be brought to its place ({}); it stays as it is, to be replayed by \
         the next start{unless}",
        stop.sentence(root)
    ))
}

struct Looked {
    executed: Vec<EncodedReply>,
    /// Some were open, executed or not.
    has_open: bool,
}

/// Looks which calls were executed, before anything is written: a replay changes inodes, too, and
/// so do programs since the machine has begun again.
fn look(root: &OwnedFd, replies: Vec<Answered>, since: Option<Stamp>) -> Looked {
    let has_open = replies.iter().any(|reply| !reply.is_decided);
    let executed = executed(replies, |key, effect| effects::shows(root, key, effect, since));
    Looked { executed, has_open }
}

/// Looks at the files that are newer than their records, before anything is written to them.
fn overtaken(
    targets: &BTreeMap<Key, Target>,
    plan: &Plan,
    logs: &LogFiles,
    found: &Found,
) -> Result<Overtaken, Stop> {
    let newer = |(&key, target): (&Key, &Target)| Some((key, target.newer_bytes?));
    let mut overtaken = Overtaken::new(targets.iter().filter_map(newer));
    if !overtaken.is_empty() {
        plan.run(logs, &logs.set, found, |record| {
            if let Op::Data { offset, data, .. } = record.op {
                overtaken.writes(&record.key, offset, data.len());
            }
            Ok::<_, Stop>(())
        })?;
        let outcome = overtaken.look(|key| Some(&targets.get(key)?.fd));
        outcome.map_err(|(key, errno)| Stop::File { key, errno })?;
    }
    Ok(overtaken)
}

/// Whether the page cache can have all of it. A file system that was lost and mounted again, in the
/// same boot, has inodes that were last changed before their last record.
fn is_cached(root: &OwnedFd, plan: &Plan) -> bool {
    plan.files.iter().all(|(key, needed)| {
        // One that is gone, or cannot be looked at, is for who opens it.
        let stat = find(root, key).and_then(|file| Stat::of(&file));
        stat.map_or(true, |stat| stat.is_deleted() || stamp(stat.attr().changed) >= needed.changed)
    })
}

/// At most as many as may have records at a time.
fn open_all(
    root: &OwnedFd,
    plan: &Plan,
    evidence: &Evidence,
    recovered: &mut Recovered,
) -> Result<BTreeMap<Key, Target>, Stop> {
    let mut targets = BTreeMap::new();
    for (&key, needed) in &plan.files {
        recovered.files += 1;
        let stop = |errno| Stop::File { key, errno };
        match open(root, &key, recovered.was_running) {
            Ok((fd, stat)) => {
                let target = Target::new(fd, &stat, needed, evidence);
                recovered.changed += u64::from(target.newer_bytes.is_some());
                targets.insert(key, target);
            }
            Err(Errno::STALE) => recovered.gone += 1,
            Err(errno) => return Err(stop(errno)),
        }
    }
    Ok(targets)
}

/// For writing, unless a sync is enough: a program that runs cannot be written.
fn open(root: &OwnedFd, key: &Key, to_sync: bool) -> Result<(OwnedFd, Stat), Errno> {
    let handle = handles::kernel_handle(key.as_bytes()).ok_or(Errno::INVAL)?;
    let access = if to_sync { OFlags::RDONLY } else { OFlags::RDWR };
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let fd = match sys::open_by_handle(root.as_fd(), &handle, flags | access) {
        Err(Errno::ISDIR) => sys::open_by_handle(root.as_fd(), &handle, flags | OFlags::RDONLY)?,
        opened => opened?,
    };
    let stat = Stat::of(&fd)?;
    if stat.is_deleted() { Err(Errno::STALE) } else { Ok((fd, stat)) }
}

impl Target {
    fn new(fd: OwnedFd, stat: &Stat, needed: &Needed, evidence: &Evidence) -> Self {
        let of_disk = stat.attr();
        let (changed, modified) = (stamp(of_disk.changed), stamp(of_disk.modified));
        // Names move that of a directory, which has no other bytes.
        let written = (stat.kind() == FileKind::Regular).then_some(modified);
        let known = evidence.of(changed, written, needed);
        let is_newer = known.bytes > needed.changed;
        let modified = match (is_newer, needed.attributes > 0) {
            (false, _) => needed.modified,
            (true, true) => modified,
            // WRITEs alone do not set it back.
            (true, false) => needed.modified.max(modified),
        };
        let accessed = needed.accessed.filter(|_| known.inode <= needed.changed);
        let newer_bytes = is_newer.then(|| stat.size());
        Self { fd, known, modified, accessed, newer_bytes }
    }

    /// Does a record again, unless the inode is known to have it.
    fn again(&self, op: &Op<'_>) -> Result<bool, Errno> {
        match *op {
            Op::Data { offset, data, .. } => write_all(&self.fd, data, offset).map(|()| true),
            Op::Attributes { changed, set, .. } if changed >= self.known.inode => {
                // What was written since is not cut off.
                let size = set.size.filter(|_| changed >= self.known.bytes);
                self.set(&Attributes { size, ..set }).map(|()| true)
            }
            // Changes are in a proxy's log only, which is not taken for a server's.
            Op::Attributes { .. }
            | Op::Past { .. }
            | Op::Reply { .. }
            | Op::Change { .. }
            | Op::Done { .. } => Ok(false),
        }
    }

    fn set(&self, set: &Attributes) -> Result<(), Errno> {
        if let Some(size) = set.size {
            rustix::fs::ftruncate(&self.fd, size)?;
        }
        if set.uid.is_some() || set.gid.is_some() {
            let (uid, gid) = (set.uid.map(Uid::from_raw), set.gid.map(Gid::from_raw));
            rustix::fs::fchown(&self.fd, uid, gid)?;
        }
        match set.mode {
            Some(mode) => rustix::fs::fchmod(&self.fd, Mode::from_raw_mode(mode & 0o7777)),
            None => Ok(()),
        }
    }
}

fn finish(
    targets: &BTreeMap<Key, Target>,
    plan: &Plan,
    was_running: bool,
    syncer: &Syncer,
) -> Result<(), Stop> {
    for (&key, Target { fd, modified, accessed, .. }) in targets {
        let stop = |errno| Stop::File { key, errno };
        let needed = plan.files.get(&key).copied().unwrap_or_default();
        if !was_running && needed.records > 0 {
            if needed.bytes > 0 {
                // As the WRITEs had done.
                let _ = rustix::fs::fremovexattr(fd, "security.capability");
            }
            let of =
                |time: &Stamp| Timespec { tv_sec: time.seconds, tv_nsec: i64::from(time.nanos) };
            let keep = Timespec { tv_sec: 0, tv_nsec: rustix::fs::UTIME_OMIT };
            let last_access = accessed.as_ref().map_or(keep, of);
            let times = Timestamps { last_access, last_modification: of(modified) };
            rustix::fs::futimens(fd, &times).map_err(stop)?;
        }
        let unsynced = |errno| Stop::Unsynced { key, errno };
        syncer.call(fd.as_fd(), Need::File).map_err(unsynced)?;
    }
    Ok(())
}

fn write_all(fd: &OwnedFd, data: &[u8], offset: u64) -> Result<(), Errno> {
    let mut written = 0;
    while written < data.len() {
        match rustix::io::pwrite(fd, &data[written..], offset + written as u64) {
            Ok(0) => return Err(Errno::IO),
            Ok(count) => written += count,
            Err(Errno::INTR) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Of what is to be done again, the last: the power went after it.
fn newest(plan: &Plan) -> Option<Stamp> {
    plan.files.values().map(|needed| needed.changed).max()
}

fn replays_names(root: &OwnedFd) -> bool {
    FileSystem::of(root.as_fd()).is_ok_and(|system| system.replays_names())
}

/// When this boot of the machine began, by the clock as it is now.
fn boot_began() -> Stamp {
    let up = clock_gettime(ClockId::Boottime);
    Stamp { seconds: now().seconds.saturating_sub(up.tv_sec), nanos: 0 }
}
