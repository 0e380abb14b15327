//! Write-behind that survives crashes (`serve nfs://... --write-back LOG`): a layer over the store
//! that is the origin. A change is answered when its record is stable in the log, and goes to the
//! origin later, many at a time where their order does not matter.
//!
//! ```text
//!   client --call--> naming, changing --take--> state: nodes, order, journal --frame--> log
//!                                                   |                                    |
//!   client <-reply--- seeing: nodes over origin     |            <-------- stable -------'
//!                                                   '--next--> drain --call--> origin --> arrived
//! ```
//!
//! - `record`: what a record says.
//! - `order`: which change has to follow which.
//! - `nodes`, `names`, `extents`: what clients see meanwhile; `rights`: and who.
//! - `aliases`: what files are called that were made here, for good.
//! - `state`: all of it together. Decisions only.
//! - `changing`, `naming`: what clients change; `seeing`: what they ask for; `lengths`: how long a
//!   file may be.
//! - `passing`: calls that are for the origin; `turns`: who goes before whom.
//! - `moving`: names that clients take away, or give another place.
//! - `notes`: the log hears that a change has come there; `forward`: what keeps it from being free.
//! - `drain`: changes go to the origin; `conflicts`: somebody else was there, which `trail` tells
//!   while they go; `beside`: where ours goes then; `aside`: the origin does not take them, and
//!   `refused`: where they are then.
//! - `away`: the origin does not answer.
//! - `lease`: the origin's export has one such proxy at a time.
//! - `recover`: what a log held; `done`: and what of it the origin has already.
//!
//! Whatever cannot be answered here with certainty goes to the origin while the client waits, after
//! the changes that it has to follow.

mod aliases;
mod aside;
mod away;
mod beside;
mod changing;
mod conflicts;
mod describe;
mod done;
mod drain;
mod extents;
mod forward;
mod lease;
mod lengths;
mod medium;
mod moving;
mod names;
mod naming;
mod nodes;
mod notes;
mod open;
mod order;
mod passing;
mod readings;
pub(crate) mod record;
mod recover;
mod refused;
mod rights;
mod seeing;
mod state;
mod trail;
mod turns;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use bytes::Bytes;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use server::durable::{Committed, Durable};
use server::metrics::Reading;
use server::store::layer::Layer;
use server::store::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Node, Properties, Renamed, Sink, Space,
    Store, Written,
};
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};
use tokio::sync::{Notify, oneshot};

pub use self::aliases::Aliases;
pub use self::conflicts::{Conflict, Event, Gone};
pub use self::lease::{LeaseError, Owner};
pub use self::medium::{InMemory, KeepError, Log, LogDevice};
pub use self::open::{OpenError, owner_name, owner_text};
pub use self::recover::{Held, HeldError};
use self::state::State;

/// How changes are stored and sent.
#[derive(Clone)]
pub struct Options {
    /// Changes under way to the origin at a time.
    pub under_way_max: usize,
    /// How long a caller waits for room; for ever, if not given.
    pub patience: Option<Nanos>,
    /// How long the log's note that a change has come to the origin waits for others to share a
    /// frame with.
    pub note_within: Nanos,
    /// A change is sent when clients have changed nothing for so long.
    pub gather_within: Nanos,
    /// How long it waits at most for that, so that sending takes no time from them.
    pub rest_within: Nanos,
    /// How much later than its proxy was killed the origin may still execute a call: the next proxy
    /// begins after that with what the log held, and serves nothing before.
    pub late_max: Nanos,
    /// Bytes of the log in use from which on changes that wait for long are written again; half of
    /// it, if not given.
    pub again_above: Option<u64>,
    /// Whose lease is in the origin's export; none is taken in worlds that have one proxy.
    pub owner: Option<Owner>,
    /// Hears of what nobody should miss.
    pub hear: Arc<dyn Fn(&Event) + Send + Sync>,
    /// Mistakes, for tests of tests.
    pub mistake: Option<Mistake>,
}

