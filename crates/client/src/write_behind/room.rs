//! Memory for data that the server does not hold for good: who may add to it, and when. A decision
//! without I/O.
//!
//! Up to half of the bound everybody writes at the speed of memory. Beyond, a writer is let in at
//! the pace at which the server answers, slowed down further the nearer the bound is: for every
//! byte that is acknowledged, a share of a byte is let in, from one at half of the bound to none at
//! the bound. So a fast writer meets many short waits, each about one call long, instead of one
//! that lasts until half of the memory is free. Those who wait are let in in their order.
//!
//! A file of which little is held waits for nobody below the bound: who closes a small file beside
//! a writer of a large one would wait for all that the other wants room for.

use std::collections::VecDeque;

/// What is little of a file (guess): a small call, and so small a share of the bound.
const LITTLE_BYTES: u64 = 64 << 10;
const LITTLE_SHARE: u64 = 16;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Room {
    bytes_max: u64,
    /// Below this nobody waits.
    free_until: u64,
    held_bytes: u64,
    /// The most that it was since it was last read.
    peak_bytes: u64,
    /// What may be let in beyond `free_until`.
    tokens: u64,
    waiting: VecDeque<(Ticket, u64)>,
    next_ticket: u64,
}

/// The name of one who waits.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub(super) struct Ticket(u64);

impl Room {
    pub(super) fn new(bytes_max: u64) -> Self {
        Self {
            bytes_max,
            free_until: bytes_max / 2,
            held_bytes: 0,
            peak_bytes: 0,
            tokens: 0,
            waiting: VecDeque::new(),
            next_ticket: 0,
        }
    }

    /// Most bytes to ask for at once.
    pub(super) fn piece_bytes_max(&self) -> u64 {
        (self.bytes_max / 8).max(1)
    }

    #[cfg(test)]
    fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// Lets `bytes` in now, or gives a ticket that [`Room::admitted`] names later. `of_file`: what
    /// is held of their file.
    pub(super) fn ask(&mut self, bytes: u64, of_file: u64) -> Option<Ticket> {
        let little = LITTLE_BYTES.min(self.bytes_max / LITTLE_SHARE);
        let is_little = of_file.saturating_add(bytes) <= little;
        if is_little && self.held_bytes.saturating_add(bytes) <= self.bytes_max {
            self.hold(bytes);
            return None;
        }
        if self.waiting.is_empty() && self.take(bytes) {
            return None;
        }
        self.next_ticket += 1;
        let ticket = Ticket(self.next_ticket);
        self.waiting.push_back((ticket, bytes));
        Some(ticket)
    }

    /// Who may go on now, in order.
    pub(super) fn admitted(&mut self) -> Option<Ticket> {
        let &(ticket, bytes) = self.waiting.front()?;
        if !self.take(bytes) {
            return None;
        }
        self.waiting.pop_front();
        Some(ticket)
    }

    /// One who waited has gone away. What it was already let in for is for the caller to release.
    pub(super) fn forget(&mut self, ticket: Ticket) {
        self.waiting.retain(|(other, _)| *other != ticket);
    }

    /// The server has answered for so many bytes, whether or not they are stable.
    pub(super) fn on_acknowledged(&mut self, bytes: u64) {
        let above = self.bytes_max.saturating_sub(self.free_until).max(1);
        let left = self.bytes_max.saturating_sub(self.held_bytes).min(above);
        let share = u128::from(bytes) * u128::from(left) / u128::from(above);
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        // Tokens that nobody takes are not saved up for a burst.
        let tokens_max = 2 * self.piece_bytes_max();
        self.tokens = self.tokens.saturating_add(share).min(tokens_max);
    }

    /// What is held has become this much more or less than was let in.
    pub(super) fn adjust(&mut self, admitted: u64, became: i64) {
        debug_assert!(admitted <= self.held_bytes, "{admitted} of {} held bytes", self.held_bytes);
        let held = self.held_bytes.saturating_sub(admitted);
        debug_assert!(held.checked_add_signed(became).is_some(), "{became} to {held} held bytes");
        self.held_bytes = held.saturating_add_signed(became);
    }

