//! A trace of transactions explained: when each call was sent and answered, what kind of call it
//! was, how many bytes it carried; and the server that would have answered so.
//!
//! ```text
//! arrives   = sent + way / 2
//! demand    = op + KiB ser + (stable: block)
//! begins    = max(arrives, when fewer than m of the calls before it were left)
//! answered  = begins + demand + way / 2
//! ```
//!
//! The calls are replayed, at the moments of the trace, to m servers with one line before them,
//! and the parameters are those with which they are answered as they were. So a call that waited
//! for others shows `op` apart from `way`, which a call alone cannot. When the calls before it were
//! done the trace says (answered - way / 2): taken from the model instead, an error of one call's
//! would be passed on to all that wait behind it, and no call's error would be its own.
//!
//! Single calls scatter widely, so they are put in groups (kind, size, how many were outstanding
//! when they were sent, both within a factor of two), and a group's residual is the mean of its
//! calls' ln(model / measured) without the fifth at either end. Groups count by the square root of
//! their calls.
//!
//! How many servers there are is tried. Where all calls wait, the means of groups are those of more
//! servers, too, each slower by as much; single calls are not: they begin when the wrong call ends.
//! So the number is that with which single calls are nearest, by the median of |ln(model /
//! measured)|, and the range holds those whose groups fit as well within 95 % (as in
//! [`super::infer`]) and whose calls are not half as far off again.
//!
//! Intervals: see `intervals`.
//!
//! Source: ours. Assumptions: first come, first served; any server takes any call; the way does not
//! carry more for one call than for another (its bytes are in `ser`, where they make others wait).

mod intervals;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use self::intervals::Seen;
use super::curve::{self, CurveError};
use super::error::{ModelError, not_negative};
use super::least_squares::{FitError, Fitted, Found, Parameter, Unidentified, minimize_from};
use crate::stats::{Sample, student_t_975};

/// What a call requests, as far as its time depends on it.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum Work {
    /// READs, UNSTABLE WRITEs, and everything without data: nothing waits for a disk, or what does
    /// is taken for a part of `op`.
    Memory,
    /// WRITEs that are stable when they are answered, and COMMITs.
    Stable,
}

/// One call with its reply, as a trace shows it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Transaction {
    /// When the call was sent, us from any moment.
    pub sent_us: f64,
    /// When its reply was there, us from the same moment.
    pub answered_us: f64,
    /// Data that it carried in either direction; headers left out.
    pub bytes: u64,
    pub work: Work,
}

/// Most transactions that are looked at: the first of a longer trace.
pub const TRANSACTIONS_MAX: usize = 20_000;

/// Of these so many are fitted, in stretches of calls that follow each other: every step of a fit
/// replays them all, and ten numbers of servers and ten folds are thousands of steps.
const FITTED_MAX: usize = 2_500;
const STRETCH: usize = 500;

/// Typical error of the groups up to which a trace is explained: they are medians of calls that
/// were not repeated under the same conditions.
pub const TOLERATED: f64 = 0.25;

/// Numbers of servers that are tried.
const SERVERS_TRIED: [u32; 10] = [1, 2, 3, 4, 6, 8, 16, 32, 64, 256];

/// Calls that are alike.
#[derive(Clone, Debug, PartialEq)]
pub struct Group {
    pub work: Work,
    /// Mean size.
    pub kib: f64,
    /// The fewest that were outstanding, with the call itself; the most are less than twice that.
    pub outstanding: u32,
    pub calls: usize,
    /// Median response time, us.
    pub measured_us: f64,
}

/// A trace explained.
#[derive(Clone, Debug, PartialEq)]
pub struct Explained {
    /// m: the best, and the range that fits as well; `None` above: no largest was found.
    pub servers: u32,
    pub servers_range: (u32, Option<u32>),
    /// `way`, `op`, and if there are such calls `ser` (per KiB) and `block`; us.
    pub fitted: Fitted,
    /// In the order of the residuals.
    pub groups: Vec<Group>,
    /// Transactions that were looked at.
    pub transactions: usize,
    /// Calls outstanding when one is sent, with itself: the mean.
    pub outstanding_mean: f64,
    pub measured: Measured,
}

