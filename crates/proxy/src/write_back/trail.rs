//! Whether a file at the origin is changed by us alone while many changes of ours are under way.
//! Pure: its input are the states around each of them, as the origin's replies tell them.
//!
//! What a change of ours has found, another has left. So a state that was found and that nobody of
//! us has left is somebody else's doing, once all replies are there: they come in any order. An
//! origin that does not take its two looks and the change as one may tell a later state after a
//! change than the one that it has left, and which another has found then: as many as there are
//! changes more than states that they have left, are excused.

use std::collections::{BTreeMap, VecDeque};

use server::types::{Before, Time, Wcc};

/// What is compared of a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct State {
    size: u64,
    modified: Time,
}

impl From<&Before> for State {
    fn from(of: &Before) -> Self {
        Self { size: of.size, modified: of.modified }
    }
}

/// So many states stay known before the newest one at the time when a change was sent: those that
/// others have left that were under way then.
const RETAINED_MIN: u64 = 1024;

/// As many are retained; with more, it is not judged whose doing a state is until all have come.
const RETAINED_MAX: usize = 1 << 16;

/// See the module's head; of one file, as long as changes of it are on their way. Its memory is
/// bounded by [`RETAINED_MAX`].
#[derive(Clone, Debug, Default)]
pub(crate) struct Trail {
    /// Changes under way, and how many states had been left when each was sent.
    under_way: BTreeMap<u64, u64>,
    sent: u64,
    /// States that we have left, the newest last, and how many were before those.
    left: VecDeque<State>,
    left_before: u64,
    /// Those that we have found, and that are not known.
    found: Vec<State>,
    /// How often a state was left more than once.
    excuses: usize,
    /// What a change under way has found is not known, or what one has left.
    is_unknown: bool,
    /// What those find that are sent next is not known.
    is_lost: bool,
    is_torn: bool,
}

impl Trail {
    /// A change is sent; this was the file's state last, if that is known. Its number.
    pub(crate) fn sent(&mut self, last: Option<&Before>) -> u64 {
        if self.left.is_empty() {
            self.left.extend(last.map(State::from));
            self.is_lost |= last.is_none();
        }
        if self.under_way.is_empty() {
            (self.found, self.excuses) = Default::default();
            self.is_unknown = std::mem::take(&mut self.is_lost);
        }
        self.sent += 1;
        self.under_way.insert(self.sent, self.left_before + self.left.len() as u64);
        self.sent
    }

    /// The origin has answered this one. Without the state after it, it may have left any.
    pub(crate) fn answered(&mut self, number: u64, wcc: &Wcc) {
        if self.under_way.remove(&number).is_none() {
            return;
        }
        let after = wcc.after.as_ref().map(|attr| State::from(&Before::from(attr)));
        match (wcc.before.as_ref().map(State::from), after) {
            (Some(before), Some(after)) => self.note(before, after),
            (None, Some(after)) => {
                self.is_unknown = true;
                self.leave(after);
            }
            (_, None) => (self.is_unknown, self.is_lost) = (true, true),
        }
        self.is_unknown |= self.left.len() > RETAINED_MAX;
        self.ended();
    }

    /// The origin has done nothing with this one.
    pub(crate) fn refused(&mut self, number: u64) {
        if self.under_way.remove(&number).is_some() {
            self.ended();
        }
    }

    fn ended(&mut self) {
        let oldest = self.under_way.values().next().copied();
        let oldest = oldest.unwrap_or(self.left_before + self.left.len() as u64);
        while self.left_before + RETAINED_MIN < oldest {
            self.left.pop_front();
            self.left_before += 1;
        }
        self.is_torn |= self.under_way.is_empty() && self.is_otherwise();
    }

    fn note(&mut self, before: State, after: State) {
        match before != after {
            true if self.left.contains(&after) => self.excuses += 1,
            true => self.leave(after),
            false => {}
        }
        if !self.left.contains(&before) && !self.found.contains(&before) {
            self.found.push(before);
        }
    }

    fn leave(&mut self, after: State) {
        self.left.push_back(after);
        self.found.retain(|found| *found != after);
    }

    /// The file was looked at, and is so by our doing.
    pub(crate) fn take_for_ours(&mut self, state: &Before) {
        self.is_torn = false;
        self.left.push_back(State::from(state));
    }

    /// Whether somebody else may have changed the file: replies that are still to come tell.
    pub(crate) fn is_doubtful(&self) -> bool {
        self.is_under_way() && self.is_otherwise()
    }

    fn is_otherwise(&self) -> bool {
        !self.is_unknown && self.found.len() > self.excuses
    }