/// What simulations have to find.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Mistake {
    /// Changes are answered before they are stable in the log.
    AnswerEarly,
    /// Changes go to the origin as they come, whatever they have to follow.
    AnyOrder,
    /// A file that the origin has made gets the origin's handle and number.
    ForgetNames,
    /// What follows a change goes to the origin before the log has noted that one.
    FollowEarly,
}

impl std::fmt::Debug for Options {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Options")
            .field("under_way_max", &self.under_way_max)
            .finish_non_exhaustive()
    }
}

impl Default for Options {
    /// 128 calls under way: 12,800 a second behind 10 ms.
    fn default() -> Self {
        Self {
            under_way_max: 128,
            patience: None,
            note_within: Nanos::from_millis(10),
            gather_within: Nanos::from_millis(10),
            rest_within: Nanos::from_secs(1),
            // A guess: many times what an origin takes for a call, and little beside a restart.
            late_max: Nanos::from_secs(2),
            again_above: None,
            owner: None,
            hear: Arc::new(|_| ()),
            mistake: None,
        }
    }
}

/// See the module's head; clones are the same.
pub struct WriteBack<S> {
    inner: Arc<Inner<S>>,
}

impl<S> Clone for WriteBack<S> {
    fn clone(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }
}

impl<S> std::fmt::Debug for WriteBack<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("WriteBack").finish_non_exhaustive()
    }
}

/// How long an end waits for an origin that is to give up the lease.
const END_MAX: Nanos = Nanos::from_secs(5);

struct Inner<S> {
    store: S,
    /// What is exported.
    root: Handle,
    /// Its number at the origin.
    root_fileid: u64,
    clock: Clock,
    options: Options,
    verifier: Verifier,
    /// See [`aliases::mark`].
    mark: u32,
    aliases: Arc<Aliases>,
    /// Guards what is on its way; held for a look or a change of it, never over a call. It may be
    /// held when the aliases are taken, and not the other way round.
    state: Mutex<State>,
    device: Box<dyn LogDevice>,
    /// Callers who are themselves at the origin; `false`: the origin takes them for somebody else.
    callers: Mutex<HashMap<Caller, bool>>,
    /// The origin has made a directory with the set-group-ID bit in one that has it.
    dirs_keep_set_gid: AtomicBool,
    lengths: lengths::Lengths,
    /// Something has come to the origin, or there is room.
    changed: Notify,
    /// There is something to write to the log, to send, or to forget there; somebody waits for the
    /// latter.
    to_write: Notify,
    to_send: Notify,
    to_forget: Notify,
    hurried: Notify,
    /// The origin is away.
    left: Notify,
}

