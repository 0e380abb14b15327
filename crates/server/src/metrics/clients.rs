//! What is counted of each client, by its address.
//!
//! There are [`CLIENTS_MAX`] places. A client gets one with its first call, and loses it, with what
//! was counted of it, when it has been silent for [`IDLE_MAX`]; while there is no place, it is
//! counted with the others. Calls of one who left never move to the others: whoever takes their
//! differences would see the calls of a whole life in one moment. Which place a client has is found
//! without a lock: in a small cache of each thread, else in a map that is replaced as a whole.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use super::counter::{Counter, Writers};
use super::procedures::Served;

/// Clients that are distinguished.
pub const CLIENTS_MAX: usize = 1024;
/// A client that was silent for so long is forgotten.
pub const IDLE_MAX: Nanos = Nanos::from_secs(600);

/// Where clients without a place are counted.
const OTHERS: usize = CLIENTS_MAX;
/// While there is no place, idle clients are looked for this often.
const SEARCH_INTERVAL: Nanos = Nanos::from_secs(1);
/// Clients of which a thread remembers the place; a power of two.
const RECENT: usize = 16;

/// A thread's counters of all clients.
#[derive(Debug, Default)]
pub(super) struct ClientCounters {
    places: OnceLock<Box<Places>>,
    recent: [Recent; RECENT],
}

#[derive(Debug)]
struct Places([Counters; CLIENTS_MAX + 1]);

impl Default for Places {
    fn default() -> Self {
        Self(std::array::from_fn(|_| Counters::default()))
    }
}

#[derive(Debug, Default)]
struct Counters {
    calls: Counter,
    failures: Counter,
    received_bytes: Counter,
    sent_bytes: Counter,
    store_nanos: Counter,
    /// When it called last.
    last: Counter,
}

/// A client's place, as it was when the generation was this.
#[derive(Debug, Default)]
struct Recent {
    address: [Counter; 2],
    generation_and_place: Counter,
}

/// What was counted of one client.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(super) struct Totals {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
    pub(super) store: Nanos,
}

/// Who has which place.
#[derive(Debug)]
pub(super) struct Clients {
    places: ArcSwap<HashMap<IpAddr, usize>>,
    /// Changes when a client loses its place.
    generation: AtomicU64,
    /// Until then nobody looks for a place.
    full_until_nanos: AtomicU64,
    /// Guards who has which place; taken when a client comes or goes, and by readers.
    registry: Mutex<Registry>,
}

#[derive(Debug, Default)]
struct Registry {
    clients: HashMap<IpAddr, Entry>,
    free: Vec<usize>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    place: usize,
    since: Instant,
    /// What the place had counted before.
    before: Totals,
}

impl Clients {
    pub(super) fn new() -> Self {
        let registry = Registry { free: (0..CLIENTS_MAX).rev().collect(), ..Registry::default() };
        Self {
            places: ArcSwap::default(),
            generation: AtomicU64::new(1),
            full_until_nanos: AtomicU64::new(0),
            registry: Mutex::new(registry),
        }
    }

