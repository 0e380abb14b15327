//! Captures: from the bytes of pcap and pcapng files to segments of TCP and UDP.
//!
//! ```text
//!  gzip, zstd, plain bytes --unpack--> source.rs: packets, borrowed from one buffer
//!        several files --merge.rs--> packets in the order of their time
//!  a packet --link.rs, ip.rs, fragments.rs--> a segment: two ends, transport, payload
//! ```
//!
//! The payload of a segment is a slice of the buffer that the file was read into. Nothing is
//! copied but fragments of IP datagrams, and nothing is allocated for a packet. What is damaged or
//! cut off is read as far as it goes, and reported ([`Note`]).

mod fragments;
mod ip;
mod link;
mod merge;
mod segment;
mod source;
mod unpack;

use thiserror::Error;

pub(crate) use link::DAMAGED;

pub use fragments::{DATAGRAMS_BYTES_MAX, DATAGRAMS_MAX, Pieces};
pub use link::{Link, Sliced, Slicer};
pub use merge::Merged;
pub use segment::{End, Place, Protocol, Segment, TcpPart};
pub use source::{BLOCK_LEN_MAX, Capture, INTERFACES_MAX};
pub use unpack::unpack;

/// One packet as it was captured.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Packet<'a> {
    /// Its number in its file, from 1, as Wireshark counts; of several files that in all of them
    /// together, as mergecap joins them.
    pub frame: u64,
    /// Nanoseconds since 1970.
    pub at_ns: u64,
    pub place: Place,
    pub link: Link,
    /// Bytes it had on the wire.
    pub wire_len: u32,
    /// Those of them that were captured.
    pub data: &'a [u8],
}

/// Why a file cannot be read as a capture.
#[derive(Debug, Error)]
pub enum CaptureError {
    #[error("{name} is not a capture: it begins with {begins}, not with pcap's or pcapng's magic")]
    NotACapture { name: String, begins: String },
    #[error("{name} is empty")]
    Empty { name: String },
    #[error("cannot read {name}: {cause}")]
    Io { name: String, cause: std::io::Error },
    #[error(
        "{name}: link type {number} is none that we read: Ethernet (1), Linux cooked (113, 276), \
         loopback (0, 108), raw IP (12, 14, 101, 228, 229)"
    )]
    Link { name: String, number: u32 },
}

/// What was wrong with a capture that was read nevertheless.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Note {
    /// The file ends in the middle of a packet.
    Truncated { name: String, at_byte: u64, packets: u64 },
    /// What stands there is no packet; what follows was not read.
    Damaged { name: String, at_byte: u64, packets: u64, what: String },
    /// Packets of an interface whose link type we do not read.
    Link { name: String, number: u32, packets: u64 },
    /// Packets without a time: nothing can be concluded from them.
    Timeless { name: String, packets: u64 },
}

impl std::fmt::Display for Note {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Truncated { name, at_byte, packets } => write!(
                f,
                "{name} ends in the middle of a packet (byte {at_byte}): {packets} packets were \
                 read"
            ),
            Self::Damaged { name, at_byte, packets, what } => write!(
                f,
                "{name} is damaged at byte {at_byte} ({what}): {packets} packets were read"
            ),
            Self::Link { name, number, packets } => {
                write!(f, "{name}: {packets} packets of link type {number} were left out")
            }
            Self::Timeless { name, packets } => write!(
                f,
                "{name}: {packets} packets have no time (Simple Packet Blocks), and were left out"
            ),
        }
    }
}
