//! What was measured, and what it comes to: where the time of a call goes, and what several
//! programs were to give.
//!
//! The prediction uses one program and two, and nothing else: of the time T1 that a call of one
//! program takes, D is spent at what serves one call after the other, and the rest somewhere where
//! nobody waits for another. With two programs a call finds the other at the queue with the
//! probability D / T1, so that T2 = T1 + D^2 / T1: which gives D. The closed network of a delay
//! T1 - D and a queue D says what more programs give.

use std::path::PathBuf;

use harness::records;
use harness::verdict::Gain;
use load::directory::{Crowd, Kind};
use load::file_system::FileSystem;
use perf::model::closed::network::{Center, Class, Kind as Serves, Network};
use perf::stats::Sample;
use perf::units::Nanos;

use super::counted::Operation;
use super::job::{Crowds, Measured, PROGRAMS, Plan};

/// Everything that a report or a record says.
#[derive(Debug)]
pub(super) struct DirectoryStudy {
    pub(super) plan: Plan,
    pub(super) started: String,
    pub(super) command: String,
    pub(super) dir: PathBuf,
    pub(super) file_system: FileSystem,
    pub(super) measured: Measured,
    /// Of the NFS mount that it is on.
    pub(super) diagnosis: Option<doctor::Report>,
    /// Share of all processors that others used during the run.
    pub(super) neighbours_share: Option<f64>,
}

/// So many programs: measured, and predicted where they are more than two.
#[derive(Clone, Debug)]
pub(super) struct ProgramsPoint {
    pub(super) programs: usize,
    pub(super) mib_per_s: Option<Sample>,
    pub(super) predicted_mib_per_s: Option<f64>,
}

/// A part of a call's time.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Part {
    pub(super) place: Place,
    pub(super) us: f64,
}

perf::named! {
    /// Where a part of the time goes.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub(super) enum Place {
        ClientQueue => "client's queue",
        ClientRest => "client, rest",
        Fdatasync => "fdatasync(2)",
        Network => "network",
        NetworkOrServer => "network or server",
        PageCache => "page cache",
        Server => "server",
        Write => "write(2)",
    }
}

impl DirectoryStudy {
    /// Both were measured, and two refute what is to be predicted from them.
    pub(super) fn is_unpredictable(&self, kind: Kind) -> bool {
        let rates = self.rates(kind, 1).zip(self.rates(kind, 2));
        rates.is_some_and(|(one, two)| Contention::of_samples(&one, &two).is_none())
    }

    pub(super) fn curve(&self, kind: Kind) -> Vec<ProgramsPoint> {
        let rates = self.rates(kind, 1).zip(self.rates(kind, 2));
        let model = rates.and_then(|(one, two)| Contention::of_samples(&one, &two));
        let point = |programs| ProgramsPoint {
            programs,
            mib_per_s: self.rates(kind, programs),
            predicted_mib_per_s: model.filter(|_| programs > 2).and_then(|of| of.rate(programs)),
        };
        PROGRAMS.map(point).to_vec()
    }

    /// MiB/s of so many programs, in all repetitions.
    fn rates(&self, kind: Kind, programs: usize) -> Option<Sample> {
        let is_one = |one: &&Crowds| one.kind == kind && one.programs == programs;
        let crowds = self.measured.crowds.iter().find(is_one)?;
        records::sample(crowds.runs.iter().map(Crowd::mib_per_s))
    }

    /// The number of programs that gave most, against one: predicted and measured.
    pub(super) fn gain(&self, kind: Kind) -> Option<(usize, Gain)> {
        let curve = self.curve(kind);
        let rate = |of: &ProgramsPoint| of.mib_per_s.as_ref().map_or(0.0, Sample::median);
        let one = curve.first()?.mib_per_s.as_ref()?;
        let predicted = curve.iter().filter(|point| point.predicted_mib_per_s.is_some());
        let most = predicted.max_by(|a, b| rate(a).total_cmp(&rate(b)))?;
        let many = most.mib_per_s.as_ref()?;
        let noise = |sample: &Sample| 100.0 * (sample.max() / sample.min() - 1.0);
        let gain = Gain {
            predicted: most.predicted_mib_per_s? / one.median(),
            measured: many.median() / one.median(),
            noise_pct: noise(one).max(noise(many)),
        };
        Some((most.programs, gain))
    }

    /// Where the time of a small write that is made stable goes, one at a time.
    pub(super) fn parts(&self) -> Vec<Part> {
        let step = &self.measured.small;
        let calls = step.of.stable.len();
        let mean = |times: &[Nanos]| {
            times.iter().map(|time| time.as_micros_f64()).sum::<f64>() / times.len().max(1) as f64
        };
        let (written, stable) = (mean(&step.of.written), mean(&step.of.stable));
        let Some(counted) = step.counted.as_ref().filter(|_| calls > 0) else {
            return vec![
                Part { place: Place::Write, us: written },
                Part { place: Place::Fdatasync, us: (stable - written).max(0.0) },
            ];
        };
        self.counted_parts(&counted.total(), stable, calls)
    }

