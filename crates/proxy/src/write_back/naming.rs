//! Names: what clients make, and what has which name.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use server::store::{Changed, Node as StoreNode, Store};
use server::types::{
    Access, Attr, Before, Caller, CreateHow, FileKind, Handle, SetAttr, SetTime, Special, Status,
    Time, Wcc,
};

use super::Inner;
use super::changing::{Passed, SET_GID, Way};
use super::modes::Modes;
use super::nodes::Node;
use super::passing::Turn;
use super::record::{Change, Entry, Made, timed};
use super::state::{State, Taken};
use super::touches::Place;

/// What may be done in a directory by who changes its names.
const CHANGE: u32 = Access::MODIFY | Access::EXTEND;

/// What a directory or a symbolic link takes of a disk; guess, until the origin tells it.
const DIR_BYTES: u64 = 4096;

/// Of what an exclusive CREATE makes.
const EXCLUSIVE_MODE: u32 = 0o600;

/// What a change of names comes to, once nobody else has them.
pub(super) enum Step<T> {
    Taken(T),
    /// It is for the origin.
    Origin,
    /// The names were changed since they were looked up.
    Again,
}

/// What is to be made.
struct Wanted {
    what: Made,
    set: SetAttr,
    /// What is there already is as good.
    takes_old: bool,
}

impl<S: Store> Inner<S> {
    pub(super) async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<StoreNode> {
        let wanted = match how {
            CreateHow::Unchecked(set) => Wanted { what: Made::File(None), set, takes_old: true },
            CreateHow::Guarded(set) => Wanted { what: Made::File(None), set, takes_old: false },
            CreateHow::Exclusive(verifier) => {
                let (what, set) = (Made::File(Some(verifier)), SetAttr::default());
                Wanted { what, set, takes_old: false }
            }
        };
        // A file that is there already is cut here, after what is on its way to it.
        let (there, cut) = match how {
            CreateHow::Unchecked(set) => {
                (CreateHow::Unchecked(SetAttr { size: None, ..set }), set.size.map(|_| set))
            }
            how => (how, None),
        };
        let is_shown = self.are_modes_known(&self.id(dir), &wanted);
        let store =
            async |dir: Handle| self.create_there(caller, (&dir, name), there, is_shown).await;
        let Changed { wcc, result } = self.make(caller, dir, name, wanted, store).await;
        let result = match (result, cut) {
            (Ok(node), Some(set)) => self.with_size(caller, node, &set).await,
            (result, _) => result,
        };
        Changed { wcc, result }
    }

    /// A CREATE at the origin, and whether what it makes is new for certain. That tells whom the
    /// origin takes the caller for, and what becomes of the mode; what was there may be anybody's.
    /// So it is made as new first, unless all of that is known.
    async fn create_there(
        &self,
        caller: &Caller,
        (dir, name): Place<'_>,
        how: CreateHow,
        is_shown: bool,
    ) -> (Changed<StoreNode>, bool) {
        let create = async |how| self.store.create(caller, dir, name, how).await;
        match how {
            CreateHow::Guarded(_) => (create(how).await, true),
            _ if is_shown && self.is_known(caller) => (create(how).await, false),
            CreateHow::Unchecked(set) => {
                let made = create(CreateHow::Guarded(set)).await;
                match made.result {
                    Ok(_) => (made, true),
                    Err(_) => (create(how).await, false),
                }
            }
            CreateHow::Exclusive(_) => {
                // Who knows the times of a file may have made its verifier up.
                let found = self.store.lookup(caller, dir, name).await.result;
                (create(how).await, matches!(found, Err(Status::NoEntry)))
            }
        }
    }

    /// A file that is to have a size when its CREATE is answered, if the caller may give it that.
    async fn with_size(
        &self,
        caller: &Caller,
        node: StoreNode,
        set: &SetAttr,
    ) -> Result<StoreNode, Status> {
        // What somebody else owns is not new.
        let may_be_new = [0, node.attr.uid].contains(&caller.uid);
        if may_be_new && set.size == Some(node.attr.size) {
            return Ok(node);
        }
        // What is new has the time that it was given.
        let is_given = set.modified == SetTime::To(node.attr.modified);
        let modified = if is_given { set.modified } else { SetTime::Keep };
        let set = SetAttr { size: set.size, modified, ..SetAttr::default() };
        self.set_attr(caller, &node.handle, set, None).await?.result?;
        Ok(StoreNode { attr: self.attr(caller, &node.handle).await?, ..node })
    }

