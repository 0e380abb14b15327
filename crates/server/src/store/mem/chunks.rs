//! The bytes of one file: fixed chunks in a map, so that a hole costs nothing however long it is.
//!
//! ```text
//!   file   |0        64K|64K      128K|        hole        |offset 2^62 ...|
//!   map     0: 64 KiB    1: 16 KiB                          2^46: 4 KiB
//!                           '- bytes past the end of a chunk are zeros
//! ```
//!
//! A chunk has 4 KiB times a power of two, so that a small file is small and a growing one is
//! copied about once. A READ within one chunk is a reference to it; a WRITE to a chunk that such
//! a READ still refers to copies the chunk first. Data to be written is always copied in: a
//! reference would keep a whole receive buffer alive for the part of it that is still in use.

use std::collections::BTreeMap;

use bytes::{Bytes, BytesMut};

/// Bytes of file a chunk stands for.
const CHUNK_LEN: usize = 64 * 1024;
/// Bytes the smallest chunk takes.
const BLOCK_LEN: usize = 4 * 1024;

static ZEROS: [u8; CHUNK_LEN] = [0; CHUNK_LEN];

/// The contents of a regular file. Bytes from `size` on are zeros in every chunk.
#[derive(Clone, Debug, Default)]
pub(super) struct Chunks {
    size: u64,
    /// Bytes of storage in all chunks.
    used: u64,
    chunks: BTreeMap<u64, Bytes>,
}

/// Part of one chunk.
#[derive(Clone, Copy)]
struct Part {
    index: u64,
    start: usize,
    end: usize,
}

/// Data on their way into a file: what fills whole chunks is copied already, so that nobody waits
/// for the copy who waits for the store's lock.
pub(super) struct Prepared<'d> {
    data: &'d [u8],
    whole: Vec<Bytes>,
}

impl<'d> Prepared<'d> {
    /// For writing `data` at `offset` and nowhere else.
    pub(super) fn new(offset: u64, data: &'d [u8]) -> Self {
        let mut rest = data;
        let mut whole = Vec::new();
        for part in parts(offset, data.len()) {
            let (piece, next) = rest.split_at(part.end - part.start);
            rest = next;
            if part.is_whole() {
                whole.push(Bytes::copy_from_slice(piece));
            }
        }
        Self { data, whole }
    }
}

impl Part {
    fn is_whole(self) -> bool {
        (self.start, self.end) == (0, CHUNK_LEN)
    }
}

/// Bytes found by a read, not yet in one piece.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    first: Bytes,
    rest: Vec<Bytes>,
}

impl Chunks {
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    pub(super) fn used(&self) -> u64 {
        self.used
    }

    /// The bytes from `offset`, at most `len`, fewer only at the end of the file.
    pub(super) fn read(&self, offset: u64, len: usize) -> Pieces {
        let left = self.size.saturating_sub(offset);
        let len = usize::try_from(left).map_or(len, |left| len.min(left));
        let mut pieces = Pieces::default();
        for part in parts(offset, len) {
            self.read_part(part, &mut pieces);
        }
        pieces
    }

    fn read_part(&self, part: Part, pieces: &mut Pieces) {
        let Part { index, start, end } = part;
        let chunk = self.chunks.get(&index);
        let stored = chunk.map_or(0, Bytes::len).clamp(start, end);
        if let Some(chunk) = chunk.filter(|_| start < stored) {
            pieces.push(chunk.slice(start..stored));
        }
        if stored < end {
            pieces.push(Bytes::from_static(&ZEROS[stored..end]));
        }
    }

    /// Bytes of storage that writing `len` bytes at `offset` would add.
    pub(super) fn growth(&self, offset: u64, len: usize) -> u64 {
        let added = |part: Part| {
            let have = self.chunks.get(&part.index).map_or(0, Bytes::len);
            storage_len(part.end).saturating_sub(have) as u64
        };
        parts(offset, len).map(added).sum()
    }

