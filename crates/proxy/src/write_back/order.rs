//! In which order changes go to the origin: many at a time, and one after the other where the
//! second needs the first, or would undo it.
//!
//! A change uses files and names. Two changes that use the same one keep their order, unless both
//! only need that it is there (what is made in a directory), or write bytes of a file that do not
//! overlap. A change is due when all that it has to follow are done, and it is stable in the log.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};

use bytes::Bytes;
use server::types::Handle;

/// What changes use.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub(crate) enum Thing {
    File(Handle),
    Name(Handle, Bytes),
}

/// How they use it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum How {
    /// It is to be there.
    Shared,
    /// These bytes of it.
    Bytes { from: u64, to: u64 },
    /// All of it.
    Alone,
}

impl How {
    /// Whether their order does not matter.
    pub(crate) fn goes_with(self, other: Self) -> bool {
        match (self, other) {
            (Self::Shared, Self::Shared) => true,
            (Self::Bytes { from, to }, Self::Bytes { from: begin, to: end }) => {
                to <= begin || end <= from
            }
            _ => false,
        }
    }
}

/// Who uses a thing: the newest that has it alone, and those after that one.
#[derive(Debug, Default)]
struct Users {
    alone: Option<u64>,
    since: BTreeMap<u64, How>,
}

#[derive(Debug)]
struct Waiting {
    /// What has to be before it, and one more as long as it is not stable.
    on: usize,
    /// Who waits for it.
    holds_up: Vec<u64>,
    uses: Vec<Thing>,
    /// It goes with the one before it.
    is_joined: bool,
}

/// See the module's head. Memory: some 300 bytes for each change.
#[derive(Debug, Default)]
pub(crate) struct Order {
    users: HashMap<Thing, Users>,
    waiting: HashMap<u64, Waiting>,
    due: BTreeSet<u64>,
    /// Those that the origin does not take, and all that follow them.
    stuck: HashSet<u64>,
    /// A mistake, for tests of tests: nothing follows anything.
    pub(crate) ignores: bool,
}

impl Order {
    /// A change that comes after all that were added.
    pub(crate) fn add(&mut self, number: u64, uses: Vec<(Thing, How)>) {
        let mut follows = BTreeSet::new();
        for (thing, how) in &uses {
            let users = self.users.entry(thing.clone()).or_default();
            follows.extend(users.alone);
            let others = || users.since.iter().filter(|(_, other)| !how.goes_with(**other));
            match how {
                // Those that share it and come after the newest that had it alone: none of them.
                How::Shared if users.since.values().all(|other| *other == How::Shared) => {}
                _ => follows.extend(others().map(|(number, _)| *number)),
            }
            match how {
                How::Alone => {
                    users.alone = Some(number);
                    users.since.clear();
                }
                how => drop(users.since.insert(number, *how)),
            }
        }
        follows.remove(&number);
        if self.ignores {
            follows.clear();
        }
        if follows.iter().any(|before| self.stuck.contains(before)) {
            self.stuck.insert(number);
        }
        for before in &follows {
            if let Some(before) = self.waiting.get_mut(before) {
                before.holds_up.push(number);
            }
        }
        let uses = uses.into_iter().map(|(thing, _)| thing).collect();
        let (on, holds_up) = (follows.len() + 1, Vec::new());
        let waiting = Waiting { on, holds_up, uses, is_joined: false };
        self.waiting.insert(number, waiting);
    }

    /// It is stable in the log.
    pub(crate) fn stable(&mut self, number: u64) {
        self.less(number);
    }

    /// The oldest that is due.
    pub(crate) fn oldest_due(&self) -> Option<u64> {
        self.due.first().copied()
    }

    /// The change that waits for this one, and for nothing else.
    pub(crate) fn follower(&self, number: u64) -> Option<u64> {
        let waits = |next: &&u64| self.waiting.get(next).is_some_and(|waiting| waiting.on == 1);
        self.waiting.get(&number)?.holds_up.iter().find(waits).copied()
    }