    /// Whether somebody else has changed it for certain.
    pub(crate) fn is_torn(&self) -> bool {
        self.is_torn
    }

    /// Somebody else has changed it.
    pub(crate) fn tear(&mut self) {
        self.is_torn = true;
    }

    /// Whether the last replies show whose doing the file's state is.
    pub(crate) fn is_decided(&self) -> bool {
        !self.is_unknown && !self.is_otherwise()
    }

    /// Whether a change was ever sent.
    pub(crate) fn has_sent(&self) -> bool {
        self.sent > 0
    }

    pub(crate) fn is_under_way(&self) -> bool {
        !self.under_way.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_back::nodes::tests::attr;

    fn wcc(before: i64, after: i64) -> Wcc {
        Wcc { before: Some(Before::from(&attr(before))), after: Some(attr(after)) }
    }

    /// A file of state 1, of which these are replies to changes that are sent together.
    fn trail(replies: &[Wcc]) -> Trail {
        let mut trail = Trail::default();
        let base = Before::from(&attr(1));
        let sent: Vec<_> = replies.iter().map(|_| trail.sent(Some(&base))).collect();
        for (number, wcc) in sent.into_iter().zip(replies) {
            trail.answered(number, wcc);
        }
        assert!(!trail.is_under_way() && !trail.is_doubtful());
        trail
    }

    #[test]
    fn replies_that_overtake_one_another_are_of_one_trail_and_what_nobody_left_tears_it() {
        let mut ours = [wcc(1, 2), wcc(2, 3), wcc(3, 3), wcc(3, 4)];
        for _ in 0..ours.len() {
            ours.rotate_left(1);
            assert!(trail(&ours).is_decided() && !trail(&ours).is_torn());
            let mut reversed = ours;
            reversed.reverse();
            assert!(!trail(&reversed).is_torn());
        }
        assert!(trail(&[wcc(1, 2), wcc(9, 10), wcc(2, 3)]).is_torn());
        assert!(trail(&[wcc(9, 10)]).is_torn());
        assert!(trail(&[wcc(1, 2), wcc(9, 9)]).is_torn(), "it has changed nothing itself");
    }

    #[test]
    fn as_long_as_a_reply_is_to_come_that_may_tell_it_is_not_torn() {
        let mut trail = Trail::default();
        let base = Before::from(&attr(1));
        let [first, second] = [(); 2].map(|()| trail.sent(Some(&base)));
        trail.answered(second, &wcc(2, 3));
        assert!(trail.is_doubtful() && !trail.is_torn() && !trail.is_decided());
        trail.answered(first, &wcc(1, 2));
        assert!(!trail.is_doubtful() && !trail.is_torn() && trail.is_decided());
    }

    /// The first change left 2, which the second found, before the first was looked at again.
    #[test]
    fn a_state_that_was_overtaken_before_it_was_looked_at_is_excused() {
        assert!(!trail(&[wcc(1, 3), wcc(2, 3)]).is_torn());
        assert!(!trail(&[wcc(2, 3), wcc(1, 3)]).is_torn());
        assert!(trail(&[wcc(1, 3), wcc(2, 3), wcc(9, 10)]).is_torn(), "one, not two");
    }

    #[test]
    fn where_replies_do_not_tell_it_is_not_judged_until_the_next_that_do() {
        let unknown = Wcc { before: None, ..wcc(0, 2) };
        let mut trail = trail(&[unknown, wcc(9, 3)]);
        assert!(!trail.is_torn() && !trail.is_decided());
        let mut reply = |wcc: Wcc| {
            let number = trail.sent(None);
            trail.answered(number, &wcc);
            (trail.is_decided(), trail.is_torn())
        };
        assert_eq!(reply(wcc(3, 4)), (true, false));
        // What this one did nobody knows, and the next finds it.
        assert_eq!(reply(Wcc::default()), (false, false));
        assert_eq!(reply(wcc(7, 8)), (false, false));
        assert_eq!(reply(wcc(8, 9)), (true, false));
        assert_eq!(reply(wcc(50, 51)), (false, true));
    }

    #[test]
    fn states_are_retained_as_long_as_a_change_under_way_may_have_found_them() {
        let mut trail = Trail::default();
        let base = Before::from(&attr(1));
        let slow = trail.sent(Some(&base));
        for second in 1..5000 {
            let number = trail.sent(Some(&base));
            let from = if second == 1 { 1 } else { second + 1 };
            trail.answered(number, &wcc(from, second + 2));
        }
        assert!(trail.left.len() > 4000 && trail.is_decided());
        trail.answered(slow, &wcc(2500, 2501));
        assert!(trail.left.len() <= 1024 && trail.is_decided());
    }
}
