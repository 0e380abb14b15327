//! The calls of a trace made again by its callers, to the servers that were fitted: what a change
//! does to the sizes, the bursts and the pauses that there were, which an average call has not.
//!
//! A call that is sent soon after a reply is taken for the same caller's; any other for that of the
//! caller who has been idle for longest. There are as many callers as calls were ever outstanding.
//! Each makes its calls in their order, and thinks before each as long as it did.
//!
//! ```text
//! sends    = reply of the same caller's call before + think
//! begins   = max(sends + way / 2, when one of m servers is free)
//! reply    = begins + demand + left + way / 2
//! ```
//!
//! Whether a caller who pauses waited for the reply before, or calls by a clock of its own, a trace
//! does not show. The answer is of callers who wait; its interval goes to that of those who do not.
//!
//! `left` is what the fit leaves of that call's time; it may be negative. No server explains it,
//! and no change makes it less. It occupies the server, as the fit has it: calls behind one that
//! took long waited for its end. So the calls as they were come as often and take as long as they
//! did, unless servers or callers are none of this kind; how much of that is the servers' own, a
//! run without `left` says.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use super::of_trace::TraceCase;
use super::{Change, WhatIfError};
use crate::model::least_squares::FitError;
use crate::model::trace::{Call, Explained, Measured, Moment, Transaction, Work, responses_us};
use crate::stats::Estimate;

/// A call follows from the reply before it where it is sent within such a share of the mean time
/// between calls: so small that few do by chance (one in ten).
const FOLLOWS: f64 = 0.1;

/// Calls that are replayed, about: of more callers each makes only the first of its calls.
const CALLS_MAX: usize = 400_000;

/// A trace whose calls can be made again.
#[derive(Clone, Debug)]
pub struct Replay {
    calls: Vec<Call>,
    /// The numbers of each one's calls.
    callers: Vec<Vec<usize>>,
    /// Before each call.
    thinks_us: Vec<f64>,
    /// Whether it was made soon after the reply before.
    follows: Vec<bool>,
}

/// What a call after a pause waits for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Pauses {
    AfterReply,
    ByClock,
}

/// What comes out.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Replayed {
    pub measured: Measured,
    /// Of each server's time, that in which it is busy.
    pub utilization: f64,
}

/// A change, replayed.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReplayAnswer {
    pub before: Replayed,
    pub after: Replayed,
    /// In calls a second; its interval has callers who pause after a reply, and by a clock.
    pub gain: Estimate,
    /// Before the changes, by the servers alone: without what the fit leaves open.
    pub alone: Measured,
}

impl Replay {
    /// Fails as [`Explained::from`](crate::model::trace::Explained::from) does.
    pub fn of(transactions: &[Transaction]) -> Result<Self, FitError> {
        let calls = Call::all(transactions)?;
        let soon_us = FOLLOWS * 1e6 / Measured::of(&calls).per_s;
        let mut callers: Vec<Vec<usize>> = Vec::new();
        let mut thinks_us = Vec::with_capacity(calls.len());
        let mut followed = Vec::with_capacity(calls.len());
        // Those who wait for a reply, and those who have theirs, the last of them at the back.
        let mut waiting: BinaryHeap<Reverse<(Moment, usize)>> = BinaryHeap::new();
        let mut idle: VecDeque<(f64, usize)> = VecDeque::new();
        let begin_us = calls.first().map_or(0.0, |call| call.sent_us);
        for (at, call) in calls.iter().enumerate() {
            while let Some(&Reverse((Moment(us), own))) = waiting.peek()
                && us <= call.sent_us
            {
                waiting.pop();
                idle.push_back((us, own));
            }
            let follows = idle.back().is_some_and(|(us, _)| call.sent_us - us <= soon_us);
            let found = if follows { idle.pop_back() } else { idle.pop_front() };
            let (since_us, own) = found.unwrap_or_else(|| {
                callers.push(Vec::new());
                (begin_us, callers.len() - 1)
            });
            callers[own].push(at);
            thinks_us.push(call.sent_us - since_us);
            followed.push(follows);
            waiting.push(Reverse((Moment(call.sent_us + call.response_us), own)));
        }
        Ok(Self { calls, callers, thinks_us, follows: followed })
    }