/// What the calls themselves show, whatever explains them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Calls a second, from the first call to the last reply.
    pub per_s: f64,
    /// Mean response time.
    pub response_us: f64,
}

impl Measured {
    pub(super) fn of(calls: &[Call]) -> Self {
        let begin_us = calls.iter().map(|call| call.sent_us).fold(f64::INFINITY, f64::min);
        let end_us = calls.iter().map(|call| call.sent_us + call.response_us).fold(0.0, f64::max);
        let count = calls.len() as f64;
        Self {
            per_s: count / (end_us - begin_us) * 1e6,
            response_us: calls.iter().map(|call| call.response_us).sum::<f64>() / count,
        }
    }
}

/// Reads a trace: four columns under the heading `sent_us answered_us bytes stable`, the last 0 or
/// 1; as a curve's file is built otherwise (see [`super::curve`]).
pub fn parse(text: &str) -> Result<Vec<Transaction>, CurveError> {
    let heading = |cells: &[&str]| (cells == HEADING).then_some(());
    let first: Vec<&str> = text.lines().take(LINES_MAX).collect();
    let example = "sent_us answered_us bytes stable";
    let ((), rows) = curve::rows(&first.join("\n"), example, LINES_MAX, heading)?;
    let transaction = |(row, [sent_us, answered_us, bytes, stable]): (usize, [f64; 4])| {
        if !(answered_us.is_finite() && sent_us.is_finite() && answered_us > sent_us) {
            let got = answered_us - sent_us;
            return Err(CurveError::NotPositive { row, what: "response time", got });
        }
        let wrong = |what, got, need| Err(CurveError::NotOneOf { row, what, got, need });
        if sent_us < 0.0 {
            return wrong("time at which the call was sent", sent_us, "0 or more");
        }
        if !(0.0..=1e12).contains(&bytes) {
            return wrong("number of bytes", bytes, "0 to 10^12");
        }
        let work = match stable {
            0.0 => Work::Memory,
            1.0 => Work::Stable,
            _ => return wrong("mark of a stable call", stable, "0 or 1"),
        };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
        let bytes = bytes as u64;
        Ok(Transaction { sent_us, answered_us, bytes, work })
    };
    rows.into_iter().map(transaction).collect()
}

/// Lines that are read, with a heading and some comments; further ones are not looked at.
const LINES_MAX: usize = TRANSACTIONS_MAX + 1_001;

const HEADING: [&str; 4] = ["sent_us", "answered_us", "bytes", "stable"];

/// Whether a text is such a file.
pub fn is_trace(text: &str) -> bool {
    text.lines().map(str::trim).any(|line| line.starts_with(HEADING[0]))
}

impl Explained {
    /// Fails with too few groups for the parameters, a transaction that cannot be (its row is its
    /// place), or where no such server answers so.
    pub fn from(transactions: &[Transaction]) -> Result<Self, FitError> {
        Self::of_servers(transactions, &SERVERS_TRIED)
    }

