//! Which datagrams have come: each once, some twice, some late.
//!
//! Numbers count up from zero. A window of the newest [`WINDOW`] tells a datagram that was
//! overtaken from one that came before; what is older than the window counts as reordered, and a
//! second copy of it would count as one more.

use perf::units::{Instant, Nanos};

/// Numbers that are remembered: at a million datagrams a second, 65 ms of them.
pub const WINDOW: u64 = 1 << 16;

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Tally {
    pub bytes: u64,
    /// Of these, those of the first that came.
    pub first_bytes: u64,
    pub datagrams: u64,
    pub duplicates: u64,
    pub reordered: u64,
    /// One more than the highest number that came.
    next: u64,
    /// One bit for each number of the window, by its remainder.
    seen: Vec<u64>,
    first: Option<Instant>,
    last: Instant,
}

impl Tally {
    pub fn new() -> Self {
        Self {
            bytes: 0,
            first_bytes: 0,
            datagrams: 0,
            duplicates: 0,
            reordered: 0,
            next: 0,
            seen: vec![0; usize::try_from(WINDOW / 64).unwrap_or(0)],
            first: None,
            last: Instant::EPOCH,
        }
    }

    /// Datagram `number` has come; false when it had come before.
    pub fn arrived(&mut self, number: u64, bytes: usize, now: Instant) -> bool {
        if number >= self.next {
            // What is forgotten makes room; a leap over the window forgets all.
            let leap = (number - self.next).min(WINDOW);
            (0..=leap).for_each(|back| self.mark(number.wrapping_sub(back), false));
            self.next = number.saturating_add(1);
        } else if self.next - number <= WINDOW {
            if self.is_marked(number) {
                self.duplicates += 1;
                return false;
            }
            self.reordered += 1;
        } else {
            self.reordered += 1;
        }
        if number < self.next && self.next - number <= WINDOW {
            self.mark(number, true);
        }
        self.datagrams += 1;
        self.bytes = self.bytes.saturating_add(bytes as u64);
        if self.first.is_none() {
            self.first = Some(now);
            self.first_bytes = bytes as u64;
        }
        self.last = now;
        true
    }

    /// From the first to the last that came.
    pub fn span(&self) -> Nanos {
        self.first.map_or(Nanos::ZERO, |first| self.last.since(first))
    }

    /// When the last one came, if any did.
    pub fn last(&self) -> Option<Instant> {
        self.first.map(|_| self.last)
    }

    fn place(number: u64) -> (usize, u64) {
        let bit = number % WINDOW;
        (usize::try_from(bit / 64).unwrap_or(0), 1 << (bit % 64))
    }

    fn mark(&mut self, number: u64, seen: bool) {
        let (word, bit) = Self::place(number);
        match seen {
            true => self.seen[word] |= bit,
            false => self.seen[word] &= !bit,
        }
    }

    fn is_marked(&self, number: u64) -> bool {
        let (word, bit) = Self::place(number);
        self.seen[word] & bit != 0
    }
}

impl Default for Tally {
    fn default() -> Self {
        Self::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(numbers: impl IntoIterator<Item = u64>) -> Tally {
        let mut tally = Tally::new();
        for (at, number) in numbers.into_iter().enumerate() {
            tally.arrived(number, 100, Instant::from_nanos(at as u64));
        }
        tally
    }

    #[test]
    fn what_comes_in_order_is_counted_once() {
        let tally = tally(0..200_000);
        assert_eq!((tally.datagrams, tally.duplicates, tally.reordered), (200_000, 0, 0));
        assert_eq!((tally.bytes, tally.span()), (20_000_000, Nanos::from_nanos(199_999)));
    }

    #[test]
    fn gaps_copies_and_late_ones_are_distinguished() {
        let seen = tally([0, 1, 5, 3, 3, 5, 2, 2, 6]);
        assert_eq!((seen.datagrams, seen.duplicates, seen.reordered), (6, 3, 2));
        let leap = tally([7, 7 + WINDOW, 8, 8, 7]);
        assert_eq!((leap.datagrams, leap.duplicates, leap.reordered), (4, 1, 2));
    }

    #[test]
    fn the_ends_of_the_numbers_are_no_trouble() {
        let ends = tally([u64::MAX, 0, u64::MAX, u64::MAX - 1]);
        assert!(ends.datagrams >= 3);
        assert_eq!(tally([]).span(), Nanos::ZERO);
        assert_eq!(tally([]).last(), None);
    }

    /// Against a plain set, where nothing is older than the window.
    #[test]
    fn the_window_counts_as_a_set_does() {
        let mut state = 12_345_u64;
        let mut numbers = Vec::new();
        for at in 0..20_000_u64 {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            numbers.push(at + (state >> 40) % 1_000);
        }
        let unique: std::collections::BTreeSet<u64> = numbers.iter().copied().collect();
        let counted = tally(numbers.iter().copied());
        assert_eq!(counted.datagrams, unique.len() as u64);
        assert_eq!(counted.duplicates, (numbers.len() - unique.len()) as u64);
    }
}
