//! What goes into the next frame, for which log it is, and what its end makes stable.

use super::{Journal, Limits, Part, Queued, cost};
use crate::draft::{Content, Draft};
use crate::frame::{self, Header};
use crate::ring::Place;
use crate::{BLOCK_BYTES, Key};

/// A frame on its way.
#[derive(Debug)]
pub(super) struct Writing<W> {
    pub(super) header: Header,
    pub(super) past: Vec<(Key, u64)>,
    /// What was needed until this is stable.
    pub(super) instead: Vec<u64>,
    pub(super) waiters: Vec<W>,
    /// It is there, but one before it is not.
    pub(super) is_written: bool,
}

/// What is to be written now.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Begin {
    /// Nothing waits, or as much is on its way as may be.
    Idle,
    /// The buffer, at this place; then [`Journal::finish`] for this frame.
    Write { at: u64, frame: u64 },
    /// There is no room for what must have some: the log has failed.
    Stuck,
}

/// The same, without its bytes.
#[derive(Debug)]
pub enum Drafted {
    Idle,
    /// To be written; then [`Journal::finish`] for this frame.
    Write(Draft),
    Stuck,
}

impl<W> Journal<W> {
    /// The log for which the next frame is: whoever writes to it is to be woken.
    pub fn emptiest(&self) -> Option<usize> {
        let (_, bytes) = self.due();
        let can =
            |part: &Part| part.in_flight < part.in_flight_max && self.place(part, bytes).is_some();
        let able = self.parts.iter().enumerate().filter(|(_, part)| can(part));
        let least_used = able.min_by_key(|(_, part)| {
            let used = part.ring.capacity() - part.ring.free();
            used.saturating_mul(1 << 20) / part.ring.capacity().max(1)
        });
        least_used.map(|(log, _)| log)
    }

    /// Whether a frame of so many bytes may go to this log. Data wait for one where they leave the
    /// room for what must always find some, unless there is none.
    fn takes(&self, log: usize, bytes: u64) -> bool {
        let has_room = |part: &Part| part.admits(bytes, &self.limits);
        has_room(&self.parts[log])
            || !self.parts.iter().any(has_room)
                && self.emptiest().is_none_or(|emptiest| emptiest == log)
    }

    /// Where a frame of so many bytes goes in this log.
    fn place(&self, part: &Part, bytes: u64) -> Option<u64> {
        let spare = if self.is_recovered { 0 } else { self.limits.start_bytes() };
        part.ring.place(bytes, spare)
    }

    pub(super) fn tail(&self) -> u64 {
        let tails = self.parts.iter().filter_map(|part| part.ring.tail());
        tails.min().unwrap_or(self.next_frame)
    }

    /// The next frame, if it may be on its way to this log and is due; it replaces what `buffer`
    /// holds.
    pub fn begin(&mut self, log: usize, buffer: &mut Vec<u8>) -> Begin {
        match self.draft(log) {
            Drafted::Idle => Begin::Idle,
            Drafted::Write(draft) => {
                draft.write(buffer, 0);
                Begin::Write { at: draft.at(), frame: draft.frame() }
            }
            Drafted::Stuck => Begin::Stuck,
        }
    }

    /// The same, and its bytes are made by the caller.
    pub fn draft(&mut self, log: usize) -> Drafted {
        let part = &self.parts[log];
        if part.in_flight >= part.in_flight_max || self.is_failed {
            return Drafted::Idle;
        }
        // Room that no frame records as free would stay taken.
        let is_lagging = self.parts.iter().any(Part::is_lagging);
        let is_last = self.ending.is_some() && self.writing.is_empty();
        if self.queue.is_empty() && !self.is_due && !is_last && !is_lagging {
            return Drafted::Idle;
        }
        let (records, bytes) = self.due();
        if self.parts.len() > 1 && !self.takes(log, bytes) {
            return Drafted::Idle;
        }
        let has_unrecorded = self.parts.iter().any(|part| part.ring.unrecorded() > 0);
        let (records, bytes, at) = match self.place(part, bytes) {
            Some(at) => (records, bytes, at),
            // What is on its way may say what has become free.
            None if !self.writing.is_empty() => return Drafted::Idle,
            // Another log has a place for it.
            None if self.emptiest().is_some() => return Drafted::Idle,
            // A frame without records says it.
            None if has_unrecorded => match self.place(part, BLOCK_BYTES) {
                Some(at) => (0, BLOCK_BYTES, at),
                None => return Drafted::Stuck,
            },
            None => return Drafted::Stuck,
        };
        Drafted::Write(self.take(log, records, bytes, at))
    }

    /// How many of the queue go into one frame, and its length.
    fn due(&self) -> (usize, u64) {
        let (mut records, mut bytes) = (0, frame::HEADER_BYTES);
        for queued in &self.queue {
            if bytes >= self.limits.frame_bytes_due {
                break;
            }
            records += 1;
            bytes += queued.content.record_bytes(&queued.key);
        }
        (records, (bytes as u64).next_multiple_of(BLOCK_BYTES))
    }

