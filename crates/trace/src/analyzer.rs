//! Packets in, what they say out.

use std::collections::{BTreeMap, BTreeSet};

use super::connections::Connections;
use super::copies::Copies;
use super::files::Files;
use super::filter::Filter;
use super::flows::Flows;
use super::pace::Pace;
use super::pair::{Hosts, OneSide, as_packets};
use super::rpc::{Each, Line, Rpc};
use super::rtt::Stopwatch;
use super::series::Series;
use super::stream::{LISTING_LEN, Record, Stream, StreamCounts};
use super::totals::Totals;
use crate::capture::{DAMAGED, Packet, Place, Protocol, Segment, Sliced, Slicer, TcpPart};

/// Time of the capture between two looks for calls that wait in vain.
const SWEEP_NS: u64 = 1_000_000_000;
/// Sorts of packets that are distinguished.
const SORTS_MAX: usize = 16;

/// Takes packets in the order of their time.
#[derive(Debug, Default)]
pub struct Analyzer {
    slicer: Slicer,
    connections: Connections,
    copies: Copies,
    rpc: Rpc,
    /// What no RPC message was found in: packets by sort.
    others: BTreeMap<&'static str, u64>,
    packets: u64,
    cut: Cut,
    first_ns: u64,
    last_ns: u64,
    /// When calls that wait in vain were looked for last.
    swept_ns: u64,
    /// What times are multiples of; 0 where that is not known.
    resolution_ns: u64,
    set_back: SetBack,
}

/// How often the clock of a capture was set back, and by how much in all: packets behind that are
/// as late as if it had not been.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct SetBack {
    pub times: u64,
    pub ns: u64,
    /// The first packet behind.
    pub frame: u64,
    before_ns: u64,
}

impl SetBack {
    /// When a packet came, by the clock as it was first. Several queues of a card are captured one
    /// after the other, but none so late.
    fn corrected(&mut self, packet: &Packet<'_>) -> u64 {
        const LATE_NS_MAX: u64 = 100_000_000;
        let by_ns = self.before_ns.saturating_sub(packet.at_ns);
        self.before_ns = packet.at_ns;
        if by_ns > LATE_NS_MAX {
            self.frame = if self.times == 0 { packet.frame } else { self.frame };
            self.times += 1;
            self.ns = self.ns.saturating_add(by_ns);
        }
        packet.at_ns.saturating_add(self.ns)
    }
}

/// Packets of which only the beginning was captured.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Cut {
    pub packets: u64,
    /// The most bytes that were captured of one.
    pub captured_max: usize,
}

impl Cut {
    fn count(&mut self, packet: &Packet<'_>) -> bool {
        let is_cut = packet.data.len() < packet.wire_len as usize;
        if is_cut {
            self.packets += 1;
            self.captured_max = self.captured_max.max(packet.data.len());
        }
        is_cut
    }
}

impl Analyzer {
    pub fn new(filter: Filter) -> Self {
        Self { rpc: Rpc { filter, ..Rpc::default() }, ..Self::default() }
    }

    /// For who wants counts only: files are not distinguished.
    #[must_use]
    pub fn without_files(mut self) -> Self {
        self.rpc.without_files = true;
        self
    }

    /// Takes a packet; `each` is called with every transaction that it completes.
    pub fn packet(
        &mut self,
        packet: &Packet<'_>,
        each: &mut dyn FnMut(&super::Transaction, &Files, &Flows),
    ) {
        // Zero is no time in anything that is counted.
        let at_ns = self.set_back.corrected(packet).max(1);
        let packet = &Packet { at_ns, ..*packet };
        self.packets += 1;
        let is_cut = self.cut.count(packet);
        if self.first_ns == 0 {
            self.first_ns = packet.at_ns;
            self.rpc.begin_ns = packet.at_ns;
        }
        self.last_ns = self.last_ns.max(packet.at_ns);
        self.rpc.frame = packet.frame;
        if packet.at_ns > self.swept_ns.saturating_add(SWEEP_NS) {
            self.swept_ns = packet.at_ns;
            self.rpc.expire(packet.at_ns);
        }
        let (connections, rpc, others) = (&mut self.connections, &mut self.rpc, &mut self.others);
        let copies = &mut self.copies;
        match self.slicer.slice(packet) {
            Sliced::Segment(segment) => match segment.protocol {
                Protocol::Tcp(part) => tcp(connections, copies, rpc, &segment, part, each),
                Protocol::Udp => {
                    if !udp(connections, copies, rpc, &segment, each) {
                        other(others, "UDP without RPC");
                    }
                }
            },
            Sliced::Fragment => {}
            Sliced::Other(DAMAGED) if is_cut => other(others, "cut off"),
            Sliced::Other(sort) => other(others, sort),
        }
    }

