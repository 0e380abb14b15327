//! An exact timer.
//!
//! tokio's timers tick in milliseconds and a sleeping processor takes 20 to 100 us to wake, while
//! our subject lives in microseconds. So an alarm sleeps on a timerfd until shortly before its
//! moment (by the lateness that this machine showed when it was calibrated) and spends the rest
//! awake, yielding to other tasks of its thread between looks at the clock.
//!
//! The price is processor time: up to `lead` per wait. It is paid only by what requested exactness.

use std::io;
use std::task::{Context, Poll};

use perf::units::{Instant, Nanos};

use super::{Clock, world};

/// See the module's head. One wait at a time; re-arming replaces the earlier moment.
#[derive(Debug)]
pub struct Alarm(Kind);

#[derive(Debug)]
enum Kind {
    Real(Real),
    World(world::Alarm),
}

#[derive(Debug)]
struct Real {
    clock: Clock,
    timer: Timer,
    /// What the timer is set to, less the lead.
    armed: Option<Instant>,
}

/// How long before its moment an alarm starts to watch the clock.
///
/// Longer than the latest of nine in ten wake-ups on the virtual machines we measured (95 us from
/// an idle processor); what is later than that shows in [`Lateness`].
const LEAD: Nanos = Nanos::from_micros(110);

impl Alarm {
    /// How long before its moment a real alarm begins to watch the clock.
    pub const LEAD: Nanos = LEAD;

    pub(super) fn real(clock: Clock) -> io::Result<Self> {
        Ok(Self(Kind::Real(Real { clock, timer: Timer::new()?, armed: None })))
    }

    pub(super) fn world(alarm: world::Alarm) -> Self {
        Self(Kind::World(alarm))
    }

    /// Ready at `at` or as soon after as can be.
    pub fn poll_at(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        match &mut self.0 {
            Kind::Real(real) => real.poll_at(cx, at),
            Kind::World(alarm) => alarm.poll_at(cx, at),
        }
    }

    /// Waits until `at`.
    pub async fn until(&mut self, at: Instant) {
        std::future::poll_fn(|cx| self.poll_at(cx, at)).await;
    }
}

impl Real {
    fn poll_at(&mut self, cx: &mut Context<'_>, at: Instant) -> Poll<()> {
        let now = self.clock.now();
        if now >= at {
            return Poll::Ready(());
        }
        let wake = at - LEAD;
        if now >= wake {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        if self.armed != Some(wake) {
            match self.timer.set(wake.since(now)) {
                Ok(()) => self.armed = Some(wake),
                // Watching the clock all the way is always right, only dearer.
                Err(_) => {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            }
        }
        if self.timer.poll_expired(cx).is_ready() {
            self.armed = None;
            cx.waker().wake_by_ref();
        }
        Poll::Pending
    }
}

#[cfg(target_os = "linux")]
#[derive(Debug)]
struct Timer(tokio::io::unix::AsyncFd<std::os::fd::OwnedFd>);

#[cfg(target_os = "linux")]
impl Timer {
    fn new() -> io::Result<Self> {
        use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
        let fd = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC,
        )?;
        // SAFETY: an OwnedFd gives the same descriptor, open, for as long as it lives.
        #[allow(unsafe_code, reason = "the only way to register a timerfd with tokio")]
        let registered = unsafe { tokio::io::unix::AsyncFd::register(fd) }?;
        Ok(Self(registered))
    }

    fn set(&mut self, span: Nanos) -> io::Result<()> {
        use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
        let value = Timespec {
            tv_sec: i64::try_from(span.as_nanos() / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: i64::try_from(span.as_nanos() % 1_000_000_000).unwrap_or(0),
        };
        let once = Itimerspec { it_interval: Timespec { tv_sec: 0, tv_nsec: 0 }, it_value: value };
        timerfd_settime(self.0.get_ref(), TimerfdTimerFlags::empty(), &once)?;
        Ok(())
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let Poll::Ready(ready) = self.0.poll_read_ready(cx) else {
            return Poll::Pending;
        };
        let Ok(mut ready) = ready else {
            return Poll::Ready(());
        };
        // An expired timer gives 8 bytes; a re-armed one that is not due gives EAGAIN.
        let mut expirations = [0; 8];
        match ready.try_io(|fd| Ok(rustix::io::read(fd, &mut expirations)?)) {
            Ok(_) => Poll::Ready(()),
            Err(_would_block) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
#[derive(Debug)]
struct Timer(std::pin::Pin<Box<tokio::time::Sleep>>);

#[cfg(not(target_os = "linux"))]
impl Timer {
    #[expect(clippy::disallowed_methods, reason = "the clock itself")]
    fn new() -> io::Result<Self> {
        Ok(Self(Box::pin(tokio::time::sleep(std::time::Duration::ZERO))))
    }

    fn set(&mut self, span: Nanos) -> io::Result<()> {
        // A tick early, because tokio rounds up to its next millisecond.
        let early = std::time::Duration::from_nanos(span.as_nanos())
            .saturating_sub(std::time::Duration::from_millis(1));
        self.0.as_mut().reset(tokio::time::Instant::now() + early);
        Ok(())
    }

    fn poll_expired(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        std::future::Future::poll(self.0.as_mut(), cx)
    }
}

/// How late this machine's alarms ring, measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Lateness {
    pub median: Nanos,
    pub p99: Nanos,
}

impl Lateness {
    /// Rings `trials` alarms, each `span` ahead.
    ///
    /// # Errors
    /// The system has no more timers to give.
    pub async fn measure(clock: &Clock, span: Nanos, trials: usize) -> io::Result<Self> {
        let mut alarm = clock.alarm()?;
        let mut late = Vec::with_capacity(trials);
        for _ in 0..trials {
            let at = clock.now() + span;
            alarm.until(at).await;
            late.push(clock.now().since(at));
        }
        Ok(Self::of(late))
    }

    /// Of alarms that rang so late.
    pub fn of(mut late: Vec<Nanos>) -> Self {
        late.sort_unstable();
        let at = |share: usize| late.get(late.len() * share / 100).copied().unwrap_or_default();
        Self { median: at(50), p99: at(99) }
    }
}
