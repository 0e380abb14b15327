//! Packets that were captured twice on their way: at both ends of a path, on two interfaces of one
//! host (`tcpdump -i any`), by a switch that mirrors what comes in and what goes out.
//!
//! A copy is not a retransmission. It is the same packet, with the same sequence number, length and
//! identification of IP; a retransmission has another identification. Where there is none (IP
//! version 6, or zero), a copy was captured at another place, or leaves the host that it came to
//! (so Linux cooked v1 shows what a bridge or a router passes on, without its interfaces), or has
//! passed a router since, or comes sooner than any retransmission: within a round trip.
//!
//! Where packets tell their place (several files, interfaces of pcapng, Linux cooked v2, live), a
//! connection that was captured at two places is read at one of them from then on: the first that
//! shows both directions, at the client's end if that is known. A call seen at the client with its
//! reply seen at the server would have taken too little time. Later connections of the same hosts
//! are read there from their first packet on. What another place shows of it is left out, but for
//! how long packets took from one place to the other.
//!
//! At most [`SIGHTINGS_MAX`] packets are remembered, each in the place of the oldest of four.

use std::collections::{BTreeSet, HashMap};

use foldhash::fast::RandomState;

use super::connections::Connection;
use super::rpc::{Line, Rpc};
use super::rtt::{Rtt, Stopwatch};
use crate::capture::{Place, Protocol, Segment};

/// Packets that are remembered: 256 KiB, which stay in a processor's cache.
pub const SIGHTINGS_MAX: usize = WAYS << SETS_BITS;
const WAYS: usize = 4;
const SETS_BITS: u32 = 12;
/// Places that are distinguished; what is captured at more of them has none.
pub const PLACES_MAX: usize = 64;
/// Packets in a row with one identification, from which on it distinguishes nothing.
const ALIKE_MIN: u8 = 2;
/// Pairs of hosts of which it is known where they are read.
const HOSTS_MAX: usize = 4096;
/// What of a connection another place shows while its own is silent for so long is read there.
const SILENCE_NS: u64 = 1_000_000_000;

/// A packet that was seen.
#[derive(Clone, Copy, Debug, Default)]
struct Sighting {
    at_ns: u64,
    tag: u32,
    id: u16,
    hops: u8,
    /// The place, and whether it leaves its host.
    way: u8,
}

impl Sighting {
    /// Of a way; places are fewer than that.
    const LEAVES: u8 = 1 << 7;

    const fn place(self) -> u8 {
        self.way & !Self::LEAVES
    }
}

/// Packets that may be in each other's place.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Set([Sighting; WAYS]);

#[derive(Debug, Default)]
pub(super) struct Copies {
    sets: Vec<Set>,
    places: Vec<Place>,
    /// The place of the last packet.
    last: Option<(Place, u8)>,
    /// Packets that were left out.
    pub(super) count: u64,
    /// Where hosts are read that were captured at several places: at most [`HOSTS_MAX`] pairs.
    homes: HashMap<[u128; 2], u8, RandomState>,
    /// All places where any connection was, as bits.
    read: u64,
}

/// Where the packets of a connection were captured.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Sights {
    /// The last identification of each end, and how many packets in a row have had it.
    ids: [(u16, u8); 2],
    /// Places that have shown what each end sends, as bits.
    shown: [u64; 2],
    /// The one place at which it is read, and when that has shown something last.
    home: Option<(u8, u64)>,
}