    /// Counts a call in `mine`, which is one of `all`.
    pub(super) fn count<'s>(
        &self,
        (mine, writers): (&ClientCounters, Writers),
        all: impl Iterator<Item = &'s ClientCounters> + Clone,
        client: IpAddr,
        served: &Served,
        now: Instant,
    ) {
        let place = self.place((mine, writers), all, client, now);
        let counters = &mine.places.get_or_init(Box::default).0[place];
        counters.calls.add(1, writers);
        counters.received_bytes.add(served.received_bytes, writers);
        counters.sent_bytes.add(served.sent_bytes, writers);
        counters.store_nanos.add(served.phases.store.as_nanos(), writers);
        counters.last.set(now.as_nanos());
        if served.failure.is_some() {
            counters.failures.add(1, writers);
        }
    }

    fn place<'s>(
        &self,
        (mine, writers): (&ClientCounters, Writers),
        all: impl Iterator<Item = &'s ClientCounters> + Clone,
        client: IpAddr,
        now: Instant,
    ) -> usize {
        let words = words(client);
        let recent = &mine.recent[hash(words) % RECENT];
        let generation = self.generation.load(Ordering::Acquire);
        let known = recent.generation_and_place.value();
        if writers == Writers::One
            && known >> 16 == generation
            && recent.address[0].value() == words[0]
            && recent.address[1].value() == words[1]
        {
            return (known & 0xffff) as usize;
        }
        let found = self.places.load().get(&client).copied();
        let Some(place) = found.or_else(|| self.admit(all, client, now)) else { return OTHERS };
        if writers == Writers::One {
            recent.address[0].set(words[0]);
            recent.address[1].set(words[1]);
            recent.generation_and_place.set(generation << 16 | place as u64);
        }
        place
    }

    fn admit<'s>(
        &self,
        all: impl Iterator<Item = &'s ClientCounters> + Clone,
        client: IpAddr,
        now: Instant,
    ) -> Option<usize> {
        if now.as_nanos() < self.full_until_nanos.load(Ordering::Relaxed) {
            return None;
        }
        let mut registry = self.registry.lock();
        if let Some(entry) = registry.clients.get(&client) {
            return Some(entry.place);
        }
        if registry.free.is_empty() {
            self.forget_idle(&mut registry, all.clone(), now);
        }
        let Some(place) = registry.free.pop() else {
            let until = (now + SEARCH_INTERVAL).as_nanos();
            self.full_until_nanos.store(until, Ordering::Relaxed);
            return None;
        };
        let entry = Entry { place, since: now, before: totals(all, place) };
        registry.clients.insert(client, entry);
        self.publish(&registry);
        Some(place)
    }

    fn forget_idle<'s>(
        &self,
        registry: &mut Registry,
        all: impl Iterator<Item = &'s ClientCounters> + Clone,
        now: Instant,
    ) {
        let Registry { clients, free } = registry;
        let places_before = clients.len();
        clients.retain(|_, entry| {
            let heard = last(all.clone(), entry.place).max(entry.since);
            if now.since(heard) < IDLE_MAX {
                return true;
            }
            free.push(entry.place);
            false
        });
        if clients.len() < places_before {
            self.generation.fetch_add(1, Ordering::Release);
            self.publish(registry);
        }
    }

    fn publish(&self, registry: &Registry) {
        let places = registry.clients.iter().map(|(&client, entry)| (client, entry.place));
        self.places.store(std::sync::Arc::new(places.collect()));
    }

    /// Every client that is distinguished, by address, and all that had no place together.
    pub(super) fn tallies<'s>(
        &self,
        all: impl Iterator<Item = &'s ClientCounters> + Clone,
        now: Instant,
    ) -> (Vec<(IpAddr, Totals)>, Totals) {
        let mut registry = self.registry.lock();
        self.forget_idle(&mut registry, all.clone(), now);
        let tally = |entry: &Entry| totals(all.clone(), entry.place).less(&entry.before);
        let mut clients: Vec<_> =
            registry.clients.iter().map(|(&client, entry)| (client, tally(entry))).collect();
        clients.sort_by_key(|&(client, _)| client);
        (clients, totals(all, OTHERS))
    }
}

impl Totals {
    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.failures += other.failures;
        self.received_bytes += other.received_bytes;
        self.sent_bytes += other.sent_bytes;
        self.store += other.store;
    }

    fn less(&self, before: &Self) -> Self {
        Self {
            calls: self.calls.wrapping_sub(before.calls),
            failures: self.failures.wrapping_sub(before.failures),
            received_bytes: self.received_bytes.wrapping_sub(before.received_bytes),
            sent_bytes: self.sent_bytes.wrapping_sub(before.sent_bytes),
            store: self.store - before.store,
        }
    }
}

fn counters<'s>(
    all: impl Iterator<Item = &'s ClientCounters>,
    place: usize,
) -> impl Iterator<Item = &'s Counters> {
    all.filter_map(move |shard| Some(&shard.places.get()?.0[place]))
}

