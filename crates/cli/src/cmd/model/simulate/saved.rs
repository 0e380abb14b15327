//! A topology from a record: of what a probe found, or of what was fitted.

use std::fmt::Write as _;
use std::path::Path;

use perf::model::saved::SavedPath;
use perf::model::sweep;
use perf::model::trace;
use perf::model::whatif;
use world::simulate::Topology;

use super::super::source::Source;
use super::super::worlds::{self, Load, Stage};
use super::super::{infer, unreadable};
use crate::exit::Failure;

/// Of a curve: the server at half its peak. Of a sweep: with the calls outstanding at which it is
/// full. Of a trace: with as many as it had.
pub(super) fn topology(path: &Path, of: Option<&str>) -> Result<Topology, Failure> {
    let about = |cause: &dyn std::fmt::Display| unreadable(path, "simulate", cause);
    let fit = |error| infer::failure(path, &error);
    let topology = match Source::read(path, "simulate", of)? {
        Source::Path(saved) => {
            return Topology::parse(&of_path(&saved)).map_err(|error| about(&error));
        }
        Source::Curve(curve, told) => {
            let inferred = infer::infer(&curve, path, &told)?;
            let per_s = curve.peak_per_s() / 2.0;
            worlds::file_server(&inferred.server, per_s, Load::Rate(per_s))
        }
        Source::Sweep(observed) => {
            let (best, _) = sweep::Explained::best(&observed).map_err(fit)?;
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "saturates"
            )]
            let full = best.knee().ceil() as u32;
            Stage::of_sweep(&worlds::values(&best), full.max(1)).topology()
        }
        Source::Trace(transactions) => {
            let explained = trace::Explained::from(&transactions).map_err(fit)?;
            let [before, _] =
                whatif::trace::answer(&explained, None, &[]).map_err(|error| about(&error))?;
            Stage::of_trace(&before.case).topology()
        }
    };
    topology.map_err(|why| about(&why))
}

/// What takes less than this is nothing.
const LEAST: f64 = 1e-3;

/// As text, so that it can be looked at and is checked as any other. What is not the slowest stage
/// has processors enough that nobody waits for it.
fn of_path(saved: &SavedPath) -> String {
    let mut text = String::new();
    let us_of = |us: f64| if us < LEAST { "0".to_owned() } else { format!("{us:.3}us") };
    let per_byte_ns = (saved.ser_us_per_kib - saved.capacity_us_per_kib).max(0.0) * 1e3 / 1024.0;
    let mode = if saved.stalls { "stall" } else { "concurrent" };
    let per_byte = if per_byte_ns < LEAST { "0".to_owned() } else { format!("{per_byte_ns:.6}ns") };
    let mut disk = format!("seek=0,sync={}", us_of(saved.sync_us));
    if saved.sync_us_per_kib > LEAST {
        write!(disk, ",rate={:.4}MB/s", 1024.0 / saved.sync_us_per_kib).ok();
    } else {
        // So fast that it takes no time that can be seen.
        disk.push_str(",rate=1000GB/s");
    }
    let mut link =
        format!("L={},g={}", us_of(saved.round_trip_us / 2.0), us_of(saved.capacity_call_us));
    if saved.capacity_us_per_kib > LEAST {
        write!(link, ",G={:.4}MB/s", 1024.0 / saved.capacity_us_per_kib).ok();
    }
    let outstanding = saved.outstanding.min(1024);
    write!(
        text,
        "[server]\ncores = 256\nper-call = \"0\"\nper-byte = \"{per_byte}\"\ncosts.WRITE = \"{}\"\n\
         disk = \"{disk}\"\ncommit-mode = \"{mode}\"\n\
         [[clients]]\ncount = 1\nlink = \"{link}\"\n\
         [workload]\nmix = \"write\"\noutstanding = {outstanding}\nwarm-up = \"200ms\"\n\
         time = \"2s\"\nfiles = \"16M\"\n",
        us_of(saved.op_us)
    )
    .ok();
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_probe_found_is_a_topology() {
        for (sync_us, us_per_kib) in [(0.0, 0.0), (500.0, 5.0)] {
            let saved = SavedPath {
                round_trip_us: 210.5,
                ser_us_per_kib: 8.3,
                op_us: 60.0,
                overhead_us: 2.0,
                capacity_call_us: 0.0,
                capacity_us_per_kib: 8.2,
                sync_us,
                sync_us_per_kib: us_per_kib,
                sync_left_us_per_kib: 0.0,
                unhidden_us_per_kib: 0.0,
                stalls: false,
                latency_us: 0.0,
                call_bytes: 8192,
                outstanding: 8,
                commit_bytes: 8 << 20,
                processor_us: None,
                spread: [0.0; 6],
            };
            let text = of_path(&saved);
            let topology = Topology::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(topology.workload.outstanding, 8);
        }
    }
}
