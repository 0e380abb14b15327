//! Changes to a trace that was explained: calls a second of its average call with so many
//! outstanding, by a formula and by mean value analysis, with the interval that the fit gives it.
//!
//! ```text
//! demand   = op + KiB ser + share of stable calls x block
//! formula  X(N) = min( N / (think + way + demand),  m / demand ),  R = N / X - think
//! MVA      N callers who think, a delay of way, a line before m servers of demand
//! think    = N / X - R of the trace itself
//! ```
//!
//! A client that makes no call for a while has few calls a second, however fast each is answered.
//! So the callers think between a reply and their next call, for as long as makes the calls of the
//! trace as many as they were (the interactive response time law). What is left to be predicted is
//! the response time, and the state before a change is [`off`] what was measured where the
//! servers that were fitted answer at another pace than those that were traced.
//!
//! | change | in the model |
//! |---|---|
//! | L | way grows by 2 L |
//! | o | op grows by 2 o: a call and its reply at the servers |
//! | G | ser, at least the link's |
//! | cpus, threads | m; threads are m at most |
//! | wsize | bytes of the calls that carry some |
//! | write-log | block, at most a sync of the log |
//! | outstanding, clients | N |

use super::{Change, How, What, WhatIfError};
use crate::model::closed::network::{Center, Class, Kind, Network};
use crate::model::error::{ModelError, positive};
use crate::model::sweep::OUTSTANDING_MAX;
use crate::model::trace::{Explained, Measured, Work};
use crate::stats::Estimate;

/// The average call of a trace, and its servers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TraceCase {
    pub way_us: f64,
    pub op_us: f64,
    pub ser_us_per_kib: f64,
    pub block_us: f64,
    /// From a reply to the next call of the same caller.
    pub think_us: f64,
    /// m.
    pub servers: u32,
    /// N.
    pub outstanding: u32,
    /// Mean size of all calls.
    pub kib: f64,
    /// Of all calls: that carry data, and that are stable.
    pub carrying: f64,
    pub stable: f64,
}

/// What is predicted for a case.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TracePrediction {
    pub case: TraceCase,
    /// Calls a second, by the formula.
    pub per_s: Estimate,
    /// Both by the formula.
    pub formula: Measured,
    /// Both by mean value analysis.
    pub closed: Measured,
    /// `per_s` is the most that there can be: no limit was seen in the trace
    /// ([`Explained::shows_demand`]), and its interval goes down to what the most calls outstanding
    /// have reached; or more calls outstanding are supposed of a client that thinks, and whose own
    /// limit that may be.
    pub is_at_most: bool,
    /// m / demand: calls a second with calls without end outstanding. None where no limit was seen,
    /// and of calls that are much
    /// lighter than those of the trace, where what a call takes besides its bytes was not found.
    pub saturation_per_s: Option<f64>,
    /// Whether the servers are full (or too few calls outstanding to fill them).
    pub is_full: bool,
}

/// Before and after changes. Without a number of outstanding calls, the trace as it is: its mean
/// number, and callers who think as long as they did. With one, so many are always outstanding.
/// Fails where a change is not part of the model or cannot be.
pub fn answer(
    explained: &Explained,
    outstanding: Option<u32>,
    changes: &[Change],
) -> Result<[TracePrediction; 2], WhatIfError> {
    let before = predicted(explained, outstanding, &[])?;
    let mut after = predicted(explained, outstanding, changes)?;
    let more = |change: &Change| change.what == What::Outstanding;
    let is_wider = after.case.outstanding > before.case.outstanding && changes.iter().any(more);
    if is_wider && before.case.think_us > THINKS * before.formula.response_us {
        after.is_at_most = true;
        // The client may be what limits: then it calls as often as before.
        if let Some(ci95) = after.per_s.ci95.as_mut() {
            ci95.lo = ci95.lo.min(before.per_s.value.min(after.per_s.value));
        }
    }
    Ok([before, after])
}

/// How far a model is off what was measured: the larger of throughput and response time, as a
/// share. Beyond [`TOLERATED`](crate::model::trace::TOLERATED) its predictions are worth nothing.
pub fn off(model: &Measured, measured: &Measured) -> f64 {
    let off = |model: f64, measured: f64| (model / measured).ln().abs().exp_m1();
    let [per_s, response] =
        [off(model.per_s, measured.per_s), off(model.response_us, measured.response_us)];
    per_s.max(response)
}

