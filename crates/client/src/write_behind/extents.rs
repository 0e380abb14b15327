//! The index of `adaptive`: extents that grow to the size of a WRITE while they are written.
//!
//! The file is divided into cells of wsize, and no extent crosses from one into the next. A write
//! that continues an extent is appended to it, so a sequential writer's bytes are copied once and
//! the finished extent is sent as it lies; bytes that are given away and fill a cell are not
//! copied at all. What was written in another order is put together when it is sent, which is a
//! second copy.
//!
//! An extent is *ripe*, to be sent without a request, when it fills its cell, or reaches its
//! end with at least half of it. The rest waits for more, until somebody asks.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Range;

use bytes::{Bytes, BytesMut};

use super::index::{Busy, Chunk, Data, Index, Promise, Sums};
use super::spans::{Held, Spans, gaps, part_of, remainders};

/// What a piece of a file takes besides its bytes: its place in two or three trees, the heads of
/// its buffer, and what an allocator adds. 260 were measured.
const PIECE_BYTES: u64 = 256;

/// See the module's head.
#[derive(Debug)]
pub(super) struct Extents {
    wsize: u64,
    age: u64,
    pending: BTreeMap<u64, Extent>,
    pending_bytes: u64,
    /// Names of pending extents by age: those that may be sent, ripe or not, and those that
    /// overlap something under way.
    ripe: BTreeSet<(u64, u64)>,
    unripe: BTreeSet<(u64, u64)>,
    blocked: BTreeSet<(u64, u64)>,
    /// Each with the offset from which on it is not held.
    under_way: Spans<u64>,
    unstable: Spans<Unstable>,
    /// Counts COMMITs: one covers what was acknowledged in earlier epochs.
    epoch: u64,
    /// Where the last write ended.
    stream_end: u64,
}

/// A pending run of bytes.
#[derive(Debug)]
struct Extent {
    data: Buffer,
    age: u64,
    caller: u32,
}

#[derive(Debug)]
enum Buffer {
    /// Can be appended to and overwritten.
    Open(BytesMut),
    Closed(Bytes),
}

#[derive(Clone, Copy, Debug)]
struct Unstable {
    verifier: [u8; 8],
    epoch: u64,
}

impl Extent {
    fn len(&self) -> u64 {
        self.as_slice().len() as u64
    }

    fn as_slice(&self) -> &[u8] {
        match &self.data {
            Buffer::Open(data) => data,
            Buffer::Closed(data) => data,
        }
    }

    fn close(self) -> Held {
        let (data, buffer_bytes) = match self.data {
            Buffer::Open(data) => {
                let capacity = data.capacity();
                (data.freeze(), capacity)
            }
            Buffer::Closed(data) => {
                let len = data.len();
                (data, len)
            }
        };
        Held::new(data, buffer_bytes, self.age, self.caller)
    }
}

impl Extents {
    pub(super) fn new(wsize: u32) -> Self {
        Self {
            wsize: u64::from(wsize.max(1)),
            age: 0,
            pending: BTreeMap::new(),
            pending_bytes: 0,
            ripe: BTreeSet::new(),
            unripe: BTreeSet::new(),
            blocked: BTreeSet::new(),
            under_way: Spans::default(),
            unstable: Spans::default(),
            epoch: 1,
            stream_end: 0,
        }
    }

    fn cell_of(&self, offset: u64) -> Range<u64> {
        let start = offset - offset % self.wsize;
        start..start.saturating_add(self.wsize)
    }

    /// Adds a pending extent that overlaps no other pending one.
    fn put(&mut self, start: u64, extent: Extent) {
        if extent.len() == 0 {
            return;
        }
        let range = start..start + extent.len();
        let name = (extent.age, start);
        if self.under_way.overlaps(&range) {
            self.blocked.insert(name);
        } else if self.is_ripe(&range) {
            self.ripe.insert(name);
        } else {
            self.unripe.insert(name);
        }
        self.pending_bytes += extent.len();
        self.pending.insert(start, extent);
    }

    fn remove(&mut self, start: u64) -> Option<Extent> {
        let extent = self.pending.remove(&start)?;
        let name = (extent.age, start);
        let _ = self.unripe.remove(&name) || self.ripe.remove(&name) || self.blocked.remove(&name);
        self.pending_bytes -= extent.len();
        Some(extent)
    }

    fn is_ripe(&self, range: &Range<u64>) -> bool {
        let cell = self.cell_of(range.start);
        range.end == cell.end && (range.end - range.start) * 2 >= self.wsize
    }