    /// The most that was held since it was last read, and what is now.
    pub(super) fn take_peak_bytes(&mut self) -> (u64, u64) {
        (std::mem::replace(&mut self.peak_bytes, self.held_bytes), self.held_bytes)
    }

    fn take(&mut self, bytes: u64) -> bool {
        let then = self.held_bytes.saturating_add(bytes);
        if then > self.free_until && self.held_bytes > 0 {
            if then > self.bytes_max || self.tokens < bytes {
                return false;
            }
            self.tokens -= bytes;
        }
        debug_assert!(then <= self.bytes_max || self.held_bytes == 0, "more than all goes alone");
        self.hold(bytes);
        true
    }

    fn hold(&mut self, bytes: u64) {
        self.held_bytes = self.held_bytes.saturating_add(bytes);
        self.peak_bytes = self.peak_bytes.max(self.held_bytes);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MUCH: u64 = LITTLE_BYTES;

    #[test]
    fn who_has_little_passes_those_who_wait_as_long_as_there_is_room() {
        let mut room = Room::new(1 << 20);
        assert_eq!(room.ask(512 << 10, MUCH), None);
        let large = room.ask(400 << 10, MUCH).unwrap();
        assert!((0..8).all(|_| room.ask(60 << 10, 0).is_none()));
        assert!(room.ask(60 << 10, 0).is_some(), "nobody passes the bound");
        assert!(room.ask(10 << 10, 60 << 10).is_some(), "it is not little any more");
        assert_eq!(room.admitted(), None);
        room.adjust(900 << 10, 0);
        assert_eq!(room.admitted(), Some(large));
    }

    #[test]
    fn nobody_waits_up_to_half_of_the_bound_and_nobody_passes_the_bound() {
        let mut room = Room::new(1_000);
        assert_eq!(room.ask(500, MUCH), None);
        let first = room.ask(100, MUCH).unwrap();
        let second = room.ask(100, MUCH).unwrap();
        assert_eq!(room.admitted(), None);
        room.on_acknowledged(100);
        assert_eq!(room.admitted(), Some(first), "one byte for one at half of the bound");
        room.on_acknowledged(100);
        assert_eq!(room.admitted(), None, "and less above");
        room.on_acknowledged(100);
        assert_eq!(room.admitted(), Some(second));
        for _ in 0..100 {
            room.ask(100, MUCH);
            room.on_acknowledged(1_000);
            room.admitted();
        }
        assert!(room.held_bytes() <= 1_000, "{}", room.held_bytes());
    }

    #[test]
    fn what_is_released_lets_those_in_who_wait_in_their_order() {
        let mut room = Room::new(1_000);
        assert_eq!(room.ask(400, MUCH), None);
        assert_eq!(room.ask(100, MUCH), None);
        let tickets = [
            room.ask(300, MUCH).unwrap(),
            room.ask(10, MUCH).unwrap(),
            room.ask(10, MUCH).unwrap(),
        ];
        room.adjust(0, -400);
        assert_eq!(room.admitted(), Some(tickets[0]));
        room.forget(tickets[1]);
        assert_eq!(room.admitted(), Some(tickets[2]));
        assert_eq!(room.admitted(), None);
        assert_eq!(room.held_bytes(), 410);
    }

    #[test]
    fn one_who_asks_for_more_than_there_is_gets_it_when_nothing_is_held() {
        let mut room = Room::new(10);
        assert_eq!(room.ask(100, MUCH), None);
        assert!(room.ask(1, MUCH).is_some());
        room.adjust(100, 0);
        assert!(room.admitted().is_some());
    }

    #[test]
    fn tokens_are_not_saved_up() {
        let mut room = Room::new(800);
        assert_eq!(room.ask(400, MUCH), None);
        room.on_acknowledged(u64::MAX / 2);
        assert_eq!(room.ask(100, MUCH), None);
        assert_eq!(room.ask(100, MUCH), None);
        assert!(room.ask(100, MUCH).is_some());
    }
}
