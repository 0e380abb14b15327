//! The numbers that a verdict rests on.

use std::ops::Range;

use crate::capture::Pieces;
use crate::late::Hung;
use crate::pace::{Cause, Gap, Pace, Waited};
use crate::pair::{BIN_NS, Datagrams, Hosts, OneSide, Pair, Relayed, Repeats, Syncs};
use crate::rtt::RttOf;
use crate::service::{Service, Stalls};
use crate::work::{WORKS, Work};

/// How long kernels wait for something to send with an acknowledgement: it shows nothing of the
/// network then (Linux: 40 ms).
const DELAYED_ACK_NS: Range<u64> = 30_000_000..50_000_000;

/// Replies without calls, for each reply with one, from which on calls are missing (ours).
const CALLLESS_MIN: f64 = 0.1;

/// Times that are multiples of more tell nothing of a LAN: 100 us.
const COARSE_NS: u64 = 100_000;

/// Calls of one kind of work.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkNumbers {
    pub calls: u64,
    pub bytes: u64,
    pub median_ns: u64,
    /// Of those that waited for nothing that is counted for itself: their sum is what the time goes
    /// for, however unlike they are.
    pub mean_ns: u64,
}

/// What one end has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SideNumbers {
    pub packets: u64,
    pub bytes: u64,
    /// Retransmitted after they were captured: for want of them, and for nothing.
    pub again: u64,
    pub had: u64,
    pub filled: u64,
    pub missing_bytes: u64,
    pub cut: u64,
    pub zero_windows: u64,
    pub zero_window_ns: u64,
    pub stretch_ns: u64,
    /// Of the connection on which messages took most time to pass.
    pub stretch_ns_max: u64,
    /// Bins of 50 ms with data, and bytes a second in half of them, in all but one of 20, and in
    /// all together.
    pub bins: u64,
    pub bytes_per_s_p50: f64,
    pub bytes_per_s_p95: f64,
    pub bytes_per_s_mean: f64,
}

/// What a link carries differs so little from one 50 ms to the next.
const STEADY: f64 = 0.8;
const STEADY_BINS: u64 = 8;

impl SideNumbers {
    pub fn of(side: &OneSide) -> Self {
        let per_s = |q: f64| bins_per_s(side.bins.quantile(q).as_nanos());
        let had = side.had.min(side.again);
        Self {
            packets: side.packets(),
            bytes: side.bytes,
            again: side.again - had,
            had,
            filled: side.filled,
            missing_bytes: side.missing_bytes,
            cut: side.cut,
            zero_windows: side.zero_windows,
            zero_window_ns: side.zero_window_ns,
            stretch_ns: side.stretch_ns,
            stretch_ns_max: side.stretch_ns_max,
            bins: side.bins.count(),
            bytes_per_s_p50: per_s(0.5),
            bytes_per_s_p95: per_s(0.95),
            bytes_per_s_mean: bins_per_s(side.bins.mean().as_nanos()),
        }
    }

    /// Whether it sends the same while it sends.
    pub fn is_steady(&self) -> bool {
        self.bins >= STEADY_BINS && self.bytes_per_s_p50 >= STEADY * self.bytes_per_s_p95
    }

    /// Whether it sends the same all the time, which is `all_ns`: what a full link does.
    pub fn is_at_one_rate(&self, all_ns: u64) -> bool {
        // Bins without data are in none of its numbers.
        self.is_steady() && self.bins * BIN_NS * 10 >= all_ns * 9
    }
}

