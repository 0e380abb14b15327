//! A world: one thread, virtual time, everything repeatable.
//!
//! The executor keeps a queue of tasks that can run and a heap of timers. While a task can run,
//! time stands still; when none can, time jumps to the earliest timer. Tasks run in the order in
//! which they were woken and timers of the same moment ring in the order in which they were set,
//! so a run depends on nothing but its inputs.
//!
//! [`World::run`] ends with the root task's output. Tasks that are left are dropped with the world.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use std::future::Future;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use perf::units::Instant;
use thiserror::Error;

use super::{BoxedWork, Clock, Kind};

/// Worlds begin at 2026-01-01 00:00:00 UTC.
pub(super) const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// See the module's head.
#[derive(Debug)]
pub struct World {
    handle: Handle,
}

/// Nothing can ever happen again: no task can run and no timer is set.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("the world is stuck at {now:?}: {tasks} tasks wait for each other and no timer is set")]
pub struct Stuck {
    pub now: Instant,
    pub tasks: usize,
}

#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct TaskId(u64);

#[derive(Clone)]
pub(super) struct Handle(Arc<Mutex<State>>);

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

#[derive(Default)]
struct State {
    now: Instant,
    /// Numbers tasks and timers, in order of their making.
    sequence: u64,
    ready: VecDeque<TaskId>,
    /// `None` while the task is being polled.
    tasks: HashMap<TaskId, Option<(BoxedWork, Arc<TaskWaker>)>>,
    heap: BinaryHeap<Reverse<(Instant, u64)>>,
    /// Timers still wanted; what is in the heap and not here was cancelled.
    timers: BTreeMap<u64, Waker>,
}

struct TaskWaker {
    id: TaskId,
    queued: AtomicBool,
    world: Weak<Mutex<State>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(world) = self.world.upgrade()
        {
            world.lock().ready.push_back(self.id);
        }
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    pub fn new() -> Self {
        Self { handle: Handle(Arc::new(Mutex::new(State::default()))) }
    }

    pub fn clock(&self) -> Clock {
        Clock(Kind::World(self.handle.clone()))
    }

    /// Runs until `root` is done.
    ///
    /// # Errors
    /// [`Stuck`] when it never can be.
    pub fn run<T: Send + 'static>(
        &self,
        root: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, Stuck> {
        let output = Arc::new(Mutex::new(None));
        let slot = Arc::clone(&output);
        self.handle.spawn(Box::pin(async move {
            let value = root.await;
            *slot.lock() = Some(value);
        }));
        loop {
            while self.handle.run_one() {}
            if let Some(value) = output.lock().take() {
                return Ok(value);
            }
            self.handle.advance()?;
        }
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Tasks hold clocks, which hold the state that holds the tasks: cut the ring. The tasks
        // are dropped outside the lock because their destructors may take it.
        let tasks = std::mem::take(&mut self.handle.0.lock().tasks);
        drop(tasks);
    }
}

impl Handle {
    pub(super) fn now(&self) -> Instant {
        self.0.lock().now
    }

    pub(super) fn spawn(&self, work: BoxedWork) -> TaskId {
        let mut state = self.0.lock();
        let id = TaskId(state.next());
        let waker = Arc::new(TaskWaker {
            id,
            queued: AtomicBool::new(true),
            world: Arc::downgrade(&self.0),
        });
        state.tasks.insert(id, Some((work, waker)));
        state.ready.push_back(id);
        id
    }

    pub(super) fn abort(&self, id: TaskId) {
        let task = self.0.lock().tasks.remove(&id);
        drop(task);
    }

    pub(super) fn alarm(&self) -> Alarm {
        Alarm { world: self.clone(), set: None }
    }

    /// Polls the first task that can run; `false` when none can.
    fn run_one(&self) -> bool {
        let mut state = self.0.lock();
        let Some(id) = state.ready.pop_front() else {
            return false;
        };
        let Some((mut work, waker)) = state.tasks.get_mut(&id).and_then(Option::take) else {
            return true;
        };
        drop(state);
        waker.queued.store(false, Ordering::Release);
        let poll = work.as_mut().poll(&mut Context::from_waker(&Waker::from(Arc::clone(&waker))));
        let mut state = self.0.lock();
        let finished = match (poll, state.tasks.get_mut(&id)) {
            (Poll::Pending, Some(slot)) => {
                *slot = Some((work, waker));
                return true;
            }
            (Poll::Ready(()), _) => {
                state.tasks.remove(&id);
                work
            }
            // Aborted while it ran.
            (Poll::Pending, None) => work,
        };
        drop(state);
        drop(finished);
        true
    }

