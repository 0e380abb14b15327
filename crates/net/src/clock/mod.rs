//! The clock: the one way to ask the time, to wait and to spawn.
//!
//! Production code holds a [`Clock`] and cannot tell which of two it is. The real one runs on
//! tokio. A world's (see [`world`]) runs on a small executor of our own, in one thread, in virtual
//! time that is exact to the nanosecond and jumps to the next timer when nothing can run.
//!
//! There are two ways to wait. [`Clock::sleep`] is coarse (a millisecond) and cheap: timeouts.
//! [`Alarm`] is exact to a few microseconds: links. `alarm.rs` says how.

mod alarm;
mod apart;
mod group;
pub mod world;

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use perf::units::{Instant, Nanos};
use thiserror::Error;
use tokio::sync::watch;

use self::group::GroupKind;
use crate::stalls::Watched;

pub use alarm::{Alarm, Lateness};
pub use group::Group;

/// A handle on time; clones tell the same time.
#[derive(Clone, Debug)]
pub struct Clock(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Real { epoch: std::time::Instant, group: Option<Arc<watch::Sender<bool>>> },
    World(world::Handle),
}

impl world::World {
    pub fn clock(&self) -> Clock {
        Clock(Kind::World(self.handle.clone()))
    }
}

/// A deadline passed before the work was done.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
#[error("not done within {limit}")]
pub struct Elapsed {
    pub limit: Nanos,
}

impl Clock {
    /// Real time, counted from now. Waiting and spawning need a tokio runtime around the caller.
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub fn real() -> Self {
        Self(Kind::Real { epoch: std::time::Instant::now(), group: None })
    }

    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub fn now(&self) -> Instant {
        match &self.0 {
            Kind::Real { epoch, .. } => {
                let elapsed = std::time::Instant::now().duration_since(*epoch).as_nanos();
                Instant::from_nanos(u64::try_from(elapsed).unwrap_or(u64::MAX))
            }
            Kind::World(world) => world.now(),
        }
    }

    /// Time since 1970. A world begins at its own epoch, so that runs repeat.
    #[expect(clippy::disallowed_methods, reason = "this is where time comes from")]
    pub fn since_1970(&self) -> Duration {
        match &self.0 {
            Kind::Real { .. } => std::time::SystemTime::now()
                .duration_since(std::time::UNIX_EPOCH)
                .unwrap_or(Duration::ZERO),
            Kind::World(world) => world::EPOCH + Duration::from_nanos(world.now().as_nanos()),
        }
    }

    /// Waits at least `span`, to a millisecond in the real world.
    pub async fn sleep(&self, span: Nanos) {
        match &self.0 {
            Kind::Real { .. } => {
                #[expect(clippy::disallowed_methods, reason = "the coarse half of the clock")]
                tokio::time::sleep(Duration::from_nanos(span.as_nanos())).await;
            }
            Kind::World(world) => {
                let mut alarm = world.alarm();
                let at = world.now() + span;
                std::future::poll_fn(|cx| alarm.poll_at(cx, at)).await;
            }
        }
    }

    /// Gives up on `work` after `limit` (coarse: see [`Clock::sleep`]).
    ///
    /// # Errors
    /// [`Elapsed`] when the limit came first; the work is dropped.
    pub async fn within<F: Future>(&self, limit: Nanos, work: F) -> Result<F::Output, Elapsed> {
        let mut work = pin!(work);
        let mut limit_reached = pin!(self.sleep(limit));
        std::future::poll_fn(|cx| {
            if let Poll::Ready(output) = work.as_mut().poll(cx) {
                return Poll::Ready(Ok(output));
            }
            limit_reached.as_mut().poll(cx).map(|()| Err(Elapsed { limit }))
        })
        .await
    }

    /// Runs `work` beside the caller. Dropping the task lets it run on.
    pub fn spawn(&self, work: impl Future<Output = ()> + Send + 'static) -> Task {
        match &self.0 {
            Kind::Real { group: None, .. } =>
            {
                #[expect(clippy::disallowed_methods, reason = "this is where tasks come from")]
                Task(TaskKind::Real(tokio::spawn(Watched::new(work)).abort_handle()))
            }
            Kind::Real { group: Some(group), .. } => {
                let group = Group(GroupKind::Real(Arc::clone(group)));
                #[expect(clippy::disallowed_methods, reason = "this is where tasks come from")]
                let task = tokio::spawn(Watched::new(unless_killed(group, work)));
                Task(TaskKind::Real(task.abort_handle()))
            }
            Kind::World(world) => Task(TaskKind::World(world.clone(), world.spawn(Box::pin(work)))),
        }
    }

    /// The same time, with a group for what is spawned through it. In a world, what is spawned by
    /// tasks of the group through any clock without a group of its own belongs to it too.
    pub fn group(&self) -> (Self, Group) {
        match &self.0 {
            Kind::Real { epoch, .. } => {
                let group = Arc::new(watch::Sender::new(false));
                let kind = Kind::Real { epoch: *epoch, group: Some(Arc::clone(&group)) };
                (Self(kind), Group(GroupKind::Real(group)))
            }
            Kind::World(world) => {
                let world = world.group();
                (Self(Kind::World(world.clone())), Group(GroupKind::World(world)))
            }
        }
    }

    /// An exact timer of this clock's.
    ///
    /// # Errors
    /// The system has no more timers to give.
    pub fn alarm(&self) -> std::io::Result<Alarm> {
        match &self.0 {
            Kind::Real { .. } => Alarm::real(self.clone()),
            Kind::World(world) => Ok(Alarm::world(world.alarm())),
        }
    }

    /// True in a world.
    pub fn is_virtual(&self) -> bool {
        matches!(self.0, Kind::World(_))
    }
}

async fn unless_killed(group: Group, work: impl Future<Output = ()>) {
    let (mut work, mut killed) = (pin!(work), pin!(group.killed()));
    std::future::poll_fn(|cx| match killed.as_mut().poll(cx) {
        Poll::Ready(()) => Poll::Ready(()),
        Poll::Pending => work.as_mut().poll(cx),
    })
    .await;
}

/// A spawned task.
#[derive(Debug)]
pub struct Task(TaskKind);

#[derive(Debug)]
enum TaskKind {
    Real(tokio::task::AbortHandle),
    World(world::Handle, world::TaskId),
}

impl Task {
    /// Drops the task's future at its next await point.
    pub fn abort(&self) {
        match &self.0 {
            TaskKind::Real(handle) => handle.abort(),
            TaskKind::World(world, id) => world.abort(*id),
        }
    }
}

/// Lets every other task of this thread run once.
pub async fn yield_now() {
    let mut yielded = false;
    std::future::poll_fn(|cx: &mut Context<'_>| {
        if yielded {
            return Poll::Ready(());
        }
        yielded = true;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}
