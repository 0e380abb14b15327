//! What the log is to note: which changes have come to the origin.
//!
//! **A note waits for company.** No client waits for it, and a frame of its own would hold up the
//! client who comes next. So it goes into the next frame that a client's change needs; by itself
//! after [`Options::note_within`](crate::write_back::Options), or when there are [`NOTES_MAX`],
//! the log is half full, or somebody waits for it.
//!
//! So does a change that sets what the log has already, since its client was answered.
//!
//! **What follows a change waits for its note.** A note that is lost in a crash means that its
//! change is looked at again at the origin, as one that may have been carried out. That is right as
//! long as nothing has been done on top of it: a SETATTR that is done again would undo the next
//! one, and a CREATE would find the file that a later one has made. So of changes that follow one
//! another at most one is at the origin without its note, and calls that are passed to the origin
//! wait, too.

use log::BLOCK_BYTES;
use perf::units::{Instant, Nanos};

use super::State;
use crate::write_back::record::Outcome;
use crate::write_back::touches::{OF_LIFE, key};

/// As many notes as share a frame with nobody: some 40 KiB.
const NOTES_MAX: usize = 256;

/// Who hears that a record is stable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Waiter {
    /// The client of this change.
    Taken(u64),
    /// What follows this change.
    Noted(u64),
    /// Nobody: it stands in the log already.
    Carried,
}

/// What the log is to hear. Each is of a record that is needed still, and so within its bounds.
#[derive(Debug, Default)]
pub(crate) struct Notes {
    /// What was made, until its name is known for good.
    pub(crate) made: Vec<(u64, Outcome)>,
    /// What may go into a frame.
    waiting: Vec<(u64, Outcome)>,
    /// Since when the oldest of these waits, or of the changes that were answered at once.
    since: Option<Instant>,
    /// Somebody waits for them.
    pub(crate) is_hurried: bool,
    /// All that the journal's queue has was answered at once.
    is_answered: bool,
}

impl Notes {
    /// A change comes into the journal's queue, behind others or as the first.
    pub(crate) fn submitted(&mut self, is_answered: bool, is_behind: bool, now: Instant) {
        self.is_answered = is_answered && (self.is_answered || !is_behind);
        if is_answered {
            self.since.get_or_insert(now);
        }
    }
}

impl State {
    /// The log is to note what a change did, and need not keep it any more.
    pub(crate) fn forget(&mut self, number: u64, outcome: Outcome, now: Instant) {
        match self.journal.is_failed() {
            true => self.order.done(number),
            false => {
                self.notes.waiting.push((number, outcome));
                self.notes.since.get_or_insert(now);
            }
        }
    }

    /// How long notes and what was answered wait for company still; none: there is nothing of the
    /// kind, or it goes into the next frame, which is due.
    pub(crate) fn notes_wait(&mut self, within: Nanos, now: Instant) -> Option<Nanos> {
        let waited = now.since(self.notes.since?);
        let is_due = waited >= within
            || self.notes.is_hurried
            || self.notes.waiting.len() >= NOTES_MAX
            || (self.journal.is_waiting() && !self.notes.is_answered)
            || self.journal.is_filling();
        match is_due {
            true => {
                self.write_notes();
                None
            }
            false => Some(within - waited),
        }
    }

    /// How long the log need not note until when calls may be executed (see `killed`); none:
    /// nothing is under way, or there is no room for a frame that has nothing else.
    pub(crate) fn sign_wait(&self, now: Instant) -> Option<Nanos> {
        self.signs.wait(now).filter(|_| self.journal.admits_again(BLOCK_BYTES))
    }

    /// The next frame has that note, if calls are under way or may follow: frames before it may
    /// not be needed any more. With other notes it takes no block more; with a change it may.
    pub(crate) fn sign(&mut self, now: Instant, is_due: bool) {
        let is_next = self.journal.is_waiting() || !self.signs.has_begun();
        if is_due || (is_next && !self.ops.is_empty()) {
            let note = self.signs.note(now).encode();
            self.journal.done(key(OF_LIFE), OF_LIFE, note, Waiter::Carried);
        }
    }

    /// Replies come in any order, and the last note of a file is believed: so each has the file as
    /// it is known by now.
    fn write_notes(&mut self) {
        (self.notes.since, self.notes.is_hurried) = (None, false);
        for (number, mut outcome) in std::mem::take(&mut self.notes.waiting) {
            if let Some((file, _)) = outcome.file.zip(outcome.after) {
                outcome.after = self.nodes.find(&file).and_then(|node| node.base);
            }
            let key = key(number);
            let through = self.journal.mark(&key).unwrap_or(number);
            self.journal.done(key, through, outcome.encode(), Waiter::Noted(number));
        }
    }

