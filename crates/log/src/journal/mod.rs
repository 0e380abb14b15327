//! Who shares a frame, and which files have records that are still needed. Decisions only: whoever
//! holds a journal writes what [`Journal::begin`] gives, and says how that went.
//!
//! **Group commit.** One frame is on its way at a time, for all files, or two where the medium
//! takes them side by side; who comes meanwhile shares the next. Nobody waits for others who may
//! come, so a lone writer waits for his own frame only. Frames end in any order, and are answered
//! in that in which they were begun: a crash leaves out what stands behind one that is missing.
//!
//! **Several logs** are one: their frames have one sequence, whichever they go to. Each has its own
//! frames on their way and its own room; the next frame is for the emptiest that can take one.
//!
//! **Files.** A file *has records* from its first one until a record that it is past them is
//! stable. That it was synced is not enough: what was made stable without the log after the sync
//! would be lost to a replay that does not know of it.

mod frames;

use std::collections::{HashMap, VecDeque};

use bytes::Bytes;

use self::frames::Writing;
pub use self::frames::{Begin, Drafted};
use crate::draft::Content;
use crate::frame::{self, Attributes, Stamp};
use crate::pace::Load;
use crate::replies::{self, Carried, EncodedReply, Replies};
use crate::ring::Ring;
use crate::scan::Found;
use crate::{BLOCK, BLOCK_BYTES, Key, Set};

/// What bounds a journal's memory.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Limits {
    /// Most files that have records at a time.
    pub files_max: usize,
    /// Most records that are needed at a time: 16 bytes each.
    pub records_max: usize,
    /// Longest data of a record, at most [`frame::DATA_BYTES_MAX`].
    pub data_bytes_max: usize,
    /// Records are added to a frame as long as it is shorter; at most [`frame::FRAME_BYTES_DUE`].
    pub frame_bytes_due: usize,
    /// Frames on their way at the same time, in each log.
    pub in_flight_max: usize,
    /// Replies that are retained: to WRITEs, and to others.
    pub write_replies_max: usize,
    pub other_replies_max: usize,
}

impl Limits {
    fn frame_bytes_max(&self) -> usize {
        self.frame_bytes_due + self.data_bytes_max + BLOCK
    }

    /// The longest frame that a start begins with, which has all replies that it has found. No
    /// other frame takes the room for it: a log without it could not be started from any more.
    fn start_bytes(&self) -> u64 {
        (self.frame_bytes_due + BLOCK) as u64
    }

    /// What data and replies leave: a frame that does not fit at the end of the log leaves at most
    /// that of the longest there.
    fn reserved_bytes(&self) -> u64 {
        self.frame_bytes_max() as u64 + self.start_bytes()
    }
}

impl Default for Limits {
    /// Files: guess; each stays open, and its record of being past takes at most a block of the
    /// quarter of the smallest log that is reserved for those.
    fn default() -> Self {
        Self {
            files_max: 1024,
            records_max: 1 << 20,
            data_bytes_max: frame::DATA_BYTES_MAX,
            frame_bytes_due: frame::FRAME_BYTES_DUE,
            in_flight_max: 1,
            write_replies_max: replies::WRITES_MAX,
            other_replies_max: replies::OTHERS_MAX,
        }
    }
}

/// A record that waits for its frame; the data are shared with whoever wrote them.
#[derive(Debug)]
struct Queued<W> {
    sequence: u64,
    key: Key,
    content: Content,
    waiter: W,
}

#[derive(Debug, Default)]
struct File {
    /// The newest record submitted.
    last: u64,
    /// Records that are needed, each with its frame. 16 bytes for each.
    needed: VecDeque<(u64, u64)>,
    /// A sync has failed since.
    is_doubtful: bool,
}

/// One of the logs.
#[derive(Debug)]
struct Part {
    ring: Ring,
    in_flight: usize,
    in_flight_max: usize,
}

/// Counts since the journal began.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Counts {
    pub frames: u64,
    pub records: u64,
    pub bytes: u64,
    /// WRITEs that were not admitted.
    pub refused: u64,
    /// Replies that waited for room.
    pub replies_waited: u64,
    /// WRITEs that waited to come in.
    pub held_back: u64,
}

