//! Files that are being made: what is set of one between its CREATE and the first close or fsync of
//! its maker goes to the server in one SETATTR.
//!
//! An exclusive CREATE sets nothing, and programs that unpack or copy a file give it times, an
//! owner and a mode before they close it: four SETATTRs that one can do. So what a system call has
//! set is held here where nobody can tell:
//!
//! - The server would do it: the file belongs to who asks, as replies have it, and an owner may
//!   set times and mode; only root gives files away, and is root there if the file that it has made
//!   is root's. Set-id bits, times that are the server's, and sizes are set at once.
//! - An error can be reported: the file is open by its maker. Whatever the server says against all
//!   expectation (a quota, a disk) is reported by that close or fsync, as errors of WRITEs are.
//! - The file is never open to more callers than it was to be at any time: the rights that the
//!   server gives until then are a part of those that are wanted.
//! - Nobody here sees a difference: attributes are shown as they will be, and whatever depends on
//!   them (an open, an access(2), another name) waits until they are set.
//!
//! Other clients see what is set at the close, with the data. Bounded: a file that is not closed
//! within [`MAKING_MAX`] is like others from then on.
//!
//! **Directories** are not open while programs set what they are to be: first the times, then owner
//! and mode. So the times of one that this client has made wait for what is set next, which tells
//! of an error, [`DIR_TIMES_MAX`] at the most. Whatever changes the directory waits until they are
//! set.

use std::collections::HashMap;
use std::pin::pin;

use perf::units::{Instant, Nanos};
use wire::nfs3::{FType, Fattr3, FileHandle, NfsStat3, NfsTime, Sattr3, SetTime};

use super::{Files, Found, State};
use crate::error::Error;
use crate::session::Credential;

/// How long what a program has set may wait for the close: as long as what it writes.
const MAKING_MAX: Nanos = Nanos::from_millis(100);

/// How long the times of a directory wait for what is set next (guess: programs set it at once).
const DIR_TIMES_MAX: Nanos = Nanos::from_millis(20);

/// Directories whose times may wait at a time (guess).
const DIRS_MAX: usize = 256;

/// How often it is looked which files have waited so long.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

/// Rights that have effects beyond their bits: an owner that is set takes them away.
const SETID: u32 = 0o7000;
const OWNER_RIGHTS: u32 = 0o700;
const GROUP_RIGHTS: u32 = 0o070;

/// See the module's head. Bounded by the files that are open, and [`DIRS_MAX`].
#[derive(Debug, Default)]
pub(super) struct Making {
    files: HashMap<FileHandle, Made>,
    /// How many of them are directories.
    dirs: usize,
    /// A task looks for those that have waited too long.
    is_looked_after: bool,
}

#[derive(Debug)]
struct Made {
    who: Credential,
    /// What the server does not know yet.
    new: Sattr3,
    since: Instant,
    is_dir: bool,
    is_sending: bool,
}

/// What there is to do for a file.
enum Next {
    Nothing,
    /// Somebody else sends it.
    Wait,
    Send(Credential, Sattr3),
}

impl Making {
    fn next(&mut self, file: &FileHandle) -> Next {
        match self.files.get_mut(file) {
            None => Next::Nothing,
            Some(made) if made.is_sending => Next::Wait,
            Some(made) => {
                made.is_sending = true;
                Next::Send(made.who.clone(), made.new)
            }
        }
    }

    /// The attributes as they will be.
    pub(super) fn shown(&self, file: &FileHandle, known: Fattr3) -> Fattr3 {
        let Some(Made { new, .. }) = self.files.get(file) else { return known };
        // Until they are set the times are the verifier of the CREATE.
        let time = |new, known: NfsTime, ctime| match new {
            SetTime::ClientTime(time) => time,
            SetTime::ServerTime => ctime,
            SetTime::DontChange => known,
        };
        Fattr3 {
            mode: new.mode.unwrap_or(known.mode),
            uid: new.uid.unwrap_or(known.uid),
            gid: new.gid.unwrap_or(known.gid),
            atime: time(new.atime, known.atime, known.ctime),
            mtime: time(new.mtime, known.mtime, known.ctime),
            ..known
        }
    }

