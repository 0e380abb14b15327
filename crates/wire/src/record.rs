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
        Self { last: word & LAST != 0, len: word & !LAST }
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
        Self { head, payload: Bytes::new() }
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
            _ => panic!("a fragment has at most 2^31 - 1 bytes, got {}", self.wire_len()),
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
    Header { bytes: [u8; FRAGMENT_HEADER_LEN], have: usize },
    /// `left` bytes of the fragment are still to come.
    Body { left: usize, last: bool },
}

const HEADER_NEXT: State = State::Header { bytes: [0; FRAGMENT_HEADER_LEN], have: 0 };

impl Deframer {
    /// A deframer at the start of a stream, for records of at most `record_len_max` bytes.
    pub const fn new(record_len_max: usize) -> Self {
        Self { record_len_max, record: Vec::new(), empty_fragments: 0, state: HEADER_NEXT }
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
        self.state = State::Body { left, last: fragment.last };
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const MAX: usize = 1000;

    /// A record as fragments that end at these places (or at its end).
    fn fragmented(record: &[u8], ends: &[usize]) -> Vec<u8> {
        let mut ends: Vec<usize> = ends.iter().map(|end| end % (record.len() + 1)).collect();
        ends.sort_unstable();
        ends.push(record.len());
        let mut stream = Vec::new();
        let mut start = 0;
        for (index, &end) in ends.iter().enumerate() {
            let last = index + 1 == ends.len();
            let len = u32::try_from(end - start).unwrap();
            stream.extend(Fragment { last, len }.to_header());
            stream.extend_from_slice(&record[start..end]);
            start = end;
        }
        stream
    }

    fn feed_all(deframer: &mut Deframer, mut input: &[u8]) -> Vec<Vec<u8>> {
        let mut records = Vec::new();
        while let Some(record) = deframer.feed(&mut input).unwrap() {
            records.push(record);
        }
        assert!(input.is_empty());
        records
    }

    fn feed_one(input: &[u8]) -> Result<Option<Vec<u8>>, RecordError> {
        Deframer::new(MAX).feed(&mut { input })
    }

    proptest! {
        #[test]
        fn any_fragmentation_in_any_chunks_gives_the_same_records(
            records in prop::collection::vec(
                (
                    prop::collection::vec(any::<u8>(), 0..200),
                    prop::collection::vec(any::<usize>(), 0..8),
                ),
                0..6,
            ),
            chunks in prop::collection::vec(1..40_usize, 1..20),
        ) {
            let stream: Vec<u8> = records
                .iter()
                .flat_map(|(record, ends)| fragmented(record, ends))
                .collect();
            let mut deframer = Deframer::new(MAX);
            let mut found = Vec::new();
            let mut rest = &stream[..];
            for len in chunks.into_iter().cycle() {
                if rest.is_empty() {
                    break;
                }
                let (chunk, next) = rest.split_at(len.min(rest.len()));
                found.extend(feed_all(&mut deframer, chunk));
                rest = next;
            }
            let sent: Vec<Vec<u8>> = records.into_iter().map(|(record, _)| record).collect();
            prop_assert_eq!(found, sent);
            prop_assert!(deframer.is_at_boundary());
        }

        #[test]
        fn reading_what_is_wanted_never_passes_the_end_of_a_record(
            record in prop::collection::vec(any::<u8>(), 0..200),
            ends in prop::collection::vec(any::<usize>(), 0..8),
        ) {
            let stream = fragmented(&record, &ends);
            let mut deframer = Deframer::new(MAX);
            let mut at = 0;
            let found = loop {
                let wanted = deframer.wanted();
                prop_assert!(wanted > 0);
                let mut exactly = &stream[at..at + wanted];
                at += wanted;
                if let Some(record) = deframer.feed(&mut exactly).unwrap() {
                    break record;
                }
            };
            prop_assert_eq!(at, stream.len());
            prop_assert_eq!(found, record);
        }

        #[test]
        fn a_message_is_one_last_fragment(
            words in prop::collection::vec(any::<[u8; 4]>(), 0..50),
            payload in prop::collection::vec(any::<u8>(), 0..50),
        ) {
            let head = words.concat();
            let message = Message { head, payload: Bytes::from(payload) };
            prop_assert_eq!(message.wire_len() % 4, 0);
            prop_assert_eq!(message.to_vec().len(), message.wire_len());
            let stream = [&message.marker()[..], &message.to_vec()].concat();
            let record = feed_one(&stream).unwrap().unwrap();
            prop_assert_eq!(&record, &message.to_vec());
            prop_assert_eq!(message.into_bytes(), record);
        }
    }

    #[test]
    fn headers_have_the_bytes_of_the_rfc() {
        let last = Fragment { last: true, len: 0x0102 };
        assert_eq!(last.to_header(), [0x80, 0, 1, 2]);
        let longest = Fragment { last: false, len: 0x7fff_ffff };
        assert_eq!(Fragment::from_header([0x7f, 0xff, 0xff, 0xff]), longest);
        assert_eq!(longest.to_header(), [0x7f, 0xff, 0xff, 0xff]);
    }

    #[test]
    fn too_long_is_noticed_at_the_header_and_over_all_fragments() {
        let too_long = |got| Err(RecordError::TooLong { max: MAX, got });
        assert_eq!(feed_one(&[0x80, 0, 3, 0xe8]), Ok(None)); // 1000
        assert_eq!(feed_one(&[0x80, 0, 3, 0xe9]), too_long(1001));
        assert_eq!(feed_one(&[0x7f, 0xff, 0xff, 0xff]), too_long(0x7fff_ffff));
        let mut stream = fragmented(&[0; MAX], &[]);
        stream[0] = 0; // not the last
        stream.extend([0x80, 0, 0, 1]);
        assert_eq!(feed_one(&stream), too_long(1001));
    }

    #[test]
    fn empty_fragments_are_let_through_until_there_are_too_many() {
        let stream = |empty: u32| {
            let mut stream = [0; 4].repeat(empty as usize);
            stream.extend([0x80, 0, 0, 1, b'x']);
            stream
        };
        assert_eq!(feed_one(&stream(EMPTY_FRAGMENTS_MAX)), Ok(Some(b"x".to_vec())));
        let error = feed_one(&stream(EMPTY_FRAGMENTS_MAX + 1)).unwrap_err();
        let max = EMPTY_FRAGMENTS_MAX;
        assert_eq!(error, RecordError::TooManyEmpty { max });
    }

    #[test]
    fn a_stream_that_ends_within_a_record_is_not_at_a_boundary() {
        let mut deframer = Deframer::new(MAX);
        let stream = fragmented(b"record", &[3]);
        for (index, byte) in stream.iter().enumerate() {
            assert_eq!(deframer.is_at_boundary(), index == 0);
            feed_all(&mut deframer, &[*byte]);
        }
        assert!(deframer.is_at_boundary());
    }
}