    /// Where the pending extents begin that overlap `range`.
    fn pending_in(&self, range: &Range<u64>) -> Vec<u64> {
        let reaches_in = |(start, extent): &(&u64, &Extent)| *start + extent.len() > range.start;
        let before = self.pending.range(..range.start).next_back().filter(reaches_in);
        let within = self.pending.range(range.clone());
        before.into_iter().chain(within).map(|(start, _)| *start).collect()
    }

    fn cut(&mut self, range: &Range<u64>) {
        for start in self.pending_in(range) {
            let Some(extent) = self.remove(start) else { continue };
            for (at, held) in remainders(start, &extent.close(), range) {
                self.put_held(at, held);
            }
        }
    }

    fn put_held(&mut self, start: u64, held: Held) {
        let Held { data, age, caller, .. } = held;
        self.put(start, Extent { data: Buffer::Closed(data), age, caller });
    }

    /// Makes bytes pending again, except where newer ones are.
    fn again(&mut self, start: u64, held: &Held, until: u64) {
        let end = (start + held.data.len() as u64).min(until).max(start);
        for gap in self.gaps(start..end) {
            // An extent stays within its cell.
            self.put_held(gap.start, part_of(start, held, &gap));
        }
    }

    /// The parts of `range` where nothing is pending.
    fn gaps(&self, range: Range<u64>) -> Vec<Range<u64>> {
        let newer = self.pending_in(&range);
        let ranges = newer.iter().filter_map(|start| {
            let extent = self.pending.get(start)?;
            Some(*start..start + extent.len())
        });
        gaps(range, ranges)
    }

    /// Those that were blocked by what lay in `range` may be free now.
    fn unblock(&mut self, range: &Range<u64>) {
        if self.blocked.is_empty() {
            return;
        }
        for start in self.pending_in(range) {
            if let Some(extent) = self.remove(start) {
                self.put(start, extent);
            }
        }
    }

    /// Overwrites or continues an open extent, if there is one to overwrite or continue.
    fn extend(&mut self, offset: u64, data: &[u8], caller: u32) -> bool {
        let end = offset + data.len() as u64;
        let cell = self.cell_of(offset);
        let next_start = self.pending.range(offset + 1..).next().map(|(start, _)| *start);
        let Some((&start, extent)) = self.pending.range_mut(..=offset).next_back() else {
            return false;
        };
        let extent_end = start + extent.len();
        let Buffer::Open(buffer) = &mut extent.data else { return false };
        if extent.caller != caller {
            return false;
        }
        let at = usize::try_from(offset - start).unwrap_or(usize::MAX);
        if end <= extent_end {
            buffer[at..at + data.len()].copy_from_slice(data);
            return true;
        }
        let is_next = extent_end == offset && cell.contains(&start);
        let name = (extent.age, start);
        if !is_next
            || next_start.is_some_and(|next| next < end)
            || self.blocked.contains(&name)
            || self.under_way.overlaps(&(offset..end))
        {
            return false;
        }
        if buffer.capacity() - buffer.len() < data.len() {
            // Four times as much, so that at most a third is copied twice on the way to a cell.
            let cell_left = usize::try_from(cell.end - offset).unwrap_or(usize::MAX);
            buffer.reserve((3 * buffer.len()).clamp(data.len(), cell_left));
        }
        buffer.extend_from_slice(data);
        self.pending_bytes += data.len() as u64;
        if self.is_ripe(&(start..end)) && self.unripe.remove(&name) {
            self.ripe.insert(name);
        }
        true
    }

    fn insert_in_cell(&mut self, offset: u64, data: &Data<'_>, caller: u32) {
        let len = data.len();
        let range = offset..offset + len as u64;
        self.unstable.cut(&range);
        let in_stream = self.stream_end == offset;
        self.stream_end = range.end;
        let keep = match data {
            Data::Given { bytes, of_bytes } if self.is_worth_keeping(len, *of_bytes) => {
                Some(bytes.clone())
            }
            _ => None,
        };
        if keep.is_none() && self.extend(offset, data.as_slice(), caller) {
            return;
        }
        self.cut(&range);
        let data = keep.map_or_else(
            || {
                // A stream that has filled a cell will fill the next.
                let cell = self.cell_of(offset);
                let is_new_cell = in_stream && offset == cell.start && offset > 0;
                let capacity =
                    if is_new_cell { usize::try_from(self.wsize).unwrap_or(len) } else { len };
                let mut buffer = BytesMut::with_capacity(capacity);
                buffer.extend_from_slice(data.as_slice());
                Buffer::Open(buffer)
            },
            Buffer::Closed,
        );
        self.put(range.start, Extent { data, age: self.age, caller });
    }

