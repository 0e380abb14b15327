//! Names: what clients make, move and remove.

use bytes::Bytes;
use server::store::{Changed, Linked, Node as StoreNode, Renamed, Store};
use server::types::{
    Access, Attr, Before, Caller, CreateHow, FileKind, Handle, SetAttr, SetTime, Special, Status,
    Time, Wcc,
};

use super::Inner;
use super::changing::Way;
use super::nodes::Node;
use super::order::Thing;
use super::passing::Place;
use super::record::{Change, Entry, Made, timed};
use super::state::{State, Taken};

/// What may be done in a directory by who changes its names.
const CHANGE: u32 = Access::MODIFY | Access::EXTEND;

/// Only owners remove what is in such a directory.
const STICKY: u32 = 0o1000;

/// What a directory or a symbolic link takes of a disk; guess, until the origin tells it.
const DIR_BYTES: u64 = 4096;

/// What a change of names comes to, once nobody else has them.
enum Step<T> {
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
        let store = async |dir: Handle| self.store.create(caller, &dir, name, there).await;
        let Changed { wcc, result } = self.make(caller, dir, name, wanted, store).await;
        let result = match (result, cut) {
            (Ok(node), Some(set)) => self.with_size(caller, node, &set).await,
            (result, _) => result,
        };
        Changed { wcc, result }
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
        self.set_attr(caller, &node.handle, set, None).await.result?;
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
        let store = async |dir: Handle| self.store.make_dir(caller, &dir, name, set).await;
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
        let store = async |dir: Handle| self.store.symlink(caller, &dir, name, target, set).await;
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
        if self.is_hidden(&id, name) {
            return Changed::failed(Status::Access);
        }
        let store = async |dir: Handle| self.store.make_node(caller, &dir, name, what, set).await;
        self.make_there(caller, &id, name, store).await
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
        M: Future<Output = Changed<StoreNode>>,
    {
        let id = self.id(dir);
        if self.is_hidden(&id, name) {
            return Changed::failed(Status::Access);
        }
        match self.make_here(caller, &id, name, &wanted).await {
            Ok(Way::Here(made)) => made,
            Ok(Way::Origin) => self.make_there(caller, &id, name, store).await,
            Err(status) => Changed { wcc: self.dir_now(&id), result: Err(status) },
        }
    }