    /// Times are multiples of so much.
    pub const fn set_resolution(&mut self, ns: u64) {
        self.resolution_ns = ns;
    }

    pub const fn resolution_ns(&self) -> u64 {
        self.resolution_ns
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        let last_ns = self.last_ns;
        for connection in self.connections.iter_mut() {
            let Some(streams) = &mut connection.streams else { continue };
            let line = &mut connection.line;
            let flow = line.flow();
            if let Some(rtt) = flow.and_then(|flow| self.rpc.flows.round_trip_mut(flow)) {
                line.shake(rtt, self.last_ns);
            }
            goes_on(line, &mut self.rpc, &mut connection.zero_windows, last_ns);
            unseen(line, &mut self.rpc, streams);
            if let Some(flow) = flow.and_then(|flow| self.rpc.flows.get_mut(flow)) {
                streams.iter().for_each(|stream| flow.streams.add(stream.counts));
            }
        }
        self.rpc.end(last_ns);
        let one_way = self.connections.one_way_hosts();
        for pair in self.rpc.flows.pairs_mut() {
            pair.sides.iter_mut().for_each(OneSide::close);
            if let Some(hosts @ Hosts { client, server }) = pair.hosts {
                pair.one_way = one_way.get(&hosts).copied().unwrap_or(0);
                let both = [(client, server.address), (server.address, client)];
                pair.datagrams.pieces = both.map(|(from, to)| self.slicer.pieces(from, to));
            }
        }
    }

    pub const fn packets(&self) -> u64 {
        self.packets
    }

    pub const fn cut(&self) -> Cut {
        self.cut
    }

    /// Which transactions are looked at.
    pub const fn filter(&self) -> &Filter {
        &self.rpc.filter
    }

    /// When the first packet came, and the last.
    pub const fn span_ns(&self) -> (u64, u64) {
        (self.first_ns, self.last_ns)
    }

    pub const fn totals(&self) -> &Totals {
        &self.rpc.totals
    }

    pub const fn flows(&self) -> &Flows {
        &self.rpc.flows
    }

    pub const fn files(&self) -> &Files {
        &self.rpc.files
    }

    pub const fn series(&self) -> &Series {
        &self.rpc.series
    }

    /// Packets that are no TCP and no RPC, by sort.
    pub fn others(&self) -> impl Iterator<Item = (&'static str, u64)> {
        self.others.iter().map(|(sort, count)| (*sort, *count))
    }

    /// Connections and pairs of ends that were followed, RPC or not; and those forgotten for want
    /// of room.
    pub fn connections(&self) -> (usize, u64) {
        (self.connections.len(), self.connections.forgotten)
    }

    /// Connections of TCP that carried data in which no call was read.
    pub fn unread_connections(&self) -> usize {
        self.connections.unread()
    }

    /// Connections of which messages of the client were captured alone, and of the server alone,
    /// though the other end has sent some, too.
    pub fn one_way(&self) -> [usize; 2] {
        self.connections.one_way()
    }

    /// Datagrams between hosts of which first fragments were captured, and no others.
    pub fn first_fragments(&self) -> u64 {
        self.slicer.alone()
    }

    /// When the capture's clock was set back.
    pub const fn set_back(&self) -> SetBack {
        self.set_back
    }

    /// Packets that were left out, for they were captured at another place, too; and the places at
    /// which hosts were read then, where packets tell theirs.
    pub fn copies(&self) -> (u64, BTreeSet<Place>) {
        (self.copies.count, self.copies.homes())
    }

    /// Bytes stored of records and early segments.
    pub const fn buffered(&self) -> usize {
        self.connections.buffered
    }

    /// Calls that wait for their reply.
    pub fn waiting(&self) -> usize {
        self.rpc.calls.len()
    }
}

