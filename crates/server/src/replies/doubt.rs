//! The time in which a call may have been executed of which nobody knows how far it came.

use crate::types::{Attr, Time};

/// How far a file's change time may lie before the clock's: the kernel stamps files with the time
/// of its last tick.
const TICK_NANOS: i64 = 20_000_000;

/// When a call whose outcome is not known may have been executed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Doubt {
    pub(crate) since: Time,
    pub(crate) until: Time,
}

impl Doubt {
    /// Whether the call may be what changed a file last.
    pub(crate) fn may_have_changed(&self, attr: &Attr) -> bool {
        earlier(self.since) <= attr.changed
    }

    /// Whether the call may be what changed a file, which nothing has changed afterwards.
    pub(crate) fn may_have_changed_last(&self, attr: &Attr) -> bool {
        self.may_have_changed(attr) && attr.changed <= self.until
    }

    /// Whether the call may be what made a file, which nothing has changed afterwards.
    pub(crate) fn may_have_made(&self, attr: &Attr) -> bool {
        let within = |made| earlier(self.since) <= made && made <= self.until;
        self.may_have_changed_last(attr) && attr.made.is_none_or(within)
    }
}

/// A tick before a time of the clock.
fn earlier(time: Time) -> Time {
    const SECOND: i64 = 1_000_000_000;
    let nanos = i64::from(time.nanos) - TICK_NANOS;
    let secs = time.secs.saturating_add(nanos.div_euclid(SECOND));
    Time { secs, nanos: u32::try_from(nanos.rem_euclid(SECOND)).unwrap_or(0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_earlier_may_be_another_second() {
        let time = |secs, nanos| Time { secs, nanos };
        assert_eq!(earlier(time(5, 30_000_000)), time(5, 10_000_000));
        assert_eq!(earlier(time(5, 0)), time(4, 980_000_000));
    }
}