    /// It goes with the one that it follows, or by itself after all.
    pub(crate) fn join(&mut self, number: u64, is_joined: bool) {
        let Some(waiting) = self.waiting.get_mut(&number) else { return };
        waiting.is_joined = is_joined;
        if waiting.on == 0 && !is_joined {
            self.due.insert(number);
        }
    }

    /// The oldest that is due; it is under way from now on.
    pub(crate) fn next(&mut self) -> Option<u64> {
        self.due.pop_first()
    }

    /// It has come where it was to go, and is known to have for good.
    pub(crate) fn done(&mut self, number: u64) {
        let Some(done) = self.waiting.remove(&number) else { return };
        self.due.remove(&number);
        self.stuck.remove(&number);
        for thing in done.uses {
            let Some(users) = self.users.get_mut(&thing) else { continue };
            users.since.remove(&number);
            users.alone = users.alone.filter(|alone| *alone != number);
            if users.alone.is_none() && users.since.is_empty() {
                self.users.remove(&thing);
            }
        }
        done.holds_up.into_iter().for_each(|next| self.less(next));
    }

    fn less(&mut self, number: u64) {
        let Some(waiting) = self.waiting.get_mut(&number) else { return };
        waiting.on = waiting.on.saturating_sub(1);
        if waiting.on == 0 && !waiting.is_joined {
            self.due.insert(number);
        }
    }

    /// The origin does not take it.
    pub(crate) fn trouble(&mut self, number: u64) {
        let mut next = vec![number];
        while let Some(number) = next.pop() {
            if self.stuck.insert(number) {
                let waiting = self.waiting.get(&number);
                next.extend(waiting.into_iter().flat_map(|waiting| &waiting.holds_up));
            }
        }
    }

    /// Of those that it did not take, these are left.
    pub(crate) fn troubled(&mut self, left: impl Iterator<Item = u64>) {
        self.stuck.clear();
        left.for_each(|number| self.trouble(number));
    }

    /// Whether who uses it in this way has to wait for what may be long.
    pub(crate) fn is_stuck(&self, thing: &Thing, how: How) -> bool {
        let Some(users) = self.users.get(thing).filter(|_| !self.stuck.is_empty()) else {
            return false;
        };
        let others = users.since.iter().filter(|(_, other)| !how.goes_with(**other));
        users.alone.iter().chain(others.map(|(number, _)| number)).any(|n| self.stuck.contains(n))
    }

    /// The newest change that uses it, if that has it alone.
    pub(crate) fn newest_alone(&self, thing: &Thing) -> Option<u64> {
        self.users.get(thing).filter(|users| users.since.is_empty())?.alone
    }

    /// Whether there are no changes.
    pub(crate) fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether a change uses it.
    pub(crate) fn uses(&self, thing: &Thing) -> bool {
        self.users.contains_key(thing)
    }