#[derive(Debug)]
pub struct Journal<W> {
    id: [u8; 16],
    boot: [u8; 16],
    parts: Vec<Part>,
    /// The sequence of the next frame.
    next_frame: u64,
    limits: Limits,
    files: HashMap<Key, File>,
    queue: VecDeque<Queued<W>>,
    /// Of the data in the queue, with what their frames add at most.
    queued_cost: u64,
    /// Records that are needed, or will be.
    needed: usize,
    next_record: u64,
    replies: Replies,
    /// What the newest frame says of replies: see [`frame::Header::undecided`].
    open_from: u64,
    /// In the order of their beginning.
    writing: VecDeque<Writing<W>>,
    /// The newest frame that is stable, with all before it.
    stable: u64,
    /// A frame is to be written even if nothing waits.
    is_due: bool,
    /// The next frame is the first after a recovery.
    is_recovered: bool,
    ending: Option<W>,
    is_ended: bool,
    has_doubts: bool,
    is_failed: bool,
    counts: Counts,
}

impl Journal<()> {
    /// The first frame of new logs, which stands behind the first block of the first one.
    ///
    /// # Panics
    /// The logs are smaller than [`crate::SIZE_MIN`].
    pub fn first_frame(set: &Set, boot: [u8; 16]) -> Vec<u8> {
        let mut frame = Vec::new();
        let begun = Self::new(set, boot, None, Limits::default()).begin(0, &mut frame);
        assert!(matches!(begun, Begin::Write { .. }), "an empty log has room");
        frame
    }
}

impl<W> Journal<W> {
    /// Goes on behind what was found, all of which is in its place by now, but for what is held
    /// ([`Self::hold`]): the first frame records that, and is to be written before anything is
    /// submitted.
    pub fn new(set: &Set, boot: [u8; 16], found: Option<&Found>, limits: Limits) -> Self {
        let frames = found.map_or(&[][..], |found| &found.frames);
        let parts = set.bytes.iter().enumerate().map(|(log, &bytes)| {
            let own = frames.iter().filter(|place| place.log == log);
            let ring = Ring::new(bytes, own.copied());
            Part { ring, in_flight: 0, in_flight_max: limits.in_flight_max.max(1) }
        });
        Self {
            id: set.id,
            boot,
            parts: parts.collect(),
            next_frame: found.map_or(1, |found| found.next),
            limits,
            files: HashMap::new(),
            queue: VecDeque::new(),
            queued_cost: 0,
            needed: 0,
            next_record: found.map_or(1, |found| found.last.next_record),
            replies: Replies::new(limits.other_replies_max, limits.write_replies_max),
            open_from: u64::MAX,
            writing: VecDeque::new(),
            stable: found.map_or(0, |found| found.last.sequence),
            is_due: true,
            is_recovered: found.is_some(),
            ending: None,
            is_ended: false,
            has_doubts: false,
            is_failed: false,
            counts: Counts::default(),
        }
    }

    /// So many frames may be on their way to this log at the same time, from now on.
    pub fn allow_in_flight(&mut self, log: usize, frames_max: usize) {
        self.parts[log].in_flight_max = frames_max.max(1);
    }

    /// Whether a WRITE of so many bytes may be submitted. If not, it is made stable in its file.
    pub fn admits(&mut self, key: &Key, len: usize) -> bool {
        let is_known = self.files.get(key).map(|file| file.is_doubtful);
        let admits = !self.is_failed
            && !self.is_ended
            && len <= self.limits.data_bytes_max
            && self.needed < self.limits.records_max
            && is_known != Some(true)
            && (is_known.is_some() || self.files.len() < self.limits.files_max)
            && self.has_room_for(cost(len));
        self.counts.refused += u64::from(!admits);
        admits
    }

    /// Whether there is room for data that cost so much.
    pub fn has_room_for(&self, cost: u64) -> bool {
        let cost = self.queued_cost + cost;
        self.parts.iter().any(|part| part.admits(cost, &self.limits))
    }

    /// Takes up data that are in the page cache already; their order among submissions is that of
    /// the WRITEs. Only what is admitted.
    pub fn submit(
        &mut self,
        key: Key,
        offset: u64,
        (modified, changed): (Stamp, Stamp),
        data: Bytes,
        waiter: W,
    ) -> u64 {
        self.queued_cost += cost(data.len());
        self.needed += 1;
        let sequence = self.push(key, Content::Data { offset, modified, changed, data }, waiter);
        self.files.entry(key).or_default().last = sequence;
        sequence
    }

