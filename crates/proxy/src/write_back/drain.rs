//! Changes go to the origin.

use std::pin::pin;
use std::sync::Arc;

use bytes::Bytes;
use perf::units::Nanos;
use server::durable::Committed;
use server::store::{Changed, Node as StoreNode, Store};
use server::types::{
    Attr, Before, Caller, CreateHow, Handle, SetAttr, SetTime, Stability, Status, Time, Wcc,
};

use super::aliases::Alias;
use super::aside::{GIVE_UP, is_for_good};
use super::away::PATIENCE;
use super::conflicts::{Conflict, Event, Gone, Sent};
use super::describe::describe;
use super::record::{Change, Entry, Made, Outcome};
use super::state::file;
use super::{Inner, Mistake};

/// When a change is tried again that the origin has refused, at first and at most.
const AGAIN: Nanos = Nanos::from_millis(500);
const AGAIN_MAX: Nanos = Nanos::from_secs(30);

/// What came of a change, for the log and for the nodes.
#[derive(Default)]
pub(super) struct Came {
    pub(super) outcome: Outcome,
    /// Directories, as the change has left them.
    pub(super) dirs: Vec<(Handle, Wcc)>,
    /// A file that is not served from here any more.
    pub(super) dropped: Option<Handle>,
    /// Nothing else was under way with the file.
    pub(super) is_last: bool,
    /// So many are of the file's [`answered`](super::nodes::Node::answered).
    pub(super) answered: usize,
    /// The origin has its names and files otherwise than clients were shown: it tells.
    pub(super) differs: bool,
}

impl Came {
    pub(super) fn dirs(dirs: impl IntoIterator<Item = (Handle, Wcc)>) -> Self {
        Self { dirs: dirs.into_iter().collect(), ..Self::default() }
    }

    /// The change was not made, or only in part.
    fn differing(dropped: Handle) -> Self {
        Self { dropped: Some(dropped), differs: true, ..Self::default() }
    }
}

impl<S: Store> Inner<S> {
    /// Sends what is due, so many at a time.
    pub(super) async fn send(self: Arc<Self>) {
        loop {
            let (due, wait) = self.due();
            for number in due {
                self.clock.spawn(Arc::clone(&self).carry_out(number));
            }
            let woken = self.to_send.notified();
            match wait {
                Some(wait) => drop(self.clock.within(wait, pin!(woken)).await),
                None => woken.await,
            }
        }
    }

    /// What is due, or how long it waits still. They go many at a time, for less work on either
    /// side, and while clients are idle: once the oldest goes, so do all others.
    fn due(&self) -> (Vec<u64>, Option<Nanos>) {
        let (mut due, mut state) = (Vec::new(), self.state.lock());
        let wait = state.gathers(&self.options, self.now());
        let is_time = wait.is_none() && !state.is_fenced;
        while is_time && state.under_way < self.options.under_way_max {
            let Some(number) = state.next() else { break };
            due.push(number);
        }
        (due, wait)
    }

    /// Brings a change to the origin, however long that takes.
    async fn carry_out(self: Arc<Self>, number: u64) {
        let (mut pause, mut refused_since) = (AGAIN, None);
        let mut to_join = match self.goes_aside(number) {
            true => Vec::new(),
            false => self.state.lock().join(number),
        };
        loop {
            // What is refused is tried again alone.
            let joined = std::mem::take(&mut to_join);
            if self.goes_aside(number)
                && let Some(came) = self.set_aside(number, None).await
            {
                return self.arrived(number, &joined, came);
            }
            let mut carrying = pin!(self.carry(number, &joined));
            let carried = match self.clock.within(PATIENCE, carrying.as_mut()).await {
                Ok(carried) => carried,
                Err(_elapsed) => {
                    self.is_away(&mut self.state.lock(), true);
                    self.changed.notify_waiters();
                    carrying.await
                }
            };
            let status = match carried {
                Ok(came) => {
                    self.state.lock().is_away = false;
                    return self.arrived(number, &joined, came);
                }
                Err(status) => status,
            };
            if !joined.is_empty() {
                // Perhaps it does not take them as one. They may have been executed.
                self.state.lock().part(number, &joined);
                continue;
            }
            self.refused(number, status);
            let now = self.now();
            let since = *refused_since.get_or_insert(now);
            if !is_for_good(status) {
                refused_since = None;
            } else if now.since(since) >= GIVE_UP
                && let Some(came) = self.set_aside(number, Some(status)).await
            {
                return self.arrived(number, &joined, came);
            }
            self.clock.sleep(pause).await;
            pause = (pause + pause).min(AGAIN_MAX);
        }
    }

