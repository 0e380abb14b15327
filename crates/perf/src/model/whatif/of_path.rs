//! Changes to one client's transfer, as the probes describe it: throughput by the formula of the
//! transaction cycle and by mean value analysis, and what it is bound by.
//!
//! | change | in the model |
//! |---|---|
//! | L | 2 T_prop grows by 2 L |
//! | o | T_op, and its stage, by 2 o (call and reply at one end): see [`PathCase::processor_us`] |
//! | G | T_ser, and the pipe's time for a KiB, from the old link's to the new one's |
//! | outstanding, wsize | the transfer |
//! | threads | calls that the server works on at a time |
//! | disks | T_B of a stream over so many disks (RAID 0, from one) |
//! | write-log | nothing of a stream with COMMITs; stable WRITEs: [`PathCase::stable`] |
//!
//! Mean value analysis sees the same parameters as N callers, a delay (the cycle without its
//! slowest stage) and a queue (the slowest stage). Where the formula has a corner it has a curve:
//! the truth of regular service lies between the two, nearer to the formula.
//!
//! Intervals: each parameter has its own, from the probes. They are taken for independent, and each
//! one's effect on the answer is added in squares.

use super::{Change, How, What, WhatIfError};
use crate::model::closed::network::CALLERS_MAX;
use crate::model::closed::network::{Center, Class, Kind, Network};
use crate::model::cycle::raid::{Array, Level};
use crate::model::error::{ModelError, within};
use crate::model::transaction::{Bound, Capacity, Path, Prediction, Server, Transfer};
use crate::model::write_log::{self, LogDevice, Stable};
use crate::stats::{Estimate, Interval};

/// A path, its server and its transfer.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathCase {
    pub path: Path,
    pub server: Server,
    pub transfer: Transfer,
    /// L of the way, us, as far as it is known: what `L=` replaces.
    pub latency_us: f64,
    /// G of the link, us per KiB, where it is known; 0 where not.
    pub link_us_per_kib: f64,
    /// What a call occupies the slowest of client and server for, where that shows beside the link,
    /// which then is all of the path's capacity: see [`Self::behind`].
    pub ends: Option<Capacity>,
    /// Calls that the server works on at a time; `None`: as many as come.
    pub threads: Option<u32>,
    /// Time of the server's one processor for a call, us, where it is known by itself. The probes
    /// see the slowest stage only, which on a fast server is the link. o is added to this time, or,
    /// where it is not known, to the slowest stage's.
    pub processor_us: Option<f64>,
}

/// What is predicted for a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PathPrediction {
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

/// What is predicted of stable WRITEs.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StablePrediction {
    pub rate: write_log::StableRate,
    /// WRITEs a second, with the interval that the path's parameters give it.
    pub per_s: Estimate,
}

const MIB: f64 = 1024.0 * 1024.0;

/// A pipe that is by less than this slower than its link is as slow as its link: bursts differ by
/// as much.
const SLOWEST: f64 = 1.1;

/// Up to here, a pipe's time for a KiB is that of its link.
const LINK_ALONE: f64 = 1.000_1;

/// The sizes of calls by which a full pipe is known, KiB: of probes.
const BLOCK_KIB: f64 = 8.0;
const LARGE_KIB: f64 = 1024.0;

/// A base is held to what was measured if the two differ by a factor of less than this.
const CALIBRATED_MAX: f64 = 2.0;

