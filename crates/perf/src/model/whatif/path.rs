//! Changes to one client's transfer, as the probes describe it: throughput by the formula of the
//! transaction cycle and by mean value analysis, and what it is bound by.
//!
//! | change | in the model |
//! |---|---|
//! | L | 2 T_prop grows by 2 L |
//! | o | T_op, and the stage it belongs to, by 2 o: the processor if known, else the pipe |
//! | G | T_ser and the pipe's time for a KiB: at least the link's |
//! | outstanding, wsize | the transfer |
//! | threads | calls that the server works on at a time |
//! | disks | T_B of a stream over so many disks (RAID 0, from one) |
//! | write-log | a sync takes this long, and bytes go to the disk behind it |
//!
//! Mean value analysis sees the same parameters as N callers, a delay (the cycle without its
//! slowest stage) and a queue (the slowest stage). Where the formula has a corner it has a curve:
//! the truth of regular service lies between the two, nearer to the formula.
//!
//! Intervals: each parameter has its own, from the probes. They are taken for independent, and each
//! one's effect on the answer is added in squares.

use super::super::closed::network::{Center, Class, Kind, Network};
use super::super::cycle::raid::{Array, Level};
use super::super::error::{ModelError, within};
use super::super::transaction::{Bound, Path, Prediction, Server, Transfer};
use super::{Change, How, What, WhatIfError};
use crate::stats::{Estimate, Interval};

/// A path, its server and its transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Case {
    pub path: Path,
    pub server: Server,
    pub transfer: Transfer,
    /// L of the way, us, which `L=` replaces.
    pub latency_us: f64,
    /// Calls that the server works on at a time; `None`: as many as come.
    pub threads: Option<u32>,
    /// Time of the server's one processor for a call, us, where it is known by itself. The probes
    /// see the slowest stage only, which on a fast server is the link.
    pub processor_us: Option<f64>,
}

/// What is predicted for a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outlook {
    /// By the formula, with its interval where the parameters have any.
    pub formula: Estimate,
    /// By mean value analysis.
    pub closed_mib_per_s: f64,
    pub bound: Bound,
}

/// Half widths of the parameters' intervals, as shares of 1: what the probes' intervals say. All 0
/// where nothing is known: then answers have no interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    pub round_trip: f64,
    pub ser: f64,
    pub op: f64,
    pub overhead: f64,
    pub capacity: f64,
    pub storage: f64,
}

const MIB: f64 = 1024.0 * 1024.0;

impl Case {
    /// The case after changes. Fails where one is not part of the model or cannot be.
    pub fn changed(mut self, changes: &[Change]) -> Result<Self, WhatIfError> {
        for change in changes {
            self.apply(change)?;
        }
        Ok(self)
    }

    fn apply(&mut self, change: &Change) -> Result<(), WhatIfError> {
        let foreign = |why| Err(WhatIfError::Foreign { what: change.what, why });
        let Self { path, transfer, .. } = self;
        match change.what {
            What::Latency => {
                let latency_us = change.of(self.latency_us);
                let added_us = 2.0 * (latency_us - self.latency_us);
                self.latency_us = latency_us;
                path.round_trip_us = (path.round_trip_us + added_us).max(0.0);
            }
            What::Overhead if change.how == How::Add => {
                path.op_us += 2.0 * change.value;
                match &mut self.processor_us {
                    Some(processor_us) => *processor_us += 2.0 * change.value,
                    None => path.capacity.call_us += 2.0 * change.value,
                }
            }
            What::Overhead => return foreign("the cycle contains it: say how much is added"),
            What::Gap if change.how == How::Set => {
                path.ser_us_per_kib = path.ser_us_per_kib.max(change.value);
                path.capacity.us_per_kib = path.capacity.us_per_kib.max(change.value);
            }
            What::Gap => return foreign("say the rate of the link, as in G=100Mbit/s"),
            What::Outstanding => {
                let outstanding = change.of_count(transfer.outstanding);
                within("outstanding calls", outstanding.into(), 1, u32::MAX.into())?;
                transfer.outstanding = outstanding;
            }
            What::CallSize => {
                let bytes = change.of(transfer.call_bytes as f64);
                if !(1.0..=CALL_BYTES_MAX).contains(&bytes) {
                    return Err(ModelError::NotPositive { what: "call size", got: bytes }.into());
                }
                transfer.call_bytes = whole(bytes);
            }
            What::Threads => {
                let threads = change.of_count(self.threads.unwrap_or(1));
                within("threads", threads.into(), 1, u32::MAX.into())?;
                self.threads = Some(threads);
            }
            What::Disks if change.how == How::Add => return foreign("say how many there are"),
            What::Disks => {
                // A unit of 64 KiB: whoever has another one has large syncs, or a small effect.
                let array = Array::new(Level::Raid0, change.of_count(1), 65_536)?;
                path.storage = array.storage(&path.storage, transfer.commit_bytes);
            }
            What::WriteLog => {
                path.storage.sync_us = change.of(path.storage.sync_us);
                path.storage.left_us_per_kib = 0.0;
                self.server = Server::Concurrent;
            }
            What::Clients => {
                return foreign("a probe is of one client: say outstanding=N, or give a curve");
            }
            What::Cache => {
                return foreign("a sequential write finds nothing in a cache: give a curve");
            }
            What::Cpu | What::Cpus | What::Disk => {
                return foreign("it belongs to a server with many clients: give a curve");
            }
        }
        Ok(())
    }