    fn of_servers(transactions: &[Transaction], tried: &[u32]) -> Result<Self, FitError> {
        let trace = Trace::new(transactions)?;
        let mut fits: Vec<(u32, Fitted, f64)> = Vec::new();
        let mut last = FitError::NotFinite;
        for &servers in tried {
            let before = fits.last().map(|(_, fitted, _)| fitted);
            match trace.fit(servers, before) {
                Ok(fitted) => {
                    let off = trace.off(servers, &fitted);
                    fits.push((servers, fitted, off));
                }
                Err(error) => last = error,
            }
            let of = |fit: &(u32, Fitted, f64)| fit.1.deviation;
            let least = fits.iter().map(of).fold(f64::INFINITY, f64::min);
            // More servers than calls are outstanding are all the same, and far too many no better.
            if servers >= trace.outstanding_max
                || fits.last().is_some_and(|fit| of(fit) > 3.0 * least)
            {
                break;
            }
        }
        let fit = |(_, fitted, _): &&(u32, Fitted, f64)| fitted.deviation <= TOLERATED;
        let nearest = fits.iter().filter(fit).min_by(|(_, _, a), (_, _, b)| a.total_cmp(b));
        let best = nearest.or_else(|| {
            fits.iter().min_by(|(_, a, _), (_, b, _)| a.deviation.total_cmp(&b.deviation))
        });
        let Some((servers, fitted, off)) = best.cloned() else { return Err(last) };
        let mut fitted = fitted.tolerated(TOLERATED)?;
        trace.widen(servers, &mut fitted);
        let freedom = (trace.groups.len() - fitted.parameters.len()).max(1);
        let ratio = 1.0 + student_t_975(freedom).unwrap_or(12.7).powi(2) / freedom as f64;
        // A fit without any error is met by its equals only.
        let limit = fitted.deviation.powi(2) * ratio + 1e-12;
        let as_good = |(_, other, their_off): &&(u32, Fitted, f64)| {
            other.deviation.powi(2) <= limit && *their_off <= 1.5 * off + 1e-6
        };
        let good: Vec<u32> = fits.iter().filter(as_good).map(|&(servers, ..)| servers).collect();
        let most = good.last().copied().filter(|most| Some(most) < fits.last().map(|(n, ..)| n));
        Ok(Self {
            servers,
            servers_range: (good[0], most),
            fitted,
            transactions: trace.calls.len(),
            outstanding_mean: trace.outstanding_mean,
            measured: trace.measured,
            groups: trace.groups.into_iter().map(|(group, _)| group).collect(),
        })
    }

    /// Sentences on what the trace does not show, and what would.
    pub fn unidentified(&self) -> Vec<String> {
        let mut notes: Vec<String> = self.fitted.unidentified.iter().map(advice).collect();
        for found in self.fitted.parameters.iter().filter(|found| found.at_bound) {
            notes.push(format!("{} went to the end of what is possible: not found", found.name));
        }
        if !self.shows_demand() {
            notes.push(
                "no limit was seen: add a run with more calls outstanding, so that calls wait for \
                 the server"
                    .to_owned(),
            );
        } else if self.servers_range.1.is_none() {
            let least = self.servers_range.0;
            notes.push(format!(
                "servers: {least} or more fit alike: add a run with more calls outstanding"
            ));
        }
        notes
    }

    /// Whether anything was found of what a call takes of a server. Otherwise no limit was seen,
    /// nor how many servers there are: calls took as long however many were outstanding.
    pub fn shows_demand(&self) -> bool {
        let of_server = |found: &&Found| matches!(found.name, "op" | "ser" | "block");
        self.fitted.parameters.iter().filter(of_server).any(|found| !found.at_bound)
    }

    /// The most calls that were outstanding for a while, and calls a second then, by the fewest of
    /// the group and its median response time.
    pub fn reached(&self) -> (u32, f64) {
        let most = self.groups.iter().map(|group| group.outstanding).max().unwrap_or(1);
        let per_s = |group: &Group| f64::from(group.outstanding) * 1e6 / group.measured_us;
        let largest = self.groups.iter().filter(|group| group.outstanding == most).map(per_s);
        (most, largest.fold(0.0, f64::max))
    }

    /// Calls a second of this kind that the servers can answer at most.
    pub fn saturation_per_s(&self, bytes: u64, work: Work) -> f64 {
        let value = |name| self.fitted.value(name).unwrap_or(0.0);
        let block_us = if work == Work::Stable { value("block") } else { 0.0 };
        let demand_us = value("op") + bytes as f64 / 1024.0 * value("ser") + block_us;
        f64::from(self.servers) * 1e6 / demand_us
    }
}

fn advice(unidentified: &Unidentified) -> String {
    let has = |name: &str| unidentified.names.contains(&name);
    let what = match () {
        () if has("block") => "add FILE_SYNC WRITEs beside UNSTABLE ones, of the same sizes",
        () if has("ser") => "add calls of other sizes",
        () => "add a run with more calls outstanding, so that calls wait for the server",
    };
    format!("{unidentified}: {what}")
}

