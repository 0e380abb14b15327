//! Calls that wait for their reply, by connection and transaction number.
//!
//! At most [`CALLS_MAX`] wait. That many are there when a capture lacks replies, so one more makes
//! the older half of them count as unanswered, but for those younger than
//! [`PATIENCE_WHEN_FULL_NS`]; where all are, it is not followed.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::ids::{FileId, FlowId};
use super::message::Guard;
use super::operation::Operation;
use super::outstanding::{Generation, Load};
use super::work::Work;

/// Calls that wait.
pub const CALLS_MAX: usize = 1 << 18;
/// After this time a call counts as unanswered.
pub const PATIENCE_NS: u64 = 120_000_000_000;
/// So long after its first sending a call over UDP that was not retransmitted was given up by its
/// client: more than twice the first timer of Linux's client (1.1 s). A guess.
const UDP_PATIENCE_NS: u64 = 2_500_000_000;
/// And so many times as long after the last as that was after the one before: timers double.
const UDP_BACKOFF: u64 = 4;
/// After this time it may, when [`CALLS_MAX`] wait.
pub(super) const PATIENCE_WHEN_FULL_NS: u64 = 1_000_000_000;
/// All that wait are looked at for that once in so much of the capture's time.
const LOOKS_APART_NS: u64 = 250_000_000;

/// A connection and a transaction number.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) flow: FlowId,
    /// Calls of the server to the client have numbers of their own.
    pub(super) from_server: bool,
    pub(super) xid: u32,
}

/// A call that waits.
#[derive(Clone, Debug)]
pub(super) struct Open {
    pub(super) operation: Operation,
    pub(super) first_ns: u64,
    pub(super) last_ns: u64,
    pub(super) file: FileId,
    pub(super) offset: u64,
    pub(super) count: u32,
    pub(super) stable: u8,
    /// Place, size and stability were captured.
    pub(super) is_sized: bool,
    pub(super) len: u32,
    pub(super) retransmissions: u16,
    pub(super) outstanding: u32,
    /// When it is late, if it is outstanding by then.
    pub(super) due_ns: u64,
    pub(super) guard: Guard,
    pub(super) version: u32,
    pub(super) frame: u64,
    /// Its last byte was captured.
    pub(super) ends_known: bool,
    /// When it was sent for the last time.
    pub(super) repeated_ns: u64,
    /// When its client gives it up, unless it is retransmitted; none over TCP.
    pub(super) until_ns: Option<u64>,
    /// How it counts as outstanding, if it does.
    pub(super) generation: Option<Generation>,
    pub(super) counts: Counts,
    /// The call that a relay passed on as this one.
    pub(super) outer: Option<Key>,
    /// When a relay passed it on, and when it got the reply (0 before).
    pub(super) inner: Option<(u64, u64)>,
    /// The name in a LOOKUP and its like.
    pub(super) name: Vec<u8>,
}

/// What a call counts for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Counts {
    /// Everything.
    Whole,
    /// A filter wants other operations: it counts for hosts and connections only.
    Pace,
    /// A filter wants other hosts or another time: it is remembered so that its reply is not taken
    /// for one without a call.
    Nothing,
    /// A relay passed it on.
    PassedOn,
}

impl Counts {
    /// It counts for hosts and connections.
    pub(super) const fn is_paced(self) -> bool {
        matches!(self, Self::Whole | Self::Pace)
    }
}

impl Open {
    pub(super) fn work(&self) -> Work {
        Work::of(self.operation.kind(), self.is_sized.then_some(self.stable > 0))
    }

    /// What it counts for, as long as it is outstanding.
    pub(super) fn load(&self) -> Load {
        Load::of(self.work(), self.counts == Counts::Whole)
    }

    /// Until when a client waits that sends a call over UDP at `now` for the first time.
    pub(super) const fn patience(now: u64) -> u64 {
        now.saturating_add(UDP_PATIENCE_NS)
    }