    /// Whether more can be set of it with what waits.
    fn waits(&self, file: &FileHandle, who: &Credential, is_dir: bool) -> bool {
        let made = self.files.get(file).filter(|made| made.is_dir == is_dir);
        made.is_some_and(|made| !made.is_sending && made.who == *who)
    }

    fn begin(&mut self, file: &FileHandle, made: Made) {
        self.dirs += usize::from(made.is_dir);
        self.files.insert(*file, made);
    }

    fn end(&mut self, file: &FileHandle) {
        let ended = self.files.remove(file);
        self.dirs -= usize::from(ended.is_some_and(|made| made.is_dir));
    }

    /// Sets more of a file.
    fn join(&mut self, file: &FileHandle, new: &Sattr3) {
        let Some(made) = self.files.get_mut(file) else { return };
        let newer = |time, older| if time == SetTime::DontChange { older } else { time };
        made.new = Sattr3 {
            mode: new.mode.or(made.new.mode),
            uid: new.uid.or(made.new.uid),
            gid: new.gid.or(made.new.gid),
            size: None,
            atime: newer(new.atime, made.new.atime),
            mtime: newer(new.mtime, made.new.mtime),
        };
    }
}

/// Whether the server will do what is requested, and until then gives nobody more than is wanted.
fn can_wait(who: &Credential, known: &Fattr3, new: &Sattr3) -> bool {
    let is_owner = known.uid == who.uid;
    let is_root = is_owner && who.uid == 0;
    let gives_away =
        new.uid.is_some_and(|uid| uid != known.uid) || new.gid.is_some_and(|gid| gid != known.gid);
    // Its owner's own rights are those of who asks.
    let takes_nothing =
        new.mode.is_none_or(|mode| known.mode & !mode & !OWNER_RIGHTS == 0 && mode & SETID == 0);
    is_owner
        && takes_nothing
        && known.mode & SETID == 0
        && (!gives_away || is_root && known.mode & GROUP_RIGHTS == 0)
        && new.size.is_none()
        && new.atime != SetTime::ServerTime
        && new.mtime != SetTime::ServerTime
}

impl Files {
    /// A file that a CREATE has just made, and that its maker has open, is to have these
    /// attributes. False where they have to be set at once.
    pub(super) fn begins_with(&self, who: &Credential, made: &Found, new: &Sattr3) -> bool {
        let (file, now) = (made.handle, self.now());
        let mut state = self.inner.state.lock();
        let Some(known) = state.attributes.good(&file, now) else { return false };
        // An exclusive CREATE keeps its verifier in the times, and the time of change is its own.
        let time = SetTime::ClientTime(known.ctime);
        let size = new.size.filter(|size| *size != known.size);
        let new = Sattr3 { size, atime: time, mtime: time, ..*new };
        if self.inner.options.sync || !can_wait(who, &known, &new) {
            return false;
        }
        let made = Made { who: who.clone(), new, since: now, is_dir: false, is_sending: false };
        state.making.begin(&file, made);
        self.look_after_making(&mut state);
        true
    }

    fn look_after_making(&self, state: &mut State) {
        if !std::mem::replace(&mut state.making.is_looked_after, true) {
            self.inner.clock.spawn(look_after(self.clone()));
        }
    }

    /// The times of a directory that we have made wait for what is set of it next. None where they
    /// have to be set at once.
    pub(super) fn times_wait(
        &self,
        who: &Credential,
        dir: &FileHandle,
        new: &Sattr3,
    ) -> Option<Found> {
        let now = self.now();
        let mut state = self.inner.state.lock();
        let known = state.attributes.good(dir, now)?;
        let version = state.attributes.sure_version(dir)?;
        let is_ours = known.ftype == FType::Dir && state.names.is_whole(dir, version);
        let times = Sattr3 { atime: new.atime, mtime: new.mtime, ..Sattr3::default() };
        if self.inner.options.sync || !is_ours || times != *new || !can_wait(who, &known, new) {
            return None;
        }
        match state.making.waits(dir, who, true) {
            true => state.making.join(dir, new),
            false if state.making.dirs == DIRS_MAX || state.making.files.contains_key(dir) => {
                return None;
            }
            false => {
                let (who, new) = (who.clone(), *new);
                let made = Made { who, new, since: now, is_dir: true, is_sending: false };
                state.making.begin(dir, made);
                self.look_after_making(&mut state);
            }
        }
        drop(state);
        self.found(dir)
    }

