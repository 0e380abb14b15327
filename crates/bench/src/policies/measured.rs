//! What was measured of the policies: files, servers, and the times of calls.

use client::write_behind::PolicyName;
use harness::records;
use load::latencies::{SLOW, Summary};
use load::policies::Run;
use net::shape::profile::Profile;
use perf::stats::Sample;
use perf::units::Nanos;

/// Bytes in a write(), as in the paper.
pub(super) const CALL_BYTES: u32 = 8192;

const MIB: u64 = 1 << 20;

/// A file of the paper's.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Scene {
    /// 40 MB: figure 2.
    Spikes,
    /// 100 MB: figures 3 and 4.
    Growth,
    /// 30 MB: figures 5 and 6.
    Jitter,
    /// 5 MB: table 1.
    Short,
}

impl Scene {
    pub(super) const ALL: [Self; 4] = [Self::Spikes, Self::Growth, Self::Jitter, Self::Short];

    /// The paper's; a tenth of it to be quick.
    pub(super) fn file_bytes(self, quick: bool) -> u64 {
        let mib = match self {
            Self::Spikes => 40,
            Self::Growth => 100,
            Self::Jitter => 30,
            Self::Short => 5,
        };
        if quick { mib * MIB / 10 } else { mib * MIB }
    }

    pub(super) fn is_for_both_servers(self) -> bool {
        matches!(self, Self::Jitter | Self::Short)
    }
}

perf::named! {
    /// Which server.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub(super) enum Speed {
        Fast => "fast",
        Slow => "slow",
    }
}

/// All repetitions of one policy with one file against one server.
#[derive(Debug)]
pub(super) struct Measured {
    pub(super) policy: PolicyName,
    pub(super) scene: Scene,
    pub(super) speed: Speed,
    pub(super) file_bytes: u64,
    pub(super) runs: Vec<Run>,
}

impl Measured {
    /// The repetition with the median mean.
    pub(super) fn typical(&self) -> Option<&Run> {
        let mut runs: Vec<&Run> = self.runs.iter().collect();
        runs.sort_by_key(|run| run.mean());
        runs.get(runs.len().saturating_sub(1) / 2).copied()
    }

    /// Of the typical run, without its first call, as the paper has it.
    pub(super) fn summary(&self) -> Option<Summary> {
        Summary::of(self.typical()?.calls.get(1..)?, SLOW)
    }

    /// Standard deviation of the calls that are not slow, in microseconds: what a lock does, and
    /// not what a scheduler does that takes a processor away for milliseconds.
    pub(super) fn spread_us(&self) -> Option<f64> {
        usual(self.typical()?)?.standard_deviation()
    }

    /// The same of every repetition.
    pub(super) fn spreads_us(&self) -> impl Iterator<Item = f64> {
        self.runs.iter().filter_map(|run| usual(run)?.standard_deviation())
    }

    /// Mean of the calls that are not slow, of every repetition, in microseconds.
    pub(super) fn usual_means_us(&self) -> impl Iterator<Item = f64> {
        self.runs.iter().filter_map(|run| Some(usual(run)?.mean()))
    }

    /// Median of MiB/s until the last call has returned, and until everything is committed.
    pub(super) fn rates(&self) -> Option<(f64, f64)> {
        let mib = self.file_bytes as f64 / MIB as f64;
        let median = |span: fn(&Run) -> Nanos| {
            let rates: Vec<f64> =
                self.runs.iter().map(|run| mib / span(run).as_secs_f64()).collect();
            Sample::new(rates).ok().map(|sample| sample.median())
        };
        Some((median(|run| run.written)?, median(|run| run.flushed)?))
    }

    /// Least and largest mean of all repetitions, in microseconds.
    pub(super) fn mean_range_us(&self) -> (f64, f64) {
        let means = self.runs.iter().map(|run| run.mean().as_micros_f64());
        means.fold((f64::MAX, 0.0), |(least, most), mean| (least.min(mean), most.max(mean)))
    }
}

/// The calls of a run that are not slow, but for its first, in microseconds.
pub(super) fn usual(run: &Run) -> Option<Sample> {
    let calls = run.calls.get(1..)?.iter().filter(|call| **call <= SLOW);
    records::sample(calls.map(|call| call.as_micros_f64()))
}

/// Everything that was measured, and how.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(super) link: Profile,
    /// The URL of somebody else's server.
    pub(super) url: Option<String>,
    pub(super) wsize: u32,
    pub(super) took: Nanos,
    pub(super) measured: Vec<Measured>,
}

impl Outcome {
    pub(super) fn of(&self, policy: PolicyName, scene: Scene, speed: Speed) -> Option<&Measured> {
        self.measured.iter().find(|m| (m.policy, m.scene, m.speed) == (policy, scene, speed))
    }

    /// `4 MiB, fast server`: what was written where.
    pub(super) fn with_file(&self, measured: &Measured) -> String {
        let file = records::bytes(measured.file_bytes);
        match self.url {
            Some(_) => file,
            None => format!("{file}, {} server", measured.speed.name()),
        }
    }
}
