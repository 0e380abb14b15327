//! Operations on names: making, removing, renaming, linking, listing.
//!
//! Each checks everything first and changes nothing unless it can change all of it.

use crate::store::{Entry, ListFrom, Listed, Node, Sink};
use crate::types::{
    Caller, CreateHow, DIRECTORY_MODE_UNSTATED, FileKind, MODE_UNSTATED, SetAttr, Status, Time,
};

use super::chunks::Chunks;
use super::directory::Directory;
use super::directory::FileId;
use super::inode::{Body, Inode};
use super::inodes::{Inodes, ROOT};
use super::permission::{self, EXECUTE, READ, SET_GID, WRITE};

/// Most names of a file, and subdirectories of a directory: as many as ext4 has.
pub(super) const LINKS_MAX: u32 = 65_000;

/// Cookies of the two entries that are not stored.
const COOKIE_DOT: u64 = 1;
const COOKIE_DOT_DOT: u64 = 2;

const SYMLINK_MODE: u32 = 0o777;

/// A file to be made.
pub(super) struct New {
    pub(super) body: Body,
    pub(super) attrs: SetAttr,
    pub(super) create_verifier: Option<[u8; 8]>,
}

/// A name in a directory.
#[derive(Clone, Copy)]
pub(super) struct Spot<'n> {
    pub(super) dir: FileId,
    pub(super) name: &'n [u8],
}

impl Inodes {
    pub(super) fn node(&self, id: FileId) -> Result<Node, Status> {
        Ok(Node { handle: self.handle(id), attr: self.attr(id)? })
    }

    pub(super) fn lookup(&self, caller: &Caller, spot: Spot<'_>) -> Result<FileId, Status> {
        let inode = self.inode(spot.dir)?;
        let directory = inode.directory()?;
        permission::check(inode, caller, EXECUTE)?;
        match spot.name {
            b"." => Ok(spot.dir),
            b".." => Ok(directory.parent),
            name => directory.find(name).ok_or(Status::NoEntry),
        }
    }

    /// CREATE; what is there already may be what was requested.
    pub(super) fn create(
        &mut self,
        caller: &Caller,
        spot: Spot<'_>,
        how: CreateHow,
        now: Time,
    ) -> Result<FileId, Status> {
        match self.lookup(caller, spot) {
            Ok(existing) => self.take_existing(caller, existing, how, now),
            Err(Status::NoEntry) => {
                let (attrs, create_verifier) = match how {
                    CreateHow::Unchecked(attrs) | CreateHow::Guarded(attrs) => (attrs, None),
                    CreateHow::Exclusive(verifier) => (SetAttr::default(), Some(verifier)),
                };
                let body = Body::Regular(Chunks::default());
                let new = New { body, attrs, create_verifier };
                self.make(caller, spot, new, now)
            }
            Err(status) => Err(status),
        }
    }

    fn take_existing(
        &mut self,
        caller: &Caller,
        id: FileId,
        how: CreateHow,
        now: Time,
    ) -> Result<FileId, Status> {
        let inode = self.inode(id)?;
        inode.regular().map_err(|_| Status::Exists)?;
        match how {
            CreateHow::Unchecked(SetAttr { size: Some(size), .. }) => {
                inode.check_new_size(caller, size)?;
                let changes = SetAttr { size: Some(size), ..SetAttr::default() };
                self.with_mut(id, |inode| inode.change(caller, &changes, now))?;
                Ok(id)
            }
            CreateHow::Unchecked(_) => Ok(id),
            // Verifiers can be guessed: what somebody else has put there is not the caller's.
            CreateHow::Exclusive(verifier)
                if inode.create_verifier == Some(verifier) && inode.uid == caller.uid =>
            {
                Ok(id)
            }
            CreateHow::Guarded(_) | CreateHow::Exclusive(_) => Err(Status::Exists),
        }
    }

    /// Makes a file under a name that is free.
    pub(super) fn make(
        &mut self,
        caller: &Caller,
        spot: Spot<'_>,
        new: New,
        now: Time,
    ) -> Result<FileId, Status> {
        self.check_free(caller, spot)?;
        let dir = self.inode(spot.dir)?;
        let inode = dir.child(caller, new, now)?;
        let subdirectory = inode.kind() == FileKind::Directory;
        if subdirectory && dir.links >= LINKS_MAX {
            return Err(Status::TooManyLinks);
        }
        self.check_room(Directory::entry_cost(spot.name) + inode.used(), 1)?;
        let id = self.add(inode)?;
        self.enter(spot, id, now)?;
        if subdirectory {
            self.inode_mut(id)?.directory_mut()?.parent = spot.dir;
            self.inode_mut(spot.dir)?.links += 1;
        }
        Ok(id)
    }