impl<S: Store> Inner<S> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The time of day.
    fn time(&self) -> Time {
        let since = self.clock.since_1970();
        let secs = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Time { secs, nanos: since.subsec_nanos() }
    }

    /// What a client's handle means here: each file has one.
    fn id(&self, handle: &Handle) -> Handle {
        match aliases::is_ours(handle) {
            true => *handle,
            false => self.of_origin(&self.store.full(handle)),
        }
    }

    /// What clients call this file of the origin's.
    fn of_origin(&self, origin: &Handle) -> Handle {
        match self.options.mistake {
            Some(Mistake::ForgetNames) => *origin,
            _ => self.aliases.of_origin(origin).map_or(*origin, |(ours, _)| ours),
        }
    }

    /// What the origin calls this file, if it has it.
    fn origin(&self, id: &Handle) -> Result<Option<Handle>, Status> {
        if !aliases::is_ours(id) {
            return Ok(Some(*id));
        }
        if let Some(node) = self.state.lock().nodes.find(id) {
            return Ok(node.origin);
        }
        self.aliases.find(id).map(|alias| Some(alias.origin)).ok_or(Status::Stale)
    }

    /// The same of a file that it has.
    fn there(&self, id: &Handle) -> Result<Handle, Status> {
        self.origin(id)?.ok_or(Status::Stale)
    }

    /// The same after it has been made.
    async fn made_origin(&self, id: &Handle) -> Result<Handle, Status> {
        // What it never makes is not waited for.
        let is_made = |node: &nodes::Node| node.origin.is_some() || node.pending == 0;
        self.until(|state| match state.nodes.find(id).is_none_or(is_made) {
            true => Some(()),
            false => {
                self.hurry(state);
                None
            }
        })
        .await?;
        self.there(id)
    }

    /// What `look` finds, now or when something has changed.
    async fn until<T>(&self, mut look: impl FnMut(&mut State) -> Option<T>) -> Result<T, Status> {
        let found = pin!(async {
            loop {
                let mut changed = pin!(self.changed.notified());
                changed.as_mut().enable();
                if let Some(found) = look(&mut self.state.lock()) {
                    return found;
                }
                changed.await;
            }
        });
        match self.options.patience {
            None => Ok(found.await),
            Some(patience) => {
                self.clock.within(patience, found).await.map_err(|_elapsed| Status::Jukebox)
            }
        }
    }

    /// A file of the origin's as clients see it.
    fn tell(&self, id: &Handle, returned: Attr, epoch: u64) -> Attr {
        let fileid = match self.options.mistake {
            Some(Mistake::ForgetNames) => returned.fileid,
            _ => self.aliases.fileid_of(id, returned.fileid),
        };
        self.state.lock().learn(id, Attr { fileid, ..returned }, epoch)
    }

    fn tell_node(&self, node: &Node, epoch: u64) -> Node {
        let id = self.of_origin(&node.handle);
        Node { handle: id, attr: self.tell(&id, node.attr, epoch) }
    }

    fn epoch(&self) -> u64 {
        self.state.lock().epoch
    }

    fn durable(&self) -> Durable {
        // Whoever calls this has waited for the log's frame, or for the origin.
        let Ok(durable) = Durable::after_log(Ok::<_, std::convert::Infallible>(()), self.verifier);
        durable
    }
}

impl<S: Store> WriteBack<S> {
    /// Runs a change to its end, also when its caller goes away: what came of it is
    /// to be known here.
    async fn to_its_end<T, F>(&self, work: impl FnOnce(Arc<Inner<S>>) -> F) -> T
    where
        T: Send + 'static,
        F: Future<Output = T> + Send + 'static,
    {
        let (done, hears) = oneshot::channel();
        let work = work(Arc::clone(&self.inner));
        self.inner.clock.spawn(async move {
            done.send(work.await).ok();
        });
        match hears.await {
            Ok(outcome) => outcome,
            // The process is about to end.
            Err(_) => std::future::pending().await,
        }
    }

    async fn removed(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        is_dir: bool,
    ) -> Changed<()> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let remove = move |inner: Arc<Inner<S>>| async move {
            inner.remove(&caller, &dir, &name, is_dir).await
        };
        self.to_its_end(remove).await
    }

    /// Waits until everything has come to the origin, at most so long; what is left.
    pub async fn drained(&self, limit: Option<Nanos>) -> usize {
        let inner = &self.inner;
        let all = inner.settled_all();
        match limit {
            None => all.await,
            Some(limit) => drop(inner.clock.within(limit, pin!(all)).await),
        }
        inner.state.lock().ops.len()
    }

    /// Ends in order, if nothing is on its way: then the origin's export is anybody's. Whether that
    /// is so, within five seconds: an origin that is gone keeps nobody from ending.
    pub async fn end(&self) -> bool {
        if self.pending() > 0 {
            return false;
        }
        let ended = pin!(async {
            self.inner.noted_all().await;
            self.inner.end_lease().await
        });
        self.inner.clock.within(END_MAX, ended).await.unwrap_or(false)
    }

    /// Changes that are on their way.
    pub fn pending(&self) -> usize {
        self.inner.state.lock().ops.len()
    }
}

impl<S: Store> Layer for WriteBack<S> {
    type Beneath = S;

    fn beneath(&self) -> &S {
        &self.inner.store
    }

    fn verifier(&self) -> Verifier {
        self.inner.verifier
    }

    fn full(&self, handle: &Handle) -> Handle {
        self.inner.id(handle)
    }