    /// The same of attributes that were set; admitted as a WRITE of no bytes is. A size only if the
    /// file has no records.
    pub fn submit_attributes(
        &mut self,
        key: Key,
        set: Attributes,
        (modified, changed): (Stamp, Stamp),
        waiter: W,
    ) -> u64 {
        debug_assert!(set.size.is_none() || self.mark(&key).is_none(), "see the rules in lib.rs");
        self.queued_cost += cost(0);
        self.needed += 1;
        let sequence = self.push(key, Content::Attributes { modified, changed, set }, waiter);
        self.files.entry(key).or_default().last = sequence;
        sequence
    }

    /// The same of a change that is on its way to another server; admitted as a WRITE of so many
    /// bytes is.
    pub fn submit_change(&mut self, key: Key, data: Bytes, waiter: W) -> u64 {
        self.push_change(key, data, None, waiter)
    }

    /// Writes a change again that the log has still, so that the frames before it become free. It
    /// may take of the room for what must always find some what others do not need.
    pub fn carry_change(&mut self, key: Key, data: Bytes, waiter: W) {
        let instead = self.mark(&key);
        self.push_change(key, data, instead, waiter);
    }

    fn push_change(&mut self, key: Key, data: Bytes, instead: Option<u64>, waiter: W) -> u64 {
        self.queued_cost += cost(data.len());
        self.needed += 1;
        let sequence = self.push(key, Content::Change { data, instead }, waiter);
        self.files.entry(key).or_default().last = sequence;
        sequence
    }

    /// Whether changes that cost so much may be written again: there is room then for what all
    /// that are needed have to say yet.
    pub fn admits_again(&self, cost: u64) -> bool {
        let notes = self.needed as u64 * BLOCK_BYTES;
        let reserved = notes + self.queued_cost + self.limits.reserved_bytes();
        !self.is_failed && self.parts.iter().any(|part| part.ring.free() >= reserved + cost)
    }

    /// The oldest frame that is needed.
    pub fn oldest_frame(&self) -> Option<u64> {
        self.parts.iter().filter_map(|part| part.ring.tail()).min()
    }

    /// The keys that need this frame, but for those of which something waits for its own.
    pub fn needing(&self, frame: u64) -> impl Iterator<Item = &Key> {
        let needs = move |file: &File| {
            let (oldest, newest) = (file.needed.front(), file.needed.back());
            oldest.is_some_and(|(_, oldest)| *oldest == frame)
                && newest.is_some_and(|(record, _)| *record == file.last)
        };
        self.files.iter().filter(move |(_, file)| needs(file)).map(|(key, _)| key)
    }

    /// A change has come where it was to go, and this came of it.
    pub fn done(&mut self, key: Key, through: u64, data: Bytes, waiter: W) {
        self.push(key, Content::Done { through, data }, waiter);
    }

    /// A record that was found is needed still. For a journal that goes on before all that was
    /// found is in its place; before its first frame.
    pub fn hold(&mut self, key: Key, sequence: u64, frame: u64) {
        let file = self.files.entry(key).or_default();
        file.last = file.last.max(sequence);
        file.needed.push_back((sequence, frame));
        self.needed += 1;
        self.parts.iter_mut().for_each(|part| part.ring.hold(frame));
    }

    /// A sequence that no record will have, for what is to be distinguished from records.
    pub fn skip_record(&mut self) -> u64 {
        self.next_record += 1;
        self.next_record - 1
    }

    /// The sequence of the next record.
    pub fn next_record(&self) -> u64 {
        self.next_record
    }

    /// Before a file is synced: up to which record that will make it past its records. None: it
    /// has none.
    pub fn mark(&self, key: &Key) -> Option<u64> {
        self.files.get(key).map(|file| file.last)
    }

    /// The oldest and the newest record of a file that a recovery would do again.
    pub fn records(&self, key: &Key) -> Option<(u64, u64)> {
        let file = self.files.get(key)?;
        let of_file = |queued: &&Queued<W>| {
            let is_data =
                matches!(queued.content, Content::Data { .. } | Content::Attributes { .. });
            is_data && queued.key == *key
        };
        let queued = || self.queue.iter().find(of_file).map(|queued| queued.sequence);
        let oldest = file.needed.front().map(|(record, _)| *record).or_else(queued);
        // What has none is about to be forgotten.
        Some((oldest.unwrap_or(file.last), file.last))
    }