    /// A directory that was not changed, if its state is known here.
    fn dir_now(&self, id: &Handle) -> Wcc {
        let (now, state) = (self.now(), self.state.lock());
        let node = state.nodes.find(id).filter(|node| node.is_told_here(now));
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
    async fn may_change(&self, caller: &Caller, dir: &Handle) -> Result<bool, Status> {
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
    async fn once_free<T>(
        &self,
        places: &[Place<'_>],
        files: &[Handle],
        epoch: u64,
        mut take: impl FnMut(&mut State) -> Option<Step<T>>,
    ) -> Result<Step<T>, Status> {
        self.until(|state| {
            if state.is_busy(places, files) {
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
        if !self.is_known(caller) || is_long || !self.may_change(caller, dir).await? {
            return Ok(Way::Origin);
        }
        if !is_plain(caller, &wanted.set) {
            return Ok(Way::Origin);
        }
        loop {
            let epoch = self.epoch();
            match self.resolve(caller, dir, name).await? {
                (Some(there), true) => return self.found(caller, dir, &there, wanted).await,
                (Some(_), false) => return Ok(Way::Origin),
                (None, _) => {}
            }
            let (wcc, node, (_, hears)) =
                match self.take_name(caller, (dir, name), wanted, epoch).await? {
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
        caller: &Caller,
        (dir, name): Place<'_>,
        wanted: &Wanted,
        epoch: u64,
    ) -> Result<Step<(Wcc, StoreNode, Taken)>, Status> {
        let name = Bytes::copy_from_slice(name);
        let mut waited = false;
        self.once_free(&[(dir, &name)], &[], epoch, |state| {
            // Somebody may have been faster.
            let is_there = matches!(state.own_name(dir, &name, self.now()), Some(Some(_)));
            if state.journal.is_failed() || is_there {
                return Some(Step::Origin);
            }
            let parent = state.nodes.find(dir).map(|node| node.attr);
            let Some(parent) = parent.filter(|parent| parent.links > 0) else {
                return Some(Step::Origin);
            };
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
        state.nodes.insert(id, Node::made(attr, (*dir, name.clone()), &wanted.what, now));
        let change = Change::Make { dir: *dir, name: name.clone(), what: wanted.what.clone(), set };
        let entry = Entry { caller: caller.clone(), at, base: None, owed: None, change };
        let Some(taken) = state.take(entry, now) else {
            state.nodes.remove(&id);
            return None;
        };
        self.to_write.notify_one();
        let after = state.nodes.find(dir).map(|node| node.attr);
        Some((
            Wcc { before: Some(Before::from(parent)), after },
            StoreNode { handle: id, attr },
            taken,
        ))
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
            self.set_attr(caller, there, set, None).await.result?;
        }
        let attr = self.attr(caller, there).await?;
        let node = StoreNode { handle: *there, attr };
        Ok(Way::Here(Changed { wcc: self.dir_now(dir), result: Ok(node) }))
    }

    /// The origin makes it, while the caller waits.
    async fn make_there<M>(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        store: impl FnOnce(Handle) -> M,
    ) -> Changed<StoreNode>
    where
        M: Future<Output = Changed<StoreNode>>,
    {
        let passing = match self.pass(&[(dir, name)], &[]).await {
            Ok(passing) => passing,
            Err(status) => return Changed::failed(status),
        };
        let epoch = self.epoch();
        let Changed { wcc, result } = store(passing.dirs[0]).await;
        let is_dir = |node: &StoreNode| node.attr.kind == FileKind::Directory;
        let dirs = i64::from(result.as_ref().is_ok_and(is_dir));
        let wcc = self.told_around_dir(dir, wcc, epoch, dirs);
        let result = result.map(|node| {
            self.learn(caller, &node.attr);
            self.tell_node(&node, epoch)
        });
        let now = self.now();
        match &result {
            Ok(node) => self.state.lock().passed_name(dir, name, Some(node.handle), now),
            Err(_) => self.state.lock().unknown_names(dir),
        }
        drop(passing);
        Changed { wcc, result }
    }

    pub(super) async fn remove(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Changed<()> {
        let id = self.id(dir);
        if self.is_hidden(&id, name) {
            return Changed::failed(Status::Access);
        }
        match self.remove_here(caller, &id, name, is_dir).await {
            Ok(Way::Here(wcc)) => Changed { wcc, result: Ok(()) },
            Ok(Way::Origin) => self.remove_there(caller, &id, name, is_dir).await,
            Err(status) => Changed { wcc: self.dir_now(&id), result: Err(status) },
        }
    }

    async fn remove_here(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Result<Way<Wcc>, Status> {
        if !self.is_known(caller) || !self.may_change(caller, dir).await? {
            return Ok(Way::Origin);
        }
        loop {
            let epoch = self.epoch();
            let (child, is_own) = self.resolve(caller, dir, name).await?;
            let Some(child) = child else {
                return if is_own { Err(Status::NoEntry) } else { Ok(Way::Origin) };
            };
            let place = (dir, name);
            let take = |state: &mut State| self.take_removed(state, caller, place, child, is_dir);
            let taken = self.once_free(&[place], &[child], epoch, take).await?;
            let (wcc, (_, hears)) = match taken {
                Step::Taken(taken) => taken,
                Step::Origin => return Ok(Way::Origin),
                Step::Again => continue,
            };
            self.stable(hears).await?;
            return Ok(Way::Here(wcc));
        }
    }

    fn take_removed(
        &self,
        state: &mut State,
        caller: &Caller,
        (dir, name): Place<'_>,
        child: Handle,
        is_dir: bool,
    ) -> Option<Step<(Wcc, Taken)>> {
        let (now, time) = (self.now(), self.time());
        let is_there = state.own_name(dir, name, now).is_none_or(|own| own == Some(child));
        if state.journal.is_failed() || !is_there || !removable(state, dir, &child, is_dir, caller)
        {
            return Some(Step::Origin);
        }
        let parent = state.nodes.find(dir)?;
        let (before, at) = (Before::from(&parent.attr), parent.next_time(time));
        let base = state.nodes.find(&child).and_then(|node| node.base);
        let name = Bytes::copy_from_slice(name);
        let change = Change::Remove { dir: *dir, name, file: child, is_dir };
        let entry = Entry { caller: caller.clone(), at, base, owed: None, change };
        let taken = state.take(entry, now)?;
        self.to_write.notify_one();
        let after = state.nodes.find(dir).map(|node| node.attr);
        Some(Step::Taken((Wcc { before: Some(before), after }, taken)))
    }

    async fn remove_there(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Changed<()> {
        let (passing, [child]) = match self.pass_found(caller, [(dir, name)]).await {
            Ok(passing) => passing,
            Err(status) => return Changed::failed(status),
        };
        let epoch = self.epoch();
        let origin = passing.dirs[0];
        let Changed { wcc, result } = match is_dir {
            true => self.store.remove_dir(caller, &origin, name).await,
            false => self.store.remove(caller, &origin, name).await,
        };
        if result.is_ok() {
            let now = self.now();
            let mut state = self.state.lock();
            state.passed_name(dir, name, None, now);
            // It may have other names: the origin tells.
            child.iter().for_each(|child| state.forget_file(child));
        } else {
            self.state.lock().unknown_names(dir);
        }
        let dirs = -i64::from(is_dir && result.is_ok());
        Changed { wcc: self.told_around_dir(dir, wcc, epoch, dirs), result }
    }

    pub(super) async fn rename(&self, caller: &Caller, from: Place<'_>, to: Place<'_>) -> Renamed {
        let (from_dir, to_dir) = (self.id(from.0), self.id(to.0));
        let (from, to) = ((&from_dir, from.1), (&to_dir, to.1));
        let nothing = |result| Renamed { from: Wcc::default(), to: Wcc::default(), result };
        if self.is_hidden(from.0, from.1) || self.is_hidden(to.0, to.1) {
            return nothing(Err(Status::Access));
        }
        match self.rename_here(caller, from, to).await {
            Ok(Way::Here((from, to))) => Renamed { from, to, result: Ok(()) },
            Ok(Way::Origin) => self.rename_there(caller, from, to).await,
            Err(status) => {
                Renamed { from: self.dir_now(from.0), to: self.dir_now(to.0), result: Err(status) }
            }
        }
    }

    async fn rename_here(
        &self,
        caller: &Caller,
        from: Place<'_>,
        to: Place<'_>,
    ) -> Result<Way<(Wcc, Wcc)>, Status> {
        let may = self.is_known(caller)
            && self.may_change(caller, from.0).await?
            && self.may_change(caller, to.0).await?;
        if !may {
            return Ok(Way::Origin);
        }
        loop {
            let epoch = self.epoch();
            let (child, is_own) = self.resolve(caller, from.0, from.1).await?;
            let Some(child) = child else {
                return if is_own { Err(Status::NoEntry) } else { Ok(Way::Origin) };
            };
            let (over, _) = self.resolve(caller, to.0, to.1).await?;
            if let Some(over) = &over {
                self.load(caller, over).await?;
            }
            let take =
                |state: &mut State| self.take_moved(state, caller, [from, to], (child, over));
            let files: Vec<_> = over.into_iter().chain([child]).collect();
            let taken = self.once_free(&[from, to], &files, epoch, take).await?;
            let (from, to, (_, hears)) = match taken {
                Step::Taken(taken) => taken,
                Step::Origin => return Ok(Way::Origin),
                Step::Again => continue,
            };
            self.stable(hears).await?;
            return Ok(Way::Here((from, to)));
        }
    }

    fn take_moved(
        &self,
        state: &mut State,
        caller: &Caller,
        [from, to]: [Place<'_>; 2],
        (child, over): (Handle, Option<Handle>),
    ) -> Option<Step<(Wcc, Wcc, Taken)>> {
        let now = self.now();
        let is = |(dir, name): Place<'_>, child: Option<Handle>| {
            let own = state.own_name(dir, name, now);
            !state.is_removed(dir) && own.is_none_or(|own| own == child)
        };
        let can = removable(state, from.0, &child, false, caller)
            && over
                .is_none_or(|over| over != child && removable(state, to.0, &over, false, caller));
        if state.journal.is_failed() || !can || !is(from, Some(child)) || !is(to, over) {
            return Some(Step::Origin);
        }
        let places = [from, to].map(|(dir, name)| (*dir, Bytes::copy_from_slice(name)));
        self.take_renamed(state, caller, &places, child, over).map(Step::Taken)
    }

    fn take_renamed(
        &self,
        state: &mut State,
        caller: &Caller,
        [from, to]: &[(Handle, Bytes); 2],
        file: Handle,
        over: Option<Handle>,
    ) -> Option<(Wcc, Wcc, Taken)> {
        let (now, time) = (self.now(), self.time());
        let attr = |state: &State, dir: &Handle| state.nodes.find(dir).map(|node| node.attr);
        let before = [attr(state, &from.0)?, attr(state, &to.0)?];
        let at = state.nodes.find(&from.0)?.next_time(time);
        let at = state.nodes.find(&to.0)?.next_time(at);
        let base = over.and_then(|over| state.nodes.find(&over)?.base);
        let change = Change::Rename { from: from.clone(), to: to.clone(), file, over };
        let entry = Entry { caller: caller.clone(), at, base, owed: None, change };
        let taken = state.take(entry, now)?;
        self.to_write.notify_one();
        let after = [attr(state, &from.0), attr(state, &to.0)];
        let wcc = |at: usize| Wcc { before: Some(Before::from(&before[at])), after: after[at] };
        Some((wcc(0), wcc(1), taken))
    }

    async fn rename_there(&self, caller: &Caller, from: Place<'_>, to: Place<'_>) -> Renamed {
        let (passing, [child, over]) = match self.pass_found(caller, [from, to]).await {
            Ok(passing) => passing,
            Err(status) => {
                return Renamed { from: Wcc::default(), to: Wcc::default(), result: Err(status) };
            }
        };
        let is_dir = match child {
            Some(child) => {
                let attr = self.attr(caller, &child).await;
                attr.is_ok_and(|attr| attr.kind == FileKind::Directory)
            }
            None => false,
        };
        let epoch = self.epoch();
        let (from_dir, to_dir) = (passing.dirs[0], passing.dirs[1]);
        let renamed = self.store.rename(caller, &from_dir, from.1, &to_dir, to.1).await;
        let (now, is_done) = (self.now(), renamed.result.is_ok());
        let mut state = self.state.lock();
        // Of two names of one file both stay.
        if let Some(child) = child.filter(|child| is_done && over != Some(*child)) {
            state.passed_name(from.0, from.1, None, now);
            state.passed_name(to.0, to.1, Some(child), now);
            if let Some(node) = state.nodes.find_mut(&child) {
                node.place = Some((*to.0, Bytes::copy_from_slice(to.1)));
            }
        } else {
            // What has the names now is not known: the origin tells.
            state.unknown_names(from.0);
            state.unknown_names(to.0);
        }
        if let Some(over) = over.filter(|over| is_done && Some(*over) != child) {
            state.forget_file(&over);
        }
        drop(state);
        // A directory that was there is gone.
        let more = i64::from(is_dir && is_done);
        let arrived = if over.is_some_and(|over| Some(over) != child) { 0 } else { more };
        let (left, arrived) = if from.0 == to.0 { (arrived - more, 0) } else { (-more, arrived) };
        let from = self.told_around_dir(from.0, renamed.from, epoch, left);
        let to = self.told_around_dir(to.0, renamed.to, epoch, arrived);
        Renamed { from, to, ..renamed }
    }

    pub(super) async fn link(
        &self,
        caller: &Caller,
        handle: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Linked {
        let (file, dir) = (self.id(handle), self.id(dir));
        let nothing = |status| Linked { attr: None, dir: Wcc::default(), result: Err(status) };
        if self.is_hidden(&dir, name) {
            return nothing(Status::Access);
        }
        let passing = match self.pass(&[(&dir, name)], &[file]).await {
            Ok(passing) => passing,
            Err(status) => return nothing(status),
        };
        let origin = match self.there(&file) {
            Ok(origin) => origin,
            Err(status) => return nothing(status),
        };
        let epoch = self.epoch();
        let linked = self.store.link(caller, &origin, &passing.dirs[0], name).await;
        if linked.result.is_ok() {
            let now = self.now();
            let mut state = self.state.lock();
            state.passed_name(&dir, name, Some(file), now);
            // Its times and links are the origin's.
            match state.nodes.find_mut(&file).filter(|node| node.is_pending()) {
                Some(node) => node.attr.links += 1,
                None => state.nodes.remove(&file),
            }
        } else {
            self.state.lock().unknown_names(&dir);
        }
        let attr = linked.attr.map(|attr| self.tell(&file, attr, epoch));
        Linked { attr, dir: self.told_around(&dir, linked.dir, epoch), ..linked }
    }
}

/// Whether a name may be taken from this, as far as it is known here for certain.
fn removable(state: &State, dir: &Handle, child: &Handle, is_dir: bool, caller: &Caller) -> bool {
    let is_sticky = state.nodes.find(dir).is_none_or(|node| node.attr.mode & STICKY != 0);
    let is_there = |node: &&Node| node.attr.links > 0 && !node.is_leaving;
    let Some(node) = state.nodes.find(child).filter(is_there) else {
        return false;
    };
    let is_empty = || {
        let names = node.names.as_ref().filter(|names| names.is_complete);
        names.is_some_and(|names| names.known.values().all(|named| named.child.is_none()))
            // The origin may be making something there.
            && !state.busy.iter().any(|thing| matches!(thing, Thing::Name(dir, _) if dir == child))
    };
    (!is_sticky || caller.uid == 0) && node.is_dir() == is_dir && (!is_dir || is_empty())
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
    const SET_GID: u32 = 0o2000;
    const EXCLUSIVE_MODE: u32 = 0o600;
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
