//! One direction of a TCP connection: segments in, records out (`records.rs`), without a copy of
//! bulk data.
//!
//! What comes in order is read where it lies. Of a record that one segment holds, the record's
//! bytes are lent to whoever takes it; of a longer one the first [`HEAD_LEN`] bytes and the last
//! [`TAIL_LEN`] are stored, and what is between is skipped by its length. A hole in what is skipped
//! harms nothing.
//!
//! What comes too early waits for what is missing: at most [`EARLY_BYTES_MAX`] bytes and
//! [`EARLY_MAX`] segments, of which those inside bulk data cost no bytes. When that is full, or the
//! other end acknowledges what we have not seen, the missing bytes are given up, and the stream is
//! read on from the next place where a record can begin.

mod records;

use std::collections::VecDeque;

use wire::record::FRAGMENT_HEADER_LEN;

/// Bytes stored from the start of a record that is longer than a segment: enough for the
/// credential, two handles and two names.
pub const HEAD_LEN: usize = 2048;
/// Bytes stored from its end: what stands behind the data of a WRITE in a COMPOUND.
pub const TAIL_LEN: usize = 512;
/// What is stored of replies to READDIRPLUS.
pub(super) const LISTING_LEN: usize = 128 << 10;
/// Bytes of segments that came too early: more than a window holds, which Linux lets grow to
/// 6 MiB. What is given up before it comes would end a record too soon, or hide where one begins.
pub const EARLY_BYTES_MAX: usize = 8 << 20;
/// Those segments: as many as these bytes are on an Ethernet.
pub const EARLY_MAX: usize = 8 << 10;
/// A hole that is filled sooner was none: segments overtook each other. As Wireshark has it.
const REORDERED_NS_MAX: u64 = 3_000_000;
/// Acknowledgements alike behind the first that ask for what is missing.
const REQUESTS: u32 = 3;

/// A record, or what is known of it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record<'a> {
    /// When its first byte came.
    pub(super) first_ns: u64,
    /// When its last byte came.
    pub(super) last_ns: u64,
    /// Its bytes from the start on: all of them, or the first.
    pub(super) head: &'a [u8],
    /// Its last bytes, if there are some that `head` does not have.
    pub(super) tail: &'a [u8],
    /// Bytes it had.
    pub(super) len: u32,
    /// Its last byte was captured: `last_ns` is when it came. Otherwise it is when it was given up.
    pub(super) ends_known: bool,
    /// Messages may have been lost before it: the stream was read on from a new place.
    pub(super) follows_gap: bool,
}

/// What was met besides records.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct StreamCounts {
    /// Bytes that came again.
    pub again_bytes: u64,
    /// Segments that came again.
    pub again: u64,
    /// Segments that came before what stands before them.
    pub early: u64,
    /// Holes that were filled long after they were seen, or when the receiver had requested the
    /// bytes: they were lost before the capture, and retransmitted.
    pub filled: u64,
    pub filled_bytes: u64,
    /// Segments with data, and their bytes.
    pub segments: u64,
    pub bytes: u64,
    /// Bytes that were never seen.
    pub missing_bytes: u64,
    /// Times that the stream was read on from a new place.
    pub resyncs: u64,
    /// Times that a message began in what the capture does not hold of a packet: it was not seen,
    /// nor what follows it there.
    pub cut: u64,
}

#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The number of the byte that comes next; none before the first segment.
    next: Option<u32>,
    state: State,
    /// Of the record in progress.
    first_ns: u64,
    /// Its bytes so far.
    have: u32,
    fragments: u32,
    head: Vec<u8>,
    tail: Vec<u8>,
    early: VecDeque<Early>,
    early_bytes: usize,
    /// When the first segment behind the first hole came.
    hole_ns: u64,
    /// The receiver has requested what is missing: three acknowledgements alike (RFC 5681
    /// section 3.2).
    requested: bool,
    /// The last acknowledgement without data, and how often it was repeated.
    last_ack: (u32, u32),
    /// The first number that the other end has acknowledged, and the last.
    heard: Option<(u32, u32)>,
    /// The bytes that are read now were never seen.
    unseen: bool,
    /// Where those were that were given up last, and how many.
    missed: (u32, u32),
    /// A record was found: there are more.
    has_records: bool,
    /// Others may have been missed since.
    has_gap: bool,
    /// Bytes of the record that are stored when it is split.
    pub(super) head_len: usize,
    pub(super) counts: StreamCounts,
}

#[derive(Debug)]
enum State {
    /// Where records begin is not known.
    Searching { searched: u32 },
    /// Bytes of a mark.
    Mark { bytes: [u8; FRAGMENT_HEADER_LEN], have: usize },
    /// `left` bytes of a fragment are to come.
    Body { left: u32, last: bool },
}

