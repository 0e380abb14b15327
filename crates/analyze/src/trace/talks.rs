//! Talks: a client and a server that speak over one pair of ports, however often they connect.
//!
//! At most [`TALKS_MAX`] are told apart; what comes on top is one talk more, of all others.

use std::collections::HashMap;

use foldhash::fast::RandomState;

use super::operation::Operation;
use super::pace::Pace;
use super::rtt::Rtt;
use super::spread::Spread;
use super::stream::StreamCounts;
use super::transaction::Transaction;
use crate::capture::End;

/// Talks that are told apart.
pub const TALKS_MAX: usize = 4096;
/// Transaction numbers that a talk remembers after their reply.
const REMEMBERED: usize = 128;

/// A talk's place in the table.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct TalkId(pub(super) u32);

/// Who speaks with whom.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct Ends {
    pub client: End,
    pub server: End,
    pub is_tcp: bool,
}

#[derive(Debug, Default)]
pub struct Talks {
    by_ends: HashMap<Ends, TalkId, RandomState>,
    talks: Vec<Talk>,
    by_hosts: HashMap<Hosts, usize, RandomState>,
    /// The way between hosts is the same for all of their talks, one after the other or at once.
    round_trips: Vec<(Option<Hosts>, Rtt)>,
}

/// A client's address, and a server.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
struct Hosts {
    client: u128,
    server: End,
}

/// One client and one server.
#[derive(Debug)]
pub struct Talk {
    /// None for all that found no place of their own.
    pub ends: Option<Ends>,
    pub tallies: Tallies,
    pub pace: Pace,
    /// Its place among the round trips.
    hosts: usize,
    pub streams: StreamCounts,
    pub first_ns: u64,
    pub last_ns: u64,
    /// Calls that were sent again.
    pub retransmissions: u64,
    /// Replies to calls that were answered already.
    pub duplicate_replies: u64,
    /// Replies to calls that were not seen.
    pub unasked_replies: u64,
    pub unanswered: u64,
    /// Connections that went over to TLS (RFC 9289).
    pub tls: u64,
    answered: Box<[Remembered; REMEMBERED]>,
}

type Remembered = Option<(u32, bool)>;

/// Counts for each operation that occurred.
#[derive(Clone, Debug, Default)]
pub struct Tallies {
    indices: Vec<u16>,
    tallies: Vec<Tally>,
}

/// What is counted of an operation.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    pub errors: u64,
    /// Read or written.
    pub bytes: u64,
    pub retransmissions: u64,
    /// Its count is the number of calls with a reply.
    pub latency: Spread,
}

impl Talks {
    pub(super) fn of(&mut self, ends: Ends) -> TalkId {
        if let Some(&id) = self.by_ends.get(&ends) {
            return id;
        }
        let index = self.talks.len();
        let ends = (index < TALKS_MAX).then_some(ends);
        if ends.is_none() && index > TALKS_MAX {
            return TalkId(u32::try_from(TALKS_MAX).unwrap_or(0));
        }
        let id = TalkId(u32::try_from(index).unwrap_or(0));
        if let Some(ends) = ends {
            self.by_ends.insert(ends, id);
        }
        let hosts = self.hosts(ends);
        self.talks.push(Talk {
            ends,
            tallies: Tallies::default(),
            pace: Pace::default(),
            hosts,
            streams: StreamCounts::default(),
            first_ns: 0,
            last_ns: 0,
            retransmissions: 0,
            duplicate_replies: 0,
            unasked_replies: 0,
            unanswered: 0,
            tls: 0,
            answered: Box::new([None; REMEMBERED]),
        });
        id
    }

    fn hosts(&mut self, ends: Option<Ends>) -> usize {
        let hosts = ends.map(|ends| Hosts { client: ends.client.address, server: ends.server });
        let next = self.round_trips.len();
        let place = match hosts {
            Some(hosts) => *self.by_hosts.entry(hosts).or_insert(next),
            None => next,
        };
        if place == next {
            self.round_trips.push((hosts, Rtt::default()));
        }
        place
    }