    fn refused(&self, number: u64, status: Status) {
        let mut state = self.state.lock();
        state.counts.tried_again += 1;
        self.is_away(&mut state, status == Status::Jukebox);
        let Some(text) = state.ops.get(&number).map(|op| describe(&op.entry.change)) else {
            return;
        };
        let is_news = !state.trouble(number, status) && status != Status::Jukebox;
        drop(state);
        // Nobody waits behind who waits for this.
        self.changed.notify_waiters();
        if is_news {
            (self.options.hear)(&Event::Refused { change: text, status });
        }
    }

    fn arrived(&self, number: u64, joined: &[u64], came: Came) {
        let now = self.now();
        let mut state = self.state.lock();
        let Came { outcome, dirs, dropped, is_last, answered, differs } = came;
        if let Some(node) = outcome.file.and_then(|file| state.nodes.find_mut(&file)) {
            node.answered = node.answered.saturating_sub(answered);
            node.left(outcome.after, is_last);
        }
        for (dir, wcc) in &dirs {
            if let Some(node) = state.nodes.find_mut(dir) {
                node.left(wcc.after.as_ref().map(Before::from), false);
            }
        }
        let is_last_beside = |file: &Handle| {
            let node = state.nodes.find(file);
            node.is_some_and(|node| {
                (node.beside.is_some() || node.aside.is_some()) && node.pending == 1 + joined.len()
            })
        };
        let file = state.ops.get(&number).and_then(|op| file(&op.entry.change));
        let seen_otherwise = file.filter(is_last_beside);
        let Some(op) = state.arrived(number, now) else { return };
        let joined = joined.iter().filter_map(|next| state.arrived(*next, now).map(|_| *next));
        let joined: Vec<_> = joined.collect();
        state.forget_refused(number, &op.entry.change);
        // Clients see the origin's version again.
        seen_otherwise.into_iter().chain(dropped).for_each(|file| state.forget_file(&file));
        if differs {
            state.forget_shown(&op.entry.change);
        }
        match op.entry.change {
            Change::Make { .. } => state.notes.made.push((number, outcome)),
            _ => state.forget(number, outcome, now),
        }
        joined.iter().for_each(|next| state.forget(*next, outcome, now));
        if self.options.mistake == Some(Mistake::FollowEarly) {
            [number].iter().chain(&joined).for_each(|number| state.order.done(*number));
        }
        drop(state);
        self.to_forget.notify_one();
        self.to_write.notify_one();
        self.to_send.notify_one();
        self.changed.notify_waiters();
    }

    /// One call for a change and those that are joined to it.
    async fn carry(&self, number: u64, joined: &[u64]) -> Result<Came, Status> {
        let Some((mut entry, is_in_doubt)) = self.entry(number) else { return Ok(Came::default()) };
        let others = joined.iter().filter_map(|next| self.entry(*next));
        others.for_each(|(next, _)| entry.join(&next));
        match &entry.change {
            Change::Write { file, offset, data } => {
                self.carry_write(&entry, number, file, *offset, data).await
            }
            Change::Set { file, set } => {
                self.carry_set(&entry, (number, 1 + joined.len()), file, set).await
            }
            Change::Make { dir, name, what, set } => {
                self.carry_made(&entry, (number, is_in_doubt), dir, name, what, set).await
            }
            Change::Remove { dir, name, file, is_dir } => {
                self.carry_removed(&entry, dir, name, file, *is_dir).await
            }
            Change::Rename { from, to, file, over } => {
                self.carry_renamed(&entry, number, from, to, file, over.as_ref()).await
            }
        }
    }

