//! What is run, and what its repetitions have shown.

use perf::model::transaction::Transfer;
use perf::stats::{Estimate, Sample};

use crate::seqwrite::Run;

/// What is run.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Configuration {
    /// Index of the subject.
    pub subject: usize,
    pub call_bytes: u32,
    pub outstanding: usize,
}

/// All repetitions of a configuration.
#[derive(Clone, Debug)]
pub struct Measured {
    pub configuration: Configuration,
    /// Of every repetition; 0 of one that shows nothing ([`Run::mib_per_s`]): too little of what it
    /// wrote is known to be stable, however long it was waited for.
    pub mib_per_s: Vec<f64>,
    /// The repetition with the median throughput, with its every call.
    pub typical: Run,
    /// The other repetitions, in order, with theirs.
    pub others: Vec<Run>,
}

impl Measured {
    /// `None` where the median repetition shows nothing.
    pub fn estimate(&self) -> Option<Estimate> {
        self.sample().map(|sample| sample.median_estimate()).filter(|found| found.value > 0.0)
    }

    pub fn median(&self) -> Option<f64> {
        self.sample().map(|sample| sample.median()).filter(|&median| median > 0.0)
    }

    /// Repetitions that show nothing.
    pub fn unanswered(&self) -> usize {
        self.mib_per_s.iter().filter(|&&mib_per_s| mib_per_s == 0.0).count()
    }

    /// Smallest and largest repetition.
    pub fn spread(&self) -> Option<(f64, f64)> {
        self.sample().map(|sample| (sample.min(), sample.max()))
    }

    fn sample(&self) -> Option<Sample> {
        Sample::new(self.mib_per_s.clone()).ok()
    }
}

/// The transfer that the model predicts.
pub fn transfer(configuration: &Configuration, commit_bytes: u64) -> Transfer {
    Transfer {
        call_bytes: u64::from(configuration.call_bytes),
        outstanding: u32::try_from(configuration.outstanding).unwrap_or(u32::MAX),
        commit_bytes,
    }
}

/// The repetitions of a configuration; `None` without any.
pub(super) fn typical(configuration: Configuration, mut runs: Vec<Run>) -> Option<Measured> {
    if runs.is_empty() {
        return None;
    }
    let mib_per_s: Vec<f64> = runs.iter().map(|run| run.mib_per_s().unwrap_or(0.0)).collect();
    let mut order: Vec<usize> = (0..runs.len()).collect();
    order.sort_by(|&a, &b| mib_per_s[a].total_cmp(&mib_per_s[b]));
    let typical = runs.remove(order[order.len() / 2]);
    Some(Measured { configuration, mib_per_s, typical, others: runs })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seqwrite::Workload;
    use crate::study::COMMIT_BYTES_MIN;
    use client::transfer::Limit;
    use perf::units::Nanos;
    use wire::nfs3::StableHow;

    #[test]
    fn a_repetition_that_stalls_weighs_as_much_as_one_that_does_not() {
        let workload = Workload {
            call_bytes: 8192,
            outstanding: 4,
            file_bytes: 1 << 20,
            total_bytes: u64::MAX,
            commit_bytes: COMMIT_BYTES_MIN,
            stable: StableHow::Unstable,
            limit: Limit::default(),
        };
        let run = |mib: u64| Run {
            workload,
            started: perf::units::Instant::EPOCH,
            elapsed: Nanos::from_secs(1),
            bytes: mib << 20,
            durable_after: Nanos::from_secs(1),
            resent_bytes: 0,
            abandoned: mib == 0,
            events: Vec::new(),
            cpu: crate::cpu::Usage::default(),
        };
        let configuration = Configuration { subject: 0, call_bytes: 8192, outstanding: 4 };
        let of = |mib: &[u64]| typical(configuration, mib.iter().copied().map(run).collect());
        let one_of_three = of(&[46, 0, 0]).unwrap();
        assert_eq!((one_of_three.mib_per_s.len(), one_of_three.unanswered()), (3, 2));
        assert_eq!((one_of_three.median(), one_of_three.estimate()), (None, None));
        let two_of_three = of(&[46, 0, 40]).unwrap();
        assert_eq!((two_of_three.median(), two_of_three.spread()), (Some(40.0), Some((0.0, 46.0))));
        assert_eq!(two_of_three.typical.bytes, 40 << 20);
        assert_eq!(of(&[]).map(|none| none.unanswered()), None);
    }

    #[test]
    fn an_abandoned_run_with_one_commit_behind_a_full_window_shows_no_throughput() {
        let workload = Workload {
            call_bytes: 1 << 20,
            outstanding: 32,
            file_bytes: 64 << 20,
            total_bytes: u64::MAX,
            commit_bytes: COMMIT_BYTES_MIN,
            stable: StableHow::Unstable,
            limit: Limit::default(),
        };
        // The link has 11.6 MiB/s, and the COMMIT came behind all 32 calls.
        let run = |bytes: u64, abandoned| Run {
            workload,
            started: perf::units::Instant::EPOCH,
            elapsed: Nanos::from_secs(2),
            bytes,
            durable_after: Nanos::from_secs(2),
            resent_bytes: 0,
            abandoned,
            events: Vec::new(),
            cpu: crate::cpu::Usage::default(),
        };
        assert_eq!(run(8 << 20, true).mib_per_s(), None);
        assert_eq!(run(8 << 20, true).durable_mib_per_s(), Some(4.0));
        assert_eq!(run(8 << 20, false).mib_per_s(), Some(4.0));
        let several = 2 * (COMMIT_BYTES_MIN + (32 << 20));
        assert!(run(several, true).mib_per_s().is_some());
        let configuration = Configuration { subject: 0, call_bytes: 1 << 20, outstanding: 32 };
        let measured = typical(configuration, vec![run(8 << 20, true)]).unwrap();
        assert_eq!((measured.median(), measured.unanswered()), (None, 1));
    }
}