    /// Writes all of `data`; `offset + data.len()` must fit 64 bits.
    #[cfg(test)]
    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        self.write_prepared(offset, &Prepared::new(offset, data));
    }

    /// The same with whole chunks that were copied before, which are only put in place.
    pub(super) fn write_prepared(&mut self, offset: u64, prepared: &Prepared<'_>) {
        let Prepared { data, whole } = prepared;
        let (mut rest, mut whole) = (*data, whole.iter());
        for part in parts(offset, data.len()) {
            let (piece, next) = rest.split_at(part.end - part.start);
            rest = next;
            let chunk = self.chunks.entry(part.index).or_default();
            if part.is_whole()
                && let Some(new) = whole.next()
            {
                self.used += (new.len() - chunk.len()) as u64;
                *chunk = new.clone();
                continue;
            }
            let had = chunk.len();
            let mut own = make_own(chunk, storage_len(part.end).max(had));
            own[part.start..part.end].copy_from_slice(piece);
            self.used += (own.len() - had) as u64;
            *chunk = own.freeze();
        }
        if !data.is_empty() {
            self.size = self.size.max(offset + data.len() as u64);
        }
    }

    /// Cuts the file off, or makes it longer by a hole.
    pub(super) fn set_size(&mut self, size: u64) {
        if size < self.size {
            self.cut(size);
        }
        self.size = size;
    }

    fn cut(&mut self, size: u64) {
        let index = size / CHUNK_LEN as u64;
        let dropped = self.chunks.split_off(&index);
        self.used -= total_len(&dropped);
        let left = offset_in_chunk(size);
        let last = dropped.into_iter().next().filter(|(at, _)| *at == index);
        if let Some((_, mut chunk)) = last.filter(|_| left > 0) {
            chunk.truncate(storage_len(left));
            let len = chunk.len();
            let mut own = make_own(&mut chunk, len);
            let tail = left.min(len);
            own[tail..].fill(0);
            self.used += len as u64;
            self.chunks.insert(index, own.freeze());
        }
    }
}

impl Pieces {
    fn push(&mut self, piece: Bytes) {
        match self.first.is_empty() {
            true => self.first = piece,
            false => self.rest.push(piece),
        }
    }

    /// All in one piece: the only copy a read makes, and only when it spans chunks.
    pub(super) fn gather(self) -> Bytes {
        if self.rest.is_empty() {
            return self.first;
        }
        let len = self.first.len() + self.rest.iter().map(Bytes::len).sum::<usize>();
        let mut whole = Vec::with_capacity(len);
        whole.extend_from_slice(&self.first);
        self.rest.iter().for_each(|piece| whole.extend_from_slice(piece));
        Bytes::from(whole)
    }
}

/// The chunks that `len` bytes at `offset` lie in, in order.
fn parts(offset: u64, len: usize) -> impl Iterator<Item = Part> {
    let mut index = offset / CHUNK_LEN as u64;
    let mut start = offset_in_chunk(offset);
    let mut left = len;
    std::iter::from_fn(move || {
        let taken = left.min(CHUNK_LEN - start);
        let part = Part { index, start, end: start + taken };
        (index, start, left) = (index + 1, 0, left - taken);
        (taken > 0).then_some(part)
    })
}

#[expect(clippy::cast_possible_truncation, reason = "a remainder below CHUNK_LEN")]
fn offset_in_chunk(offset: u64) -> usize {
    (offset % CHUNK_LEN as u64) as usize
}

/// Bytes of storage for a chunk of which the first `end` bytes are needed.
fn storage_len(end: usize) -> usize {
    end.next_power_of_two().max(BLOCK_LEN)
}

fn total_len(chunks: &BTreeMap<u64, Bytes>) -> u64 {
    chunks.values().map(|chunk| chunk.len() as u64).sum()
}

