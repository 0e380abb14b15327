//! A client with a server, over all of their connections: what the verdict rests on.
//!
//! Connections come and go, and a client may have several at once: what waits on one of them holds
//! up a program that uses them all. So pace, losses and times are counted here for both hosts
//! together, too.

use std::net::IpAddr;

use super::failures::Failures;
use super::late::Hung;
use super::operation::{Kind, Operation};
use super::pace::Pace;
use super::postponed::Postponed;
use super::rtt::Rtt;
use super::spread::Spread;
use super::transaction::Transaction;
use super::work::{WORKS, Work};
use crate::capture::{End, Pieces};

/// A client's address, and a server.
#[derive(Clone, Copy, Debug, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Hosts {
    pub(super) client: u128,
    pub server: End,
}

impl Hosts {
    /// Both ways in which two ends may be client and server.
    pub(super) const fn either([one, other]: [End; 2]) -> [Self; 2] {
        [Self::new(one, other), Self::new(other, one)]
    }

    pub(super) const fn new(client: End, server: End) -> Self {
        Self { client: client.address, server }
    }

    pub fn client(self) -> IpAddr {
        End { address: self.client, port: 0 }.ip()
    }
}

/// Width of a bin in which bytes are counted: a dozen calls and more where a link is full.
pub(super) const BIN_NS: u64 = 50_000_000;
/// Most that a WRITE, or a COMMIT with the WRITEs before it, makes stable when it is called small:
/// four pages.
pub const SMALL_SYNC_BYTES: u64 = 16 << 10;

/// What is known of a client with a server.
#[derive(Debug, Default)]
pub struct Pair {
    /// None for all that found no place of their own.
    pub hosts: Option<Hosts>,
    pub rtt: Rtt,
    pub pace: Pace,
    /// In the order of [`Work::ALL`].
    pub works: [Worked; WORKS],
    /// What the client sent, and what the server sent.
    pub sides: [OneSide; 2],
    pub syncs: Syncs,
    pub udp: Repeats,
    pub datagrams: Datagrams,
    /// Connections of which messages of one end were captured alone.
    pub one_way: u64,
    pub hung: Hung,
    pub relay: Relay,
    pub(super) between: Between,
    /// Calls whose times are not known, because the capture has lost an end of them.
    pub untimed: u64,
    /// COMPOUNDs of which is not known what for.
    pub nameless: u64,
    /// Calls that RPC refused: of another version, or for want of a credential that is good.
    pub refused: u64,
    pub(super) postponed: Postponed,
    pub(super) failures: Failures,
}

/// Calls of one kind of work that got their reply.
#[derive(Clone, Debug, Default)]
pub struct Worked {
    pub calls: u64,
    pub bytes: u64,
    pub latency: Spread,
    /// Of those that waited for nothing that is counted for itself ([`Pace::is_work`]).
    plain: (u64, u64),
}

impl Worked {
    /// What one takes on average, of those that waited for nothing that is counted for itself.
    pub(super) fn mean_ns(&self) -> u64 {
        let (calls, ns) = self.plain;
        ns.checked_div(calls).unwrap_or_else(|| self.latency.mean().as_nanos())
    }
}

/// What one end of a pair sends.
#[derive(Clone, Debug, Default)]
pub struct OneSide {
    /// Segments with data, of TCP, and their bytes.
    pub segments: u64,
    pub bytes: u64,
    /// Captured twice: lost behind the capture.
    pub again: u64,
    /// Of those, the ones that the other end had already: sent twice for nothing.
    pub had: u64,
    /// Missing, and filled late: lost before the capture.
    pub filled: u64,
    /// Bytes that were acknowledged and never captured: the capture lost them, not the network.
    pub missing_bytes: u64,
    /// Times that a message began in what the capture does not hold of a packet.
    pub cut: u64,
    /// Times in which this end announced a TCP window of zero; and how long it did so on one
    /// connection or more.
    pub zero_windows: u64,
    pub zero_window_ns: u64,
    /// Connections on which it does, and since when there are any.
    zero_now: u32,
    zero_since_ns: u64,
    /// From the first to the last byte of each message; and the most of one connection.
    pub stretch_ns: u64,
    pub stretch_ns_max: u64,
    /// Bytes in each bin of time that had some.
    pub bins: Spread,
    bin: u64,
    bin_bytes: u64,
}

