//! Whose doing a file's state is that a proxy before this one may have left. Pure.
//!
//! Of WRITEs that were under way when a proxy was killed the origin has executed any, and what is
//! there of them proves no more than that. One that is missing was not executed, or somebody else
//! has written over it since: bytes do not tell. Time does. While calls are under way, the log has
//! a note until when the origin may execute them, by its own clock ([`Signs`]); the next one comes
//! before that is over. So what was changed (ctime, which nobody sets back) after the last note of
//! one life, and before the next began, was changed by somebody else ([`Lives`]). It may be ours
//! only if all that is to be done is there: doing it again takes nothing from anybody.

use std::collections::BTreeMap;

use perf::units::{Instant, Nanos};
use server::types::{Before, Time};

use super::record::Outcome;

/// How long a note is good at least, and a change of somebody else after a kill may be taken for
/// ours. Notes come twice as often at most. A guess: several network round trips.
const NOTED_FOR: Nanos = Nanos::from_millis(200);

/// A note is good for this part of the time besides that the oldest call has taken, so that an
/// origin that is away for an hour has some 80, and for a month 140.
const LONGER: u64 = 8;

/// What a file shows of a change in doubt.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Shows {
    /// It has the modification time that we have set: nobody has written since.
    Last,
    There,
    /// It ends with the beginning of it, as a full disk leaves it.
    Begun,
    Missing,
}

/// Whether a file is so by our doing. `is_in_time`: it was changed while who sent these changes
/// lived.
pub(crate) fn is_ours(shows: &[Shows], is_in_time: bool) -> bool {
    let has = |what: Shows| shows.contains(&what);
    let is_partly = has(Shows::There) || has(Shows::Begun);
    let is_done = !has(Shows::Missing) && !has(Shows::Begun);
    has(Shows::Last) || (is_partly && (is_done || is_in_time))
}

/// The lives that a log has notes of, the oldest first: when each began to change files, and until
/// when it may have done so. No more than the log has frames.
#[derive(Clone, Debug, Default)]
pub(crate) struct Lives(Vec<(Time, Time)>);

impl Lives {
    pub(crate) fn note(&mut self, outcome: &Outcome) {
        let Some(Before { modified: began, changed: until, .. }) = outcome.after else { return };
        match self.0.last_mut() {
            Some((known, last)) if *known == began => *last = until,
            _ => self.0.push((began, until)),
        }
    }

    /// Whether a file was changed after one of them, and before the next.
    pub(crate) fn is_between(&self, changed: Time) -> bool {
        let next = self.0.iter().skip(1).map(|(began, _)| Some(*began)).chain([None]);
        self.0
            .iter()
            .zip(next)
            .any(|((_, until), next)| changed > *until && next.is_none_or(|began| changed < began))
    }
}

/// What this life notes of itself.
#[derive(Debug, Default)]
pub(crate) struct Signs {
    /// What the origin's clock showed at this moment.
    clock: (Instant, Time),
    began: Time,
    /// The last note is good until then.
    until: Option<Instant>,
    /// Changes that are calls now, and since when. As many as may be under way.
    calls: BTreeMap<u64, Instant>,
    /// The longest that the origin may take for a call of a proxy that is gone.
    late_max: Nanos,
}

impl Signs {
    pub(crate) fn new(clock: (Instant, Time), late_max: Nanos) -> Self {
        Self { clock, late_max, ..Self::default() }
    }

    /// It begins to send.
    pub(crate) fn begin(&mut self, now: Instant) {
        // The clock may be as much ahead as the call took that has shown it.
        self.began = self.there(now - NOTED_FOR);
    }

    /// What the origin's clock shows now.
    pub(crate) fn set_clock(&mut self, now: Instant, there: Time) {
        self.clock = (now, there);
    }

    pub(crate) fn sent(&mut self, number: u64, now: Instant) {
        self.calls.insert(number, now);
    }

    pub(crate) fn answered(&mut self, number: u64) {
        self.calls.remove(&number);
    }

    /// How long no other note is needed; none: nothing is under way. The last one has to be good
    /// for as long again as the oldest call has taken: an origin that is slow is so with all.
    pub(crate) fn wait(&self, now: Instant) -> Option<Nanos> {
        let age = self.age(now)?;
        let Some(until) = self.until else { return Some(Nanos::ZERO) };
        let left = |takes: Nanos| until.since(now + NOTED_FOR / 2 + takes);
        // Meanwhile it grows older.
        Some((left(age) / 2).max(left(self.late_max)))
    }

    pub(crate) fn has_begun(&self) -> bool {
        self.until.is_some()
    }