    /// Whether the file is past nothing any more, because a sync has failed.
    pub fn is_doubtful(&self, key: &Key) -> bool {
        self.files.get(key).is_some_and(|file| file.is_doubtful)
    }

    /// A sync that began after [`Self::mark`] returned `through` has succeeded. The waiter hears
    /// when a replay would know.
    pub fn past(&mut self, key: Key, through: u64, waiter: W) {
        self.push(key, Content::Past { through }, waiter);
    }

    /// Whether what is swept becomes free, so that replies are retained. Where a file is doubtful,
    /// nothing that stands behind its records does before the next start.
    pub fn becomes_free(&self) -> bool {
        !self.is_failed && !self.is_ended && !self.has_doubts
    }

    /// Whether a reply may be submitted, with data of so many bytes before it. It finds room where
    /// data find none any more.
    pub fn admits_reply(&self, reply: &EncodedReply, data_len: usize) -> bool {
        !self.is_failed
            && !self.is_ended
            && self.replies.admits(reply.is_write)
            && self.has_room(reply, data_len)
    }

    fn has_room(&self, reply: &EncodedReply, data_len: usize) -> bool {
        let cost = self.queued_cost + cost(reply.bytes.len()) + cost(data_len);
        self.parts.iter().any(|part| part.admits_reply(cost, &self.limits))
    }

    /// A reply was not admitted and waits, for the first time or still. Whether a sweep would help.
    pub fn awaits_room(&mut self, reply: &EncodedReply, is_first: bool) -> bool {
        self.counts.replies_waited += u64::from(is_first);
        self.make_room() && !self.has_room(reply, 0)
    }

    /// Somebody waits for room. What is free already is recorded as such; whether a sweep would
    /// free more.
    pub fn make_room(&mut self) -> bool {
        self.is_due |= self.parts.iter().any(|part| part.ring.unrecorded() > 0);
        let open = self.replies.oldest_open_frame();
        self.oldest_frame() < open.or(Some(u64::MAX))
    }

    /// Takes up what a call will be answered. What it did stands in the log already, or is open:
    /// then [`Self::decide`] has to follow. Only what is admitted, or what a recovery has found,
    /// before the first frame.
    pub fn submit_reply(&mut self, reply: EncodedReply, is_open: bool, waiter: W) -> u64 {
        let sequence = self.push_reply(reply.clone(), None, waiter);
        if let Some(frame) = self.replies.add(sequence, reply, is_open) {
            self.release(frame);
        }
        sequence
    }

    fn push_reply(&mut self, reply: EncodedReply, instead: Option<u64>, waiter: W) -> u64 {
        self.queued_cost += cost(reply.bytes.len());
        self.push(reply.key, Content::Reply { reply, instead }, waiter)
    }

    /// What the call of an open reply did is stable now, or could not be made so.
    pub fn decide(&mut self, reply: u64, is_stable: bool) {
        self.replies.decide(reply, is_stable);
    }

    /// Writes the replies again that stay, those of calls since `oldest`: after a sweep, so that
    /// the frames before what is needed anyway become free. Those behind it would free nothing.
    pub fn carry(&mut self, oldest: Stamp, mut waiter: impl FnMut() -> W) {
        if self.is_failed {
            return;
        }
        let needed = self.files.values().filter_map(|file| file.needed.front());
        let needed = needed.map(|(_, frame)| *frame).chain(self.replies.oldest_open_frame());
        let before = needed.min().unwrap_or(u64::MAX);
        let Carried { again, released } = self.replies.carry(oldest, before);
        released.into_iter().for_each(|frame| self.release(frame));
        for (age, reply, frame) in again {
            let is_write = reply.is_write;
            let sequence = self.push_reply(reply, Some(frame), waiter());
            self.replies.written_again(age, is_write, sequence);
        }
    }

    /// Has a frame written if the newest one calls replies open that are not; whether it does.
    pub fn say_decided(&mut self) -> bool {
        let open_from = self.replies.oldest_open(0).unwrap_or(u64::MAX);
        let is_news = open_from > self.open_from && !self.is_failed;
        self.is_due |= is_news;
        is_news
    }

