//! Fragments of IP datagrams, held until all of a datagram is there.
//!
//! At most [`DATAGRAMS_MAX`] datagrams and [`DATAGRAMS_BYTES_MAX`] bytes are held: what comes on
//! top takes the place of the oldest. A datagram whose identification comes again after
//! [`LIFETIME_NS`] is another one.
//!
//! Who captures with a filter by ports gets first fragments only, for no other has a port. How many
//! came alone, and how many others came, is counted for each sender and receiver ([`Pieces`]).

use std::collections::HashMap;

use foldhash::fast::RandomState;

/// Datagrams of which fragments are missing.
pub const DATAGRAMS_MAX: usize = 1024;
/// Bytes of them.
pub const DATAGRAMS_BYTES_MAX: usize = 32 << 20;
/// How long a fragment waits: as Linux does.
const LIFETIME_NS: u64 = 30_000_000_000;
/// Pieces without neighbours that a datagram may have.
const RANGES_MAX: usize = 64;
/// Longest datagram.
const DATAGRAM_LEN_MAX: u32 = 65_535;

/// Senders and receivers of which pieces are counted.
const PAIRS_MAX: usize = 4096;

/// The fragments of one sender and receiver.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Pieces {
    /// First fragments of which no other came.
    pub alone: u64,
    /// Fragments that are no first ones.
    pub others: u64,
}

/// Which datagram.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub(super) struct Key {
    pub(super) from: u128,
    pub(super) to: u128,
    pub(super) id: u32,
    pub(super) protocol: u8,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Fragment<'a> {
    pub(super) at_ns: u64,
    pub(super) offset: u32,
    pub(super) more: bool,
    /// What was captured of it.
    pub(super) payload: &'a [u8],
    /// How long it was.
    pub(super) len: usize,
}

#[derive(Debug, Default)]
pub(super) struct Fragments {
    open: HashMap<Key, Datagram, RandomState>,
    bytes: usize,
    /// The last one that became complete.
    complete: Vec<u8>,
    /// By sender and receiver; of those that are given up.
    pieces: HashMap<[u128; 2], Pieces, RandomState>,
}

#[derive(Debug)]
struct Datagram {
    first_ns: u64,
    bytes: Vec<u8>,
    /// What is there, in order, without overlap; ranges of what was on the wire.
    ranges: Vec<(u32, u32)>,
    /// Where the first fragment ends that was not captured whole.
    captured: u32,
    /// Known with the last fragment.
    len: Option<u32>,
}

impl Fragments {
    /// Adds a fragment; what was captured of the datagram, and its length, when it is complete.
    pub(super) fn add(&mut self, key: Key, fragment: Fragment<'_>) -> Option<(&[u8], usize)> {
        let len = u32::try_from(fragment.len).ok()?;
        let end = fragment.offset.checked_add(len).filter(|end| *end <= DATAGRAM_LEN_MAX)?;
        if self
            .open
            .get(&key)
            .is_some_and(|open| fragment.at_ns.saturating_sub(open.first_ns) > LIFETIME_NS)
        {
            self.give_up(&key);
        }
        if fragment.offset > 0
            && let Some(pieces) = self.pieces(&key)
        {
            pieces.others += 1;
        }
        if !self.open.contains_key(&key)
            && (self.open.len() >= DATAGRAMS_MAX || self.bytes >= DATAGRAMS_BYTES_MAX)
        {
            self.forget_the_oldest();
        }
        let open = self.open.entry(key).or_insert_with(|| Datagram {
            first_ns: fragment.at_ns,
            bytes: Vec::new(),
            ranges: Vec::new(),
            captured: u32::MAX,
            len: None,
        });
        let before = open.bytes.len();
        open.add(&fragment, end);
        self.bytes += open.bytes.len() - before;
        if !open.is_complete() {
            return None;
        }
        let datagram = self.remove(&key)?;
        let len = datagram.len? as usize;
        let captured = (datagram.captured as usize).min(len).min(datagram.bytes.len());
        self.complete = datagram.bytes;
        Some((&self.complete[..captured], len))
    }

    /// Those of one sender and receiver.
    pub(super) fn of(&self, from: u128, to: u128) -> Pieces {
        let mut pieces = self.pieces.get(&[from, to]).copied().unwrap_or_default();
        let open = self.open.iter().filter(|(key, _)| (key.from, key.to) == (from, to));
        pieces.alone += open.filter(|(_, open)| open.is_first_alone()).count() as u64;
        pieces
    }

    /// First fragments of which no other came, between hosts of which none others came.
    pub(super) fn alone(&self) -> u64 {
        let mut pairs: Vec<[u128; 2]> = self.open.keys().map(|key| [key.from, key.to]).collect();
        pairs.extend(self.pieces.keys());
        pairs.sort_unstable();
        pairs.dedup();
        let pieces = pairs.into_iter().map(|[from, to]| self.of(from, to));
        pieces.filter(|pieces| pieces.others == 0).map(|pieces| pieces.alone).sum()
    }

    fn pieces(&mut self, key: &Key) -> Option<&mut Pieces> {
        let pair = [key.from, key.to];
        let is_room = self.pieces.len() < PAIRS_MAX || self.pieces.contains_key(&pair);
        is_room.then(|| self.pieces.entry(pair).or_default())
    }

    /// The rest of a datagram does not come any more.
    fn give_up(&mut self, key: &Key) {
        let is_alone = self.remove(key).is_some_and(|open| open.is_first_alone());
        if is_alone && let Some(pieces) = self.pieces(key) {
            pieces.alone += 1;
        }
    }

    fn remove(&mut self, key: &Key) -> Option<Datagram> {
        let datagram = self.open.remove(key)?;
        self.bytes -= datagram.bytes.len();
        Some(datagram)
    }

    /// Makes room for a quarter, so that a flood does not look for the oldest each time.
    fn forget_the_oldest(&mut self) {
        let mut ages: Vec<(u64, Key)> =
            self.open.iter().map(|(key, open)| (open.first_ns, *key)).collect();
        ages.sort_unstable_by_key(|(first_ns, _)| *first_ns);
        for (_, key) in ages.iter().take(ages.len().div_ceil(4)) {
            self.give_up(key);
        }
    }
}

impl Datagram {
    fn add(&mut self, fragment: &Fragment<'_>, end: u32) {
        let (start, payload) = (fragment.offset as usize, fragment.payload);
        if self.bytes.len() < start + payload.len() {
            self.bytes.resize(start + payload.len(), 0);
        }
        self.bytes[start..start + payload.len()].copy_from_slice(payload);
        if !fragment.more {
            self.len = Some(end);
        }
        if payload.len() < fragment.len {
            let captured = u32::try_from(start + payload.len()).unwrap_or(u32::MAX);
            self.captured = self.captured.min(captured);
        }
        if self.ranges.len() < RANGES_MAX {
            self.ranges.push((fragment.offset, end));
            self.ranges.sort_unstable();
            let mut joined: Vec<(u32, u32)> = Vec::with_capacity(self.ranges.len());
            for &(start, end) in &self.ranges {
                match joined.last_mut() {
                    Some(last) if start <= last.1 => last.1 = last.1.max(end),
                    _ => joined.push((start, end)),
                }
            }
            self.ranges = joined;
        }
    }

    fn is_first_alone(&self) -> bool {
        self.len.is_none() && matches!(self.ranges[..], [(0, _)])
    }

    fn is_complete(&self) -> bool {
        match (self.len, &self.ranges[..]) {
            (Some(len), [(0, end)]) => *end >= len,
            _ => false,
        }
    }
}
