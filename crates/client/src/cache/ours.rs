//! Whose change it was: ours, or another client's.
//!
//! A reply to a call that changes a file tells the state before and after it (`wcc_data`, RFC 1813
//! section 2.6). If nobody else changes the file, each state before is one that we knew or one
//! that another of our own calls has left; replies come in any order, so a state before may be
//! explained only by a reply that comes later. When no call of ours is under way and a state is
//! still unexplained, somebody else has been there.
//!
//! Bounded: [`KNOWN_MAX`] states are remembered and as many may be unexplained; one more counts as
//! somebody else's, which costs a cache its content and never an answer.

use std::collections::VecDeque;

use wire::nfs3::{WccAttr, WccData};

/// States remembered of a file.
const KNOWN_MAX: usize = 256;

/// See the module's head.
#[derive(Clone, Debug, Default)]
pub struct Ours {
    known: VecDeque<WccAttr>,
    unexplained: Vec<WccAttr>,
    overflowed: bool,
}

impl Ours {
    /// Forgets everything but this state, which is the file's now.
    pub fn reset(&mut self, state: WccAttr) {
        self.known.clear();
        self.known.push_back(state);
        self.unexplained.clear();
        self.overflowed = false;
    }

    /// A call of ours has changed the file.
    pub fn changed(&mut self, wcc: &WccData) {
        if let Some(after) = &wcc.after {
            self.know(after.into());
        }
        if let Some(before) = wcc.before
            && !self.known.contains(&before)
        {
            if self.unexplained.len() == KNOWN_MAX {
                self.overflowed = true;
            } else if !self.unexplained.contains(&before) {
                self.unexplained.push(before);
            }
        }
    }

    fn know(&mut self, state: WccAttr) {
        if self.known.back() != Some(&state) {
            if self.known.len() == KNOWN_MAX {
                self.known.pop_front();
            }
            self.known.push_back(state);
        }
        self.unexplained.retain(|unexplained| *unexplained != state);
    }

    /// Whether it is a state that we knew or made. The time of the last change of attributes
    /// counts: programs set the time of the last change of data to what they like, and two clients
    /// may set the same one.
    pub fn knows(&self, state: &WccAttr) -> bool {
        self.known.iter().rev().any(|known| known == state)
    }

    /// The same, after calls of ours that have changed only that time, and said to what for no
    /// file but another (LINK, RENAME, REMOVE).
    pub fn knows_data(&self, state: &WccAttr) -> bool {
        let is_same = |known: &WccAttr| (known.size, known.mtime) == (state.size, state.mtime);
        self.known.iter().rev().any(is_same)
    }

    /// Whether somebody else has changed the file, as far as can be told when none of our calls
    /// is under way.
    pub fn others_were_here(&self) -> bool {
        self.overflowed || !self.unexplained.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::nfs3::{FType, Fattr3, NfsTime, Specdata};

    fn state(n: u32) -> WccAttr {
        let time = NfsTime { seconds: n, nseconds: 0 };
        WccAttr { size: 0, mtime: time, ctime: time }
    }

    fn step(before: u32, after: u32) -> WccData {
        let time = NfsTime { seconds: after, nseconds: 0 };
        let attributes = Fattr3 {
            ftype: FType::Reg,
            mode: 0,
            nlink: 1,
            uid: 0,
            gid: 0,
            size: 0,
            used: 0,
            rdev: Specdata::default(),
            fsid: 0,
            fileid: 1,
            atime: time,
            mtime: time,
            ctime: time,
        };
        WccData { before: Some(state(before)), after: Some(attributes) }
    }

    #[test]
    fn a_chain_of_our_own_changes_is_ours_in_any_order() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        for (before, after) in [(3, 4), (2, 3), (4, 5), (1, 2)] {
            ours.changed(&step(before, after));
        }
        assert!(!ours.others_were_here());
        assert!(ours.knows_data(&state(5)));
    }

    #[test]
    fn a_gap_in_the_chain_is_somebody_elses() {
        let mut ours = Ours::default();
        ours.reset(state(1));
        ours.changed(&step(1, 2));
        ours.changed(&step(7, 8));
        assert!(ours.others_were_here());
        ours.reset(state(8));
        assert!(!ours.others_were_here());
    }

    #[test]
    fn what_is_remembered_is_bounded() {
        let mut ours = Ours::default();
        ours.reset(state(0));
        for n in 1..10_000 {
            ours.changed(&step(2 * n, 2 * n + 1));
        }
        assert!(ours.known.len() <= KNOWN_MAX && ours.unexplained.len() <= KNOWN_MAX);
        assert!(ours.others_were_here());
    }
}