/// All of it, of one client with its server.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Evidence {
    pub hosts: Option<Hosts>,
    /// What the capture's times are multiples of; 0 where that is not known.
    pub resolution_ns: u64,
    /// Pairs of hosts in the capture, and whether this is the busiest of them.
    pub pairs: usize,
    pub is_busiest: bool,
    pub waited: Waited,
    /// In the order of [`Work::ALL`].
    pub works: [WorkNumbers; WORKS],
    /// Of the time with calls outstanding, that with exactly one.
    pub stop_and_wait: Option<f64>,
    pub outstanding_max: u32,
    /// Times from a reply to the next call, while none was outstanding.
    pub thinks: u64,
    pub think_median_ns: u64,
    /// How soon the server's kernel acknowledged: at least, and at the median; and the client's.
    pub server_ack_ns: Option<(u64, u64)>,
    pub client_ack_ns: Option<(u64, u64)>,
    /// The round trip of packets between two places where they were captured: at least, and on
    /// average.
    pub between_ns: Option<(u64, u64)>,
    /// The fastest reply to a call that waited for nothing.
    pub light_ns: Option<u64>,
    /// Of the work that has the fastest call, of those that need nothing stable: that call, and the
    /// median.
    pub fastest_ns: Option<(u64, u64)>,
    /// What a relay added that was captured on both sides, at least; and calls that it passed on.
    pub relay_ns: Option<u64>,
    pub relayed: u64,
    /// Their times, in the order of [`Work::ALL`].
    pub relayed_works: [Relayed; WORKS],
    /// What the client sent, and what the server sent.
    pub sides: [SideNumbers; 2],
    pub syncs: Syncs,
    pub udp: Repeats,
    pub datagrams: Datagrams,
    /// Connections of which one direction was captured.
    pub one_way: u64,
    pub hung: Hung,
    /// Of the server, with all of its clients.
    pub stalls: Stalls,
    pub server_ns: u64,
    pub clients: usize,
    /// Replies whose times are not known.
    pub untimed: u64,
    /// Calls that the server put off; how many were made again, and how soon at the median.
    pub postponed: u64,
    pub called_again: u64,
    pub called_again_median_ns: u64,
    /// COMPOUNDs of which is not known what for.
    pub nameless: u64,
    /// Calls that RPC refused.
    pub refused: u64,
    /// Calls that were answered with an error; and the most frequent, with how often it was.
    pub failed: u64,
    pub failure: Option<(u32, u64)>,
    /// Calls outstanding when the capture ended.
    pub unanswered: u64,
    /// Gaps in which the server was silent, and in which the client was.
    pub silences: Gaps,
    pub pauses: Gaps,
    /// How often the capture's clock was set back.
    pub set_back: u64,
}

/// Times without a reply.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Gaps {
    pub count: u64,
    pub ns: u64,
    pub longest_ns: u64,
}

impl Gaps {
    /// Those of one cause.
    fn of(pace: &Pace, cause: Cause) -> Self {
        let place = Cause::ALL.iter().position(|one| *one == cause).unwrap_or(0);
        let (count, ns) = pace.by_cause[place];
        let own = pace.gaps.iter().filter(|gap| gap.cause == cause);
        Self { count, ns, longest_ns: own.map(Gap::ns).max().unwrap_or(0) }
    }
}

