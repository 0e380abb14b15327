//! The machine that an emulated disk is in, by a clock: of a world, or real.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use net::clock::Clock;
use perf::units::Instant;
use server::metrics::MonotonicClock;
use server::store::sim::Machine;
use server::types::Time;
use server::{TimeOfDay, Times};

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Timed(pub Clock);

impl Machine for Timed {
    fn now(&self) -> Instant {
        self.0.now()
    }

    fn until(&self, at: Instant) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(async move {
            match self.0.alarm() {
                Ok(mut alarm) => alarm.until(at).await,
                // Out of descriptors: a millisecond late is better than not at all.
                Err(_) => self.0.sleep(at.since(self.0.now())).await,
            }
        })
    }
}

/// The clocks of a reply cache.
pub fn times(clock: &Clock) -> Times {
    Times { of_day: time_of_day(clock), passing: passing(clock) }
}

/// The time that passes, for what counts it.
pub fn passing(clock: &Clock) -> MonotonicClock {
    let clock = clock.clone();
    Arc::new(move || clock.now())
}

/// What time it is for files and replies.
pub fn time_of_day(clock: &Clock) -> TimeOfDay {
    let clock = clock.clone();
    Arc::new(move || {
        let now = clock.since_1970();
        let secs = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        Time { secs, nanos: now.subsec_nanos() }
    })
}