impl PathCase {
    /// A path as it is, without what only changes to it need.
    pub fn of(path: Path, server: Server, transfer: Transfer) -> Self {
        Self {
            path,
            server,
            transfer,
            latency_us: 0.0,
            link_us_per_kib: 0.0,
            ends: None,
            threads: None,
            processor_us: None,
        }
    }

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
            What::Latency if change.how == How::Times && self.latency_us == 0.0 => {
                return foreign("how much of 2 T_prop is L is not known: say L+TIME, or --latency");
            }
            What::Latency => {
                let latency_us = change.of(self.latency_us);
                let added_us = 2.0 * (latency_us - self.latency_us);
                self.latency_us = latency_us;
                path.round_trip_us = (path.round_trip_us + added_us).max(0.0);
            }
            What::Overhead if change.how == How::Add => {
                path.op_us += 2.0 * change.value;
                match (&mut self.processor_us, &mut self.ends) {
                    (Some(processor_us), _) => *processor_us += 2.0 * change.value,
                    (None, Some(ends)) => ends.call_us += 2.0 * change.value,
                    (None, None) => path.capacity.call_us += 2.0 * change.value,
                }
            }
            What::Overhead => return foreign("the cycle contains it: say how much is added"),
            What::Gap if change.how == How::Set => return self.relink(change.value),
            What::Gap => return foreign("say the rate of the link, as in G=100Mbit/s"),
            What::Outstanding => {
                transfer.outstanding = change.of_count_up_to(transfer.outstanding, CALLERS_MAX)?;
            }
            What::CallSize => {
                let bytes = change.of(transfer.call_bytes as f64);
                transfer.call_bytes = within("call size", whole(bytes), 1, CALL_BYTES_MAX)?;
            }
            What::Threads => {
                let before = self.threads.unwrap_or(1);
                self.threads = Some(change.of_count_up_to(before, CALLERS_MAX)?);
            }
            What::Disks if change.how == How::Add => return foreign("say how many there are"),
            What::Disks => {
                // A unit of 64 KiB: whoever has another one has large syncs, or a small effect.
                let array = Array::new(Level::Raid0, change.of_count(1), 65_536)?;
                path.storage = array.storage(&path.storage, transfer.commit_bytes);
            }
            // COMMITs sync the file as before: what changes are stable WRITEs.
            What::WriteLog if change.log.is_some() => {}
            What::WriteLog => return foreign("say its device, as in write-log=sim:nvram"),
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

    /// The case with what is known of its link. A pipe that is full of large calls shows the link,
    /// and full of small ones an end: one line through both would have either take longer where
    /// the other changes. `small` is the time per call of a full pipe of calls of so many KiB.
    #[must_use]
    pub fn behind(mut self, latency_us: f64, us_per_kib: f64, small: (f64, f64)) -> Self {
        (self.latency_us, self.link_us_per_kib) = (latency_us, us_per_kib);
        let Path { capacity, ser_us_per_kib, .. } = &mut self.path;
        let of = |kib: f64| capacity.call_of_us(kib * 1024.0);
        let is_links = |kib: f64| of(kib) < SLOWEST * kib * us_per_kib;
        if us_per_kib == 0.0 || !is_links(LARGE_KIB) {
            return self;
        }
        let (small_kib, small_us) = small;
        // No stage of an end takes more of a KiB than both ends do one after the other.
        let most = (*ser_us_per_kib - us_per_kib).max(0.0);
        let ends_us_per_kib = match is_links(BLOCK_KIB) {
            true => most.min(us_per_kib),
            false => ((of(BLOCK_KIB) - small_us) / (BLOCK_KIB - small_kib)).clamp(0.0, most),
        };
        let call_us = match is_links(BLOCK_KIB) {
            true => small_us - small_kib * ends_us_per_kib,
            false => of(BLOCK_KIB) - BLOCK_KIB * ends_us_per_kib,
        };
        let ends = Capacity { call_us: call_us.max(0.0), us_per_kib: ends_us_per_kib };
        self.ends = Some(ends);
        *capacity = link(us_per_kib);
        self
    }

    /// Another link. Where what the old one took is not known, it is taken for the slowest stage of
    /// the pipe: then a slower one can be predicted, and no faster one, behind which some other
    /// stage would show.
    fn relink(&mut self, us_per_kib: f64) -> Result<(), WhatIfError> {
        let path = &mut self.path;
        let is_known = self.link_us_per_kib > 0.0;
        let old = if is_known { self.link_us_per_kib } else { path.capacity.us_per_kib };
        if !is_known && us_per_kib < old {
            let why = "what the link takes of a KiB is not known, and so not what a faster one \
                       would leave: probe behind a link of known rate";
            return Err(WhatIfError::Foreign { what: What::Gap, why });
        }
        path.ser_us_per_kib = (path.ser_us_per_kib - old).max(0.0) + us_per_kib;
        match self.ends {
            Some(_) => path.capacity = link(us_per_kib),
            None if is_known => {
                path.capacity.us_per_kib = path.capacity.us_per_kib.max(us_per_kib);
            }
            None => path.capacity.us_per_kib = us_per_kib,
        }
        self.link_us_per_kib = us_per_kib;
        Ok(())
    }

