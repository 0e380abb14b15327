//! Servers that export what they have mounted from another server.
//!
//! A call that goes through is a call on each hop, one after the other; the block is stored once,
//! at the end. Where a hop's calls are smaller than those that come in, each becomes several:
//!
//! ```text
//! through   T_cycle = sum over hops of  ceil(b / b_hop / N_hop) (2 T_prop + T_ser + T_op)  + T_B
//! behind    T_cycle = the first hop's;  throughput at most that of the slowest hop
//! ```
//!
//! "Behind" is a server that answers before it has passed on: what it may do with UNSTABLE data.
//! It changes the response time and not the throughput that can be sustained.
//!
//! Source: Boumenot 2002, section 12.1, which asks for it and gives no formula: ours.

use crate::model::error::{ModelError, not_negative, within};

/// One hop: client, way, and the server at its end, without storage.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hop {
    /// 2 T_prop, us.
    pub round_trip_us: f64,
    /// T_ser, us per KiB.
    pub ser_us_per_kib: f64,
    /// T_op of a call, us.
    pub op_us: f64,
    /// Size of a call on this hop.
    pub call_bytes: u64,
    /// Calls outstanding on this hop.
    pub outstanding: u32,
}

/// When a server in between answers.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Forward {
    /// When the server behind it has answered.
    Through,
    /// At once.
    Behind,
}

/// A chain of servers and the storage of the last. Valid by construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Cascade {
    hops: Vec<Hop>,
    block_us_per_kib: f64,
}

/// Hops at most: more than a network of mounts has ever had.
pub const HOPS_MAX: usize = 64;

impl Hop {
    /// One call's cycle without storage, us.
    fn call_us(&self) -> f64 {
        let kib = self.call_bytes as f64 / 1024.0;
        self.round_trip_us + kib * self.ser_us_per_kib + self.op_us
    }

    /// us for `bytes` to pass, all of them having come.
    fn pass_us(&self, bytes: u64) -> f64 {
        let rounds = bytes.div_ceil(self.call_bytes).div_ceil(self.outstanding.into());
        rounds as f64 * self.call_us()
    }
}

impl Cascade {
    /// `block_us_per_kib`: T_B of the last server's disk. Fails without a hop, with a size, a
    /// window or a time that cannot be.
    pub fn new(hops: Vec<Hop>, block_us_per_kib: f64) -> Result<Self, ModelError> {
        within("hops", hops.len() as u64, 1, HOPS_MAX as u64)?;
        for hop in &hops {
            within("size of a call", hop.call_bytes, 1, u64::MAX)?;
            within("outstanding calls", hop.outstanding.into(), 1, u32::MAX.into())?;
            not_negative("2 T_prop", hop.round_trip_us)?;
            not_negative("T_ser", hop.ser_us_per_kib)?;
            not_negative("T_op", hop.op_us)?;
        }
        Ok(Self { hops, block_us_per_kib: not_negative("T_B", block_us_per_kib)? })
    }

    /// Response time of one call of the first hop, us.
    pub fn response_us(&self, forward: Forward) -> f64 {
        let bytes = self.hops[0].call_bytes;
        let block_us = bytes as f64 / 1024.0 * self.block_us_per_kib;
        let first = self.hops[0].call_us();
        match forward {
            Forward::Through => {
                let further = self.hops[1..].iter().map(|hop| hop.pass_us(bytes));
                first + further.sum::<f64>() + block_us
            }
            Forward::Behind if self.hops.len() == 1 => first + block_us,
            Forward::Behind => first,
        }
    }

    /// Bytes a second that can be sustained.
    pub fn bytes_per_s(&self, forward: Forward) -> f64 {
        let disk = 1024.0 / self.block_us_per_kib * 1e6;
        let first = &self.hops[0];
        let window =
            |hop: &Hop, us: f64| f64::from(hop.outstanding) * hop.call_bytes as f64 / us * 1e6;
        let hops = match forward {
            Forward::Through => window(first, self.response_us(forward)),
            Forward::Behind => {
                let each = self.hops.iter().enumerate().map(|(i, hop)| {
                    let is_last = i + 1 == self.hops.len();
                    let kib = hop.call_bytes as f64 / 1024.0;
                    let block_us = if is_last { kib * self.block_us_per_kib } else { 0.0 };
                    window(hop, hop.call_us() + block_us)
                });
                each.fold(f64::INFINITY, f64::min)
            }
        };
        hops.min(disk)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWITCHED: Hop = Hop {
        round_trip_us: 192.68,
        ser_us_per_kib: 8.192,
        op_us: 61.87,
        call_bytes: 8192,
        outstanding: 1,
    };

    fn mbit(cascade: &Cascade, forward: Forward) -> f64 {
        cascade.bytes_per_s(forward) * 8.0 / 1e6
    }

    #[test]
    fn one_hop_is_table_9_4_and_each_further_one_costs_its_cycle() {
        let block_us_per_kib = 175.98 / 8.0;
        let one = Cascade::new(vec![SWITCHED], block_us_per_kib).unwrap();
        let two = Cascade::new(vec![SWITCHED; 2], block_us_per_kib).unwrap();
        assert!((mbit(&one, Forward::Through) - 132.11).abs() < 0.01);
        let added = two.response_us(Forward::Through) - one.response_us(Forward::Through);
        assert!((added - (192.68 + 65.536 + 61.87)).abs() < 1e-9);
        assert!((mbit(&two, Forward::Through) - 65_536.0 / (496.066 + 320.086)).abs() < 0.01);
    }

    #[test]
    fn answering_before_passing_on_hides_the_hop_but_not_its_throughput() {
        let slow = Hop { round_trip_us: 1_000.0, ..SWITCHED };
        let two = Cascade::new(vec![SWITCHED, slow], 175.98 / 8.0).unwrap();
        assert!((two.response_us(Forward::Behind) - 320.086).abs() < 1e-9);
        let slowest = 65_536.0 / (1_000.0 + 65.536 + 61.87 + 175.98);
        assert!((mbit(&two, Forward::Behind) - slowest).abs() < 1e-6);
        assert!(mbit(&two, Forward::Through) < slowest);
    }

    #[test]
    fn a_large_call_becomes_several_small_ones() {
        let large = Hop { call_bytes: 65_536, ..SWITCHED };
        let behind = |outstanding| {
            let hops = vec![large, Hop { outstanding, ..SWITCHED }];
            Cascade::new(hops, 0.0).unwrap().response_us(Forward::Through)
        };
        let small_us = 192.68 + 65.536 + 61.87;
        assert!((behind(1) - behind(8) - 7.0 * small_us).abs() < 1e-9);
        // Six at a time take two rounds, as four do.
        assert_eq!(behind(6), behind(4));
    }

    #[test]
    fn chains_that_cannot_be_are_refused() {
        assert!(Cascade::new(Vec::new(), 1.0).is_err());
        assert!(Cascade::new(vec![SWITCHED; HOPS_MAX + 1], 1.0).is_err());
        assert!(Cascade::new(vec![Hop { call_bytes: 0, ..SWITCHED }], 1.0).is_err());
        assert!(Cascade::new(vec![Hop { outstanding: 0, ..SWITCHED }], 1.0).is_err());
        assert!(Cascade::new(vec![Hop { op_us: f64::NAN, ..SWITCHED }], 1.0).is_err());
        assert!(Cascade::new(vec![SWITCHED], -1.0).is_err());
    }
}