    /// Whether a change has it alone.
    pub(crate) fn uses_alone(&self, thing: &Thing) -> bool {
        self.users.get(thing).is_some_and(|users| users.alone.is_some())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn thing(number: u8) -> Thing {
        match number {
            0..4 => Thing::File(Handle::new(&[number]).unwrap()),
            _ => Thing::Name(Handle::new(&[0]).unwrap(), Bytes::from(vec![number])),
        }
    }

    fn how(number: u8) -> How {
        match number {
            0 => How::Shared,
            1 => How::Alone,
            _ => How::Bytes { from: u64::from(number) * 10, to: u64::from(number) * 10 + 15 },
        }
    }

    #[test]
    fn what_is_joined_goes_with_the_one_before_it_or_by_itself_after_all() {
        let mut order = Order::default();
        for number in 1..=3 {
            order.add(number, vec![(thing(0), How::Alone)]);
        }
        order.add(4, vec![(thing(0), How::Alone), (thing(1), How::Alone)]);
        (1..=2).for_each(|number| order.stable(number));
        assert_eq!((order.follower(1), order.follower(2)), (Some(2), None), "3 is not stable");
        order.stable(3);
        for number in [2, 3] {
            assert_eq!(order.follower(number - 1), Some(number));
            order.join(number, true);
        }
        assert_eq!((order.next(), order.next()), (Some(1), None));
        order.done(1);
        assert_eq!(order.next(), None, "2 went with it");
        order.join(2, false);
        assert_eq!(order.oldest_due(), Some(2));
        assert_eq!((order.next(), order.next()), (Some(2), None));
        order.done(2);
        order.done(3);
        order.stable(4);
        assert_eq!(order.next(), Some(4));
        assert_eq!(order.newest_alone(&thing(0)), Some(4));
        order.add(5, vec![(thing(0), How::Shared)]);
        assert_eq!(order.newest_alone(&thing(0)), None, "5 uses it, too");
    }

    #[test]
    fn what_follows_a_change_in_trouble_is_stuck_until_that_is_over() {
        let mut order = Order::default();
        order.add(1, vec![(thing(0), How::Alone)]);
        order.add(2, vec![(thing(0), How::Shared), (thing(1), How::Alone)]);
        order.add(3, vec![(thing(2), How::Alone)]);
        (1..=3).for_each(|number| order.stable(number));
        order.trouble(1);
        order.add(4, vec![(thing(1), How::Alone), (thing(3), How::Alone)]);
        let stuck = |order: &Order| [0, 1, 2, 3].map(|n| order.is_stuck(&thing(n), How::Alone));
        assert_eq!(stuck(&order), [true, true, false, true]);
        order.troubled([3].into_iter());
        assert_eq!(stuck(&order), [false, false, true, false]);
        order.done(3);
        assert_eq!(stuck(&order), [false; 4]);
    }

    #[test]
    fn who_goes_with_what_is_stuck_does_not_wait_for_it() {
        let mut order = Order::default();
        order.add(1, vec![(thing(0), How::Shared), (thing(1), How::Alone)]);
        order.trouble(1);
        assert!(!order.is_stuck(&thing(0), How::Shared) && order.is_stuck(&thing(0), How::Alone));
        assert!(order.is_stuck(&thing(1), How::Shared));
    }

    proptest! {
        /// Whatever ends when: nothing begins before something that it has to follow has ended, and
        /// everything begins at some time.
        #[test]
        fn what_follows_begins_when_what_is_before_has_ended(
            changes in proptest::collection::vec(
                proptest::collection::vec((0u8..6, 0u8..6), 1..4), 1..60),
            ends in proptest::collection::vec(any::<prop::sample::Index>(), 200),
        ) {
            let mut order = Order::default();
            let mut uses = Vec::new();
            for (number, change) in (0u64..).zip(&changes) {
                let used: BTreeMap<u8, u8> = change.iter().copied().collect();
                let used: Vec<_> = used.into_iter().map(|(t, h)| (thing(t), how(h))).collect();
                uses.push(used.clone());
                order.add(number, used);
                prop_assert!(!order.due.contains(&number), "it is not stable yet");
                order.stable(number);
            }
            let (mut under_way, mut done) = (Vec::new(), BTreeSet::new());
            let mut ends = ends.into_iter().cycle();
            while done.len() < changes.len() {
                while let Some(number) = order.next() {
                    let at = usize::try_from(number).unwrap();
                    for before in 0..at {
                        let conflicts = uses[at].iter().any(|(thing, how)| {
                            uses[before]
                                .iter()
                                .any(|(other, was)| thing == other && !how.goes_with(*was))
                        });
                        prop_assert!(!conflicts || done.contains(&(before as u64)));
                    }
                    under_way.push(number);
                }
                prop_assert!(!under_way.is_empty(), "everything begins at some time");
                let ended = under_way.swap_remove(ends.next().unwrap().index(under_way.len()));
                order.done(ended);
                done.insert(ended);
            }
            prop_assert!(order.users.is_empty() && order.waiting.is_empty());
        }
    }
}