impl Evidence {
    /// Of a pair, as if there were no other.
    pub(super) fn of(pair: &Pair, service: &Service) -> Self {
        let acks = |of: RttOf| {
            let times = pair.rtt.times(of);
            let ns = |q: f64| times.quantile(q).as_nanos();
            (times.count() > 0).then(|| (times.min().as_nanos(), ns(0.5)))
        };
        let relayed = pair.relay.added.count();
        let unsynced = Work::ALL.into_iter().filter(|work| !work.is_sync());
        let times = unsynced.map(|work| &pair.worked(work).latency);
        let fastest = times.filter(|times| times.count() > 0).min_by_key(|times| times.min());
        let light = pair.rtt.times(RttOf::Replies);
        Self {
            hosts: pair.hosts,
            resolution_ns: 0,
            pairs: 1,
            is_busiest: true,
            waited: pair.pace.waited,
            works: pair.works.each_ref().map(|work| WorkNumbers {
                calls: work.calls,
                bytes: work.bytes,
                median_ns: work.latency.quantile(0.5).as_nanos(),
                mean_ns: work.mean_ns(),
            }),
            stop_and_wait: pair.pace.stop_and_wait(),
            outstanding_max: pair.pace.outstanding_max,
            thinks: pair.pace.think.count(),
            think_median_ns: pair.pace.think.quantile(0.5).as_nanos(),
            server_ack_ns: acks(RttOf::Server),
            client_ack_ns: acks(RttOf::Client),
            between_ns: pair.between.round_trip_ns(),
            light_ns: (light.count() > 0).then(|| light.min().as_nanos()),
            fastest_ns: fastest
                .map(|times| (times.min().as_nanos(), times.quantile(0.5).as_nanos())),
            relay_ns: (relayed > 0).then(|| pair.relay.added.min().as_nanos()),
            relayed,
            relayed_works: pair.relay.works,
            sides: pair.sides.each_ref().map(SideNumbers::of),
            syncs: pair.syncs,
            udp: pair.udp,
            datagrams: pair.datagrams,
            one_way: pair.one_way,
            hung: pair.hung,
            stalls: service.stalls,
            server_ns: service.pace.waited.all(),
            clients: 1,
            untimed: pair.untimed,
            postponed: pair.postponed.replies,
            called_again: pair.postponed.waits.count(),
            called_again_median_ns: pair.postponed.waits.quantile(0.5).as_nanos(),
            nameless: pair.nameless,
            refused: pair.refused,
            failed: pair.failures.calls,
            failure: pair.failures.most(),
            unanswered: pair.pace.outstanding().into(),
            silences: Gaps::of(&pair.pace, Cause::SilentServer),
            pauses: Gaps::of(&pair.pace, Cause::SilentClient),
            set_back: 0,
        }
    }

    /// Datagrams of which the capture has the first fragment only, or of version 6 of IP none: a
    /// filter by ports lets no others through. A network that loses fragments loses some.
    pub fn unseen_datagrams(&self) -> u64 {
        /// One may be the last of the capture.
        const UNSEEN_MIN: u64 = 2;
        let Datagrams { pieces, callless, long_answered, long_unanswered } = self.datagrams;
        let alone = pieces.iter().filter(|pieces| pieces.others == 0).map(|pieces| pieces.alone);
        let alone: u64 = alone.sum();
        let is_v6 = self.hosts.is_some_and(|hosts| hosts.server.ip().is_ipv6());
        let is_whole = !is_v6 || pieces.iter().any(|pieces| *pieces != Pieces::default());
        let unanswered = if long_answered == 0 { long_unanswered } else { 0 };
        // Where a capture begins there are some replies whose calls it has not.
        let callless = if share(callless, self.replies()) > CALLLESS_MIN { callless } else { 0 };
        let none = if is_whole { 0 } else { callless + unanswered };
        Some(alone + none).filter(|unseen| *unseen >= UNSEEN_MIN).unwrap_or(0)
    }

    pub const fn work(&self, work: Work) -> WorkNumbers {
        self.works[work as usize]
    }

    /// Calls that got their reply.
    pub fn replies(&self) -> u64 {
        self.works.iter().map(|work| work.calls).sum()
    }

    /// Whether a few long pauses are most of the time in which the client is idle.
    pub const fn is_idle_in_pauses(&self) -> bool {
        self.pauses.ns * 2 > self.waited.idle
    }

    /// What most of the time goes for, of what needs nothing stable.
    pub fn main(&self) -> Work {
        let others = Work::ALL.into_iter().filter(|work| !work.is_sync());
        let most = others.max_by_key(|work| (self.waited.of(*work), self.work(*work).calls));
        most.unwrap_or(Work::Other)
    }

    /// Whether nearly always one call was outstanding, of the time with any.
    pub fn is_alone(&self) -> bool {
        /// Of the busy time.
        const ALONE: f64 = 0.9;
        self.stop_and_wait.is_some_and(|share| share >= ALONE)
    }