fn other(others: &mut BTreeMap<&'static str, u64>, sort: &'static str) {
    if others.len() < SORTS_MAX || others.contains_key(sort) {
        *others.entry(sort).or_default() += 1;
    }
}

/// A segment of TCP, with both directions of its connection.
fn tcp(
    connections: &mut Connections,
    copies: &mut Copies,
    rpc: &mut Rpc,
    segment: &Segment<'_>,
    part: TcpPart,
    each: &mut Each<'_>,
) {
    let now = segment.at_ns;
    let (connection, from) = connections.of(segment.from, segment.to, true, now);
    if copies.leaves_out(segment, connection, from, rpc) {
        return;
    }
    let line = &mut connection.line;
    let watches = &mut connection.watches;
    let streams = connection.streams.get_or_insert_default();
    if let Some(ack) = part.ack
        && let Some(ns) = watches[1 - from].acknowledged(now, ack, segment.len > 0)
    {
        acknowledged(line, rpc, from, now, ns);
    }
    let before: usize = streams.iter().map(Stream::buffered).sum();
    if part.syn {
        connects(line, rpc, from, &streams[1 - from]);
        streams[from].begin(part.seq.wrapping_add(1));
        watches[from].sent(now, part.seq.wrapping_add(1));
    }
    if !part.rst && !part.syn {
        window(line, rpc, &mut connection.zero_windows[from], from, part.window, now);
    }
    let is_bare = segment.len == 0 && !part.syn && !part.fin && !part.rst;
    let mut recovers = false;
    if let Some(ack) = part.ack {
        let stream = &mut streams[1 - from];
        stream.heard(ack);
        let missing = stream.counts.missing_bytes;
        if stream.has_hole() || segment.len > 0 {
            stream.acknowledged(now, ack, segment.len > 0, &mut |record: Record<'_>| {
                rpc.record(line, 1 - from, &record, each)
            });
        }
        recovers = is_bare && stream.requests_again(ack);
        if part.had > 0
            && let Some(side) = side(line, rpc, 1 - from)
        {
            side.had += as_packets(1, part.had.into());
        }
        let missing = stream.counts.missing_bytes - missing;
        if missing > 0
            && let Some(side) = side(line, rpc, 1 - from)
        {
            side.missing_bytes += missing;
        }
    }
    if segment.len > 0 {
        let seq = part.seq.wrapping_add(u32::from(part.syn));
        let (stream, watch) = (&mut streams[from], &mut watches[from]);
        recovers |= data((&mut *line, from), stream, watch, rpc, (segment, seq), each);
    }
    if recovers && let Some(flow) = line.flow() {
        rpc.flows.happened(flow, Pace::tcp_sent_again);
    }
    // Whichever end does it: what is answered nevertheless was outstanding.
    if part.syn || part.fin || part.rst {
        line.flows.iter().flatten().for_each(|flow| rpc.ended(*flow, now));
        goes_on(line, rpc, &mut connection.zero_windows, now);
    }
    let after: usize = streams.iter().map(Stream::buffered).sum();
    if after != before {
        connections.changed(before, after);
    }
}

/// End `from` connects again. Who has every reply of the other's stream does not retransmit: the
/// same numbers are those of other calls.
fn connects(line: &Line, rpc: &mut Rpc, from: usize, answers: &Stream) {
    if answers.is_acknowledged()
        && let Some(flow) = line.flows[from].and_then(|flow| rpc.flows.get_mut(flow))
    {
        flow.forget_answered();
    }
}

/// Data that end `from` of a line sends. True when they had been lost: what fills a hole late was
/// lost before it was captured the first time.
fn data(
    (line, from): (&mut Line, usize),
    stream: &mut Stream,
    watch: &mut Stopwatch,
    rpc: &mut Rpc,
    (segment, seq): (&Segment<'_>, u32),
    each: &mut Each<'_>,
) -> bool {
    let now = segment.at_ns;
    // Names are in replies to whom the other end called.
    stream.head_len = if line.listings[1 - from] > 0 { LISTING_LEN } else { 0 };
    let before = stream.counts;
    if stream.is_next(seq) {
        watch.sent(now, seq.wrapping_add(segment.len));
    }
    stream.segment(now, seq, segment.payload, segment.len, &mut |record: Record<'_>| {
        rpc.record(line, from, &record, each)
    });
    let counts = stream.counts;
    let again = counts.again - before.again;
    let filled = counts.filled - before.filled;
    if again > 0 {
        watch.spoil();
    }
    if rpc.takes_time(now)
        && let Some(side) = side(line, rpc, from)
    {
        side.sent(now, segment.len);
        side.again += as_packets(again, counts.again_bytes - before.again_bytes);
        side.filled += as_packets(filled, counts.filled_bytes - before.filled_bytes);
        side.missing_bytes += counts.missing_bytes - before.missing_bytes;
        side.cut += counts.cut - before.cut;
    }
    again + filled > 0
}