    /// Of a call that takes so long, by the counters of so many.
    fn counted_parts(&self, total: &Operation, stable_us: f64, calls: usize) -> Vec<Part> {
        let us = |ms: f64| ms * 1e3 / calls as f64;
        let part = |place, ms: f64| Part { place, us: us(ms) };
        let floor_ms = self.diagnosis.as_ref().and_then(|report| report.floor);
        let network_ms = floor_ms.map(|floor| (floor.ms * total.calls as f64).min(total.rtt_ms));
        let server_ms = total.rtt_ms - network_ms.unwrap_or(0.0);
        let rest_ms = (total.execute_ms - total.queue_ms - total.rtt_ms).max(0.0);
        let mut parts = vec![
            Part { place: Place::PageCache, us: (stable_us - us(total.execute_ms)).max(0.0) },
            part(Place::ClientQueue, total.queue_ms),
            part(Place::ClientRest, rest_ms),
        ];
        let server = if network_ms.is_some() { Place::Server } else { Place::NetworkOrServer };
        parts.extend(network_ms.map(|ms| part(Place::Network, ms)));
        parts.push(part(server, server_ms));
        parts
    }

    /// How much of what was read after it had been dropped came from this host's memory all the
    /// same, and how that is known.
    pub(super) fn memory_share(&self) -> (Option<f64>, &'static str) {
        let reads = self.measured.crowds.iter().filter(|crowds| crowds.kind == Kind::Read);
        let runs = reads.clone().flat_map(|crowds| &crowds.runs);
        if let Some(received) = reads.map(received_bytes).sum::<Option<u64>>() {
            let calls: usize = runs.map(|run| run.calls.len()).sum();
            let bytes = (calls * load::directory::BLOCK_BYTES) as f64;
            let share = (1.0 - received as f64 / bytes.max(1.0)).max(0.0);
            return (Some(share), "by the bytes of READ replies");
        }
        let resident = records::sample(runs.filter_map(|run| run.resident));
        (resident.map(|sample| sample.mean()), "by asking for pages without waiting")
    }
}

/// Of READ replies, where the kernel counted.
fn received_bytes(crowds: &Crowds) -> Option<u64> {
    let operations = &crowds.counted.as_ref()?.operations;
    Some(operations.get("READ").map_or(0, |read| read.received_bytes))
}

/// Two may give so many times twice of what one gave, by chance. Guess.
const BY_CHANCE: f64 = 1.1;

/// See the module's head: a delay and a queue, in us of a call.
#[derive(Clone, Copy, Debug)]
struct Contention {
    delay_us: f64,
    queue_us: f64,
    /// MiB of a call.
    mib: f64,
}

impl Contention {
    /// None where two programs at once are each faster than one, by more than their spread: then
    /// one is slow for a reason of its own, and says nothing of more.
    fn of_samples(one: &Sample, two: &Sample) -> Option<Self> {
        let is_refuted = two.min() > BY_CHANCE * 2.0 * one.max();
        let are_rates = one.median() > 0.0 && two.median() > 0.0;
        (are_rates && !is_refuted).then(|| Self::of(one.median(), two.median()))
    }

    /// From the rates of one program and of two, both above zero.
    fn of(one_mib_per_s: f64, two_mib_per_s: f64) -> Self {
        let mib = load::directory::BLOCK_BYTES as f64 / f64::from(1 << 20);
        let (one_us, two_us) = (mib / one_mib_per_s * 1e6, 2.0 * mib / two_mib_per_s * 1e6);
        let queue_us = (one_us * (two_us - one_us).max(0.0)).sqrt().min(one_us);
        Self { delay_us: one_us - queue_us, queue_us, mib }
    }

    fn rate(&self, programs: usize) -> Option<f64> {
        let class = Class { callers: u32::try_from(programs).ok()?, think_us: 0.0 };
        let centers = vec![
            Center::new("alone", Serves::Delay, &[self.delay_us]),
            Center::new("together", Serves::Queue, &[self.queue_us]),
        ];
        let solved = Network::new(vec![class], centers).ok()?.solve().ok()?;
        Some(solved.throughput_per_s.first()? * self.mib)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_that_do_not_wait_for_each_other_give_in_proportion() {
        let rate = Contention::of(3.0, 6.0).rate(16).unwrap();
        assert!((rate - 48.0).abs() < 1e-6, "{rate}");
        // Two are faster than twice one: that is noise, and no delay is negative.
        assert!((Contention::of(3.0, 7.0).rate(4).unwrap() - 12.0).abs() < 1e-6);
    }

    #[test]
    fn nothing_is_predicted_from_one_program_that_is_slower_than_each_of_two() {
        let sample = |rates: &[f64]| Sample::new(rates.to_vec()).unwrap();
        let one = sample(&[2.0, 2.2, 2.4]);
        assert!(Contention::of_samples(&one, &sample(&[29.0, 29.6])).is_none());
        // Within the spread, or by chance.
        assert!(Contention::of_samples(&one, &sample(&[4.7, 29.6])).is_some());
        assert!(Contention::of_samples(&one, &sample(&[5.2])).is_some());
        assert!(Contention::of_samples(&one, &sample(&[0.0])).is_none());
    }

    #[test]
    fn programs_that_wait_for_one_place_give_no_more_than_it_serves() {
        let rate = Contention::of(3.0, 3.0).rate(16).unwrap();
        assert!((rate - 3.0).abs() < 1e-6, "{rate}");
        // T1 = 2, D = 1: two give 2 / 2.5 instead of 1 / 2, and at most 1.
        let model = Contention::of(0.5, 0.8);
        assert!((model.queue_us - model.delay_us).abs() < 1e-6, "{model:?}");
        assert!((0.97..1.0).contains(&model.rate(16).unwrap()));
    }
}
