//! A path as a run record keeps it, under `model.path`: what a probe found, for predictions later.
//!
//! All numbers are flat, named with their units, and checked when they are read: a record may have
//! been edited.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use thiserror::Error;

use super::transaction::{Capacity, Path, Server, Storage, Transfer};
use super::whatif::believed::TransferPoint;
use super::whatif::of_path::{PathCase, Spread};

/// The name under `model`.
pub const NAME: &str = "path";

/// See the module's head.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SavedPath {
    pub round_trip_us: f64,
    pub ser_us_per_kib: f64,
    pub op_us: f64,
    pub overhead_us: f64,
    pub capacity_call_us: f64,
    pub capacity_us_per_kib: f64,
    pub sync_us: f64,
    pub sync_us_per_kib: f64,
    pub sync_left_us_per_kib: f64,
    pub unhidden_us_per_kib: f64,
    /// Whether the server stops for its disk.
    pub stalls: bool,
    /// L and G of the link that was emulated, where one was; 0 where they are not known.
    pub latency_us: f64,
    #[serde(default)]
    pub link_us_per_kib: f64,
    pub call_bytes: u64,
    pub outstanding: u32,
    pub commit_bytes: u64,
    /// Of client and server, where they show beside the link.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Ends>,
    /// Of the server's one processor, where it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_us: Option<f64>,
    /// Half widths of the intervals, as shares of 1, in the order of [`Spread`].
    #[serde(default)]
    pub spread: [f64; 6],
    /// What was measured of the path as it is.
    #[serde(default)]
    pub measured: Vec<TransferPoint>,
    /// By how much repetitions of the runs that changes are held to differ, percent; `None` where
    /// there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_differ_pct: Option<f64>,
    /// What being stable takes is in `op_us`, and not in `sync_us`: each WRITE was stable when it
    /// was answered, and there were no COMMITs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stable_in_op: bool,
}

/// A full pipe's time for a call, without the link.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Serialize)]
pub struct Ends {
    pub call_us: f64,
    pub us_per_kib: f64,
}