    /// Checks that the caller may enter a name, and that it is free.
    fn check_free(&self, caller: &Caller, spot: Spot<'_>) -> Result<(), Status> {
        match self.lookup(caller, spot) {
            Ok(_) => Err(Status::Exists),
            Err(Status::NoEntry) => permission::check(self.inode(spot.dir)?, caller, WRITE),
            Err(status) => Err(status),
        }
    }

    fn enter(&mut self, spot: Spot<'_>, id: FileId, now: Time) -> Result<(), Status> {
        self.with_mut(spot.dir, |dir| {
            dir.directory_mut()?.insert(spot.name, id);
            dir.touch_contents(now);
            Ok(())
        })?
    }

    fn leave(&mut self, spot: Spot<'_>, now: Time) -> Result<(), Status> {
        self.with_mut(spot.dir, |dir| {
            dir.directory_mut()?.remove(spot.name);
            dir.touch_contents(now);
            Ok(())
        })?
    }

    pub(super) fn remove(
        &mut self,
        caller: &Caller,
        spot: Spot<'_>,
        now: Time,
    ) -> Result<(), Status> {
        let id = self.check_remove(caller, spot)?;
        if self.inode(id)?.kind() == FileKind::Directory {
            return Err(Status::IsDirectory);
        }
        self.leave(spot, now)?;
        self.unlink(id, now)
    }

    pub(super) fn remove_dir(
        &mut self,
        caller: &Caller,
        spot: Spot<'_>,
        now: Time,
    ) -> Result<(), Status> {
        let id = self.check_remove(caller, spot)?;
        if !self.inode(id)?.directory()?.is_empty() {
            return Err(Status::NotEmpty);
        }
        self.leave(spot, now)?;
        self.drop_directory(spot.dir, id)
    }

    fn check_remove(&self, caller: &Caller, spot: Spot<'_>) -> Result<FileId, Status> {
        let id = self.lookup(caller, spot)?;
        permission::check_remove(self.inode(spot.dir)?, self.inode(id)?, caller)?;
        Ok(id)
    }

    /// A name less; the last one takes the file with it.
    fn unlink(&mut self, id: FileId, now: Time) -> Result<(), Status> {
        let inode = self.inode_mut(id)?;
        inode.links -= 1;
        inode.touch_attributes(now);
        if inode.links == 0 {
            self.discard(id);
        }
        Ok(())
    }

    /// Lets an empty directory go whose name has been removed from `parent`.
    fn drop_directory(&mut self, parent: FileId, id: FileId) -> Result<(), Status> {
        self.discard(id);
        self.inode_mut(parent)?.links -= 1;
        Ok(())
    }

    pub(super) fn link(
        &mut self,
        caller: &Caller,
        id: FileId,
        spot: Spot<'_>,
        now: Time,
    ) -> Result<(), Status> {
        self.inode(spot.dir)?.directory()?;
        let inode = self.inode(id)?;
        if inode.kind() == FileKind::Directory {
            return Err(Status::IsDirectory);
        }
        if inode.links >= LINKS_MAX {
            return Err(Status::TooManyLinks);
        }
        self.check_free(caller, spot)?;
        self.check_room(Directory::entry_cost(spot.name), 0)?;
        self.enter(spot, id, now)?;
        let inode = self.inode_mut(id)?;
        inode.links += 1;
        inode.touch_attributes(now);
        Ok(())
    }

    /// RENAME as POSIX has it: an existing target is replaced if it is of the same sort and, when
    /// a directory, empty; two names of the same file are left alone.
    pub(super) fn rename(
        &mut self,
        caller: &Caller,
        from: Spot<'_>,
        to: Spot<'_>,
        now: Time,
    ) -> Result<(), Status> {
        self.inode(from.dir)?.directory()?;
        self.inode(to.dir)?.directory()?;
        let id = self.check_remove(caller, from)?;
        let target = match self.lookup(caller, to) {
            Ok(target) => Some(target),
            Err(Status::NoEntry) => None,
            Err(status) => return Err(status),
        };
        if target == Some(id) {
            return Ok(());
        }
        let directory = self.inode(id)?.kind() == FileKind::Directory;
        if directory {
            self.check_move(caller, id, from.dir, to.dir, target)?;
        }
        self.check_target(caller, directory, to, target)?;
        let (cost, freed) = (Directory::entry_cost(to.name), Directory::entry_cost(from.name));
        self.check_room(cost.saturating_sub(freed), 0)?;

        self.leave(from, now)?;
        match target {
            Some(target) if directory => self.drop_directory(to.dir, target)?,
            Some(target) => self.unlink(target, now)?,
            None => {}
        }
        self.enter(to, id, now)?;
        if directory {
            self.inode_mut(id)?.directory_mut()?.parent = to.dir;
            self.inode_mut(from.dir)?.links -= 1;
            self.inode_mut(to.dir)?.links += 1;
        }
        self.inode_mut(id)?.touch_attributes(now);
        Ok(())
    }

