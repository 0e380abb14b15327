//! The changes: in the words of the model, and as they are applied.

use net::shape::profile::Profile;
use perf::model::transaction::{Path, Server, Transfer};
use perf::model::whatif::of_path::PathCase;
use perf::units::Nanos;
use wire::nfs3::StableHow;

use crate::papers::writes::{CALL_BYTES, Setting};

/// Calls outstanding before any change: fewer than fill the way.
pub(super) const OUTSTANDING: u32 = 4;

/// A change.
#[derive(Clone, Debug)]
pub(super) struct Applied {
    pub(super) name: &'static str,
    /// As `nfskit model whatif` takes it.
    pub(super) change: &'static str,
    pub(super) setting: Setting<'static>,
    pub(super) outstanding: u32,
}

/// The server without any change.
pub(super) fn base(link: &Profile) -> Setting<'static> {
    Setting {
        dir: None,
        stable: StableHow::Unstable,
        link: link.clone(),
        overhead: Nanos::ZERO,
        threads: 256,
    }
}

/// The input of the model; the processor's time is the server's for a call.
pub(super) fn case(path: Path, link: &Profile, processor_us: f64) -> PathCase {
    PathCase {
        path,
        server: Server::Concurrent,
        // COMMITs are left to the end, which does not count.
        transfer: Transfer {
            call_bytes: u64::from(CALL_BYTES),
            outstanding: OUTSTANDING,
            commit_bytes: 1 << 40,
        },
        latency_us: link.there.link.latency.as_micros_f64(),
        link_us_per_kib: link.there.link.gap_per_byte_ps as f64 * 1024.0 / 1e6,
        ends: None,
        threads: None,
        processor_us: Some(processor_us),
    }
}

pub(super) fn all(base: &Setting<'static>) -> [Applied; 5] {
    let applied =
        |name, change, setting| Applied { name, change, setting, outstanding: OUTSTANDING };
    let mut far = base.clone();
    far.link.there.link.latency += Nanos::from_millis(1);
    far.link.back.link.latency += Nanos::from_millis(1);
    let mut slow = base.clone();
    // 100 Mbit/s: 80 ns a byte.
    slow.link.there.link.gap_per_byte_ps = slow.link.there.link.gap_per_byte_ps.max(80_000);
    slow.link.back.link.gap_per_byte_ps = slow.link.back.link.gap_per_byte_ps.max(80_000);
    let busy = Setting { overhead: Nanos::from_micros(50), ..base.clone() };
    let single = Setting { threads: 1, ..base.clone() };
    [
        applied("L + 1 ms", "L+1ms", far),
        applied("G to 100 Mbit/s", "G=100Mbit/s", slow),
        applied("o + 50 us", "o+50us", busy),
        applied("threads 1", "threads=1", single),
        Applied {
            outstanding: 4 * OUTSTANDING,
            ..applied("outstanding x 4", "outstanding x4", base.clone())
        },
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_change_is_one_of_the_models_and_of_the_emulator() {
        let unchanged = base(&"200us/1g".parse().unwrap());
        let path = Path {
            round_trip_us: 450.0,
            ser_us_per_kib: 9.0,
            op_us: 20.0,
            overhead_us: 0.0,
            capacity: perf::model::transaction::Capacity { call_us: 2.0, us_per_kib: 8.4 },
            storage: perf::model::transaction::Storage {
                sync_us: 0.0,
                us_per_kib: 0.0,
                left_us_per_kib: 0.0,
                unhidden_us_per_kib: 0.0,
            },
        };
        let before = case(path, &unchanged.link, 40.0);
        let gains: Vec<f64> = all(&unchanged)
            .iter()
            .map(|applied| {
                let after = before.changed(&[applied.change.parse().unwrap()]).unwrap();
                after.formula().mib_per_s / before.formula().mib_per_s
            })
            .collect();
        for (gain, range) in
            gains.iter().zip([(0.15, 0.30), (0.15, 0.30), (0.6, 1.0), (0.999, 1.001), (1.5, 3.0)])
        {
            assert!((range.0..range.1).contains(gain), "{gains:?}");
        }
        let changed = all(&unchanged);
        assert_eq!(changed[0].setting.link.links().there.latency, Nanos::from_micros(1_200));
        assert_eq!(changed[1].setting.link.links().back.gap_per_byte_ps, 80_000);
    }
}