/// Of a response time, from which on a think time may be what limits a client: a guess.
const THINKS: f64 = 0.1;

fn predicted(
    explained: &Explained,
    outstanding: Option<u32>,
    changes: &[Change],
) -> Result<TracePrediction, WhatIfError> {
    let fitted = &explained.fitted;
    let of = |values: &[f64]| TraceCase::of(explained, values, outstanding).changed(changes);
    let case = of(&fitted.values())?;
    let mut per_s = fitted.answer(|values| Ok::<f64, WhatIfError>(of(values)?.formula_per_s()))?;
    let is_at_most = !explained.shows_demand();
    let (most, reached_per_s) = explained.reached();
    if let Some(ci95) = per_s.ci95.as_mut().filter(|_| is_at_most && case.outstanding > most) {
        ci95.lo = ci95.lo.min(reached_per_s);
    }
    let is_op_found = fitted.parameters.iter().any(|found| found.name == "op" && !found.at_bound);
    let traced_us = TraceCase::of(explained, &fitted.values(), outstanding).demand_us();
    let is_shown = !is_at_most && (is_op_found || case.demand_us() >= LIGHTER * traced_us);
    let saturation_per_s = is_shown.then(|| case.saturation_per_s());
    Ok(TracePrediction {
        case,
        per_s,
        formula: case.formula(),
        closed: case.closed()?,
        is_at_most,
        saturation_per_s,
        is_full: saturation_per_s.is_some_and(|saturation| per_s.value > 0.98 * saturation),
    })
}

/// Of the demand of the calls that were seen, from which on a call is much lighter: a guess.
const LIGHTER: f64 = 0.5;

impl TraceCase {
    pub(super) fn of(explained: &Explained, values: &[f64], outstanding: Option<u32>) -> Self {
        let names = explained.fitted.parameters.iter().map(|found| found.name);
        let named: Vec<(&str, f64)> = names.zip(values.iter().copied()).collect();
        let value = |name: &str| named.iter().find(|(own, _)| *own == name).map_or(0.0, |v| v.1);
        let groups = &explained.groups;
        let calls = groups.iter().map(|group| group.calls).sum::<usize>().max(1) as f64;
        let share = |of: &dyn Fn(&crate::model::trace::Group) -> f64| -> f64 {
            groups.iter().map(|group| group.calls as f64 * of(group)).sum::<f64>() / calls
        };
        let one_if = |is: bool| if is { 1.0 } else { 0.0 };
        let (outstanding, think_us) = match outstanding {
            Some(outstanding) => (outstanding, 0.0),
            None => callers(explained),
        };
        Self {
            way_us: value("way"),
            op_us: value("op"),
            ser_us_per_kib: value("ser"),
            block_us: value("block"),
            think_us,
            servers: explained.servers,
            outstanding: outstanding.clamp(1, OUTSTANDING_MAX),
            kib: share(&|group| group.kib),
            carrying: share(&|group| one_if(group.kib > 0.0)),
            stable: share(&|group| one_if(group.work == Work::Stable)),
        }
    }

    /// What the average call occupies a server for, us.
    pub fn demand_us(&self) -> f64 {
        self.op_us + self.kib * self.ser_us_per_kib + self.stable * self.block_us
    }

    fn saturation_per_s(&self) -> f64 {
        f64::from(self.servers) / self.demand_us() * 1e6
    }

    fn formula_per_s(&self) -> f64 {
        let cycle_us = self.think_us + self.way_us + self.demand_us();
        (f64::from(self.outstanding) / cycle_us * 1e6).min(self.saturation_per_s())
    }

    fn formula(&self) -> Measured {
        let per_s = self.formula_per_s();
        Measured { per_s, response_us: f64::from(self.outstanding) / per_s * 1e6 - self.think_us }
    }

    fn closed(&self) -> Result<Measured, ModelError> {
        let centers = vec![
            Center::new("servers", Kind::Servers(self.servers), &[self.demand_us()]),
            Center::new("way", Kind::Delay, &[self.way_us]),
        ];
        let class = Class { callers: self.outstanding, think_us: self.think_us };
        let network = Network::new(vec![class], centers)?;
        let solution = network.solve().or_else(|_| network.approximate())?;
        let (per_s, response_us) = (solution.throughput_per_s[0], solution.response_us[0]);
        Ok(Measured { per_s, response_us })
    }

