//! A topology from a record: of what a probe found, or of what was fitted.

use std::fmt::Write as _;
use std::path::Path;

use harness::exit::Failure;
use perf::model::saved::SavedPath;
use perf::model::whatif;
use perf::model::whatif::of_trace::TraceCase;
use world::simulate::Topology;

use crate::model::page::unreadable;
use crate::model::source::Source;
use crate::model::worlds::{self, Load, Stage};
use crate::model::{fit, infer};

/// Of a path: the sequential write that was probed, and what the formula has for it, MiB/s. Of a
/// curve: the server at half its peak. Of a sweep: with the calls outstanding at which it is full,
/// or the most that it has. Of a trace: with as many as it had, or at its rate where the client
/// made no call for longer than its calls took.
pub(super) fn topology(path: &Path, of: Option<&str>) -> Result<(Topology, Option<f64>), Failure> {
    let about = |cause: &dyn std::fmt::Display| unreadable(path, "simulate", cause);
    let topology = match Source::read(path, "simulate", of)? {
        Source::Path(saved, _) => {
            let topology = Topology::parse(&of_path(&saved)).map_err(|error| about(&error))?;
            return Ok((topology, Some(saved.case().formula().mib_per_s)));
        }
        Source::Curve(curve, facts) => {
            let inferred = infer::infer(&curve, path, &facts)?;
            let per_s = curve.peak_per_s() / 2.0;
            worlds::file_server(&inferred.server, per_s, Load::Rate(per_s))
        }
        Source::Sweep(observed) => {
            let (best, _) = fit::sweep(&observed, path)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let full = best.saturation().map_or(best.most, |found| found.knee.ceil() as u32);
            Stage::of_sweep(&best.fitted.values(), full.max(1)).topology()
        }
        Source::Trace(transactions) => {
            let explained = fit::trace::explained(&transactions, path)?;
            let [before, _] =
                whatif::of_trace::answer(&explained, None, &[]).map_err(|error| about(&error))?;
            let is_idle = before.case.think_us > before.formula.response_us;
            let case = TraceCase { think_us: 0.0, ..before.case };
            Stage::of_trace(&case).topology().map(|mut topology| {
                topology.workload.rate = is_idle.then_some(explained.measured.per_s);
                topology
            })
        }
    };
    topology.map(|topology| (topology, None)).map_err(|why| about(&why))
}

/// As an option has it, without zeros at its end.
fn rate(us_per_kib: f64) -> String {
    let mb_per_s = format!("{:.4}", 1024.0 / us_per_kib);
    format!("{}MB/s", mb_per_s.trim_end_matches('0').trim_end_matches('.'))
}

/// What takes less than this is nothing.
const LEAST: f64 = 1e-3;

/// As text, so that it can be looked at and is checked as any other: the sequential write that was
/// probed, with its COMMITs. What is not the slowest stage has processors enough that nobody waits
/// for it.
fn of_path(saved: &SavedPath) -> String {
    let case = saved.case();
    let mut text = String::new();
    let us_of = |us: f64| if us < LEAST { "0".to_owned() } else { format!("{us:.3}us") };
    let capacity = case.path.capacity;
    let per_byte_ns = (saved.ser_us_per_kib - capacity.us_per_kib).max(0.0) * 1e3 / 1024.0;
    let mode = if saved.stalls { "stall" } else { "concurrent" };
    let per_byte = if per_byte_ns < LEAST { "0".to_owned() } else { format!("{per_byte_ns:.6}ns") };
    let mut disk = format!("seek=0,sync={}", us_of(saved.sync_us));
    if saved.sync_us_per_kib > LEAST {
        write!(disk, ",rate={}", rate(saved.sync_us_per_kib)).ok();
    } else {
        // So fast that it takes no time that can be seen.
        disk.push_str(",rate=1000GB/s");
    }
    // The link's pause makes up what an end takes longer than the link.
    let bytes = saved.call_bytes as f64;
    let longer_us = case.ends_us().map_or(0.0, |us| us - capacity.call_of_us(bytes)).max(0.0);
    let pause_us = capacity.call_us + longer_us;
    let mut link = format!(
        "L={},g={},o.send={}",
        us_of((saved.round_trip_us - saved.overhead_us).max(0.0) / 2.0),
        us_of(pause_us),
        us_of(saved.overhead_us.min(saved.round_trip_us))
    );
    if capacity.us_per_kib > LEAST {
        write!(link, ",G={}", rate(capacity.us_per_kib)).ok();
    }
    let outstanding = saved.outstanding.min(1024);
    let (commit_bytes, writes_back) = (saved.commit_bytes, world::path::writes_back_early(&case));
    let write_back = if writes_back { (commit_bytes / 16).max(64 << 10) } else { 0 };
    // So long that there are some COMMITs.
    let commit_us = commit_bytes as f64 / (1 << 20) as f64 / case.formula().mib_per_s * 1e6;
    write!(
        text,
        "[server]\ncores = 256\nper-call = \"0\"\nper-byte = \"{per_byte}\"\ncosts.WRITE = \"{}\"\n\
         disk = \"{disk}\"\ncommit-mode = \"{mode}\"\nwrite-back = \"{write_back}\"\n\
         dirty-max = \"{}\"\n\
         [[clients]]\ncount = 1\nlink = \"{link}\"\n\
         [workload]\nwrite = \"{}\"\ncommit = \"{commit_bytes}\"\noutstanding = {outstanding}\n\
         warm-up = \"{:.3}us\"\ntime = \"{:.3}us\"\nfiles = \"{}\"\n",
        us_of(saved.op_us),
        (4 * commit_bytes).max(256 << 20),
        saved.call_bytes,
        1.5 * commit_us,
        4.0 * commit_us,
        FILE_BYTES.max(saved.call_bytes),
    )
    .ok();
    text
}

/// The file, which is overwritten.
const FILE_BYTES: u64 = 32 << 20;

#[cfg(test)]
mod tests {
    use world::simulate;

    use super::*;

    #[test]
    fn what_a_probe_found_is_simulated_as_it_was_probed() {
        // A server in memory, and one that stops for a disk.
        for (sync_us, us_per_kib, stalls) in [(0.0, 0.0, false), (500.0, 5.0, true)] {
            let saved = SavedPath {
                round_trip_us: 210.5,
                ser_us_per_kib: 2.3,
                op_us: 60.0,
                overhead_us: 2.0,
                capacity_call_us: 0.0,
                capacity_us_per_kib: 1.8,
                sync_us,
                sync_us_per_kib: us_per_kib,
                sync_left_us_per_kib: us_per_kib,
                unhidden_us_per_kib: 0.0,
                stalls,
                latency_us: 0.0,
                link_us_per_kib: 0.0,
                call_bytes: 64 << 10,
                outstanding: 8,
                commit_bytes: 8 << 20,
                ends: None,
                processor_us: None,
                spread: [0.0; 6],
                measured: Vec::new(),
                runs_differ_pct: None,
                stable_in_op: false,
            };
            let text = of_path(&saved);
            let topology = Topology::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            let outcome = simulate::run(&topology).unwrap();
            let mib_per_s = outcome.written_bytes_per_s / f64::from(1 << 20);
            let formula = saved.case().formula().mib_per_s;
            let ratio = mib_per_s / formula;
            assert!((0.85..1.1).contains(&ratio), "{mib_per_s} for {formula}: {text}");
        }
    }
}
