//! Answers of the kernel about what callers may do with an object, remembered beside it.

use rustix::fs::Access as May;

use super::acting::is_same;
use crate::types::{Caller, Time};

/// Callers remembered of one object; one more takes the place of the oldest.
const ANSWERS_MAX: usize = 4;

/// Answers of the kernel about one object.
#[derive(Debug, Default)]
pub(super) struct Rights {
    answers: Vec<Answer>,
    /// Where the next one goes when there are as many as may be.
    oldest: usize,
}

#[derive(Debug)]
struct Answer {
    caller: Caller,
    changed: Time,
    checked: May,
    granted: May,
}

impl Rights {
    /// `None`: not known for this caller and this state of the object.
    pub(super) fn known(&self, caller: &Caller, changed: Time, wanted: May) -> Option<bool> {
        let answer = self.answers.iter().find(|answer| is_same(&answer.caller, caller))?;
        let fits = answer.changed == changed && answer.checked.contains(wanted);
        fits.then_some(answer.granted.contains(wanted))
    }

    /// The kernel's answer to a question of a single right, or a granted one of several.
    pub(super) fn learn(&mut self, caller: &Caller, changed: Time, wanted: May, granted: bool) {
        let granted = if granted { wanted } else { May::empty() };
        if let Some(answer) = self.answers.iter_mut().find(|answer| is_same(&answer.caller, caller))
        {
            if answer.changed != changed {
                (answer.changed, answer.checked, answer.granted) =
                    (changed, May::empty(), May::empty());
            }
            answer.checked |= wanted;
            answer.granted |= granted;
            return;
        }
        let answer = Answer { caller: caller.clone(), changed, checked: wanted, granted };
        if self.answers.len() < ANSWERS_MAX {
            self.answers.push(answer);
        } else {
            self.answers[self.oldest] = answer;
            self.oldest = (self.oldest + 1) % ANSWERS_MAX;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn caller(uid: u32) -> Caller {
        Caller { uid, gid: 1, gids: vec![2, 3] }
    }

    fn at(secs: i64) -> Time {
        Time { secs, nanos: 0 }
    }

    #[test]
    fn an_answer_holds_for_one_caller_with_all_its_groups_and_one_state() {
        let mut rights = Rights::default();
        rights.learn(&caller(5), at(1), May::READ_OK, true);
        rights.learn(&caller(5), at(1), May::WRITE_OK, false);
        let known = |who: &Caller, when, wanted| rights.known(who, at(when), wanted);
        assert_eq!(known(&caller(5), 1, May::READ_OK), Some(true));
        assert_eq!(known(&caller(5), 1, May::WRITE_OK), Some(false));
        assert_eq!(known(&caller(5), 1, May::READ_OK | May::WRITE_OK), Some(false));
        assert_eq!(known(&caller(5), 1, May::EXEC_OK), None);
        assert_eq!(known(&caller(5), 2, May::READ_OK), None);
        assert_eq!(known(&caller(6), 1, May::READ_OK), None);
        let fewer = Caller { gids: vec![2], ..caller(5) };
        assert_eq!(known(&fewer, 1, May::READ_OK), None);
    }

    #[test]
    fn a_change_makes_all_that_was_known_of_a_caller_void() {
        let mut rights = Rights::default();
        rights.learn(&caller(5), at(1), May::READ_OK, true);
        rights.learn(&caller(5), at(2), May::WRITE_OK, true);
        assert_eq!(rights.known(&caller(5), at(2), May::READ_OK), None);
        assert_eq!(rights.known(&caller(5), at(2), May::WRITE_OK), Some(true));
    }

    #[test]
    fn the_oldest_callers_are_forgotten() {
        let mut rights = Rights::default();
        (0..6).for_each(|uid| rights.learn(&caller(uid), at(1), May::READ_OK, true));
        let known = |uid| rights.known(&caller(uid), at(1), May::READ_OK).is_some();
        assert_eq!([0, 1, 2, 3, 4, 5].map(known), [false, false, true, true, true, true]);
    }
}