/// How often data were made stable.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Syncs {
    /// COMMITs and stable WRITEs.
    pub calls: u64,
    pub bytes: u64,
    /// Those of at most [`SMALL_SYNC_BYTES`].
    pub small: u64,
    pub small_bytes: u64,
    /// Response times, of all and of those.
    pub ns: u64,
    pub small_ns: u64,
}

/// How long packets took between two places where they were captured, of the client and of the
/// server: the clocks may differ, which only the sum of both does not show.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Between([Differences; 2]);

#[derive(Clone, Copy, Debug, Default)]
struct Differences {
    count: i64,
    sum_ns: i128,
    least_ns: i64,
}

impl Between {
    /// A packet was captured at the place nearer to the client, and at the other.
    pub(super) fn record(&mut self, is_server: bool, near_ns: u64, far_ns: u64) {
        let ns = far_ns.cast_signed() - near_ns.cast_signed();
        let ns = if is_server { -ns } else { ns };
        let of = &mut self.0[usize::from(is_server)];
        of.least_ns = if of.count == 0 { ns } else { of.least_ns.min(ns) };
        of.count += 1;
        of.sum_ns += i128::from(ns);
    }

    /// The round trip between both places, at least and on average.
    pub(super) fn round_trip_ns(&self) -> Option<(u64, u64)> {
        let Self([client, server]) = self;
        let mean = |of: &Differences| of.sum_ns.checked_div(of.count.into());
        let mean_ns = mean(client)? + mean(server)?;
        let least_ns = client.least_ns.saturating_add(server.least_ns);
        Some((u64::try_from(least_ns).unwrap_or(0), u64::try_from(mean_ns).unwrap_or(0)))
    }
}

/// Calls that a relay passed on, and that were seen on both of its sides.
#[derive(Clone, Debug, Default)]
pub struct Relay {
    /// Response times before the relay, and behind it.
    pub whole_ns: u64,
    pub behind_ns: u64,
    /// What the relay and the way to it added.
    pub added: Spread,
    /// In the order of [`Work::ALL`].
    pub works: [Relayed; WORKS],
}

/// Calls of one kind of work that were seen on both sides of a relay.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Relayed {
    pub calls: u64,
    /// Response times before the relay, and behind it.
    pub whole_ns: u64,
    pub behind_ns: u64,
}

impl Relayed {
    /// What the relay and the way to it added to a call, on average.
    pub fn added_ns(self) -> u64 {
        self.whole_ns.saturating_sub(self.behind_ns) / self.calls.max(1)
    }
}

impl Relay {
    pub(super) fn record(&mut self, work: Work, whole_ns: u64, behind_ns: u64) {
        let of = &mut self.works[work as usize];
        of.calls += 1;
        of.whole_ns += whole_ns;
        of.behind_ns += behind_ns;
        self.whole_ns += whole_ns;
        self.behind_ns += behind_ns;
        self.added.record(whole_ns.saturating_sub(behind_ns));
    }
}

/// Calls over UDP that were retransmitted.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Repeats {
    pub calls: u64,
    /// Those of them that were retransmitted, and how often in all.
    pub repeated: u64,
    pub times: u64,
    /// Second replies: the server had got the call before.
    pub twice: u64,
    /// From when a call was sent first to when it was sent last.
    pub waited_ns: u64,
    /// Response times of all calls, from when each was sent first.
    pub ns: u64,
}

/// What shows whether a capture has the fragments of datagrams.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Datagrams {
    /// Of the client, and of the server.
    pub pieces: [Pieces; 2],
    /// Replies over UDP to calls that were not seen.
    pub callless: u64,
    /// READs over UDP of more than a packet holds that were answered with as much, and those that
    /// were not answered.
    pub long_answered: u64,
    pub long_unanswered: u64,
}

impl Datagrams {
    /// Bytes of a datagram, above which it is in fragments on an Ethernet.
    const PACKET_BYTES: u32 = 1472;

    /// A call over UDP was answered with so many bytes of data, or not any more.
    fn count(&mut self, transaction: &Transaction) {
        let is_read = transaction.operation.kind() == Kind::Read;
        self.long_answered += u64::from(is_read && transaction.bytes > Self::PACKET_BYTES);
    }

