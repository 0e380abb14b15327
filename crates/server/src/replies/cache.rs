//! What to do with a call that may be a retransmission: a plain table, no clock, no lock, no I/O.
//!
//! An entry exists from before the call is executed. Entries of calls in progress are never
//! evicted: their number is that of the calls in service. Of the answered ones there is a maximum;
//! over it the oldest of a client goes that has at least its share, so that one busy client does
//! not make the server forget the others. Where there are more clients than answers to be had, the
//! oldest of all goes.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use perf::units::{Instant, Nanos};

use super::doubt::Doubt;

/// A call that comes again after so long is another one: clients count XIDs on from somewhere, and
/// may come back to the same numbers. Time that passes, and not the time of day, which somebody may
/// set.
pub(super) const RETENTION: Nanos = Nanos::from_secs(15 * 60);

/// What makes two calls the same: everything but the client's port, which changes when it
/// reconnects.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) client: IpAddr,
    pub(super) xid: u32,
    pub(super) program: u32,
    pub(super) version: u32,
    pub(super) procedure: u32,
    /// Of the caller's id and the arguments: an XID is used again, by another process of the
    /// client or after 2^32 calls.
    pub(super) checksum: u64,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) enum Known {
    /// First seen now. It is in progress from here on.
    New,
    /// Somebody is at it.
    InProgress,
    /// What was answered.
    Answered(Bytes),
    /// It was begun, and nobody knows how far it came. It is in progress from here on.
    InDoubt(Doubt),
}

#[derive(Debug)]
enum Entry {
    InProgress,
    /// What was answered, and until when it is an answer to that.
    Answered(Instant, Bytes),
    InDoubt(Instant, Doubt),
}

impl Entry {
    /// A call that comes now is another one, although all of it is the same.
    fn is_too_old(&self, now: Instant) -> bool {
        match self {
            Self::InProgress => false,
            Self::Answered(until, _) | Self::InDoubt(until, _) => now > *until,
        }
    }
}

/// What happened to calls since the cache was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Counts {
    /// Remembered now, those in progress included.
    pub(super) entries: u64,
    pub(super) replayed: u64,
    /// Seen again while in progress.
    pub(super) dropped: u64,
    /// Seen again, and nobody knew how far they had come.
    pub(super) in_doubt: u64,
    pub(super) evicted: u64,
}

#[derive(Clone, Copy, Debug)]
struct Settled {
    key: Key,
    /// Less is older; no two have the same.
    age: u64,
}

#[derive(Debug)]
pub(super) struct Cache {
    entries: HashMap<Key, Entry>,
    /// Each client's calls that are not in progress, oldest first.
    settled: HashMap<IpAddr, VecDeque<Settled>>,
    /// Those who have any, by [`rank`]: the last has most.
    ranked: BTreeSet<Rank>,
    settled_count: usize,
    /// How many there ever were.
    settled_ever: u64,
    settled_max: usize,
    counts: Counts,
}

impl Cache {
    pub(super) fn new(settled_max: usize) -> Self {
        Self {
            entries: HashMap::new(),
            settled: HashMap::new(),
            ranked: BTreeSet::new(),
            settled_count: 0,
            settled_ever: 0,
            settled_max: settled_max.max(1),
            counts: Counts::default(),
        }
    }

    pub(super) fn claim(&mut self, key: Key, now: Instant) -> Known {
        if self.entries.get(&key).is_some_and(|entry| entry.is_too_old(now)) {
            self.unsettle(&key);
            self.entries.remove(&key);
        }
        match self.entries.get(&key) {
            Some(Entry::InProgress) => {
                self.counts.dropped += 1;
                Known::InProgress
            }
            Some(Entry::Answered(_, reply)) => {
                self.counts.replayed += 1;
                Known::Answered(reply.clone())
            }
            Some(&Entry::InDoubt(_, doubt)) => {
                self.counts.in_doubt += 1;
                self.unsettle(&key);
                self.entries.insert(key, Entry::InProgress);
                Known::InDoubt(doubt)
            }
            None => {
                self.entries.insert(key, Entry::InProgress);
                Known::New
            }
        }
    }

    pub(super) fn answered(&mut self, key: Key, until: Instant, reply: Bytes) {
        self.settle(key, Entry::Answered(until, reply));
    }

