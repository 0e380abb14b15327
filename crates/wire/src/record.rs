//! Record marking: where one RPC message ends and the next begins in a TCP stream
//! (RFC 5531 section 11).
//!
//! ```text
//!   | last:1 len:31 | len bytes | last:1 len:31 | len bytes | ...
//!   '---------- fragment ------'
//!   '------- record: fragments up to and including one with last = 1 -------'
//! ```
//!
//! We always send a message as one fragment; we accept any division. [`Deframer`] takes bytes in
//! whatever chunks they come. A driver that wants a large message in a buffer of its own reads
//! the four header bytes, asks [`Fragment::from_header`], and reads a last fragment into place.

use bytes::Bytes;
use thiserror::Error;

use crate::xdr::padding;

/// Bytes of a fragment header.
pub const FRAGMENT_HEADER_LEN: usize = 4;

/// Fragments without bytes that one record may have. They carry nothing; a peer that sends more
/// than a stray one is only keeping us busy.
pub const EMPTY_FRAGMENTS_MAX: u32 = 16;

const LAST: u32 = 1 << 31;

/// What a fragment header says.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Fragment {
    /// The record ends with this fragment.
    pub last: bool,
    /// Bytes that follow the header, below 2^31.
    pub len: u32,
}

impl Fragment {
    pub const fn from_header(header: [u8; FRAGMENT_HEADER_LEN]) -> Self {
        let word = u32::from_be_bytes(header);
        Self {
            last: word & LAST != 0,
            len: word & !LAST,
        }
    }

    /// The header's bytes; `len` must be below 2^31.
    pub const fn to_header(self) -> [u8; FRAGMENT_HEADER_LEN] {
        let last = if self.last { LAST } else { 0 };
        (last | (self.len & !LAST)).to_be_bytes()
    }
}

/// One RPC message to be sent: the bytes of `head`, then `payload`, then padding.
///
/// Two pieces, because a payload that is already somewhere in memory should not be copied to
/// stand behind its header. `head` has a multiple of four bytes.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Message {
    pub head: Vec<u8>,
    pub payload: Bytes,
}

impl Message {
    /// A message without a separate payload.
    pub const fn new(head: Vec<u8>) -> Self {
        Self {
            head,
            payload: Bytes::new(),
        }
    }

    /// Bytes of the message: head, payload and padding, without a fragment header.
    pub fn wire_len(&self) -> usize {
        self.head.len() + self.payload.len() + self.padding().len()
    }

    /// The header that marks the message as one last fragment.
    ///
    /// # Panics
    /// When the message has 2^31 bytes or more, a thousand times the largest we build.
    pub fn marker(&self) -> [u8; FRAGMENT_HEADER_LEN] {
        match u32::try_from(self.wire_len()) {
            Ok(len) if len < LAST => Fragment { last: true, len }.to_header(),
            _ => panic!(
                "a fragment has at most 2^31 - 1 bytes, got {}",
                self.wire_len()
            ),
        }
    }

    /// The zero bytes that follow the payload.
    pub fn padding(&self) -> &'static [u8] {
        padding(self.payload.len())
    }

    /// Everything in one piece, for transports that carry datagrams and for tests.
    pub fn to_vec(&self) -> Vec<u8> {
        [&self.head, &self.payload[..], self.padding()].concat()
    }

    /// [`Self::to_vec`], without a copy when there is no payload.
    pub fn into_bytes(self) -> Bytes {
        match self.payload.is_empty() {
            true => Bytes::from(self.head),
            false => Bytes::from(self.to_vec()),
        }
    }
}

/// A stream that can no longer be followed; the connection has to go.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub enum RecordError {
    #[error("a record of at least {got} bytes, at most {max} are allowed")]
    TooLong { max: usize, got: usize },
    #[error("more than {max} empty fragments in one record")]
    TooManyEmpty { max: u32 },
}

/// Cuts a stream into records, however it is chunked and fragmented.
///
/// After an error the stream has no known boundaries left: drop the deframer.
#[derive(Debug)]
pub struct Deframer {
    record_len_max: usize,
    record: Vec<u8>,
    empty_fragments: u32,
    state: State,
}

#[derive(Debug)]
enum State {
    /// `have` bytes of a header are here.
    Header {
        bytes: [u8; FRAGMENT_HEADER_LEN],
        have: usize,
    },
    /// `left` bytes of the fragment are still to come.
    Body { left: usize, last: bool },
}

const HEADER_NEXT: State = State::Header {
    bytes: [0; FRAGMENT_HEADER_LEN],
    have: 0,
};

impl Deframer {
    /// A deframer at the start of a stream, for records of at most `record_len_max` bytes.
    pub const fn new(record_len_max: usize) -> Self {
        Self {
            record_len_max,
            record: Vec::new(),
            empty_fragments: 0,
            state: HEADER_NEXT,
        }
    }

    /// Bytes up to the next boundary (of a header or a fragment); never 0. Reading exactly as many
    /// never reads past the end of a record.
    pub const fn wanted(&self) -> usize {
        match self.state {
            State::Header { have, .. } => FRAGMENT_HEADER_LEN - have,
            State::Body { left, .. } => left,
        }
    }

    /// True between two records: an end of the stream here cuts nothing off.
    pub const fn is_at_boundary(&self) -> bool {
        matches!(self.state, State::Header { have: 0, .. })
            && self.record.is_empty()
            && self.empty_fragments == 0
    }

    /// Takes bytes from the front of `input` until one record is complete or `input` is empty.
    ///
    /// Call again while it returns a record: more may be in the same input.
    ///
    /// # Errors
    /// As soon as a header announces too much, before any memory is set aside for it.
    pub fn feed(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, RecordError> {
        while !input.is_empty() {
            let (taken, rest) = input.split_at(self.wanted().min(input.len()));
            *input = rest;
            if let Some(record) = self.advance(taken)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    /// Takes bytes that do not reach past the next boundary.
    fn advance(&mut self, taken: &[u8]) -> Result<Option<Vec<u8>>, RecordError> {
        match &mut self.state {
            State::Header { bytes, have } => {
                bytes[*have..*have + taken.len()].copy_from_slice(taken);
                *have += taken.len();
                match *have < FRAGMENT_HEADER_LEN {
                    true => Ok(None),
                    false => {
                        let fragment = Fragment::from_header(*bytes);
                        self.begin(fragment)
                    }
                }
            }
            State::Body { left, last } => {
                self.record.extend_from_slice(taken);
                *left -= taken.len();
                match (*left, *last) {
                    (0, last) => Ok(self.end_fragment(last)),
                    _ => Ok(None),
                }
            }
        }
    }

    fn begin(&mut self, fragment: Fragment) -> Result<Option<Vec<u8>>, RecordError> {
        let left = fragment.len as usize;
        let got = self.record.len().saturating_add(left);
        if got > self.record_len_max {
            let max = self.record_len_max;
            return Err(RecordError::TooLong { max, got });
        }
        if left == 0 {
            self.empty_fragments += 1;
            if self.empty_fragments > EMPTY_FRAGMENTS_MAX {
                let max = EMPTY_FRAGMENTS_MAX;
                return Err(RecordError::TooManyEmpty { max });
            }
            return Ok(self.end_fragment(fragment.last));
        }
        self.state = State::Body {
            left,
            last: fragment.last,
        };
        Ok(None)
    }

    fn end_fragment(&mut self, last: bool) -> Option<Vec<u8>> {
        self.state = HEADER_NEXT;
        last.then(|| {
            self.empty_fragments = 0;
            std::mem::take(&mut self.record)
        })
    }
}
