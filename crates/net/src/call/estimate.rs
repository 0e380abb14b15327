//! How long a class of procedures takes (Jacobson and Karels; RFC 6298).

use perf::units::Nanos;

/// Least wait: a guess at what a server's disk may need now and then, so that a slow sync is not
/// taken for a loss. Linux has the same.
const WAIT_MIN: Nanos = Nanos::from_millis(100);

/// The smoothed time and its deviation.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimate {
    smoothed: Option<Nanos>,
    deviation: Nanos,
}

impl Estimate {
    pub(super) fn sample(&mut self, time: Nanos) {
        let Some(smoothed) = self.smoothed else {
            (self.smoothed, self.deviation) = (Some(time), time / 2);
            return;
        };
        let off = time.saturating_sub(smoothed) + smoothed.saturating_sub(time);
        self.deviation = (self.deviation * 3 + off) / 4;
        self.smoothed = Some((smoothed * 7 + time) / 8);
    }

    /// How long to wait for a reply; nothing is known before the first sample.
    pub(super) fn wait(&self, wait_max: Nanos) -> Option<Nanos> {
        let wait = self.smoothed? + self.deviation * 4;
        Some(wait.clamp(WAIT_MIN.min(wait_max), wait_max))
    }
}
