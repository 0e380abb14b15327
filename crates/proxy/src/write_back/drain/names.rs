//! Changes of names go to the origin: what is made, removed and renamed.

use bytes::Bytes;
use server::store::{Changed, Node as StoreNode, Store};
use server::types::{Attr, Before, Caller, CreateHow, Handle, SetAttr, SetTime, Status, Wcc};

use super::Came;
use crate::write_back::Inner;
use crate::write_back::aliases::Alias;
use crate::write_back::conflicts::is_as_set;
use crate::write_back::events::{Conflict, Gone};
use crate::write_back::naming::requested_mode;
use crate::write_back::record::{Change, Entry, Made, Outcome};

impl<S: Store> Inner<S> {
    pub(super) async fn carry_made(
        &self,
        entry: &Entry,
        (number, is_in_doubt): (u64, bool),
        dir: &Handle,
        name: &Bytes,
        what: &Made,
        set: &SetAttr,
    ) -> Result<Came, Status> {
        let (id, _) = self.state.lock().identity(number);
        let caller = &entry.caller;
        if let Some(alias) = self.aliases.find(&id) {
            // The proxy that was killed had heard of it.
            return match self.store.attr(caller, &alias.origin).await {
                Ok(attr) => Ok(self.made(number, StoreNode { handle: alias.origin, attr }, None)),
                Err(Status::Stale) => self.has_gone().await.map(|()| Came::differing(id)),
                Err(status) => Err(status),
            };
        }
        let Ok(Some(there)) = self.origin(dir) else {
            return self.make_beside(entry, number, None, name, what, set).await;
        };
        let doubts = self.store.doubts();
        let Changed { wcc, result } = self.make_at(caller, &there, name, what, set).await;
        match result {
            Ok(node) => {
                // By now, it may withhold some.
                self.shows_mode(dir, requested_mode(what, set), &node.attr);
                Ok(self.made(number, node, Some((*dir, wcc))))
            }
            Err(Status::Exists) => {
                let is_in_doubt = is_in_doubt || self.store.doubts() != doubts;
                let found = self.store.lookup(caller, &there, name).await.result;
                let found = match found {
                    Ok(found) => found,
                    Err(Status::NoEntry) => return Err(Status::Exists),
                    Err(status) => return Err(status),
                };
                match self.is_as_made(caller, (id, what), set, &found, is_in_doubt).await? {
                    true => Ok(self.adopted(number, found, dir, what, is_in_doubt)),
                    false => self.make_beside(entry, number, Some(there), name, what, set).await,
                }
            }
            Err(Status::Stale | Status::NotDirectory | Status::NoEntry) => {
                self.has_gone().await?;
                self.make_beside(entry, number, None, name, what, set).await
            }
            Err(status) => Err(status),
        }
    }

    pub(in crate::write_back) async fn make_at(
        &self,
        caller: &Caller,
        there: &Handle,
        name: &[u8],
        what: &Made,
        set: &SetAttr,
    ) -> Changed<StoreNode> {
        match what {
            Made::File(None) => {
                self.store.create(caller, there, name, CreateHow::Guarded(*set)).await
            }
            Made::File(Some(verifier)) => {
                self.store.create(caller, there, name, CreateHow::Exclusive(*verifier)).await
            }
            Made::Directory => self.store.make_dir(caller, there, name, *set).await,
            Made::Symlink(target) => self.store.symlink(caller, there, name, target, *set).await,
        }
    }