    /// Sets more of a directory whose times wait, and these with it. None where nothing waits, or
    /// the server may refuse it.
    pub(super) async fn set_with_times(
        &self,
        who: &Credential,
        dir: FileHandle,
        new: &Sattr3,
    ) -> Option<Result<Found, Error>> {
        {
            let now = self.now();
            let mut state = self.inner.state.lock();
            let known = state.attributes.good(&dir, now)?;
            if !state.making.waits(&dir, who, true) || !can_wait(who, &known, new) {
                return None;
            }
            state.making.join(&dir, new);
        }
        self.send_made(dir).await
    }

    /// Sets attributes of a file that is being made, later. None where that has to be done at once.
    pub(super) fn set_later(
        &self,
        who: &Credential,
        file: &FileHandle,
        new: &Sattr3,
    ) -> Option<Found> {
        let now = self.now();
        let mut state = self.inner.state.lock();
        if !state.making.waits(file, who, false) {
            return None;
        }
        let known = state.attributes.good(file, now)?;
        if !can_wait(who, &known, new) {
            return None;
        }
        state.making.join(file, new);
        drop(state);
        self.found(file)
    }

    /// Data come to a file: a time of before is not its own any more.
    pub(super) fn is_written(&self, file: &FileHandle) {
        let mut state = self.inner.state.lock();
        if let Some(made) = state.making.files.get_mut(file)
            && made.new.mtime != SetTime::DontChange
        {
            made.new.mtime = SetTime::ServerTime;
        }
    }

    /// What was set of a file while it was made is on the server, or has failed, of which whoever
    /// has it open gets the error.
    pub(super) async fn finish_making(&self, file: FileHandle) {
        let Some(Err(error)) = self.send_made(file).await else { return };
        // A directory may be gone by then.
        if error.status() != Some(NfsStat3::Stale) {
            self.inner.write_behind.fail(file, error);
        }
    }

    /// Sends what waits, if it does; what somebody else sends is waited for.
    async fn send_made(&self, file: FileHandle) -> Option<Result<Found, Error>> {
        loop {
            let mut settled = pin!(self.inner.settled.notified());
            settled.as_mut().enable();
            let next = self.inner.state.lock().making.next(&file);
            match next {
                Next::Nothing => return None,
                Next::Wait => settled.await,
                Next::Send(who, new) => {
                    let mut sending = Sending { files: self, file, is_done: false };
                    let done = self.set(&self.acting(&who), file, new).await;
                    sending.is_done = true;
                    drop(sending);
                    return Some(done);
                }
            }
        }
    }

    /// The same of all of them.
    pub(super) async fn finish_all_making(&self) {
        let files: Vec<FileHandle> = self.inner.state.lock().making.files.keys().copied().collect();
        for file in in_order(files) {
            self.finish_making(file).await;
        }
    }
}

/// The order of the table is another one in each run.
fn in_order(mut files: Vec<FileHandle>) -> Vec<FileHandle> {
    files.sort_unstable_by(|one, other| one.as_bytes().cmp(other.as_bytes()));
    files
}

/// Finishes what has waited long enough, until nothing waits.
async fn look_after(files: Files) {
    loop {
        files.inner.clock.sleep(LOOK_EVERY).await;
        let now = files.now();
        let due: Vec<FileHandle> = {
            let mut state = files.inner.state.lock();
            if state.making.files.is_empty() {
                state.making.is_looked_after = false;
                return;
            }
            let is_due = |(_, made): &(&FileHandle, &Made)| {
                let most = if made.is_dir { DIR_TIMES_MAX } else { MAKING_MAX };
                !made.is_sending && now.since(made.since) >= most
            };
            state.making.files.iter().filter(is_due).map(|(file, _)| *file).collect()
        };
        for file in in_order(due) {
            let files = files.clone();
            files.inner.clock.clone().spawn(async move { files.finish_making(file).await });
        }
    }
}