    /// The case whose cycle is as long as this throughput says, which was measured as it is: the
    /// probes take the time of one call alone, for which processors wake that several keep awake.
    /// No change where not the cycle is the limit, but a stage.
    #[must_use]
    pub fn calibrated(mut self, mib_per_s: f64) -> Self {
        let us = |mib_per_s: f64| {
            let calls_per_us = mib_per_s * MIB / self.transfer.call_bytes as f64 / 1e6;
            f64::from(self.transfer.outstanding.max(1)) / calls_per_us
        };
        let found = self.formula();
        if matches!(found.bound, Bound::Cycle(_)) && mib_per_s > 0.0 {
            let round_trip_us = self.path.round_trip_us + us(mib_per_s) - us(found.mib_per_s);
            self.path.round_trip_us = round_trip_us.max(2.0 * self.latency_us);
        }
        self
    }

    /// The formula's answer.
    pub fn formula(&self) -> Prediction {
        let prediction = self.path.predict(self.server, &self.transfer);
        // Each of the threads keeps a call while it is processed and stored.
        let work_us = self.work_us(&prediction);
        let held_us = self.threads.map(|threads| work_us / f64::from(threads));
        let server_us = held_us.into_iter().chain(self.processor_us).fold(0.0, f64::max);
        let most = self.transfer.call_bytes as f64 / server_us * 1e6 / MIB;
        if server_us > 0.0 && most < prediction.mib_per_s {
            return Prediction { mib_per_s: most, bound: Bound::Server, ..prediction };
        }
        prediction
    }

    fn work_us(&self, prediction: &Prediction) -> f64 {
        (prediction.cycle.op_us + prediction.cycle.block_us).max(f64::MIN_POSITIVE)
    }

    /// Mean value analysis: N callers, the way as a delay, the slowest stage as a queue, and the
    /// threads, if they are limited.
    pub fn closed_mib_per_s(&self) -> Result<f64, ModelError> {
        let prediction = self.path.predict(self.server, &self.transfer);
        let bytes = self.transfer.call_bytes as f64;
        let full = Transfer { outstanding: u32::MAX, ..self.transfer };
        let without = Path { overhead_us: 0.0, ..self.path };
        let stage_us = bytes / MIB / without.predict(self.server, &full).mib_per_s * 1e6;
        let stage_us = self.processor_us.map_or(stage_us, |own_us| own_us.max(stage_us));
        let mut delay_us = prediction.cycle.total_us() - stage_us;
        let mut centers = vec![Center::new("stage", Kind::Queue, &[stage_us])];
        if let Some(threads) = self.threads {
            let work_us = self.work_us(&prediction);
            centers.push(Center::new("threads", Kind::Servers(threads), &[work_us]));
            delay_us -= work_us;
        }
        centers.push(Center::new("way", Kind::Delay, &[delay_us.max(0.0)]));
        let class = Class { callers: self.transfer.outstanding, think_us: 0.0 };
        let network = Network::new(vec![class], centers)?;
        let solution = network.solve().or_else(|_| network.approximate())?;
        Ok(solution.throughput_per_s[0] * bytes / MIB)
    }