    /// Whether what has a name at the origin is what a change was to make there: made by it, before
    /// a proxy was killed or a reply lost; or a directory of the same owner, in which both have
    /// room, and nobody else more to do than in ours.
    async fn is_as_made(
        &self,
        caller: &Caller,
        (id, what): (Handle, &Made),
        set: &SetAttr,
        found: &StoreNode,
        is_in_doubt: bool,
    ) -> Result<bool, Status> {
        use server::types::FileKind::{Directory, Regular, Symlink};
        let owner = set.uid.unwrap_or(caller.uid);
        let is_own = is_in_doubt && found.attr.uid == owner && found.attr.links > 0;
        Ok(match what {
            Made::Directory => {
                let group = self.state.lock().nodes.find(&id).map(|node| node.attr.gid);
                let is_as_private = found.attr.mode & 0o777 & !set.mode.unwrap_or(0) == 0
                    && group.is_none_or(|group| group == found.attr.gid);
                let is_our_kind = found.attr.kind == Directory && found.attr.uid == owner;
                is_our_kind && (is_in_doubt || is_as_private)
            }
            // Nothing was written to it before it had a name here.
            Made::File(verifier) => {
                let is_empty = found.attr.kind == Regular && found.attr.size == 0;
                is_own && is_empty && self.has_marks_of(verifier.as_ref(), set, &found.attr)
            }
            Made::Symlink(target) => {
                found.attr.kind == Symlink
                    && self.store.read_link(caller, &found.handle).await.result? == *target
            }
        })
    }

    /// Whether an empty file has what our CREATE gives it, and no other does: a modification time
    /// to the nanosecond. By a verifier the origin itself would have recognized it, but for one of
    /// version 2, which stores none: there it need only have been made while we lived.
    fn has_marks_of(&self, verifier: Option<&[u8; 8]>, set: &SetAttr, found: &Attr) -> bool {
        match (verifier, set.modified) {
            (None, SetTime::To(made)) => is_as_set(found.modified, made),
            _ => self.store.guesses_rights() && !self.state.lock().lives.is_between(found.changed),
        }
    }

    fn adopted(
        &self,
        number: u64,
        found: StoreNode,
        dir: &Handle,
        what: &Made,
        is_in_doubt: bool,
    ) -> Came {
        let (id, _) = self.state.lock().identity(number);
        if *what == Made::Directory
            && let Some(node) = self.state.lock().nodes.find_mut(&id)
            && let Some(names) = &mut node.names
        {
            // Others may have put something there.
            names.is_complete &= is_in_doubt;
        }
        // Its state before is not known: the directory's names are requested anew.
        self.made(number, found, Some((*dir, Wcc::default())))
    }

    /// The origin has made what a change was to make.
    pub(in crate::write_back) fn made(
        &self,
        number: u64,
        node: StoreNode,
        dir: Option<(Handle, Wcc)>,
    ) -> Came {
        let now = self.now();
        let mut state = self.state.lock();
        let (id, fileid) = state.identity(number);
        let alias = Alias { origin: node.handle, fileid, origin_fileid: node.attr.fileid };
        self.aliases.note(id, alias);
        let after = Some(Before::from(&node.attr));
        if let Some(own) = state.nodes.find_mut(&id) {
            own.origin = Some(node.handle);
            own.left(after, true);
            own.confirmed = Some(now);
        }
        if let Some(op) = state.ops.get(&number)
            && let Change::Make { set, .. } = &op.entry.change
            && set.uid.is_none()
            && set.gid.is_none()
            && node.attr.uid != op.entry.caller.uid
        {
            let dir = dir.as_ref().and_then(|(_, wcc)| wcc.after.as_ref());
            self.learn(&op.entry.caller, &node.attr, dir);
        }
        Came { outcome: Outcome { file: Some(id), after }, ..Came::dirs(dir) }
    }

    pub(super) async fn carry_removed(
        &self,
        entry: &Entry,
        dir: &Handle,
        name: &Bytes,
        file: &Handle,
        is_dir: bool,
    ) -> Result<Came, Status> {
        let gone = || Came::dropping(*file);
        let (Ok(Some(there)), Ok(Some(origin))) = (self.origin(dir), self.origin(file)) else {
            return Ok(gone());
        };
        match self.store.lookup(&entry.caller, &there, name).await.result {
            Ok(found) if found.handle != origin => {
                return Ok(Came::differing(*file).lost(&entry.change, Gone::Replaced));
            }
            Ok(found) if !is_dir && self.is_changed(file, entry, &found.attr) => {
                return Ok(Came::differing(*file).lost(&entry.change, Gone::Changed));
            }
            Err(status @ (Status::NoEntry | Status::Stale)) => {
                if status == Status::Stale {
                    self.has_gone().await?;
                }
                self.forget_gone(&entry.caller, file).await;
                return Ok(gone());
            }
            // It may be removed all the same.
            Ok(_) | Err(Status::Access) => {}
            Err(status) => return Err(status),
        }
        let Changed { wcc, result } = match is_dir {
            true => self.store.remove_dir(&entry.caller, &there, name).await,
            false => self.store.remove(&entry.caller, &there, name).await,
        };
        match result {
            Ok(()) | Err(Status::NoEntry) => {
                self.forget_gone(&entry.caller, file).await;
                Ok(Came { dirs: vec![(*dir, wcc)], ..gone() })
            }
            Err(Status::NotEmpty | Status::Exists) if is_dir => {
                Ok(Came::differing(*file).lost(&entry.change, Gone::NotEmpty))
            }
            Err(status) => Err(status),
        }
    }