    pub(super) fn changed(mut self, changes: &[Change]) -> Result<Self, WhatIfError> {
        for change in changes {
            self.apply(change)?;
        }
        Ok(self)
    }

    fn apply(&mut self, change: &Change) -> Result<(), WhatIfError> {
        let foreign = |why| Err(WhatIfError::Foreign { what: change.what, why });
        match change.what {
            What::Latency if change.how == How::Add => self.way_us += 2.0 * change.value,
            What::Latency => return foreign("way contains it: say how much is added, as in L+1ms"),
            What::Overhead if change.how == How::Add => self.op_us += 2.0 * change.value,
            What::Overhead => {
                return foreign("op contains it: say how much is added, as in o+50us");
            }
            What::Gap if self.kib == 0.0 => return foreign("no call of the trace carries data"),
            What::Gap if change.how == How::Set => {
                self.ser_us_per_kib = self.ser_us_per_kib.max(change.value);
            }
            What::Gap => return foreign("say the rate of the link, as in G=100Mbit/s"),
            What::Cpus => {
                self.servers = change.of_count_up_to(self.servers, OUTSTANDING_MAX)?;
            }
            What::Threads => {
                let threads = change.of_count_up_to(self.servers, OUTSTANDING_MAX)?;
                self.servers = self.servers.min(threads);
            }
            What::CallSize if self.carrying == 0.0 => {
                return foreign("no call of the trace carries data");
            }
            What::CallSize => {
                let bytes = change.of(self.kib / self.carrying * 1024.0);
                self.kib = self.carrying * positive("call size", bytes)? / 1024.0;
            }
            What::WriteLog if self.stable == 0.0 => {
                return foreign("no call of the trace is stable");
            }
            What::WriteLog => {
                self.block_us = match change.how {
                    How::Set => self.block_us.min(change.value),
                    How::Add | How::Times => change.of(self.block_us),
                };
            }
            What::Outstanding | What::Clients => {
                self.outstanding = change.of_count_up_to(self.outstanding, OUTSTANDING_MAX)?;
            }
            What::Disk | What::Disks => {
                return foreign("block has all disks in one: say write-log=TIME");
            }
            What::Cpu => return foreign("a call's time is op: say o+TIME"),
            What::Cache => return foreign("which call missed a cache is not seen: give a curve"),
        }
        Ok(())
    }
}

/// The callers of a trace, and how long each thinks: as many as were outstanding when a call was
/// sent, on average, and no fewer than were outstanding at all times.
fn callers(explained: &Explained) -> (u32, f64) {
    let Measured { per_s, response_us } = explained.measured;
    let at_once = per_s / 1e6 * response_us;
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    let callers = explained.outstanding_mean.round().max((at_once - ROUNDED).ceil()) as u32;
    let callers = callers.clamp(1, OUTSTANDING_MAX);
    (callers, (f64::from(callers) / per_s * 1e6 - response_us).max(0.0))
}