    pub(super) fn in_doubt(&mut self, key: Key, until: Instant, doubt: Doubt) {
        self.settle(key, Entry::InDoubt(until, doubt));
    }

    /// It was never executed.
    pub(super) fn forget(&mut self, key: &Key) {
        let entry = self.entries.remove(key);
        debug_assert!(matches!(entry, None | Some(Entry::InProgress)), "it was answered");
    }

    pub(super) fn counts(&self) -> Counts {
        Counts { entries: self.entries.len() as u64, ..self.counts }
    }

    fn settle(&mut self, key: Key, entry: Entry) {
        let before = self.entries.insert(key, entry);
        if matches!(before, Some(Entry::Answered(..) | Entry::InDoubt(..))) {
            return;
        }
        self.settled_ever += 1;
        let settled = Settled { key, age: self.settled_ever };
        self.change(key.client, |queue| queue.push_back(settled));
        self.settled_count += 1;
        if self.settled_count > self.settled_max {
            self.evict(key.client);
        }
        debug_assert!(self.settled_count <= self.settled_max.min(self.entries.len()));
    }

    fn evict(&mut self, newest: IpAddr) {
        // What was settled last must not be what goes, however many clients there are.
        let share = (self.settled_max / self.settled.len().max(1)).max(1);
        let own = self.settled.get(&newest).map_or(0, VecDeque::len);
        let victim = match own > share {
            true => newest,
            false => self.ranked.last().map_or(newest, |&(.., client)| client),
        };
        if let Some(oldest) = self.change(victim, VecDeque::pop_front) {
            self.entries.remove(&oldest.key);
            self.settled_count -= 1;
            self.counts.evicted += 1;
        }
    }

    fn unsettle(&mut self, key: &Key) {
        let gone = self.change(key.client, |queue| {
            let before = queue.len();
            queue.retain(|settled| settled.key != *key);
            before - queue.len()
        });
        debug_assert_eq!(gone, 1, "what is settled stands in its client's line once");
        self.settled_count -= gone;
    }

    /// Changes what a client has, and its rank with it.
    fn change<T>(&mut self, client: IpAddr, change: impl FnOnce(&mut VecDeque<Settled>) -> T) -> T {
        let queue = self.settled.entry(client).or_default();
        if let Some(rank) = rank(client, queue) {
            self.ranked.remove(&rank);
        }
        let changed = change(queue);
        match rank(client, queue) {
            Some(rank) => drop(self.ranked.insert(rank)),
            None => drop(self.settled.remove(&client)),
        }
        changed
    }

    #[cfg(test)]
    fn len(&self) -> usize {
        self.entries.len()
    }
}

/// How many a client has, and of those who have as many, who waits longest: not who is first in a
/// table whose order is another one in each run. No two have the same.
type Rank = (usize, Reverse<u64>, IpAddr);