    pub(super) fn unanswered(&mut self, operation: Operation, count: u32) {
        let is_long = operation.kind() == Kind::Read && count > Self::PACKET_BYTES;
        self.long_unanswered += u64::from(is_long);
    }
}

impl Syncs {
    /// A call has made so much stable, in so long.
    const fn count(&mut self, bytes: u64, ns: u64) {
        self.calls += 1;
        self.bytes += bytes;
        self.ns += ns;
        if bytes <= SMALL_SYNC_BYTES {
            self.small += 1;
            self.small_bytes += bytes;
            self.small_ns += ns;
        }
    }
}

impl Repeats {
    /// A call was answered, so long after it was sent first.
    fn count(&mut self, transaction: &Transaction, ns: u64) {
        self.calls += 1;
        self.ns += ns;
        if transaction.retransmissions > 0 {
            self.repeated += 1;
            self.times += u64::from(transaction.retransmissions);
            self.waited_ns += transaction.repeated_ns.saturating_sub(transaction.call_ns);
        }
    }

    /// Most of what was retransmitted had arrived before: the server is slower than the timer.
    pub const fn had_arrived(&self) -> bool {
        self.times > 0 && self.twice * 2 > self.times
    }
}

impl OneSide {
    pub(super) fn sent(&mut self, now: u64, len: u32) {
        self.bytes += u64::from(len);
        self.segments += 1;
        let bin = now / BIN_NS;
        if bin != self.bin {
            self.close();
            self.bin = bin;
        }
        self.bin_bytes += u64::from(len);
    }

    /// It announces a window of zero on one connection more.
    pub(super) const fn stops(&mut self, now: u64) {
        self.zero_windows += 1;
        if self.zero_now == 0 {
            self.zero_since_ns = now;
        }
        self.zero_now += 1;
    }

    /// And on one less.
    pub(super) const fn goes_on(&mut self, now: u64) {
        self.zero_now = self.zero_now.saturating_sub(1);
        if self.zero_now == 0 {
            self.zero_window_ns += now.saturating_sub(self.zero_since_ns);
        }
    }

    /// Nothing more comes in this bin.
    pub(super) fn close(&mut self) {
        if self.bin_bytes > 0 {
            self.bins.record(self.bin_bytes);
        }
        self.bin_bytes = 0;
    }

    /// Segments with data, as they are on a network.
    pub fn packets(&self) -> u64 {
        as_packets(self.segments, self.bytes)
    }
}

/// So many segments as they are on a network: a capture has longer ones where the card cuts and
/// joins.
pub(super) fn as_packets(segments: u64, bytes: u64) -> u64 {
    /// Data of a segment on Ethernet, with time stamps.
    const SEGMENT_BYTES: u64 = 1448;
    if segments == 0 { 0 } else { segments.max(bytes / SEGMENT_BYTES) }
}

impl Pair {
    /// Counts a call that was answered over a connection on which messages took so long to pass.
    pub(super) fn count(
        &mut self,
        transaction: &Transaction,
        is_tcp: bool,
        unsynced: Option<u64>,
        stretches_ns: [u64; 2],
    ) {
        let worked = &mut self.works[transaction.work() as usize];
        worked.calls += 1;
        worked.bytes += u64::from(transaction.bytes);
        self.nameless += u64::from(transaction.operation.is_nameless());
        self.refused += u64::from(transaction.is_refused());
        self.failures.answered(transaction.status);
        let Some(latency) = transaction.latency() else {
            self.untimed += 1;
            return;
        };
        let ns = latency.as_nanos();
        worked.latency.record(ns);
        if self.pace.was_late() {
            self.hung.count(ns, transaction.call_frame, true);
        } else if self.pace.is_work() {
            worked.plain.0 += 1;
            worked.plain.1 += ns;
        }
        let times = transaction.stretches().into_iter().zip(stretches_ns);
        for (side, (ns, all_ns)) in self.sides.iter_mut().zip(times) {
            side.stretch_ns += ns;
            side.stretch_ns_max = side.stretch_ns_max.max(all_ns);
        }
        if let Some(bytes) = unsynced {
            self.syncs.count(bytes, ns);
        }
        if !is_tcp {
            self.udp.count(transaction, ns);
            self.datagrams.count(transaction);
        }
    }

    pub fn worked(&self, work: Work) -> &Worked {
        &self.works[work as usize]
    }
}