    /// Both, with the formula's interval.
    pub fn outlook(&self, spread: &Spread) -> Result<Outlook, ModelError> {
        let prediction = self.formula();
        let mut squares = 0.0;
        for varied in self.varied(spread) {
            squares += (varied.formula().mib_per_s / prediction.mib_per_s).ln().powi(2);
        }
        let half = squares.sqrt();
        let value = prediction.mib_per_s;
        let interval = Interval { lo: value / half.exp(), hi: value * half.exp() };
        Ok(Outlook {
            formula: Estimate { value, ci95: (half > 0.0).then_some(interval) },
            closed_mib_per_s: self.closed_mib_per_s()?,
            bound: prediction.bound,
        })
    }

    /// The case with one parameter at a time at the end of its interval.
    fn varied(&self, spread: &Spread) -> [Self; 6] {
        let mut cases = [*self; 6];
        cases[0].path.round_trip_us *= 1.0 + spread.round_trip;
        cases[1].path.ser_us_per_kib *= 1.0 + spread.ser;
        cases[2].path.op_us *= 1.0 + spread.op;
        cases[3].path.overhead_us *= 1.0 + spread.overhead;
        cases[4].path.capacity.call_us *= 1.0 + spread.capacity;
        cases[4].path.capacity.us_per_kib *= 1.0 + spread.capacity;
        cases[5].path.storage.sync_us *= 1.0 + spread.storage;
        cases[5].path.storage.us_per_kib *= 1.0 + spread.storage;
        cases[5].path.storage.left_us_per_kib *= 1.0 + spread.storage;
        cases
    }
}

/// Larger calls than this are none of NFS.
const CALL_BYTES_MAX: f64 = 1e9;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "between 1 and CALL_BYTES_MAX"
)]
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

#[cfg(test)]
mod tests {
    use super::super::super::transaction::{Capacity, Storage, Term};
    use super::*;

    /// The thesis's switched path, with eight calls outstanding on a concurrent server.
    fn thesis() -> Case {
        Case {
            path: Path {
                round_trip_us: 192.68,
                ser_us_per_kib: 8.192,
                op_us: 61.87,
                overhead_us: 0.0,
                capacity: Capacity { call_us: 0.0, us_per_kib: 8.192 },
                storage: Storage {
                    sync_us: 0.0,
                    us_per_kib: 175.98 / 8.0,
                    left_us_per_kib: 0.0,
                    unhidden_us_per_kib: 0.0,
                },
            },
            server: Server::Concurrent,
            transfer: Transfer { call_bytes: 8192, outstanding: 8, commit_bytes: 64 << 20 },
            latency_us: 90.0,
            threads: None,
            processor_us: None,
        }
    }

    fn after(texts: &[&str]) -> Case {
        let changes: Vec<Change> = texts.iter().map(|text| text.parse().unwrap()).collect();
        thesis().changed(&changes).unwrap()
    }

    fn mbit(case: &Case) -> f64 {
        case.formula().mib_per_s * 8.388_608
    }

    #[test]
    fn changes_move_the_bound_where_they_should() {
        assert!((mbit(&thesis()) - 372.41).abs() < 0.01);
        assert_eq!(thesis().formula().bound, Bound::Storage);
        let far = after(&["L=5ms"]);
        assert_eq!(far.formula().bound, Bound::Cycle(Term::Prop));
        assert!((far.path.round_trip_us - (192.68 + 2.0 * 4_910.0)).abs() < 1e-9);
        let wide = after(&["L=5ms", "outstanding=256"]);
        assert!((mbit(&wide) - 372.41).abs() < 0.01);
        let slow = after(&["G=100Mbit/s"]);
        assert_eq!(slow.formula().bound, Bound::Capacity);
        assert!((mbit(&slow) - 100.0).abs() < 0.01);
        let striped = after(&["disks=8"]);
        assert_eq!(striped.formula().bound, Bound::Capacity);
        let one = after(&["outstanding x0.125", "threads=1"]);
        assert_eq!(one.transfer.outstanding, 1);
        let large = after(&["wsize=1M"]);
        assert_eq!(large.transfer.call_bytes, 1 << 20);
    }