    pub(super) async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        set: SetAttr,
    ) -> Changed<StoreNode> {
        let wanted = Wanted { what: Made::Directory, set, takes_old: false };
        let store = async |dir: Handle| (self.store.make_dir(caller, &dir, name, set).await, true);
        self.make(caller, dir, name, wanted, store).await
    }

    pub(super) async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: SetAttr,
    ) -> Changed<StoreNode> {
        let what = Made::Symlink(Bytes::copy_from_slice(target));
        let wanted = Wanted { what, set, takes_old: false };
        let store =
            async |dir: Handle| (self.store.symlink(caller, &dir, name, target, set).await, true);
        self.make(caller, dir, name, wanted, store).await
    }

    pub(super) async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        set: SetAttr,
    ) -> Changed<StoreNode> {
        let id = self.id(dir);
        if self.is_hidden(name) {
            return Changed::failed(Status::Access);
        }
        let store =
            async |dir: Handle| (self.store.make_node(caller, &dir, name, what, set).await, true);
        let made = self.make_there(caller, (&id, name), None, store).await;
        made.unwrap_or_else(Changed::failed)
    }

    async fn make<M>(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        wanted: Wanted,
        store: impl FnOnce(Handle) -> M,
    ) -> Changed<StoreNode>
    where
        M: Future<Output = (Changed<StoreNode>, bool)>,
    {
        let id = self.id(dir);
        if self.is_hidden(name) {
            return Changed::failed(Status::Access);
        }
        match self.make_here(caller, &id, name, &wanted).await {
            Ok(Way::Here(made)) => made,
            Ok(Way::Origin) => {
                let made = self.make_there(caller, (&id, name), Some(&wanted), store).await;
                made.unwrap_or_else(Changed::failed)
            }
            Err(status) => Changed { wcc: self.dir_now(&id), result: Err(status) },
        }
    }

    /// A directory that was not changed, if its state is known here.
    pub(super) fn dir_now(&self, id: &Handle) -> Wcc {
        let (now, state) = (self.now(), self.state.lock());
        let node = state.nodes.find(id).filter(|node| node.is_answered_here(now));
        let attr = node.map(|node| node.attr);
        Wcc { before: attr.as_ref().map(Before::from), after: attr }
    }

    /// What has a name. With `true`: that is on its way, or was a moment ago.
    pub(super) async fn resolve(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> Result<(Option<Handle>, bool), Status> {
        let known = {
            let (now, mut state) = (self.now(), self.state.lock());
            match state.own_name(dir, name, now) {
                Some(own) => return Ok((own, true)),
                None => state.recent_name(dir, name, now),
            }
        };
        if let Some(known) = known {
            return Ok((known, false));
        }
        match self.lookup(caller, dir, name).await.result {
            Ok(node) => Ok((Some(node.handle), false)),
            Err(Status::NoEntry) => Ok((None, false)),
            Err(status) => Err(status),
        }
    }

    /// Whether it is certain that the origin would let the caller change names in a directory.
    pub(super) async fn may_change(&self, caller: &Caller, dir: &Handle) -> Result<bool, Status> {
        self.load(caller, dir).await?;
        let (who, now, state) = (self.who(caller), self.now(), self.state.lock());
        let Some(node) = state.nodes.find(dir).filter(|node| node.attr.links > 0) else {
            return Ok(false);
        };
        let granted = node.granted(who, now);
        Ok(node.is_dir() && granted & CHANGE == CHANGE && granted & Access::LOOKUP != 0)
    }

    /// What `take` makes of names and files once the origin is changing none of them for others, if
    /// the names are as they were at this epoch.
    pub(super) async fn once_free<T>(
        &self,
        turn: &mut Turn<'_, S>,
        places: &[Place<'_>],
        files: &[Handle],
        epoch: u64,
        mut take: impl FnMut(&mut State) -> Option<Step<T>>,
    ) -> Result<Step<T>, Status> {
        turn.wants(places, files);
        self.until(|state| {
            let is_free = !state.is_busy(places, files);
            if !turn.has_come(state, is_free) {
                return None;
            }
            match state.are_moved(places, epoch, self.now()) {
                true => Some(Step::Again),
                false => take(state),
            }
        })
        .await
    }

    async fn make_here(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        wanted: &Wanted,
    ) -> Result<Way<Changed<StoreNode>>, Status> {
        let is_long = matches!(&wanted.what, Made::Symlink(target) if target.len() > 1023);
        // The directory is known by then, and notes what the origin makes in it.
        if !self.may_change(caller, dir).await? || !self.is_known(caller) || is_long {
            return Ok(Way::Origin);
        }
        if !is_plain(caller, &wanted.set) {
            return Ok(Way::Origin);
        }
        let has_mode = wanted.set.mode.is_some()
            || matches!(wanted.what, Made::File(Some(_)) | Made::Symlink(_));
        let mut turn = self.turn();
        loop {
            let epoch = self.epoch();
            match self.resolve(caller, dir, name).await? {
                (Some(there), true) => {
                    drop(turn);
                    return self.found(caller, dir, &there, wanted).await;
                }
                (Some(_), false) => return Ok(Way::Origin),
                // Which mode a file gets that is given none is the origin's affair.
                (None, _) if !has_mode => return Ok(Way::Origin),
                (None, _) => {}
            }
            let (wcc, node, (_, hears)) =
                match self.take_name(&mut turn, caller, (dir, name), wanted, epoch).await? {
                    Step::Taken(taken) => taken,
                    Step::Origin => return Ok(Way::Origin),
                    Step::Again => continue,
                };
            self.stable(hears).await?;
            return Ok(Way::Here(Changed { wcc, result: Ok(node) }));
        }
    }

    /// Takes up what is to be made under a name that nothing had at this epoch.
    async fn take_name(
        &self,
        turn: &mut Turn<'_, S>,
        caller: &Caller,
        (dir, name): Place<'_>,
        wanted: &Wanted,
        epoch: u64,
    ) -> Result<Step<(Wcc, StoreNode, Taken)>, Status> {
        let name = Bytes::copy_from_slice(name);
        let mut waited = false;
        self.once_free(turn, &[(dir, &name)], &[], epoch, |state| {
            // Somebody may have been faster.
            let is_there = matches!(state.own_name(dir, &name, self.now()), Some(Some(_)));
            if state.journal.is_failed() || is_there {
                return Some(Step::Origin);
            }
            let node = state.nodes.find(dir).filter(|node| node.attr.links > 0);
            // While nothing comes to the origin, it is a guess; what others may, it says in any
            // case.
            let is_certain = |node: &&Node| state.is_stuck() || wanted.is_given(&node.modes);
            let Some(node) = node.filter(is_certain) else {
                return Some(Step::Origin);
            };
            let parent = node.attr;
            // Whether a new directory has the bit, too, is the origin's affair until it has
            // shown that.
            let inherits = parent.mode & SET_GID != 0 && wanted.what == Made::Directory;
            if inherits && !self.dirs_keep_set_gid.load(Ordering::Relaxed) {
                return Some(Step::Origin);
            }
            let taken = self.take_made(state, caller, (dir, &parent), &name, wanted);
            let is_first = taken.is_none() && !std::mem::replace(&mut waited, taken.is_none());
            state.counts.held_back += u64::from(is_first);
            taken.map(Step::Taken)
        })
        .await
    }

    fn take_made(
        &self,
        state: &mut State,
        caller: &Caller,
        (dir, parent): (&Handle, &Attr),
        name: &Bytes,
        wanted: &Wanted,
    ) -> Option<(Wcc, StoreNode, Taken)> {
        let (now, time) = (self.now(), self.time());
        let (id, fileid) = state.next_identity();
        let at = state.nodes.find(dir).map_or(time, |node| node.next_time(time));
        let set = lasting(&wanted.what, timed(wanted.set, at), at);
        let attr = made_attr(caller, parent, &wanted.what, &set, fileid, at);
        let mut node = Node::made(attr, (*dir, name.clone()), &wanted.what, now);
        node.modes = state.nodes.find(dir).map(|node| Arc::clone(&node.modes)).unwrap_or_default();
        state.nodes.insert(id, node);
        let change = Change::Make { dir: *dir, name: name.clone(), what: wanted.what.clone(), set };
        let entry = Entry { caller: caller.clone(), at, base: None, owed: None, change };
        let Some(taken) = state.take(entry, now) else {
            state.nodes.remove(&id);
            return None;
        };
        self.to_write.notify_one();
        let after = state.nodes.find(dir).map(|node| node.attr);
        let wcc = Wcc { before: Some(Before::from(parent)), after };
        Some((wcc, StoreNode { handle: id, attr }, taken))
    }

    /// What was to be made has a name here already.
    async fn found(
        &self,
        caller: &Caller,
        dir: &Handle,
        there: &Handle,
        wanted: &Wanted,
    ) -> Result<Way<Changed<StoreNode>>, Status> {
        let Made::File(verifier) = &wanted.what else { return Err(Status::Exists) };
        let known = self.state.lock().nodes.find(there).cloned();
        // The origin knows which verifier a file was made with that was not made here.
        let knows = |node: &Node| verifier.is_none() || node.is_made_here;
        let Some(node) = known.filter(knows) else { return Ok(Way::Origin) };
        let is_same = verifier.is_some() && node.verifier == *verifier;
        let is_file = node.attr.kind == FileKind::Regular;
        if !(is_same || wanted.takes_old && is_file) {
            return Err(Status::Exists);
        }
        if let Some(size) = wanted.set.size.filter(|_| !is_same) {
            let set = SetAttr { size: Some(size), ..SetAttr::default() };
            self.set_attr(caller, there, set, None).await?.result?;
        }
        let attr = self.attr(caller, there).await?;
        let node = StoreNode { handle: *there, attr };
        Ok(Way::Here(Changed { wcc: self.dir_now(dir), result: Ok(node) }))
    }

    /// The origin makes it, while the caller waits. With `true`: it is new for certain.
    async fn make_there<M>(
        &self,
        caller: &Caller,
        (dir, name): Place<'_>,
        wanted: Option<&Wanted>,
        store: impl FnOnce(Handle) -> M,
    ) -> Result<Changed<StoreNode>, Status>
    where
        M: Future<Output = (Changed<StoreNode>, bool)>,
    {
        let passing = self.pass(&[(dir, name)], &[]).await?;
        let epoch = self.epoch();
        let (Changed { wcc, result }, is_new) = store(passing.dirs[0]).await;
        if let Some(made) = result.as_ref().ok().filter(|_| is_new) {
            self.learn(caller, &made.attr, wcc.after.as_ref());
        }
        let is_dir = |node: &StoreNode| node.attr.kind == FileKind::Directory;
        let dirs = i64::from(result.as_ref().is_ok_and(is_dir));
        let wcc = self.reported_around(dir, wcc, epoch, Passed::Names { dirs });
        let shown = wanted.filter(|_| is_new);
        let result = result.map(|made| {
            let node = self.tell_node(&made, epoch);
            if let Some(Wanted { what, set, .. }) = shown {
                self.shows_mode(dir, requested_mode(what, set), &made.attr);
                self.inherit_modes(dir, &made, &node);
            }
            node
        });
        let now = self.now();
        match &result {
            Ok(node) => self.state.lock().passed_name(dir, name, Some(node.handle), now),
            Err(status) => self.state.lock().failed_name((dir, name), *status),
        }
        drop(passing);
        Ok(Changed { wcc, result })
    }

    /// The origin has made something new in a directory that was to have this mode.
    pub(super) fn shows_mode(&self, dir: &Handle, requested: Option<u32>, made: &Attr) {
        if let (Some(node), Some(mode)) = (self.state.lock().nodes.find(dir), requested) {
            node.modes.note(made.kind == FileKind::Directory, mode, made.mode);
        }
    }

    /// The origin has made a directory, which has what is inherited in the one above it.
    fn inherit_modes(&self, dir: &Handle, made: &StoreNode, node: &StoreNode) {
        let (now, mut state) = (self.now(), self.state.lock());
        let is_new =
            made.attr.kind == FileKind::Directory && state.nodes.find(&node.handle).is_none();
        let modes = state.nodes.find(dir).filter(|_| is_new).map(|dir| Arc::clone(&dir.modes));
        if let Some(modes) = modes {
            let mut known = Node::met(node.attr, made.handle, Before::from(&made.attr), now);
            known.modes = modes;
            state.nodes.insert(node.handle, known);
        }
    }

    /// Whether it is known what the origin makes of the mode.
    fn are_modes_known(&self, dir: &Handle, wanted: &Wanted) -> bool {
        let Some(mode) = requested_mode(&wanted.what, &wanted.set) else { return true };
        let state = self.state.lock();
        let node = state.nodes.find(dir);
        node.is_some_and(|node| node.modes.are_known(wanted.what == Made::Directory, mode))
    }
}

impl Wanted {
    /// Whether what is made has the mode for certain.
    fn is_given(&self, modes: &Modes) -> bool {
        requested_mode(&self.what, &self.set)
            .is_none_or(|mode| modes.gives(self.what == Made::Directory, mode))
    }
}

/// The mode that is requested; a symbolic link has always the same.
pub(super) fn requested_mode(what: &Made, set: &SetAttr) -> Option<u32> {
    match what {
        Made::File(Some(_)) => Some(EXCLUSIVE_MODE),
        Made::File(None) | Made::Directory => set.mode,
        Made::Symlink(_) => None,
    }
}

/// Whether a file that the caller makes with these attributes gets them for certain.
fn is_plain(caller: &Caller, set: &SetAttr) -> bool {
    let is_member = |gid| caller.is_member(gid);
    let is_root = caller.uid == 0;
    (is_root || set.uid.is_none_or(|uid| uid == caller.uid) && set.gid.is_none_or(is_member))
        && set.mode.unwrap_or(0) & 0o6000 == 0
        && set.size.is_none_or(|size| size == 0)
}

/// A file gets the time of its making: the origin's own would be that of the drain.
fn lasting(what: &Made, set: SetAttr, at: Time) -> SetAttr {
    match (what, set.modified) {
        (Made::File(_), SetTime::Keep) => SetAttr { modified: SetTime::To(at), ..set },
        _ => set,
    }
}

pub(super) fn made_attr(
    caller: &Caller,
    parent: &Attr,
    what: &Made,
    set: &SetAttr,
    fileid: u64,
    at: Time,
) -> Attr {
    let inherits = parent.mode & SET_GID != 0;
    let (kind, mode, links, size) = match what {
        // Until the origin says what a file has that was made by an exclusive CREATE.
        Made::File(Some(_)) => (FileKind::Regular, EXCLUSIVE_MODE, 1, 0),
        Made::File(None) => (FileKind::Regular, set.mode.unwrap_or(0), 1, 0),
        Made::Directory => {
            let mode = set.mode.unwrap_or(0) | if inherits { SET_GID } else { 0 };
            (FileKind::Directory, mode, 2, DIR_BYTES)
        }
        Made::Symlink(target) => (FileKind::Symlink, 0o777, 1, target.len() as u64),
    };
    let gid = if inherits { parent.gid } else { caller.gid };
    let time = |of| match of {
        SetTime::To(time) => time,
        _ => at,
    };
    Attr {
        kind,
        mode: mode & 0o7777,
        links,
        uid: set.uid.unwrap_or(caller.uid),
        gid: set.gid.unwrap_or(gid),
        size,
        used: if kind == FileKind::Directory { DIR_BYTES } else { 0 },
        device: (0, 0),
        fsid: parent.fsid,
        fileid,
        accessed: time(set.accessed),
        modified: time(set.modified),
        changed: at,
        made: None,
    }
}
