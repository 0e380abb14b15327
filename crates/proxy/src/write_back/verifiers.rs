//! Cookie verifiers of listings.
//!
//! ```text
//!   of the log (3) | of the life (2) | number (3)     a row has the rest
//! ```
//!
//! A listing skips names of the origin that are served from here, and has them at its end. So it
//! goes on where that is known: in the life in which it has begun. One that has nothing to skip
//! has the origin's verifier itself, and goes on in any life.
//!
//! Bounded: [`ROWS_MAX`] rows; the oldest goes, and its listings begin again.

use std::collections::VecDeque;
use std::time::Duration;

use siphasher::sip128::SipHasher24;

/// 32 bytes each.
const ROWS_MAX: usize = 1 << 16;

const LOG_BYTES: usize = 3;
/// With those of the log.
const LIFE_BYTES: usize = 5;

const NUMBERS: u32 = (1 << 24) - 1;

pub(crate) type Verifier = [u8; 8];

/// What a listing has begun with.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Begun {
    /// The origin's verifier.
    pub(crate) origin: Verifier,
    /// See `Node::names_left`. None: no name had to be skipped.
    pub(crate) names_left: Option<u64>,
}

/// See the module's head.
#[derive(Debug)]
pub(crate) struct Verifiers {
    head: [u8; LIFE_BYTES],
    rows: VecDeque<Begun>,
    /// The number of the next row.
    next: u32,
}

impl Verifiers {
    /// Of a life of this log that begins at this time of day.
    pub(crate) fn new(log: &[u8; 16], begins: Duration) -> Self {
        let hash = |of: &[u8]| SipHasher24::new_with_key(log).hash(of).as_bytes();
        let (log, life) = (hash(b"verifiers"), hash(&begins.as_nanos().to_be_bytes()));
        let head = std::array::from_fn(|i| if i < LOG_BYTES { log[i] } else { life[i] });
        Self { head, rows: VecDeque::new(), next: 0 }
    }

    /// What a listing with this verifier has begun with. None: it is of another life, or too old.
    pub(crate) fn find(&self, verifier: Verifier) -> Option<Begun> {
        if !self.is_of_log(verifier) {
            return Some(Begun { origin: verifier, names_left: None });
        }
        let [head @ .., high, middle, low] = verifier;
        let number = u32::from_be_bytes([0, high, middle, low]);
        let rows = usize::try_from(self.next.wrapping_sub(number) & NUMBERS).ok()?;
        let row = self.rows.get(self.rows.len().checked_sub(rows)?);
        row.filter(|_| head == self.head).copied()
    }

    /// The verifier of such a listing: one of these, if it has one already.
    pub(crate) fn of(&mut self, begun: Begun, known: [Verifier; 2]) -> Verifier {
        if begun.names_left.is_none() && !self.is_of_log(begun.origin) {
            return begun.origin;
        }
        let known = known.into_iter().find(|known| self.find(*known) == Some(begun));
        known.unwrap_or_else(|| self.add(begun))
    }

    fn add(&mut self, begun: Begun) -> Verifier {
        if self.rows.len() == ROWS_MAX {
            self.rows.pop_front();
        }
        self.rows.push_back(begun);
        let [_, number @ ..] = self.next.to_be_bytes();
        self.next = (self.next + 1) & NUMBERS;
        let mut verifier = [0; 8];
        verifier[..LIFE_BYTES].copy_from_slice(&self.head);
        verifier[LIFE_BYTES..].copy_from_slice(&number);
        verifier
    }

    fn is_of_log(&self, verifier: Verifier) -> bool {
        verifier[..LOG_BYTES] == self.head[..LOG_BYTES]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOG: [u8; 16] = [7; 16];

    fn of_life(seconds: u64) -> Verifiers {
        Verifiers::new(&LOG, Duration::from_secs(seconds))
    }

    fn begun(names_left: u64) -> Begun {
        Begun { origin: [9; 8], names_left: Some(names_left) }
    }

    #[test]
    fn a_verifier_is_good_in_its_life_and_the_origins_in_any() {
        let (mut first, next) = (of_life(1), of_life(2));
        let given = [0, 1, 1 << 40].map(|left| (begun(left), first.of(begun(left), [[0; 8]; 2])));
        for (begun, verifier) in given {
            assert_eq!(first.find(verifier), Some(begun));
            assert_eq!(first.of(begun, [[0; 8], verifier]), verifier, "it has one");
            assert_eq!(next.find(verifier), None);
        }
        let plain = Begun { names_left: None, ..begun(0) };
        assert_eq!(first.of(plain, [[0; 8]; 2]), plain.origin);
        assert_eq!(next.find(plain.origin), Some(plain));
        // An origin may have one that looks like ours.
        let alike = Begun { origin: given[0].1, names_left: None };
        let verifier = first.of(alike, [[0; 8]; 2]);
        assert_eq!(first.find(verifier), Some(alike));
    }

    #[test]
    fn the_oldest_verifiers_go_also_when_numbers_begin_again() {
        let mut verifiers = of_life(1);
        verifiers.next = NUMBERS - 1;
        let none = [[0; 8]; 2];
        let given: Vec<_> = (0..=ROWS_MAX as u64).map(|n| verifiers.of(begun(n), none)).collect();
        assert_eq!(verifiers.find(given[0]), None);
        for n in [1, 2, ROWS_MAX] {
            assert_eq!(verifiers.find(given[n]), Some(begun(n as u64)));
        }
        let [head @ .., _, _, _] = given[1];
        let [_, number @ ..] = verifiers.next.to_be_bytes();
        let next: Vec<u8> = head.into_iter().chain(number).collect();
        assert_eq!(verifiers.find(next.try_into().unwrap()), None, "not given yet");
    }
}