    /// Whether the new name may be taken.
    fn check_target(
        &self,
        caller: &Caller,
        directory: bool,
        to: Spot<'_>,
        target: Option<FileId>,
    ) -> Result<(), Status> {
        let Some(target) = target else {
            return permission::check(self.inode(to.dir)?, caller, WRITE | EXECUTE);
        };
        let inode = self.inode(target)?;
        permission::check_remove(self.inode(to.dir)?, inode, caller)?;
        match (directory, &inode.body) {
            (true, Body::Directory(entries)) if entries.is_empty() => Ok(()),
            (true, Body::Directory(_)) => Err(Status::NotEmpty),
            (true, _) => Err(Status::NotDirectory),
            (false, Body::Directory(_)) => Err(Status::IsDirectory),
            (false, _) => Ok(()),
        }
    }

    /// Whether a directory may get another parent: it must not come to lie within itself, and its
    /// `..` is rewritten, which takes the right to write it.
    fn check_move(
        &self,
        caller: &Caller,
        id: FileId,
        from: FileId,
        to: FileId,
        target: Option<FileId>,
    ) -> Result<(), Status> {
        if from == to {
            return Ok(());
        }
        permission::check(self.inode(id)?, caller, WRITE)?;
        let mut above = to;
        while above != ROOT {
            if above == id {
                return Err(Status::Invalid);
            }
            above = self.inode(above)?.directory()?.parent;
        }
        match target.is_none() && self.inode(to)?.links >= LINKS_MAX {
            true => Err(Status::TooManyLinks),
            false => Ok(()),
        }
    }

    pub(super) fn list(
        &self,
        caller: &Caller,
        dir: FileId,
        from: ListFrom,
        verifier: [u8; 8],
        sink: Sink<'_>,
    ) -> Result<Listed, Status> {
        let inode = self.inode(dir)?;
        let directory = inode.directory()?;
        permission::check(inode, caller, READ)?;
        // A handle is what LOOKUP gives, to those who may search.
        let may_search = permission::allows(inode, caller, EXECUTE);
        let continues = from.cookie != 0;
        if continues && (from.verifier != verifier || !directory.has_given_out(from.cookie)) {
            return Err(Status::BadCookie);
        }
        let dots: [(u64, &[u8], FileId); 2] =
            [(COOKIE_DOT, b".", dir), (COOKIE_DOT_DOT, b"..", directory.parent)];
        let dots = dots.into_iter().filter(|(cookie, ..)| *cookie > from.cookie);
        for (cookie, name, id) in dots.chain(directory.after(from.cookie.max(COOKIE_DOT_DOT))) {
            let has_node = from.with_nodes && (may_search || cookie == COOKIE_DOT);
            let node = has_node.then(|| self.node(id).ok()).flatten();
            let fileid = id.0;
            let entry = Entry { fileid, name, cookie, node };
            if !sink(entry) {
                let eof = false;
                return Ok(Listed { verifier, eof });
            }
        }
        let eof = true;
        Ok(Listed { verifier, eof })
    }
}

impl Inode {
    /// What `new` becomes in this directory.
    fn child(&self, caller: &Caller, new: New, now: Time) -> Result<Self, Status> {
        let attrs = new.attrs;
        let inherits = self.mode & SET_GID != 0;
        let (default_mode, inherited_mode) = match new.body {
            Body::Directory(_) if inherits => (DIRECTORY_MODE_UNSTATED, SET_GID),
            Body::Directory(_) => (DIRECTORY_MODE_UNSTATED, 0),
            Body::Symlink(_) => (SYMLINK_MODE, 0),
            Body::Regular(_) | Body::Special(_) => (MODE_UNSTATED, 0),
        };
        let links = match new.body {
            Body::Directory(_) => 2,
            _ => 1,
        };
        let mut child = Self {
            mode: default_mode,
            links,
            uid: caller.uid,
            gid: if inherits { self.gid } else { caller.gid },
            accessed: now,
            modified: now,
            changed: now,
            made: now,
            create_verifier: new.create_verifier,
            body: new.body,
        };
        let initial = initial(caller, &child, attrs);
        child.check_changes(caller, &initial)?;
        child.change(caller, &initial, now);
        child.changed = now; // being made is one change
        child.mode |= inherited_mode;
        Ok(child)
    }
}

