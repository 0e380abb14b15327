//! Whose change it was: ours, or another client's.
//!
//! A reply to a call that changes a file tells the state before and after it (`wcc_data`, RFC 1813
//! section 2.6). If nobody else changes the file, each state before is one that we knew or one
//! that another of our own calls has left; replies come in any order, so a state before may be
//! explained only by a reply that comes later. When no call of ours is under way and a state is
//! still unexplained, somebody else has been there.
//!
//! Servers are to tell the state before only where nothing can come between it and the change, and
//! many do not keep to that: of two WRITEs that they carry out at the same time, the state before
//! the one may be one in the middle of the other, which no reply shows. So what was requested while
//! another change of ours was under way accuses nobody at once, where the caller wants that: for
//! files. It may be somebody else's all the same, and whoever opens the file next is promised to
//! see what was written before: then it counts.
//!
//! Bounded: `KNOWN_MAX` states are remembered, as many may be unexplained, and as many excused; one
//! more counts as somebody else's, which costs a cache its content and never an answer.

use std::collections::VecDeque;

use perf::units::Instant;
use wire::nfs3::{WccAttr, WccData};

/// States remembered of a file.
const KNOWN_MAX: usize = 256;

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Ours {
    known: VecDeque<WccAttr>,
    /// And when the reply with it came.
    unexplained: Vec<(WccAttr, Instant)>,
    /// Unexplained, and perhaps a state in the middle of a change of ours.
    excused: Vec<WccAttr>,
    overflowed: bool,
    /// More were excused than there is room for.
    is_doubtful: bool,
    /// Of those that were excused since [`Ours::begin`], the ones whose times no change of ours has
    /// left.
    strange: Vec<WccAttr>,
    /// There were more, or somebody else's was found.
    was_strange: bool,
    /// When the last change of ours was answered.
    answered: Instant,
}

/// When a change of ours was requested, and answered.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub sent: Instant,
    pub answered: Instant,
    /// Whether it accuses nobody if another of ours was under way at the same time.
    pub is_excused: bool,
}

impl Ours {
    /// Forgets everything but this state, which is the file's now, and what was excused: that
    /// waits for the next open.
    pub fn reset(&mut self, state: WccAttr) {
        self.known.clear();
        self.known.push_back(state);
        self.unexplained.clear();
        self.overflowed = false;
    }

    /// A call of ours has changed the file.
    pub fn changed(&mut self, wcc: &WccData, span: Span) {
        let was_beside_another = span.sent < self.answered;
        if span.is_excused {
            let beside = |(_, answered): &mut (WccAttr, Instant)| *answered > span.sent;
            let excused: Vec<_> = self.unexplained.extract_if(.., beside).collect();
            excused.into_iter().for_each(|(state, _)| self.excuse(state));
        }
        self.answered = self.answered.max(span.answered);
        // What has failed, and left the state it found, has made none.
        if let Some(after) = wcc.after.as_ref().map(WccAttr::from)
            && wcc.before != Some(after)
        {
            self.know(after);
        }
        if let Some(before) = wcc.before
            && !self.known.contains(&before)
        {
            if span.is_excused && was_beside_another {
                self.excuse(before);
            } else if self.unexplained.len() == KNOWN_MAX {
                self.overflowed = true;
            } else if self.unexplained.iter().all(|(state, _)| *state != before) {
                self.unexplained.push((before, span.answered));
            }
        }
    }

    /// From here on it is to be known for certain whose changes they are.
    pub fn begin(&mut self) {
        self.strange.clear();
        self.was_strange = false;
    }

    /// Whether all changes since [`Ours::begin`] were ours. Where the server `tells_apart` changes
    /// that follow each other, a state in the middle of one of ours has the times that it leaves.
    pub fn is_certain(&self, tells_apart: bool) -> bool {
        let is_plain = self.excused.is_empty() && !self.is_doubtful;
        let is_explained = is_plain || tells_apart && self.strange.is_empty();
        !self.others_were_here() && !self.was_strange && is_explained
    }

    /// Somebody else has changed the file.
    pub fn others_came(&mut self) {
        self.was_strange = true;
    }

    fn excuse(&mut self, state: WccAttr) {
        if !self.known.iter().rev().any(|known| has_times_of(known, &state)) {
            if self.strange.len() == KNOWN_MAX {
                self.was_strange = true;
            } else {
                self.strange.push(state);
            }
        }
        if self.excused.len() == KNOWN_MAX {
            self.is_doubtful = true;
        } else if !self.excused.contains(&state) {
            self.excused.push(state);
        }
    }

    fn know(&mut self, state: WccAttr) {
        if self.known.back() != Some(&state) {
            if self.known.len() == KNOWN_MAX {
                self.known.pop_front();
            }
            self.known.push_back(state);
        }
        self.unexplained.retain(|(unexplained, _)| *unexplained != state);
        self.excused.retain(|excused| *excused != state);
        self.strange.retain(|strange| !has_times_of(strange, &state));
    }

    /// Whether it is a state that we knew or made. The time of the last change of attributes
    /// counts: programs set the time of the last change of data to what they like, and two clients
    /// may set the same one.
    pub fn knows(&self, state: &WccAttr) -> bool {
        self.known.iter().rev().any(|known| known == state)
    }

