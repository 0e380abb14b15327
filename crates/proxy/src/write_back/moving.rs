//! Names that are taken away, or get another place: what clients remove, rename and link.

use bytes::Bytes;
use server::store::{Changed, Linked, Renamed, Store};
use server::types::{Before, Caller, FileKind, Handle, Status, Wcc};

use super::Inner;
use super::changing::{Passed, Way};
use super::names::Names;
use super::naming::Step;
use super::nodes::Node;
use super::order::Thing;
use super::record::{Change, Entry};
use super::state::{State, Taken};
use super::touches::Place;

/// Only owners remove what is in such a directory.
const STICKY: u32 = 0o1000;

impl<S: Store> Inner<S> {
    pub(super) async fn remove(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Changed<()> {
        let id = self.id(dir);
        if self.is_hidden(name) {
            return Changed::failed(Status::Access);
        }
        match self.remove_here(caller, (&id, name), is_dir).await {
            Ok(Way::Here(wcc)) => Changed { wcc, result: Ok(()) },
            Ok(Way::Origin) => {
                let removed = self.remove_there(caller, (&id, name), is_dir).await;
                removed.unwrap_or_else(Changed::failed)
            }
            Err(status) => Changed { wcc: self.dir_now(&id), result: Err(status) },
        }
    }

    async fn remove_here(
        &self,
        caller: &Caller,
        place: Place<'_>,
        is_dir: bool,
    ) -> Result<Way<Wcc>, Status> {
        if !self.is_known(caller) || !self.may_change(caller, place.0).await? {
            return Ok(Way::Origin);
        }
        let mut turn = self.turn();
        loop {
            let epoch = self.epoch();
            let Some(child) = self.leaving(caller, place).await? else { return Ok(Way::Origin) };
            if self.state.lock().lacks_room(&child) {
                return Ok(Way::Origin);
            }
            let take = |state: &mut State| self.take_removed(state, caller, place, child, is_dir);
            let step = self.once_free(&mut turn, &[place], &[child], epoch, take).await?;
            if let Some(way) = self.led_to(step).await? {
                return Ok(way);
            }
        }
    }

    /// Where a step has led, if it is not to be tried again; what it took is stable then.
    async fn led_to<T>(&self, step: Step<(T, Taken)>) -> Result<Option<Way<T>>, Status> {
        match step {
            Step::Taken((done, (_, hears))) => {
                self.stable(hears).await?;
                Ok(Some(Way::Here(done)))
            }
            Step::Origin => Ok(Some(Way::Origin)),
            Step::Again => Ok(None),
        }
    }

    /// What is to lose its name; `None`: nothing has it, unless the origin knows better.
    async fn leaving(
        &self,
        caller: &Caller,
        (dir, name): Place<'_>,
    ) -> Result<Option<Handle>, Status> {
        match self.resolve(caller, dir, name).await? {
            (None, true) => Err(Status::NoEntry),
            (child, _) => Ok(child),
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
        (dir, name): Place<'_>,
        is_dir: bool,
    ) -> Result<Changed<()>, Status> {
        let (passing, [child]) = self.pass_found(caller, [(dir, name)]).await?;
        let (epoch, origin) = (self.epoch(), passing.dirs[0]);
        let Changed { wcc, result } = match is_dir {
            true => self.store.remove_dir(caller, &origin, name).await,
            false => self.store.remove(caller, &origin, name).await,
        };
        let (now, mut state) = (self.now(), self.state.lock());
        if let Err(status) = result {
            state.failed_name((dir, name), status);
        } else {
            state.passed_name(dir, name, None, now);
            // It may have other names: the origin tells.
            child.iter().for_each(|child| state.passed_removal(child));
        }
        drop(state);
        let dirs = -i64::from(is_dir && result.is_ok());
        let wcc = self.reported_around(dir, wcc, epoch, Passed::Names { dirs });
        Ok(Changed { wcc, result })
    }

    pub(super) async fn rename(&self, caller: &Caller, from: Place<'_>, to: Place<'_>) -> Renamed {
        let (from_dir, to_dir) = (self.id(from.0), self.id(to.0));
        let (from, to) = ((&from_dir, from.1), (&to_dir, to.1));
        if self.is_hidden(from.1) || self.is_hidden(to.1) {
            return Renamed::failed(Status::Access);
        }
        match self.rename_here(caller, from, to).await {
            Ok(Way::Here((from, to))) => Renamed { from, to, result: Ok(()) },
            Ok(Way::Origin) => {
                self.rename_there(caller, from, to).await.unwrap_or_else(Renamed::failed)
            }
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
        let mut turn = self.turn();
        loop {
            let epoch = self.epoch();
            let Some(child) = self.leaving(caller, from).await? else { return Ok(Way::Origin) };
            let (over, _) = self.resolve(caller, to.0, to.1).await?;
            if let Some(over) = &over {
                if self.state.lock().lacks_room(over) {
                    return Ok(Way::Origin);
                }
                self.load(caller, over).await?;
            }
            let take =
                |state: &mut State| self.take_moved(state, caller, [from, to], (child, over));
            let files: Vec<_> = over.into_iter().chain([child]).collect();
            let step = self.once_free(&mut turn, &[from, to], &files, epoch, take).await?;
            if let Some(way) = self.led_to(step).await? {
                return Ok(way);
            }
        }
    }

    fn take_moved(
        &self,
        state: &mut State,
        caller: &Caller,
        [from, to]: [Place<'_>; 2],
        (child, over): (Handle, Option<Handle>),
    ) -> Option<Step<((Wcc, Wcc), Taken)>> {
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
    ) -> Option<((Wcc, Wcc), Taken)> {
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
        Some(((wcc(0), wcc(1)), taken))
    }

    async fn rename_there(
        &self,
        caller: &Caller,
        from: Place<'_>,
        to: Place<'_>,
    ) -> Result<Renamed, Status> {
        let (passing, [child, over]) = self.pass_found(caller, [from, to]).await?;
        let is_dir = self.is_dir(caller, child).await;
        let epoch = self.epoch();
        let (from_dir, to_dir) = (passing.dirs[0], passing.dirs[1]);
        let renamed = self.store.rename(caller, &from_dir, from.1, &to_dir, to.1).await;
        let is_done = renamed.result.is_ok();
        self.passed_rename([from, to], (child, over), renamed.result);
        let (left, arrived) = match is_dir && is_done {
            false => (0, 0),
            // The directory that was there is gone.
            true if over.is_some() && over != child => (-1, 0),
            true if from.0 == to.0 => (0, 0),
            true => (-1, 1),
        };
        let names = |dirs| Passed::Names { dirs };
        let from = self.reported_around(from.0, renamed.from, epoch, names(left));
        let to = self.reported_around(to.0, renamed.to, epoch, names(arrived));
        Ok(Renamed { from, to, ..renamed })
    }

    /// Whether what has a name is a directory, as far as is known.
    async fn is_dir(&self, caller: &Caller, child: Option<Handle>) -> bool {
        let Some(child) = child else { return false };
        let attr = self.attr(caller, &child).await;
        attr.is_ok_and(|attr| attr.kind == FileKind::Directory)
    }

    /// What has two names, the origin having renamed what had the first, or not.
    fn passed_rename(
        &self,
        [from, to]: [Place<'_>; 2],
        (child, over): (Option<Handle>, Option<Handle>),
        result: Result<(), Status>,
    ) {
        // Of two names of one file both stay.
        let is_moved = result.is_ok() && over != child;
        let (now, mut state) = (self.now(), self.state.lock());
        if let Some(child) = child.filter(|_| is_moved) {
            state.passed_name(from.0, from.1, None, now);
            state.passed_name(to.0, to.1, Some(child), now);
        } else if let Err(status) = result {
            state.failed_name(from, status);
            state.failed_name(to, status);
        } else {
            // What has the names now is not known: the origin tells.
            state.unknown_names(from.0);
            state.unknown_names(to.0);
        }
        if let Some(over) = over.filter(|_| is_moved) {
            state.passed_removal(&over);
        }
    }

    pub(super) async fn link(
        &self,
        caller: &Caller,
        handle: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> Linked {
        let (file, dir) = (self.id(handle), self.id(dir));
        if self.is_hidden(name) {
            return Linked::failed(Status::Access);
        }
        self.link_there(caller, &file, (&dir, name)).await.unwrap_or_else(Linked::failed)
    }

    async fn link_there(
        &self,
        caller: &Caller,
        file: &Handle,
        (dir, name): Place<'_>,
    ) -> Result<Linked, Status> {
        let passing = self.pass(&[(dir, name)], &[*file]).await?;
        let (origin, epoch) = (self.there(file)?, self.epoch());
        let linked = self.store.link(caller, &origin, &passing.dirs[0], name).await;
        let (now, mut state) = (self.now(), self.state.lock());
        if let Err(status) = linked.result {
            state.failed_name((dir, name), status);
        } else {
            state.passed_name(dir, name, Some(*file), now);
            // Its times and links are the origin's.
            match state.nodes.find_mut(file).filter(|node| node.is_pending()) {
                Some(node) => node.attr.links += 1,
                None => state.nodes.remove(file),
            }
        }
        drop(state);
        let attr = linked.attr.map(|attr| self.tell(file, attr, epoch));
        let around = self.reported_around(dir, linked.dir, epoch, Passed::Names { dirs: 0 });
        Ok(Linked { attr, dir: around, ..linked })
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
        names.is_some_and(Names::are_free)
            // The origin may be making something there.
            && !state.busy.iter().any(|thing| matches!(thing, Thing::Name(dir, _) if dir == child))
    };
    (!is_sticky || caller.uid == 0) && node.is_dir() == is_dir && (!is_dir || is_empty())
}
