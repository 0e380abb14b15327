//! A server that makes stable together what has gathered: callers in a closed loop, one processor,
//! and one sync at a time.
//!
//! ```text
//!   way --> processor --> waits for the sync under way --> sync --> processor --> way
//!   Z       (1 - a) S     all who wait share the next      F0 + b f   a S + C / b
//! ```
//!
//! A sync covers who came before it began, so with a short way there are two groups that take
//! turns: N callers complete N calls in two syncs, and one alone one in a sync and its way. As the
//! groups grow, the processor needs as long for one of them as a sync takes; then the two wait for
//! each other in turn, which no formula of ours describes. So the loop is run, call by call.
//!
//! Assumptions: regular times; the processor takes work in the order in which it comes; every
//! caller's way is the same. A sync may have a limit of what it covers, and two may be under way at
//! a time, which are answered in the order of their beginning: [`Syncs`], as a write log has them.

use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// The times of the loop, us.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gathered {
    /// Z: what neither processor nor sync is needed for.
    pub way_us: f64,
    /// S: the processor's for a call.
    pub stage_us: f64,
    /// a: the part of S that comes after the sync.
    pub after: f64,
    /// F0: a sync's own.
    pub sync_us: f64,
    /// f: a sync's for each call in it.
    pub call_us: f64,
    /// C: the processor's for a sync.
    pub wake_us: f64,
}

/// How syncs are made.
pub trait Syncs {
    /// Most that are under way at the same time, at least 1.
    fn at_a_time(&self) -> u32 {
        1
    }

    /// Most calls in one, at least 1.
    fn together_max(&self) -> u32 {
        u32::MAX
    }

    /// What one for so many calls takes that begins while so many others are under way, us.
    fn sync_us(&self, calls: u32, others: u32) -> f64;
}

/// One at a time, for all who wait.
impl Syncs for Gathered {
    fn sync_us(&self, calls: u32, _others: u32) -> f64 {
        self.sync_us + f64::from(calls) * self.call_us
    }
}

/// What the loop does once it has settled.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turns {
    /// Calls a second.
    pub per_s: f64,
    /// Calls in a sync.
    pub together: f64,
}

/// Calls of each caller that count, after as many that do not.
const ROUNDS: u32 = 64;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum What {
    /// A call comes to the server.
    Arrives,
    /// The processor has done what comes before the sync.
    Ready,
    /// Of so many calls.
    Synced(u32),
}

/// Something that happens: the earliest first, and of those at one time, the one that was known
/// first.
#[derive(Clone, Copy, Debug)]
struct Event {
    at_us: f64,
    number: u64,
    what: What,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    fn cmp(&self, other: &Self) -> Ordering {
        other.at_us.total_cmp(&self.at_us).then(other.number.cmp(&self.number))
    }
}

#[derive(Debug, Default)]
struct Loop {
    events: BinaryHeap<Event>,
    number: u64,
    /// Until when the processor has work.
    busy_until_us: f64,
    waiting: u32,
    /// Syncs that run.
    syncing: u32,
    /// When the newest of them is answered.
    answered_us: f64,
}

impl Loop {
    fn at(&mut self, at_us: f64, what: What) {
        self.number += 1;
        self.events.push(Event { at_us, number: self.number, what });
    }

    /// What takes nothing does not wait for its turn.
    fn work(&mut self, now_us: f64, span_us: f64) -> f64 {
        if span_us <= 0.0 {
            return now_us;
        }
        self.busy_until_us = self.busy_until_us.max(now_us) + span_us;
        self.busy_until_us
    }

    /// Begins what may begin.
    fn sync(&mut self, now_us: f64, syncs: &impl Syncs) {
        while self.waiting > 0 && self.syncing < syncs.at_a_time().max(1) {
            let calls = self.waiting.min(syncs.together_max().max(1));
            let done_us = now_us + syncs.sync_us(calls, self.syncing);
            self.waiting -= calls;
            self.syncing += 1;
            self.answered_us = self.answered_us.max(done_us);
            self.at(self.answered_us, What::Synced(calls));
        }
    }
}

impl Gathered {
    /// The response time of a caller who is alone.
    pub fn cycle_us(&self) -> f64 {
        self.way_us + self.stage_us + self.wake_us + self.sync_us + self.call_us
    }

