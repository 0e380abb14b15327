//! A topology from what a probe found.

use std::fmt::Write as _;

use perf::model::saved::{SavedError, SavedPath};
use perf::record::{RecordError, Run as Record};
use thiserror::Error;

/// Why a record is no topology.
#[derive(Debug, Error)]
pub(super) enum NotSaved {
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Path(#[from] SavedError),
}

/// What takes less than this is nothing.
const LEAST: f64 = 1e-3;

/// As text, so that it can be looked at and is checked as any other. What is not the slowest stage
/// has processors enough that nobody waits for it.
pub(super) fn topology(record: &str) -> Result<String, NotSaved> {
    let saved = SavedPath::read(&Record::from_json(record)?.model)?;
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
    Ok(text)
}

#[cfg(test)]
mod tests {
    use world::simulate::Topology;

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
            let mut record = crate::records::computed("2026-01-01T00:00:00Z".to_owned());
            saved.write(&mut record.model);
            let text = topology(&record.to_json_pretty()).unwrap();
            let topology = Topology::parse(&text).unwrap_or_else(|error| panic!("{error}: {text}"));
            assert_eq!(topology.workload.outstanding, 8);
        }
        assert!(topology("{}").is_err());
    }
}