fn rank(client: IpAddr, queue: &VecDeque<Settled>) -> Option<Rank> {
    queue.front().map(|oldest| (queue.len(), Reverse(oldest.age), client))
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::*;
    use crate::types::Time;

    const NOW: Instant = Instant::EPOCH;
    const GOOD_UNTIL: Instant = Instant::from_nanos(RETENTION.as_nanos());
    const DAY: Time = Time { secs: 10_000, nanos: 0 };
    const DOUBT: Doubt = Doubt { since: DAY, until: DAY };

    fn key(client: u32, xid: u32) -> Key {
        let client = IpAddr::V4(Ipv4Addr::from_bits(client));
        Key { client, xid, program: 100_003, version: 3, procedure: 12, checksum: 7 }
    }

    fn answer(cache: &mut Cache, key: Key) {
        assert_eq!(cache.claim(key, NOW), Known::New);
        cache.answered(key, GOOD_UNTIL, Bytes::from_static(b"reply"));
    }

    #[test]
    fn a_call_is_new_once() {
        let mut cache = Cache::new(10);
        let call = key(1, 1);
        assert_eq!(cache.claim(call, NOW), Known::New);
        assert_eq!(cache.claim(call, NOW), Known::InProgress);
        let other = Key { checksum: 8, ..call };
        assert_eq!(cache.claim(other, NOW), Known::New, "the same XID, another call");
        cache.answered(call, GOOD_UNTIL, Bytes::from_static(b"done"));
        assert_eq!(cache.claim(call, NOW), Known::Answered(Bytes::from_static(b"done")));
        cache.forget(&other);
        assert_eq!(cache.claim(other, NOW), Known::New);
        let counts = Counts { entries: 2, dropped: 1, replayed: 1, ..Counts::default() };
        assert_eq!(cache.counts(), counts);
    }

    #[test]
    fn doubt_is_reported_once() {
        let mut cache = Cache::new(10);
        let (call, doubt) = (key(1, 1), DOUBT);
        assert_eq!(cache.claim(call, NOW), Known::New);
        cache.in_doubt(call, GOOD_UNTIL, doubt);
        assert_eq!(cache.claim(call, NOW), Known::InDoubt(doubt));
        assert_eq!(cache.claim(call, NOW), Known::InProgress);
        cache.answered(call, GOOD_UNTIL, Bytes::new());
        assert_eq!(cache.claim(call, NOW), Known::Answered(Bytes::new()));
        assert_eq!((cache.len(), cache.settled_count), (1, 1));
    }

    #[test]
    fn after_a_quarter_of_an_hour_it_is_another_call() {
        let mut cache = Cache::new(10);
        let later = GOOD_UNTIL + Nanos::from_nanos(1);
        answer(&mut cache, key(1, 1));
        assert_eq!(cache.claim(key(1, 2), NOW), Known::New);
        cache.in_doubt(key(1, 2), GOOD_UNTIL, DOUBT);
        assert!(matches!(cache.claim(key(1, 1), GOOD_UNTIL), Known::Answered(_)));
        for xid in [1, 2] {
            assert_eq!(cache.claim(key(1, xid), later), Known::New);
            // What is in progress is so however long it takes.
            assert_eq!(cache.claim(key(1, xid), later + RETENTION), Known::InProgress);
        }
        assert_eq!((cache.len(), cache.settled_count), (2, 0));
    }

    #[test]
    fn the_oldest_goes_and_what_is_in_progress_stays() {
        let mut cache = Cache::new(3);
        assert_eq!(cache.claim(key(1, 0), NOW), Known::New);
        for xid in 1..=4 {
            answer(&mut cache, key(1, xid));
        }
        assert_eq!(cache.len(), 4);
        assert_eq!(cache.claim(key(1, 0), NOW), Known::InProgress);
        assert_eq!(cache.claim(key(1, 1), NOW), Known::New);
        assert!(matches!(cache.claim(key(1, 2), NOW), Known::Answered(_)));
    }

    #[test]
    fn a_busy_client_forgets_its_own_first() {
        let mut cache = Cache::new(100);
        for xid in 0..20 {
            answer(&mut cache, key(2, xid));
        }
        for xid in 0..10_000 {
            answer(&mut cache, key(1, xid));
        }
        assert_eq!(cache.settled_count, 100);
        assert!((0..20).all(|xid| matches!(cache.claim(key(2, xid), NOW), Known::Answered(_))));
        // One that comes later has its share too.
        for xid in 0..30 {
            answer(&mut cache, key(3, xid));
        }
        assert!((0..30).all(|xid| matches!(cache.claim(key(3, xid), NOW), Known::Answered(_))));
        assert_eq!(cache.settled_count, 100);
        assert_eq!(cache.settled.values().map(VecDeque::len).sum::<usize>(), 100);
    }

    #[test]
    fn clients_without_number_take_no_more_memory() {
        let mut cache = Cache::new(50);
        for client in 0..1000 {
            answer(&mut cache, key(client, 1));
        }
        assert_eq!((cache.len(), cache.settled.len()), (50, 50));
    }

    #[test]
    fn with_more_clients_than_room_the_oldest_of_all_goes() {
        let mut cache = Cache::new(50);
        // In an order that is not that of their addresses.
        let client = |number: u32| number.wrapping_mul(0x9e37_79b1);
        for number in 0..1_000 {
            answer(&mut cache, key(client(number), 1));
            let again = cache.claim(key(client(number), 1), NOW);
            assert!(matches!(again, Known::Answered(_)), "client {number}");
        }
        let known = |number| cache.entries.contains_key(&key(client(number), 1));
        assert_eq!((0..1_000).filter(|&number| known(number)).min(), Some(950));
    }
}