    /// The same, after calls of ours that have changed only that time, and returned to what for no
    /// file but another (LINK, RENAME, REMOVE).
    pub fn knows_data(&self, state: &WccAttr) -> bool {
        let is_same = |known: &WccAttr| (known.size, known.mtime) == (state.size, state.mtime);
        self.known.iter().rev().any(is_same)
    }

    /// Whether it had this size in a state that we knew or made.
    pub fn knows_size(&self, size: u64) -> bool {
        self.known.iter().any(|known| known.size == size)
    }

    /// Whether somebody else has changed the file, as far as that shows when none of our calls
    /// is under way.
    pub fn others_were_here(&self) -> bool {
        self.overflowed || !self.unexplained.is_empty()
    }

    /// Whether somebody else may have changed it since it was last read: what was excused is
    /// counted, once.
    pub fn others_may_have_been_here(&mut self) -> bool {
        let was_excused = !std::mem::take(&mut self.excused).is_empty();
        std::mem::take(&mut self.is_doubtful) || was_excused
    }
}

fn has_times_of(one: &WccAttr, other: &WccAttr) -> bool {
    (one.mtime, one.ctime) == (other.mtime, other.ctime)
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nfs3::{Fattr3, NfsTime};

    fn state(n: u32) -> WccAttr {
        let time = NfsTime { seconds: n, nseconds: 0 };
        WccAttr { size: 0, mtime: time, ctime: time }
    }

    fn step(before: u32, after: u32) -> WccData {
        let time = NfsTime { seconds: after, nseconds: 0 };
        let attributes = Fattr3::of_file(0, time);
        WccData { before: Some(state(before)), after: Some(attributes) }
    }

    /// One after the other, or all at the same time.
    fn span(from: u64, to: u64, is_excused: bool) -> Span {
        let (sent, answered) = (Instant::from_nanos(from), Instant::from_nanos(to));
        Span { sent, answered, is_excused }
    }

    #[test]
    fn what_was_requested_beside_another_change_of_ours_accuses_nobody() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        // Carried out at the same time: 2 is a state in the middle of the second.
        ours.changed(&step(2, 4), span(10, 30, true));
        ours.changed(&step(1, 3), span(11, 31, true));
        assert!(!ours.others_were_here());
        ours.reset(state(4));
        assert!(ours.others_may_have_been_here(), "2 may have been somebody else's");
        assert!(!ours.others_may_have_been_here(), "that is reported once");
        ours.changed(&step(9, 10), span(40, 50, true));
        assert!(ours.others_were_here(), "nothing else was under way");
        let mut names = Ours::default();
        names.reset(state(1));
        names.changed(&step(2, 4), span(10, 30, false));
        names.changed(&step(1, 3), span(11, 31, false));
        assert!(names.others_were_here());
    }

    #[test]
    fn it_is_certain_that_all_changes_were_ours_if_the_states_between_have_their_times() {
        let longer = |n, size| WccAttr { size, ..state(n) };
        let step = |before, after: u32| WccData { before: Some(before), ..step(0, after) };
        let mut ours = Ours::default();
        ours.reset(state(1));
        ours.begin();
        // In the middle of the other: its times, and not its size.
        ours.changed(&step(longer(3, 9), 2), span(10, 30, true));
        ours.changed(&step(state(1), 3), span(11, 31, true));
        assert!(ours.is_certain(true) && !ours.is_certain(false));
        ours.changed(&step(longer(7, 9), 8), span(12, 32, true));
        assert!(!ours.is_certain(true), "that is somebody else's, or nobody knows");
        ours.begin();
        assert!(ours.is_certain(true));
        ours.changed(&step(state(7), 9), span(40, 50, true));
        assert!(!ours.is_certain(true), "nothing of ours was under way");
    }

    #[test]
    fn a_chain_of_our_own_changes_is_ours_in_any_order() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        for (before, after) in [(3, 4), (2, 3), (4, 5), (1, 2)] {
            ours.changed(&step(before, after), span(0, 10, false));
        }
        assert!(!ours.others_were_here());
        assert!(ours.knows_data(&state(5)));
    }

    #[test]
    fn what_was_excused_and_is_explained_later_is_ours() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        ours.changed(&step(3, 4), span(10, 30, true));
        ours.changed(&step(2, 3), span(11, 31, true));
        ours.changed(&step(1, 2), span(12, 32, true));
        assert!(!ours.others_may_have_been_here());
    }

    #[test]
    fn a_state_that_a_failed_call_has_found_is_not_ours() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        ours.changed(&step(1, 1), span(0, 10, false));
        assert!(!ours.others_were_here());
        ours.changed(&step(2, 2), span(10, 20, false));
        assert!(ours.others_were_here());
        // Unless a reply that comes later says that we have made it.
        ours.changed(&step(1, 2), span(9, 30, false));
        assert!(!ours.others_were_here());
    }

    #[test]
    fn a_gap_in_the_chain_is_somebody_elses() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        ours.changed(&step(1, 2), span(0, 10, true));
        ours.changed(&step(7, 8), span(10, 20, true));
        assert!(ours.others_were_here());
        ours.reset(state(8));
        assert!(!ours.others_were_here());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut ours = Ours::default();
        ours.reset(state(0));
        for n in 1..10_000 {
            ours.changed(&step(2 * n, 2 * n + 1), span(n.into(), n.into(), true));
        }
        assert!(ours.known.len() <= KNOWN_MAX && ours.unexplained.len() <= KNOWN_MAX);
        assert!(ours.others_were_here());
    }
}