    /// Takes so many records off the queue, into a frame of so many bytes.
    fn take(&mut self, log: usize, records: usize, bytes: u64, at: u64) -> Draft {
        let (tail, sequence) = (self.tail(), self.next_frame);
        let (mut past, mut waiters, mut instead) = (Vec::new(), Vec::new(), Vec::new());
        let (mut taken, mut needed) = (Vec::with_capacity(records), 0);
        for queued in self.queue.drain(..records) {
            let Queued { sequence: record, key, content, waiter } = queued;
            let in_file = match &content {
                Content::Data { data, .. } => Some(data.len()),
                Content::Change { data, instead } => {
                    past.extend(instead.map(|before| (key, before)));
                    Some(data.len())
                }
                Content::Attributes { .. } => Some(0),
                &Content::Past { through } | &Content::Done { through, .. } => {
                    past.push((key, through));
                    None
                }
                Content::Reply { reply, instead: until } => {
                    self.queued_cost -= cost(reply.bytes.len());
                    needed += u32::from(self.replies.begun(record, reply.is_write, sequence));
                    instead.extend(*until);
                    None
                }
            };
            if let Some(len) = in_file {
                self.queued_cost -= cost(len);
                self.files.entry(key).or_default().needed.push_back((record, sequence));
                needed += 1;
            }
            taken.push((record, key, content));
            waiters.push(waiter);
        }
        let next_record = self.queue.front().map_or(self.next_record, |queued| queued.sequence);
        let is_last = records == 0 && self.queue.is_empty() && self.writing.is_empty();
        let last = self.ending.take_if(|_| is_last);
        let is_clean = last.is_some() && self.files.is_empty();
        waiters.extend(last);
        let flags = if is_clean { frame::CLEAN } else { 0 }
            | if self.has_doubts { frame::DOUBT } else { 0 }
            | if std::mem::take(&mut self.is_recovered) { frame::FIRST } else { 0 };
        self.open_from = self.replies.oldest_open(tail).unwrap_or(u64::MAX);
        let header = Header {
            id: self.id,
            boot: self.boot,
            log: u32::try_from(log).unwrap_or(u32::MAX),
            at,
            sequence,
            tail,
            flags,
            records: u32::try_from(records).expect("a frame is of some MiB"),
            bytes,
            next_record,
            stable: self.stable,
            undecided: u32::try_from(next_record.saturating_sub(self.open_from))
                .unwrap_or(u32::MAX),
        };
        self.parts[log].ring.write(Place::from(&header), needed);
        self.parts[log].in_flight += 1;
        self.next_frame += 1;
        self.is_due = false;
        self.writing.push_back(Writing { header, past, instead, waiters, is_written: false });
        Draft { header, records: taken }
    }

    /// A frame is written, or could not be: then nothing is promised any more. Gives back whose
    /// outcome that is: those of this frame and of others that waited for it, or all but those of
    /// frames that were begun before one that failed.
    pub fn finish(&mut self, frame: u64, is_written: bool) -> Vec<W> {
        let is_it = |writing: &Writing<W>| writing.header.sequence == frame;
        let Some(index) = self.writing.iter().position(is_it) else {
            // One before it has failed, which was the outcome of this one, too.
            return Vec::new();
        };
        let part = &mut self.parts[self.writing[index].header.log as usize];
        part.in_flight = part.in_flight.saturating_sub(1);
        if !is_written {
            let failed = self.writing.drain(index..).flat_map(|writing| writing.waiters);
            let mut waiters: Vec<_> = failed.collect();
            waiters.extend(self.fail());
            return waiters;
        }
        self.writing[index].is_written = true;
        let mut stable = Vec::new();
        while self.writing.front().is_some_and(|writing| writing.is_written) {
            let Some(writing) = self.writing.pop_front() else { break };
            let Writing { header, past, instead, waiters, .. } = writing;
            self.counts.frames += 1;
            self.counts.records += u64::from(header.records);
            self.counts.bytes += header.bytes;
            self.stable = header.sequence;
            self.parts.iter_mut().for_each(|part| part.ring.written(header.tail));
            past.into_iter().for_each(|(key, through)| self.forget(&key, through));
            instead.into_iter().for_each(|frame| self.release(frame));
            stable.extend(waiters);
        }
        stable
    }
}

impl Part {
    /// Data leave a sixteenth of the log to replies.
    pub(super) fn admits(&self, cost: u64, limits: &Limits) -> bool {
        self.admits_reply(cost + self.ring.capacity() / 16, limits)
    }

    /// What data may take.
    pub(super) fn room(&self, limits: &Limits) -> u64 {
        self.ring.room(limits.reserved_bytes()).saturating_sub(self.ring.capacity() / 16)
    }

    pub(super) fn admits_reply(&self, cost: u64, limits: &Limits) -> bool {
        self.ring.admits(cost, limits.reserved_bytes())
    }

    pub(super) fn is_lagging(&self) -> bool {
        self.ring.unrecorded() > self.ring.capacity() / 8
    }
}