    /// A frame is stable with these, or never will be: then nobody notes anything any more.
    pub(crate) fn logged(&mut self, waiters: Vec<Waiter>, is_stable: bool) {
        for waiter in waiters {
            match waiter {
                Waiter::Taken(number) => self.taken(number, is_stable),
                Waiter::Noted(number) => self.order.done(number),
                Waiter::Carried => {}
            }
        }
        if !is_stable {
            let waiting = std::mem::take(&mut self.notes.waiting);
            waiting.into_iter().for_each(|(number, _)| self.order.done(number));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use log::frame::{self, Frame};
    use log::journal::Begin;
    use log::{Journal, Limits, Set};
    use server::types::{Before, Handle, Time};

    use super::*;
    use crate::write_back::nodes::Node;
    use crate::write_back::nodes::tests::attr;

    const ID: [u8; 16] = [7; 16];
    const WITHIN: Nanos = Nanos::from_millis(10);

    fn state() -> State {
        let set = Set { id: ID, bytes: vec![16 << 20] };
        let journal = Journal::new(&set, [0; 16], None, Limits::default());
        let mut state = State::new(journal, ID, 9, Duration::ZERO);
        noted(&mut state);
        for number in [8, 9] {
            state.journal.hold(key(number), number, 1);
        }
        state
    }

    /// What the journal's next frame notes of changes that are done; none: there is no frame.
    fn noted(state: &mut State) -> Option<Vec<Outcome>> {
        let mut bytes = Vec::new();
        let Begin::Write { at, frame } = state.journal.begin(0, &mut bytes) else { return None };
        let outcomes =
            Frame::decode(&bytes, &ID, 0, at).unwrap().records().filter_map(|record| match record
                .unwrap()
                .op
            {
                frame::Op::Done { data, .. } => Some(Outcome::decode(data).unwrap()),
                _ => None,
            });
        let outcomes = outcomes.collect();
        state.journal.finish(frame, true);
        Some(outcomes)
    }

    #[test]
    fn the_log_notes_the_newest_state_of_a_file_whichever_reply_comes_last() {
        let (mut state, now) = (state(), Instant::EPOCH);
        let file = Handle::new(&[1]).unwrap();
        let left = |size| {
            let changed = Time { secs: size, nanos: 0 };
            Before { size: size.unsigned_abs(), modified: changed, changed }
        };
        let mut node = Node::new(attr(0), Instant::EPOCH);
        node.base = Some(left(20));
        state.nodes.insert(file, node);
        state.forget(9, Outcome { file: Some(file), after: Some(left(20)) }, now);
        state.forget(8, Outcome { file: Some(file), after: Some(left(10)) }, now);
        assert_eq!(state.notes_wait(WITHIN, now + WITHIN), None);
        let newest = Outcome { file: Some(file), after: Some(left(20)) };
        assert_eq!(noted(&mut state), Some(vec![newest, newest]));
    }

    #[test]
    fn a_note_goes_with_a_clients_change_or_by_itself_after_a_while_or_when_somebody_waits() {
        let (mut state, now) = (state(), Instant::EPOCH);
        assert_eq!(state.notes_wait(WITHIN, now), None, "there is none");
        state.forget(8, Outcome::default(), now);
        let later = now + Nanos::from_millis(4);
        assert_eq!(state.notes_wait(WITHIN, later), Some(Nanos::from_millis(6)));
        assert_eq!(noted(&mut state), None, "it has no frame of its own");
        state.journal.submit_change(key(10), bytes::Bytes::new(), Waiter::Taken(10));
        assert_eq!(state.notes_wait(WITHIN, later), None);
        assert_eq!(noted(&mut state), Some(vec![Outcome::default()]), "the client's has room");
        state.forget(9, Outcome::default(), later);
        assert_eq!(state.notes_wait(WITHIN, later), Some(WITHIN));
        state.notes.is_hurried = true;
        assert_eq!(state.notes_wait(WITHIN, later), None);
        assert_eq!(noted(&mut state), Some(vec![Outcome::default()]));
        assert!(!state.notes.is_hurried, "for the next one nobody waits");
    }

    #[test]
    fn what_was_answered_at_once_goes_with_the_next_that_somebody_waits_for() {
        let (mut state, now) = (state(), Instant::EPOCH);
        let submit = |state: &mut State, number, is_answered| {
            state.notes.submitted(is_answered, state.journal.is_waiting(), now);
            let waiter = Waiter::Taken(number);
            state.journal.submit_change(key(number), bytes::Bytes::new(), waiter);
            state.notes_wait(WITHIN, now + Nanos::from_millis(4))
        };
        assert_eq!(submit(&mut state, 10, true), Some(Nanos::from_millis(6)));
        assert_eq!(submit(&mut state, 11, true), Some(Nanos::from_millis(6)));
        assert_eq!(submit(&mut state, 12, false), None);
        assert_eq!(submit(&mut state, 13, true), None, "12 is waited for still");
        assert_eq!(noted(&mut state), Some(vec![]));
        assert!(!state.journal.is_waiting(), "all are in it");
        assert_eq!(submit(&mut state, 14, true), Some(Nanos::from_millis(6)));
        assert_eq!(state.notes_wait(WITHIN, now + WITHIN), None, "nobody came");
    }
}