    /// With so many callers; 0 are taken as 1.
    pub fn turns(&self, callers: u32) -> Turns {
        self.turns_of(callers, self)
    }

    /// The same with other syncs than its own.
    pub fn turns_of(&self, callers: u32, syncs: &impl Syncs) -> Turns {
        let callers = callers.max(1);
        if callers == 1 {
            let alone_us = self.way_us + self.stage_us + self.wake_us + syncs.sync_us(1, 0);
            return Turns { per_s: 1e6 / alone_us, together: 1.0 };
        }
        let mut state = Loop::default();
        for caller in 0..callers {
            // Not all at one moment, which only an executor's order would take apart.
            let spread = f64::from(caller) / f64::from(callers);
            state.at(spread * self.cycle_us(), What::Arrives);
        }
        let round = u64::from(ROUNDS) * u64::from(callers);
        let (mut ended, mut calls) = (0_u64, 0_u64);
        let mut begun = None;
        while let Some(Event { at_us: now, what, .. }) = state.events.pop() {
            match what {
                What::Arrives => {
                    let done = state.work(now, self.stage_us * (1.0 - self.after));
                    state.at(done, What::Ready);
                }
                What::Ready => {
                    state.waiting += 1;
                    state.sync(now, syncs);
                }
                What::Synced(together) => {
                    state.syncing -= 1;
                    state.work(now, self.wake_us);
                    for _ in 0..together {
                        let done = state.work(now, self.stage_us * self.after);
                        state.at(done + self.way_us, What::Arrives);
                    }
                    (ended, calls) = (ended + 1, calls + u64::from(together));
                    state.sync(now, syncs);
                    match begun {
                        None if calls >= round => begun = Some((now, ended, calls)),
                        Some((from, before, already)) if calls >= already + round => {
                            let calls = (calls - already) as f64;
                            let per_s = calls / (now - from) * 1e6;
                            return Turns { per_s, together: calls / (ended - before) as f64 };
                        }
                        _ => {}
                    }
                }
            }
        }
        Turns { per_s: f64::NAN, together: f64::NAN }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEAR: Gathered = Gathered {
        way_us: 300.0,
        stage_us: 200.0,
        after: 0.5,
        sync_us: 2_000.0,
        call_us: 0.0,
        wake_us: 0.0,
    };

    #[track_caller]
    fn assert_near(got: f64, want: f64, relative: f64) {
        assert!((got / want - 1.0).abs() <= relative, "{got} is not {want}");
    }

    #[test]
    fn on_a_short_way_two_groups_take_turns() {
        assert_near(NEAR.turns(1).per_s, 1e6 / 2_500.0, 1e-12);
        for callers in [2, 3, 4, 6, 8] {
            let turns = NEAR.turns(callers);
            assert_near(turns.per_s, f64::from(callers) * 1e6 / 4_000.0, 0.01);
            assert_near(turns.together, f64::from(callers) / 2.0, 0.01);
        }
        let longer = Gathered { call_us: 100.0, ..NEAR };
        assert_near(longer.turns(8).per_s, 8e6 / (2.0 * 2_400.0), 0.01);
    }

    #[test]
    fn the_processor_is_what_is_left_of_many() {
        let wakes = Gathered { wake_us: 50.0, ..NEAR };
        let turns = wakes.turns(64);
        assert_near(1e6 / turns.per_s, 200.0 + 50.0 / turns.together, 0.01);
        assert!(turns.together > 8.0);
        // Where it just begins to be full, it waits for the sync in turn, and the sync for it.
        let knee = NEAR.turns(20).per_s;
        assert!(knee < 0.97e6 / 200.0, "{knee}");
    }

    #[test]
    fn on_a_long_way_everyone_waits_for_half_a_sync_or_less() {
        let far = Gathered { way_us: 40_000.0, ..NEAR };
        for callers in [2, 3, 8] {
            let per_s = far.turns(callers).per_s;
            let most = f64::from(callers) * 1e6 / far.cycle_us();
            assert!((0.94 * most..=1.001 * most).contains(&per_s), "{callers}: {per_s} {most}");
        }
    }
}