    /// The note, which is stable soon.
    pub(crate) fn note(&mut self, now: Instant) -> Outcome {
        let age = self.age(now).unwrap_or_default();
        let until = now + NOTED_FOR + age.min(self.late_max) * 2 + age / LONGER;
        self.until = Some(until);
        let after = Before { size: 0, modified: self.began, changed: self.there(until) };
        Outcome { file: None, after: Some(after) }
    }

    /// Since when the oldest call is under way.
    fn age(&self, now: Instant) -> Option<Nanos> {
        self.calls.values().min().map(|sent| now.since(*sent))
    }

    fn there(&self, at: Instant) -> Time {
        let (seen_at, there) = self.clock;
        let passed = i128::from(at.as_nanos()) - i128::from(seen_at.as_nanos());
        time(nanos(there) + passed)
    }
}

const SECOND: i128 = 1_000_000_000;

fn nanos(time: Time) -> i128 {
    i128::from(time.secs) * SECOND + i128::from(time.nanos)
}

fn time(nanos: i128) -> Time {
    let secs = i64::try_from(nanos.div_euclid(SECOND)).unwrap_or(i64::MAX);
    let nanos = u32::try_from(nanos.rem_euclid(SECOND)).expect("it is less than a second");
    Time { secs, nanos }
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time { secs: 1 << 31, nanos: 999_999_999 };
    const LATE: Nanos = Nanos::from_secs(2);

    fn at(millis: u64) -> Instant {
        Instant::EPOCH + Nanos::from_millis(millis)
    }

    fn until(outcome: &Outcome) -> Nanos {
        let passed = nanos(outcome.after.unwrap().changed) - nanos(START);
        Nanos::from_nanos(u64::try_from(passed).unwrap())
    }

    #[test]
    fn a_part_of_what_is_to_be_done_proves_nothing_of_what_was_changed_later() {
        use Shows::{Begun, Last, Missing, There};
        let judged = |shows: &[Shows]| [true, false].map(|is_in_time| is_ours(shows, is_in_time));
        assert_eq!(judged(&[There, Missing]), [true, false]);
        assert_eq!(judged(&[There, There]), [true, true], "doing it again changes nothing");
        assert_eq!(judged(&[Missing]), [false, false]);
        assert_eq!(judged(&[]), [false, false]);
        assert_eq!(judged(&[Begun, Missing]), [true, false]);
        assert_eq!(judged(&[There, Begun]), [true, false]);
        assert_eq!(judged(&[Last, Missing]), [true, true]);
    }

    #[test]
    fn what_was_changed_after_a_life_and_before_the_next_was_changed_by_nobody_of_them() {
        let mut lives = Lives::default();
        let sec = |secs| Time { secs, nanos: 0 };
        assert!(!lives.is_between(sec(5)), "a log of a version that noted nothing");
        for (began, until) in [(10, 11), (10, 20), (30, 31)] {
            let after = Before { size: 0, modified: sec(began), changed: sec(until) };
            lives.note(&Outcome { file: None, after: Some(after) });
        }
        let between: Vec<_> = (0..40).filter(|secs| lives.is_between(sec(*secs))).collect();
        assert_eq!(between, (21..30).chain(32..40).collect::<Vec<_>>());
    }

    /// Whenever it is killed, the origin may take as long again for what is under way.
    #[test]
    fn a_note_is_good_for_what_calls_take_and_there_are_few_of_them() {
        let mut signs = Signs::new((at(0), START), LATE);
        let (mut now, mut last, mut notes) = (at(0), Nanos::ZERO, 0);
        signs.sent(1, now);
        while now < at(3600 * 1000) {
            match signs.wait(now).unwrap() {
                Nanos::ZERO => (last, notes) = (until(&signs.note(now)), notes + 1),
                wait => now += wait,
            }
            let age = now.since(at(0));
            assert!(last >= age + NOTED_FOR / 2 + age.min(LATE), "{now:?}: {last:?}");
            assert!(last <= age + NOTED_FOR + LATE * 2 + age / LONGER, "{now:?}: {last:?}");
        }
        assert!(notes < 100, "{notes}");
        signs.answered(1);
        assert_eq!(signs.wait(now), None);
    }

    #[test]
    fn a_note_is_by_the_origins_clock() {
        let mut signs = Signs::new((at(0), START), LATE);
        assert_eq!(until(&signs.note(at(1000))), Nanos::from_millis(1200));
        signs.set_clock(at(1000), Time { secs: START.secs + 60, ..START });
        assert_eq!(until(&signs.note(at(1000))), Nanos::from_millis(60_200));
        signs.sent(1, at(1000));
        assert_eq!(signs.wait(at(1000)), Some(Nanos::from_millis(50)));
        assert_eq!(signs.wait(at(1050)), Some(Nanos::ZERO));
    }
}