    /// The round trip between a talk's hosts, by all of their talks.
    pub fn round_trip(&self, id: TalkId) -> Option<&Rtt> {
        let (_, rtt) = self.round_trips.get(self.get(id)?.hosts)?;
        Some(rtt)
    }

    pub(super) fn round_trip_mut(&mut self, id: TalkId) -> Option<&mut Rtt> {
        let hosts = self.get(id)?.hosts;
        self.round_trips.get_mut(hosts).map(|(_, rtt)| rtt)
    }

    /// Those of all hosts, with a name for people.
    pub fn round_trips(&self) -> impl Iterator<Item = (String, &Rtt)> {
        self.round_trips.iter().map(|(hosts, rtt)| {
            let name = match hosts {
                Some(Hosts { client, server }) => {
                    format!("{} -> {server}", End { address: *client, port: 0 }.ip())
                }
                None => "other connections".to_owned(),
            };
            (name, rtt)
        })
    }

    pub fn get(&self, id: TalkId) -> Option<&Talk> {
        self.talks.get(id.0 as usize)
    }

    pub(super) fn get_mut(&mut self, id: TalkId) -> Option<&mut Talk> {
        self.talks.get_mut(id.0 as usize)
    }

    pub fn iter(&self) -> impl Iterator<Item = (TalkId, &Talk)> {
        let ids = (0_u32..).map(TalkId);
        ids.zip(&self.talks)
    }

    /// Those of which a filter let a call through.
    pub fn heard(&self) -> impl Iterator<Item = (TalkId, &Talk)> {
        self.iter().filter(|(_, talk)| talk.first_ns > 0)
    }

    /// A name for people: `10.0.0.1:900 -> 10.0.0.2:2049`.
    pub fn name(&self, id: TalkId) -> String {
        match self.get(id).and_then(|talk| talk.ends) {
            Some(Ends { client, server, is_tcp }) => {
                let udp = if is_tcp { "" } else { " (UDP)" };
                format!("{client} -> {server}{udp}")
            }
            None => "other connections".to_owned(),
        }
    }
}

impl Talk {
    /// Remembers that a call was answered.
    pub(super) fn remember(&mut self, xid: u32, from_server: bool) {
        self.answered[place(xid)] = Some((xid, from_server));
    }

    /// Whether a call was answered a short while ago.
    pub(super) fn was_answered(&self, xid: u32, from_server: bool) -> bool {
        self.answered[place(xid)] == Some((xid, from_server))
    }
}

/// Numbers count upwards, in either order of bytes.
fn place(xid: u32) -> usize {
    ((xid ^ xid.swap_bytes()) as usize) % REMEMBERED
}

impl Tallies {
    /// The tally of an operation.
    pub(super) fn of(&mut self, operation: Operation) -> &mut Tally {
        let index = u16::try_from(operation.index()).unwrap_or(u16::MAX);
        let at = match self.indices.iter().position(|known| *known == index) {
            Some(at) => at,
            None => {
                self.indices.push(index);
                self.tallies.push(Tally::default());
                self.tallies.len() - 1
            }
        };
        &mut self.tallies[at]
    }

    pub fn merge(&mut self, other: &Self) {
        for (operation, tally) in other.iter() {
            self.of(operation).merge(tally);
        }
    }

    /// In no order.
    pub fn iter(&self) -> impl Iterator<Item = (Operation, &Tally)> {
        let operations = self.indices.iter().filter_map(|index| Operation::at((*index).into()));
        operations.zip(&self.tallies)
    }

    /// All operations together.
    pub fn total(&self) -> Tally {
        let mut total = Tally::default();
        self.tallies.iter().for_each(|tally| total.merge(tally));
        total
    }
}

impl Tally {
    pub(super) fn count(&mut self, transaction: &Transaction) {
        self.errors += u64::from(transaction.is_error());
        self.bytes += u64::from(transaction.bytes);
        self.retransmissions += u64::from(transaction.retransmissions);
        self.latency.record(transaction.latency().as_nanos());
    }

    pub fn merge(&mut self, other: &Self) {
        self.errors += other.errors;
        self.bytes += other.bytes;
        self.retransmissions += other.retransmissions;
        self.latency.merge(&other.latency);
    }

    pub const fn calls(&self) -> u64 {
        self.latency.count()
    }
}
