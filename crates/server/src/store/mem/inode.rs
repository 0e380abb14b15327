//! One file: its attributes and what it holds.

use bytes::Bytes;

use crate::types::{Attr, Caller, FileKind, SetAttr, SetTime, Special, Status, Time};

use super::chunks::Chunks;
use super::directory::Directory;
use super::permission::{self, SET_GID, SET_UID};

/// Largest offset of a byte past the end: offsets are signed in the interfaces of most clients.
pub(super) const FILE_SIZE_MAX: u64 = i64::MAX.cast_unsigned();

#[derive(Clone, Debug)]
pub(super) struct Inode {
    /// Permission bits (07777).
    pub(super) mode: u32,
    pub(super) links: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) accessed: Time,
    pub(super) modified: Time,
    pub(super) changed: Time,
    pub(super) made: Time,
    /// Of the exclusive CREATE that made it.
    pub(super) create_verifier: Option<[u8; 8]>,
    pub(super) body: Body,
}

#[derive(Clone, Debug)]
pub(super) enum Body {
    Regular(Chunks),
    Directory(Directory),
    Symlink(Bytes),
    Special(Special),
}

/// Mode bits that let a group member execute.
const GROUP_EXECUTE: u32 = 0o010;

impl Inode {
    pub(super) fn kind(&self) -> FileKind {
        match &self.body {
            Body::Regular(_) => FileKind::Regular,
            Body::Directory(_) => FileKind::Directory,
            Body::Symlink(_) => FileKind::Symlink,
            Body::Special(Special::BlockDevice { .. }) => FileKind::BlockDevice,
            Body::Special(Special::CharDevice { .. }) => FileKind::CharDevice,
            Body::Special(Special::Fifo) => FileKind::Fifo,
            Body::Special(Special::Socket) => FileKind::Socket,
        }
    }

    pub(super) fn attr(&self, fsid: u64, fileid: u64) -> Attr {
        let device = match self.body {
            Body::Special(
                Special::BlockDevice { major, minor } | Special::CharDevice { major, minor },
            ) => (major, minor),
            _ => (0, 0),
        };
        Attr {
            kind: self.kind(),
            mode: self.mode,
            links: self.links,
            uid: self.uid,
            gid: self.gid,
            size: self.size(),
            used: self.used(),
            device,
            fsid,
            fileid,
            accessed: self.accessed,
            modified: self.modified,
            changed: self.changed,
            made: Some(self.made),
        }
    }

    fn size(&self) -> u64 {
        match &self.body {
            Body::Regular(chunks) => chunks.size(),
            _ => self.used(),
        }
    }

    /// Bytes it counts against the store's.
    pub(super) fn used(&self) -> u64 {
        match &self.body {
            Body::Regular(chunks) => chunks.used(),
            Body::Directory(directory) => directory.used(),
            Body::Symlink(target) => target.len() as u64,
            Body::Special(_) => 0,
        }
    }