    /// Before and after changes, with what the fit leaves open of both. Fails where a change is not
    /// part of the model or cannot be.
    pub fn answer(
        &self,
        explained: &Explained,
        changes: &[Change],
    ) -> Result<ReplayAnswer, WhatIfError> {
        let case = |values: &[f64]| TraceCase::of(explained, values, None);
        let both = |values: &[f64], pauses: Pauses| {
            let before = case(values);
            let after = before.changed(changes)?;
            let left_us = self.left_us(&before);
            let run = |of: &TraceCase| self.run(&before, of, &left_us, pauses);
            Ok::<_, WhatIfError>([run(&before), run(&after)])
        };
        let gain = |[before, after]: [Replayed; 2]| after.measured.per_s / before.measured.per_s;
        let values = explained.fitted.values();
        let [before, after] = both(&values, Pauses::AfterReply)?;
        let mut found = explained
            .fitted
            .answer(|values| Ok::<_, WhatIfError>(gain(both(values, Pauses::AfterReply)?)))?;
        let by_clock = gain(both(&values, Pauses::ByClock)?);
        if let Some(ci95) = found.ci95.as_mut() {
            (ci95.lo, ci95.hi) = (ci95.lo.min(by_clock), ci95.hi.max(by_clock));
        }
        let (own, none) = (case(&values), vec![0.0; self.calls.len()]);
        let alone = self.run(&own, &own, &none, Pauses::AfterReply).measured;
        Ok(ReplayAnswer { before, after, gain: found, alone })
    }

    /// The trace, which was by the servers of `before`, by those of `after` and as many times the
    /// callers as that has.
    fn run(
        &self,
        before: &TraceCase,
        after: &TraceCase,
        left_us: &[f64],
        pauses: Pauses,
    ) -> Replayed {
        let times = f64::from(after.outstanding) / f64::from(before.outstanding.max(1));
        let sizes = if before.kib > 0.0 { after.kib / before.kib } else { 1.0 };
        let lists = self.lists(times);
        let mut sends: BinaryHeap<Reverse<(Moment, usize, usize)>> = lists
            .iter()
            .enumerate()
            .map(|(own, list)| Reverse((Moment(self.thinks_us[list[0]]), own, 0)))
            .collect();
        let mut free: BinaryHeap<Reverse<Moment>> = BinaryHeap::new();
        let (mut count, mut sum_us, mut busy_us, mut end_us) = (0.0, 0.0, 0.0, 0.0_f64);
        let begin_us = sends.peek().map_or(0.0, |Reverse((Moment(us), ..))| *us);
        while let Some(Reverse((Moment(sent_us), own, place))) = sends.pop() {
            let at = lists[own][place];
            let demand_us = (demand_us(after, &self.calls[at], sizes) + left_us[at]).max(0.0);
            let is_full = free.len() >= after.servers as usize;
            let first_us = if is_full { free.pop().map_or(0.0, |first| first.0.0) } else { 0.0 };
            let done_us = first_us.max(sent_us + after.way_us / 2.0) + demand_us;
            free.push(Reverse(Moment(done_us)));
            let reply_us = done_us + after.way_us / 2.0;
            (count, sum_us, busy_us) =
                (count + 1.0, sum_us + reply_us - sent_us, busy_us + demand_us);
            end_us = end_us.max(reply_us);
            if let Some(&next) = lists[own].get(place + 1) {
                let after_us = match pauses {
                    Pauses::ByClock if !self.follows[next] => sent_us + self.calls[at].response_us,
                    _ => reply_us,
                };
                sends.push(Reverse((Moment(after_us + self.thinks_us[next]), own, place + 1)));
            }
        }
        let span_us = end_us - begin_us;
        Replayed {
            measured: Measured { per_s: count / span_us * 1e6, response_us: sum_us / count },
            utilization: busy_us / span_us / f64::from(after.servers),
        }
    }