/// What end `from` of a line sends, of its hosts.
fn side<'r>(line: &Line, rpc: &'r mut Rpc, from: usize) -> Option<&'r mut OneSide> {
    let is_server = usize::from(line.flows[from].is_none());
    let pair = rpc.flows.pair_mut(line.flow()?)?;
    pair.sides.get_mut(is_server)
}

/// End `from` has announced a window; whether it was zero before is in `zero`.
fn window(line: &Line, rpc: &mut Rpc, zero: &mut bool, from: usize, window: u16, now: u64) {
    let is_zero = window == 0;
    if is_zero == *zero {
        return;
    }
    let Some(flow) = line.flow() else { return };
    rpc.flows.happened(flow, |pace| pace.zero_window(now, is_zero));
    let Some(side) = side(line, rpc, from) else { return };
    match is_zero {
        true => side.stops(now),
        false => side.goes_on(now),
    }
    *zero = is_zero;
}

/// What either end has got at the end of the capture, and what is not in it.
fn unseen(line: &Line, rpc: &mut Rpc, streams: &mut [Stream; 2]) {
    for (from, stream) in streams.iter_mut().enumerate() {
        let bytes = u64::from(stream.unseen());
        if let (1.., Some(side)) = (bytes, side(line, rpc, from)) {
            stream.counts.missing_bytes += bytes;
            side.missing_bytes += bytes;
            line.flow().into_iter().for_each(|flow| rpc.flows.happened(flow, Pace::missed));
        }
    }
}

/// No end of a connection has a window of zero any more: it is over, or the capture.
fn goes_on(line: &Line, rpc: &mut Rpc, zeros: &mut [bool; 2], now: u64) {
    for (from, zero) in zeros.iter_mut().enumerate() {
        window(line, rpc, zero, from, 1, now);
    }
}

/// End `from` has acknowledged what it got `ns` before.
fn acknowledged(line: &mut Line, rpc: &mut Rpc, from: usize, now: u64, ns: u64) {
    if !rpc.takes_time(now) {
        return;
    }
    let Some(rtt) = line.flow().and_then(|flow| rpc.flows.round_trip_mut(flow)) else {
        // Who is the client shows with the first call.
        line.handshake[from] = Some(ns);
        return;
    };
    line.shake(rtt, now);
    rtt.record(line.clock(from), now, ns);
}

/// A datagram; false when it is no RPC message.
fn udp(
    connections: &mut Connections,
    copies: &mut Copies,
    rpc: &mut Rpc,
    segment: &Segment<'_>,
    each: &mut Each<'_>,
) -> bool {
    if segment.payload.len() < 8 || !super::message::is_message(segment.payload) {
        return false;
    }
    let now = segment.at_ns;
    let (connection, from) = connections.of(segment.from, segment.to, false, now);
    if copies.leaves_out(segment, connection, from, rpc) {
        return true;
    }
    let record = Record {
        first_ns: now,
        last_ns: now,
        head: segment.payload,
        tail: &[],
        len: segment.len,
        ends_known: true,
        follows_gap: false,
    };
    rpc.record(&mut connection.line, from, &record, each)
}

impl StreamCounts {
    pub(super) const fn add(&mut self, other: Self) {
        self.again_bytes += other.again_bytes;
        self.again += other.again;
        self.filled += other.filled;
        self.filled_bytes += other.filled_bytes;
        self.segments += other.segments;
        self.bytes += other.bytes;
        self.early += other.early;
        self.missing_bytes += other.missing_bytes;
        self.resyncs += other.resyncs;
        self.cut += other.cut;
    }
}
