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
//! - `nodes`, `names`, `extents`: what clients see meanwhile; `rights`, `granted`: and who;
//!   `modes`: what the origin leaves of a mode.
//! - `aliases`: what files are called that were made here, for good.
//! - `state`: all of it together. Decisions only.
//! - `changing`, `naming`: what clients change; `seeing`: what they ask for; `lengths`: how long a
//!   file may be.
//! - `passing`: calls that are for the origin; `turns`: who goes before whom.
//! - `moving`: names that clients take away, or give another place.
//! - `frames`: the log is written; `forward`: what keeps it from being free.
//! - `drain`: changes go to the origin, and what `came` of them; `conflicts`: somebody else was
//!   there, which `trail` tells while they go; `beside`: where ours goes then; `aside`: the origin
//!   does not take them, and `refused`: where they are then; `events`: what is reported of it.
//! - `away`: the origin does not answer.
//! - `lease`: the origin's export has one such proxy at a time; `upper`: and what it is a part of.
//! - `recover`: what a log held; `done`: and what of it the origin has already; `killed`: and
//!   whether it has it from us.
//!
//! Whatever cannot be answered here with certainty goes to the origin while the client waits, after
//! the changes that it has to follow.

mod aliases;
mod aside;
mod away;
mod beside;
mod came;
mod changing;
mod conflicts;
mod describe;
mod done;
mod drain;
mod events;
mod extents;
mod forward;
mod frames;
mod granted;
mod killed;
mod layer;
mod lease;
mod lengths;
mod medium;
mod modes;
mod moving;
mod names;
mod naming;
mod nodes;
mod open;
mod options;
mod order;
mod passing;
mod readings;
pub(crate) mod record;
mod recover;
mod refused;
mod rights;
mod seeing;
mod state;
mod touches;
mod trail;
mod turns;
mod upper;
mod verifiers;

use std::collections::HashMap;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use server::durable::Durable;
use server::store::{Node, Store};
use server::types::{Attr, Caller, Handle, Status, Time, Verifier};
use tokio::sync::Notify;

pub use self::aliases::Aliases;
pub use self::events::{Conflict, Event, Gone};
pub use self::lease::LeaseError;
pub use self::medium::{InMemory, KeepError, Log, LogDevice};
pub use self::open::{OpenError, owner_name, owner_text};
pub use self::options::{Hear, Mistake, Options, Owner};
pub use self::recover::{Held, HeldError};
use self::state::State;

/// What has become of the changes that are not on their way any more.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Settled {
    /// The origin has them.
    pub brought: u64,
    /// They were not carried out, or not in full.
    pub lost: u64,
    /// That, and versions that are beside others at the origin.
    pub conflicts: u64,
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
    /// The longest file of each file system, by its fsid, once the origin has returned it.
    lengths: Mutex<HashMap<u64, u64>>,
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

/// The time of day.
fn time_of(clock: &Clock) -> Time {
    let since = clock.since_1970();
    let secs = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
    Time { secs, nanos: since.subsec_nanos() }
}

impl<S: Store> Inner<S> {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    /// The time of day.
    fn time(&self) -> Time {
        time_of(&self.clock)
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

    /// What has become of all others.
    pub fn settled(&self) -> Settled {
        let counts = self.inner.state.lock().counts;
        let (brought, lost) = (counts.arrived - counts.lost, counts.lost);
        Settled { brought, lost, conflicts: counts.conflicts }
    }

    /// Why changes wait that the origin does not take; `Away`: it does not answer.
    pub fn trouble(&self) -> Option<Status> {
        self.inner.state.lock().oldest_trouble()
    }

    /// Changes that are on their way.
    pub fn pending(&self) -> usize {
        self.inner.state.lock().ops.len()
    }
}
