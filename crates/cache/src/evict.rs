//! What goes when a cache is full: S3-FIFO (Yang et al., SOSP 2023). Pure.
//!
//! ```text
//!   new ──► small (a tenth) ──used again──► main ──used──┐
//!             │                  ▲           │ ◄─────────┘
//!             ▼ not used         │ comes     ▼ not used
//!            gone ──► ghosts ────┘ back     gone
//! ```
//!
//! What is read once, as by a backup, goes through the small queue and leaves the main one alone.
//! A ghost is a name that went lately: what comes back has been wanted twice.
//!
//! A segment is used when a place of it is read again: a program that reads through a file in small
//! pieces uses it once, however many reads that takes.
//!
//! Bounded by what is stored; as many ghosts as there are entries, and at least [`GHOSTS_MIN`].

use std::collections::{HashMap, HashSet, VecDeque};

use crate::key::{FileHash, Name};
use crate::limits::Filled;

/// Ghosts are remembered of so many at least.
pub const GHOSTS_MIN: usize = 1024;

/// Uses that count.
const USES_MAX: u8 = 3;

/// The part of the small queue.
const SMALL_PARTS: u64 = 10;

/// See the module's head.
#[derive(Debug, Default)]
pub struct Evictor {
    entries: HashMap<Name, Entry>,
    /// With the ticket of the entry: of another one, it is not there any more.
    small: VecDeque<(Name, u32)>,
    main: VecDeque<(Name, u32)>,
    ghosts: VecDeque<u64>,
    is_ghost: HashSet<u64>,
    pinned: HashSet<FileHash>,
    filled: Filled,
    small_bytes: u64,
    tickets: u32,
    /// The last look has found nothing but what is pinned, and nothing has changed since.
    is_stuck: bool,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    bytes: u64,
    /// How far into the segment the last read went.
    reached: u32,
    ticket: u32,
    uses: u8,
    is_small: bool,
}

impl Evictor {
    pub fn filled(&self) -> Filled {
        self.filled
    }

    pub fn bytes(&self, name: &Name) -> Option<u64> {
        self.entries.get(name).map(|entry| entry.bytes)
    }

    /// The segment takes so many bytes now; it may be new.
    pub fn stored(&mut self, name: Name, bytes: u64) {
        if let Some(entry) = self.entries.get_mut(&name) {
            self.filled.bytes = self.filled.bytes - entry.bytes + bytes;
            if entry.is_small {
                self.small_bytes = self.small_bytes - entry.bytes + bytes;
            }
            entry.bytes = bytes;
            return;
        }
        let is_small = !self.is_ghost.remove(&short(&name));
        self.insert(name, bytes, is_small);
    }

    /// As [`Evictor::stored`], of what was there before: an earlier process has judged it.
    pub fn found(&mut self, name: Name, bytes: u64) {
        if !self.entries.contains_key(&name) {
            self.insert(name, bytes, false);
        }
    }

    fn insert(&mut self, name: Name, bytes: u64, is_small: bool) {
        self.is_stuck &= self.pinned.contains(&name.file);
        self.tickets = self.tickets.wrapping_add(1);
        let entry = Entry { bytes, reached: 0, ticket: self.tickets, uses: 0, is_small };
        self.entries.insert(name, entry);
        self.filled.bytes += bytes;
        self.filled.files += 1;
        if is_small {
            self.small_bytes += bytes;
        }
        let queue = if is_small { &mut self.small } else { &mut self.main };
        queue.push_back((name, entry.ticket));
        self.compact();
    }

    /// These bytes of the segment were read, in units that the caller likes.
    pub fn used(&mut self, name: &Name, from: u32, to: u32) {
        if let Some(entry) = self.entries.get_mut(name) {
            if from < entry.reached {
                entry.uses = (entry.uses + 1).min(USES_MAX);
            }
            entry.reached = to;
        }
    }

    /// The segment has gone, whoever has removed it.
    pub fn removed(&mut self, name: &Name) -> bool {
        let Some(entry) = self.entries.remove(name) else { return false };
        self.filled.bytes -= entry.bytes;
        self.filled.files -= 1;
        if entry.is_small {
            self.small_bytes -= entry.bytes;
        }
        true
    }

    /// Those of a file, or all.
    pub fn names(&self, file: Option<FileHash>) -> Vec<Name> {
        let is_meant = |name: &&Name| file.is_none_or(|file| file == name.file);
        self.entries.keys().filter(is_meant).copied().collect()
    }

    /// The file's segments stay, or do not any more.
    pub fn pin(&mut self, file: FileHash, is_pinned: bool) {
        if is_pinned {
            self.pinned.insert(file);
        } else {
            self.pinned.remove(&file);
            self.is_stuck = false;
        }
    }

    /// These files' segments stay, and no others.
    pub fn set_pins(&mut self, files: impl IntoIterator<Item = FileHash>) {
        self.pinned = files.into_iter().collect();
        self.is_stuck = false;
    }

    pub fn is_pinned(&self, file: &FileHash) -> bool {
        self.pinned.contains(file)
    }

