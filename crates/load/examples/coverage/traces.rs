//! Servers inferred from a trace, and changes to them (`trace`, `model fit` and `whatif` of calls).

use perf::model::trace::{Explained, Transaction, Work};
use perf::model::whatif::Change;
use perf::model::whatif::of_trace::answer;
use perf::stats::{Estimate, Interval};

use super::{Found, Noise, Process, SPREAD, TIME};

/// way, op, ser (per KiB), block; us.
const TRUTH: [f64; 4] = [200.0, 150.0, 3.0, 300.0];
const SERVERS: u32 = 2;

/// Calls with each number outstanding.
const CALLS: u32 = 120;
const WINDOWS: [usize; 4] = [1, 2, 4, 8];

/// Changes with so many calls outstanding: fewer than fill the servers, and enough to.
const CHANGES: [(&str, u32); 6] = [
    ("L+1ms", 1),
    ("o+50us", 1),
    ("outstanding x16", 1),
    ("o+50us", 64),
    ("cpus=4", 64),
    ("write-log=nvme", 64),
];

/// All that `model fit` prints of a trace, and what `model whatif` does with it.
pub(super) fn traced(noise: Noise, seed: u64) -> Vec<Found> {
    let Ok(explained) = Explained::from(&calls(noise, seed)) else { return Vec::new() };
    let name = "trace";
    let mut found = super::named(name, &explained.fitted, &TRUTH);
    let (least, most) = explained.servers_range;
    let range = Interval { lo: least.into(), hi: most.map_or(f64::INFINITY, f64::from) };
    let servers = Estimate { value: explained.servers.into(), ci95: Some(range) };
    found.push((format!("{name}: servers"), SERVERS.into(), servers));
    let mut truth = Explained { servers: SERVERS, ..explained.clone() };
    for (found, value) in truth.fitted.parameters.iter_mut().zip(TRUTH) {
        found.estimate.value = value;
    }
    for (text, outstanding) in CHANGES {
        let Ok(change) = text.parse::<Change>() else { continue };
        let answered = |of: &Explained| answer(of, Some(outstanding), &[change]);
        let (Ok([_, after]), Ok([_, truth])) = (answered(&explained), answered(&truth)) else {
            continue;
        };
        let name = format!("what if, {name}, {text} of {outstanding}");
        found.push((name, truth.per_s.value, after.per_s));
    }
    found
}

/// A client that keeps calls outstanding before servers with one line.
fn calls(noise: Noise, seed: u64) -> Vec<Transaction> {
    let [way_us, op_us, ser_us, block_us] = TRUTH;
    let mut process = Process::new(noise, TIME, seed);
    let mut draw = fastrand::Rng::with_seed(seed);
    let mut calls = Vec::new();
    let mut now_us: f64 = 0.0;
    for (number, window) in [0.0, 1.0, 2.0, 3.0].into_iter().zip(WINDOWS) {
        let mut callers = vec![now_us; window];
        let mut free = [now_us; SERVERS as usize];
        for call in 0..CALLS {
            let at = (number + f64::from(call) / f64::from(CALLS)) / WINDOWS.len() as f64;
            let own = first(&callers);
            let bytes = [0, 8 << 10, 64 << 10][draw.usize(..3)];
            let is_stable = bytes > 0 && draw.bool();
            let (work, stable_us) =
                if is_stable { (Work::Stable, block_us) } else { (Work::Memory, 0.0) };
            let demand_us = op_us + bytes as f64 / 1024.0 * ser_us + stable_us;
            let server = first(&free);
            let sent_us = callers[own];
            let begins_us = free[server].max(sent_us + way_us / 2.0);
            free[server] = begins_us + process.draw(demand_us, SPREAD, at);
            callers[own] = free[server] + way_us / 2.0;
            calls.push(Transaction { sent_us, answered_us: callers[own], bytes, work });
        }
        now_us = callers.iter().copied().fold(0.0, f64::max) + 1e4;
    }
    calls
}

/// Where the earliest moment is.
fn first(moments: &[f64]) -> usize {
    (0..moments.len()).min_by(|&a, &b| moments[a].total_cmp(&moments[b])).unwrap_or(0)
}
