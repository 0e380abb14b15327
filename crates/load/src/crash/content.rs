//! What the bytes of a file may be after a crash: of each stretch all that was written to it since
//! it was last promised to be stable, and from which length to which the file may have.

use std::collections::BTreeMap;
use std::ops::Range;

use super::loss::{Kind, Lost};

/// A write verifier.
pub type Verifier = [u8; 8];

/// What was written at once; its bytes follow from it. 0 is what nobody wrote: zeros.
pub type Generation = u64;

/// The answer that made something stable.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum By {
    /// A WRITE, FILE_SYNC or DATA_SYNC.
    Write,
    Commit,
    /// SETATTR of the size.
    Truncation,
}

impl By {
    fn kind(self) -> Kind {
        match self {
            Self::Write => Kind::DataSync,
            Self::Commit => Kind::DataCommit,
            Self::Truncation => Kind::Attributes,
        }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// Nobody knows whether it was done.
    Open,
    /// Answered as UNSTABLE with this verifier, as event so-and-so.
    Unstable {
        verifier: Verifier,
        at: u64,
    },
    Stable(By),
    /// Nobody has written there.
    Base,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Value {
    generation: Generation,
    state: State,
}

#[derive(Clone, Debug)]
struct Stretch {
    end: u64,
    /// Oldest first, none before the newest that is stable.
    values: Vec<Value>,
}

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Content {
    /// By their beginnings; where there is none are zeros.
    stretches: BTreeMap<u64, Stretch>,
    /// After a crash.
    size_least: u64,
    size_most: u64,
    promised_by: By,
    /// As the server has it while it runs.
    live: u64,
}

impl Default for Content {
    /// An empty file.
    fn default() -> Self {
        let stretches = BTreeMap::new();
        Self { stretches, size_least: 0, size_most: 0, promised_by: By::Truncation, live: 0 }
    }
}

impl Content {
    /// As the server has it.
    pub fn size(&self) -> u64 {
        self.live
    }

    /// So many answers are open for some byte of the range.
    pub fn open(&self, range: Range<u64>) -> usize {
        self.within(range).map(|(_, stretch)| stretch.values.len()).max().unwrap_or(0)
    }

    /// Whether a COMMIT would promise something.
    pub fn has_unstable(&self) -> bool {
        let is_unstable = |value: &Value| matches!(value.state, State::Unstable { .. });
        self.stretches.values().any(|stretch| stretch.values.iter().any(is_unstable))
    }

    /// A WRITE is on its way.
    pub fn write(&mut self, range: Range<u64>, generation: Generation) {
        let hole = self.live.min(range.start)..range.start;
        self.push(hole, Value { generation: 0, state: State::Open }, false);
        self.push(range.clone(), Value { generation, state: State::Open }, true);
        self.size_most = self.size_most.max(range.end);
        self.live = self.live.max(range.end);
    }

    /// A WRITE was answered for this range as UNSTABLE, as event `at`.
    pub fn written(
        &mut self,
        range: Range<u64>,
        generation: Generation,
        verifier: Verifier,
        at: u64,
    ) {
        for stretch in self.cover(range) {
            let values = stretch.values.iter_mut().filter(|value| value.generation == generation);
            values.for_each(|value| value.state = State::Unstable { verifier, at });
        }
    }

    /// A WRITE was answered for this range as stable.
    pub fn stored(&mut self, range: Range<u64>, generation: Generation) {
        let end = range.end;
        for stretch in self.cover(range) {
            let found = stretch.values.iter().position(|value| value.generation == generation);
            if let Some(at) = found {
                stretch.promise(at, By::Write);
            }
        }
        self.promise_size(end, By::Write);
    }

    /// A COMMIT that was sent as event `sent` was answered with this verifier.
    pub fn committed(&mut self, range: Range<u64>, verifier: Verifier, sent: u64) {
        let mut end = 0;
        for stretch in self.cover(range) {
            let is_covered = |value: &Value| match value.state {
                State::Unstable { verifier: of, at } => of == verifier && at < sent,
                _ => false,
            };
            if let Some(at) = stretch.values.iter().rposition(is_covered) {
                stretch.promise(at, By::Commit);
                end = stretch.end;
            }
        }
        self.promise_size(end, By::Commit);
    }

    fn promise_size(&mut self, end: u64, by: By) {
        if end > self.size_least {
            (self.size_least, self.promised_by) = (end, by);
        }
    }

    /// A SETATTR of the size is on its way.
    pub fn truncate(&mut self, size: u64) {
        let from = size.min(self.live);
        let zeros = Value { generation: 0, state: State::Open };
        self.push(from..self.size_most.max(from), zeros, false);
        self.size_least = self.size_least.min(size);
        self.size_most = self.size_most.max(size);
    }

    /// It was answered.
    pub fn truncated(&mut self, size: u64) {
        self.cut(size);
        self.stretches.split_off(&size);
        (self.size_least, self.size_most, self.live) = (size, size, size);
        self.promised_by = By::Truncation;
    }

    /// The length that was found after a crash, with which it goes on.
    pub fn found(&mut self, size: u64) -> Option<Lost> {
        self.live = size;
        let (least, most) = (self.size_least, self.size_most);
        let what = match size {
            _ if size < least => format!("{size} bytes long, at least {least} were promised"),
            _ if size > most => format!("{size} bytes long, {most} at most can be"),
            _ => return None,
        };
        let kind = if size < least { self.promised_by.kind() } else { Kind::Attributes };
        let bytes = least.saturating_sub(size);
        Some(Lost { kind, what, bytes })
    }

    /// Bytes that a file must have whatever became of the calls that were not answered, by what is
    /// lost with them.
    pub fn promised(&self) -> BTreeMap<Kind, u64> {
        self.promised_in(0..self.size_least)
    }

    /// The same of a part of it.
    pub fn promised_in(&self, range: Range<u64>) -> BTreeMap<Kind, u64> {
        let end = range.end.min(self.size_least);
        let mut kinds = BTreeMap::new();
        for (start, stretch) in self.within(range.start..end) {
            if let kind @ (Kind::DataSync | Kind::DataCommit) = stretch.kind() {
                *kinds.entry(kind).or_default() += stretch.end.min(end) - start.max(range.start);
            }
        }
        kinds
    }

    /// What is wrong with bytes that were read after a crash; a line for each kind.
    pub fn compare(&self, offset: u64, bytes: &[u8]) -> Vec<Lost> {
        let mut wrong: Vec<(Kind, u64, u64)> = Vec::new();
        let mut note = |kind, at, count| match wrong.iter_mut().find(|(of, ..)| *of == kind) {
            Some((_, _, all)) => *all += count,
            None => wrong.push((kind, at, count)),
        };
        let end = offset + bytes.len() as u64;
        let part =
            |range: &Range<u64>| &bytes[index(range.start - offset)..index(range.end - offset)];
        let mut at = offset;
        for (start, stretch) in self.within(offset..end) {
            let range = start.max(offset)..stretch.end.min(end);
            if let Some((first, count)) = differing(part(&(at..range.start)), at, &[ZEROS]) {
                note(Kind::Foreign, first, count);
            }
            if let Some((first, count)) = differing(part(&range), range.start, &stretch.values) {
                note(stretch.kind(), first, count);
            }
            at = range.end;
        }
        if let Some((first, count)) = differing(part(&(at..end)), at, &[ZEROS]) {
            note(Kind::Foreign, first, count);
        }
        let lost = |(kind, first, bytes)| {
            let what = match kind {
                Kind::Foreign => format!("{bytes} bytes nobody wrote there, from offset {first}"),
                _ => format!("{bytes} bytes are not those promised, from offset {first}"),
            };
            Lost { kind, what, bytes }
        };
        wrong.into_iter().map(lost).collect()
    }

    /// The verifiers of WRITEs that were answered as UNSTABLE, were not overwritten, and are not
    /// what was read: their client must find another verifier.
    pub fn vanished(&self, offset: u64, bytes: &[u8]) -> Vec<Verifier> {
        let end = offset + bytes.len() as u64;
        let mut verifiers = Vec::new();
        for (start, stretch) in self.within(offset..end) {
            let range = start.max(offset)..stretch.end.min(end);
            let seen = &bytes[index(range.start - offset)..index(range.end - offset)];
            if let Some(verifier) = stretch.vanished(seen, range.start) {
                verifiers.push(verifier);
            }
        }
        verifiers
    }

    /// The verifiers of those that lie behind this length.
    pub fn vanished_behind(&self, size: u64) -> Vec<Verifier> {
        let behind = self.within(size..u64::MAX).filter(|(start, _)| *start >= size);
        behind.filter_map(|(_, stretch)| stretch.newest_verifier()).collect()
    }

    fn within(&self, range: Range<u64>) -> impl Iterator<Item = (u64, &Stretch)> {
        let first = self.stretches.range(..=range.start).next_back().map_or(0, |(start, _)| *start);
        let some = self.stretches.range(first..range.end.max(first));
        some.filter(move |(_, stretch)| stretch.end > range.start).map(|(start, all)| (*start, all))
    }

    /// Adds a value, also where nobody has written yet if it is one that somebody writes.
    fn push(&mut self, range: Range<u64>, value: Value, fills: bool) {
        if range.is_empty() {
            return;
        }
        if fills {
            self.fill(&range);
        }
        self.cover(range).for_each(|stretch| stretch.values.push(value));
    }

    /// The stretches of a range, cut at its ends.
    fn cover(&mut self, range: Range<u64>) -> impl Iterator<Item = &mut Stretch> {
        self.cut(range.start);
        self.cut(range.end);
        let end = range.end.max(range.start);
        self.stretches.range_mut(range.start..end).map(|(_, stretch)| stretch)
    }

    fn cut(&mut self, at: u64) {
        let Some((_, stretch)) = self.stretches.range_mut(..at).next_back() else { return };
        if stretch.end > at {
            let behind = stretch.clone();
            stretch.end = at;
            self.stretches.insert(at, behind);
        }
    }

    /// Zeros where there is nothing.
    fn fill(&mut self, range: &Range<u64>) {
        self.cut(range.start);
        self.cut(range.end);
        let (mut at, mut gaps) = (range.start, Vec::new());
        for (start, stretch) in self.stretches.range(range.clone()) {
            gaps.push(at..*start);
            at = stretch.end;
        }
        gaps.push(at..range.end);
        for gap in gaps.into_iter().filter(|gap| !gap.is_empty()) {
            self.stretches.insert(gap.start, Stretch { end: gap.end, values: vec![ZEROS] });
        }
    }
}

const ZEROS: Value = Value { generation: 0, state: State::Base };

impl Stretch {
    fn promise(&mut self, at: usize, by: By) {
        self.values.drain(..at);
        self.values[0].state = State::Stable(by);
    }

    /// What is lost if the bytes are none of these.
    fn kind(&self) -> Kind {
        match self.values.first().map(|value| value.state) {
            Some(State::Stable(by)) => by.kind(),
            _ => Kind::Foreign,
        }
    }

    fn newest_verifier(&self) -> Option<Verifier> {
        match self.values.last()?.state {
            State::Unstable { verifier, .. } => Some(verifier),
            _ => None,
        }
    }

    fn vanished(&self, seen: &[u8], offset: u64) -> Option<Verifier> {
        let verifier = self.newest_verifier()?;
        let newest = &self.values[self.values.len() - 1..];
        differing(seen, offset, newest).map(|_| verifier)
    }
}

/// The first byte that is none of these values, and how many are.
fn differing(seen: &[u8], offset: u64, values: &[Value]) -> Option<(u64, u64)> {
    let contents: Vec<Vec<u8>> =
        values.iter().map(|value| bytes(value.generation, offset, seen.len())).collect();
    if contents.iter().any(|content| content == seen) {
        return None;
    }
    let is_wrong = |(at, byte): &(usize, &u8)| !contents.iter().any(|all| all[*at] == **byte);
    let mut wrong = seen.iter().enumerate().filter(is_wrong);
    let (first, _) = wrong.next()?;
    Some((offset + first as u64, 1 + wrong.count() as u64))
}

/// The bytes of a generation at an offset.
pub fn bytes(generation: Generation, offset: u64, len: usize) -> Vec<u8> {
    if generation == 0 {
        return vec![0; len];
    }
    let end = offset + len as u64;
    let words = offset / 8..end.div_ceil(8);
    let mixed = words.flat_map(|word| mix(generation, word).to_le_bytes());
    mixed.skip(index(offset % 8)).take(len).collect()
}

/// Neighbours have nothing in common (splitmix64).
fn mix(generation: Generation, word: u64) -> u64 {
    let mut z = generation.wrapping_mul(0x9e37_79b9_7f4a_7c15).wrapping_add(word << 1 | 1);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn index(offset: u64) -> usize {
    usize::try_from(offset).expect("within what was read")
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Verifier = [1; 8];
    const B: Verifier = [2; 8];

    /// What the oracle says to a file of these generations, by their ranges.
    fn kinds(content: &Content, parts: &[(Range<u64>, Generation)]) -> Vec<Kind> {
        let mut seen = Vec::new();
        for (range, generation) in parts {
            seen.extend(bytes(*generation, range.start, index(range.end - range.start)));
        }
        let mut content = content.clone();
        let size = content.found(seen.len() as u64);
        size.into_iter().chain(content.compare(0, &seen)).map(|lost| lost.kind).collect()
    }

    #[test]
    fn bytes_are_the_same_from_whatever_offset() {
        let whole = bytes(7, 0, 100);
        for from in 0..20 {
            assert_eq!(bytes(7, from, 50), whole[index(from)..index(from) + 50]);
        }
        assert_ne!(bytes(7, 0, 16), bytes(8, 0, 16));
    }

    #[test]
    fn a_write_that_was_not_answered_may_be_there_or_not_or_torn() {
        let mut content = Content::default();
        content.write(0..100, 1);
        content.stored(0..100, 1);
        content.write(50..150, 2);
        for parts in [
            &[(0..100, 1)][..],
            &[(0..50, 1), (50..150, 2)],
            &[(0..60, 1), (60..90, 2), (90..100, 1), (100..130, 2)],
            &[(0..100, 1), (100..120, 0), (120..150, 2)],
        ] {
            assert_eq!(kinds(&content, parts), [], "{parts:?}");
        }
        assert_eq!(kinds(&content, &[(0..49, 1)]), [Kind::DataSync], "shorter than promised");
        let old = [(0..10, 0), (10..100, 1)];
        assert_eq!(kinds(&content, &old), [Kind::DataSync], "zeros over what was promised");
        assert_eq!(
            kinds(&content, &[(0..100, 1), (100..151, 2)]),
            [Kind::Attributes, Kind::Foreign]
        );
        assert_eq!(kinds(&content, &[(0..100, 1), (100..150, 3)]), [Kind::Foreign]);
    }

    #[test]
    fn an_answer_that_is_stable_holds_its_bytes_and_no_older_ones() {
        let mut content = Content::default();
        content.write(0..100, 1);
        content.stored(0..100, 1);
        content.write(0..100, 2);
        assert_eq!(kinds(&content, &[(0..100, 1)]), []);
        content.stored(0..60, 2);
        assert_eq!(kinds(&content, &[(0..60, 2), (60..100, 1)]), [], "a short count");
        assert_eq!(kinds(&content, &[(0..59, 2), (59..100, 1)]), [Kind::DataSync]);
    }

    #[test]
    fn what_must_be_there_whatever_else_was_done_is_promised() {
        let mut content = Content::default();
        content.write(0..100, 1);
        content.stored(0..100, 1);
        content.write(100..150, 2);
        content.written(100..150, 2, A, 1);
        content.committed(0..u64::MAX, A, 2);
        content.write(150..200, 3);
        assert_eq!(content.promised(), [(Kind::DataSync, 100), (Kind::DataCommit, 50)].into());
        content.truncate(120);
        assert_eq!(content.promised(), [(Kind::DataSync, 100), (Kind::DataCommit, 20)].into());
    }

    #[test]
    fn a_commit_promises_what_was_answered_before_it_with_the_same_verifier() {
        let unstable = |verifier, at| {
            let mut content = Content::default();
            content.write(0..10, 1);
            content.written(0..10, 1, verifier, at);
            content
        };
        let lost = |mut content: Content| {
            content.committed(0..u64::MAX, A, 5);
            kinds(&content, &[])
        };
        assert_eq!(lost(unstable(A, 4)), [Kind::DataCommit]);
        assert_eq!(lost(unstable(A, 6)), [], "answered after the COMMIT was sent");
        assert_eq!(lost(unstable(B, 4)), [], "another verifier");
        let mut content = unstable(A, 4);
        content.committed(0..4, A, 5);
        assert_eq!(kinds(&content, &[(0..4, 1)]), [], "of a range");
        assert_eq!(kinds(&content, &[(0..3, 1)]), [Kind::DataCommit]);
        assert!(content.has_unstable() && !content.clone().has_unstable_after_commit());
    }

    impl Content {
        fn has_unstable_after_commit(mut self) -> bool {
            self.committed(0..u64::MAX, A, 5);
            self.has_unstable()
        }
    }

    #[test]
    fn a_truncation_holds_its_length_and_what_was_cut_off_never_comes_back() {
        let mut content = Content::default();
        content.write(0..100, 1);
        content.stored(0..100, 1);
        content.truncate(40);
        for parts in [&[(0..100, 1)][..], &[(0..40, 1)], &[(0..40, 1), (40..100, 0)]] {
            assert_eq!(kinds(&content, parts), [], "{parts:?}");
        }
        content.truncated(40);
        assert_eq!(kinds(&content, &[(0..40, 1)]), []);
        assert_eq!(kinds(&content, &[(0..100, 1)]), [Kind::Attributes, Kind::Foreign]);
        assert_eq!(kinds(&content, &[(0..39, 1)]), [Kind::Attributes]);
        content.truncate(60);
        content.truncated(60);
        assert_eq!(kinds(&content, &[(0..40, 1), (40..60, 0)]), []);
        assert_eq!(kinds(&content, &[(0..60, 1)]), [Kind::Foreign]);
        content.write(80..90, 2);
        content.stored(80..90, 2);
        assert_eq!(kinds(&content, &[(0..40, 1), (40..80, 0), (80..90, 2)]), []);
        assert_eq!(kinds(&content, &[(0..80, 1), (80..90, 2)]), [Kind::Foreign]);
    }

    #[test]
    fn unstable_bytes_that_are_gone_want_another_verifier() {
        let mut content = Content::default();
        content.write(0..10, 1);
        content.written(0..10, 1, A, 1);
        assert_eq!(content.vanished(0, &bytes(1, 0, 10)), [] as [Verifier; 0]);
        assert_eq!(content.vanished(0, &bytes(0, 0, 10)), [A]);
        assert_eq!(content.vanished_behind(0), [A]);
        assert_eq!(content.vanished_behind(10), [] as [Verifier; 0]);
        content.committed(0..u64::MAX, A, 2);
        assert_eq!(content.vanished(0, &bytes(0, 0, 10)), [] as [Verifier; 0]);
    }

    #[test]
    fn what_was_lost_once_may_be_written_over() {
        let mut content = Content::default();
        content.write(0..100, 1);
        content.written(0..100, 1, A, 1);
        assert_eq!(kinds(&content, &[]), []);
        content.found(0);
        content.write(50..60, 2);
        content.stored(50..60, 2);
        assert_eq!(kinds(&content, &[(0..50, 0), (50..60, 2)]), []);
        assert_eq!(kinds(&content, &[(0..50, 0), (50..60, 1)]), [Kind::DataSync]);
        assert_eq!(content.open(50..60), 1);
    }
}