    /// What is to go next; it is taken for gone. None: all that is there is pinned.
    pub fn evict(&mut self) -> Option<Name> {
        if self.is_stuck {
            return None;
        }
        // Each look moves an entry on, takes a use off it, or drops a stale place.
        let looks_max = (self.small.len() + self.main.len()) * (usize::from(USES_MAX) + 2) + 1;
        for _ in 0..looks_max {
            let is_small_due = self.small_bytes > self.filled.bytes / SMALL_PARTS;
            let from_small = !self.small.is_empty() && (is_small_due || self.main.is_empty());
            let queue = if from_small { &mut self.small } else { &mut self.main };
            let Some((name, ticket)) = queue.pop_front() else { break };
            let Some(entry) = self.entries.get_mut(&name).filter(|entry| entry.ticket == ticket)
            else {
                continue;
            };
            let is_pinned = self.pinned.contains(&name.file);
            if is_pinned || entry.uses > 0 {
                entry.uses = if from_small { 0 } else { entry.uses.saturating_sub(1) };
                if entry.is_small {
                    entry.is_small = false;
                    self.small_bytes -= entry.bytes;
                }
                self.main.push_back((name, ticket));
                continue;
            }
            if from_small {
                self.remember(&name);
            }
            self.removed(&name);
            return Some(name);
        }
        self.is_stuck = true;
        None
    }

    fn remember(&mut self, name: &Name) {
        let ghost = short(name);
        if self.is_ghost.insert(ghost) {
            self.ghosts.push_back(ghost);
        }
        while self.ghosts.len() > self.entries.len().max(GHOSTS_MIN) {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.is_ghost.remove(&oldest);
            }
        }
    }

    /// Places of what was removed otherwise are dropped before they are as many as the others.
    fn compact(&mut self) {
        let (entries, places) = (&self.entries, self.small.len() + self.main.len());
        if places <= 2 * entries.len() + GHOSTS_MIN {
            return;
        }
        let is_there = |(name, ticket): &(Name, u32)| {
            entries.get(name).is_some_and(|entry| entry.ticket == *ticket)
        };
        self.small.retain(is_there);
        self.main.retain(is_there);
    }
}

/// Names of ghosts may be taken for each other: then something stays a little longer.
fn short(name: &Name) -> u64 {
    let head = u64::from_le_bytes(std::array::from_fn(|i| name.file.as_bytes()[i]));
    head ^ u64::from(name.segment).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn name(number: u64) -> Name {
        let mut bytes = [0; 16];
        bytes[..8].copy_from_slice(&number.to_le_bytes());
        Name { file: FileHash::from_bytes(bytes), segment: 0 }
    }

    /// Stores within so many bytes; gives what went.
    fn store(evictor: &mut Evictor, number: u64, bytes_max: u64) -> Vec<Name> {
        let mut gone = Vec::new();
        while evictor.filled().bytes + 1 > bytes_max {
            gone.push(evictor.evict().unwrap());
        }
        evictor.stored(name(number), 1);
        gone
    }

    #[test]
    fn a_scan_does_not_flush_what_is_used() {
        let mut evictor = Evictor::default();
        for number in 0..100 {
            store(&mut evictor, number, 1000);
            evictor.used(&name(number), 0, 1);
            evictor.used(&name(number), 0, 1);
        }
        for number in 1000..100_000 {
            store(&mut evictor, number, 1000);
            // In two pieces, each once.
            evictor.used(&name(number), 0, 1);
            evictor.used(&name(number), 1, 2);
        }
        let left = (0..100).filter(|number| evictor.bytes(&name(*number)).is_some()).count();
        assert_eq!(left, 100);
        assert!(evictor.ghosts.len() <= 1024 && evictor.is_ghost.len() <= 1024);
    }

    #[test]
    fn what_comes_back_goes_to_the_main_queue() {
        let mut evictor = Evictor::default();
        for number in 0..20 {
            store(&mut evictor, number, 10);
        }
        assert_eq!(evictor.bytes(&name(0)), None);
        store(&mut evictor, 0, 10);
        assert!(!evictor.entries[&name(0)].is_small);
    }

    #[test]
    fn pinned_files_stay_and_all_pinned_is_reported() {
        let mut evictor = Evictor::default();
        for number in 0..10 {
            evictor.stored(name(number), 1);
            evictor.pin(name(number).file, number != 5);
        }
        assert_eq!(evictor.evict(), Some(name(5)));
        assert_eq!(evictor.evict(), None);
        evictor.pin(name(2).file, false);
        assert_eq!(evictor.evict(), Some(name(2)));
        assert_eq!(evictor.filled(), Filled { bytes: 8, files: 8 });
    }

    proptest! {
        /// Sums are those of what is there, whatever happens, and everything can go.
        #[test]
        fn sums_are_right_and_all_can_go(
            steps in prop::collection::vec((0_u8..5, 0_u64..40, 1_u64..9), 0..400),
        ) {
            let mut evictor = Evictor::default();
            let mut there = HashMap::new();
            for (what, number, bytes) in steps {
                let name = name(number);
                match what {
                    0 | 1 => {
                        evictor.stored(name, bytes);
                        there.insert(name, bytes);
                    }
                    2 => evictor.used(&name, 0, 1),
                    3 => {
                        prop_assert_eq!(evictor.removed(&name), there.remove(&name).is_some());
                    }
                    _ => {
                        let gone = evictor.evict();
                        prop_assert_eq!(gone.is_some(), !there.is_empty());
                        gone.map(|gone| there.remove(&gone));
                    }
                }
                let filled = Filled { bytes: there.values().sum(), files: there.len() as u64 };
                prop_assert_eq!(evictor.filled(), filled);
                let small = evictor.entries.values().filter(|entry| entry.is_small);
                let small: u64 = small.map(|entry| entry.bytes).sum();
                prop_assert_eq!(evictor.small_bytes, small);
                let places = evictor.small.len() + evictor.main.len();
                prop_assert!(places <= 2 * evictor.entries.len() + GHOSTS_MIN + 1);
            }
            while let Some(gone) = evictor.evict() {
                prop_assert!(there.remove(&gone).is_some());
            }
            prop_assert!(there.is_empty());
            prop_assert_eq!(evictor.filled(), Filled::default());
        }
    }
}