/// A SETATTR that is under way; who is dropped before it is answered leaves the rest to others.
struct Sending<'a> {
    files: &'a Files,
    file: FileHandle,
    is_done: bool,
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        let making = &mut self.files.inner.state.lock().making;
        match self.is_done {
            true => making.end(&self.file),
            false => drop(making.files.get_mut(&self.file).map(|made| made.is_sending = false)),
        }
        self.files.inner.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::Specdata;

    use super::*;

    fn of(uid: u32) -> Credential {
        Credential { machine_name: "a".to_owned(), uid, gid: uid, gids: Vec::new() }
    }

    fn known(uid: u32, mode: u32) -> Fattr3 {
        let time = NfsTime { seconds: 5, nseconds: 0 };
        Fattr3 {
            ftype: FType::Reg,
            mode,
            nlink: 1,
            uid,
            gid: uid,
            size: 0,
            used: 0,
            rdev: Specdata::default(),
            fsid: 0,
            fileid: 1,
            atime: time,
            mtime: time,
            ctime: time,
        }
    }

    #[test]
    fn only_what_the_server_will_do_waits() {
        let (mode, nothing) = (Sattr3::of_mode, Sattr3::default());
        let at = SetTime::ClientTime(NfsTime { seconds: 1, nseconds: 0 });
        let times = Sattr3 { atime: at, mtime: at, ..nothing };
        assert!(can_wait(&of(7), &known(7, 0), &times));
        assert!(!can_wait(&of(8), &known(7, 0), &times), "another's file");
        assert!(!can_wait(&of(0), &known(65534, 0), &times), "root is nobody there");
        let now = Sattr3 { mtime: SetTime::ServerTime, ..nothing };
        assert!(!can_wait(&of(7), &known(7, 0), &now), "the time of later");
        assert!(!can_wait(&of(7), &known(7, 0), &Sattr3 { size: Some(0), ..nothing }));
        assert!(can_wait(&of(7), &known(7, 0o600), &mode(0o644)));
        assert!(!can_wait(&of(7), &known(7, 0o644), &mode(0o600)), "others might read it");
        assert!(can_wait(&of(7), &known(7, 0o600), &mode(0)), "nobody but its owner might");
        assert!(!can_wait(&of(7), &known(7, 0), &mode(0o4755)), "an owner would take the bit");
        let owner = Sattr3 { uid: Some(8), gid: Some(8), ..nothing };
        assert!(can_wait(&of(0), &known(0, 0o600), &owner));
        assert!(!can_wait(&of(0), &known(0, 0o640), &owner), "a group might read it");
        assert!(!can_wait(&of(7), &known(7, 0), &owner), "only root gives files away");
        assert!(!can_wait(&of(7), &known(7, 0), &Sattr3 { gid: Some(8), ..nothing }));
        assert!(can_wait(&of(7), &known(7, 0), &Sattr3 { uid: Some(7), gid: Some(7), ..nothing }));
    }

    #[test]
    fn what_is_set_later_is_shown_at_once() {
        let file = FileHandle::new(&[1]).unwrap();
        let mut making = Making::default();
        let new = Sattr3 { mtime: SetTime::ServerTime, ..Sattr3::of_mode(0o644) };
        let (since, is_dir, is_sending) = (Instant::EPOCH, false, false);
        let made = Made { who: of(0), new, since, is_dir, is_sending };
        making.files.insert(file, made);
        making.join(&file, &Sattr3 { uid: Some(8), ..Sattr3::default() });
        let verifier = NfsTime { seconds: 77, nseconds: 0 };
        let known = Fattr3 { mtime: verifier, ..known(0, 0) };
        let shown = Fattr3 { mode: 0o644, uid: 8, mtime: known.ctime, ..known };
        assert_eq!(making.shown(&file, known), shown);
        let time = NfsTime { seconds: 9, nseconds: 0 };
        making.join(&file, &Sattr3 { mtime: SetTime::ClientTime(time), ..Sattr3::of_mode(0o600) });
        assert_eq!(making.shown(&file, known), Fattr3 { mode: 0o600, mtime: time, ..shown });
    }
}