    #[test]
    fn one_thread_works_on_one_call_at_a_time() {
        let mut stalling = thesis();
        stalling.server = Server::Stall;
        let one = stalling.changed(&["threads=1".parse().unwrap()]).unwrap();
        assert!(one.formula().mib_per_s <= stalling.formula().mib_per_s);
        let mut busy = thesis();
        busy.path.op_us = 400.0;
        let busy = busy.changed(&["threads=1".parse().unwrap()]).unwrap();
        assert_eq!(busy.formula().bound, Bound::Server);
        assert!((mbit(&busy) - 65_536.0 / 400.0).abs() < 0.1);
    }

    #[test]
    fn overhead_is_the_processors_where_it_is_known_and_the_pipes_otherwise() {
        let mut case = thesis();
        case.path.storage.us_per_kib = 0.0;
        let busy = |case: Case| case.changed(&["o+50us".parse().unwrap()]).unwrap();
        assert!((mbit(&busy(case)) - 65_536.0 / (65.536 + 100.0)).abs() < 0.1);
        case.processor_us = Some(30.0);
        assert_eq!(case.formula(), Case { processor_us: None, ..case }.formula());
        assert_eq!(busy(case).formula().bound, Bound::Server);
        assert!((mbit(&busy(case)) - 65_536.0 / 130.0).abs() < 0.1);
        assert!(busy(case).closed_mib_per_s().unwrap() < busy(case).formula().mib_per_s);
    }

    #[test]
    fn a_case_can_be_held_to_what_was_measured() {
        let one = Case { transfer: Transfer { outstanding: 1, ..thesis().transfer }, ..thesis() };
        let measured = 0.9 * one.formula().mib_per_s;
        let calibrated = one.calibrated(measured);
        assert!((calibrated.formula().mib_per_s / measured - 1.0).abs() < 1e-3);
        assert!(calibrated.path.round_trip_us > one.path.round_trip_us);
        // A full disk says nothing of the cycle.
        assert_eq!(thesis().calibrated(1.0), thesis());
    }

    #[test]
    fn a_log_takes_the_disk_out_of_the_way_of_a_sync() {
        let mut case = thesis();
        case.server = Server::Stall;
        case.path.storage.sync_us = 5_000.0;
        case.transfer = Transfer { outstanding: 1, commit_bytes: 8192, ..case.transfer };
        let logged = case.changed(&["write-log=nvme".parse().unwrap()]).unwrap();
        assert!(logged.formula().mib_per_s > 5.0 * case.formula().mib_per_s);
    }

    #[test]
    fn mean_value_analysis_stays_below_the_formula_and_meets_it_at_both_ends() {
        for outstanding in [1, 2, 4, 8, 64, 1024] {
            let case = Case { transfer: Transfer { outstanding, ..thesis().transfer }, ..thesis() };
            let (formula, closed) = (case.formula().mib_per_s, case.closed_mib_per_s().unwrap());
            let ratio = closed / formula;
            assert!(ratio <= 1.0 + 1e-9, "{outstanding}: {ratio}");
            assert!(ratio > 0.65, "{outstanding}: {ratio}");
            if outstanding == 1 || outstanding == 1024 {
                assert!(ratio > 0.999, "{outstanding}: {ratio}");
            }
        }
    }

    #[test]
    fn uncertain_parameters_make_an_interval_and_only_where_they_count() {
        let spread = Spread { round_trip: 0.1, ..Spread::default() };
        assert_eq!(thesis().outlook(&spread).unwrap().formula.ci95, None);
        let far = after(&["L=5ms"]);
        let interval = far.outlook(&spread).unwrap().formula.ci95.unwrap();
        let half = (interval.hi / far.formula().mib_per_s - 1.0) * 100.0;
        assert!((9.0..11.0).contains(&half), "{half}");
    }

    #[test]
    fn impossible_and_foreign_changes_are_refused() {
        for text in ["cache=64G", "clients x10", "outstanding=0", "wsize=0", "threads=0", "o=1us"] {
            assert!(thesis().changed(&[text.parse().unwrap()]).is_err(), "{text}");
        }
    }
}