    /// Given bytes are held when they are half of a cell, and no small part of a large buffer,
    /// which all of its parts keep alive and only they are counted for.
    fn is_worth_keeping(&self, len: usize, of_bytes: usize) -> bool {
        len as u64 * 2 >= self.wsize && len * 4 >= of_bytes
    }

    /// The name of the extent to send next.
    fn next(&self, urgent_age: u64) -> Option<u64> {
        let urgent = self.unripe.first().filter(|(age, _)| *age <= urgent_age);
        let ripe = self.ripe.first();
        match (ripe, urgent) {
            (Some(ripe), Some(urgent)) => Some(ripe.min(urgent).1),
            (first, second) => first.or(second).map(|(_, start)| *start),
        }
    }

    /// Where the run of extents begins that can be sent together with the one at `start`.
    fn run(&self, start: u64, bytes_max: u64) -> Vec<u64> {
        let cell = self.cell_of(start);
        let mut run = VecDeque::new();
        let Some(first) = self.pending.get(&start) else { return Vec::new() };
        let mut range = start..start + first.len();
        run.push_back(start);
        let joins = |at: &u64, extent: &Extent| {
            extent.caller == first.caller && !self.blocked.contains(&(extent.age, *at))
        };
        for (at, extent) in self.pending.range(cell.start..start).rev() {
            let is_adjacent = at + extent.len() == range.start;
            if !is_adjacent || !joins(at, extent) || range.end - at > bytes_max {
                break;
            }
            run.push_front(*at);
            range.start = *at;
        }
        for (at, extent) in self.pending.range(start + 1..cell.end.max(start + 1)) {
            let end = at + extent.len();
            if *at != range.end || !joins(at, extent) || end - range.start > bytes_max {
                break;
            }
            run.push_back(*at);
            range.end = end;
        }
        run.into()
    }

    fn put_under_way(&mut self, start: u64, held: Held) -> Chunk {
        let chunk = Chunk { offset: start, data: held.data.clone(), caller: held.caller };
        let range = start..start + held.data.len() as u64;
        self.under_way.put(start, held, u64::MAX);
        debug_assert!(self.pending_in(&range).is_empty(), "taken twice");
        chunk
    }
}

impl Index for Extents {
    fn age(&self) -> u64 {
        self.age
    }

    fn charge(&self, _: u64, len: usize) -> u64 {
        // In each cell a piece of its own, and two that it cuts in two.
        let cells_max = len as u64 / self.wsize + 2;
        len as u64 + 3 * cells_max * PIECE_BYTES
    }

    fn insert(&mut self, offset: u64, data: &Data<'_>, caller: u32) -> Result<(), Busy> {
        self.age += 1;
        let mut at = 0;
        while at < data.len() {
            let from = offset + at as u64;
            let cell_left = usize::try_from(self.cell_of(from).end - from).unwrap_or(usize::MAX);
            let until = at.saturating_add(cell_left).min(data.len());
            self.insert_in_cell(from, &data.slice(at..until), caller);
            at = until;
        }
        Ok(())
    }

    fn is_ready(&self, urgent_age: u64) -> bool {
        self.next(urgent_age).is_some()
    }

    fn take(&mut self, bytes_max: u32, urgent_age: u64) -> Option<Chunk> {
        let first = self.next(urgent_age)?;
        let bytes_max = u64::from(bytes_max.max(1)).min(self.wsize);
        let run = self.run(first, bytes_max);
        let start = *run.first()?;
        if run.len() == 1 {
            let held = self.remove(start)?.close();
            let end = start + held.data.len() as u64;
            if end - start <= bytes_max {
                return Some(self.put_under_way(start, held));
            }
            let middle = start + bytes_max;
            let rest = part_of(start, &held, &(middle..end));
            let chunk = self.put_under_way(start, part_of(start, &held, &(start..middle)));
            self.put_held(middle, rest);
            return Some(chunk);
        }
        let parts: Vec<Extent> = run.into_iter().filter_map(|at| self.remove(at)).collect();
        let age = parts.iter().map(|extent| extent.age).min()?;
        let caller = parts.first()?.caller;
        let data: Bytes = parts.iter().map(Extent::as_slice).collect::<Vec<_>>().concat().into();
        let len = data.len();
        Some(self.put_under_way(start, Held::new(data, len, age, caller)))
    }