    /// It was retransmitted.
    pub(super) fn repeated(&mut self, now: u64) {
        self.retransmissions = self.retransmissions.saturating_add(1);
        let wait_ns = now.saturating_sub(self.repeated_ns).saturating_mul(UDP_BACKOFF);
        self.until_ns = self.until_ns.map(|_| now.saturating_add(wait_ns.max(UDP_PATIENCE_NS)));
        self.repeated_ns = now;
    }
}

#[derive(Debug, Default)]
pub(super) struct Calls {
    open: HashMap<u64, u32, RandomState>,
    slots: Vec<Open>,
    free: Vec<u32>,
    /// When room was looked for last.
    looked_ns: Option<u64>,
}

impl Key {
    fn word(self) -> u64 {
        (u64::from(self.flow.0) << 33) | (u64::from(self.from_server) << 32) | u64::from(self.xid)
    }

    fn from_word(word: u64) -> Self {
        Self {
            flow: FlowId(u32::try_from(word >> 33).unwrap_or(0)),
            from_server: word & (1 << 32) != 0,
            xid: u32::try_from(word & 0xffff_ffff).unwrap_or(0),
        }
    }
}

impl Calls {
    pub(super) fn len(&self) -> usize {
        self.open.len()
    }

    pub(super) fn is_full(&self) -> bool {
        self.open.len() >= CALLS_MAX
    }

    pub(super) fn find(&mut self, key: Key) -> Option<&mut Open> {
        let slot = *self.open.get(&key.word())?;
        self.slots.get_mut(slot as usize)
    }

    /// Keeps a call, with a buffer for its name that was used before if there is one. False when
    /// there is no place for it.
    pub(super) fn insert(&mut self, key: Key, call: Open, name: &[u8]) -> bool {
        if self.is_full() {
            return false;
        }
        let slot = match self.free.pop() {
            Some(slot) => {
                let old = &mut self.slots[slot as usize];
                let mut buffer = std::mem::take(&mut old.name);
                buffer.clear();
                *old = Open { name: buffer, ..call };
                slot
            }
            None => {
                let Ok(slot) = u32::try_from(self.slots.len()) else { return false };
                self.slots.push(call);
                slot
            }
        };
        self.slots[slot as usize].name.extend_from_slice(name);
        self.open.insert(key.word(), slot);
        true
    }

    /// Takes a call out. What is returned may be overwritten by the next call.
    pub(super) fn remove(&mut self, key: Key) -> Option<&Open> {
        let slot = self.open.remove(&key.word())?;
        self.free.push(slot);
        self.slots.get(slot as usize)
    }

    /// Takes out what is older than [`PATIENCE_NS`], unless its client still waits for it.
    pub(super) fn expire(
        &mut self,
        now: u64,
        waits: impl Fn(Key, &Open) -> bool,
    ) -> Vec<(Key, Open)> {
        self.take_out(now.saturating_sub(PATIENCE_NS), waits)
    }

    /// Makes room in a full table, if it can: takes out the older half.
    pub(super) fn make_room(&mut self, now: u64) -> Vec<(Key, Open)> {
        let is_soon = |last| now.saturating_sub(last) < LOOKS_APART_NS;
        if self.looked_ns.is_some_and(is_soon) {
            return Vec::new();
        }
        self.looked_ns = Some(now);
        let mut times: Vec<u64> = self.waiting().map(|(_, call)| call.last_ns).collect();
        let half = times.len() / 2;
        if half == 0 {
            return Vec::new();
        }
        let (_, &mut median, _) = times.select_nth_unstable(half);
        let until_ns = median.min(now.saturating_sub(PATIENCE_WHEN_FULL_NS));
        self.take_out(until_ns, |_, _| false)
    }