    /// Jumps to the earliest timer and rings all of that moment.
    fn advance(&self) -> Result<(), Stuck> {
        let mut state = self.0.lock();
        let mut ringing = Vec::new();
        while let Some(&Reverse((at, number))) = state.heap.peek() {
            if ringing.is_empty() || at == state.now {
                state.heap.pop();
                if let Some(waker) = state.timers.remove(&number) {
                    state.now = at;
                    ringing.push(waker);
                }
            } else {
                break;
            }
        }
        if ringing.is_empty() {
            return Err(Stuck { now: state.now, tasks: state.tasks.len() });
        }
        drop(state);
        ringing.into_iter().for_each(Waker::wake);
        Ok(())
    }
}

impl State {
    fn next(&mut self) -> u64 {
        self.sequence += 1;
        self.sequence
    }
}

/// A timer of a world's: exact.
#[derive(Debug)]
pub(super) struct Alarm {
    world: Handle,
    set: Option<(Instant, u64)>,
}

impl Alarm {
    pub(super) fn poll_at(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let mut state = self.world.0.lock();
        if state.now >= at {
            return Poll::Ready(());
        }
        if let Some((set_at, number)) = self.set {
            if set_at == at
                && let Some(waker) = state.timers.get_mut(&number)
            {
                waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            state.timers.remove(&number);
        }
        let number = state.next();
        state.heap.push(Reverse((at, number)));
        state.timers.insert(number, cx.waker().clone());
        self.set = Some((at, number));
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some((_, number)) = self.set {
            let waker = self.world.0.lock().timers.remove(&number);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;

    use super::*;

    #[test]
    fn time_jumps_to_the_next_timer_and_is_exact() {
        let world = World::new();
        let clock = world.clock();
        let order = world
            .run(async move {
                let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
                for wait in [300, 100, 200] {
                    let (own, sender) = (clock.clone(), sender.clone());
                    clock.spawn(async move {
                        own.sleep(Nanos::from_nanos(wait)).await;
                        sender.send((wait, own.now().as_nanos())).ok();
                    });
                }
                drop(sender);
                let mut order = Vec::new();
                while let Some(rung) = receiver.recv().await {
                    order.push(rung);
                }
                order
            })
            .unwrap();
        assert_eq!(order, [(100, 100), (200, 200), (300, 300)]);
    }

    #[test]
    fn a_world_in_which_nothing_can_happen_says_so() {
        let world = World::new();
        let stuck = world.run(std::future::pending::<()>()).unwrap_err();
        assert_eq!(stuck, Stuck { now: Instant::EPOCH, tasks: 1 });
    }

    #[test]
    fn a_deadline_cancels_what_it_outlives_and_leaves_no_timer() {
        let world = World::new();
        let clock = world.clock();
        let (late, early, end) = world
            .run(async move {
                let limit = Nanos::from_micros(5);
                let late = clock.within(limit, clock.sleep(Nanos::from_micros(6))).await;
                let early = clock.within(limit, clock.sleep(Nanos::from_micros(1))).await;
                (late, early, clock.now())
            })
            .unwrap();
        assert_eq!(late, Err(super::super::Elapsed { limit: Nanos::from_micros(5) }));
        assert_eq!(early, Ok(()));
        assert_eq!(end, Instant::from_nanos(6_000));
    }

    #[test]
    fn an_aborted_task_never_runs_again() {
        let world = World::new();
        let clock = world.clock();
        let ran = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&ran);
        world
            .run(async move {
                let own = clock.clone();
                let task = clock.spawn(async move {
                    own.sleep(Nanos::from_micros(1)).await;
                    flag.store(true, Ordering::Relaxed);
                });
                task.abort();
                clock.sleep(Nanos::from_micros(10)).await;
            })
            .unwrap();
        assert!(!ran.load(Ordering::Relaxed));
    }
}
