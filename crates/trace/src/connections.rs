//! TCP connections and pairs of UDP ends, found by their addresses.
//!
//! At most [`CONNECTIONS_MAX`] are followed, and at most [`BUFFERS_MAX`] bytes stored of records
//! and early segments of all; over it the quarter that was silent for longest is forgotten, until
//! it is enough. What was counted of them stays.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::copies::Sights;
use super::pair::Hosts;
use super::rpc::Line;
use super::rtt::Stopwatch;
use super::stream::Stream;
use crate::capture::End;

/// Connections that are followed.
pub const CONNECTIONS_MAX: usize = 1 << 16;
/// Bytes stored of all of them.
pub const BUFFERS_MAX: usize = 64 << 20;

#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Key {
    ends: [End; 2],
    is_tcp: bool,
}

/// A connection; of UDP without streams.
#[derive(Debug)]
pub(super) struct Connection {
    key: Key,
    /// Its place in the table.
    pub(super) slot: u32,
    pub(super) line: Line,
    pub(super) streams: Option<Box<[Stream; 2]>>,
    /// Of what each end sends.
    pub(super) watches: [Stopwatch; 2],
    /// Whether each end announces a window of zero.
    pub(super) zero_windows: [bool; 2],
    pub(super) sights: Sights,
    pub(super) last_ns: u64,
}

#[derive(Debug, Default)]
pub(super) struct Connections {
    by_ends: HashMap<Key, u32, RandomState>,
    slots: Vec<Option<Connection>>,
    free: Vec<u32>,
    /// The one that was requested last, which is often requested again.
    last: Option<(Key, u32)>,
    pub(super) buffered: usize,
    pub(super) forgotten: u64,
}

impl Connections {
    /// The connection of two ends, and which of its ends `from` is.
    pub(super) fn of(
        &mut self,
        from: End,
        to: End,
        is_tcp: bool,
        now: u64,
    ) -> (&mut Connection, usize) {
        let (ends, place) = if from <= to { ([from, to], 0) } else { ([to, from], 1) };
        let key = Key { ends, is_tcp };
        let slot = match self.last {
            Some((last, slot)) if last == key => slot,
            _ => match self.by_ends.get(&key) {
                Some(&slot) => slot,
                None => self.insert(key, now),
            },
        };
        self.last = Some((key, slot));
        // What the table names is never empty.
        let connection = &mut self.slots[slot as usize];
        let connection = connection.get_or_insert_with(|| Connection::new(key, slot, now));
        connection.last_ns = now;
        (connection, place)
    }

    fn insert(&mut self, key: Key, now: u64) -> u32 {
        if self.by_ends.len() >= CONNECTIONS_MAX {
            self.forget_the_silent();
        }
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        self.slots[slot as usize] = Some(Connection::new(key, slot, now));
        self.by_ends.insert(key, slot);
        slot
    }

    /// The buffers of a connection grew or shrank from `before` to `after` bytes.
    pub(super) fn changed(&mut self, before: usize, after: usize) {
        self.buffered = (self.buffered + after).saturating_sub(before);
        while self.buffered > BUFFERS_MAX && !self.by_ends.is_empty() {
            self.forget_the_silent();
        }
    }

    fn forget_the_silent(&mut self) {
        let mut times: Vec<(u64, u32)> = self
            .by_ends
            .values()
            .filter_map(|&slot| Some((self.slots[slot as usize].as_ref()?.last_ns, slot)))
            .collect();
        times.sort_unstable();
        times.truncate(times.len().div_ceil(4));
        for (_, slot) in times {
            if let Some(connection) = self.slots[slot as usize].take() {
                self.by_ends.remove(&connection.key);
                self.buffered = self.buffered.saturating_sub(connection.buffered());
                self.free.push(slot);
                self.forgotten += 1;
            }
        }
        self.last = None;
    }

    pub(super) fn len(&self) -> usize {
        self.by_ends.len()
    }

    /// Those of TCP that carried data in which no call was read.
    pub(super) fn unread(&self) -> usize {
        let connections = self.slots.iter().flatten();
        connections.filter(|one| one.line.flow().is_none() && one.carried() > 0).count()
    }

    /// Those of which the client's messages were captured alone, and the server's alone: whose
    /// calls were not seen is a server.
    pub(super) fn one_way(&self) -> [usize; 2] {
        let mut counts = [0; 2];
        for one in self.slots.iter().flatten() {
            if let Some(from) = one.one_way() {
                counts[usize::from(one.line.flows[from].is_none())] += 1;
            }
        }
        counts
    }

    /// The same by hosts: who is the client may not be known.
    pub(super) fn one_way_hosts(&self) -> HashMap<Hosts, u64> {
        let mut hosts = HashMap::new();
        let one_way = self.slots.iter().flatten().filter(|one| one.one_way().is_some());
        for either in one_way.flat_map(|one| Hosts::either(one.key.ends)) {
            *hosts.entry(either).or_default() += 1;
        }
        hosts
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Connection> {
        self.slots.iter_mut().flatten()
    }
}

impl Connection {
    fn new(key: Key, slot: u32, now: u64) -> Self {
        Self {
            key,
            slot,
            line: Line::new(key.ends, key.is_tcp),
            streams: None,
            watches: [Stopwatch::default(); 2],
            zero_windows: [false; 2],
            sights: Sights::default(),
            last_ns: now,
        }
    }

    /// Bytes of data, of TCP.
    fn carried(&self) -> u64 {
        let both = self.streams.iter().flat_map(|streams| streams.iter());
        both.map(|stream| stream.counts.bytes).sum()
    }

    /// Of which end messages were captured, where of the other there are acknowledgements only.
    pub(super) fn one_way(&self) -> Option<usize> {
        let streams = self.streams.as_ref()?;
        let is_alone = |from: usize| {
            let (own, other) = (&streams[from], &streams[1 - from]);
            own.has_records() && other.counts.bytes == 0 && other.unseen() > 0
        };
        [0, 1].into_iter().find(|from| is_alone(*from))
    }

    /// Bytes that its streams keep.
    pub(super) fn buffered(&self) -> usize {
        self.streams.as_ref().map_or(0, |streams| streams.iter().map(Stream::buffered).sum())
    }
}
