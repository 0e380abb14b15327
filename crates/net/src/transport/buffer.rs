//! Receive buffers that are used again.
//!
//! A slab is filled by one or more reads, then frozen: records are slices of it, and when the last
//! slice is gone the slab goes back to its pool. So a payload is never copied in user space
//! between the socket and the file, and a stream of calls allocates nothing once it is warm.
//!
//! There are three sizes that are used again. A first slab takes the first that a connection sends:
//! thousands that come at once and send the beginning of a large record cost little. A small slab
//! takes what it sends later when nothing is known; it holds many small records. A large slab takes
//! one large record, and is requested when a record's header announces it. A record that is larger
//! still gets a slab for itself, which is used once.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use parking_lot::Mutex;

/// Bytes of a small slab: a batch of calls, or the beginning of a large record, whose payload so
/// far is then copied once.
pub const SMALL_BYTES: usize = 64 << 10;

/// Bytes of the first slab of a connection.
const FIRST_BYTES: usize = 1 << 10;

/// Records up to this size are copied where they may have to wait, so that each does not keep the
/// slab that it came in.
pub const COPIED_BYTES_MAX: usize = 8 << 10;

/// What a large slab has beyond the record, to see the next record's header in the same read.
const PEEK_BYTES: usize = 256;

/// Free slabs pooled, of each size; more are given back to the system.
const FREE_MAX: usize = 64;

/// The slabs of a process or server; clones share them.
#[derive(Clone, Debug)]
pub struct Pool(Arc<PoolState>);

#[derive(Debug)]
struct PoolState {
    large_bytes: usize,
    first: Mutex<Vec<Vec<u8>>>,
    small: Mutex<Vec<Vec<u8>>>,
    large: Mutex<Vec<Vec<u8>>>,
    allocated: AtomicU64,
    copied_bytes: AtomicU64,
    /// Bytes of the slabs that somebody has, and the most since they were last read.
    taken_bytes: AtomicU64,
    peak_bytes: AtomicU64,
}

/// What the pool has cost so far.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Costs {
    /// Slabs allocated from the system.
    pub slabs_allocated: u64,
    /// Bytes moved in user space because a record began in one slab and ended in another.
    pub copied_bytes: u64,
}

impl Pool {
    /// For records of at most `record_bytes_max`.
    pub fn new(record_bytes_max: usize) -> Self {
        Self(Arc::new(PoolState {
            large_bytes: record_bytes_max.max(SMALL_BYTES) + PEEK_BYTES,
            first: Mutex::default(),
            small: Mutex::default(),
            large: Mutex::default(),
            allocated: AtomicU64::new(0),
            copied_bytes: AtomicU64::new(0),
            taken_bytes: AtomicU64::new(0),
            peak_bytes: AtomicU64::new(0),
        }))
    }

    pub fn costs(&self) -> Costs {
        Costs {
            slabs_allocated: self.0.allocated.load(Ordering::Relaxed),
            copied_bytes: self.0.copied_bytes.load(Ordering::Relaxed),
        }
    }

    /// Bytes of the slabs that somebody has.
    pub fn taken_bytes(&self) -> u64 {
        self.0.taken_bytes.load(Ordering::Relaxed)
    }

    /// The most that it was since it was last read.
    pub fn take_peak_bytes(&self) -> u64 {
        self.0.peak_bytes.swap(self.taken_bytes(), Ordering::Relaxed)
    }

    /// Gives free slabs back to the system.
    pub fn release(&self) {
        for list in [&self.0.first, &self.0.small, &self.0.large] {
            let free = std::mem::take(&mut *list.lock());
            drop(free);
        }
    }

    fn size_for(&self, record_bytes: usize) -> Size {
        if record_bytes <= SMALL_BYTES {
            Size::Small
        } else if record_bytes + PEEK_BYTES <= self.0.large_bytes {
            Size::Large
        } else {
            Size::Once(record_bytes + PEEK_BYTES)
        }
    }