fn totals<'s>(all: impl Iterator<Item = &'s ClientCounters>, place: usize) -> Totals {
    let mut sum = Totals::default();
    for counters in counters(all, place) {
        sum.add(&Totals {
            calls: counters.calls.value(),
            failures: counters.failures.value(),
            received_bytes: counters.received_bytes.value(),
            sent_bytes: counters.sent_bytes.value(),
            store: Nanos::from_nanos(counters.store_nanos.value()),
        });
    }
    sum
}

fn last<'s>(all: impl Iterator<Item = &'s ClientCounters>, place: usize) -> Instant {
    let last = counters(all, place).map(|counters| counters.last.value()).max();
    Instant::from_nanos(last.unwrap_or(0))
}

/// An address as two words.
fn words(client: IpAddr) -> [u64; 2] {
    let bytes = match client {
        IpAddr::V4(client) => client.to_ipv6_mapped().octets(),
        IpAddr::V6(client) => client.octets(),
    };
    let (halves, _) = bytes.as_chunks::<8>();
    [u64::from_be_bytes(halves[0]), u64::from_be_bytes(halves[1])]
}

fn hash(words: [u64; 2]) -> usize {
    let mixed = (words[0].rotate_left(32) ^ words[1]).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 60) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::phase::Phases;
    use crate::metrics::procedures::Slots;

    struct Office {
        clients: Clients,
        counters: ClientCounters,
    }

    impl Office {
        fn new() -> Self {
            Self { clients: Clients::new(), counters: ClientCounters::default() }
        }

        fn call(&self, client: u32, at: u64) {
            let served = Served {
                slot: Slots::new().of(&[]),
                failure: None,
                received_bytes: 10,
                sent_bytes: 20,
                phases: Phases { store: Nanos::from_nanos(5), ..Phases::default() },
            };
            let mine = (&self.counters, Writers::One);
            let all = std::iter::once(&self.counters);
            let now = Instant::EPOCH + Nanos::from_secs(at);
            self.clients.count(mine, all, address(client), &served, now);
        }

        fn calls(&self, at: u64) -> (Vec<(IpAddr, u64)>, u64) {
            let now = Instant::EPOCH + Nanos::from_secs(at);
            let (clients, others) = self.clients.tallies(std::iter::once(&self.counters), now);
            (clients.into_iter().map(|(client, t)| (client, t.calls)).collect(), others.calls)
        }
    }

    fn address(client: u32) -> IpAddr {
        IpAddr::from(client.to_be_bytes())
    }

    #[test]
    fn clients_are_distinguished() {
        let office = Office::new();
        for client in [1, 2, 1, 17, 1, 33] {
            office.call(client, 0);
        }
        let expected = [(1, 3), (2, 1), (17, 1), (33, 1)];
        assert_eq!(office.calls(0), (expected.map(|(c, n)| (address(c), n)).to_vec(), 0));
    }

    #[test]
    fn those_who_find_no_place_are_counted_together() {
        let office = Office::new();
        let clients = u32::try_from(CLIENTS_MAX).unwrap() + 50;
        for _ in 0..2 {
            (0..clients).for_each(|client| office.call(client, 0));
        }
        let (listed, others) = office.calls(1);
        assert_eq!((listed.len(), others), (CLIENTS_MAX, 100));
        assert!(listed.iter().all(|&(_, calls)| calls == 2));
    }

    #[test]
    fn the_silent_are_forgotten_and_their_calls_are_nobody_elses() {
        let office = Office::new();
        (0..u32::try_from(CLIENTS_MAX).unwrap()).for_each(|client| office.call(client, 0));
        office.call(7, 500);
        office.call(5000, 599);
        assert_eq!(office.calls(599).1, 1);
        office.call(5000, 600);
        office.call(7, 601);
        let (listed, others) = office.calls(601);
        assert_eq!(listed, [(address(7), 3), (address(5000), 1)]);
        assert_eq!(others, 1, "the one call that found no place");
        // One who comes back begins again.
        office.call(8, 602);
        assert_eq!(office.calls(602).0[1], (address(8), 1));
        assert_eq!(office.calls(2000), (vec![], 1));
    }
}
