//! Which calls of a flow count as outstanding.
//!
//! A call is over with its reply. Where that cannot come any more, or the capture may have lost it,
//! the call counts no longer:
//!
//! - its connection ended, or began anew;
//! - the capture lost messages of the server after the call was made, and a call that was made
//!   later than that was answered (servers answer mostly in order);
//! - over UDP, it was neither answered nor retransmitted for so long that its client gave it up.
//!
//! What is answered or retransmitted after all was outstanding meanwhile, and counts again.
//!
//! Calls are distinguished by generations: another one begins where messages were lost. At most
//! [`GENERATIONS_MAX`] are stored; with one more the calls of the oldest count no longer.

use std::collections::VecDeque;

use super::work::Work;

/// Generations with calls outstanding that are distinguished.
const GENERATIONS_MAX: usize = 16;

/// Calls outstanding, by what matters of them.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Load {
    pub(super) calls: u32,
    pub(super) commits: u32,
    pub(super) stable_writes: u32,
    /// Those that the filter selects.
    pub(super) selected: u32,
}

impl Load {
    /// Of one call.
    pub(super) fn of(work: Work, is_selected: bool) -> Self {
        Self {
            calls: 1,
            commits: u32::from(work == Work::Commit),
            stable_writes: u32::from(work == Work::StableWrite),
            selected: u32::from(is_selected),
        }
    }

    pub(super) const fn add(&mut self, other: Self) {
        self.calls += other.calls;
        self.commits += other.commits;
        self.stable_writes += other.stable_writes;
        self.selected += other.selected;
    }

    pub(super) const fn take(&mut self, other: Self) {
        self.calls = self.calls.saturating_sub(other.calls);
        self.commits = self.commits.saturating_sub(other.commits);
        self.stable_writes = self.stable_writes.saturating_sub(other.stable_writes);
        self.selected = self.selected.saturating_sub(other.selected);
    }
}

/// The generation of a call that counts as outstanding, if it does not count no longer.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Generation(u32);

/// The calls of a flow by generation.
#[derive(Debug, Default)]
pub(super) struct Outstanding {
    /// The generation of the first of these; calls of earlier ones count no longer.
    first: u32,
    generations: VecDeque<Load>,
}

impl Outstanding {
    /// A call is made.
    pub(super) fn called(&mut self, load: Load) -> Generation {
        if self.generations.is_empty() {
            self.generations.push_back(Load::default());
        }
        let last = self.generations.len() - 1;
        self.generations[last].add(load);
        Generation(self.first + u32::try_from(last).unwrap_or(0))
    }

    /// A call is over; false if it did not count any more.
    pub(super) fn over(&mut self, Generation(of): Generation, load: Load) -> bool {
        let place = of.checked_sub(self.first).map(|place| place as usize);
        let generation = place.and_then(|place| self.generations.get_mut(place));
        generation.map(|generation| generation.take(load)).is_some()
    }

    /// Whether a call of this generation counts.
    pub(super) const fn counts(&self, Generation(of): Generation) -> bool {
        of >= self.first
    }

    /// Messages of the server were lost: whether calls that were made until now are outstanding is
    /// in doubt. What counts no longer, for want of room.
    pub(super) fn doubted(&mut self) -> Load {
        if self.generations.back().is_some_and(|last| last.calls > 0) {
            self.generations.push_back(Load::default());
        }
        match self.generations.len() > GENERATIONS_MAX {
            true => self.gone(1),
            false => Load::default(),
        }
    }

    /// A call was answered: those in doubt when it was made count no longer.
    pub(super) fn answered(&mut self, Generation(of): Generation) -> Load {
        self.gone(of.saturating_sub(self.first) as usize)
    }

    /// The connection is over, and all of its calls with it.
    pub(super) fn ended(&mut self) -> Load {
        self.gone(self.generations.len())
    }

    /// The first so many generations count no longer.
    fn gone(&mut self, count: usize) -> Load {
        let mut all = Load::default();
        for load in self.generations.drain(..count.min(self.generations.len())) {
            self.first += 1;
            all.add(load);
        }
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one() -> Load {
        Load::of(Work::Commit, true)
    }

    fn calls(load: Load) -> u32 {
        assert!(
            load.commits == load.calls && load.selected == load.calls && load.stable_writes == 0
        );
        load.calls
    }

    #[test]
    fn calls_in_doubt_count_until_a_later_one_is_answered() {
        let mut outstanding = Outstanding::default();
        let [lost, slow] = [(); 2].map(|()| outstanding.called(one()));
        assert_eq!(calls(outstanding.doubted()), 0);
        assert!(outstanding.over(slow, one()));
        assert_eq!(
            calls(outstanding.answered(slow)),
            0,
            "it was made before the loss, as the lost one"
        );
        let later = outstanding.called(one());
        assert!(outstanding.over(later, one()));
        assert_eq!(calls(outstanding.answered(later)), 1);
        assert!(!outstanding.over(lost, one()));
    }

    #[test]
    fn no_call_survives_its_connection_and_new_ones_count() {
        let mut outstanding = Outstanding::default();
        let old = outstanding.called(one());
        outstanding.doubted();
        outstanding.called(one());
        assert_eq!(calls(outstanding.ended()), 2);
        let new = outstanding.called(one());
        assert!(!outstanding.over(old, one()) && outstanding.over(new, one()));
        assert_eq!(calls(outstanding.ended()), 0);
    }

    #[test]
    fn generations_are_bounded() {
        let mut outstanding = Outstanding::default();
        let gone: u32 = (0..100)
            .map(|_| {
                outstanding.called(one());
                calls(outstanding.doubted())
            })
            .sum();
        assert!(outstanding.generations.len() <= GENERATIONS_MAX && gone > 80, "{gone}");
    }
}