    pub(super) fn directory(&self) -> Result<&Directory, Status> {
        match &self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Status::NotDirectory),
        }
    }

    pub(super) fn directory_mut(&mut self) -> Result<&mut Directory, Status> {
        match &mut self.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(Status::NotDirectory),
        }
    }

    pub(super) fn regular(&self) -> Result<&Chunks, Status> {
        match &self.body {
            Body::Regular(chunks) => Ok(chunks),
            Body::Directory(_) => Err(Status::IsDirectory),
            _ => Err(Status::Invalid),
        }
    }

    pub(super) fn regular_mut(&mut self) -> Result<&mut Chunks, Status> {
        match &mut self.body {
            Body::Regular(chunks) => Ok(chunks),
            Body::Directory(_) => Err(Status::IsDirectory),
            _ => Err(Status::Invalid),
        }
    }

    /// Contents have changed: both times move on, so that clients notice.
    pub(super) fn touch_contents(&mut self, now: Time) {
        self.modified = later(now, self.modified);
        self.touch_attributes(now);
    }

    /// Attributes have changed.
    pub(super) fn touch_attributes(&mut self, now: Time) {
        self.changed = later(now, self.changed);
    }

    /// The privileges of a program end when someone else than root changes its contents.
    pub(super) fn drop_privileges(&mut self, caller: &Caller) {
        if !permission::is_root(caller) {
            self.clear_set_id();
        }
    }

    fn clear_set_id(&mut self) {
        if self.kind() == FileKind::Regular {
            self.mode &= !SET_UID;
            if self.mode & GROUP_EXECUTE != 0 {
                self.mode &= !SET_GID;
            }
        }
    }

    /// Whether the caller may make all of `changes`.
    pub(super) fn check_changes(&self, caller: &Caller, changes: &SetAttr) -> Result<(), Status> {
        let owner = permission::is_owner(self, caller);
        let exact = |set: SetTime| matches!(set, SetTime::To(_));
        let needs_owner = changes.mode.is_some()
            || changes.uid.is_some()
            || changes.gid.is_some()
            || exact(changes.accessed)
            || exact(changes.modified);
        if needs_owner && !owner {
            return Err(Status::NotOwner);
        }
        self.check_new_owner(caller, changes)?;
        let touches = [changes.accessed, changes.modified].contains(&SetTime::ToServer);
        if touches && !owner {
            permission::check(self, caller, permission::WRITE)?;
        }
        match changes.size {
            Some(size) => self.check_new_size(caller, size),
            None => Ok(()),
        }
    }

    /// Only root gives files away; an owner may choose among its own groups.
    fn check_new_owner(&self, caller: &Caller, changes: &SetAttr) -> Result<(), Status> {
        let foreign_uid = changes.uid.is_some_and(|uid| uid != self.uid);
        let foreign_gid = changes.gid.is_some_and(|gid| gid != self.gid && !caller.is_member(gid));
        match (foreign_uid || foreign_gid) && !permission::is_root(caller) {
            true => Err(Status::NotOwner),
            false => Ok(()),
        }
    }

    pub(super) fn check_new_size(&self, caller: &Caller, size: u64) -> Result<(), Status> {
        self.regular()?;
        permission::check_write(self, caller)?;
        match size > FILE_SIZE_MAX {
            true => Err(Status::TooLarge),
            false => Ok(()),
        }
    }

    /// Makes changes that [`Self::check_changes`] has allowed. Bytes are given back by the tree.
    pub(super) fn change(&mut self, caller: &Caller, changes: &SetAttr, now: Time) {
        if let Some(size) = changes.size
            && let Body::Regular(chunks) = &mut self.body
        {
            chunks.set_size(size);
            self.drop_privileges(caller);
            self.touch_contents(now);
        }
        if changes.uid.is_some() || changes.gid.is_some() {
            self.uid = changes.uid.unwrap_or(self.uid);
            self.gid = changes.gid.unwrap_or(self.gid);
            self.clear_set_id();
        }
        if let Some(mode) = changes.mode {
            self.mode = mode & 0o7777;
            if !permission::is_root(caller) && !caller.is_member(self.gid) {
                self.mode &= !SET_GID;
            }
        }
        set_time(&mut self.accessed, changes.accessed, now);
        set_time(&mut self.modified, changes.modified, now);
        if *changes != SetAttr::default() {
            self.touch_attributes(now);
        }
    }
}

fn set_time(time: &mut Time, set: SetTime, now: Time) {
    match set {
        SetTime::Keep => {}
        SetTime::ToServer => *time = now,
        SetTime::To(given) => *time = given,
    }
}