    pub(super) fn entry(&self, number: u64) -> Option<(Entry, bool)> {
        let state = self.state.lock();
        state.ops.get(&number).map(|op| (op.entry.clone(), op.is_in_doubt))
    }

    async fn carry_write(
        &self,
        entry: &Entry,
        number: u64,
        file: &Handle,
        offset: u64,
        data: &Bytes,
    ) -> Result<Came, Status> {
        let mut sent = self.target(entry, number, file).await?;
        loop {
            let (caller, target) = (&entry.caller, sent.target);
            let written =
                self.store.write(caller, &target, offset, data.clone(), Stability::FileSync);
            let Changed { wcc, result } = written.await;
            self.answered(file, &sent, &wcc, result.as_ref().err().copied());
            match result {
                Ok(written) => {
                    if matches!(written.committed, Committed::Unstable(_)) {
                        // RFC 1813 section 3.3.7 forbids it.
                        return Err(Status::ServerFault);
                    }
                    return Ok(self.changed_file(entry, 1, file, &target, wcc).await);
                }
                Err(Status::Stale | Status::BadHandle) => {
                    self.has_gone().await?;
                    sent = Sent::unobserved(self.beside_gone(entry, number, file, &target).await?);
                }
                Err(status) => {
                    self.tried(entry, file, &target, wcc.after).await;
                    return Err(status);
                }
            }
        }
    }

    /// A WRITE has failed, and left the file so: a full disk may have taken a part of it, and
    /// changes the modification time in any case. Whoever comes after a crash would take that for
    /// somebody else's change, so the time is set back.
    async fn tried(&self, entry: &Entry, file: &Handle, target: &Handle, after: Option<Attr>) {
        let Some(mut after) = after else { return };
        if self.origin(file).ok().flatten() != Some(*target) {
            return;
        }
        let base = self.state.lock().nodes.find(file).and_then(|node| node.base);
        let moved = |base: &Before| base.size == after.size && base.modified != after.modified;
        if let Some(base) = base.filter(moved) {
            let set = SetAttr { modified: SetTime::To(base.modified), ..SetAttr::default() };
            let owner = Caller { uid: after.uid, gid: after.gid, gids: Vec::new() };
            for caller in [&entry.caller, &owner] {
                let guard = Some(after.changed);
                let back = self.set_there(caller, file, target, set, guard).await;
                match (back.result, back.wcc.after) {
                    (Ok(()), Some(attr)) => {
                        after = attr;
                        break;
                    }
                    // Another WRITE has failed meanwhile, and does the same.
                    (Err(Status::NotSync), _) => return,
                    _ => {}
                }
            }
        }
        if let Some(node) = self.state.lock().nodes.find_mut(file) {
            node.left(Some(Before::from(&after)), false);
        }
    }

    async fn carry_set(
        &self,
        entry: &Entry,
        (number, changes): (u64, usize),
        file: &Handle,
        set: &SetAttr,
    ) -> Result<Came, Status> {
        let sent = match self.target(entry, number, file).await {
            Ok(sent) => sent,
            Err(Status::Stale) => return self.set_gone(&entry.change, file).await,
            Err(status) => return Err(status),
        };
        let (target, sets) = (&sent.target, sent.takes(set));
        if sent.is_theirs() && sets == SetAttr::default() {
            return Ok(self.set_theirs(file, set, &sets));
        }
        let Changed { wcc, result } = self.store.set_attr(&entry.caller, target, sets, None).await;
        self.answered(file, &sent, &wcc, result.err());
        match result {
            Ok(()) if sent.is_theirs() => Ok(self.set_theirs(file, set, &sets)),
            Ok(()) => Ok(self.changed_file(entry, changes, file, target, wcc).await),
            Err(Status::Stale | Status::BadHandle) => self.set_gone(&entry.change, file).await,
            Err(status) => Err(status),
        }
    }

