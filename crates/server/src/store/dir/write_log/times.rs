//! The clocks of a log and of the files that it is for.

use std::time::Duration;

use log::Stamp;
use rustix::time::{ClockId, clock_gettime};

use crate::types::Time;

/// As files have it: a change that is made later has no earlier time.
pub(super) fn now() -> Stamp {
    let now = clock_gettime(ClockId::RealtimeCoarse);
    Stamp { seconds: now.tv_sec, nanos: u32::try_from(now.tv_nsec).unwrap_or(0) }
}

pub(in crate::store::dir) fn stamp(time: Time) -> Stamp {
    Stamp { seconds: time.secs, nanos: time.nanos }
}

/// For how long something takes.
pub(super) fn monotonic() -> Duration {
    let time = clock_gettime(ClockId::Monotonic);
    let part = |number: i64| u64::try_from(number).unwrap_or(0);
    Duration::from_secs(part(time.tv_sec)) + Duration::from_nanos(part(time.tv_nsec))
}