/// Of a call outstanding, that a mean over a trace may be off.
const ROUNDED: f64 = 0.1;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::Transaction;

    /// 100 us of way, two servers, 60 us for a call, 8 us a KiB, 400 us for a stable one.
    fn explained() -> Explained {
        let mut transactions = Vec::new();
        let mut free = [0.0_f64; 2];
        for window in [1, 2, 4, 8_usize] {
            let mut next = vec![free[0].max(free[1]) + 1e4; window];
            for call in 0..200_usize {
                let own = (0..window).min_by(|&a, &b| next[a].total_cmp(&next[b])).unwrap();
                let (kib, is_stable) = ([0.0, 8.0, 64.0][call % 3], call % 5 == 0);
                let noise = 1.0 + 0.01 * f64::from(u32::try_from(call * 7 % 5).unwrap()) - 0.02;
                let block_us = if is_stable { 400.0 } else { 0.0 };
                let server = usize::from(free[1] < free[0]);
                let sent_us = next[own];
                let begins_us = free[server].max(sent_us + 50.0);
                free[server] = begins_us + (60.0 + 8.0 * kib + block_us) * noise;
                next[own] = free[server] + 50.0;
                let work = if is_stable { Work::Stable } else { Work::Memory };
                #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "few")]
                let bytes = (kib * 1024.0) as u64;
                transactions.push(Transaction { sent_us, answered_us: next[own], bytes, work });
            }
        }
        Explained::from(&transactions).unwrap()
    }

    #[test]
    fn changes_do_what_the_parameters_say() {
        let explained = explained();
        assert_eq!(explained.servers, 2);
        let ask = |outstanding, text: &str| {
            let changes = [text.parse().unwrap()];
            let [before, after] = answer(&explained, Some(outstanding), &changes).unwrap();
            assert!(after.closed.per_s <= after.per_s.value * (1.0 + 1e-9), "{text}: {after:?}");
            assert!(after.per_s.ci95.unwrap().contains(after.per_s.value));
            (after.per_s.value / before.per_s.value, after)
        };
        // 24 KiB and a fifth of 400 us on average: 332 us.
        let demand_us = 60.0 + 8.0 * 24.0 + 80.0;
        let (gain, _) = ask(1, "L+1ms");
        assert!((gain * (2_100.0 + demand_us) / (100.0 + demand_us) - 1.0).abs() < 0.02, "{gain}");
        let (gain, full) = ask(64, "cpus x2");
        assert!((gain - 2.0).abs() < 0.01 && full.is_full, "{gain}");
        let (gain, _) = ask(64, "threads=1");
        assert!((gain - 0.5).abs() < 0.01, "{gain}");
        let (gain, _) = ask(64, "write-log=nvme");
        assert!((gain * (demand_us - 74.0) / demand_us - 1.0).abs() < 0.03, "{gain}");
        let (gain, _) = ask(64, "wsize=72K");
        assert!(gain < 0.7, "{gain}");
        let (gain, after) = ask(1, "clients x10");
        assert!(gain > 2.0 && after.case.outstanding == 10, "{gain}");
        let (gain, _) = ask(64, "G=100Mbit/s");
        assert!(gain < 0.2, "{gain}");
    }

    #[test]
    fn lighter_calls_have_no_saturation_where_what_a_call_takes_was_not_found() {
        let mut explained = explained();
        let after = |explained: &Explained, text: &str| {
            answer(explained, Some(64), &[text.parse().unwrap()]).unwrap()[1].saturation_per_s
        };
        assert!(after(&explained, "wsize=1").is_some());
        let parameters = &mut explained.fitted.parameters;
        parameters.iter_mut().find(|found| found.name == "op").unwrap().at_bound = true;
        assert_eq!(after(&explained, "wsize=1"), None);
        assert!(after(&explained, "L+1ms").is_some());
    }

    /// Calls of 4 ms each, however many are outstanding: a way, of which no server shows.
    fn unlimited() -> Explained {
        let mut transactions = Vec::new();
        let mut begin_us = 0.0;
        for window in [1, 2, 16_u32] {
            for _ in 0..60 {
                for _ in 0..window {
                    let sent_us = begin_us;
                    let answered_us = sent_us + 4_000.0;
                    let (bytes, work) = (0, Work::Memory);
                    transactions.push(Transaction { sent_us, answered_us, bytes, work });
                }
                begin_us += 5_000.0;
            }
        }
        Explained::from(&transactions).unwrap()
    }

    #[test]
    fn where_no_limit_was_seen_more_calls_give_no_more_than_a_most_and_no_saturation() {
        let (explained, limited) = (unlimited(), explained());
        assert!(!explained.shows_demand(), "{:?}", explained.fitted);
        let (most, reached) = explained.reached();
        assert!(most == 16 && (3_900.0..4_100.0).contains(&reached), "{most} {reached}");
        let changes = ["outstanding=64".parse().unwrap()];
        let [before, after] = answer(&explained, Some(8), &changes).unwrap();
        assert_eq!((before.saturation_per_s, after.saturation_per_s), (None, None));
        assert!(after.is_at_most && !after.is_full);
        let ci95 = after.per_s.ci95.unwrap();
        assert!(ci95.lo <= reached && ci95.hi >= after.per_s.value, "{after:?}");
        assert!(explained.unidentified().iter().any(|note| note.contains("no limit was seen")));
        assert!(limited.shows_demand());
    }

    #[test]
    fn what_a_trace_does_not_contain_is_refused() {
        let explained = explained();
        for text in ["L=5ms", "o=1us", "disks=8", "cache=64G", "cpu=1ms", "threads=0", "wsize=0"] {
            let changes = [text.parse().unwrap()];
            assert!(answer(&explained, None, &changes).is_err(), "{text}");
        }
    }
}
