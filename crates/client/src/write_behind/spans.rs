//! Runs of bytes by offset that do not overlap, each with something to know about it.

use std::collections::BTreeMap;
use std::ops::Range;

use bytes::Bytes;

use super::index::Ages;

/// Bytes that are held, and the buffer that stays with them.
#[derive(Clone, Debug)]
pub(super) struct Held {
    pub(super) data: Bytes,
    /// Size of the buffer that `data` is a slice of.
    buffer_bytes: usize,
    pub(super) age: u64,
    pub(super) caller: u32,
}

impl Held {
    pub(super) fn new(data: Bytes, buffer_bytes: usize, age: u64, caller: u32) -> Self {
        let mut held = Self { data, buffer_bytes, age, caller };
        held.shrink();
        held
    }

    /// A part of it.
    fn part(&self, range: Range<usize>) -> Self {
        Self::new(self.data.slice(range), self.buffer_bytes, self.age, self.caller)
    }

    /// A small rest must not keep a large buffer alive, which is not counted: it is copied.
    fn shrink(&mut self) {
        if self.data.len() < self.buffer_bytes / 2 {
            self.data = Bytes::copy_from_slice(&self.data);
            self.buffer_bytes = self.data.len();
        }
    }
}

/// See the module's head.
#[derive(Clone, Debug)]
pub(super) struct Spans<T> {
    map: BTreeMap<u64, (Held, T)>,
    bytes: u64,
    ages: Ages,
}

impl<T> Default for Spans<T> {
    fn default() -> Self {
        Self { map: BTreeMap::new(), bytes: 0, ages: Ages::default() }
    }
}

impl<T: Clone> Spans<T> {
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.map.len()
    }

    pub(super) fn oldest(&self) -> Option<u64> {
        self.ages.oldest()
    }

    pub(super) fn end(&self) -> Option<u64> {
        self.map.last_key_value().map(|(start, (held, _))| start + held.data.len() as u64)
    }

    /// Adds a span that overlaps none.
    pub(super) fn put(&mut self, start: u64, held: Held, about: T) {
        if held.data.is_empty() {
            return;
        }
        self.bytes += held.data.len() as u64;
        self.ages.add(held.age);
        self.map.insert(start, (held, about));
    }

    pub(super) fn remove(&mut self, start: u64) -> Option<(Held, T)> {
        let (held, about) = self.map.remove(&start)?;
        self.bytes -= held.data.len() as u64;
        self.ages.remove(held.age);
        Some((held, about))
    }

    pub(super) fn all(&self) -> impl Iterator<Item = &Held> {
        self.map.values().map(|(held, _)| held)
    }

    /// Where those begin that overlap `range`, with their ranges.
    pub(super) fn overlapping(
        &self,
        range: &Range<u64>,
    ) -> impl Iterator<Item = (Range<u64>, &Held, &T)> {
        let before = self.map.range(..range.start).next_back().map_or(range.start, |(at, _)| *at);
        let range = range.clone();
        let all = self
            .map
            .range(before..range.end.max(before))
            .map(|(start, (held, about))| (*start..start + held.data.len() as u64, held, about));
        all.filter(move |(own, ..)| own.start < range.end && range.start < own.end)
    }

    pub(super) fn overlaps(&self, range: &Range<u64>) -> bool {
        self.overlapping(range).next().is_some()
    }

    /// Removes what lies in `range`; what was left and right of it stays.
    pub(super) fn cut(&mut self, range: &Range<u64>) {
        let starts: Vec<u64> = self.overlapping(range).map(|(own, ..)| own.start).collect();
        for start in starts {
            let Some((held, about)) = self.remove(start) else { continue };
            for (at, part) in remainders(start, &held, range) {
                self.put(at, part, about.clone());
            }
        }
    }

    /// Removes all that `wanted` names.
    pub(super) fn extract(&mut self, wanted: impl Fn(&T) -> bool) -> Vec<(u64, Held, T)> {
        let starts: Vec<u64> = self
            .map
            .iter()
            .filter(|(_, (_, about))| wanted(about))
            .map(|(start, _)| *start)
            .collect();
        let taken = starts.into_iter().filter_map(|start| {
            let (held, about) = self.remove(start)?;
            Some((start, held, about))
        });
        taken.collect()
    }
}

/// The parts of `range` that none of `covered` covers, which are in order.
pub(super) fn gaps(
    range: Range<u64>,
    covered: impl Iterator<Item = Range<u64>>,
) -> Vec<Range<u64>> {
    let mut gaps = Vec::new();
    let mut at = range.start;
    for own in covered {
        gaps.push(at..own.start.min(range.end));
        at = at.max(own.end);
    }
    gaps.push(at..range.end);
    gaps.retain(|gap| !gap.is_empty());
    gaps
}

/// What is left of a span when `cut` is taken out of it.
pub(super) fn remainders(start: u64, held: &Held, cut: &Range<u64>) -> Vec<(u64, Held)> {
    let own = start..start + held.data.len() as u64;
    let left = own.start..cut.start.clamp(own.start, own.end);
    let right = cut.end.clamp(own.start, own.end)..own.end;
    [left, right]
        .into_iter()
        .filter(|range| !range.is_empty())
        .map(|range| (range.start, part_of(start, held, &range)))
        .collect()
}

/// The part of a span that lies at `range`, which must be within it.
pub(super) fn part_of(start: u64, held: &Held, range: &Range<u64>) -> Held {
    // Both are within the span, whose length is a usize.
    let within = |at: u64| usize::try_from(at - start).unwrap_or(usize::MAX);
    held.part(within(range.start)..within(range.end))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn held(len: usize, age: u64) -> Held {
        Held::new(Bytes::from(vec![7; len]), len, age, 0)
    }

    #[test]
    fn a_cut_leaves_what_is_left_and_right_of_it() {
        let mut spans = Spans::default();
        spans.put(10, held(10, 1), ());
        spans.put(20, held(10, 2), ());
        spans.put(40, held(10, 3), ());
        spans.cut(&(12..42));
        let all: Vec<_> = spans.overlapping(&(0..100)).map(|(own, ..)| own).collect();
        assert_eq!(all, [10..12, 42..50]);
        assert_eq!((spans.bytes(), spans.oldest(), spans.end()), (10, Some(1), Some(50)));
        let covered = spans.overlapping(&(0..100)).map(|(own, ..)| own);
        assert_eq!(gaps(0..100, covered), [0..10, 12..42, 50..100]);
        let covered = spans.overlapping(&(11..45)).map(|(own, ..)| own);
        assert_eq!(gaps(11..45, covered).first(), Some(&(12..42)));
        assert!(!spans.overlaps(&(12..42)));
        spans.cut(&(0..11));
        assert_eq!(spans.bytes(), 9);
    }

    #[test]
    fn a_small_rest_does_not_keep_a_large_buffer() {
        let mut spans = Spans::default();
        spans.put(0, held(1_000, 1), ());
        spans.cut(&(10..1_000));
        let (_, rest, ()) = spans.overlapping(&(0..1)).next().unwrap();
        assert_eq!(rest.buffer_bytes, 10);
    }
}