    /// A file that has records could not be synced: what the kernel had of it may be gone, and a
    /// later sync that succeeds says nothing. Its records stay until they were replayed. Of the
    /// first one a frame is due, and all later ones say the same: frames for each would fill a log
    /// in which nothing becomes free.
    pub fn doubt(&mut self, key: &Key) {
        if let Some(file) = self.files.get_mut(key) {
            file.is_doubtful = true;
            self.is_due |= !std::mem::replace(&mut self.has_doubts, true);
        }
    }

    /// No WRITE is admitted any more. Behind all that waits, a last frame says that the end was a
    /// clean one, if no file has records then.
    pub fn end(&mut self, waiter: W) {
        self.is_ended = true;
        self.ending = Some(waiter);
    }

    /// A WRITE waits to come in: [`crate::pace`].
    pub fn is_held_back(&mut self) {
        self.counts.held_back += 1;
    }

    /// The files that have records, those first that hold the oldest frames.
    pub fn oldest_first(&self) -> Vec<Key> {
        let oldest = |file: &File| file.needed.front().map_or(u64::MAX, |(_, frame)| *frame);
        let mut files: Vec<_> = self.files.iter().map(|(key, file)| (oldest(file), key)).collect();
        files.sort_unstable_by_key(|(oldest, _)| *oldest);
        files.into_iter().map(|(_, key)| *key).collect()
    }

    /// The files that have records.
    pub fn files(&self) -> impl ExactSizeIterator<Item = &Key> {
        self.files.keys()
    }

    pub fn counts(&self) -> Counts {
        self.counts
    }

    pub fn is_failed(&self) -> bool {
        self.is_failed
    }

    /// Bytes in use and in all.
    pub fn fill(&self) -> (u64, u64) {
        let rings = || self.parts.iter().map(|part| &part.ring);
        let all = rings().map(Ring::capacity).sum();
        (all - rings().map(Ring::free).sum::<u64>(), all)
    }

    /// The same of the room for data.
    pub fn load(&self) -> Load {
        let of = |bytes: &dyn Fn(&Part) -> u64| self.parts.iter().map(bytes).sum::<u64>();
        Load {
            used: self.queued_cost + of(&|part| part.ring.in_use()),
            room: of(&|part| part.room(&self.limits)),
        }
    }

    /// Whether it is time to make files past their records: half of the room for data is used.
    pub fn is_filling(&self) -> bool {
        let has_half = |part: &Part| part.admits(part.ring.capacity() / 4, &self.limits);
        self.needed > self.limits.records_max / 2 || !self.parts.iter().any(has_half)
    }

    /// Whether records wait for a frame.
    pub fn is_waiting(&self) -> bool {
        !self.queue.is_empty()
    }

    /// How many replies are retained.
    pub fn replies(&self) -> usize {
        self.replies.len()
    }

    fn push(&mut self, key: Key, content: Content, waiter: W) -> u64 {
        let sequence = self.next_record;
        self.next_record += 1;
        self.queue.push_back(Queued { sequence, key, content, waiter });
        sequence
    }

    /// The log can do nothing more: all who wait.
    pub fn fail(&mut self) -> Vec<W> {
        self.is_failed = true;
        self.queued_cost = 0;
        let queued = self.queue.drain(..).map(|queued| queued.waiter);
        queued.chain(self.ending.take()).collect()
    }

    /// Of a log that has failed: all its files are stable, and nobody will replay it.
    pub fn abandon(&mut self) {
        debug_assert!(self.is_failed, "a replay would put older bytes over newer");
        self.files.clear();
    }

    fn forget(&mut self, key: &Key, through: u64) {
        let Some(file) = self.files.get_mut(key).filter(|file| !file.is_doubtful) else { return };
        while let Some(&(record, frame)) = file.needed.front() {
            if record > through {
                break;
            }
            file.needed.pop_front();
            self.needed = self.needed.saturating_sub(1);
            // Only the one that has it takes notice.
            self.parts.iter_mut().for_each(|part| part.ring.release(frame));
        }
        if file.last <= through {
            self.files.remove(key);
        }
    }

    /// One record less of this frame is needed.
    fn release(&mut self, frame: u64) {
        self.parts.iter_mut().for_each(|part| part.ring.release(frame));
    }
}

/// What a record with so many bytes of data takes at most, in a frame of its own.
pub fn cost(len: usize) -> u64 {
    let bytes = frame::HEADER_BYTES + frame::RECORD_BYTES + Key::BYTES_MAX + len;
    (bytes as u64).next_multiple_of(BLOCK_BYTES)
}