impl Default for State {
    fn default() -> Self {
        Self::Searching { searched: 0 }
    }
}

const MARK: State = State::Mark { bytes: [0; FRAGMENT_HEADER_LEN], have: 0 };

/// A segment that waits for what is before it.
#[derive(Debug)]
struct Early {
    at_ns: u64,
    seq: u32,
    len: u32,
    /// What was captured of it, if it is needed.
    bytes: Vec<u8>,
}

/// How far `to` is after `from`, around the end of the numbers; negative when it is before.
#[expect(clippy::cast_possible_wrap, reason = "that is how sequence numbers compare")]
const fn after(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from) as i32
}

impl Stream {
    /// The connection begins (again): the next byte has this number.
    pub(super) fn begin(&mut self, next: u32) {
        (self.next, self.heard) = (Some(next), None);
        self.forget_record();
        self.state = MARK;
        self.early.clear();
        self.early_bytes = 0;
    }

    /// Bytes of memory that it keeps.
    pub(super) fn buffered(&self) -> usize {
        self.head.capacity() + self.tail.capacity() + self.early_bytes
    }

    /// Whether bytes are missing that the other end may have.
    pub(super) fn has_hole(&self) -> bool {
        !self.early.is_empty()
    }

    /// Whether this number is the one that comes next, and nothing is missing.
    pub(super) fn is_next(&self, seq: u32) -> bool {
        self.early.is_empty() && self.next.is_none_or(|next| next == seq)
    }

    /// The other end has acknowledged this.
    pub(super) fn heard(&mut self, ack: u32) {
        let (first, last) = self.heard.unwrap_or((ack, ack));
        self.heard = Some((first, if after(last, ack) > 0 { ack } else { last }));
    }

    /// Bytes at the end that the other end has acknowledged and that were never captured. A FIN has
    /// a number, too.
    pub(super) fn unseen(&self) -> u32 {
        let Some((first, last)) = self.heard else { return 0 };
        match after(self.next.unwrap_or(first), last) {
            bytes @ 2..0x2000_0000 => bytes.unsigned_abs(),
            _ => 0,
        }
    }

    /// The other end has acknowledged all that was captured.
    pub(super) fn is_acknowledged(&self) -> bool {
        let last = self.heard.map(|(_, last)| last);
        self.next.zip(last).is_some_and(|(next, last)| after(next, last) >= 0)
    }

    /// Messages were read in it.
    pub(super) const fn has_records(&self) -> bool {
        self.has_records
    }

    /// The other end has everything before `ack`, which it acknowledges with data of its own or
    /// without.
    pub(super) fn acknowledged(
        &mut self,
        now: u64,
        ack: u32,
        has_data: bool,
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) {
        while let (Some(next), Some(first)) = (self.next, self.early.front()) {
            if after(first.seq, ack) < 0 || after(next, first.seq) <= 0 {
                return;
            }
            self.give_up(take);
        }
        // An answer to a record whose end was not captured: nothing more of it will come.
        if let (true, Some(next), State::Body { left, last: true }) =
            (has_data && self.early.is_empty(), self.next, &self.state)
            && after(next.wrapping_add(*left), ack) >= 0
        {
            let left = *left;
            self.miss(now, left, take);
        }
    }