    /// The case held to a throughput that was measured as it is: by the time of what limits it. The
    /// probes take the time of one call alone, for which processors wake that several keep awake,
    /// and short bursts. No change where what is measured is so far off that something else limits.
    #[must_use]
    pub fn calibrated(mut self, mib_per_s: f64) -> Self {
        let found = self.formula();
        let slower = found.mib_per_s / mib_per_s;
        if !(1.0 / CALIBRATED_MAX..=CALIBRATED_MAX).contains(&slower) {
            return self;
        }
        let Path { capacity, storage, .. } = &mut self.path;
        let bound = match (self.server, found.bound) {
            // It does one after the other, whichever takes longer.
            (Server::Stall, Bound::Capacity | Bound::Storage) => Bound::Server,
            (_, bound) => bound,
        };
        match bound {
            Bound::Cycle(_) => {
                let outstanding = f64::from(self.transfer.outstanding.max(1));
                let cycle_us = outstanding * self.transfer.call_bytes as f64 / MIB * 1e6;
                let longer_us = cycle_us / mib_per_s - cycle_us / found.mib_per_s;
                let round_trip_us = self.path.round_trip_us + longer_us;
                let rest_us = cycle_us / found.mib_per_s - self.path.round_trip_us;
                let least_us = 2.0 * self.latency_us;
                self.path.round_trip_us = round_trip_us.max(least_us);
                // What the way cannot give, the rest of the cycle does.
                let beyond_us = (least_us - round_trip_us).max(0.0);
                if beyond_us > 0.0 && rest_us > beyond_us {
                    scale_rest(&mut self.path, 1.0 - beyond_us / rest_us);
                }
            }
            Bound::Capacity => {
                capacity.call_us *= slower;
                capacity.us_per_kib *= slower;
                storage.unhidden_us_per_kib *= slower;
            }
            Bound::Storage => storage.us_per_kib *= slower,
            Bound::Server => match (&mut self.processor_us, &mut self.ends) {
                (Some(processor_us), _) => *processor_us *= slower,
                (None, Some(ends)) if self.server == Server::Concurrent => {
                    ends.call_us *= slower;
                    ends.us_per_kib *= slower;
                }
                (None, _) => {
                    capacity.call_us *= slower;
                    capacity.us_per_kib *= slower;
                    storage.sync_us *= slower;
                    storage.us_per_kib *= slower;
                }
            },
        }
        self
    }

    /// The formula's answer.
    pub fn formula(&self) -> Prediction {
        let prediction = self.path.predict(self.server, &self.transfer);
        // Each of the threads keeps a call while it is processed and stored.
        let work_us = self.work_us(&prediction);
        let held_us = self.threads.map(|threads| work_us / f64::from(threads));
        let server_us = held_us.into_iter().chain(self.ends_us()).fold(0.0, f64::max);
        let most = self.transfer.call_bytes as f64 / server_us * 1e6 / MIB;
        if server_us > 0.0 && most < prediction.mib_per_s {
            return Prediction { mib_per_s: most, bound: Bound::Server, ..prediction };
        }
        prediction
    }