/// Why a record has no path.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum SavedError {
    #[error("the record has no model.path: one of nfskit probe has")]
    Missing,
    #[error("model.path: {0}")]
    Form(String),
    #[error("model.path: {name} is {got}: it has to be a finite number, 0 or more")]
    Number { name: &'static str, got: f64 },
    #[error("model.path: {name} is 0")]
    Zero { name: &'static str },
}

impl SavedPath {
    pub fn of(case: &PathCase, spread: &Spread, measured: Vec<TransferPoint>) -> Self {
        let PathCase { path, server, transfer, processor_us, .. } = case;
        let Path { capacity, storage, .. } = path;
        Self {
            round_trip_us: path.round_trip_us,
            ser_us_per_kib: path.ser_us_per_kib,
            op_us: path.op_us,
            overhead_us: path.overhead_us,
            capacity_call_us: capacity.call_us,
            capacity_us_per_kib: capacity.us_per_kib,
            sync_us: storage.sync_us,
            sync_us_per_kib: storage.us_per_kib,
            sync_left_us_per_kib: storage.left_us_per_kib,
            unhidden_us_per_kib: storage.unhidden_us_per_kib,
            stalls: *server == Server::Stall,
            latency_us: case.latency_us,
            link_us_per_kib: case.link_us_per_kib,
            call_bytes: transfer.call_bytes,
            outstanding: transfer.outstanding,
            commit_bytes: transfer.commit_bytes,
            ends: case.ends.map(|Capacity { call_us, us_per_kib }| Ends { call_us, us_per_kib }),
            processor_us: *processor_us,
            spread: [
                spread.round_trip,
                spread.ser,
                spread.op,
                spread.overhead,
                spread.capacity,
                spread.storage,
            ],
            measured,
            runs_differ_pct: None,
            stable_in_op: false,
        }
    }

    /// As it stands under `model`.
    pub fn write(&self, model: &mut Map<String, Value>) {
        // A struct of numbers is always a value.
        if let Ok(value) = serde_json::to_value(self) {
            model.insert(NAME.to_owned(), value);
        }
    }

    /// From what stands under `model`.
    ///
    /// Fails where there is none, or its numbers cannot be.
    pub fn read(model: &Map<String, Value>) -> Result<Self, SavedError> {
        let value = model.get(NAME).ok_or(SavedError::Missing)?;
        let saved: Self = serde_json::from_value(value.clone())
            .map_err(|error| SavedError::Form(error.to_string()))?;
        saved.check()?;
        Ok(saved)
    }

    fn check(&self) -> Result<(), SavedError> {
        let numbers = [
            ("round_trip_us", self.round_trip_us),
            ("ser_us_per_kib", self.ser_us_per_kib),
            ("op_us", self.op_us),
            ("overhead_us", self.overhead_us),
            ("capacity_call_us", self.capacity_call_us),
            ("capacity_us_per_kib", self.capacity_us_per_kib),
            ("sync_us", self.sync_us),
            ("sync_us_per_kib", self.sync_us_per_kib),
            ("sync_left_us_per_kib", self.sync_left_us_per_kib),
            ("unhidden_us_per_kib", self.unhidden_us_per_kib),
            ("latency_us", self.latency_us),
            ("link_us_per_kib", self.link_us_per_kib),
            ("processor_us", self.processor_us.unwrap_or(0.0)),
            ("runs_differ_pct", self.runs_differ_pct.unwrap_or(0.0)),
            ("ends.call_us", self.ends.map_or(0.0, |ends| ends.call_us)),
            ("ends.us_per_kib", self.ends.map_or(0.0, |ends| ends.us_per_kib)),
        ];
        let spread = self.spread.map(|share| ("spread", share));
        let measured = self.measured.iter().map(|point| ("measured.mib_per_s", point.mib_per_s));
        for (name, got) in numbers.into_iter().chain(spread).chain(measured) {
            if !(got.is_finite() && got >= 0.0) {
                return Err(SavedError::Number { name, got });
            }
        }
        let counts = [
            ("call_bytes", self.call_bytes),
            ("outstanding", self.outstanding.into()),
            ("commit_bytes", self.commit_bytes),
        ];
        match counts.into_iter().find(|(_, count)| *count == 0) {
            Some((name, _)) => Err(SavedError::Zero { name }),
            None => Ok(()),
        }
    }

    pub fn case(&self) -> PathCase {
        PathCase {
            path: Path {
                round_trip_us: self.round_trip_us,
                ser_us_per_kib: self.ser_us_per_kib,
                op_us: self.op_us,
                overhead_us: self.overhead_us,
                capacity: Capacity {
                    call_us: self.capacity_call_us,
                    us_per_kib: self.capacity_us_per_kib,
                },
                storage: Storage {
                    sync_us: self.sync_us,
                    us_per_kib: self.sync_us_per_kib,
                    left_us_per_kib: self.sync_left_us_per_kib,
                    unhidden_us_per_kib: self.unhidden_us_per_kib,
                },
            },
            server: if self.stalls { Server::Stall } else { Server::Concurrent },
            transfer: Transfer {
                call_bytes: self.call_bytes,
                outstanding: self.outstanding,
                commit_bytes: self.commit_bytes,
            },
            latency_us: self.latency_us,
            link_us_per_kib: self.link_us_per_kib,
            ends: self.ends.map(|Ends { call_us, us_per_kib }| Capacity { call_us, us_per_kib }),
            threads: None,
            processor_us: self.processor_us,
        }
    }

    pub fn spread(&self) -> Spread {
        let [round_trip, ser, op, overhead, capacity, storage] = self.spread;
        Spread { round_trip, ser, op, overhead, capacity, storage }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn saved() -> SavedPath {
        SavedPath {
            round_trip_us: 200.0,
            ser_us_per_kib: 8.0,
            op_us: 60.0,
            overhead_us: 2.0,
            capacity_call_us: 10.0,
            capacity_us_per_kib: 8.0,
            sync_us: 100.0,
            sync_us_per_kib: 5.0,
            sync_left_us_per_kib: 1.0,
            unhidden_us_per_kib: 0.5,
            stalls: true,
            latency_us: 50.0,
            link_us_per_kib: 8.0,
            call_bytes: 8192,
            outstanding: 4,
            commit_bytes: 1 << 20,
            ends: Some(Ends { call_us: 20.0, us_per_kib: 1.0 }),
            processor_us: Some(30.0),
            spread: [0.1, 0.0, 0.2, 0.0, 0.0, 0.3],
            measured: vec![TransferPoint { call_bytes: 8192, outstanding: 4, mib_per_s: 70.0 }],
            runs_differ_pct: Some(3.0),
            stable_in_op: true,
        }
    }

    #[test]
    fn what_is_saved_is_read_as_it_was() {
        let mut model = Map::new();
        saved().write(&mut model);
        let read = SavedPath::read(&model).unwrap();
        assert_eq!(read, saved());
        let of_case = SavedPath::of(&read.case(), &read.spread(), read.measured);
        let rest = SavedPath { runs_differ_pct: Some(3.0), stable_in_op: true, ..of_case };
        assert_eq!(rest, saved());
    }

    #[test]
    fn what_cannot_be_is_refused_by_its_name() {
        let refused = |saved: SavedPath| {
            let mut model = Map::new();
            saved.write(&mut model);
            SavedPath::read(&model).unwrap_err().to_string()
        };
        assert!(refused(SavedPath { op_us: -1.0, ..saved() }).contains("op_us is -1"));
        assert!(refused(SavedPath { outstanding: 0, ..saved() }).contains("outstanding is 0"));
        // JSON has no such number: it becomes null.
        assert!(refused(SavedPath { op_us: f64::NAN, ..saved() }).contains("model.path"));
        assert_eq!(SavedPath::read(&Map::new()), Err(SavedError::Missing));
    }
}