/// Takes the chunk out as exactly `len` bytes that nobody else sees, zeros after what it had.
///
/// `len` is at least the chunk's. Copies when it has to grow, when a READ refers to it, or when it
/// is the front of something longer.
fn make_own(chunk: &mut Bytes, len: usize) -> BytesMut {
    let copy = |from: &[u8]| {
        let mut own = BytesMut::zeroed(len);
        own[..from.len()].copy_from_slice(from);
        own
    };
    match std::mem::take(chunk).try_into_mut() {
        Ok(own) if own.len() == len && own.capacity() == len => own,
        Ok(other) => copy(&other),
        Err(shared) => copy(&shared),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(chunks: &Chunks, offset: u64, len: usize) -> Vec<u8> {
        chunks.read(offset, len).gather().to_vec()
    }

    /// Storage as the map really has it.
    fn assert_used(chunks: &Chunks) {
        assert_eq!(chunks.used, total_len(&chunks.chunks));
    }

    #[test]
    fn a_huge_offset_costs_one_block() {
        let mut chunks = Chunks::default();
        let far = (1 << 62) + 5;
        assert_eq!(chunks.growth(far, 1), BLOCK_LEN as u64);
        chunks.write(far, b"x");
        assert_eq!((chunks.size(), chunks.used()), (far + 1, 4096));
        assert_eq!(read(&chunks, far - 2, 10), b"\0\0x");
        assert_eq!(read(&chunks, 0, 200_000), [0; 200_000]);
    }

    #[test]
    fn a_read_within_a_chunk_is_no_copy_and_keeps_what_it_saw() {
        let mut chunks = Chunks::default();
        chunks.write(0, &[1; CHUNK_LEN]);
        let seen = chunks.read(100, 1000).gather();
        assert_eq!(seen.as_ptr(), chunks.chunks[&0][100..].as_ptr());
        chunks.write(100, &[2; 10]);
        assert_eq!(seen, [1; 1000][..]);
        assert_eq!(read(&chunks, 100, 11), [2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1]);
    }

    #[test]
    fn a_chunk_that_nobody_reads_is_written_in_place() {
        let mut chunks = Chunks::default();
        chunks.write(0, &[1; CHUNK_LEN]);
        let place = chunks.chunks[&0].as_ptr();
        drop(chunks.read(0, 10));
        chunks.write(5, b"again");
        assert_eq!(chunks.chunks[&0].as_ptr(), place);
    }

    #[test]
    fn what_was_cut_off_comes_back_as_zeros() {
        let mut chunks = Chunks::default();
        chunks.write(0, &[7; 3 * CHUNK_LEN]);
        let reader = chunks.read(0, 10).gather();
        chunks.set_size(5);
        assert_eq!(chunks.used(), BLOCK_LEN as u64);
        chunks.set_size(20);
        assert_eq!(read(&chunks, 0, 100), [&[7; 5][..], &[0; 15][..]].concat());
        assert_eq!(reader, [7; 10][..]);
        chunks.set_size(0);
        assert_eq!((chunks.used(), read(&chunks, 0, 1)), (0, vec![]));
    }

    #[derive(Clone, Debug)]
    enum Step {
        Write(u64, Vec<u8>),
        SetSize(u64),
        /// Held until the end, so that later writes meet shared chunks.
        Read(u64, usize),
    }

    /// Places near the boundaries of chunks and blocks.
    fn place() -> impl Strategy<Value = u64> {
        let unit = prop_oneof![Just(CHUNK_LEN as u64), Just(BLOCK_LEN as u64)];
        (unit, 0..4_u64, 0..20_u64)
            .prop_map(|(unit, count, around)| (unit * count + around).saturating_sub(10))
    }

    fn step() -> impl Strategy<Value = Step> {
        let data = (any::<u8>(), prop_oneof![0..30_usize, 0..150_000_usize]);
        let data = data.prop_map(|(byte, len)| vec![byte; len]);
        prop_oneof![
            (place(), data).prop_map(|(offset, data)| Step::Write(offset, data)),
            place().prop_map(Step::SetSize),
            (place(), 0..200_000_usize).prop_map(|(offset, len)| Step::Read(offset, len)),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn chunks_are_like_a_vector(steps in prop::collection::vec(step(), 1..12)) {
            let mut chunks = Chunks::default();
            let mut model: Vec<u8> = Vec::new();
            let mut reads = Vec::new();
            for step in steps {
                match step {
                    Step::Write(offset, data) => {
                        let expected = chunks.used() + chunks.growth(offset, data.len());
                        chunks.write(offset, &data);
                        prop_assert_eq!(chunks.used(), expected);
                        let start = usize::try_from(offset).unwrap();
                        if !data.is_empty() {
                            model.resize(model.len().max(start + data.len()), 0);
                            model[start..start + data.len()].copy_from_slice(&data);
                        }
                    }
                    Step::SetSize(size) => {
                        chunks.set_size(size);
                        model.resize(usize::try_from(size).unwrap(), 0);
                    }
                    Step::Read(offset, len) => {
                        let start = usize::try_from(offset).unwrap().min(model.len());
                        let end = (start + len).min(model.len());
                        reads.push((chunks.read(offset, len).gather(), model[start..end].to_vec()));
                    }
                }
                assert_used(&chunks);
                prop_assert_eq!(chunks.size(), model.len() as u64);
            }
            prop_assert!(read(&chunks, 0, model.len() + 1) == model);
            for (seen, expected) in reads {
                prop_assert!(seen == expected);
            }
        }
    }
}