    /// Each caller's calls; of more callers, those of the trace's again, which begin elsewhere in
    /// them; of fewer, some.
    fn lists(&self, times: f64) -> Vec<Vec<usize>> {
        let own = self.callers.len();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let wanted = ((own as f64 * times).round() as usize).clamp(1, CALLS_MAX);
        let share = (CALLS_MAX as f64 / (self.calls.len() as f64 * times)).min(1.0);
        let rounds = wanted.div_ceil(own);
        let list = |number: usize| {
            let from = if wanted < own { number * own / wanted } else { number % own };
            let mut list = self.callers[from].clone();
            let turn = list.len() * (number / own) / rounds;
            list.rotate_left(turn);
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "less")]
            list.truncate((list.len() as f64 * share).ceil() as usize);
            list
        };
        (0..wanted).map(list).collect()
    }

    fn left_us(&self, case: &TraceCase) -> Vec<f64> {
        let demand = |_: usize, call: &Call| demand_us(case, call, 1.0);
        let model = responses_us(&self.calls, case.servers, case.way_us, demand);
        self.calls.iter().zip(model).map(|(call, model_us)| call.response_us - model_us).collect()
    }
}

fn demand_us(case: &TraceCase, call: &Call, sizes: f64) -> f64 {
    let block_us = if call.work == Work::Stable { case.block_us } else { 0.0 };
    case.op_us + call.kib * sizes * case.ser_us_per_kib + block_us
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::trace::TOLERATED;
    use crate::model::whatif::of_trace::off;

    /// A system that is known: what one caller thinks, how many there are, and the server.
    #[derive(Clone, Copy, Debug)]
    struct Known {
        callers: usize,
        /// Mean, of think times that are random; of 0 none.
        think_us: f64,
        way_us: f64,
        op_us: f64,
        ser_us_per_kib: f64,
        servers: usize,
        /// Of one call in ten, what it takes besides.
        pause_us: f64,
    }

    const KNOWN: Known = Known {
        callers: 1,
        think_us: 0.0,
        way_us: 1_000.0,
        op_us: 100.0,
        ser_us_per_kib: 8.0,
        servers: 1,
        pause_us: 0.0,
    };

    impl Known {
        /// So many calls of 0 to 64 KiB.
        fn traced(&self, count: usize) -> Vec<Transaction> {
            let mut draw = fastrand::Rng::with_seed(7);
            let mut next: Vec<f64> = (0..self.callers).map(|_| self.think(&mut draw)).collect();
            let mut free = vec![0.0_f64; self.servers];
            let mut traced = Vec::new();
            for _ in 0..count {
                let own = first(&next);
                let server = first(&free);
                let bytes = [0_u32, 8 << 10, 24 << 10, 64 << 10][draw.usize(..4)];
                let noise = 0.95 + 0.1 * draw.f64();
                let pause_us = if draw.usize(..10) == 0 { self.pause_us } else { 0.0 };
                let demand_us = self.op_us + self.ser_us_per_kib * f64::from(bytes) / 1024.0;
                let sent_us = next[own];
                let begins_us = free[server].max(sent_us + self.way_us / 2.0);
                free[server] = begins_us + demand_us * noise + pause_us;
                let answered_us = free[server] + self.way_us / 2.0;
                next[own] = answered_us + self.think(&mut draw);
                let (bytes, work) = (bytes.into(), Work::Memory);
                traced.push(Transaction { sent_us, answered_us, bytes, work });
            }
            traced
        }

        fn think(&self, draw: &mut fastrand::Rng) -> f64 {
            -(1.0 - draw.f64()).ln() * self.think_us
        }

        /// Of so many calls that chance is none of it.
        fn measured(&self) -> Measured {
            Measured::of(&Call::all(&self.traced(12 * COUNT)).unwrap())
        }
    }

    const COUNT: usize = 1_500;

    fn first(moments: &[f64]) -> usize {
        (0..moments.len()).min_by(|&a, &b| moments[a].total_cmp(&moments[b])).unwrap_or(0)
    }

    /// Holds the state before to the trace, and the gain to that of the system with the change.
    fn holds(before: Known, change: &str, after: Known, within: f64) -> ReplayAnswer {
        let traced = before.traced(COUNT);
        let explained = Explained::from(&traced).unwrap();
        let replay = Replay::of(&traced).unwrap();
        let answer = replay.answer(&explained, &[change.parse().unwrap()]).unwrap();
        let is_off = off(&answer.before.measured, &explained.measured);
        assert!(is_off < 0.05, "{before:?}: {answer:?} of {:?}", explained.measured);
        let gain = after.measured().per_s / before.measured().per_s;
        let ratio = answer.gain.value / gain;
        assert!((ratio - 1.0).abs() < within, "{before:?} {change}: {ratio} of {gain}, {answer:?}");
        answer
    }

    #[test]
    fn a_client_that_is_idle_makes_as_few_calls_before_a_change_as_in_its_trace() {
        let slow = Known { think_us: 50_000.0, callers: 2, ..KNOWN };
        assert!(slow.measured().per_s < 60.0);
        holds(slow, "L+1ms", Known { way_us: 3_000.0, ..slow }, 0.02);
        holds(slow, "clients x4", Known { callers: 8, ..slow }, 0.05);
    }

    #[test]
    fn whether_callers_that_pause_have_waited_does_not_show_and_is_in_the_interval() {
        // Forty of them, of whom never more than some have a call outstanding: nearly open.
        let open = Known { think_us: 20_000.0, callers: 40, ..KNOWN };
        let slower = Known { way_us: 3_000.0, ..open };
        let answer = holds(open, "L+1ms", slower, 0.3);
        let gain = slower.measured().per_s / open.measured().per_s;
        assert!(answer.gain.ci95.unwrap().contains(gain), "{gain}: {answer:?}");
        // Who never pauses has waited.
        let busy = Known { callers: 4, op_us: 20.0, ser_us_per_kib: 2.0, ..KNOWN };
        let answer = holds(busy, "L+1ms", Known { way_us: 3_000.0, ..busy }, 0.03);
        assert!(answer.gain.ci95.unwrap().hi < 0.5, "{answer:?}");
    }

    #[test]
    fn callers_that_never_think_have_the_calls_of_their_trace_and_gain_by_a_shorter_time() {
        for callers in [1, 4, 16] {
            let busy = Known { callers, op_us: 20.0, ser_us_per_kib: 2.0, ..KNOWN };
            holds(busy, "L+1ms", Known { way_us: 3_000.0, ..busy }, 0.03);
        }
    }

    #[test]
    fn a_link_that_is_full_gives_no_more_to_more_clients() {
        // 50 Mbit/s.
        let full = Known { callers: 8, ser_us_per_kib: 160.0, ..KNOWN };
        let answer = holds(full, "clients x4", Known { callers: 32, ..full }, 0.05);
        assert!(answer.before.utilization > 0.95 && answer.gain.value < 1.1, "{answer:?}");
        let half = Known { callers: 2, think_us: 5_000.0, ..full };
        holds(half, "clients x4", Known { callers: 8, ..half }, 0.1);
    }

    #[test]
    fn what_no_server_explains_stays_and_is_seen_without_it() {
        let pauses = Known { callers: 2, think_us: 10_000.0, pause_us: 12_000.0, ..KNOWN };
        let answer = holds(pauses, "L+1ms", Known { way_us: 3_000.0, ..pauses }, 0.03);
        assert!(off(&answer.alone, &pauses.measured()) > TOLERATED, "{answer:?}");
        let none = Known { pause_us: 0.0, ..pauses };
        let answer = holds(none, "L+1ms", Known { way_us: 3_000.0, ..none }, 0.03);
        assert!(off(&answer.alone, &none.measured()) < 0.05, "{answer:?}");
    }

    #[test]
    fn more_callers_than_can_be_replayed_make_the_first_of_their_calls() {
        let traced = Known { callers: 4, ..KNOWN }.traced(COUNT);
        let replay = Replay::of(&traced).unwrap();
        for (times, callers) in [(0.5, 2), (1.0, 4), (3.0, 12), (1_000.0, 4_000)] {
            let lists = replay.lists(times);
            let calls: usize = lists.iter().map(Vec::len).sum();
            assert_eq!(lists.len(), callers);
            assert!(calls <= CALLS_MAX + callers && lists.iter().all(|list| !list.is_empty()));
        }
        assert!(replay.lists(1.0).iter().map(Vec::len).sum::<usize>() == COUNT);
    }
}