/// A call to be replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Call {
    pub(super) sent_us: f64,
    pub(super) response_us: f64,
    pub(super) kib: f64,
    pub(super) work: Work,
}

impl Call {
    /// The first of a trace, by when they were sent. Fails at one that cannot be; its row is its
    /// place.
    pub(super) fn all(transactions: &[Transaction]) -> Result<Vec<Self>, FitError> {
        let mut calls = Vec::with_capacity(transactions.len().min(TRANSACTIONS_MAX));
        for (row, transaction) in (1..).zip(transactions.iter().take(TRANSACTIONS_MAX)) {
            let Transaction { sent_us, answered_us, bytes, work } = *transaction;
            let response_us = answered_us - sent_us;
            not_negative("when the call was sent", sent_us)
                .and_then(|_| super::error::positive("the response time", response_us))
                .map_err(|why: ModelError| FitError::Row { row, why })?;
            calls.push(Self { sent_us, response_us, kib: bytes as f64 / 1024.0, work });
        }
        calls.sort_by(|a, b| a.sent_us.total_cmp(&b.sent_us));
        Ok(calls)
    }
}

struct Trace {
    /// By when they were sent.
    calls: Vec<Call>,
    /// With the numbers of their calls.
    groups: Vec<(Group, Vec<usize>)>,
    outstanding_max: u32,
    outstanding_mean: f64,
    measured: Measured,
    carries: bool,
    stores: bool,
}

impl Trace {
    fn new(transactions: &[Transaction]) -> Result<Self, FitError> {
        let mut calls = Call::all(transactions)?;
        let mut outstanding = outstanding(&calls);
        let measured = Measured::of(&calls);
        stretches(&mut calls);
        stretches(&mut outstanding);
        let mut found: BTreeMap<(Work, u32, u32), Vec<usize>> = BTreeMap::new();
        for (at, (call, outstanding)) in calls.iter().zip(&outstanding).enumerate() {
            let size = (call.kib * 1024.0 + 1.0).log2().floor();
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to 64")]
            let key = (call.work, size as u32, outstanding.ilog2());
            found.entry(key).or_default().push(at);
        }
        let group = |((work, _, log), members): ((Work, u32, u32), Vec<usize>)| {
            let kib = members.iter().map(|&at| calls[at].kib).sum::<f64>() / members.len() as f64;
            let times: Vec<f64> = members.iter().map(|&at| calls[at].response_us).collect();
            let measured_us = Sample::new(times).map_or(f64::NAN, |sample| sample.median());
            let (outstanding, count) = (1 << log, members.len());
            (Group { work, kib, outstanding, calls: count, measured_us }, members)
        };
        let groups = found.into_iter().map(group).collect();
        let carries = calls.iter().any(|call| call.kib > 0.0);
        let stores = calls.iter().any(|call| call.work == Work::Stable);
        let sum: f64 = outstanding.iter().map(|&calls| f64::from(calls)).sum();
        let outstanding_mean = sum / outstanding.len().max(1) as f64;
        let outstanding_max = outstanding.into_iter().max().unwrap_or(1);
        Ok(Self { groups, outstanding_max, outstanding_mean, measured, carries, stores, calls })
    }

    fn fit(&self, servers: u32, before: Option<&Fitted>) -> Result<Fitted, FitError> {
        let residuals = |values: &[f64], out: &mut [f64]| {
            self.residuals(servers, values, Seen::AsItIs, out);
            true
        };
        let mut starts = self.starts();
        if let Some(before) = before {
            let value = |(parameter, found): (&Parameter, &Found)| Parameter {
                start: found.estimate.value.clamp(parameter.lo, parameter.hi),
                ..*parameter
            };
            starts.insert(0, starts[0].iter().zip(&before.parameters).map(value).collect());
        }
        minimize_from(&starts, self.groups.len(), residuals)
    }