    fn brief(&self, handle: &Handle) -> Option<Handle> {
        // Ours are short.
        (!aliases::is_ours(handle)).then(|| self.inner.store.brief(handle)).flatten()
    }

    fn unstored_handles(&self) -> u64 {
        self.inner.aliases.unstored() as u64 + self.inner.store.unstored_handles()
    }

    fn readings(&self) -> Vec<Reading> {
        self.inner.all_readings()
    }

    async fn tend(&self, now: Instant) {
        self.inner.tend();
        self.inner.store.tend(now).await;
    }

    async fn attr(&self, caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        self.inner.attr(caller, handle).await
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let (caller, handle) = (caller.clone(), *handle);
        let set = move |inner: Arc<Inner<S>>| async move {
            inner.set_attr(&caller, &handle, changes, guard).await
        };
        self.to_its_end(set).await
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.inner.lookup(caller, dir, name).await
    }

    async fn access(&self, caller: &Caller, handle: &Handle, requested: Access) -> Looked<Access> {
        self.inner.access(caller, handle, requested).await
    }

    async fn read_link(&self, caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        self.inner.read_link(caller, handle).await
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        self.inner.read(caller, handle, offset, count).await
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        _stability: Stability,
    ) -> Changed<Written> {
        let count = u32::try_from(data.len()).unwrap_or(u32::MAX);
        let (caller, handle) = (caller.clone(), *handle);
        let write = move |inner: Arc<Inner<S>>| async move {
            inner.write(&caller, &handle, offset, data).await
        };
        let Changed { wcc, result } = self.to_its_end(write).await;
        // However it was requested, it is as stable as can be.
        let written = |durable| {
            let committed = Committed::Stable(Stability::FileSync, durable);
            Written { count, committed }
        };
        Changed { wcc, result: result.map(written) }
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        _offset: u64,
        _count: u32,
    ) -> Changed<Durable> {
        self.inner.commit(caller, handle).await
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.create(&caller, &dir, &name, how).await
        };
        self.to_its_end(make).await
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.make_dir(&caller, &dir, &name, attrs).await
        };
        self.to_its_end(make).await
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let target = Bytes::copy_from_slice(target);
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.symlink(&caller, &dir, &name, &target, attrs).await
        };
        self.to_its_end(make).await
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let (caller, dir, name) = (caller.clone(), *dir, Bytes::copy_from_slice(name));
        let make = move |inner: Arc<Inner<S>>| async move {
            inner.make_node(&caller, &dir, &name, what, attrs).await
        };
        self.to_its_end(make).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.removed(caller, dir, name, false).await
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        self.removed(caller, dir, name, true).await
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        let (caller, from_dir, to_dir) = (caller.clone(), *from_dir, *to_dir);
        let (from, to) = (Bytes::copy_from_slice(from_name), Bytes::copy_from_slice(to_name));
        let rename = move |inner: Arc<Inner<S>>| async move {
            inner.rename(&caller, (&from_dir, &from), (&to_dir, &to)).await
        };
        self.to_its_end(rename).await
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        let (caller, file, dir) = (caller.clone(), *handle, *dir);
        let name = Bytes::copy_from_slice(name);
        let link = move |inner: Arc<Inner<S>>| async move {
            inner.link(&caller, &file, &dir, &name).await
        };
        self.to_its_end(link).await
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        self.inner.list(caller, dir, from, sink).await
    }

    /// What was answered is stable.
    async fn settle(&self, _handle: &Handle) -> Result<(), Status> {
        Ok(())
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        let origin = self.inner.origin(handle).ok().flatten().unwrap_or(self.inner.root);
        let Looked { attr, result } = self.inner.store.space(caller, &origin).await;
        Looked { attr: self.inner.tell_other(handle, attr), result }
    }

    async fn properties(&self, caller: &Caller, handle: &Handle) -> Looked<Properties> {
        let origin = self.inner.origin(handle).ok().flatten().unwrap_or(self.inner.root);
        let Looked { attr, result } = self.inner.store.properties(caller, &origin).await;
        Looked { attr: self.inner.tell_other(handle, attr), result }
    }
}
