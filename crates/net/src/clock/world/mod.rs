//! A world: one thread, virtual time, everything repeatable.
//!
//! The executor keeps a queue of tasks that can run and an ordered map of timers. While a task can
//! run, time stands still; when none can, time jumps to the earliest timer. Tasks run in the order
//! in which they were woken and timers of the same moment ring in the order in which they were set,
//! so a run depends on nothing but its inputs.
//!
//! Tasks may form groups (`tasks.rs`), which end together: that is how a host crashes.
//!
//! [`World::run`] ends with the root task's output. Tasks that are left are dropped with the world.

mod tasks;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Weak};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

use parking_lot::Mutex;
use perf::units::Instant;
use thiserror::Error;

use self::tasks::{BoxedWork, GroupId, Parked, Tasks};

pub(super) use self::tasks::TaskId;

/// Worlds begin at 2026-01-01 00:00:00 UTC.
pub(super) const EPOCH: Duration = Duration::from_secs(1_767_225_600);

/// See the module's head.
#[derive(Debug)]
pub struct World {
    pub(super) handle: Handle,
    polls_at_once_max: u64,
}

/// So many polls at one instant are an endless loop: orders of magnitude above what a world with
/// thousands of hosts needs (guess).
const POLLS_AT_ONCE_MAX: u64 = 50_000_000;

/// The root task will never be done.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum Stuck {
    /// Nothing can ever happen again: no task can run and no timer is set.
    #[error("the world is stuck at {now:?}: {tasks} tasks wait for each other and no timer is set")]
    Waiting { now: Instant, tasks: usize },
    /// Tasks wake each other for ever.
    #[error("the world is stuck at {now:?}, endless: {polls} polls without time passing")]
    Endless { now: Instant, polls: u64 },
}

/// A way into a world, and the group to which belongs what is spawned through it.
#[derive(Clone)]
pub(super) struct Handle {
    shared: Arc<WorldState>,
    group: GroupId,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("World")
    }
}

#[derive(Default)]
struct WorldState {
    /// Changed under the lock of `state`, read without.
    now_ns: AtomicU64,
    state: Mutex<State>, // guards tasks and timers; no task runs, is woken or dropped under it
}

#[derive(Default)]
struct State {
    tasks: Tasks,
    /// Numbers timers in the order in which they were set.
    timers_set: u64,
    timers: BTreeMap<(Instant, u64), Waker>,
}

struct TaskWaker {
    id: TaskId,
    queued: AtomicBool,
    world: Weak<WorldState>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if !self.queued.swap(true, Ordering::AcqRel)
            && let Some(world) = self.world.upgrade()
        {
            world.state.lock().tasks.ready(self.id);
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
        let handle = Handle { shared: Arc::default(), group: GroupId::NONE };
        Self { handle, polls_at_once_max: POLLS_AT_ONCE_MAX }
    }

    /// More polls than these at one instant are [`Stuck::Endless`]; 50 million by default.
    pub fn limit_polls_at_once(&mut self, polls: u64) {
        self.polls_at_once_max = polls;
    }

    /// How often tasks were polled so far.
    pub fn polls(&self) -> u64 {
        self.handle.shared.state.lock().tasks.polls()
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
        let steps = || {
            loop {
                let mut polls = 0;
                while self.handle.run_one() {
                    polls += 1;
                    if polls > self.polls_at_once_max {
                        return Err(Stuck::Endless { now: self.handle.now(), polls });
                    }
                }
                if let Some(value) = output.lock().take() {
                    return Ok(value);
                }
                self.handle.advance()?;
            }
        };
        // A world may be run by a task of the real world's, and all of it in one poll of that: then
        // tokio would have its channels and semaphores make way for others, by a wake-up that
        // comes only when the poll ends.
        let _running = Running::begin();
        let all = pin!(tokio::task::unconstrained(poll_fn(|_| Poll::Ready(steps()))));
        match all.poll(&mut Context::from_waker(Waker::noop())) {
            Poll::Ready(ended) => ended,
            Poll::Pending => unreachable!("it never waits"),
        }
    }
}

