//! What passed a relay as frames of Ethernet: a conversation of TCP with its handshake, sequence
//! numbers and ends, or datagrams of UDP.
//!
//! These are no copies of what was on the wire, which a relay does not see: a record is one
//! segment, or several if it is longer than a packet of IP can be; acknowledgements go with the
//! segments of the other side; the addresses of Ethernet are made up, and an IP datagram is not cut
//! into fragments. Ports, addresses, bytes and times are real.

use std::net::{IpAddr, SocketAddr};

use etherparse::err::packet::BuildWriteError;
use etherparse::{PacketBuilder, PacketBuilderStep};

/// Bytes of a record in one segment: what the length of IPv4 allows, less headers, roughly.
const SEGMENT_BYTES_MAX: usize = 60 << 10;

const TTL: u8 = 64;
const WINDOW: u16 = u16::MAX;

/// Locally administered addresses (IEEE 802, second bit of the first byte).
const MAC_LOWER: [u8; 6] = [2, 0, 0, 0, 0, 1];
const MAC_HIGHER: [u8; 6] = [2, 0, 0, 0, 0, 2];

/// A segment or datagram to come, without its data.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Packet {
    pub(super) from: SocketAddr,
    pub(super) to: SocketAddr,
    pub(super) kind: Kind,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Udp,
    Tcp { sequence: u32, acknowledged: Option<u32>, flag: Flag },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Flag {
    /// Nothing but an acknowledgement.
    None,
    Syn,
    /// Data.
    Push,
    Fin,
}

/// One connection, or two addresses that exchange datagrams: the numbers that come next. The first
/// end is the one that has connected.
#[derive(Clone, Debug)]
pub(super) struct Conversation {
    ends: [SocketAddr; 2],
    /// The next sequence number of each end; none for datagrams.
    next: Option<[u32; 2]>,
    ended: [bool; 2],
}

/// Which end of a conversation.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    Connecting = 0,
    Accepting = 1,
}

impl Conversation {
    pub(super) fn datagrams(ends: [SocketAddr; 2]) -> Self {
        Self { ends: same_family(ends), next: None, ended: [false; 2] }
    }

    /// A connection, and the three segments that make it.
    pub(super) fn stream(ends: [SocketAddr; 2]) -> (Self, [Packet; 3]) {
        let ends = same_family(ends);
        let mut made = Self { ends, next: Some([0; 2]), ended: [false; 2] };
        let syn = made.segment(End::Connecting, 1, Flag::Syn);
        let answer = made.segment(End::Accepting, 1, Flag::Syn);
        let acknowledgement = made.segment(End::Connecting, 0, Flag::None);
        (made, [syn, answer, acknowledgement])
    }

    /// A message of `bytes`, with its mark on a stream, as one or more packets; each comes with
    /// where its part of the message ends.
    pub(super) fn message(
        &mut self,
        from: End,
        bytes: usize,
    ) -> impl Iterator<Item = (Packet, std::ops::Range<usize>)> {
        let step = if self.next.is_some() { SEGMENT_BYTES_MAX } else { bytes.max(1) };
        (0..bytes.max(1)).step_by(step).map(move |begin| {
            let end = (begin + step).min(bytes);
            let len = u32::try_from(end - begin).unwrap_or(u32::MAX);
            (self.segment(from, len, Flag::Push), begin..end)
        })
    }

    /// An end sends nothing more: noted once.
    pub(super) fn end(&mut self, from: End) -> Option<Packet> {
        let is_new =
            self.next.is_some() && !std::mem::replace(&mut self.ended[from as usize], true);
        is_new.then(|| self.segment(from, 1, Flag::Fin))
    }

    fn segment(&mut self, from: End, len: u32, flag: Flag) -> Packet {
        let (own, other) = (from as usize, 1 - from as usize);
        let kind = match &mut self.next {
            None => Kind::Udp,
            Some(next) => {
                let sequence = next[own];
                next[own] = sequence.wrapping_add(len);
                let is_first = flag == Flag::Syn && from == End::Connecting;
                let acknowledged = (!is_first).then_some(next[other]);
                Kind::Tcp { sequence, acknowledged, flag }
            }
        };
        Packet { from: self.ends[own], to: self.ends[other], kind }
    }
}

