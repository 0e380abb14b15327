//! A coarse timer for one deadline that moves.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use perf::units::Instant;

use crate::clock::Clock;

/// Deadlines mostly move away, because what they wait for happens. So a timer that is set for an
/// earlier moment is left to ring and is then set anew: a busy connection sets one timer per limit
/// and not one per call.
pub(super) struct Timer {
    clock: Clock,
    set: Option<(Instant, Ring)>,
}

type Ring = Pin<Box<dyn Future<Output = ()> + Send>>;

impl Timer {
    pub(super) fn new(clock: &Clock) -> Self {
        Self { clock: clock.clone(), set: None }
    }

    /// Ready when `due` has passed; otherwise the task is woken then, or earlier. Without a
    /// deadline it is not woken at all.
    pub(super) fn poll_at(&mut self, cx: &mut Context<'_>, due: Option<Instant>) -> Poll<()> {
        let Some(due) = due else {
            self.set = None;
            return Poll::Pending;
        };
        loop {
            let now = self.clock.now();
            if now >= due {
                return Poll::Ready(());
            }
            if self.set.as_ref().is_none_or(|(rings, _)| *rings > due) {
                let (clock, span) = (self.clock.clone(), due.since(now));
                self.set = Some((due, Box::pin(async move { clock.sleep(span).await })));
            }
            if let Some((_, ring)) = &mut self.set
                && ring.as_mut().poll(cx).is_pending()
            {
                return Poll::Pending;
            }
            self.set = None;
        }
    }
}

impl fmt::Debug for Timer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Timer").field(&self.set.as_ref().map(|(rings, _)| rings)).finish()
    }
}