    /// What a call occupies one of the ends for, where that is known by itself.
    pub fn ends_us(&self) -> Option<f64> {
        let ends_us = self.ends.map(|ends| ends.call_of_us(self.transfer.call_bytes as f64));
        self.processor_us.into_iter().chain(ends_us).reduce(f64::max)
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
        let stage_us = self.ends_us().map_or(stage_us, |own_us| own_us.max(stage_us));
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
    pub fn predicted(&self, spread: &Spread) -> Result<PathPrediction, ModelError> {
        let prediction = self.formula();
        let mut squares = 0.0;
        for varied in self.varied(spread) {
            squares += (varied.formula().mib_per_s / prediction.mib_per_s).ln().powi(2);
        }
        let half = squares.sqrt();
        let value = prediction.mib_per_s;
        let interval = Interval { lo: value / half.exp(), hi: value * half.exp() };
        Ok(PathPrediction {
            formula: Estimate { value, ci95: (half > 0.0).then_some(interval) },
            closed_mib_per_s: self.closed_mib_per_s()?,
            bound: prediction.bound,
        })
    }

    /// Stable WRITEs before the changes and after them, where a write log is one of them. `calls`
    /// are as many and as large as they are: changes of the transfer are none of theirs.
    pub fn stable(
        &self,
        changes: &[Change],
        calls: &Stable,
        spread: &Spread,
    ) -> Result<Option<[StablePrediction; 2]>, WhatIfError> {
        let Some(log) = changes.iter().rev().find_map(|change| change.log) else { return Ok(None) };
        let of_transfer =
            |change: &&Change| matches!(change.what, What::Outstanding | What::CallSize);
        let mut after = *self;
        let mut own = changes.iter().filter(|change| !of_transfer(change));
        own.try_for_each(|change| after.apply(change))?;
        let of = |case: &Self, log: Option<&LogDevice>| {
            let turns = |case: &Self| write_log::stable_rate(&case.path, case.server, log, calls);
            let rate = turns(case);
            let per_s = rate.turns.per_s;
            let squares = case.varied(spread).map(|varied| turns(&varied).turns.per_s / per_s);
            let half = squares.iter().map(|ratio| ratio.ln().powi(2)).sum::<f64>().sqrt();
            let interval = Interval { lo: per_s / half.exp(), hi: per_s * half.exp() };
            let ci95 = (half > 1e-9).then_some(interval);
            StablePrediction { rate, per_s: Estimate { value: per_s, ci95 } }
        };
        Ok(Some([of(self, None), of(&after, Some(&log))]))
    }

    /// The case with one parameter at a time at the end of its interval.
    fn varied(&self, spread: &Spread) -> [Self; 6] {
        let mut cases = [*self; 6];
        cases[0].path.round_trip_us *= 1.0 + spread.round_trip;
        cases[1].path.ser_us_per_kib *= 1.0 + spread.ser;
        cases[2].path.op_us *= 1.0 + spread.op;
        cases[3].path.overhead_us *= 1.0 + spread.overhead;
        cases[4].path.capacity.call_us *= 1.0 + spread.capacity;
        // What is known of the link is no question of how well it was measured.
        let link_us_per_kib = self.link_us_per_kib;
        if self.path.capacity.us_per_kib > link_us_per_kib * LINK_ALONE {
            cases[4].path.capacity.us_per_kib *= 1.0 + spread.capacity;
        }
        if let Some(ends) = &mut cases[4].ends {
            ends.call_us *= 1.0 + spread.capacity;
            ends.us_per_kib *= 1.0 + spread.capacity;
        }
        cases[5].path.storage.sync_us *= 1.0 + spread.storage;
        cases[5].path.storage.us_per_kib *= 1.0 + spread.storage;
        cases[5].path.storage.left_us_per_kib *= 1.0 + spread.storage;
        cases
    }
}

/// A link alone: a WRITE's header passes it as well.
fn link(us_per_kib: f64) -> Capacity {
    Capacity { call_us: HEADER_KIB * us_per_kib, us_per_kib }
}

/// The record mark, the RPC header with a credential without groups, and the arguments before the
/// data: 120 bytes, a few more with a long name of the machine.
const HEADER_KIB: f64 = 120.0 / 1024.0;

/// Larger calls than this are none of NFS.
const CALL_BYTES_MAX: u64 = 1_000_000_000;

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a cast from f64 saturates"
)]
fn whole(bytes: f64) -> u64 {
    bytes.round() as u64
}