    /// Takes out what was sent at that time or before, but for what is to stay.
    fn take_out(&mut self, until_ns: u64, waits: impl Fn(Key, &Open) -> bool) -> Vec<(Key, Open)> {
        let (slots, free) = (&self.slots, &mut self.free);
        let mut taken = Vec::new();
        self.open.retain(|key, slot| {
            let call = &slots[*slot as usize];
            let stays = call.last_ns > until_ns || waits(Key::from_word(*key), call);
            if !stays {
                taken.push((Key::from_word(*key), call.clone()));
                free.push(*slot);
            }
            stays
        });
        taken
    }

    /// Those that count as outstanding, and that their clients have given up; when they did, and
    /// how they counted. They count no longer.
    pub(super) fn given_up(&mut self, now: u64) -> Vec<(Key, u64, Load, Generation)> {
        let mut all = Vec::new();
        for (key, slot) in &self.open {
            let Some(open) = self.slots.get_mut(*slot as usize) else { continue };
            if let Some(until) = open.until_ns.filter(|until| *until < now)
                && let Some(generation) = open.generation.take()
            {
                all.push((Key::from_word(*key), until, open.load(), generation));
            }
        }
        all.sort_unstable_by_key(|(_, until, ..)| *until);
        all
    }

    /// What still waits.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Key, &Open)> {
        let of = |slot: u32| self.slots.get(slot as usize);
        self.open.iter().filter_map(move |(key, slot)| Some((Key::from_word(*key), of(*slot)?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Program;

    const SECOND: u64 = 1_000_000_000;

    fn key(xid: usize) -> Key {
        Key { flow: FlowId(1), from_server: false, xid: u32::try_from(xid).unwrap() }
    }

    fn call(at_ns: u64) -> Open {
        Open {
            operation: Operation { program: Program::Nfs3, code: 1 },
            first_ns: at_ns,
            last_ns: at_ns,
            file: FileId::default(),
            offset: 0,
            count: 0,
            stable: 0,
            is_sized: true,
            len: 100,
            retransmissions: 0,
            outstanding: 1,
            due_ns: u64::MAX,
            guard: Guard::default(),
            version: 3,
            frame: 1,
            ends_known: true,
            repeated_ns: at_ns,
            until_ns: None,
            generation: None,
            counts: Counts::Whole,
            outer: None,
            inner: None,
            name: Vec::new(),
        }
    }

    /// A full table, of which one call came each `apart_ns` from the hundredth second on; and when
    /// the last of them came.
    fn full(apart_ns: u64) -> (Calls, u64) {
        let mut calls = Calls::default();
        for number in 0..CALLS_MAX {
            let at_ns = 100 * SECOND + number as u64 * apart_ns;
            assert!(calls.insert(key(number), call(at_ns), b""));
        }
        (calls, 100 * SECOND + CALLS_MAX as u64 * apart_ns)
    }

    #[test]
    fn where_replies_are_missing_the_older_half_makes_room() {
        let (mut calls, now) = full(10_000);
        assert!(!calls.insert(key(CALLS_MAX), call(now), b""));
        let mut gone: Vec<u32> = calls.make_room(now).iter().map(|(key, _)| key.xid).collect();
        gone.sort_unstable();
        // The last second has 100,000 of them.
        assert_eq!(gone.len(), CALLS_MAX / 2 + 1);
        assert!(gone.iter().enumerate().all(|(at, &xid)| at == xid as usize));
        assert!(calls.insert(key(CALLS_MAX), call(now), b""));
    }

    #[test]
    fn what_is_young_stays_and_is_not_looked_at_again_at_once() {
        let (mut calls, now) = full(1_000);
        let mut looked = |now: u64| calls.make_room(now).len();
        assert_eq!(looked(now), 0, "all are younger than 0.3 s");
        // A tenth is a second old by then, but that was looked for a moment ago.
        assert_eq!(looked(now + LOOKS_APART_NS - 1), 0);
        let later = 101 * SECOND + CALLS_MAX as u64 * 100;
        assert_eq!(looked(later), CALLS_MAX / 10 + 1);
    }
}