    /// A SETATTR of a file that the origin does not have any more.
    async fn set_gone(&self, change: &Change, file: &Handle) -> Result<Came, Status> {
        self.has_gone().await?;
        self.lost(change, Gone::File);
        Ok(Came { dropped: Some(*file), ..Came::default() })
    }

    /// A SETATTR was carried out on what somebody else has changed; all that it has not done is
    /// reported.
    fn set_theirs(&self, file: &Handle, set: &SetAttr, done: &SetAttr) -> Came {
        let left = SetAttr {
            mode: set.mode.filter(|_| set.mode != done.mode),
            modified: if set.modified == done.modified { SetTime::Keep } else { set.modified },
            ..SetAttr::default()
        };
        if left != SetAttr::default() {
            self.lost(&Change::Set { file: *file, set: left }, Gone::Changed);
        }
        Came { dropped: Some(*file), ..Came::default() }
    }

    /// A file was changed at the origin. If that was the last of what was on its way, it gets the
    /// modification time that clients have seen, which is not that of now. What comes meanwhile
    /// may be answered first, and leaves the time to this one.
    async fn changed_file(
        &self,
        entry: &Entry,
        changes: usize,
        file: &Handle,
        target: &Handle,
        wcc: Wcc,
    ) -> Came {
        let mut after = wcc.after;
        let is_alone = loop {
            let (modified, guard) = match self.owed_time(file, changes, after.as_ref()) {
                Ok(owed) => owed,
                Err(is_alone) => break is_alone,
            };
            let doubts = self.store.doubts();
            let set = self.set_time(&entry.caller, file, target, modified, guard).await;
            let is_in_doubt = self.store.doubts() != doubts;
            if let Some(node) = self.state.lock().nodes.find_mut(file) {
                let is_elsewhere = node.beside.is_some() || node.origin != Some(*target);
                match set {
                    (true, set) => {
                        after = set.or(after);
                        node.owes_time &= node.attr.modified != modified;
                    }
                    // It has the time of what somebody else has written meanwhile; or this one,
                    // by a call that was made twice.
                    _ if is_elsewhere || is_in_doubt => node.owes_time = false,
                    // Perhaps a change of ours that came meanwhile.
                    _ if node.base.is_some_and(|base| Some(base.changed) > guard) => {}
                    // Or one that is done and not answered yet: its reply tells.
                    _ if node.trail.is_under_way() => {}
                    // Its mode, or a name.
                    (_, Some(now)) if after.is_some_and(|after| has_same_bytes(&after, &now)) => {
                        after = Some(now);
                    }
                    _ => node.trail.tear(),
                }
            }
        };
        let is_there = self.origin(file).ok().flatten() == Some(*target);
        let after = after.filter(|_| is_there).as_ref().map(Before::from);
        let is_last = is_alone || matches!(entry.change, Change::Set { .. });
        let outcome = Outcome { file: Some(*file), after };
        Came { outcome, is_last, answered: changes, ..Came::default() }
    }

    /// The modification time that a file is to get now, and when it was changed last by our doing:
    /// what somebody else has changed since keeps its time. `Err`: none, and whether so many
    /// changes, which are one call, are all that are on their way.
    fn owed_time(
        &self,
        file: &Handle,
        changes: usize,
        after: Option<&Attr>,
    ) -> Result<(Time, Option<Time>), bool> {
        let mut state = self.state.lock();
        let Some(node) = state.nodes.find_mut(file) else { return Err(false) };
        let is_alone = node.pending == node.answered + changes;
        if is_alone && node.owes_time && !node.trail.is_torn() {
            let base = node.base.filter(|_| node.beside.is_none()).map(|base| base.changed);
            let guard = after.map(|after| Some(after.changed).max(base));
            return Ok((node.attr.modified, guard.flatten()));
        }
        node.answered += changes;
        Err(is_alone)
    }

