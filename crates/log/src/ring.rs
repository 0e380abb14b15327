//! Where the next frame of a log goes. Frames lie one behind the other from the second block to the
//! end of the log and round again; a frame is never split.
//!
//! What must not be overwritten is what a recovery would read: everything from the tail that the
//! newest *written* frame names. A file may be synced and its frames not needed any more; their
//! place is free only when a frame that notes it is stable itself. Where an export has several
//! logs, each has a ring, and their frames one sequence.

use std::collections::VecDeque;

use crate::BLOCK_BYTES;

/// Where a frame lies.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Place {
    pub log: usize,
    pub sequence: u64,
    pub at: u64,
    pub bytes: u64,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    place: Place,
    /// Records in it that are still needed.
    needed: u32,
}

/// Memory: 32 bytes for each frame that must not be overwritten.
#[derive(Debug)]
pub struct Ring {
    end: u64,
    /// From the tail of the newest written frame to the newest one, by sequence.
    slots: VecDeque<Slot>,
    /// So many of them, from the oldest on, are not needed.
    passed: usize,
    /// Where the newest one ends.
    head: u64,
}

const START: u64 = BLOCK_BYTES;

impl Ring {
    /// A log of `bytes` that has these frames, none of which will be needed when the next one is
    /// written.
    pub fn new(bytes: u64, frames: impl Iterator<Item = Place>) -> Self {
        let slots: VecDeque<_> = frames.map(|place| Slot { place, needed: 0 }).collect();
        Self {
            end: bytes / BLOCK_BYTES * BLOCK_BYTES,
            passed: slots.len(),
            head: slots.back().map_or(START, |Slot { place, .. }| place.at + place.bytes),
            slots,
        }
    }

    /// The oldest frame that is needed.
    pub fn tail(&self) -> Option<u64> {
        self.slots.get(self.passed).map(|slot| slot.place.sequence)
    }

    /// Where a frame of this length can go now, if one of `spare` bytes can go behind it.
    pub fn place(&self, bytes: u64, spare: u64) -> Option<u64> {
        let Some(oldest) = self.slots.front().map(|slot| slot.place.at) else {
            return (START + bytes + spare <= self.end).then_some(START);
        };
        let at = self.behind(self.head, oldest, bytes)?;
        self.behind(at + bytes, oldest, spare).map(|_| at)
    }

    /// The same where the newest frame ends at `head`.
    fn behind(&self, head: u64, oldest: u64, bytes: u64) -> Option<u64> {
        if head <= oldest {
            return (head + bytes < oldest).then_some(head);
        }
        if head + bytes <= self.end {
            return Some(head);
        }
        (START + bytes < oldest).then_some(START)
    }

    /// A frame, newer than all others, is on its way to the place of [`Self::place`].
    pub fn write(&mut self, place: Place, needed: u32) {
        self.slots.push_back(Slot { place, needed });
        self.head = place.at + place.bytes;
        self.pass();
    }

    /// A frame is stable that names this tail.
    pub fn written(&mut self, tail: u64) {
        while self.slots.front().is_some_and(|slot| slot.place.sequence < tail) {
            self.slots.pop_front();
            self.passed = self.passed.saturating_sub(1);
        }
    }

    /// A record of this frame is not needed any more.
    pub fn release(&mut self, sequence: u64) {
        let index = self.slots.binary_search_by_key(&sequence, |slot| slot.place.sequence);
        if let Some(slot) = index.ok().and_then(|index| self.slots.get_mut(index)) {
            slot.needed = slot.needed.saturating_sub(1);
        }
        self.pass();
    }

    /// A record of this frame, which was found, is needed.
    pub fn hold(&mut self, sequence: u64) {
        let index = self.slots.binary_search_by_key(&sequence, |slot| slot.place.sequence);
        if let Ok(index) = index {
            self.slots[index].needed += 1;
            self.passed = self.passed.min(index);
        }
    }

    fn pass(&mut self) {
        while self.slots.get(self.passed).is_some_and(|slot| slot.needed == 0) {
            self.passed += 1;
        }
    }

    /// Bytes that nothing needs as far as the newest written frame says.
    pub fn free(&self) -> u64 {
        let all = self.end - START;
        let Some(oldest) = self.slots.front().map(|slot| slot.place.at) else { return all };
        match self.head > oldest {
            true => all - (self.head - oldest),
            false => oldest - self.head,
        }
    }

    /// Bytes that would be free if a frame recorded it.
    pub fn unrecorded(&self) -> u64 {
        self.slots.iter().take(self.passed).map(|slot| slot.place.bytes).sum()
    }

    /// Bytes that something needs.
    pub fn in_use(&self) -> u64 {
        (self.capacity() - self.free()).saturating_sub(self.unrecorded())
    }

    /// Whether data that cost so much have room.
    pub fn admits(&self, cost: u64, reserved: u64) -> bool {
        self.capacity() - self.free() + cost <= self.room(reserved)
    }

    /// What data may take, behind which there is room for what must always find some: a quarter of
    /// the log for records of what is past, without which nothing becomes free, and `reserved`
    /// bytes.
    pub fn room(&self, reserved: u64) -> u64 {
        self.capacity().saturating_sub(self.end / 4).saturating_sub(reserved)
    }

    pub fn capacity(&self) -> u64 {
        self.end - START
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Frames of random lengths, released at random: none lies on another that a recovery
        /// after any number of written frames would read.
        #[test]
        fn nothing_needed_is_overwritten(
            spare in 0u64..9,
            steps in proptest::collection::vec((1u64..40, 0usize..9), 1..400),
        ) {
            let mut ring = Ring::new(128 * BLOCK_BYTES, std::iter::empty());
            let (mut next, spare) = (1, spare * BLOCK_BYTES);
            let mut needed: Vec<Place> = Vec::new();
            // As the newest written frame has it.
            let mut protected: Vec<Place> = Vec::new();
            for (blocks, released) in steps {
                let bytes = blocks * BLOCK_BYTES;
                if let Some(at) = ring.place(bytes, spare) {
                    // Other logs have some of the sequence.
                    next += 1 + blocks % 3;
                    let place = Place { log: 0, sequence: next, at, bytes };
                    let overlaps = |other: &Place| {
                        at < other.at + other.bytes && other.at < at + bytes
                    };
                    prop_assert!(at >= START && at + bytes <= ring.end);
                    prop_assert!(!protected.iter().any(overlaps), "{:?} over {:?}", place, protected);
                    let tail = ring.tail().unwrap_or(next);
                    ring.write(place, 1);
                    prop_assert!(ring.place(spare, 0).is_some());
                    needed.push(place);
                    protected.push(place);
                    prop_assert!(needed[0].sequence >= tail);
                    ring.written(tail);
                    protected.retain(|place| place.sequence >= tail);
                }
                for _ in 0..released.min(needed.len()) {
                    let gone = needed.remove(released % needed.len());
                    ring.release(gone.sequence);
                }
                let used: u64 = protected.iter().map(|place| place.bytes).sum();
                prop_assert!(ring.free() <= ring.capacity() - used);
            }
        }
    }
}