    /// How far single calls are off: the median of |ln(model / measured)|.
    fn off(&self, servers: u32, fitted: &Fitted) -> f64 {
        let values = fitted.values();
        let logs: Vec<f64> =
            self.replayed(servers, &values, Seen::AsItIs).into_iter().map(f64::abs).collect();
        Sample::new(logs).map_or(f64::INFINITY, |sample| sample.median())
    }

    /// One of each group.
    fn residuals(&self, servers: u32, values: &[f64], seen: Seen, out: &mut [f64]) {
        let logs = self.replayed(servers, values, seen);
        let mean_calls = self.calls.len() as f64 / self.groups.len().max(1) as f64;
        for (out, (group, members)) in out.iter_mut().zip(&self.groups) {
            let used = members.iter().filter(|&&at| !seen.leaves_out(self.fold(at)));
            let mean = trimmed_mean(used.map(|&at| logs[at]).collect());
            let weight = (group.calls as f64 / mean_calls).sqrt();
            *out = if mean.is_finite() { weight * mean } else { 0.0 };
        }
    }

    /// ln(model / measured) of every call.
    fn replayed(&self, servers: u32, values: &[f64], seen: Seen) -> Vec<f64> {
        let mut values = values.iter().copied();
        let mut next = |is_there: bool| if is_there { values.next().unwrap_or(0.0) } else { 0.0 };
        let (way_us, op_us) = (next(true), next(true));
        let (ser_us, block_us) = (next(self.carries), next(self.stores));
        let demand = |at: usize, call: &Call| {
            let block_us = if call.work == Work::Stable { block_us } else { 0.0 };
            (op_us + call.kib * ser_us + block_us) * seen.slower(self.fold(at))
        };
        let responses = responses_us(&self.calls, servers, way_us, demand);
        let both = responses.into_iter().zip(&self.calls);
        both.map(|(model_us, call)| (model_us / call.response_us).ln()).collect()
    }

    /// From the shortest response time, shared out in several ways.
    fn starts(&self) -> Vec<Vec<Parameter>> {
        let least = |work: Work| {
            let own = self.calls.iter().filter(|call| call.work == work);
            own.map(|call| call.response_us).fold(f64::INFINITY, f64::min)
        };
        let light_us = least(Work::Memory).min(least(Work::Stable));
        let stable_us = least(Work::Stable);
        let light_us = if light_us.is_finite() { light_us } else { 1.0 };
        let kib = self.calls.iter().map(|call| call.kib).fold(0.0, f64::max).max(1e-3);
        let parameter = |name, start: f64| Parameter {
            name,
            unit: "us",
            start,
            lo: start / 1e4,
            hi: start * 1e4,
        };
        let start = |way: f64, op: f64, ser: f64| {
            let mut all = vec![parameter("way", way * light_us), parameter("op", op * light_us)];
            if self.carries {
                all.push(parameter("ser", ser * light_us / kib));
            }
            if self.stores {
                all.push(parameter("block", (stable_us - light_us).max(0.2 * light_us)));
            }
            all
        };
        vec![start(0.6, 0.3, 0.1), start(0.2, 0.7, 0.5), start(0.9, 0.05, 0.05)]
    }
}

/// What the model has for the response time of each call, us: of calls by when they were sent, that
/// each take so much of a server. When the calls before one were done the trace says.
pub(super) fn responses_us(
    calls: &[Call],
    servers: u32,
    way_us: f64,
    demand_us: impl Fn(usize, &Call) -> f64,
) -> Vec<f64> {
    // When the last m of the calls so far were done, the first of them on top.
    let mut done: BinaryHeap<Reverse<Moment>> = BinaryHeap::new();
    let response = |(at, call): (usize, &Call)| {
        let arrives_us = call.sent_us + way_us / 2.0;
        let measured_us = call.sent_us + call.response_us - way_us / 2.0;
        let is_full = done.len() >= servers as usize;
        let first_us = done.peek().filter(|_| is_full).map_or(0.0, |Reverse(Moment(us))| *us);
        let begins_us = first_us.max(arrives_us);
        if !is_full || measured_us > first_us {
            if is_full {
                done.pop();
            }
            done.push(Reverse(Moment(measured_us)));
        }
        begins_us + demand_us(at, call) + way_us / 2.0 - call.sent_us
    };
    calls.iter().enumerate().map(response).collect()
}