impl Copies {
    /// Whether a segment that end `from` of a connection sent was captured before, or not where the
    /// connection is read.
    pub(super) fn leaves_out(
        &mut self,
        segment: &Segment<'_>,
        connection: &mut Connection,
        from: usize,
        rpc: &mut Rpc,
    ) -> bool {
        let place = self.place(segment.place);
        let sights = &mut connection.sights;
        sights.shown[from] |= 1 << place;
        if sights.home.is_none()
            && !self.homes.is_empty()
            && self.homes.get(&hosts(&connection.line)) == Some(&place)
        {
            sights.home = Some((place, segment.at_ns));
        }
        let is_read = sights.reads(place, segment.at_ns);
        self.count += u64::from(!is_read);
        let Some(print) = print(segment, connection.slot, from) else { return !is_read };
        let Segment { at_ns, id, hops, leaves, .. } = *segment;
        let (set, tag) = seat(print);
        let way = if leaves { place | Sighting::LEAVES } else { place };
        let seen = Sighting { at_ns, tag, id, hops, way };
        if sights.home.is_some() && segment.len > 0 {
            self.passes(print, seen, (&connection.line, from), is_read, rpc);
        }
        if !is_read {
            return true;
        }
        let Some(Set(ways)) = self.sets.get_mut(set) else { return false };
        let known = ways.iter_mut().find(|way| way.tag == seen.tag && way.at_ns > 0);
        let Some(known) = known else {
            ways.rotate_right(1);
            ways[0] = seen;
            sights.identified(from, id);
            return false;
        };
        let is_copy = match id != 0 && known.id != 0 && !sights.is_constant(from) {
            true => known.id == id,
            // Acknowledgements without data may be alike.
            false => {
                segment.takes_room()
                    && (known.way != way
                        || known.hops != hops
                        || at_ns.saturating_sub(known.at_ns) < round_trip_ns(&connection.line, rpc))
            }
        };
        let before = std::mem::replace(known, if is_copy { *known } else { seen });
        if is_copy {
            self.count += 1;
            if before.place() != place {
                self.settle(connection, from, (before.place(), place), at_ns, rpc);
            }
        }
        is_copy
    }

    /// A packet of end `from` was captured where its connection is read, or elsewhere: how long it
    /// took between the two counts, if it was seen at the other.
    fn passes(
        &mut self,
        print: u64,
        seen: Sighting,
        (line, from): (&Line, usize),
        is_read: bool,
        rpc: &mut Rpc,
    ) {
        let elsewhere = print ^ ELSEWHERE;
        let other = self.sighted(if is_read { elsewhere } else { print });
        if let Some(other) =
            other.filter(|other| other.id == seen.id && other.place() != seen.place())
            && rpc.takes_time(seen.at_ns)
            && let Some(pair) = line.flow().and_then(|flow| rpc.flows.pair_mut(flow))
        {
            let (read, away) = if is_read { (seen, other) } else { (other, seen) };
            let is_server = line.flows[from].is_none();
            pair.between.record(is_server, read.at_ns, away.at_ns);
        }
        let (set, tag) = seat(elsewhere);
        if let (false, Some(Set(ways))) = (is_read, self.sets.get_mut(set)) {
            ways.rotate_right(1);
            ways[0] = Sighting { tag, ..seen };
        }
    }

    /// The last packet with this print.
    fn sighted(&self, print: u64) -> Option<Sighting> {
        let (set, tag) = seat(print);
        let Set(ways) = self.sets.get(set)?;
        ways.iter().find(|way| way.tag == tag && way.at_ns > 0).copied()
    }

    /// The place of a packet, as a number.
    fn place(&mut self, place: Place) -> u8 {
        if let Some((last, number)) = self.last
            && last == place
        {
            return number;
        }
        if self.sets.is_empty() {
            self.sets = vec![Set::default(); 1 << SETS_BITS];
        }
        let known = self.places.iter().position(|known| *known == place);
        let number = known.unwrap_or_else(|| {
            if self.places.len() < PLACES_MAX {
                self.places.push(place);
            }
            self.places.len() - 1
        });
        let number = u8::try_from(number).unwrap_or(0);
        self.last = Some((place, number));
        number
    }

