//! How much a study measures.

use perf::units::Nanos;

use crate::probe::Amount;

/// Sizes of a WRITE: the thesis's of 2002, and what servers offer today.
pub const CALL_BYTES: [u32; 2] = [8 << 10, 1 << 20];

/// Numbers of calls outstanding.
pub const WINDOWS: [usize; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Bytes between two COMMITs.
pub const COMMIT_BYTES_MIN: u64 = 8 << 20;
pub const COMMIT_BYTES_MAX: u64 = 64 << 20;

/// How much to measure.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    /// Repetitions of the sweep: at least the first number, at most the second, as `sweep_time`
    /// allows.
    pub repeats: (usize, usize),
    pub sweep_time: Nanos,
    pub run_time: Nanos,
    /// For what is outstanding at the end of a run, at least; see [`Drain`](super::Drain).
    pub drain: Nanos,
    /// A COMMIT after as many bytes as the path takes in about this time, in powers of two between
    /// [`COMMIT_BYTES_MIN`] and [`COMMIT_BYTES_MAX`]: a client commits when its memory fills, not
    /// after a number of bytes that suits one network.
    pub commit_time: Nanos,
    pub file_bytes_max: u64,
    /// Time to spend on writing files for the first time: enough, on a link of 1 Gbit/s, for a file
    /// that is longer than what a run has outstanding and uncommitted. What is overwritten before
    /// it is on the disk costs the disk nothing.
    pub fill_time: Nanos,
    /// Of all portions of the probe together.
    pub probe: Amount,
    /// Repetitions of step 4, an even number so that each order comes as often; and the time of
    /// each run: longer, so that beginning and end of a transfer weigh as little as they do for a
    /// user.
    pub applications: usize,
    pub application_time: Nanos,
}

impl Plan {
    /// About a minute on a fast path.
    pub const FULL: Self = Self {
        repeats: (3, 5),
        sweep_time: Nanos::from_secs(75),
        run_time: Nanos::from_millis(220),
        drain: Nanos::from_millis(500),
        commit_time: Nanos::from_millis(40),
        file_bytes_max: 256 << 20,
        fill_time: Nanos::from_millis(1_000),
        probe: Amount {
            null_calls: 2_000,
            rounds: (12, 150),
            round_time: Nanos::from_secs(4),
            bursts: (6, 12),
            bursts_time: Nanos::from_secs(9),
            burst_time: Nanos::from_millis(120),
        },
        applications: 8,
        application_time: Nanos::from_millis(600),
    };

    /// Under 20 seconds on any path of up to 10 ms.
    pub const QUICK: Self = Self {
        repeats: (1, 3),
        sweep_time: Nanos::from_millis(8_500),
        run_time: Nanos::from_millis(130),
        drain: Nanos::from_millis(100),
        file_bytes_max: 128 << 20,
        fill_time: Nanos::from_millis(900),
        probe: Amount {
            null_calls: 1_000,
            rounds: (2, 40),
            round_time: Nanos::from_millis(800),
            bursts: (2, 8),
            bursts_time: Nanos::from_millis(3_000),
            burst_time: Nanos::from_millis(100),
        },
        applications: 2,
        application_time: Nanos::from_millis(250),
        ..Self::FULL
    };

    /// About fifteen seconds: the parameters are what counts, and the sweep only tests them.
    pub const PROBE: Self = Self {
        repeats: (3, 3),
        sweep_time: Nanos::from_secs(9),
        run_time: Nanos::from_millis(100),
        probe: Amount {
            null_calls: 1_000,
            rounds: (12, 80),
            round_time: Nanos::from_secs(2),
            bursts: (8, 12),
            bursts_time: Nanos::from_millis(3_500),
            burst_time: Nanos::from_millis(60),
        },
        ..Self::QUICK
    };

    /// Under ten seconds.
    pub const PROBE_QUICK: Self = Self {
        repeats: (1, 1),
        sweep_time: Nanos::from_secs(3),
        run_time: Nanos::from_millis(60),
        probe: Amount {
            null_calls: 1_000,
            rounds: (6, 20),
            round_time: Nanos::from_millis(600),
            bursts: (6, 6),
            bursts_time: Nanos::from_millis(1_000),
            burst_time: Nanos::from_millis(40),
        },
        ..Self::QUICK
    };

    /// Bytes between two COMMITs on a path of this rate.
    pub(super) fn commit_bytes(&self, mib_per_s: f64) -> u64 {
        let bytes = mib_per_s * f64::from(1 << 20) * self.commit_time.as_secs_f64();
        let mut power = COMMIT_BYTES_MIN;
        while power < COMMIT_BYTES_MAX && (power as f64) < bytes {
            power *= 2;
        }
        power
    }
}