/// A moment in us, in order.
#[derive(Clone, Copy, PartialEq)]
pub(super) struct Moment(pub(super) f64);

impl Eq for Moment {}

impl Ord for Moment {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.total_cmp(&other.0)
    }
}

impl PartialOrd for Moment {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// How many calls, with itself, were outstanding when each was sent.
fn outstanding(calls: &[Call]) -> Vec<u32> {
    let mut ends: BinaryHeap<Reverse<Moment>> = BinaryHeap::new();
    let count = |call: &Call| {
        while ends.peek().is_some_and(|Reverse(Moment(us))| *us <= call.sent_us) {
            ends.pop();
        }
        ends.push(Reverse(Moment(call.sent_us + call.response_us)));
        u32::try_from(ends.len()).unwrap_or(u32::MAX)
    };
    calls.iter().map(count).collect()
}

/// Leaves stretches of many calls, evenly over all of them: at the beginning of each the servers
/// seem to be free, which a few calls in hundreds do not change.
fn stretches<T>(calls: &mut Vec<T>) {
    if calls.len() <= FITTED_MAX {
        return;
    }
    let each = calls.len() / (FITTED_MAX / STRETCH);
    let mut at = 0;
    calls.retain(|_| {
        let (stretch, place) = (at / each, at % each);
        at += 1;
        place < STRETCH && stretch < FITTED_MAX / STRETCH
    });
}

/// Without the fifth at either end: nearly as good as a mean, and pauses do not move it.
fn trimmed_mean(mut values: Vec<f64>) -> f64 {
    let cut = values.len() / 5;
    let mut middle = &mut values[..];
    if cut > 0 {
        // In their order they need not be.
        middle.select_nth_unstable_by(cut, f64::total_cmp);
        middle = &mut middle[cut..];
        let most = middle.len() - cut;
        middle.select_nth_unstable_by(most, f64::total_cmp);
        middle = &mut middle[..most];
    }
    middle.iter().sum::<f64>() / middle.len() as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls with each number outstanding.
    const CALLS: usize = 120;

    /// A client that keeps calls outstanding, on m servers whose every service has noise of 5 %.
    fn traced(truth: [f64; 4], servers: usize, windows: &[usize], seed: u64) -> Vec<Transaction> {
        let [way_us, op_us, ser_us, block_us] = truth;
        let mut draw = fastrand::Rng::with_seed(seed);
        let mut trace = Vec::new();
        let mut now_us: f64 = 0.0;
        for &window in windows {
            let mut callers: Vec<f64> = vec![now_us; window];
            let mut free = vec![0.0_f64; servers];
            for _ in 0..CALLS {
                let first = (0..window).min_by(|&a, &b| callers[a].total_cmp(&callers[b])).unwrap();
                let sent_us = callers[first];
                let bytes = [0, 8 << 10, 64 << 10][draw.usize(..3)];
                let work = if bytes > 0 && draw.bool() { Work::Stable } else { Work::Memory };
                let noise = 1.0 + 0.05 * ((0..12).map(|_| draw.f64()).sum::<f64>() - 6.0);
                let block_us = if work == Work::Stable { block_us } else { 0.0 };
                let demand_us = (op_us + bytes as f64 / 1024.0 * ser_us + block_us) * noise;
                let idle = (0..servers).min_by(|&a, &b| free[a].total_cmp(&free[b])).unwrap();
                let done_us = free[idle].max(sent_us + way_us / 2.0) + demand_us;
                free[idle] = done_us;
                let answered_us = done_us + way_us / 2.0;
                callers[first] = answered_us;
                trace.push(Transaction { sent_us, answered_us, bytes, work });
            }
            now_us = callers.iter().copied().fold(0.0, f64::max) + 1e4;
        }
        trace
    }

    const TRUTH: [f64; 4] = [200.0, 150.0, 3.0, 300.0];

    #[test]
    fn parameters_come_back_within_5_percent_and_intervals_cover_them() {
        let mut errors: [Vec<f64>; 4] = Default::default();
        let mut covered = [0; 4];
        for seed in 0..100 {
            let trace = traced(TRUTH, 2, &[1, 2, 4, 8], seed);
            // How many servers there are is tried for some only: it takes most of the time.
            let explained = match seed % 50 {
                0 => Explained::from(&trace).unwrap(),
                _ => Explained::of_servers(&trace, &[2]).unwrap(),
            };
            assert_eq!(explained.servers, 2, "{seed}: {explained:?}");
            for (i, found) in explained.fitted.parameters.iter().enumerate() {
                errors[i].push((found.estimate.value / TRUTH[i] - 1.0).abs());
                covered[i] += u32::from(found.estimate.ci95.unwrap().contains(TRUTH[i]));
            }
        }
        for errors in &mut errors {
            errors.sort_unstable_by(f64::total_cmp);
            assert!(errors[94] <= 0.05, "95 of 100: {errors:?}");
        }
        assert!(covered.iter().all(|&n| n >= 90), "{covered:?}");
        println!("covered {covered:?}, 95 of 100 within {:?}", errors.map(|e| e[94]));
    }

    #[test]
    fn a_long_trace_is_fitted_by_stretches_and_gives_the_same_parameters() {
        let windows = [1, 2, 4, 8, 1, 2, 4, 8, 1, 2, 4, 8].repeat(12);
        let trace = traced(TRUTH, 2, &windows, 1);
        assert!(trace.len() > 6 * FITTED_MAX);
        let explained = Explained::of_servers(&trace, &[2]).unwrap();
        assert_eq!(explained.transactions, FITTED_MAX);
        for (found, truth) in explained.fitted.parameters.iter().zip(TRUTH) {
            assert!((found.estimate.value / truth - 1.0).abs() < 0.1, "{found:?}");
        }
    }

    #[test]
    fn servers_that_are_always_full_are_counted_by_single_calls() {
        for seed in 0..5 {
            let explained = Explained::from(&traced(TRUTH, 2, &[1, 16, 16], seed)).unwrap();
            assert_eq!(explained.servers, 2, "{seed}: {explained:?}");
        }
    }

    #[test]
    fn what_a_trace_does_not_show_is_stated_with_what_would() {
        let notes =
            |trace: &[Transaction]| Explained::from(trace).unwrap().unidentified().join("; ");
        // One call at a time: the way and the server are one.
        let alone = notes(&traced(TRUTH, 2, &[1, 1, 1, 1], 1));
        assert!(alone.contains("op"), "{alone}");
        assert!(alone.contains("more calls outstanding"), "{alone}");
        // Everything is stable: nothing distinguishes the disk from the rest.
        let mut stable = traced(TRUTH, 2, &[1, 2, 4, 8], 1);
        stable.retain(|transaction| transaction.work == Work::Stable);
        let stable = notes(&stable);
        assert!(stable.contains("block") && stable.contains("UNSTABLE"), "{stable}");
    }

    #[test]
    fn what_no_server_answers_is_refused_with_its_row_or_its_residuals() {
        let mut trace = traced(TRUTH, 2, &[1, 2, 4, 8], 1);
        trace[2].answered_us = trace[2].sent_us - 1.0;
        let refused = Explained::from(&trace).unwrap_err().to_string();
        assert!(refused.contains("row 3: the response time is -1"), "{refused}");
        assert!(matches!(Explained::from(&[]), Err(FitError::TooFew { .. } | FitError::NotFinite)));
        let mut mad = traced(TRUTH, 2, &[1, 2, 4, 8], 1);
        let mut draw = fastrand::Rng::with_seed(3);
        mad.iter_mut().for_each(|t| t.answered_us = t.sent_us + [1.0, 3e4][draw.usize(..2)]);
        assert!(matches!(Explained::from(&mad), Err(FitError::Bad { .. })), "random times");
    }
}