    fn take(&self, size: Size) -> Slab {
        let recycled = self.0.list(size).and_then(|list| list.lock().pop());
        let bytes = recycled.unwrap_or_else(|| {
            self.0.allocated.fetch_add(1, Ordering::Relaxed);
            vec![0; self.0.bytes(size)]
        });
        let len = bytes.len() as u64;
        let taken = self.0.taken_bytes.fetch_add(len, Ordering::Relaxed) + len;
        self.0.peak_bytes.fetch_max(taken, Ordering::Relaxed);
        Slab { bytes, size, pool: self.clone() }
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Size {
    First,
    Small,
    Large,
    /// Of so many bytes, for one record.
    Once(usize),
}

impl PoolState {
    fn list(&self, size: Size) -> Option<&Mutex<Vec<Vec<u8>>>> {
        match size {
            Size::First => Some(&self.first),
            Size::Small => Some(&self.small),
            Size::Large => Some(&self.large),
            Size::Once(_) => None,
        }
    }

    fn bytes(&self, size: Size) -> usize {
        match size {
            Size::First => FIRST_BYTES,
            Size::Small => SMALL_BYTES,
            Size::Large => self.large_bytes,
            Size::Once(bytes) => bytes,
        }
    }
}

#[derive(Debug)]
struct Slab {
    bytes: Vec<u8>,
    size: Size,
    pool: Pool,
}

impl AsRef<[u8]> for Slab {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Slab {
    fn drop(&mut self) {
        self.pool.0.taken_bytes.fetch_sub(self.bytes.len() as u64, Ordering::Relaxed);
        let Some(mut list) = self.pool.0.list(self.size).map(Mutex::lock) else { return };
        if list.len() < FREE_MAX {
            list.push(std::mem::take(&mut self.bytes));
        }
    }
}

/// A connection's place to read into.
#[derive(Debug)]
pub struct ReceiveBuffer {
    pool: Pool,
    slab: Option<Slab>,
    /// What has been read and not yet been taken, in the slab.
    filled: Range<usize>,
    /// What has been frozen and not yet been taken, in front of the slab's.
    frozen: Bytes,
    /// Size of a slab for what nothing is known of.
    unknown: Size,
}

impl ReceiveBuffer {
    pub fn new(pool: Pool) -> Self {
        Self { pool, slab: None, filled: 0..0, frozen: Bytes::new(), unknown: Size::First }
    }

    /// Bytes read and not yet taken.
    pub fn as_slice(&self) -> &[u8] {
        if !self.frozen.is_empty() {
            return &self.frozen;
        }
        self.slab.as_ref().map_or(&[], |slab| &slab.bytes[self.filled.clone()])
    }

    /// Takes the first `count` bytes, without a copy.
    ///
    /// # Panics
    /// If there are fewer (as slicing does).
    pub fn take(&mut self, count: usize) -> Bytes {
        if self.frozen.is_empty() {
            self.freeze();
        }
        self.frozen.split_to(count)
    }

    /// Where to read to, so that a record of `record_bytes` (with its marks) that begins at the
    /// front can be taken in one piece.
    pub fn space(&mut self, record_bytes: usize) -> &mut [u8] {
        self.thaw(record_bytes);
        let slab = self.slab.get_or_insert_with(|| {
            self.pool.take(std::mem::replace(&mut self.unknown, Size::Small))
        });
        let end = match slab.size {
            Size::First | Size::Small => slab.bytes.len(),
            // Not further than this record: what is behind it would have to be moved.
            Size::Large | Size::Once(_) => {
                (self.filled.start + record_bytes + PEEK_BYTES).min(slab.bytes.len())
            }
        };
        &mut slab.bytes[self.filled.end..end]
    }

    /// What a record of this size keeps for as long as it lives: a slab, if it is not copied.
    pub fn retained_bytes(&self, record_bytes: usize) -> usize {
        match record_bytes {
            0..=COPIED_BYTES_MAX => record_bytes,
            _ => self.pool.0.bytes(self.pool.size_for(record_bytes)),
        }
    }

    /// Gives an empty slab back: an idle connection holds none.
    pub fn rest(&mut self) {
        if self.as_slice().is_empty() {
            self.discard();
        }
    }

    /// Gives the slab back with what is in it.
    pub fn discard(&mut self) {
        self.frozen = Bytes::new();
        self.slab = None;
        self.filled = 0..0;
    }

    /// Says that `count` bytes of [`ReceiveBuffer::space`] have been filled.
    pub fn advance(&mut self, count: usize) {
        self.filled.end += count;
    }

    fn freeze(&mut self) {
        if let Some(slab) = self.slab.take() {
            self.frozen = Bytes::from_owner(slab).slice(self.filled.clone());
            self.filled = 0..0;
        }
    }

    /// Makes the front of what is left writable and the record fit behind it.
    fn thaw(&mut self, record_bytes: usize) {
        let left = self.as_slice().len();
        let fits = self.frozen.is_empty()
            && self
                .slab
                .as_ref()
                .is_some_and(|slab| self.filled.start + record_bytes <= slab.bytes.len())
            && (left > 0 || self.filled.start == 0);
        let of_unknown = self.pool.0.bytes(self.unknown);
        if fits || (left == 0 && self.slab.is_none() && record_bytes <= of_unknown) {
            self.frozen = Bytes::new();
            return;
        }
        let mut slab = self.pool.take(self.pool.size_for(record_bytes));
        slab.bytes[..left].copy_from_slice(self.as_slice());
        self.pool.0.copied_bytes.fetch_add(left as u64, Ordering::Relaxed);
        self.frozen = Bytes::new();
        self.slab = Some(slab);
        self.filled = 0..left;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill_byte(at: usize, round: usize) -> u8 {
        u8::try_from(at + round).unwrap()
    }

    fn fill(buffer: &mut ReceiveBuffer, record_bytes: usize, from: &mut &[u8]) {
        let space = buffer.space(record_bytes);
        let count = space.len().min(from.len());
        space[..count].copy_from_slice(&from[..count]);
        *from = &from[count..];
        buffer.advance(count);
    }

    #[test]
    fn records_of_every_size_come_out_as_they_went_in_and_slabs_are_used_again() {
        let pool = Pool::new(1 << 20);
        let mut buffer = ReceiveBuffer::new(pool.clone());
        let sizes = [1, 100, 5_000, 1 << 20, 70_000, 3, 65_536, 65_537, 1 << 20, 40_000, 40_000];
        for round in 0..10 {
            let stream: Vec<u8> = sizes
                .iter()
                .enumerate()
                .flat_map(|(at, &size)| std::iter::repeat_n(fill_byte(at, round), size))
                .collect();
            let mut rest = stream.as_slice();
            for (at, &size) in sizes.iter().enumerate() {
                while buffer.as_slice().len() < size {
                    fill(&mut buffer, size, &mut rest);
                }
                let record = buffer.take(size);
                assert!(record.iter().all(|&byte| byte == fill_byte(at, round)), "record {at}");
            }
        }
        assert!(pool.costs().slabs_allocated <= 5, "{:?}", pool.costs());
    }

    #[test]
    fn a_record_over_the_usual_size_has_a_slab_for_itself() {
        let pool = Pool::new(1 << 20);
        let mut buffer = ReceiveBuffer::new(pool.clone());
        let size = (3 << 20) + 5;
        assert_eq!(buffer.retained_bytes(size), size + PEEK_BYTES);
        for round in 1..3 {
            let stream = vec![7; size + 10];
            let mut rest = stream.as_slice();
            while buffer.as_slice().len() < size {
                fill(&mut buffer, size, &mut rest);
            }
            assert_eq!(buffer.take(size).len(), size);
            drop(buffer.take(buffer.as_slice().len()));
            assert_eq!(pool.costs().slabs_allocated, round, "it is not used again");
        }
        let slabs = [pool.take(Size::Large), pool.take(Size::Small)];
        let both: u64 = slabs.iter().map(|slab| slab.bytes.len() as u64).sum();
        assert_eq!(pool.taken_bytes(), both);
        drop(slabs);
        assert_eq!((pool.taken_bytes(), pool.0.large.lock().len()), (0, 1));
        pool.release();
        assert!(pool.0.large.lock().is_empty());
        assert!(pool.take_peak_bytes() >= both);
        assert_eq!(pool.take_peak_bytes(), 0);
    }

    #[test]
    fn a_stream_of_large_records_is_hardly_copied() {
        const RECORD: usize = (1 << 20) + 130;
        let pool = Pool::new(RECORD);
        let mut buffer = ReceiveBuffer::new(pool.clone());
        let stream = vec![7; RECORD * 20];
        let mut rest = stream.as_slice();
        for _ in 0..20 {
            while buffer.as_slice().len() < 4 {
                fill(&mut buffer, 4, &mut rest);
            }
            while buffer.as_slice().len() < RECORD {
                fill(&mut buffer, RECORD, &mut rest);
            }
            drop(buffer.take(RECORD));
        }
        let copied = pool.costs().copied_bytes;
        assert!(copied <= (SMALL_BYTES + 20 * PEEK_BYTES) as u64, "{copied} bytes copied");
    }
}