/// IPv4 as such, whatever socket it came through.
fn same_family(ends: [SocketAddr; 2]) -> [SocketAddr; 2] {
    ends.map(|end| SocketAddr::new(end.ip().to_canonical(), end.port()))
}

impl Packet {
    /// Writes the frame, with `data` in it.
    pub(super) fn write(&self, data: &[u8], frame: &mut Vec<u8>) -> Result<(), BuildWriteError> {
        let (source, destination) =
            if self.from <= self.to { (MAC_LOWER, MAC_HIGHER) } else { (MAC_HIGHER, MAC_LOWER) };
        let ethernet = PacketBuilder::ethernet2(source, destination);
        let ip = match (self.from.ip(), self.to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), TTL),
            (from, to) => ethernet.ipv6(octets(from), octets(to), TTL),
        };
        self.write_transport(ip, data, frame)
    }

    fn write_transport(
        &self,
        ip: PacketBuilderStep<etherparse::IpHeaders>,
        data: &[u8],
        frame: &mut Vec<u8>,
    ) -> Result<(), BuildWriteError> {
        let (from, to) = (self.from.port(), self.to.port());
        match self.kind {
            Kind::Udp => ip.udp(from, to).write(frame, data),
            Kind::Tcp { sequence, acknowledged, flag } => {
                let mut tcp = ip.tcp(from, to, sequence, WINDOW);
                if let Some(acknowledged) = acknowledged {
                    tcp = tcp.ack(acknowledged);
                }
                let tcp = match flag {
                    Flag::None => tcp,
                    Flag::Syn => tcp.syn(),
                    Flag::Push => tcp.psh(),
                    Flag::Fin => tcp.fin(),
                };
                tcp.write(frame, data)
            }
        }
    }
}

fn octets(ip: IpAddr) -> [u8; 16] {
    match ip {
        IpAddr::V4(ip) => ip.to_ipv6_mapped().octets(),
        IpAddr::V6(ip) => ip.octets(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> [SocketAddr; 2] {
        ["[::ffff:10.0.0.1]:700".parse().unwrap(), "10.0.0.2:2049".parse().unwrap()]
    }

    fn numbers(packet: &Packet) -> (u32, Option<u32>) {
        match packet.kind {
            Kind::Tcp { sequence, acknowledged, .. } => (sequence, acknowledged),
            Kind::Udp => panic!("that is a datagram"),
        }
    }

    #[test]
    fn sequence_numbers_count_bytes_and_both_ends_acknowledge() {
        let (mut conversation, made) = Conversation::stream(ends());
        assert_eq!(made.map(|packet| numbers(&packet)), [(0, None), (0, Some(1)), (1, Some(1))]);
        let call: Vec<_> = conversation.message(End::Connecting, 100_000).collect();
        let parts: Vec<_> = call.iter().map(|(_, part)| part.clone()).collect();
        assert_eq!(parts, [0..61_440, 61_440..100_000]);
        assert_eq!(numbers(&call[1].0), (61_441, Some(1)));
        let reply: Vec<_> = conversation.message(End::Accepting, 4).collect();
        assert_eq!(numbers(&reply[0].0), (1, Some(100_001)));
        let end = conversation.end(End::Connecting).unwrap();
        assert_eq!(numbers(&end), (100_001, Some(5)));
        assert_eq!(conversation.end(End::Connecting), None);
        assert_eq!(numbers(&conversation.end(End::Accepting).unwrap()), (5, Some(100_002)));
    }

    #[test]
    fn a_datagram_is_one_packet_whatever_its_size() {
        let mut conversation = Conversation::datagrams(ends());
        for bytes in [0, 1, 65_507] {
            let packets: Vec<_> = conversation.message(End::Accepting, bytes).collect();
            assert_eq!(packets.len(), 1);
            let mut frame = Vec::new();
            packets[0].0.write(&vec![1; bytes], &mut frame).unwrap();
            assert_eq!(frame.len(), 14 + 20 + 8 + bytes);
        }
        assert_eq!(conversation.end(End::Accepting), None);
    }
}