    /// Whether the file has it, as far as the caller and the owner may set that, or somebody has
    /// changed it since; and how it is now, if that is known.
    async fn set_time(
        &self,
        caller: &Caller,
        file: &Handle,
        target: &Handle,
        modified: Time,
        guard: Option<Time>,
    ) -> (bool, Option<Attr>) {
        let set = SetAttr { modified: SetTime::To(modified), ..SetAttr::default() };
        let Changed { wcc, result } = self.set_there(caller, file, target, set, guard).await;
        let now = match wcc.after {
            Some(now) => Some(now),
            None => self.store.attr(caller, target).await.ok(),
        };
        let attr = match (result, now) {
            (Err(Status::NotSync), now) => return (false, now),
            (Err(_), Some(attr)) => attr,
            (_, now) => return (true, now),
        };
        // Who may only write sets no time: its owner does, and no other than the WRITE has set.
        let owner = Caller { uid: attr.uid, gid: attr.gid, gids: Vec::new() };
        let Changed { wcc, result } = self.set_there(&owner, file, target, set, guard).await;
        match result {
            Err(Status::NotSync) => (false, wcc.after),
            result => (true, Some(wcc.after.filter(|_| result.is_ok()).unwrap_or(attr))),
        }
    }

    /// A SETATTR of a file beside a change of it.
    async fn set_there(
        &self,
        caller: &Caller,
        file: &Handle,
        target: &Handle,
        set: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let sent = self.sent(file, target);
        let changed = self.store.set_attr(caller, target, set, guard).await;
        self.answered(file, &sent, &changed.wcc, changed.result.err());
        changed
    }

    async fn carry_made(
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
            Ok(node) => Ok(self.made(number, node, Some((*dir, wcc)))),
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

    pub(super) async fn make_at(
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
            Made::File(_) => is_own && found.attr.kind == Regular && found.attr.size == 0,
            Made::Symlink(target) => {
                found.attr.kind == Symlink
                    && self.store.read_link(caller, &found.handle).await.result? == *target
            }
        })
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
    pub(super) fn made(&self, number: u64, node: StoreNode, dir: Option<(Handle, Wcc)>) -> Came {
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

    async fn carry_removed(
        &self,
        entry: &Entry,
        dir: &Handle,
        name: &Bytes,
        file: &Handle,
        is_dir: bool,
    ) -> Result<Came, Status> {
        let gone = || Came { dropped: Some(*file), ..Came::default() };
        let (Ok(Some(there)), Ok(Some(origin))) = (self.origin(dir), self.origin(file)) else {
            return Ok(gone());
        };
        match self.store.lookup(&entry.caller, &there, name).await.result {
            Ok(found) if found.handle != origin => {
                self.lost(&entry.change, Gone::Replaced);
                return Ok(Came::differing(*file));
            }
            Ok(found) if !is_dir && self.is_changed(file, entry, &found.attr) => {
                self.lost(&entry.change, Gone::Changed);
                return Ok(Came::differing(*file));
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
                self.lost(&entry.change, Gone::NotEmpty);
                Ok(Came::differing(*file))
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

    async fn carry_renamed(
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
            self.lost(&entry.change, Gone::File);
            return Ok(Came::differing(*file));
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
                return Ok(Came { dropped: Some(*file), ..Came::default() });
            }
            self.lost(&entry.change, Gone::Replaced);
            return Ok(Came::differing(*file));
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

/// As far as size and time tell.
fn has_same_bytes(one: &Attr, other: &Attr) -> bool {
    (one.size, one.modified) == (other.size, other.modified)
}
