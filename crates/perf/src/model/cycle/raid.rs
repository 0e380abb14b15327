//! Striped disks: what several of them do for one stream.
//!
//! | level | disks that take new data | transfers for a small write |
//! |---|---|---|
//! | 0 | n | 1 |
//! | 10 | n / 2 | 2, at once |
//! | 5 | n - 1, whole stripes | 4: old data and old parity read, then both written |
//!
//! A sync of b bytes is spread over the stripe units that it covers. What of it is no whole stripe
//! costs RAID 5 two rounds, of one read and one write.
//!
//! ```text
//! T_sync(b) = (sync + b / disks used x rate) x rounds
//! ```
//!
//! Source: Boumenot 2002, section 12.1 asks for RAID in T_B; the transfers are those of Patterson,
//! Gibson, Katz 1988. Martin & Culler's server has its disks as RAID 0 (section 3.1).
//!
//! Not in it: caches that gather stripes, degraded arrays, spindles that are not in step.

use crate::model::error::{ModelError, within};
use crate::model::transaction::Storage;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Level {
    Raid0,
    Raid5,
    Raid10,
}

/// An array of equal disks. Valid by construction.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Array {
    level: Level,
    disks: u32,
    unit_bytes: u64,
}

/// Disks in an array at most.
pub const DISKS_MAX: u32 = 10_000;

impl Array {
    /// `unit_bytes` lie on one disk before the next begins. Fails with fewer disks than the level
    /// needs (1, 3, 2; an even number for RAID 10).
    pub fn new(level: Level, disks: u32, unit_bytes: u64) -> Result<Self, ModelError> {
        let least = match level {
            Level::Raid0 => 1,
            Level::Raid5 => 3,
            Level::Raid10 => 2,
        };
        within("disks", disks.into(), least, DISKS_MAX.into())?;
        if level == Level::Raid10 && !disks.is_multiple_of(2) {
            return Err(ModelError::Count {
                what: "disks in pairs",
                got: disks as usize,
                need: disks as usize + 1,
            });
        }
        within("stripe unit", unit_bytes, 1, u64::MAX)?;
        Ok(Self { level, disks, unit_bytes })
    }

    /// Disks that take new data side by side.
    pub fn data_disks(&self) -> u32 {
        match self.level {
            Level::Raid0 => self.disks,
            Level::Raid5 => self.disks - 1,
            Level::Raid10 => self.disks / 2,
        }
    }

    /// Time to make `bytes` durable, us, on disks of which each alone is `disk`.
    pub fn sync_us(&self, disk: &Storage, bytes: u64) -> f64 {
        let units = bytes.div_ceil(self.unit_bytes).max(1);
        let used = units.min(self.data_disks().into()) as f64;
        let each_us = bytes as f64 / 1024.0 * disk.us_per_kib / used;
        self.rounds(bytes) * disk.sync_us + each_us * self.rounds(bytes)
    }

    /// The array as one storage for a stream that is made durable in syncs of `bytes`: what a
    /// [`crate::model::transaction::Path`] takes. `unhidden` and `left` shrink with the rate.
    pub fn storage(&self, disk: &Storage, bytes: u64) -> Storage {
        let sync_us = self.rounds(bytes) * disk.sync_us;
        let kib = (bytes as f64 / 1024.0).max(f64::MIN_POSITIVE);
        let us_per_kib = (self.sync_us(disk, bytes) - sync_us) / kib;
        let faster = if disk.us_per_kib > 0.0 { us_per_kib / disk.us_per_kib } else { 1.0 };
        Storage {
            sync_us,
            us_per_kib,
            left_us_per_kib: disk.left_us_per_kib * faster,
            unhidden_us_per_kib: disk.unhidden_us_per_kib,
        }
    }

    /// 1, or 2 where parity has to be read first.
    fn rounds(&self, bytes: u64) -> f64 {
        let stripe_bytes = self.unit_bytes.saturating_mul(self.data_disks().into());
        if self.level == Level::Raid5 && bytes < stripe_bytes { 2.0 } else { 1.0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::transaction::{Path, Server, Transfer};

    const DISK: Storage = Storage {
        sync_us: 0.0,
        us_per_kib: 175.98 / 8.0,
        left_us_per_kib: 0.0,
        unhidden_us_per_kib: 0.0,
    };

    fn array(level: Level, disks: u32) -> Array {
        Array::new(level, disks, 65_536).unwrap()
    }

    #[test]
    fn a_stream_is_spread_over_the_disks_that_take_data() {
        let large = 64 << 20;
        let alone = array(Level::Raid0, 1).sync_us(&DISK, large);
        let times = |level, disks| alone / array(level, disks).sync_us(&DISK, large);
        assert!((times(Level::Raid0, 8) - 8.0).abs() < 1e-9);
        assert!((times(Level::Raid5, 8) - 7.0).abs() < 1e-9);
        assert!((times(Level::Raid10, 8) - 4.0).abs() < 1e-9);
    }

    #[test]
    fn a_block_smaller_than_a_unit_gains_nothing_and_loses_with_parity() {
        let times = |level, disks| DISK.us_per_kib * 8.0 / array(level, disks).sync_us(&DISK, 8192);
        assert!((times(Level::Raid0, 8) - 1.0).abs() < 1e-12);
        assert!((times(Level::Raid10, 8) - 1.0).abs() < 1e-12);
        assert!((times(Level::Raid5, 8) - 0.5).abs() < 1e-12);
    }

    /// The thesis's path on eight disks: sequential calls are bound by the way and gain a quarter;
    /// concurrent ones reach the disks until the wire is full.
    #[test]
    fn the_cycle_takes_an_array_for_its_storage() {
        let path = Path {
            round_trip_us: 192.68,
            ser_us_per_kib: 8.192,
            op_us: 61.87,
            overhead_us: 0.0,
            capacity: crate::model::transaction::Capacity { call_us: 0.0, us_per_kib: 8.192 },
            storage: array(Level::Raid0, 8).storage(&DISK, 64 << 20),
        };
        let transfer = Transfer { call_bytes: 8192, outstanding: 1, commit_bytes: 64 << 20 };
        let mbit =
            |server, transfer: &Transfer| path.predict(server, transfer).mib_per_s * 8.388_608;
        let sequential = 65_536.0 / (192.68 + 65.536 + 61.87 + 175.98 / 8.0);
        assert!((mbit(Server::Stall, &transfer) / sequential - 1.0).abs() < 1e-3);
        let many = Transfer { outstanding: 64, ..transfer };
        assert!((mbit(Server::Concurrent, &many) / 1_000.0 - 1.0).abs() < 1e-3);
    }

    #[test]
    fn impossible_arrays_are_refused() {
        assert!(Array::new(Level::Raid5, 2, 1).is_err());
        assert!(Array::new(Level::Raid10, 3, 1).is_err());
        assert!(Array::new(Level::Raid0, 0, 1).is_err());
        assert!(Array::new(Level::Raid0, 1, 0).is_err());
    }
}