/// The attributes a new file is given: a size only where there is one.
fn initial(caller: &Caller, child: &Inode, attrs: SetAttr) -> SetAttr {
    let attrs = attrs.of_new(caller);
    SetAttr {
        mode: attrs.mode.filter(|_| child.kind() != FileKind::Symlink),
        size: attrs.size.filter(|_| child.regular().is_ok()),
        ..attrs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::mem::inode::tests::directory;
    use crate::store::mem::inodes::Limits;

    const NOW: Time = Time { secs: 1, nanos: 0 };

    const ROOT_USER: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

    fn tree() -> Inodes {
        let limits = Limits { bytes_max: 1 << 20, files_max: 10 };
        let mut root = directory(0o777, 0, 0);
        root.links = 2;
        Inodes::new(1, limits, root)
    }

    fn at(name: &[u8]) -> Spot<'_> {
        Spot { dir: ROOT, name }
    }

    fn make(tree: &mut Inodes, spot: Spot<'_>, body: Body) -> Result<FileId, Status> {
        let new = New { body, attrs: SetAttr::default(), create_verifier: None };
        tree.make(&ROOT_USER, spot, new, NOW)
    }

    fn new_directory() -> Body {
        Body::Directory(Directory::new(ROOT))
    }

    #[test]
    fn a_file_has_only_so_many_names() {
        let mut tree = tree();
        let file = make(&mut tree, at(b"f"), Body::Regular(Chunks::default())).unwrap();
        tree.inode_mut(file).unwrap().links = LINKS_MAX - 1;
        assert_eq!(tree.link(&ROOT_USER, file, at(b"g"), NOW), Ok(()));
        let over = tree.link(&ROOT_USER, file, at(b"h"), NOW);
        assert_eq!(over, Err(Status::TooManyLinks));
    }

    #[test]
    fn a_directory_has_only_so_many_subdirectories() {
        let mut tree = tree();
        let dir = make(&mut tree, at(b"d"), new_directory()).unwrap();
        let (full, name) = (make(&mut tree, at(b"e"), new_directory()).unwrap(), b"x");
        tree.inode_mut(full).unwrap().links = LINKS_MAX;
        let spot = Spot { dir: full, name };
        let over = make(&mut tree, spot, new_directory());
        assert_eq!(over, Err(Status::TooManyLinks));
        let moved = tree.rename(&ROOT_USER, at(b"d"), spot, NOW);
        assert_eq!(moved, Err(Status::TooManyLinks));
        assert!(make(&mut tree, spot, Body::Symlink("d".into())).is_ok());
        assert_eq!(tree.lookup(&ROOT_USER, at(b"d")), Ok(dir));
    }

    #[test]
    fn who_may_list_and_not_search_gets_no_handles() {
        let mut tree = tree();
        let dir = make(&mut tree, at(b"d"), new_directory()).unwrap();
        make(&mut tree, Spot { dir, name: b"f" }, Body::Regular(Chunks::default())).unwrap();
        let other = Caller { uid: 5, gid: 5, gids: Vec::new() };
        for (mode, with_handle) in [(0o744, 1), (0o755, 3)] {
            tree.inode_mut(dir).unwrap().mode = mode;
            let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: true, bytes: 4096 };
            let mut given = Vec::new();
            let sink = &mut |entry: Entry<'_>| {
                given.push((entry.name.to_vec(), entry.node.is_some()));
                true
            };
            assert!(tree.list(&other, dir, from, [0; 8], sink).unwrap().eof);
            assert_eq!(given.len(), 3, "all are named");
            let have = given.iter().filter(|(_, has_handle)| *has_handle).count();
            assert_eq!(have, with_handle, "{mode:o} {given:?}");
        }
    }

    #[test]
    fn a_mode_that_nobody_stated_gives_nothing_away() {
        let mut tree = tree();
        let mut mode = |name: &[u8], body| {
            let id = make(&mut tree, at(name), body).unwrap();
            tree.inode(id).unwrap().mode
        };
        assert_eq!(mode(b"f", Body::Regular(Chunks::default())), 0o600);
        assert_eq!(mode(b"d", new_directory()), 0o700);
        assert_eq!(mode(b"s", Body::Symlink("f".into())), 0o777);
    }
}