    /// Goes on behind `hole` bytes that were never seen.
    fn miss(&mut self, now: u64, hole: u32, take: &mut impl FnMut(Record<'_>) -> bool) {
        let Some(next) = self.next else { return };
        self.counts.missing_bytes += u64::from(hole);
        self.next = Some(next.wrapping_add(hole));
        self.missed = (next, hole);
        self.unseen = true;
        self.consume(now, &[], hole, take);
        self.unseen = false;
    }

    /// The other end has acknowledged without data. True when it requests what is missing, once for
    /// each time: whoever captures near the sender sees nothing else of a loss until it is mended.
    pub(super) fn requests_again(&mut self, ack: u32) -> bool {
        let (last, times) = self.last_ack;
        let times = if last == ack { times.saturating_add(1) } else { 0 };
        self.last_ack = (ack, times);
        // Who has everything does not ask, but says that it is alive, or that its window grows.
        let has_more = self.next.is_some_and(|next| after(ack, next) > 0) || self.has_hole();
        let is_request = times == REQUESTS && has_more;
        self.requested |= times >= REQUESTS && self.has_hole();
        is_request
    }

    /// Takes a segment. `take` gets each record that becomes complete, and says whether it was
    /// one; if not, the place is lost.
    pub(super) fn segment(
        &mut self,
        now: u64,
        seq: u32,
        payload: &[u8],
        len: u32,
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) {
        if len == 0 {
            return;
        }
        self.counts.segments += 1;
        self.counts.bytes += u64::from(len);
        self.take_segment(now, seq, payload, len, take);
    }

    fn take_segment(
        &mut self,
        now: u64,
        seq: u32,
        payload: &[u8],
        len: u32,
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) {
        let next = *self.next.get_or_insert(seq);
        let ahead = after(next, seq);
        if ahead == 0 && self.early.is_empty() {
            self.next = Some(seq.wrapping_add(len));
            self.consume(now, payload, len, take);
            return;
        }
        if ahead.unsigned_abs() > 1 << 29 {
            // Not of this stream: another connection between the same ports.
            self.begin(seq);
            self.lose_sync();
            return self.take_segment(now, seq, payload, len, take);
        }
        if ahead > 0 {
            self.keep_early(now, seq, payload, len, take);
        } else {
            let had_hole = self.has_hole();
            self.overlapping(now, seq, payload, len, take);
            let fills = had_hole && self.next != Some(next);
            if fills && (self.requested || now.saturating_sub(self.hole_ns) > REORDERED_NS_MAX) {
                self.counts.filled += 1;
                self.counts.filled_bytes += u64::from(len);
            }
        }
        self.catch_up(Some(now), take);
    }

    /// A segment that begins where we are, or before.
    fn overlapping(
        &mut self,
        now: u64,
        seq: u32,
        payload: &[u8],
        len: u32,
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) {
        let Some(next) = self.next else { return };
        let known = after(seq, next).unsigned_abs();
        let again = known.min(len);
        // A byte before the next is a question whether the other end is alive. What was given up is
        // late: several queues of a card are captured one after the other.
        let is_late = seq.wrapping_sub(self.missed.0) < self.missed.1;
        if again > 1 && !is_late {
            self.counts.again += 1;
            self.counts.again_bytes += u64::from(again);
        }
        if len > known {
            self.next = Some(seq.wrapping_add(len));
            let payload = payload.get(known as usize..).unwrap_or_default();
            self.consume(now, payload, len - known, take);
        }
    }

    fn keep_early(
        &mut self,
        now: u64,
        seq: u32,
        payload: &[u8],
        len: u32,
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) {
        let at = self.early.partition_point(|early| after(early.seq, seq) >= 0);
        if at > 0 && self.early.get(at - 1).is_some_and(|e| e.seq == seq && e.len >= len) {
            self.counts.again += 1;
            self.counts.again_bytes += u64::from(len);
            return;
        }
        self.counts.early += 1;
        let bytes = if self.is_bulk(seq, len) { Vec::new() } else { payload.to_vec() };
        self.early_bytes += bytes.len();
        if self.early.is_empty() {
            self.hole_ns = now;
        }
        self.early.insert(at, Early { at_ns: now, seq, len, bytes });
        while self.early.len() > EARLY_MAX || self.early_bytes > EARLY_BYTES_MAX {
            self.give_up(take);
        }
    }

    /// Whether a segment lies within data that are skipped.
    fn is_bulk(&self, seq: u32, len: u32) -> bool {
        let (State::Body { left, last: true }, Some(next)) = (&self.state, self.next) else {
            return false;
        };
        let begin = after(next, seq).unsigned_abs();
        let keeps_head = self.have as usize + (begin as usize) < self.head_len.max(HEAD_LEN);
        let tail = u32::try_from(TAIL_LEN).unwrap_or(u32::MAX);
        !keeps_head && begin.saturating_add(len).saturating_add(tail) <= *left
    }

    /// Takes what waited and is no longer early: what was missing came at `filled`. Where it was
    /// given up the receiver had it, and each segment counts from when it was captured.
    fn catch_up(&mut self, filled: Option<u64>, take: &mut impl FnMut(Record<'_>) -> bool) {
        while let (Some(next), Some(first)) = (self.next, self.early.front()) {
            let known = after(first.seq, next);
            if known < 0 {
                // The next hole: it is as old as what stands behind it.
                self.hole_ns = first.at_ns;
                return;
            }
            let Some(early) = self.early.pop_front() else { return };
            let now = filled.unwrap_or(early.at_ns);
            self.early_bytes -= early.bytes.len();
            let known = known.unsigned_abs();
            if early.len > known {
                self.next = Some(early.seq.wrapping_add(early.len));
                let bytes = early.bytes.get(known as usize..).unwrap_or_default();
                self.consume(now, bytes, early.len - known, take);
            }
        }
        self.requested = false;
    }

    /// Goes on behind the first hole.
    fn give_up(&mut self, take: &mut impl FnMut(Record<'_>) -> bool) {
        let (Some(next), Some(first)) = (self.next, self.early.front()) else { return };
        let (hole, at_ns) = (after(next, first.seq).max(0).unsigned_abs(), first.at_ns);
        self.miss(at_ns, hole, take);
        self.catch_up(None, take);
    }
}
