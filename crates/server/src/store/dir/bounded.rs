//! A map with a maximum, which forgets what has not been used lately.
//!
//! Second chance: entries stand in a ring; asking for one marks it. To make room the ring turns:
//! a marked entry loses its mark and goes on, the first unmarked one goes. Asking needs only a
//! shared lock, and costs a hash and a store. Entries that may not go (pinned) are passed over;
//! when nothing may go the map grows over its maximum rather than break something in use.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};

pub(super) struct Bounded<K, V> {
    slots: HashMap<K, Slot<V>>,
    /// Every slot once, with the ticket it was given; other tickets are of slots that are gone.
    ring: VecDeque<(K, u64)>,
    tickets: u64,
    max: usize,
}

struct Slot<V> {
    value: V,
    ticket: u64,
    used: AtomicBool,
}

impl<K: Copy + Eq + Hash, V> Bounded<K, V> {
    pub(super) fn new(max: usize) -> Self {
        Self { slots: HashMap::new(), ring: VecDeque::new(), tickets: 0, max: max.max(1) }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }

    /// All entries; none of them counts as used.
    pub(super) fn values(&self) -> impl Iterator<Item = &V> {
        self.slots.values().map(|slot| &slot.value)
    }

    /// An entry, which does not count as used.
    pub(super) fn peek(&self, key: &K) -> Option<&V> {
        self.slots.get(key).map(|slot| &slot.value)
    }

    pub(super) fn find(&self, key: &K) -> Option<&V> {
        let slot = self.slots.get(key)?;
        // Not written again and again: other threads read this line.
        if !slot.used.load(Ordering::Relaxed) {
            slot.used.store(true, Ordering::Relaxed);
        }
        Some(&slot.value)
    }

    pub(super) fn find_mut(&mut self, key: &K) -> Option<&mut V> {
        let slot = self.slots.get_mut(key)?;
        *slot.used.get_mut() = true;
        Some(&mut slot.value)
    }

    /// Puts a new entry in place, and gives those that had to go for it.
    pub(super) fn insert(&mut self, key: K, value: V, may_go: impl Fn(&V) -> bool) -> Vec<(K, V)> {
        self.remove(&key);
        let gone = self.shrink(self.max - 1, may_go);
        self.tickets += 1;
        let slot = Slot { value, ticket: self.tickets, used: AtomicBool::new(false) };
        self.slots.insert(key, slot);
        self.ring.push_back((key, self.tickets));
        gone
    }

    pub(super) fn remove(&mut self, key: &K) -> Option<V> {
        let slot = self.slots.remove(key)?;
        // Removed entries leave their place in the ring; sweep before that grows.
        if self.ring.len() > 2 * self.slots.len() + 64 {
            self.sweep();
        }
        Some(slot.value)
    }

    /// Takes out all entries that are so.
    pub(super) fn take_if(&mut self, is_so: impl Fn(&V) -> bool) -> Vec<V> {
        let taken: Vec<V> = self
            .slots
            .extract_if(|_, slot| is_so(&slot.value))
            .map(|(_, slot)| slot.value)
            .collect();
        self.sweep();
        taken
    }

    fn sweep(&mut self) {
        let slots = &self.slots;
        self.ring.retain(|(key, ticket)| slots.get(key).is_some_and(|slot| slot.ticket == *ticket));
    }

    /// Most of the memory is of no use.
    pub(super) fn is_roomy(&self) -> bool {
        self.slots.capacity() > 4 * self.slots.len() + 64
    }

    /// Gives back what entries need no more.
    pub(super) fn shrink_to_fit(&mut self) {
        self.sweep();
        self.ring.shrink_to_fit();
        self.slots.shrink_to_fit();
    }

    /// Lets entries go until at most `len` are left.
    pub(super) fn shrink(&mut self, len: usize, may_go: impl Fn(&V) -> bool) -> Vec<(K, V)> {
        let mut gone = Vec::new();
        // Once to take the marks, once to take the entries.
        let mut turns = 2 * self.ring.len();
        while self.slots.len() > len && turns > 0 {
            turns -= 1;
            let Some((key, ticket)) = self.ring.pop_front() else {
                break;
            };
            let Some(slot) = self.slots.get_mut(&key).filter(|slot| slot.ticket == ticket) else {
                continue;
            };
            if std::mem::take(slot.used.get_mut()) || !may_go(&slot.value) {
                self.ring.push_back((key, ticket));
            } else if let Some(slot) = self.slots.remove(&key) {
                gone.push((key, slot.value));
            }
        }
        gone
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_requested_lately_stays() {
        let mut map = Bounded::new(3);
        for key in 0..3 {
            assert!(map.insert(key, key, |_| true).is_empty());
        }
        map.find(&0);
        let gone = map.insert(3, 3, |_| true);
        assert_eq!(gone, [(1, 1)]);
        assert!(map.find(&0).is_some() && map.find(&2).is_some() && map.find(&3).is_some());
    }

    #[test]
    fn memory_comes_back_when_most_entries_have_gone() {
        let mut map = Bounded::new(10_000);
        for key in 0..10_000 {
            map.insert(key, key, |_| true);
        }
        assert!(!map.is_roomy());
        for key in 3..10_000 {
            map.remove(&key);
        }
        assert!(map.is_roomy());
        map.shrink_to_fit();
        assert!(!map.is_roomy() && map.ring.capacity() < 100);
        assert_eq!(map.values().count(), 3);
        assert_eq!(map.peek(&2), Some(&2));
    }

    #[test]
    fn pinned_entries_stay_even_over_the_maximum() {
        let mut map = Bounded::new(2);
        for key in 0..5 {
            map.insert(key, key, |_| false);
        }
        assert_eq!(map.len(), 5);
        assert_eq!(map.shrink(2, |&value| value != 0).len(), 3);
        assert!(map.find(&0).is_some());
    }

    #[test]
    fn a_key_that_left_and_came_back_is_one_entry_and_the_ring_stays_small() {
        let mut map = Bounded::new(8);
        for round in 0..1000 {
            map.insert(round % 5, round, |_| true);
            map.remove(&(round % 3));
        }
        assert!(map.len() <= 5);
        assert!(map.ring.len() <= 2 * 8 + 65, "{}", map.ring.len());
    }
}