/// What a call's cycle has besides the way.
fn scale_rest(path: &mut Path, by: f64) {
    path.ser_us_per_kib *= by;
    path.op_us *= by;
    path.overhead_us *= by;
    path.storage.sync_us *= by;
    path.storage.us_per_kib *= by;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::transaction::{Storage, Term};

    /// The thesis's switched path, with eight calls outstanding on a concurrent server.
    fn thesis() -> PathCase {
        PathCase {
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
            link_us_per_kib: 8.192,
            ends: None,
            threads: None,
            processor_us: None,
        }
    }

    fn after(texts: &[&str]) -> PathCase {
        let changes: Vec<Change> = texts.iter().map(|text| text.parse().unwrap()).collect();
        thesis().changed(&changes).unwrap()
    }

    fn mbit(case: &PathCase) -> f64 {
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
        let busy = |case: PathCase| case.changed(&["o+50us".parse().unwrap()]).unwrap();
        assert!((mbit(&busy(case)) - 65_536.0 / (65.536 + 100.0)).abs() < 0.1);
        case.processor_us = Some(30.0);
        assert_eq!(case.formula(), PathCase { processor_us: None, ..case }.formula());
        assert_eq!(busy(case).formula().bound, Bound::Server);
        assert!((mbit(&busy(case)) - 65_536.0 / 130.0).abs() < 0.1);
        assert!(busy(case).closed_mib_per_s().unwrap() < busy(case).formula().mib_per_s);
    }

    #[test]
    fn a_case_can_be_held_to_what_was_measured() {
        let one =
            PathCase { transfer: Transfer { outstanding: 1, ..thesis().transfer }, ..thesis() };
        let measured = 0.9 * one.formula().mib_per_s;
        let calibrated = one.calibrated(measured);
        assert!((calibrated.formula().mib_per_s / measured - 1.0).abs() < 1e-3);
        assert!(calibrated.path.round_trip_us > one.path.round_trip_us);
        // A full disk says nothing of the cycle, but what it takes itself.
        let full = thesis().calibrated(0.9 * thesis().formula().mib_per_s);
        assert_eq!(full.path.round_trip_us, thesis().path.round_trip_us);
        assert!(
            (full.path.storage.us_per_kib / thesis().path.storage.us_per_kib - 1.0 / 0.9).abs()
                < 1e-9
        );
        // What is 44 times slower than it should be is something else.
        assert_eq!(thesis().calibrated(1.0), thesis());
    }

    #[test]
    fn where_the_way_is_too_short_to_give_it_the_rest_of_the_cycle_is_held_to_what_was_measured() {
        let transfer = Transfer { outstanding: 8, ..thesis().transfer };
        let mut case = PathCase { transfer, ..thesis() };
        (case.path.round_trip_us, case.latency_us) = (100.0, 0.0);
        (case.path.op_us, case.path.overhead_us) = (400.0, 60.0);
        case.path.capacity = Capacity { call_us: 1.0, us_per_kib: 0.1 };
        case.path.storage.us_per_kib = 0.1;
        let found = case.formula();
        assert!(matches!(found.bound, Bound::Cycle(_)), "{found:?}");
        let measured = 1.6 * found.mib_per_s;
        let held = case.calibrated(measured);
        assert_eq!(held.path.round_trip_us, 0.0);
        let off = held.formula().mib_per_s / measured - 1.0;
        assert!(off.abs() < 0.02, "{off}");
    }

    #[test]
    fn a_log_takes_the_disk_out_of_the_way_of_stable_writes_alone() {
        let mut case = thesis();
        case.path.storage.sync_us = 5_000.0;
        let changes = ["write-log=sim:nvram".parse().unwrap()];
        assert_eq!(case.changed(&changes).unwrap(), case);
        let calls = Stable { bytes: 8192, outstanding: 1 };
        let spread = Spread { storage: 0.1, ..Spread::default() };
        let [before, after] = case.stable(&changes, &calls, &spread).unwrap().unwrap();
        assert!(after.per_s.value > 5.0 * before.per_s.value, "{before:?} {after:?}");
        let interval = before.per_s.ci95.unwrap();
        assert!((interval.hi / before.per_s.value - 1.1).abs() < 0.02, "{before:?}");
        // What the log takes is given, and so the disk's interval is none of its own.
        assert_eq!(after.per_s.ci95, None);
        assert_eq!(case.stable(&["L+1ms".parse().unwrap()], &calls, &spread).unwrap(), None);
        assert!(case.changed(&["write-log x2".parse().unwrap()]).is_err());
    }

    #[test]
    fn what_more_calls_outstanding_give_is_not_the_logs() {
        let mut case = thesis();
        case.path.storage.sync_us = 5_000.0;
        let gain = |changes: &[&str]| {
            let changes: Vec<Change> = changes.iter().map(|text| text.parse().unwrap()).collect();
            let calls = Stable { bytes: 8192, outstanding: 4 };
            let [before, after] =
                case.stable(&changes, &calls, &Spread::default()).unwrap().unwrap();
            after.per_s.value / before.per_s.value
        };
        let log = gain(&["write-log=sim:nvram"]);
        for other in ["outstanding=64", "outstanding=1", "wsize=1M"] {
            assert_eq!(gain(&["write-log=sim:nvram", other]), log, "{other}");
        }
        // Another change is in it.
        assert!(gain(&["write-log=sim:nvram", "L+5ms"]) < log);
    }

    #[test]
    fn mean_value_analysis_stays_below_the_formula_and_meets_it_at_both_ends() {
        for outstanding in [1, 2, 4, 8, 64, 1024] {
            let case =
                PathCase { transfer: Transfer { outstanding, ..thesis().transfer }, ..thesis() };
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
        assert_eq!(thesis().predicted(&spread).unwrap().formula.ci95, None);
        let far = after(&["L=5ms"]);
        let interval = far.predicted(&spread).unwrap().formula.ci95.unwrap();
        let half = (interval.hi / far.formula().mib_per_s - 1.0) * 100.0;
        assert!((9.0..11.0).contains(&half), "{half}");
    }

    #[test]
    fn a_link_that_is_known_is_no_less_known_because_the_old_one_was_measured_badly() {
        let slow = after(&["G=12MB/s"]);
        let spread = Spread { capacity: 1.0, ..Spread::default() };
        let formula = slow.predicted(&spread).unwrap().formula;
        let link = 12e6 / MIB;
        assert!(formula.value > 0.9 * link, "{formula:?}");
        assert!(formula.ci95.is_none_or(|ci95| ci95.lo > 0.9 * link && ci95.hi <= link * 1.001));
    }

    #[test]
    fn a_latency_that_is_known_is_replaced_and_one_that_is_not_cannot_be_multiplied() {
        let round_trip_us = |case: &PathCase, text: &str| {
            case.changed(&[text.parse().unwrap()]).map(|case| case.path.round_trip_us)
        };
        let known = thesis();
        assert!((round_trip_us(&known, "L=90us").unwrap() - 192.68).abs() < 1e-9);
        assert!((round_trip_us(&known, "L x2").unwrap() - 372.68).abs() < 1e-9);
        let unknown = PathCase { latency_us: 0.0, ..known };
        assert!(round_trip_us(&unknown, "L x2").unwrap_err().to_string().contains("say L+"));
    }

    #[test]
    fn a_link_is_replaced_where_it_is_known_and_only_slowed_where_it_is_not() {
        let mut case = thesis();
        case.path.ser_us_per_kib = 9.0;
        let case = case.behind(90.0, 8.192, (0.5, 20.0));
        let faster = case.changed(&["G=10g".parse().unwrap()]).unwrap();
        assert!((faster.path.ser_us_per_kib - (9.0 - 8.192 + 0.8192)).abs() < 1e-9);
        assert!((faster.path.capacity.us_per_kib - 0.8192).abs() < 1e-9);
        assert!(faster.ends.unwrap().us_per_kib > 0.8, "{faster:?}");
        let slower = case.changed(&["G=100m".parse().unwrap()]).unwrap();
        assert!((slower.path.ser_us_per_kib - (9.0 - 8.192 + 81.92)).abs() < 1e-9);
        let unknown = PathCase { link_us_per_kib: 0.0, ends: None, ..case };
        let slowed = unknown.changed(&["G=100m".parse().unwrap()]).unwrap();
        assert!((slowed.path.ser_us_per_kib - slower.path.ser_us_per_kib).abs() < 1.0);
        // But for the header, of which an unknown link says nothing.
        assert!((slowed.formula().mib_per_s / slower.formula().mib_per_s - 1.0).abs() < 0.02);
        let refused = unknown.changed(&["G=10g".parse().unwrap()]).unwrap_err();
        assert!(refused.to_string().contains("not known"), "{refused}");
    }

    #[test]
    fn small_calls_show_an_end_and_large_ones_the_link() {
        // One processor of 150 us a call and 2 us a KiB, behind 1 Gbit/s: bursts of 8 KiB show the
        // one, of 1 MiB the other.
        let mut case = thesis();
        let (block_us, large_us) = (150.0 + 8.0 * 2.0, 1024.0 * 8.192);
        let us_per_kib = (large_us - block_us) / 1016.0;
        case.path = Path {
            ser_us_per_kib: 8.192 + 2.0,
            op_us: 150.0,
            capacity: Capacity { call_us: block_us - 8.0 * us_per_kib, us_per_kib },
            storage: Storage { us_per_kib: 0.0, ..case.path.storage },
            ..case.path
        };
        case.transfer.outstanding = 64;
        let full_us = |case: &PathCase| {
            case.transfer.call_bytes as f64 / MIB / case.formula().mib_per_s * 1e6
        };
        let known = case.behind(90.0, 8.192, (0.5, 151.0));
        for (change, want) in
            [("G=100m", 665.0), ("wsize=64K", 525.2), ("wsize=8K", 166.0), ("o+50us", 266.0)]
        {
            let after = known.changed(&[change.parse().unwrap()]).unwrap();
            assert!((full_us(&after) / want - 1.0).abs() < 0.01, "{change}: {}", full_us(&after));
        }
        // One line through both has them in turn.
        let after = case.changed(&["wsize=64K".parse().unwrap()]).unwrap();
        assert!(full_us(&after) > 1.15 * 524.288);
    }

    #[test]
    fn impossible_and_foreign_changes_are_refused() {
        for text in ["cache=64G", "clients x10", "outstanding=0", "wsize=0", "threads=0", "o=1us"] {
            assert!(thesis().changed(&[text.parse().unwrap()]).is_err(), "{text}");
        }
    }
}
