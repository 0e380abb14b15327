//! What clients and a server say, as a capture at the clients: with the acknowledgements that their
//! kernels would send, since a world has messages and no segments.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use net::clock::Clock;
use net::error::TransportError;
use net::shape::profile::Profile;
use net::transport::Transport;
use net::transport::datagram::{Datagram, Datagrams, Route};
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::Instant;
use wire::record::{Fragment, Message};
use world::{Client, Server};

/// What a card takes over at once, to be cut into segments.
const SEGMENT_BYTES: usize = 60 << 10;
/// How soon a kernel acknowledges what its program has not answered yet.
const ACKNOWLEDGES_NS: u64 = 10_000;
/// When everything begins, in nanoseconds since 1970.
const BEGIN_NS: u64 = 1_000_000_000_000;

/// Packets of a capture, by when they passed.
#[derive(Debug, Default)]
pub(crate) struct Tape(Mutex<Vec<(u64, Vec<u8>)>>); // guards the packets

impl Tape {
    /// As a file of pcap with nanoseconds, of raw IP.
    pub(crate) fn capture(&self) -> Vec<u8> {
        let mut packets = std::mem::take(&mut *self.0.lock());
        packets.sort_by_key(|(at, _)| *at);
        let mut file = 0xa1b2_3c4d_u32.to_le_bytes().to_vec();
        file.extend([2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0, 101, 0, 0, 0]);
        for (at, packet) in packets {
            let (ns, len) = (BEGIN_NS + at, packet.len() as u64);
            for word in [ns / 1_000_000_000, ns % 1_000_000_000, len, len] {
                file.extend(u32::try_from(word).unwrap().to_le_bytes());
            }
            file.extend(packet);
        }
        file
    }
}

/// One connection, or the datagrams of one client.
#[derive(Debug)]
struct Line {
    tape: Arc<Tape>,
    clock: Clock,
    /// The client and the server.
    ends: [SocketAddr; 2],
    is_tcp: bool,
    link: Link,
    /// Bytes that either has sent.
    sent: [u32; 2],
    /// When the link has carried what was sent before.
    free_ns: u64,
    /// What the server has acknowledged, by when the client gets to know.
    acks: VecDeque<(u64, u32)>,
    acked: u32,
}

impl Line {
    fn now(&self) -> u64 {
        self.clock.now().since(Instant::EPOCH).as_nanos()
    }

    fn carries_ns(&self, bytes: usize) -> u64 {
        bytes as u64 * self.link.gap_per_byte_ps / 1_000
    }

    /// A packet of the client (0) or the server (1).
    fn packet(&self, at: u64, from: usize, (seq, ack): (u32, u32), payload: &[u8]) {
        let head_len = if self.is_tcp { 40 } else { 28 };
        let total = u16::try_from(head_len + payload.len()).unwrap();
        let mut packet = vec![0_u8; head_len];
        (packet[0], packet[8], packet[9]) = (0x45, 64, if self.is_tcp { 6 } else { 17 });
        packet[2..4].copy_from_slice(&total.to_be_bytes());
        for (at, end) in [(12, self.ends[from]), (16, self.ends[1 - from])] {
            let IpAddr::V4(ip) = end.ip() else { panic!("worlds have IPv4") };
            packet[at..at + 4].copy_from_slice(&ip.octets());
        }
        packet[20..22].copy_from_slice(&self.ends[from].port().to_be_bytes());
        packet[22..24].copy_from_slice(&self.ends[1 - from].port().to_be_bytes());
        if self.is_tcp {
            packet[24..28].copy_from_slice(&seq.to_be_bytes());
            packet[28..32].copy_from_slice(&ack.to_be_bytes());
            (packet[32], packet[33], packet[34]) = (0x50, 0x10, 0xff);
        } else {
            packet[24..26].copy_from_slice(&(total - 20).to_be_bytes());
        }
        packet.extend_from_slice(payload);
        self.tape.0.lock().push((at, packet));
    }