    /// Whether somebody else has changed a file since it was known here.
    fn is_changed(&self, file: &Handle, entry: &Entry, found: &Attr) -> bool {
        let state = self.state.lock();
        let base = state.nodes.find(file).and_then(|node| node.base).or(entry.base);
        base.is_some_and(|base| (base.size, base.modified) != (found.size, found.modified))
    }

    /// A file has lost a name at the origin, perhaps its last.
    async fn forget_gone(&self, caller: &Caller, file: &Handle) {
        let (is_gone, unsure) = {
            let state = self.state.lock();
            let node = state.nodes.find(file);
            let unsure = node.filter(|node| node.is_unsure).and_then(|node| node.origin);
            // Of its other names, removals may still be on their way.
            (node.is_some_and(|node| node.attr.links == 0 && node.pending <= 1), unsure)
        };
        let is_gone = match unsure {
            Some(origin) => self.store.attr(caller, &origin).await == Err(Status::Stale),
            None => is_gone,
        };
        if is_gone {
            self.aliases.forget(file);
        }
    }

    pub(super) async fn carry_renamed(
        &self,
        entry: &Entry,
        number: u64,
        from: &(Handle, Bytes),
        to: &(Handle, Bytes),
        file: &Handle,
        over: Option<&Handle>,
    ) -> Result<Came, Status> {
        let caller = &entry.caller;
        let places = (self.origin(&from.0), self.origin(&to.0), self.origin(file));
        let (Ok(Some(from_dir)), Ok(Some(to_dir)), Ok(Some(origin))) = places else {
            return Ok(Came::differing(*file).lost(&entry.change, Gone::File));
        };
        let at = async |dir: &Handle, name: &Bytes| match self
            .store
            .lookup(caller, dir, name)
            .await
            .result
        {
            Ok(found) => Ok(Some(found)),
            Err(Status::NoEntry) => Ok(None),
            Err(Status::Stale) => self.has_gone().await.map(|()| None),
            Err(status) => Err(status),
        };
        let (source, target) = (at(&from_dir, &from.1).await?, at(&to_dir, &to.1).await?);
        let is_it = |found: &StoreNode| found.handle == origin;
        if !source.as_ref().is_some_and(is_it) {
            if target.as_ref().is_some_and(is_it) {
                // It was done, and nobody heard of it.
                return Ok(Came::dropping(*file));
            }
            return Ok(Came::differing(*file).lost(&entry.change, Gone::Replaced));
        }
        let expected = over.and_then(|over| self.origin(over).ok().flatten());
        let is_theirs = target.as_ref().is_some_and(|found| {
            Some(found.handle) != expected
                || over.is_some_and(|over| self.is_changed(over, entry, &found.attr))
        });
        let name = match is_theirs {
            true => self.beside_name(&to.1, number, 1),
            false => to.1.clone(),
        };
        let renamed = self.store.rename(caller, &from_dir, &from.1, &to_dir, &name).await;
        renamed.result?;
        if is_theirs {
            self.stored_beside(&to.0, &to.1, &name, Conflict::Replaced);
            let mut state = self.state.lock();
            if state.place(file) == Some(to) {
                state.moved(file, (to.0, name));
            }
        } else if let Some(over) = over {
            self.forget_gone(caller, over).await;
        }
        let (dropped, dirs) = (over.copied(), [(from.0, renamed.from), (to.0, renamed.to)]);
        Ok(Came { dropped, differs: is_theirs, ..Came::dirs(dirs) })
    }
}
