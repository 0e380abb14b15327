//! Files that are being made: what is set of one between its CREATE and the first close or fsync of
//! its maker goes to the server in one SETATTR.
//!
//! An exclusive CREATE sets nothing, and programs that unpack or copy a file give it times, an
//! owner and a mode before they close it: four SETATTRs that one can do. So what a system call has
//! set is kept here where nobody can tell:
//!
//! - The server would do it: the file belongs to who asks, as the server has told, and an owner may
//!   set times and mode; only root gives files away, and is root there if the file that it has made
//!   is root's. Set-id bits, times that are the server's, and sizes are set at once.
//! - An error can be told: the file is open by its maker. Whatever the server says against all
//!   expectation (a quota, a disk) is told by that close or fsync, as errors of WRITEs are.
//! - The file is never open to more callers than it was to be at any time: the rights that the
//!   server gives until then are a part of those that are wanted.
//! - Nobody here sees a difference: attributes are shown as they will be, and whatever depends on
//!   them (an open, an access(2), another name) waits until they are set.
//!
//! Other clients see what is set at the close, with the data. Bounded: a file that is not closed
//! within [`MAKING_MAX`] is like others from then on.

use std::collections::HashMap;
use std::pin::pin;

use perf::units::{Instant, Nanos};
use wire::nfs3::{Fattr3, FileHandle, NfsTime, Sattr3, SetTime};

use super::{Files, Found};
use crate::session::Credential;

/// How long what a program has set may wait for the close: as long as what it writes.
const MAKING_MAX: Nanos = Nanos::from_millis(100);

/// How often it is looked which files have waited so long.
const LOOK_EVERY: Nanos = Nanos::from_millis(50);

/// Rights that have effects beyond their bits: an owner that is set takes them away.
const SETID: u32 = 0o7000;
const OWNER_RIGHTS: u32 = 0o700;
const GROUP_RIGHTS: u32 = 0o070;

/// See the module's head. Bounded by the files that are open.
#[derive(Debug, Default)]
pub(super) struct Making {
    files: HashMap<FileHandle, Made>,
    /// A task looks for those that have waited too long.
    is_looked_after: bool,
}

#[derive(Debug)]
struct Made {
    who: Credential,
    /// What the server does not know yet.
    new: Sattr3,
    since: Instant,
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
    pub(super) fn shown(&self, file: &FileHandle, told: Fattr3) -> Fattr3 {
        let Some(Made { new, .. }) = self.files.get(file) else { return told };
        // Until they are set the times are the verifier of the CREATE.
        let time = |new, told: NfsTime, ctime| match new {
            SetTime::ClientTime(time) => time,
            SetTime::ServerTime => ctime,
            SetTime::DontChange => told,
        };
        Fattr3 {
            mode: new.mode.unwrap_or(told.mode),
            uid: new.uid.unwrap_or(told.uid),
            gid: new.gid.unwrap_or(told.gid),
            atime: time(new.atime, told.atime, told.ctime),
            mtime: time(new.mtime, told.mtime, told.ctime),
            ..told
        }
    }

