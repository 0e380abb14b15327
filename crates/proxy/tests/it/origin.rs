//! An origin in memory: each call takes a network round trip, or waits while the origin is away. It
//! outlives the proxies before it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

use bytes::Bytes;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::Nanos;
use server::durable::Durable;
use server::store::layer::Layer;
use server::store::mem::MemStore;
use server::store::{
    Changed, Entry, Extent, Linked, ListFrom, Listed, Looked, Node, Properties, Renamed, Sink,
    Store, Written,
};
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, SetTime, Stability, Status, Time, Wcc,
};

/// A change, as far as it decides whether the origin refuses it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Requested<'a> {
    /// CREATE, MKDIR and SYMLINK.
    Make(&'a [u8]),
    Remove(&'a [u8]),
    /// To this name.
    Rename(&'a [u8]),
    Write(&'a Handle, u64),
    Set(&'a SetAttr),
}

type Refuses = dyn Fn(Requested<'_>) -> Option<Status> + Send;

/// See the module's head; clones are the same origin.
#[derive(Clone)]
pub(crate) struct Origin {
    pub(crate) files: Arc<MemStore>,
    clock: Clock,
    random: Arc<Mutex<fastrand::Rng>>,
    pub(crate) latency: Nanos,
    pub(crate) is_away: Arc<AtomicBool>,
    /// Its times are whole microseconds.
    pub(crate) is_coarse: Arc<AtomicBool>,
    /// Its disk is not mounted.
    pub(crate) is_stale: Arc<AtomicBool>,
    /// GETATTR of this file is to be tried later.
    pub(crate) puts_off: Arc<Mutex<Option<Handle>>>,
    /// It takes root for nobody.
    pub(crate) squashes_root: Arc<AtomicBool>,
    /// It has no ACCESS: what is granted is a guess by the mode.
    pub(crate) guesses_rights: Arc<AtomicBool>,
    /// Bits of the mode that a default ACL of every directory withholds.
    pub(crate) withholds: Arc<AtomicU32>,
    /// An ACL denies this user all that he does not own, whatever its mode is.
    pub(crate) denied: Arc<Mutex<Option<u32>>>,
    refuses: Arc<Mutex<Box<Refuses>>>,
    /// The longest that a file may be.
    pub(crate) length_max: Arc<AtomicU64>,
    /// Bits that all of its cookies have.
    pub(crate) cookie_bits: Arc<AtomicU64>,
    /// Of this directory, if not of all.
    pub(crate) part: Option<Handle>,
}

impl Origin {
    pub(crate) fn new(clock: &Clock, seed: u64, latency: Nanos) -> Self {
        Self {
            files: Arc::new(testkit::memory_store(clock)),
            clock: clock.clone(),
            random: Arc::new(Mutex::new(fastrand::Rng::with_seed(seed))),
            latency,
            is_away: Arc::default(),
            is_coarse: Arc::default(),
            is_stale: Arc::default(),
            puts_off: Arc::default(),
            squashes_root: Arc::default(),
            guesses_rights: Arc::default(),
            withholds: Arc::default(),
            denied: Arc::default(),
            refuses: Arc::new(Mutex::new(Box::new(|_| None))),
            length_max: Arc::new(AtomicU64::new(i64::MAX.unsigned_abs())),
            cookie_bits: Arc::default(),
            part: None,
        }
    }

    /// From now on, it refuses these.
    pub(crate) fn refuse(&self, which: impl Fn(Requested<'_>) -> Option<Status> + Send + 'static) {
        *self.refuses.lock() = Box::new(which);
    }

    fn taken_for(&self, caller: &Caller) -> Caller {
        const NOBODY: u32 = 65_534;
        match caller.uid == 0 && self.squashes_root.load(Ordering::Relaxed) {
            true => Caller { uid: NOBODY, gid: NOBODY, gids: Vec::new() },
            false => caller.clone(),
        }
    }

    /// What is made with these attributes gets those.
    fn inherited(&self, set: SetAttr) -> SetAttr {
        let withheld = self.withholds.load(Ordering::Relaxed);
        SetAttr { mode: set.mode.map(|mode| mode & !withheld), ..set }
    }

    async fn denies(&self, caller: &Caller, file: &Handle) -> bool {
        let is_denied = *self.denied.lock() == Some(caller.uid);
        is_denied && self.files.attr(caller, file).await.is_ok_and(|attr| attr.uid != caller.uid)
    }

    async fn refuses(&self, requested: Requested<'_>) -> Option<Status> {
        let length = match requested {
            Requested::Write(_, offset) => offset,
            Requested::Set(set) => set.size.unwrap_or(0),
            _ => 0,
        };
        let is_long = length > self.length_max.load(Ordering::Relaxed);
        let status =
            (self.refuses.lock())(requested).or_else(|| is_long.then_some(Status::TooLarge));
        if status.is_some() {
            self.passes().await;
        }
        status
    }

    async fn passes(&self) {
        while self.is_away.load(Ordering::Relaxed) {
            self.clock.sleep(Nanos::from_millis(100)).await;
        }
        let span = self.random.lock().u64(0..=2 * self.latency.as_nanos());
        if span > 0 {
            self.clock.sleep(Nanos::from_nanos(span)).await;
        }
    }
}

trait Refused {
    fn refused(status: Status) -> Self;
}

impl<T> Refused for Result<T, Status> {
    fn refused(status: Status) -> Self {
        Err(status)
    }
}

macro_rules! refused {
    ($($reply:ty),*) => {
        $(impl Refused for $reply {
            fn refused(status: Status) -> Self {
                Self::failed(status)
            }
        })*
    };
}

refused!(
    Changed<()>,
    Changed<Node>,
    Changed<Written>,
    Changed<Durable>,
    Looked<Access>,
    Looked<Extent>,
    Looked<Listed>,
    Looked<Node>,
    Looked<Properties>,
    Renamed,
    Linked
);

macro_rules! round_trip {
    ($self:ident, $caller:ident, $call:expr) => {{
        let $caller = &$self.taken_for($caller);
        $self.passes().await;
        if $self.is_stale.load(Ordering::Relaxed) {
            return Refused::refused(Status::Stale);
        }
        let looked = $call.await;
        $self.passes().await;
        looked
    }};
}

impl Layer for Origin {
    type Beneath = MemStore;

    fn beneath(&self) -> &MemStore {
        &self.files
    }

    fn root(&self) -> Handle {
        self.part.unwrap_or_else(|| self.files.root())
    }

    async fn attr(&self, caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        if *self.puts_off.lock() == Some(*handle) {
            self.passes().await;
            return Err(Status::Jukebox);
        }
        round_trip!(self, caller, self.files.attr(caller, handle))
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        set: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        if let Some(status) = self.refuses(Requested::Set(&set)).await {
            return Changed::failed(status);
        }
        let set = match set.modified {
            SetTime::To(Time { secs, nanos }) if self.is_coarse.load(Ordering::Relaxed) => {
                let modified = SetTime::To(Time { secs, nanos: nanos / 1000 * 1000 });
                SetAttr { modified, ..set }
            }
            _ => set,
        };
        round_trip!(self, caller, self.files.set_attr(caller, handle, set, guard))
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        round_trip!(self, caller, self.files.lookup(caller, dir, name))
    }

    async fn access(&self, caller: &Caller, handle: &Handle, requested: Access) -> Looked<Access> {
        let guesses = Layer::guesses_rights(self).then(|| caller.clone());
        round_trip!(self, caller, {
            let caller = guesses.as_ref().unwrap_or(caller);
            let is_denied = self.denies(caller, handle).await;
            self.files.access(caller, handle, if is_denied { Access(0) } else { requested })
        })
    }

    fn guesses_rights(&self) -> bool {
        self.guesses_rights.load(Ordering::Relaxed)
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        if self.denies(caller, handle).await {
            self.passes().await;
            return Looked::failed(Status::Access);
        }
        round_trip!(self, caller, self.files.read(caller, handle, offset, count))
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        if self.denies(caller, handle).await {
            self.passes().await;
            return Changed::failed(Status::Access);
        }
        if let Some(status) = self.refuses(Requested::Write(handle, offset)).await {
            // A full disk takes what there is room for.
            let wcc = match status {
                Status::NoSpace => {
                    let half = data.slice(..data.len() / 2);
                    self.files.write(caller, handle, offset, half, stability).await.wcc
                }
                _ => Wcc::default(),
            };
            return Changed { wcc, result: Err(status) };
        }
        round_trip!(self, caller, self.files.write(caller, handle, offset, data, stability))
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Changed<Durable> {
        round_trip!(self, caller, self.files.commit(caller, handle, offset, count))
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        if let Some(status) = self.refuses(Requested::Make(name)).await {
            return Changed::failed(status);
        }
        let how = match how {
            CreateHow::Guarded(set) => CreateHow::Guarded(self.inherited(set)),
            CreateHow::Unchecked(set) => CreateHow::Unchecked(self.inherited(set)),
            how @ CreateHow::Exclusive(_) => how,
        };
        round_trip!(self, caller, self.files.create(caller, dir, name, how))
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        set: SetAttr,
    ) -> Changed<Node> {
        if let Some(status) = self.refuses(Requested::Make(name)).await {
            return Changed::failed(status);
        }
        let set = self.inherited(set);
        round_trip!(self, caller, self.files.make_dir(caller, dir, name, set))
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        set: SetAttr,
    ) -> Changed<Node> {
        if let Some(status) = self.refuses(Requested::Make(name)).await {
            return Changed::failed(status);
        }
        round_trip!(self, caller, self.files.symlink(caller, dir, name, target, set))
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        if let Some(status) = self.refuses(Requested::Remove(name)).await {
            return Changed::failed(status);
        }
        round_trip!(self, caller, self.files.remove(caller, dir, name))
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        if let Some(status) = self.refuses(Requested::Remove(name)).await {
            return Changed::failed(status);
        }
        round_trip!(self, caller, self.files.remove_dir(caller, dir, name))
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        if let Some(status) = self.refuses(Requested::Rename(to_name)).await {
            return Renamed { from: Wcc::default(), to: Wcc::default(), result: Err(status) };
        }
        round_trip!(self, caller, self.files.rename(caller, from_dir, from_name, to_dir, to_name))
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        round_trip!(self, caller, self.files.link(caller, handle, dir, name))
    }

    async fn properties(&self, caller: &Caller, handle: &Handle) -> Looked<Properties> {
        let looked = round_trip!(self, caller, self.files.properties(caller, handle));
        let file_size_max = self.length_max.load(Ordering::Relaxed);
        let result = looked.result.map(|looked| Properties { file_size_max, ..looked });
        Looked { attr: looked.attr, result }
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        let bits = self.cookie_bits.load(Ordering::Relaxed);
        let from = ListFrom { cookie: from.cookie & !bits, ..from };
        let mut sink = |entry: Entry<'_>| sink(Entry { cookie: entry.cookie | bits, ..entry });
        round_trip!(self, caller, self.files.list(caller, dir, from, &mut sink))
    }
}
