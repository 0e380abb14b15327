//! The store behind an emulated disk: it is a store like the others, it is honest about what is
//! stable, and its disk takes the time it says.

mod crashes;
mod faults;
mod times;

use std::collections::BTreeSet;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use perf::units::{Instant, Nanos};
use proptest::prelude::*;
use server::EngineConfig;
use server::durable::Durable;
use server::store::mem::MemOptions;
use server::store::sim::{Machine, SimOptions, SimStore};
use server::store::{Node, Store};
use server::types::{Caller, CreateHow, SetAttr, Stability, Status, Time, Verifier};

use crate::reference::{compare, op};
use crate::world::World;

pub(crate) const ROOT: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

/// Virtual time that goes on when nothing else can.
#[derive(Clone, Debug, Default)]
pub(crate) struct Timeline(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    now: AtomicU64,
    wanted: Mutex<BTreeSet<u64>>,
    /// Whether a wait is over as soon as it begins, for callers who are alone.
    jumps: bool,
}

impl Machine for Timeline {
    fn now(&self) -> Instant {
        Instant::from_nanos(self.0.now.load(Ordering::Relaxed))
    }

    fn until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        if self.0.jumps {
            self.0.now.fetch_max(at.as_nanos(), Ordering::Relaxed);
        }
        Box::pin(std::future::poll_fn(move |_| {
            if self.now() >= at {
                return Poll::Ready(());
            }
            self.wanted().insert(at.as_nanos());
            Poll::Pending
        }))
    }
}

type Work = Pin<Box<dyn Future<Output = ()>>>;

impl Timeline {
    /// One in which every wait is over at once.
    pub(crate) fn jumping() -> Self {
        Self(Arc::new(Inner { jumps: true, ..Inner::default() }))
    }

    fn wanted(&self) -> std::sync::MutexGuard<'_, BTreeSet<u64>> {
        self.0.wanted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn nanos(&self) -> u64 {
        self.now().as_nanos()
    }

    /// Polls all, in turn, until they are done or `polls` are used up.
    pub(crate) fn run(&self, mut works: Vec<Work>, mut polls: u64) {
        let mut cx = Context::from_waker(Waker::noop());
        while !works.is_empty() {
            let mut index = 0;
            while index < works.len() {
                if polls == 0 {
                    return;
                }
                polls -= 1;
                match works[index].as_mut().poll(&mut cx) {
                    Poll::Ready(()) => drop(works.remove(index)),
                    Poll::Pending => index += 1,
                }
            }
            let next = self.wanted().pop_first();
            let Some(next) = next else {
                assert!(works.is_empty(), "everybody waits for nothing");
                return;
            };
            self.0.now.fetch_max(next, Ordering::Relaxed);
        }
    }

    /// One piece of work, to its end: what came of it.
    pub(crate) fn finish<T: 'static>(&self, work: impl Future<Output = T> + 'static) -> T {
        let output = std::rc::Rc::new(std::cell::Cell::new(None));
        let slot = std::rc::Rc::clone(&output);
        self.run(vec![Box::pin(async move { slot.set(Some(work.await)) })], u64::MAX);
        output.take().expect("it was run to its end")
    }

    pub(crate) fn store(&self, options: SimOptions) -> Arc<SimStore> {
        let own = self.clone();
        let time = move || {
            let nanos = own.nanos();
            Time {
                secs: i64::try_from(nanos / 1_000_000_000).unwrap(),
                nanos: u32::try_from(nanos % 1_000_000_000).unwrap(),
            }
        };
        Arc::new(SimStore::new(options, Arc::new(time), Arc::new(self.clone())))
    }
}

pub(crate) fn options(disk: &str) -> SimOptions {
    SimOptions { disk: disk.parse().unwrap(), ..SimOptions::default() }
}

/// A file in the root.
pub(crate) async fn make(store: &SimStore, name: &[u8]) -> Result<Node, Status> {
    let how = CreateHow::Unchecked(SetAttr::default());
    store.create(&ROOT, &store.root(), name, how).await.result
}

pub(crate) async fn write(
    store: &SimStore,
    node: &Node,
    offset: u64,
    data: &[u8],
    stability: Stability,
) -> Result<(), Status> {
    let data = Bytes::copy_from_slice(data);
    store.write(&ROOT, &node.handle, offset, data, stability).await.result.map(drop)
}

pub(crate) async fn commit(store: &SimStore, node: &Node) -> Result<Verifier, Status> {
    store.commit(&ROOT, &node.handle, 0, 0).await.result.map(Durable::verifier)
}

fn sim_world(options: SimOptions) -> World<SimStore> {
    World::wrapped(MemOptions::default(), EngineConfig::default(), |_| {
        Arc::into_inner(Timeline::jumping().store(options)).expect("it has one owner")
    })
}

proptest! {
    #[test]
    fn the_engine_over_an_emulated_disk_is_like_a_map_of_paths(
        ops in prop::collection::vec(op(), 1..60),
        cache in 0..4_u64,
    ) {
        let cache_bytes_max = cache * 4096;
        let world = sim_world(SimOptions { cache_bytes_max, ..SimOptions::default() });
        compare(&world, &ops)?;
        let store = world.engine.store();
        prop_assert_eq!(store.audit(), Ok(()));
        prop_assert_eq!(store.stats().divergences, 0);
    }
}

#[test]
fn time_goes_on_only_when_nothing_else_can() {
    let timeline = Timeline::default();
    let own = timeline.clone();
    timeline.finish(async move { own.until(own.now() + Nanos::from_micros(3)).await });
    assert_eq!(timeline.nanos(), 3_000);
}
