//! Proxies that keep blocks and are killed in the midst of filling: the process alone, or with its
//! machine, whose disk then has only some of what was written lately. The next one goes on with
//! what is left, and its clients come back to it.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use cache::medium::Memory;
use cache::{Cache, Geometry, Limits, Mistake};
use client::session::Session;
use futures_util::future::{Either, select};
use net::call::{self, Rpc};
use net::clock::{Clock, Group};
use parking_lot::Mutex;
use perf::units::Nanos;
use proxy::Handles;
use tempfile::TempDir;
use testkit::outage::Outage;

use super::{Origin, Proxy, caching};

/// A proxy, one life after the other; clones are the same.
#[derive(Clone)]
pub(crate) struct Killed(Arc<Shared>);

struct Shared {
    clock: Clock,
    origin: Origin,
    /// Handles survive.
    state: TempDir,
    /// Of the clients' connections.
    outage: Outage,
    mistake: Option<Mistake>,
    /// Guards the life that it has; none while it is down.
    life: Mutex<Option<Life>>,
    hits_after_kills: AtomicU64,
}

struct Life {
    proxy: Proxy,
    group: Group,
    memory: Memory,
    cache: Cache,
    is_first: bool,
}

impl Killed {
    pub(crate) async fn new(clock: &Clock, origin: &Origin, mistake: Option<Mistake>) -> Self {
        let this = Self(Arc::new(Shared {
            clock: clock.clone(),
            origin: Arc::clone(origin),
            state: tempfile::tempdir().unwrap(),
            outage: Outage::default(),
            mistake,
            life: Mutex::default(),
            hits_after_kills: AtomicU64::new(0),
        }));
        this.begin(Memory::default(), true).await;
        this
    }

    async fn begin(&self, memory: Memory, is_first: bool) {
        let shared = &self.0;
        let (clock, group) = shared.clock.group();
        memory.record();
        // Blocks as small as they can be, and few.
        let limits = Limits { bytes_max: 1 << 20, files_max: 8, ..Limits::default() };
        let geometry = Geometry::of_reads_of(4096);
        let cache = match shared.mistake {
            Some(mistake) => Cache::mistaken(memory.clone(), geometry, limits, mistake),
            None => Cache::in_memory(memory.clone(), geometry, limits),
        };
        let handles = Handles::open("origin:/", Some(shared.state.path())).unwrap();
        let proxy =
            caching(&clock, &shared.origin, (cache.clone(), handles), &Outage::default()).await;
        *shared.life.lock() = Some(Life { proxy, group, memory, cache, is_first });
    }

    /// A session whose connections are made again, to whichever life there is.
    pub(crate) async fn session(&self) -> Session {
        let shared = Arc::clone(&self.0);
        let connect = move |_| {
            let connection = || {
                let life = shared.life.lock();
                life.as_ref().expect("it is down").proxy.connection().0
            };
            std::future::ready(shared.outage.connect(connection))
        };
        let rpc = Rpc::persistent(connect, &self.0.clock, call::Options::stream()).await.unwrap();
        let proxy = Arc::clone(&self.0.life.lock().as_ref().unwrap().proxy);
        proxy.session(rpc).await.unwrap()
    }

    /// Kills it now and then until `work` is done.
    pub(crate) async fn under(&self, work: impl Future<Output = ()>, mut random: fastrand::Rng) {
        let kills = async {
            loop {
                // While it is filled, and when it has not been for a while.
                let millis = if random.bool() { random.u64(..40) } else { random.u64(..10_000) };
                self.0.clock.sleep(Nanos::from_millis(millis)).await;
                self.kill(&mut random).await;
            }
        };
        match select(pin!(work), pin!(kills)).await {
            // None where it was down just then.
            Either::Left(_) => drop(self.end()),
            Either::Right((never, _)) => never,
        }
    }

    async fn kill(&self, random: &mut fastrand::Rng) {
        let shared = &self.0;
        shared.outage.begin();
        let memory = self.end().expect("it is up");
        let left = match random.bool() {
            true => memory.copy(),
            false => {
                // Of a thousand. A block is eight sectors, and its header three.
                let arrives = [0, 500, 900, 990, 1000][random.usize(..5)];
                let writes = memory.recorded();
                // Long before, everything has arrived.
                let synced = writes.saturating_sub(random.usize(..100));
                memory.after_power_loss(writes, synced, || random.u16(..1000) < arrives)
            }
        };
        shared.clock.sleep(Nanos::from_millis(random.u64(..100))).await;
        self.begin(left, false).await;
        shared.outage.end();
    }

    /// Ends a life; gives its disk.
    fn end(&self) -> Option<Memory> {
        let life = self.0.life.lock().take()?;
        life.group.kill();
        if !life.is_first {
            self.0.hits_after_kills.fetch_add(life.cache.statistics().hits, Ordering::Relaxed);
        }
        Some(life.memory)
    }

    /// Reads that were served by what the disk had, in lives after the first.
    pub(crate) fn hits_after_kills(&self) -> u64 {
        self.0.hits_after_kills.load(Ordering::Relaxed)
    }
}
