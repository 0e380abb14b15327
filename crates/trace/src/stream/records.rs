//! Where records are in the bytes of a stream: marks, fragments, and what is stored of each.

use wire::record::{FRAGMENT_HEADER_LEN, Fragment};

use super::{HEAD_LEN, MARK, Record, State, Stream, TAIL_LEN};
use crate::message::{self, RECORD_LEN_MAX, TELLING_LEN};

/// Bytes in which the start of a record is looked for at every place; after them only at the
/// starts of segments.
const SEARCHED_MAX: u32 = 256 << 10;
/// Fragments that a record may have.
const FRAGMENTS_MAX: u32 = 4096;

impl Stream {
    pub(super) fn lose_sync(&mut self) {
        self.counts.resyncs += u64::from(self.has_records);
        self.has_gap |= self.has_records;
        self.state = State::Searching { searched: 0 };
        self.forget_record();
    }

    pub(super) fn forget_record(&mut self) {
        self.have = 0;
        self.fragments = 0;
        self.head.clear();
        self.tail.clear();
    }

    /// Reads `len` bytes in order, of which those in `bytes` were captured.
    pub(super) fn consume(
        &mut self,
        now: u64,
        mut bytes: &[u8],
        mut len: u32,
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) {
        let is_captured = !bytes.is_empty();
        while len > 0 {
            match &mut self.state {
                State::Searching { searched } => {
                    let thorough = *searched < SEARCHED_MAX;
                    *searched = searched.saturating_add(len);
                    let found = match thorough {
                        true => message::find_mark(bytes),
                        false => message::is_marked(bytes, true).then_some(0),
                    };
                    let Some(at) = found else { return };
                    bytes = &bytes[at..];
                    len -= u32::try_from(at).unwrap_or(len).min(len);
                    self.state = MARK;
                }
                State::Mark { bytes: mark, have } => {
                    if self.fragments == 0 && *have == 0 {
                        self.first_ns = now;
                    }
                    let Some((&byte, rest)) = bytes.split_first() else {
                        // The mark itself was not captured.
                        self.counts.cut += u64::from(is_captured);
                        self.lose_sync();
                        return;
                    };
                    // All of it at once, as nearly always.
                    if let (0, Some((whole, rest))) = (*have, bytes.split_first_chunk()) {
                        (bytes, len) = (rest, len - 4);
                        let fragment = Fragment::from_header(*whole);
                        if let Some(used) = self.begin_fragment(now, fragment, bytes, take) {
                            bytes = &bytes[used..];
                            len -= u32::try_from(used).unwrap_or(len).min(len);
                        }
                        continue;
                    }
                    mark[*have] = byte;
                    *have += 1;
                    (bytes, len) = (rest, len - 1);
                    if *have == FRAGMENT_HEADER_LEN {
                        let fragment = Fragment::from_header(*mark);
                        self.begin_fragment(now, fragment, &[], take);
                    }
                }
                State::Body { left, last } => {
                    let part = (*left).min(len);
                    *left -= part;
                    let is_over = (*left == 0).then_some(*last);
                    let (fragment_left, is_last) = (*left, *last);
                    let captured = bytes.len().min(part as usize);
                    let (own, rest) = bytes.split_at(captured);
                    bytes = rest;
                    len -= part;
                    self.keep(own, part, fragment_left, is_last);
                    self.have = self.have.saturating_add(part);
                    match is_over {
                        None => {
                            if self.head.len() >= TELLING_LEN && !message::is_message(&self.head) {
                                self.lose_sync();
                            }
                        }
                        Some(true) => self.deliver(now, take),
                        Some(false) => self.state = MARK,
                    }
                }
            }
        }
    }

    /// A fragment begins, and `bytes` follow. If it is a whole record, and all of it is there, it
    /// is taken where it lies, and its length returned.
    fn begin_fragment(
        &mut self,
        now: u64,
        fragment: Fragment,
        bytes: &[u8],
        take: &mut impl FnMut(Record<'_>) -> bool,
    ) -> Option<usize> {
        let Fragment { last, len } = fragment;
        self.fragments += 1;
        let is_first = self.fragments == 1;
        // What stands behind a short fragment is the next one's mark.
        let own = &bytes[..bytes.len().min(len as usize)];
        let wrong = self.have.saturating_add(len) > RECORD_LEN_MAX
            || self.fragments > FRAGMENTS_MAX
            || (is_first && last && len < 8)
            || (is_first && own.len() >= 8 && !message::is_message(own));
        if wrong {
            self.lose_sync();
            return None;
        }
        if is_first
            && last
            && let Some(head) = bytes.get(..len as usize)
        {
            self.fragments = 0;
            self.state = MARK;
            let record = Record {
                first_ns: self.first_ns,
                last_ns: now,
                head,
                tail: &[],
                len,
                ends_known: true,
                follows_gap: std::mem::take(&mut self.has_gap),
            };
            self.has_records = true;
            if !take(record) {
                self.lose_sync();
            }
            return Some(len as usize);
        }
        self.state = match len {
            0 if last => MARK,
            0 => MARK,
            left => State::Body { left, last },
        };
        if len == 0 && last {
            self.deliver(now, take);
        }
        None
    }

    /// Keeps what is needed of the next `part` bytes of the record, of which `own` were captured.
    fn keep(&mut self, own: &[u8], part: u32, left: u32, is_last: bool) {
        let head_max = self.head_len.max(HEAD_LEN);
        let have = self.have as usize;
        let mut from = 0;
        if self.head.len() == have && have < head_max {
            from = own.len().min(head_max - have);
            self.head.extend_from_slice(&own[..from]);
        }
        // How far the end of `own` is from the end of the record, when that is known.
        let behind = left as usize + (part as usize - own.len());
        if !is_last || behind >= TAIL_LEN {
            return;
        }
        let wanted = TAIL_LEN - behind;
        let start = own.len().saturating_sub(wanted).max(from);
        self.tail.extend_from_slice(&own[start..]);
        if own.len() < part as usize {
            // A hole: what stands before it is not the end.
            self.tail.clear();
        }
    }

    fn deliver(&mut self, now: u64, take: &mut impl FnMut(Record<'_>) -> bool) {
        self.state = MARK;
        let record = Record {
            first_ns: self.first_ns,
            last_ns: now,
            head: &self.head,
            tail: &self.tail,
            len: self.have,
            ends_known: !self.unseen,
            follows_gap: std::mem::take(&mut self.has_gap),
        };
        self.has_records = true;
        let is_good = record.head.len() < 8 || take(record);
        self.forget_record();
        if !is_good {
            self.lose_sync();
        }
    }
}
