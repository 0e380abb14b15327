//! The log is written: changes as clients make them, and notes that a change has come to the
//! origin.
//!
//! **A note waits for company.** No client waits for it, and a frame of its own would hold up the
//! client who comes next. So it goes into the next frame that a client's change needs; by itself
//! after [`Options::note_within`](super::Options), or when there are [`NOTES_MAX`], the log is half
//! full, or somebody waits for it.
//!
//! So does a change that sets what the log has already, since its client was answered.
//!
//! **What follows a change waits for its note.** A note that is lost in a crash means that its
//! change is looked at again at the origin, as one that may have been carried out. That is right as
//! long as nothing has been done on top of it: a SETATTR that is done again would undo the next
//! one, and a CREATE would find the file that a later one has made. So of changes that follow one
//! another at most one is at the origin without its note, and calls that are passed to the origin
//! wait, too.

use std::pin::pin;
use std::sync::Arc;

use log::journal::Begin;
use net::clock::yield_now;
use perf::units::{Instant, Nanos};
use server::store::Store;

use super::Inner;
use super::conflicts::Event;
use super::record::Outcome;
use super::state::State;
use super::touches::key;

/// As many notes as share a frame with nobody: some 40 KiB.
const NOTES_MAX: usize = 256;

/// When rows are synced again that could not be.
const SYNC_AGAIN: Nanos = Nanos::from_secs(1);

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
    is_hurried: bool,
    /// All that the journal's queue has was answered at once.
    is_answered: bool,
}

impl Notes {
    pub(crate) fn is_hurried(&self) -> bool {
        self.is_hurried
    }

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
    fn notes_wait(&mut self, within: Nanos, now: Instant) -> Option<Nanos> {
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
    fn logged(&mut self, waiters: Vec<Waiter>, is_stable: bool) {
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

impl<S: Store> Inner<S> {
    /// Somebody waits for notes.
    pub(super) fn hurry(&self, state: &mut State) {
        state.notes.is_hurried = true;
        self.to_send.notify_one();
        self.to_write.notify_one();
        self.hurried.notify_one();
    }

    /// Writes the log, one frame after the other; who comes meanwhile shares the next.
    pub(super) async fn write_frames(self: Arc<Self>) {
        let mut buffer = Vec::new();
        loop {
            let (begun, wait) = {
                let mut state = self.state.lock();
                state.carry_forward(self.options.again_above);
                let wait = state.notes_wait(self.options.note_within, self.now());
                let begun = match wait {
                    Some(_) if state.journal.is_waiting() => Begin::Idle,
                    _ => state.journal.begin(0, &mut buffer),
                };
                (begun, wait)
            };
            let (waiters, is_stable) = match begun {
                Begin::Idle => {
                    let woken = self.to_write.notified();
                    match wait {
                        Some(wait) => drop(self.clock.within(wait, woken).await),
                        None => woken.await,
                    }
                    // Those who are ready to run come into the same frame.
                    yield_now().await;
                    continue;
                }
                Begin::Write { at, frame } => {
                    let (back, is_stable) =
                        self.device.write(at, std::mem::take(&mut buffer)).await;
                    buffer = back;
                    (self.state.lock().journal.finish(frame, is_stable), is_stable)
                }
                Begin::Stuck => (self.state.lock().journal.fail(), false),
            };
            if !is_stable {
                (self.options.hear)(&Event::LogFailed).ok();
            }
            self.state.lock().logged(waiters, is_stable);
            self.to_send.notify_one();
            self.changed.notify_waiters();
        }
    }

    /// What was made is forgotten by the log when what it is called survives power loss elsewhere:
    /// of all that was made within a while at once, since each sync holds up the log's.
    pub(super) async fn forget(self: Arc<Self>) {
        loop {
            self.to_forget.notified().await;
            let made = std::mem::take(&mut self.state.lock().notes.made);
            if made.is_empty() {
                continue;
            }
            loop {
                let is_stable = match self.aliases.unsynced() {
                    Ok(files) if files.is_empty() => true,
                    Ok(files) => self.device.sync(files).await,
                    Err(_) => false,
                };
                if is_stable {
                    break;
                }
                self.clock.sleep(SYNC_AGAIN).await;
            }
            {
                let (now, mut state) = (self.now(), self.state.lock());
                made.into_iter().for_each(|(number, outcome)| state.forget(number, outcome, now));
            }
            self.to_write.notify_one();
            // What follows may be due, if nothing is noted any more.
            self.to_send.notify_one();
            let hurried = pin!(self.hurried.notified());
            self.clock.within(self.options.note_within, hurried).await.ok();
        }
    }

    /// When the log has noted of all that is at the origin that it is there.
    pub(super) async fn noted_all(&self) {
        let noted = |state: &mut State| match state.order.is_empty() {
            true => Some(()),
            false => {
                self.hurry(state);
                None
            }
        };
        while self.until(noted).await.is_err() {}
    }
}

#[cfg(test)]
mod tests {
    use log::frame::{self, Frame};
    use log::{Journal, Limits, Set};
    use server::types::{Before, Handle, Time};

    use super::*;
    use crate::write_back::nodes::Node;
    use crate::write_back::nodes::tests::attr;

    const ID: [u8; 16] = [7; 16];
    const WITHIN: Nanos = Nanos::from_millis(10);

    fn state() -> State {
        let set = Set { id: ID, bytes: vec![16 << 20] };
        let mut state = State::new(Journal::new(&set, [0; 16], None, Limits::default()), ID, 9);
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