    fn is_open(&self, file: &FileHandle, who: &Credential) -> bool {
        self.files.get(file).is_some_and(|made| !made.is_sending && made.who == *who)
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

/// Whether the server will do as it is asked, and until then gives nobody more than is wanted.
fn can_wait(who: &Credential, told: &Fattr3, new: &Sattr3) -> bool {
    let is_owner = told.uid == who.uid;
    let is_root = is_owner && who.uid == 0;
    let gives_away =
        new.uid.is_some_and(|uid| uid != told.uid) || new.gid.is_some_and(|gid| gid != told.gid);
    // Its owner's own rights are those of who asks.
    let takes_nothing =
        new.mode.is_none_or(|mode| told.mode & !mode & !OWNER_RIGHTS == 0 && mode & SETID == 0);
    is_owner
        && takes_nothing
        && told.mode & SETID == 0
        && (!gives_away || is_root && told.mode & GROUP_RIGHTS == 0)
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
        let Some(told) = state.attributes.good(&file, now) else { return false };
        // An exclusive CREATE keeps its verifier in the times, and the time of change is its own.
        let time = SetTime::ClientTime(told.ctime);
        let size = new.size.filter(|size| *size != told.size);
        let new = Sattr3 { size, atime: time, mtime: time, ..*new };
        if self.inner.options.sync || !can_wait(who, &told, &new) {
            return false;
        }
        let made = Made { who: who.clone(), new, since: now, is_sending: false };
        state.making.files.insert(file, made);
        let starts = !std::mem::replace(&mut state.making.is_looked_after, true);
        drop(state);
        if starts {
            self.inner.clock.spawn(look_after(self.clone()));
        }
        true
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
        if !state.making.is_open(file, who) {
            return None;
        }
        let told = state.attributes.good(file, now)?;
        if !can_wait(who, &told, new) {
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
    /// has it open is told.
    pub(super) async fn finish_making(&self, file: FileHandle) {
        loop {
            let mut settled = pin!(self.inner.settled.notified());
            settled.as_mut().enable();
            let next = self.inner.state.lock().making.next(&file);
            match next {
                Next::Nothing => return,
                Next::Wait => settled.await,
                Next::Send(who, new) => {
                    let mut sending = Sending { files: self, file, is_done: false };
                    let done = self.set(&self.acting(&who), file, new).await;
                    sending.is_done = true;
                    drop(sending);
                    if let Err(error) = done {
                        self.inner.write_behind.fail(file, error);
                    }
                    return;
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
                !made.is_sending && now.since(made.since) >= MAKING_MAX
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
        let making = &mut self.files.inner.state.lock().making.files;
        match self.is_done {
            true => drop(making.remove(&self.file)),
            false => drop(making.get_mut(&self.file).map(|made| made.is_sending = false)),
        }
        self.files.inner.settled.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::{FType, Specdata};

    use super::*;

    fn of(uid: u32) -> Credential {
        Credential { machine_name: "a".to_owned(), uid, gid: uid, gids: Vec::new() }
    }

    fn told(uid: u32, mode: u32) -> Fattr3 {
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
        assert!(can_wait(&of(7), &told(7, 0), &times));
        assert!(!can_wait(&of(8), &told(7, 0), &times), "another's file");
        assert!(!can_wait(&of(0), &told(65534, 0), &times), "root is nobody there");
        let now = Sattr3 { mtime: SetTime::ServerTime, ..nothing };
        assert!(!can_wait(&of(7), &told(7, 0), &now), "the time of later");
        assert!(!can_wait(&of(7), &told(7, 0), &Sattr3 { size: Some(0), ..nothing }));
        assert!(can_wait(&of(7), &told(7, 0o600), &mode(0o644)));
        assert!(!can_wait(&of(7), &told(7, 0o644), &mode(0o600)), "others might read it");
        assert!(can_wait(&of(7), &told(7, 0o600), &mode(0)), "nobody but its owner might");
        assert!(!can_wait(&of(7), &told(7, 0), &mode(0o4755)), "an owner would take the bit");
        let owner = Sattr3 { uid: Some(8), gid: Some(8), ..nothing };
        assert!(can_wait(&of(0), &told(0, 0o600), &owner));
        assert!(!can_wait(&of(0), &told(0, 0o640), &owner), "a group might read it");
        assert!(!can_wait(&of(7), &told(7, 0), &owner), "only root gives files away");
        assert!(!can_wait(&of(7), &told(7, 0), &Sattr3 { gid: Some(8), ..nothing }));
        assert!(can_wait(&of(7), &told(7, 0), &Sattr3 { uid: Some(7), gid: Some(7), ..nothing }));
    }

    #[test]
    fn what_is_set_later_is_shown_at_once() {
        let file = FileHandle::new(&[1]).unwrap();
        let mut making = Making::default();
        let new = Sattr3 { mtime: SetTime::ServerTime, ..Sattr3::of_mode(0o644) };
        let made = Made { who: of(0), new, since: Instant::EPOCH, is_sending: false };
        making.files.insert(file, made);
        making.join(&file, &Sattr3 { uid: Some(8), ..Sattr3::default() });
        let verifier = NfsTime { seconds: 77, nseconds: 0 };
        let told = Fattr3 { mtime: verifier, ..told(0, 0) };
        let shown = Fattr3 { mode: 0o644, uid: 8, mtime: told.ctime, ..told };
        assert_eq!(making.shown(&file, told), shown);
        let time = NfsTime { seconds: 9, nseconds: 0 };
        making.join(&file, &Sattr3 { mtime: SetTime::ClientTime(time), ..Sattr3::of_mode(0o600) });
        assert_eq!(making.shown(&file, told), Fattr3 { mode: 0o600, mtime: time, ..shown });
    }
}
