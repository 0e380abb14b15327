//! A server with d daemons, each of which keeps its call until the disk has it.
//!
//! ```text
//! throughput = min( N / T_cycle,  d / (T_op + T_B),  1 / T_B )
//! ```
//!
//! N calls outstanding on the client's side. With one daemon the middle term is the server of
//! table 9.3: processing and disk one after the other, the network still beside them.
//!
//! Source: Boumenot 2002, sections 9.5.2 and 9.5.4. What it shows when it is written down: one
//! daemon allows 275.5 Mbit/s, and 128 were measured, with eight daemons 134. The calls came one at
//! a time, whatever the server could have done.

use crate::model::error::{ModelError, within};
use crate::model::transaction::Cycle;

/// What keeps the throughput where it is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Limit {
    /// Too few calls outstanding.
    Cycle,
    /// All daemons are busy.
    Daemons,
    Disk,
}

/// us between two calls, and why not less. Fails without a call outstanding or a daemon.
pub fn spacing_us(
    cycle: &Cycle,
    outstanding: u32,
    daemons: u32,
) -> Result<(f64, Limit), ModelError> {
    within("outstanding calls", outstanding.into(), 1, u32::MAX.into())?;
    within("daemons", daemons.into(), 1, u32::MAX.into())?;
    let candidates = [
        (cycle.total_us() / f64::from(outstanding), Limit::Cycle),
        ((cycle.op_us + cycle.block_us) / f64::from(daemons), Limit::Daemons),
        (cycle.block_us, Limit::Disk),
    ];
    // The first of equals: it is the cheapest to change.
    let larger = |a: (f64, Limit), b: (f64, Limit)| if b.0 > a.0 { b } else { a };
    Ok(candidates.into_iter().fold((0.0, Limit::Cycle), larger))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::cycle::mbit_per_s;

    fn mbit(cycle: &Cycle, outstanding: u32, daemons: u32) -> (f64, Limit) {
        let (us, limit) = spacing_us(cycle, outstanding, daemons).unwrap();
        (mbit_per_s(8192.0, us), limit)
    }

    /// Table 9.4 once more, with the measured values of table 9.3 and the printed accuracies.
    #[test]
    fn one_daemon_with_one_call_outstanding_is_table_9_4() {
        for (prop_us, block_us, estimate, measured, accuracy) in [
            (192.68, 175.98, 132.11, 128.08, 0.0315),
            (175.39, 175.98, 136.88, 137.58, 0.0051),
            (192.68, 242.23, 116.55, 119.50, 0.0247),
            (175.39, 242.23, 120.24, 125.03, 0.0383),
        ] {
            let cycle = Cycle { prop_us, ser_us: 65.536, op_us: 61.87, block_us };
            let (got, limit) = mbit(&cycle, 1, 1);
            assert!((got - estimate).abs() < 0.01, "{got}");
            assert_eq!(limit, Limit::Cycle);
            assert!(((got / measured - 1.0).abs() - accuracy).abs() < 0.0002);
        }
        // The slow disk's accuracies are printed as 1.65 and 3.06 %, from 117.56 and 121.32.
    }

    #[test]
    fn one_daemon_would_have_allowed_twice_what_was_measured() {
        let cycle = Cycle { prop_us: 192.68, ser_us: 65.536, op_us: 61.87, block_us: 175.98 };
        let (one, limit) = mbit(&cycle, 8, 1);
        assert_eq!(limit, Limit::Daemons);
        assert!((one - 275.53).abs() < 0.01);
        let (two, limit) = mbit(&cycle, 8, 2);
        assert_eq!(limit, Limit::Disk);
        assert!((two - 372.41).abs() < 0.01);
        assert!(spacing_us(&cycle, 0, 1).is_err());
        assert!(spacing_us(&cycle, 1, 0).is_err());
    }

    /// Table 9.2, "concurrent": 65,536 bit over T_prop, one way, and T_B. It hides the way back and
    /// the serialization. No row of ours: here so that nobody searches for its formula.
    #[test]
    fn the_concurrent_column_of_table_9_2() {
        for (prop_us, printed) in [(192.68, 240.66), (175.39, 248.55)] {
            assert!((mbit_per_s(8192.0, prop_us / 2.0 + 175.98) - printed).abs() < 0.005);
        }
    }
}
