//! How long a run waits for what is outstanding at its end.

use perf::units::Nanos;

use super::{Configuration, Plan};

/// How long what is outstanding at the end of a run is waited for: long enough for it and for the
/// COMMITs that it needs, at the rate that the warm-up found.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drain {
    pub(super) least: Nanos,
    commit_bytes: u64,
    /// Durable, of the warm-up, at least; `None` where no COMMIT was answered.
    mib_per_s: Option<f64>,
}

impl Drain {
    /// At most, whatever the rate: a sweep has tens of runs.
    pub const MOST: Nanos = Nanos::from_secs(2);

    /// Rates differ from run to run. Guess.
    const RESERVE: f64 = 1.5;

    /// What was warmed up at this rate.
    pub fn new(plan: &Plan, commit_bytes: u64, mib_per_s: Option<f64>) -> Self {
        Self { least: plan.drain, commit_bytes, mib_per_s }
    }

    /// What becomes durable in this time; without end where that is not known.
    pub(super) fn bytes_in(&self, time: Nanos) -> u64 {
        let bytes = self.mib_per_s.map(|rate| rate * f64::from(1 << 20) * time.as_secs_f64());
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        bytes.map_or(u64::MAX, |bytes| bytes as u64)
    }

    /// Of a run of this configuration and time. While one COMMIT is outstanding, so many bytes more
    /// are written at most as the next one covers.
    pub fn of(&self, configuration: &Configuration, time: Nanos) -> Nanos {
        let least = self.least.max(time);
        let Some(mib_per_s) = self.mib_per_s else { return least };
        let outstanding = configuration.outstanding as f64 * f64::from(configuration.call_bytes);
        let mib = (outstanding + 2.0 * self.commit_bytes as f64) / f64::from(1 << 20);
        let needed = Nanos::from_secs_f64(Self::RESERVE * mib / mib_per_s);
        least.max(needed.min(Self::MOST))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_outstanding_is_waited_for_as_long_as_its_rate_lets_expect() {
        let one = Configuration { subject: 0, call_bytes: 1 << 20, outstanding: 4 };
        let drain = |mib_per_s| Drain::new(&Plan::PROBE_QUICK, 8 << 20, mib_per_s);
        let time = Nanos::from_millis(60);
        // 4 MiB and two COMMITs' worth, at 40 MiB/s, and half as much again.
        assert_eq!(drain(Some(40.0)).of(&one, time), Nanos::from_millis(750));
        assert_eq!(drain(Some(1.0)).of(&one, time), Drain::MOST);
        assert_eq!(drain(Some(1e4)).of(&one, time), Plan::PROBE_QUICK.drain);
        assert_eq!(drain(None).of(&one, time), Plan::PROBE_QUICK.drain);
        assert_eq!(drain(None).of(&one, Nanos::from_secs(3)), Nanos::from_secs(3));
    }
}
