//! What one direction has carried, counted.

use std::sync::atomic::{AtomicU64, Ordering};

use super::lane::{Fate, Lost};

/// Shared by all that pass in one direction; see [`Counts`].
#[derive(Debug, Default)]
pub struct Tally {
    messages: AtomicU64,
    bytes: AtomicU64,
    lost_by_chance: AtomicU64,
    lost_in_partition: AtomicU64,
    lost_at_queue: AtomicU64,
    lost_at_held: AtomicU64,
    duplicated: AtomicU64,
    reordered: AtomicU64,
    corrupted: AtomicU64,
    retransmitted: AtomicU64,
    held: AtomicU64,
    held_max: AtomicU64,
    held_bytes: AtomicU64,
    held_bytes_max: AtomicU64,
}

/// Events since the start, and what is held now.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    /// Messages that were sent, lost ones included.
    pub messages: u64,
    pub bytes: u64,
    pub lost_by_chance: u64,
    pub lost_in_partition: u64,
    pub lost_at_queue: u64,
    /// Lost because the emulator held as much as it may: a run with these says nothing.
    pub lost_at_held: u64,
    pub duplicated: u64,
    pub reordered: u64,
    pub corrupted: u64,
    /// Packets of streams that were retransmitted.
    pub retransmitted: u64,
    /// Messages on their way now, and the most that there were.
    pub held: u64,
    pub held_max: u64,
    pub held_bytes: u64,
    pub held_bytes_max: u64,
}

impl Counts {
    pub fn lost(&self) -> u64 {
        self.lost_by_chance + self.lost_in_partition + self.lost_at_queue + self.lost_at_held
    }
}

impl Tally {
    /// A message of so many bytes has met its fate.
    pub fn decided(&self, bytes: u64, fate: &Fate) {
        let add = |counter: &AtomicU64, count: u64| {
            counter.fetch_add(count, Ordering::Relaxed);
        };
        add(&self.messages, 1);
        add(&self.bytes, bytes);
        match fate.arrival {
            Ok(_) => {}
            Err(Lost::Chance) => add(&self.lost_by_chance, 1),
            Err(Lost::Partition) => add(&self.lost_in_partition, 1),
            Err(Lost::Queue) => add(&self.lost_at_queue, 1),
            Err(Lost::Held) => add(&self.lost_at_held, 1),
        }
        for (counter, count) in [
            (&self.duplicated, u64::from(fate.again.is_some())),
            (&self.reordered, u64::from(fate.reordered)),
            (&self.corrupted, u64::from(fate.flipped_bit.is_some())),
            (&self.retransmitted, fate.retransmissions),
        ] {
            if count > 0 {
                add(counter, count);
            }
        }
    }

    /// A message is on its way.
    pub(super) fn entered(&self, bytes: u64) {
        let held = self.held.fetch_add(1, Ordering::Relaxed) + 1;
        let held_bytes = self.held_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        if held > self.held_max.load(Ordering::Relaxed) {
            self.held_max.fetch_max(held, Ordering::Relaxed);
        }
        if held_bytes > self.held_bytes_max.load(Ordering::Relaxed) {
            self.held_bytes_max.fetch_max(held_bytes, Ordering::Relaxed);
        }
    }

    /// Messages have arrived, or are given up.
    pub(super) fn left(&self, messages: u64, bytes: u64) {
        self.held.fetch_sub(messages, Ordering::Relaxed);
        self.held_bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes.load(Ordering::Relaxed)
    }

    pub fn counts(&self) -> Counts {
        let load = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Counts {
            messages: load(&self.messages),
            bytes: load(&self.bytes),
            lost_by_chance: load(&self.lost_by_chance),
            lost_in_partition: load(&self.lost_in_partition),
            lost_at_queue: load(&self.lost_at_queue),
            lost_at_held: load(&self.lost_at_held),
            duplicated: load(&self.duplicated),
            reordered: load(&self.reordered),
            corrupted: load(&self.corrupted),
            retransmitted: load(&self.retransmitted),
            held: load(&self.held),
            held_max: load(&self.held_max),
            held_bytes: load(&self.held_bytes),
            held_bytes_max: load(&self.held_bytes_max),
        }
    }
}