    fn written(&mut self, offset: u64, count: u32, promise: Promise) {
        let Some((held, keep_to)) = self.under_way.remove(offset) else { return };
        let end = offset + held.data.len() as u64;
        let middle = (offset + u64::from(count)).min(end);
        if middle < end {
            let rest = part_of(offset, &held, &(middle..end));
            self.again(middle, &rest, keep_to);
        }
        if let Promise::Unstable { verifier } = promise {
            // What was written again since need not be held: the newer bytes will go out.
            let held_end = middle.min(keep_to).max(offset);
            for range in self.gaps(offset..held_end) {
                let part = part_of(offset, &held, &range);
                self.unstable.put(range.start, part, Unstable { verifier, epoch: self.epoch });
            }
        }
        self.unblock(&(offset..end));
    }

    fn failed(&mut self, offset: u64) -> u64 {
        let Some((held, _)) = self.under_way.remove(offset) else { return 0 };
        self.unblock(&(offset..offset + held.data.len() as u64));
        held.data.len() as u64
    }

    fn begin_commit(&mut self) {
        self.epoch += 1;
    }

    fn committed(&mut self, verifier: [u8; 8]) -> u64 {
        let epoch = self.epoch;
        let mut lost_bytes = 0;
        for (start, held, about) in self.unstable.extract(|about| about.epoch < epoch) {
            if about.verifier != verifier {
                lost_bytes += held.data.len() as u64;
                self.again(start, &held, u64::MAX);
            }
        }
        lost_bytes
    }

    fn commit_failed(&mut self) -> u64 {
        let epoch = self.epoch;
        let covered = self.unstable.extract(|about| about.epoch < epoch);
        covered.iter().map(|(_, held, _)| held.data.len() as u64).sum()
    }

    fn discard(&mut self, from: u64) {
        let range = from..u64::MAX;
        self.cut(&range);
        self.unstable.cut(&range);
        let under_way: Vec<u64> =
            self.under_way.overlapping(&range).map(|(own, ..)| own.start).collect();
        for start in under_way {
            if let Some((held, keep_to)) = self.under_way.remove(start) {
                self.under_way.put(start, held, keep_to.min(from));
            }
        }
    }

    fn is_unanswered(&self, range: &Range<u64>, age: u64) -> bool {
        let pending = self.pending_in(range);
        pending.iter().any(|start| self.pending.get(start).is_some_and(|own| own.age <= age))
            || self.under_way.overlapping(range).any(|(_, held, _)| held.age <= age)
    }

    fn dirty_end(&self) -> Option<u64> {
        let pending = self.pending.last_key_value().map(|(start, extent)| start + extent.len());
        pending.max(self.under_way.end())
    }

    fn unstable(&self, range: &Range<u64>) -> Vec<(u64, Bytes)> {
        let parts = self.unstable.overlapping(range).map(|(own, held, _)| {
            let within = own.start.max(range.start)..own.end.min(range.end);
            // Both are within the span, whose length is a usize.
            let at = |place: u64| usize::try_from(place - own.start).unwrap_or(usize::MAX);
            (within.start, held.data.slice(at(within.start)..at(within.end)))
        });
        parts.collect()
    }

    fn unstable_callers(&self) -> BTreeSet<u32> {
        self.unstable.all().map(|held| held.caller).collect()
    }

    fn unstable_end(&self) -> Option<u64> {
        self.unstable.end()
    }

    fn oldest_unanswered(&self) -> Option<u64> {
        let pending = [&self.ripe, &self.unripe, &self.blocked];
        let pending = pending.into_iter().filter_map(|names| names.first()).map(|(age, _)| *age);
        pending.chain(self.under_way.oldest()).min()
    }

    fn oldest_unstable(&self) -> Option<u64> {
        self.unstable.oldest()
    }

    fn sums(&self) -> Sums {
        let unanswered_bytes = self.pending_bytes + self.under_way.bytes();
        let unstable_bytes = self.unstable.bytes();
        let requests = self.pending.len();
        let held_unstable_bytes = unstable_bytes + self.unstable.len() as u64 * PIECE_BYTES;
        let unanswered = (requests + self.under_way.len()) as u64;
        let held_bytes = unanswered_bytes + unanswered * PIECE_BYTES + held_unstable_bytes;
        Sums { unanswered_bytes, unstable_bytes, held_bytes, held_unstable_bytes, requests }
    }
}