/// `now`, but after `before` even when the clock is coarse or goes back: a client that sees the
/// same time thinks that nothing has changed.
fn later(now: Time, before: Time) -> Time {
    let next = match before.nanos {
        999_999_999.. => Time { secs: before.secs.saturating_add(1), nanos: 0 },
        nanos => Time { secs: before.secs, nanos: nanos + 1 },
    };
    now.max(next)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::store::mem::directory::FileId;

    const START: Time = Time { secs: 100, nanos: 0 };

    fn inode(mode: u32, uid: u32, gid: u32, body: Body) -> Inode {
        Inode {
            mode,
            links: 1,
            uid,
            gid,
            accessed: START,
            modified: START,
            changed: START,
            made: START,
            create_verifier: None,
            body,
        }
    }

    pub(in crate::store::mem) fn file(mode: u32, uid: u32, gid: u32) -> Inode {
        inode(mode, uid, gid, Body::Regular(Chunks::default()))
    }

    pub(in crate::store::mem) fn directory(mode: u32, uid: u32, gid: u32) -> Inode {
        let body = Body::Directory(Directory::new(FileId(1)));
        inode(mode, uid, gid, body)
    }

    fn caller(uid: u32, gid: u32) -> Caller {
        let gids = vec![7];
        Caller { uid, gid, gids }
    }

    fn mode(mode: u32) -> SetAttr {
        SetAttr { mode: Some(mode), ..SetAttr::default() }
    }

    #[test]
    fn times_always_move_on() {
        let mut inode = file(0o644, 1, 1);
        inode.touch_contents(START);
        assert_eq!(inode.modified, Time { secs: 100, nanos: 1 });
        assert_eq!(inode.changed, Time { secs: 100, nanos: 1 });
        inode.touch_attributes(Time { secs: 5, nanos: 0 });
        assert_eq!(inode.changed, Time { secs: 100, nanos: 2 });
        let end_of_second = Time { secs: 1, nanos: 999_999_999 };
        let second = Time { secs: 2, nanos: 0 };
        assert_eq!(later(START, end_of_second), START);
        assert_eq!(later(Time::default(), end_of_second), second);
    }

    #[test]
    fn only_owners_change_modes_and_times() {
        let inode = file(0o666, 10, 20);
        let denied = Err(Status::NotOwner);
        let exact = SetAttr { modified: SetTime::To(START), ..SetAttr::default() };
        for changes in [mode(0), exact] {
            assert_eq!(inode.check_changes(&caller(11, 20), &changes), denied);
            assert_eq!(inode.check_changes(&caller(10, 9), &changes), Ok(()));
            assert_eq!(inode.check_changes(&caller(0, 0), &changes), Ok(()));
        }
    }

    #[test]
    fn touching_and_cutting_need_only_the_right_to_write() {
        let touch = SetAttr { accessed: SetTime::ToServer, ..SetAttr::default() };
        let cut = SetAttr { size: Some(0), ..SetAttr::default() };
        for changes in [touch, cut] {
            let who = caller(11, 20);
            assert_eq!(file(0o666, 10, 20).check_changes(&who, &changes), Ok(()));
            let closed = file(0o644, 10, 20).check_changes(&who, &changes);
            assert_eq!(closed, Err(Status::Access));
        }
        let error = directory(0o777, 1, 1).check_changes(&caller(1, 1), &cut);
        assert_eq!(error, Err(Status::IsDirectory));
    }

    #[test]
    fn files_are_given_away_by_root_alone() {
        let inode = file(0o644, 10, 20);
        let give = |uid, gid| SetAttr { uid, gid, ..SetAttr::default() };
        let check = |who, changes| inode.check_changes(&caller(who, 20), &changes);
        assert_eq!(check(10, give(Some(11), None)), Err(Status::NotOwner));
        assert_eq!(check(10, give(None, Some(8))), Err(Status::NotOwner));
        assert_eq!(check(10, give(Some(10), Some(7))), Ok(()));
        assert_eq!(check(0, give(Some(11), Some(8))), Ok(()));
    }

    #[test]
    fn privileges_end_with_a_change_by_someone_else() {
        let mut program = file(0o6755, 10, 20);
        program.drop_privileges(&caller(0, 0));
        assert_eq!(program.mode, 0o6755);
        program.drop_privileges(&caller(10, 20));
        assert_eq!(program.mode, 0o755);
        let mut given = file(0o6755, 10, 20);
        let away = SetAttr { uid: Some(11), ..SetAttr::default() };
        given.change(&caller(0, 0), &away, START);
        assert_eq!((given.uid, given.mode), (11, 0o755));
        let mut foreign = file(0o644, 10, 99);
        foreign.change(&caller(10, 20), &mode(0o2755), START);
        assert_eq!(foreign.mode, 0o755);
    }
}
