//! What a probe finds, and changes to the path that it found (`probe`, and `model whatif` of its
//! record).
//!
//! The path is behind a link whose rate is known. Changes are held to two runs of a second with so
//! many calls outstanding, as those of a probe are.

use load::probe::concurrency::SMALL_BYTES;
use load::probe::{self, Findings};
use perf::model::transaction::{Capacity, Path, Server, Transfer};
use perf::model::whatif::Change;
use perf::model::whatif::of_path::PathCase;
use perf::stats::median_in_order;

use super::{Found, Noise, Process, SPREAD, SPREAD_OF_BURSTS, TIME};

const WAY_US: f64 = 200.0;
const OP_US: f64 = 60.0;
const SER_US_PER_KIB: f64 = 9.0;
const BLOCK_US: f64 = 500.0;
const COMMIT_US: f64 = 40_000.0;
const COMMIT_BYTES: u64 = 8 << 20;
const OVERHEAD_US: f64 = 30.0;
const GAP_US: f64 = 20.0;
const GAP_US_PER_KIB: f64 = 8.0;
/// A full pipe of calls of 512 bytes, per call.
const SMALL_US: f64 = 80.25;
const PORTIONS: usize = 4;

/// L and G of the link.
const LINK: (f64, f64) = (90.0, GAP_US_PER_KIB);

/// All that a probe prints of the path.
pub(super) fn probed(noise: Noise, seed: u64) -> Vec<Found> {
    let mut process = Process::new(noise, TIME, seed);
    let Some(found) = found(&mut process, |_, _| {}) else { return Vec::new() };
    let named = |name: &str, truth, estimate| (name.to_owned(), truth, estimate);
    vec![
        named("2 T_prop", WAY_US, found.round_trip),
        named("T_ser", SER_US_PER_KIB, found.ser_us_per_kib),
        named("T_op", OP_US, found.op_us),
        named("T_B", BLOCK_US, found.block_us),
        named("T_B, COMMIT", COMMIT_US, found.commit_us),
        named("o", OVERHEAD_US, found.overhead_us),
        named("g", GAP_US, found.gap_us),
        named("G", GAP_US_PER_KIB, found.gap_us_per_kib),
    ]
}

/// `beside` is done before and after the first portion, and after the last.
fn found(process: &mut Process, mut beside: impl FnMut(&mut Process, f64)) -> Option<Findings> {
    let mut portions = Vec::new();
    for portion in 0..PORTIONS {
        if portion < 2 {
            beside(process, portion as f64 / PORTIONS as f64);
        }
        let at = |part: f64| (portion as f64 + part) / PORTIONS as f64;
        let null_us = (0..250)
            .map(|call| process.draw(WAY_US, SPREAD, at(0.3 * f64::from(call) / 250.0)))
            .collect();
        let mut rounds = Vec::new();
        for round in 0..6 {
            let at = at(0.3 + 0.3 * f64::from(round) / 6.0);
            let mut single = |kib: f64, more_us: f64| {
                let us = WAY_US + OP_US + SER_US_PER_KIB * kib + more_us;
                let mut times = [(); 5].map(|()| process.draw(us, SPREAD, at));
                let one = times[0];
                times.sort_unstable_by(f64::total_cmp);
                (one, times[2])
            };
            // Of five in a row the median; of a stable one, and after a rest, there is one.
            let trials = [1_u32, 8, 64, 256, 1024]
                .map(|kib| (kib << 10, single(kib.into(), 0.0).1, single(kib.into(), BLOCK_US).0));
            rounds.push((trials.into(), single(8.0, 0.0).0));
        }
        let mut bursts = Vec::new();
        for burst in 0..3 {
            let at = at(0.6 + 0.4 * f64::from(burst) / 3.0);
            let mut mean = |us: f64| process.draw(us, SPREAD_OF_BURSTS, at);
            let cycle_us = WAY_US + OP_US + 8.0 * SER_US_PER_KIB;
            bursts.push([
                mean(WAY_US + COMMIT_US),
                mean(GAP_US + 8.0 * GAP_US_PER_KIB),
                mean(f64::midpoint(cycle_us, OVERHEAD_US)),
                mean(GAP_US + 1024.0 * GAP_US_PER_KIB),
            ]);
        }
        portions.push(probe::Simulated { null_us, rounds, bursts });
    }
    beside(process, 1.0);
    probe::of_simulated(portions).ok()
}

/// Changes with so many calls outstanding: fewer than fill the path, and enough to.
const CHANGES: [(&str, u32); 6] = [
    ("L+1ms", 4),
    ("o+50us", 4),
    ("G=800m", 4),
    ("wsize=16K", 4),
    ("outstanding x4", 4),
    ("o+50us", 64),
];

/// Throughput after changes.
pub(super) fn changed(noise: Noise, seed: u64) -> Vec<Found> {
    let mut process = Process::new(noise, TIME, seed);
    let mut small_us = Vec::new();
    let findings = found(&mut process, |process, at| {
        small_us.push((0..4).map(|_| process.draw(SMALL_US, SPREAD_OF_BURSTS, at)).collect());
    });
    let (Some(findings), Ok(small)) = (findings, median_in_order(&small_us)) else {
        return Vec::new();
    };
    let spread = findings.spread(&small);
    let mut answers = Vec::new();
    for (text, outstanding) in CHANGES {
        let Ok(change) = text.parse::<Change>() else { continue };
        let truth = case(path(), outstanding, SMALL_US);
        let mut run = || truth.formula().mib_per_s / process.draw(1.0, SPREAD_OF_BURSTS, 1.1);
        let measured = f64::midpoint(run(), run());
        let before = case(findings.path, outstanding, small.value).calibrated(measured);
        let (Ok(after), Ok(truth)) = (before.changed(&[change]), truth.changed(&[change])) else {
            continue;
        };
        let Ok(prediction) = after.predicted(&spread) else { continue };
        let name = format!("what if, probe, {text} of {outstanding}");
        answers.push((name, truth.formula().mib_per_s, prediction.formula));
    }
    answers
}

/// As it is.
fn path() -> Path {
    Path {
        round_trip_us: WAY_US,
        ser_us_per_kib: SER_US_PER_KIB,
        op_us: OP_US,
        overhead_us: OVERHEAD_US,
        capacity: Capacity { call_us: GAP_US, us_per_kib: GAP_US_PER_KIB },
        storage: probe::storage(BLOCK_US, COMMIT_US, COMMIT_US, 0.0, COMMIT_BYTES),
    }
}

fn case(path: Path, outstanding: u32, small_us: f64) -> PathCase {
    let case = PathCase {
        path,
        server: Server::Concurrent,
        transfer: Transfer { call_bytes: 8192, outstanding, commit_bytes: COMMIT_BYTES },
        latency_us: 0.0,
        link_us_per_kib: 0.0,
        ends: None,
        threads: None,
        processor_us: None,
    };
    case.behind(LINK.0, LINK.1, (f64::from(SMALL_BYTES) / 1024.0, small_us))
}