thread_local! {
    static IS_RUNNING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread runs a world.
pub(crate) fn is_running() -> bool {
    IS_RUNNING.get()
}

/// While it is there, this thread runs a world.
struct Running {
    /// In another one, perhaps.
    before: bool,
}

impl Running {
    fn begin() -> Self {
        Self { before: IS_RUNNING.replace(true) }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        IS_RUNNING.set(self.before);
    }
}

impl Drop for World {
    fn drop(&mut self) {
        // Tasks hold clocks, which hold the state that holds the tasks: cut the ring. The tasks
        // are dropped outside the lock because their destructors may take it.
        let tasks = self.handle.shared.state.lock().tasks.end();
        drop(tasks);
    }
}

impl Handle {
    pub(super) fn now(&self) -> Instant {
        Instant::from_nanos(self.shared.now_ns.load(Ordering::Relaxed))
    }

    pub(super) fn spawn(&self, work: BoxedWork) -> TaskId {
        let park = |id| {
            let world = Arc::downgrade(&self.shared);
            let waker = Arc::new(TaskWaker { id, queued: AtomicBool::new(true), world });
            Parked { work, waker }
        };
        let (id, refused) = self.shared.state.lock().tasks.spawn(self.group, park);
        drop(refused);
        id
    }

    pub(super) fn abort(&self, id: TaskId) {
        let task = self.shared.state.lock().tasks.remove(id);
        drop(task);
    }

    pub(super) fn alarm(&self) -> Alarm {
        Alarm { world: self.clone(), set: None }
    }

    /// The same world, with a new group for what is spawned.
    pub(super) fn group(&self) -> Self {
        let group = self.shared.state.lock().tasks.group(self.group);
        Self { shared: Arc::clone(&self.shared), group }
    }

    /// Ends the group: its tasks are dropped, and what is spawned in it later is too.
    pub(super) fn kill(&self) {
        let (tasks, waiting) = self.shared.state.lock().tasks.kill(self.group);
        drop(tasks);
        waiting.into_iter().for_each(Waker::wake);
    }

    pub(super) fn group_polls(&self) -> u64 {
        self.shared.state.lock().tasks.group_polls(self.group)
    }

    pub(super) fn kill_at_poll(&self, polls: u64) {
        let due = self.shared.state.lock().tasks.kill_at_poll(self.group, polls);
        if due {
            self.kill();
        }
    }

    pub(super) fn poll_killed(&self, cx: &mut Context<'_>) -> Poll<()> {
        self.shared.state.lock().tasks.poll_killed(self.group, cx)
    }

    /// Polls the first task that can run; `false` when none can.
    fn run_one(&self) -> bool {
        let Some((id, mut task)) = self.shared.state.lock().tasks.take() else {
            return false;
        };
        task.waker.queued.store(false, Ordering::Release);
        let waker = Waker::from(Arc::clone(&task.waker));
        let poll = task.work.as_mut().poll(&mut Context::from_waker(&waker));
        let (finished, killed) = self.shared.state.lock().tasks.put_back(id, task, poll);
        drop(finished);
        if let Some(group) = killed {
            Self { shared: Arc::clone(&self.shared), group }.kill();
        }
        true
    }

    /// Jumps to the earliest timer and rings all of that moment.
    fn advance(&self) -> Result<(), Stuck> {
        let mut state = self.shared.state.lock();
        let Some(&(at, _)) = state.timers.keys().next() else {
            return Err(Stuck::Waiting { now: self.now(), tasks: state.tasks.len() });
        };
        debug_assert!(at >= self.now(), "time does not go back");
        self.shared.now_ns.store(at.as_nanos(), Ordering::Relaxed);
        let mut ringing = Vec::new();
        while let Some(first) = state.timers.first_entry()
            && first.key().0 == at
        {
            ringing.push(first.remove());
        }
        drop(state);
        ringing.into_iter().for_each(Waker::wake);
        Ok(())
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
        if self.world.now() >= at {
            return Poll::Ready(());
        }
        let mut state = self.world.shared.state.lock();
        if let Some(key) = self.set {
            if key.0 == at
                && let Some(waker) = state.timers.get_mut(&key)
            {
                waker.clone_from(cx.waker());
                return Poll::Pending;
            }
            state.timers.remove(&key);
        }
        state.timers_set += 1;
        let key = (at, state.timers_set);
        state.timers.insert(key, cx.waker().clone());
        self.set = Some(key);
        Poll::Pending
    }
}

impl Drop for Alarm {
    fn drop(&mut self) {
        if let Some(key) = self.set {
            let waker = self.world.shared.state.lock().timers.remove(&key);
            drop(waker);
        }
    }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;

    use super::*;

    #[test]
    fn a_world_may_be_run_by_a_task_of_the_real_worlds() {
        let within = async {
            let world = World::new();
            world.run(async {
                let (sender, mut receiver) = tokio::sync::mpsc::channel(1);
                for number in 0..10_000 {
                    sender.send(number).await.ok();
                    receiver.recv().await;
                }
            })
        };
        assert_eq!(crate::runtime::block_on(within).unwrap(), Ok(()));
    }

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
        assert_eq!(stuck, Stuck::Waiting { now: Instant::EPOCH, tasks: 1 });
    }

    #[test]
    fn a_world_in_which_time_does_not_pass_any_more_says_so() {
        let mut world = World::new();
        world.limit_polls_at_once(1_000);
        let clock = world.clock();
        let wait = Nanos::from_nanos(5);
        // Many polls are no loop where time passes between them.
        let passing = async move {
            for _ in 0..2_000 {
                clock.sleep(wait).await;
            }
        };
        assert_eq!(world.run(passing), Ok(()));
        let endless = poll_fn::<(), _>(|cx| {
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        let now = Instant::EPOCH + Nanos::from_nanos(10_000);
        assert_eq!(world.run(endless), Err(Stuck::Endless { now, polls: 1_001 }));
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
        assert_eq!(late, Err(crate::clock::Elapsed { limit: Nanos::from_micros(5) }));
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