    /// The client sends a message.
    fn sends(&mut self, parts: [&[u8]; 2]) {
        let (now, message) = (self.now(), parts.concat());
        if !self.is_tcp {
            return self.packet(now, 0, (0, 0), &message);
        }
        let payload = marked(&message);
        for part in payload.chunks(SEGMENT_BYTES) {
            self.packet(now, 0, (self.sent[0], self.sent[1]), part);
            self.sent[0] = self.sent[0].wrapping_add(u32::try_from(part.len()).unwrap());
        }
        self.free_ns = self.free_ns.max(now) + self.carries_ns(payload.len());
        let ack_ns = self.free_ns + 2 * self.link.latency.as_nanos() + ACKNOWLEDGES_NS;
        self.packet(ack_ns, 1, (self.sent[1], self.sent[0]), &[]);
        self.acks.push_back((ack_ns, self.sent[0]));
    }

    /// The client receives a message, whose last byte comes now.
    fn receives(&mut self, message: &[u8]) {
        let now = self.now();
        if !self.is_tcp {
            return self.packet(now, 1, (0, 0), message);
        }
        while let Some(&(at, acked)) = self.acks.front()
            && at <= now
        {
            self.acks.pop_front();
            self.acked = acked;
        }
        let payload = marked(message);
        let mut left = payload.len();
        for part in payload.chunks(1448) {
            left -= part.len();
            let at = now - self.carries_ns(left).min(now);
            self.packet(at, 1, (self.sent[1], self.acked), part);
            self.sent[1] = self.sent[1].wrapping_add(u32::try_from(part.len()).unwrap());
        }
        self.packet(now + ACKNOWLEDGES_NS, 0, (self.sent[0], self.sent[1]), &[]);
    }
}

fn marked(message: &[u8]) -> Vec<u8> {
    let len = u32::try_from(message.len()).unwrap();
    [&Fragment { last: true, len }.to_header()[..], message].concat()
}

/// A client's end of a connection, or its socket, that is captured.
#[derive(Debug)]
pub(crate) struct Taped<T> {
    inner: T,
    line: Line,
}

impl<T> Taped<T> {
    fn new(inner: T, tape: &Arc<Tape>, client: &Client, server: &Server, is_tcp: bool) -> Self {
        let Profile { there, .. } = client.shape().profile();
        let line = Line {
            tape: Arc::clone(tape),
            clock: client.clock().clone(),
            ends: [client.address(), server.address()],
            is_tcp,
            link: there.link,
            sent: [1; 2],
            free_ns: 0,
            acks: VecDeque::new(),
            acked: 1,
        };
        Self { inner, line }
    }
}

/// A connection that is captured.
pub(crate) fn connection(
    tape: &Arc<Tape>,
    client: &Client,
    server: &Server,
) -> Taped<Box<dyn Transport>> {
    Taped::new(client.connection(server).unwrap(), tape, client, server, true)
}

/// A socket of datagrams that is captured.
pub(crate) fn datagrams(
    tape: &Arc<Tape>,
    client: &Client,
    server: &Server,
) -> Taped<impl Datagrams + use<>> {
    Taped::new(server.datagrams(client.shape()).unwrap(), tape, client, server, false)
}

impl<T: Transport> Transport for Taped<T> {
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, TransportError>> {
        let polled = self.inner.poll_receive(cx);
        if let Poll::Ready(Ok(Some(message))) = &polled {
            self.line.receives(message);
        }
        polled
    }

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_ready(cx)
    }

    fn send(&mut self, message: Message) {
        self.line.sends([&message.head, &message.payload]);
        self.inner.send(message);
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), TransportError>> {
        self.inner.poll_flush(cx)
    }

    fn peer(&self) -> SocketAddr {
        self.inner.peer()
    }

    fn unsent_bytes(&self) -> usize {
        self.inner.unsent_bytes()
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        self.inner.poll_close(cx)
    }
}

impl<D: Datagrams> Datagrams for Taped<D> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        let polled = self.inner.poll_receive(cx);
        if let Poll::Ready(Ok(datagram)) = &polled {
            self.line.receives(&datagram.bytes);
        }
        polled
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        let polled = self.inner.poll_send(cx, message, route);
        if polled.is_ready() {
            self.line.sends([&message.head, &message.payload]);
        }
        polled
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }
}