    /// A packet of end `from` was captured at one place and then at another: the connection is to
    /// be read at one of them, if that shows both directions.
    fn settle(
        &mut self,
        connection: &mut Connection,
        from: usize,
        places: (u8, u8),
        now: u64,
        rpc: &mut Rpc,
    ) {
        let Connection { line, sights, watches, .. } = connection;
        let Some(flow) = line.flow() else { return };
        // Nearer to the client is where its packets come first, and those of the server last.
        let nearer = match line.flows[from].is_some() {
            true => [places.0, places.1],
            false => [places.1, places.0],
        };
        let both = sights.shown[0] & sights.shown[1];
        let home = nearer.into_iter().find(|place| both & (1 << place) != 0);
        let Some(home) = home else { return };
        sights.home = Some((home, now));
        self.read |= 1 << home;
        if self.homes.len() < HOSTS_MAX && self.homes.insert(hosts(line), home) != Some(home) {
            // So far it was half of the round trip: data at one end, acknowledgements at the other.
            line.handshake = [None; 2];
            watches.iter_mut().for_each(Stopwatch::spoil);
            if let Some(rtt) = rpc.flows.round_trip_mut(flow) {
                *rtt = Rtt::default();
            }
        }
    }

    /// Where connections were read that were captured at several places, in the order of places.
    pub(super) fn homes(&self) -> BTreeSet<Place> {
        let places = self.places.iter().enumerate();
        places.filter(|(at, _)| self.read & (1 << at) != 0).map(|(_, place)| *place).collect()
    }
}

fn hosts(line: &Line) -> [u128; 2] {
    line.ends.map(|end| end.address)
}

/// The round trip of a line's hosts at least, as far as it is known: before the first call by the
/// handshake.
fn round_trip_ns(line: &Line, rpc: &Rpc) -> u64 {
    let found = line.flow().and_then(|flow| rpc.flows.round_trip(flow)).map_or(0, Rtt::least_ns);
    if found > 0 { found } else { line.handshake.iter().flatten().sum() }
}

impl Sights {
    /// A packet of end `from` that is no copy. Zero is none: Linux answers a SYN with it.
    fn identified(&mut self, from: usize, id: u16) {
        let (last, alike) = &mut self.ids[from];
        if id != 0 {
            *alike = if *last == id { alike.saturating_add(1) } else { 1 };
            *last = id;
        }
    }

    /// Whether this end gives all of its packets the same identification.
    fn is_constant(&self, from: usize) -> bool {
        self.ids[from].1 >= ALIKE_MIN
    }

    /// Whether the connection is read at this place.
    fn reads(&mut self, place: u8, now: u64) -> bool {
        let Some((home, at_ns)) = &mut self.home else { return true };
        if *home == place {
            *at_ns = now;
        } else if now.saturating_sub(*at_ns) < SILENCE_NS {
            return false;
        } else {
            self.home = None;
        }
        true
    }
}

/// What distinguishes a packet that was captured elsewhere than its connection is read.
const ELSEWHERE: u64 = (1 << 63) | (1 << (SETS_BITS - 1));

/// Where a packet is remembered, and by what it is known there.
fn seat(print: u64) -> (usize, u32) {
    (usize::try_from(print % (1 << SETS_BITS)).unwrap_or(0), (print >> 32) as u32)
}

/// What two captures of one packet have in common, and packets of other bytes have not. None for
/// what is too short to be distinguished.
fn print(segment: &Segment<'_>, slot: u32, from: usize) -> Option<u64> {
    /// 2^64 by the golden ratio.
    const MIX: u64 = 0x9e37_79b9_7f4a_7c15;
    let (number, acknowledged) = match segment.protocol {
        Protocol::Tcp(part) if segment.len > 0 => (part.seq, 0),
        Protocol::Tcp(part) => (part.seq, part.ack?.rotate_left(8) ^ u32::from(part.window)),
        // The transaction number.
        Protocol::Udp => (u32::from_be_bytes(*segment.payload.first_chunk()?), 0),
    };
    let sender = (u64::from(slot) << 1) | from as u64;
    let print = ((u64::from(number) << 32) | u64::from(segment.len)).wrapping_mul(MIX);
    let print =
        (print ^ (print >> 29) ^ (sender << 32) ^ u64::from(acknowledged)).wrapping_mul(MIX);
    Some(print ^ (print >> 32))
}
