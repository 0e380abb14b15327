//! Link layers: what stands before the IP header.

use super::fragments::{Fragments, Pieces};
use super::ip::{self, At};
use super::{Packet, Segment};

/// A link type that we read, or the number of another.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Link {
    /// An address family in four bytes, of the capturing host's order or not.
    Null,
    Ethernet,
    /// An IP header at once.
    Raw,
    CookedV1,
    CookedV2,
    /// The network header at once, of this type: as live packets come.
    Network(u16),
    Unread(u32),
}

impl Link {
    /// The upper half of the number has flags, such as the length of the frame check sequence.
    pub const fn from_number(number: u32) -> Self {
        match number & 0xffff {
            0 | 108 => Self::Null,
            1 => Self::Ethernet,
            12 | 14 | 101 | 228 | 229 => Self::Raw,
            113 => Self::CookedV1,
            276 => Self::CookedV2,
            number => Self::Unread(number),
        }
    }
}

/// The sort of packets whose headers cannot be read.
pub(crate) const DAMAGED: &str = "damaged";

/// What a packet was.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Sliced<'a> {
    Segment(Segment<'a>),
    /// A fragment of a datagram that is not complete.
    Fragment,
    /// Neither TCP nor UDP, or too damaged to tell.
    Other(&'static str),
}

/// Slices packets into segments. Holds fragments until their datagram is complete.
#[derive(Debug, Default)]
pub struct Slicer {
    fragments: Fragments,
}

/// The type of a packet in the heads of Linux cooked captures (`PACKET_OUTGOING`).
const OUTGOING: u8 = 4;
const IPV4: u16 = 0x0800;
const IPV6: u16 = 0x86dd;
/// 802.1Q, 802.1ad, and what came before it.
const VLANS: [u16; 3] = [0x8100, 0x88a8, 0x9100];
/// A packet may have so many tags; two are QinQ.
const VLANS_MAX: usize = 4;

impl Slicer {
    /// The fragments that one host sent to another.
    pub(crate) fn pieces(&self, from: u128, to: u128) -> Pieces {
        self.fragments.of(from, to)
    }

    /// First fragments of datagrams between hosts of which no other fragments came.
    pub(crate) fn alone(&self) -> u64 {
        self.fragments.alone()
    }

    /// The segment in a packet. It borrows from the packet, or, when this was the last fragment
    /// of a datagram, from the slicer.
    pub fn slice<'a>(&'a mut self, packet: &Packet<'a>) -> Sliced<'a> {
        let data = packet.data;
        let (mut place, mut leaves) = (packet.place, false);
        // The frame check sequence and padding are behind what the IP header counts.
        let network = match packet.link {
            Link::Ethernet => data.get(12..).and_then(|rest| tagged(rest)),
            Link::CookedV1 => {
                leaves = data.get(1) == Some(&OUTGOING);
                data.get(14..).and_then(|rest| tagged(rest))
            }
            Link::CookedV2 => {
                leaves = data.get(10) == Some(&OUTGOING);
                let kind = data.first_chunk().map(|kind| u16::from_be_bytes(*kind));
                let index = data.get(4..8).and_then(|index| index.try_into().ok());
                place.interface = index.map_or(0, u32::from_be_bytes);
                kind.zip(data.get(20..))
            }
            Link::Null => data.get(4..).map(|rest| (version(rest), rest)),
            Link::Raw => Some((version(data), data)),
            Link::Network(kind) if VLANS.contains(&kind) => {
                data.get(2..).and_then(|rest| tagged(rest))
            }
            Link::Network(kind) => Some((kind, data)),
            Link::Unread(_) => None,
        };
        let at = At { ns: packet.at_ns, place, leaves };
        match network {
            Some((IPV4, rest)) => ip::v4(at, rest, &mut self.fragments),
            Some((IPV6, rest)) => ip::v6(at, rest, &mut self.fragments),
            Some((0x0806, _)) => Sliced::Other("ARP"),
            Some(_) => Sliced::Other("other network protocols"),
            None => Sliced::Other(DAMAGED),
        }
    }
}

/// The type and what follows it, behind tags of VLANs.
fn tagged(mut rest: &[u8]) -> Option<(u16, &[u8])> {
    for _ in 0..=VLANS_MAX {
        let (kind, behind) = rest.split_first_chunk()?;
        let kind = u16::from_be_bytes(*kind);
        if !VLANS.contains(&kind) {
            return Some((kind, behind));
        }
        rest = behind.get(2..)?;
    }
    None
}

/// The type of a packet that begins with its IP header.
fn version(data: &[u8]) -> u16 {
    match data.first().map(|first| first >> 4) {
        Some(4) => IPV4,
        Some(6) => IPV6,
        _ => 0,
    }
}
