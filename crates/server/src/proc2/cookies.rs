//! Where a listing goes on: the store's cookies of 64 bits in the protocol's 32.
//!
//! | 32 bits | the store's cookie | known |
//! |---|---|---|
//! | below 2^31 | the same number | always |
//! | `10` and 30 bits | one whose upper bits these are | exactly while it is remembered |
//! | `11` and 30 bits | any | while it is remembered, else the call fails |
//!
//! Small cookies, those of memory and of most file systems, are sent as they are. ext4's are hashes
//! of names in their upper half: they get the second form. Forgotten, the upper bits alone still
//! lead to the right place or a little before it, so that a name may come twice, but none is left
//! out. That holds over a restart of the server, too. Where two cookies of a directory share their
//! upper bits, the later one gets a number of the third form.
//!
//! What is remembered has a maximum, over which the oldest is forgotten.

use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasher, RandomState};

use parking_lot::Mutex;

use crate::types::{Handle, Status};

/// Cookies that are remembered, some 30 bytes each: several listings of 10,000 entries at once.
const REMEMBERED_MAX: usize = 65_536;

const LARGE: u32 = 0b10 << 30;
const SERIAL: u32 = 0b11 << 30;
const BITS: u32 = (1 << 30) - 1;

/// What of a cookie is not in a number of the second form; cookies have 63 bits.
const LOWER_BITS: u32 = 33;

/// Large cookies given out of late.
#[derive(Debug, Default)]
pub(crate) struct Cookies {
    state: RandomState,
    table: Mutex<Table>, // guards itself
}

#[derive(Debug, Default)]
struct Table {
    /// Store cookies by the hash of directory and number, keyed with a secret: two that are the
    /// same are not to be met.
    exact: HashMap<u64, u64>,
    /// Its keys, oldest first.
    order: VecDeque<u64>,
    serial_next: u32,
}

/// A directory of an export.
#[derive(Clone, Copy, Debug, Hash)]
pub(super) struct Dir {
    pub(super) export: u32,
    pub(super) handle: Handle,
}

impl Cookies {
    /// The number for a cookie of the store.
    pub(super) fn number(&self, dir: Dir, cookie: u64) -> u32 {
        match u32::try_from(cookie) {
            Ok(small) if small < LARGE => small,
            _ => self.remember(dir, cookie),
        }
    }

    fn remember(&self, dir: Dir, cookie: u64) -> u32 {
        let key = |number| self.state.hash_one((dir, number));
        let number = LARGE | upper(cookie);
        let mut table = self.table.lock();
        match table.exact.get(&key(number)) {
            Some(&known) if known == cookie => number,
            None => {
                table.insert(key(number), cookie);
                number
            }
            Some(_) => {
                let number = SERIAL | (table.serial_next & BITS);
                table.serial_next = table.serial_next.wrapping_add(1);
                table.insert(key(number), cookie);
                number
            }
        }
    }

    /// The cookie of the store for a number.
    ///
    /// # Errors
    /// `BadCookie` when it was never given out, or so long ago that it is forgotten and nothing can
    /// be read from the number itself.
    pub(super) fn cookie(&self, dir: Dir, number: u32) -> Result<u64, Status> {
        if number < LARGE {
            return Ok(u64::from(number));
        }
        let known = self.table.lock().exact.get(&self.state.hash_one((dir, number))).copied();
        match known {
            Some(cookie) => Ok(cookie),
            // Upper bits that are all zero say nothing: it would begin anew, again and again.
            None if number >= SERIAL || number & BITS == 0 => Err(Status::BadCookie),
            None => Ok(u64::from(number & BITS) << LOWER_BITS),
        }
    }
}

impl Table {
    /// Enters what is new, or replaces what has the key.
    fn insert(&mut self, key: u64, cookie: u64) {
        if self.exact.insert(key, cookie).is_some() {
            return;
        }
        if self.order.len() == REMEMBERED_MAX {
            let oldest = self.order.pop_front();
            oldest.map(|oldest| self.exact.remove(&oldest));
        }
        self.order.push_back(key);
    }
}

fn upper(cookie: u64) -> u32 {
    u32::try_from(cookie >> LOWER_BITS).unwrap_or(u32::MAX) & BITS
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dir(id: u8) -> Dir {
        Dir { export: 1, handle: Handle::new(&[id]).unwrap() }
    }

    const HASH: u64 = 0x1234_5678_9abc_def0;

    #[test]
    fn small_cookies_are_themselves_and_large_ones_come_back() {
        let cookies = Cookies::default();
        for cookie in [0, 1, 0x7fff_ffff] {
            assert_eq!(u64::from(cookies.number(dir(1), cookie)), cookie);
        }
        for cookie in [0x8000_0000, HASH, u64::MAX >> 1] {
            let number = cookies.number(dir(1), cookie);
            assert!(number >= LARGE);
            assert_eq!(cookies.cookie(dir(1), number), Ok(cookie));
            assert_eq!(cookies.number(dir(1), cookie), number);
        }
        let remembered = cookies.table.lock().exact.len();
        assert_eq!((cookies.cookie(dir(1), 7), remembered), (Ok(7), 3));
    }

    #[test]
    fn what_is_forgotten_leads_to_the_place_or_before_it() {
        let number = Cookies::default().number(dir(1), HASH);
        let place = Cookies::default().cookie(dir(1), number).unwrap();
        assert_eq!(place, HASH >> 33 << 33);
        let without_upper_bits = Cookies::default().cookie(dir(1), LARGE);
        assert_eq!(without_upper_bits, Err(Status::BadCookie));
    }

    #[test]
    fn cookies_with_the_same_upper_bits_have_numbers_of_their_own() {
        let cookies = Cookies::default();
        let all: Vec<u64> = (0..10).map(|low| HASH + low).collect();
        let numbers: Vec<u32> = all.iter().map(|&cookie| cookies.number(dir(1), cookie)).collect();
        for (&cookie, &number) in all.iter().zip(&numbers) {
            assert_eq!(cookies.cookie(dir(1), number), Ok(cookie));
        }
        assert_eq!(cookies.cookie(dir(2), numbers[1]), Err(Status::BadCookie));
        assert_eq!(cookies.cookie(dir(1), SERIAL | 99), Err(Status::BadCookie));
    }

    #[test]
    fn directories_do_not_share_their_cookies() {
        let cookies = Cookies::default();
        let number = cookies.number(dir(1), HASH);
        assert_eq!(cookies.number(dir(2), HASH + 1), number);
        assert_eq!(cookies.cookie(dir(1), number), Ok(HASH));
        assert_eq!(cookies.cookie(dir(2), number), Ok(HASH + 1));
    }

    #[test]
    fn the_oldest_are_forgotten() {
        let cookies = Cookies::default();
        let cookie = |at: usize| (at as u64 + 1) << LOWER_BITS | 5;
        for at in 0..=REMEMBERED_MAX {
            cookies.number(dir(1), cookie(at));
        }
        let place = |at| cookies.cookie(dir(1), LARGE | upper(cookie(at)));
        assert_eq!(place(0), Ok(cookie(0) - 5));
        assert_eq!(place(1), Ok(cookie(1)));
        let table = cookies.table.lock();
        assert_eq!((table.exact.len(), table.order.len()), (REMEMBERED_MAX, REMEMBERED_MAX));
    }
}