    /// The network's round trip, at least; none where nothing shows it. Between two places where it
    /// was captured it is what packets took.
    pub fn round_trip_ns(&self) -> Option<u64> {
        if let (Some((_, mean)), None) = (self.between_ns, self.relay_ns) {
            return Some(mean + self.client_end_ns());
        }
        match (self.server_ack_ns, self.relay_ns) {
            // A relay acknowledges by itself.
            (_, Some(added)) => Some(added),
            (Some((server, _)), None) => Some(server + self.client_end_ns()),
            // A server that answers soon acknowledges by its replies: the fastest shows its end.
            (None, None) => match (self.light_ns, self.client_ack_ns) {
                (None, None) => None,
                (light, _) => Some(light.unwrap_or(0) + self.client_end_ns()),
            },
        }
    }

    /// The capture cannot tell such a time from none: it is shorter than what times are multiples
    /// of, where that is longer than what a LAN takes.
    pub const fn is_too_short(&self, ns: u64) -> bool {
        self.resolution_ns >= COARSE_NS && ns < self.resolution_ns
    }

    /// What a call of this work takes on the network, at the median: with the time that its data
    /// take, and wait there.
    pub fn network_ns(&self, work: Work) -> u64 {
        let least = self.round_trip_ns().unwrap_or(0);
        match work {
            _ if self.between_ns.is_some() => least,
            // A kernel acknowledges data when they are there, whatever the server does then.
            Work::Write | Work::StableWrite if self.relay_ns.is_none() => {
                let acks = self.server_ack_ns.filter(|acks| !is_delayed(*acks));
                let carried = acks.map_or(0, |(_, median)| median + self.client_end_ns());
                least.max(carried)
            }
            Work::Read => {
                let calls = self.work(Work::Read).calls.max(1);
                least + self.sides[1].stretch_ns / calls
            }
            _ => least,
        }
    }

    /// Of what calls of this work take together, the part that is not the server's, of 1.
    pub fn way_share(&self, work: Work) -> f64 {
        let Relayed { calls, whole_ns, behind_ns } = self.relayed_works[work as usize];
        if calls > 0 {
            // What it takes behind a relay was captured.
            return 1.0 - share(behind_ns, whole_ns).min(1.0);
        }
        let whole_ns = self.work(work).mean_ns + self.client_end_ns();
        share(self.network_ns(work), whole_ns).min(1.0)
    }

    /// What a relay and the way to it add to a call of this work on average is twice the least and
    /// more: with several outstanding calls alike, the link behind it is full, or the relay busy.
    /// One that carries less than it can adds less, however many are outstanding.
    pub fn waits_at_relay(&self, work: Work) -> bool {
        let relayed = self.relayed_works[work as usize];
        let is_queued = self.relay_ns.is_some_and(|least| relayed.added_ns() >= 2 * least);
        relayed.calls > 0 && is_queued && self.way_share(work) >= 0.5
    }

    /// Of the network, what lies between the capture and the client.
    pub fn client_end_ns(&self) -> u64 {
        self.client_ack_ns.map_or(0, |(least, _)| least)
    }

    /// Segments lost of what `side` sent, of 1.
    pub fn loss(&self, side: usize) -> f64 {
        let SideNumbers { packets, again, filled, .. } = self.sides[side];
        share(again + filled, packets)
    }
}

/// Whether a kernel waited for something to send with its acknowledgements.
pub(super) fn is_delayed((least_ns, median_ns): (u64, u64)) -> bool {
    DELAYED_ACK_NS.contains(&median_ns) && least_ns < DELAYED_ACK_NS.start
}

fn bins_per_s(bytes: u64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a rate")]
    let per_s = bytes as f64 * (1e9 / BIN_NS as f64);
    per_s
}

#[expect(clippy::cast_precision_loss, reason = "a share")]
pub(super) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}
