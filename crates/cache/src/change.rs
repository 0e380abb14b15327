//! What a change of the caller's own leaves of a file: blocks that it has not touched are of the
//! new state as they were of the old one, and those that it has touched are made of both.
//!
//! A block is written in its place. Whatever of that a power failure leaves, the block is what a
//! header's checksum says, or it is none: see `docs/formats/cache.md`.

use std::collections::BTreeSet;
use std::ops::Range;

use bytes::Bytes;

use crate::counts::Cause;
use crate::header::Geometry;
use crate::keeper::{Keeper, Part, drop_segment};
use crate::key::{Key, Name, Token};
use crate::segment::Segment;
use crate::shared::Shared;

/// Segments of a file that a change carries over: the first ones. Those behind are found to be of
/// another state, and dropped.
const CHANGED_SEGMENTS_MAX: u32 = 1024;

/// From one state of a file to another.
struct Change<'a> {
    from: &'a Token,
    to: &'a Token,
    /// All that was touched; none overlaps another.
    parts: &'a [Part],
}

impl Keeper {
    pub(crate) fn changed(
        &mut self,
        shared: &Shared,
        key: &Key,
        (from, to): (&Token, &Token),
        parts: &[Part],
    ) {
        let change = Change { from, to, parts };
        // Whole blocks of a draft lie before the end of the file.
        let end = if from.is_draft() { to.size } else { to.size.max(from.size) };
        let last = shared.geometry.segment_of(end.saturating_sub(1)).unwrap_or(u32::MAX);
        for segment in 0..=last.min(CHANGED_SEGMENTS_MAX) {
            self.change_segment(shared, (key, segment), &change);
        }
    }

    fn change_segment(
        &mut self,
        shared: &Shared,
        (key, segment): (&Key, u32),
        change: &Change<'_>,
    ) {
        let name = Name { file: key.hash(), segment };
        let Ok(found) = shared.find(key, segment) else { return };
        let found = found.filter(|found| {
            let is_of_before = {
                let head = found.head.lock();
                head.header.key == *key && head.header.token == *change.from
            };
            if !is_of_before {
                drop_segment(shared, name, Cause::Changed);
            }
            is_of_before
        });
        let blocks = change.blocks(shared.geometry, segment, found.as_deref());
        let Some(found) = found else {
            if !blocks.is_empty() {
                self.store_in(shared, (key, change.to), segment, blocks);
            }
            return;
        };
        let is_empty = {
            let header = &mut found.head.lock().header;
            let stays = |index: usize| {
                let range = change.range(shared.geometry, segment, index);
                range.end - range.start == header.len(index) && !change.touches(&range)
            };
            let mut left = header.clone();
            header.blocks().filter(|index| !stays(*index)).for_each(|index| left.take(index));
            left.token = *change.to;
            *header = left;
            header.is_empty()
        };
        if !blocks.is_empty() && self.store_in(shared, (key, change.to), segment, blocks) {
            return;
        }
        if is_empty {
            return drop_segment(shared, name, Cause::Changed);
        }
        // The header alone: what it says stands there as it was.
        let done = found.save();
        if !self.took(shared, done) {
            drop_segment(shared, name, Cause::Failed);
        }
    }
}

impl Change<'_> {
    /// The bytes of the file that a block has in the new state.
    fn range(&self, geometry: Geometry, segment: u32, index: usize) -> Range<u64> {
        let start = u64::from(segment) * geometry.segment_bytes();
        let at = start + index as u64 * geometry.block_bytes();
        at..at + geometry.block_len(segment, index, self.to.size)
    }

    fn within(&self, range: &Range<u64>) -> impl Iterator<Item = &Part> {
        self.parts.iter().filter(move |part| {
            part.offset < range.end && range.start < part.offset.saturating_add(part.bytes)
        })
    }

    fn touches(&self, range: &Range<u64>) -> bool {
        self.within(range).next().is_some()
    }

    /// The blocks of a segment that are others now, as far as all of their bytes are known.
    fn blocks(
        &self,
        geometry: Geometry,
        segment: u32,
        old: Option<&Segment>,
    ) -> Vec<(usize, Bytes)> {
        let start = u64::from(segment) * geometry.segment_bytes();
        let whole = start..start + geometry.segment_bytes();
        let index = |at: u64| usize::try_from((at - start) / geometry.block_bytes());
        let mut touched = BTreeSet::new();
        for part in self.within(&whole) {
            let end = part.offset.saturating_add(part.bytes).min(whole.end);
            if let (Ok(first), Ok(last)) = (index(part.offset.max(start)), index(end - 1)) {
                touched.extend(first..=last);
            }
        }
        if let Some(old) = old {
            let header = &old.head.lock().header;
            let is_other = |index: &usize| {
                header.len(*index) != geometry.block_len(segment, *index, self.to.size)
            };
            touched.extend(header.blocks().filter(is_other));
        }
        let block = |index| Some((index, self.block(geometry, (segment, index), old)?));
        touched.into_iter().filter_map(block).collect()
    }

    fn block(
        &self,
        geometry: Geometry,
        (segment, index): (u32, usize),
        old: Option<&Segment>,
    ) -> Option<Bytes> {
        let range = self.range(geometry, segment, index);
        let place = |at: u64| usize::try_from(at.clamp(range.start, range.end) - range.start).ok();
        let len = place(range.end).filter(|len| *len > 0)?;
        let (mut known, mut pieces) = (0, Vec::new());
        for part in self.within(&range) {
            let (from, to) = (place(part.offset)?, place(part.offset.saturating_add(part.bytes))?);
            let skipped = range.start.saturating_sub(part.offset);
            let data = part.data.as_ref()?.slice(usize::try_from(skipped).ok()?..);
            pieces.push((from, data.get(..to - from).map(|_| data.slice(..to - from))?));
            known += to - from;
        }
        if let ([(0, only)], true) = (&pieces[..], known == len) {
            return Some(only.clone());
        }
        let mut content = match () {
            () if known == len => Vec::new(),
            // Behind the end there was nothing, and what nobody writes there are zeros.
            () if range.start >= self.from.size => Vec::new(),
            () => old?.block(index)?,
        };
        content.resize(len, 0);
        for (from, data) in pieces {
            content[from..from + data.len()].copy_from_slice(&data);
        }
        Some(content.into())
    }
}
