//! The header of a segment: which blocks of which state of which file it has. Pure; the bytes are
//! in `docs/formats/cache.md`.

use crate::key::{KEY_BYTES_MAX, Key, Name, TOKEN_BYTES, Token};

pub const MAGIC: [u8; 8] = *b"nfskcach";
pub const VERSION: u16 = 1;

/// Blocks of a segment.
pub const BLOCKS: usize = 256;

/// Where the data begin: a page, so that blocks of local file systems are not shared with them.
pub const DATA_AT: u64 = 4096;

/// What is written of a header.
pub const HEADER_BYTES: usize = 1328;

const KEY_AT: usize = 32;
const TOKEN_AT: usize = KEY_AT + KEY_BYTES_MAX;
const PRESENT_AT: usize = TOKEN_AT + TOKEN_BYTES;
const COUNTS_AT: usize = PRESENT_AT + BLOCKS / 8;
const CRCS_AT: usize = COUNTS_AT + 64;

const _: () = assert!(CRCS_AT + 4 * BLOCKS == HEADER_BYTES);
const _: () = assert!(HEADER_BYTES <= 4096);

/// Sizes of blocks that there may be: 4 KiB to 1 MiB.
pub const BLOCK_LOG2: std::ops::RangeInclusive<u8> = 12..=20;

/// Of a new cache: see `docs/adr/0021-a-cache-without-an-index.md`.
pub const BLOCK_BYTES_MAX: u64 = 64 << 10;

/// How segments of an origin are laid out, for good.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Geometry {
    block_log2: u8,
}

impl Geometry {
    /// Blocks of the largest size that is not above `bytes`, within what there may be.
    pub fn of_blocks_up_to(bytes: u64) -> Self {
        let log2 = u8::try_from(bytes.max(1).ilog2()).unwrap_or(*BLOCK_LOG2.end());
        Self { block_log2: log2.clamp(*BLOCK_LOG2.start(), *BLOCK_LOG2.end()) }
    }

    /// For an origin that is read so many bytes at a time: blocks that such reads are made of, and
    /// no larger than 64 KiB.
    pub fn of_reads_of(bytes: u32) -> Self {
        let part = 1_u64 << bytes.trailing_zeros().min(31);
        Self::of_blocks_up_to(part.min(BLOCK_BYTES_MAX))
    }

    pub fn from_log2(block_log2: u8) -> Option<Self> {
        BLOCK_LOG2.contains(&block_log2).then_some(Self { block_log2 })
    }

    pub fn block_log2(self) -> u8 {
        self.block_log2
    }

    pub fn block_bytes(self) -> u64 {
        1 << self.block_log2
    }

    pub fn segment_bytes(self) -> u64 {
        self.block_bytes() * BLOCKS as u64
    }

    /// The segment that holds this place of a file; none behind what a cache can hold.
    pub fn segment_of(self, offset: u64) -> Option<u32> {
        u32::try_from(offset / self.segment_bytes()).ok()
    }

    /// Bytes of block `index` of a segment when the file has so many; zero behind its end.
    pub fn block_len(self, segment: u32, index: usize, file_bytes: u64) -> u64 {
        let at = u64::from(segment) * self.segment_bytes() + index as u64 * self.block_bytes();
        file_bytes.saturating_sub(at).min(self.block_bytes())
    }

    /// Where block `index` lies in the local file.
    pub fn place(self, index: usize) -> u64 {
        DATA_AT + index as u64 * self.block_bytes()
    }

    /// Bytes of a local disk that a block of so many takes.
    pub fn disk_bytes(len: u64) -> u64 {
        len.next_multiple_of(DATA_AT)
    }
}

/// Reads of a segment, since it was made.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Used {
    pub hits: u64,
    pub hit_bytes: u64,
    /// Blocks were not there.
    pub cold: u64,
    /// Blocks were not what they should be.
    pub damaged: u64,
}

/// See the module's head.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Header {
    pub geometry: Geometry,
    pub segment: u32,
    pub key: Key,
    pub token: Token,
    pub used: Used,
    present: [u64; BLOCKS / 64],
    crcs: Box<[u32; BLOCKS]>,
}

/// Why a header is not one.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum HeaderError {
    #[error("it is not a segment of a cache of nfskit")]
    Foreign,
    #[error("it is of version {found}, and this program knows {VERSION}")]
    Version { found: u16 },
    #[error("the checksum is not that of its content")]
    Checksum,
    #[error("it says what cannot be")]
    Invalid,
}

impl Header {
    pub fn new(geometry: Geometry, key: Key, segment: u32, token: Token) -> Self {
        let (present, crcs) = ([0; BLOCKS / 64], Box::new([0; BLOCKS]));
        Self { geometry, segment, key, token, used: Used::default(), present, crcs }
    }

    pub fn name(&self) -> Name {
        Name { file: self.key.hash(), segment: self.segment }
    }

    pub fn has(&self, index: usize) -> bool {
        self.present.get(index / 64).is_some_and(|word| word >> (index % 64) & 1 == 1)
    }

    /// The block's checksum, if it is there.
    pub fn crc(&self, index: usize) -> Option<u32> {
        self.crcs.get(index).copied().filter(|_| self.has(index))
    }

    pub fn put(&mut self, index: usize, crc: u32) {
        if let (Some(word), Some(place)) =
            (self.present.get_mut(index / 64), self.crcs.get_mut(index))
        {
            *word |= 1 << (index % 64);
            *place = crc;
        }
    }

    pub fn take(&mut self, index: usize) {
        if let (Some(word), Some(place)) =
            (self.present.get_mut(index / 64), self.crcs.get_mut(index))
        {
            *word &= !(1 << (index % 64));
            *place = 0;
        }
    }

    pub fn blocks(&self) -> impl Iterator<Item = usize> {
        (0..BLOCKS).filter(|index| self.has(*index))
    }

    /// Bytes of a block that is there.
    pub fn len(&self, index: usize) -> u64 {
        self.geometry.block_len(self.segment, index, self.token.size)
    }

    pub fn is_empty(&self) -> bool {
        self.present.iter().all(|word| *word == 0)
    }

    /// Bytes of the file that it has.
    pub fn data_bytes(&self) -> u64 {
        self.blocks().map(|index| self.len(index)).sum()
    }

    /// The length of the local file when all of the file that belongs here is there.
    pub fn whole_len(&self) -> u64 {
        DATA_AT + (0..BLOCKS).map(|index| self.len(index)).sum::<u64>()
    }

    /// Bytes that it takes of a local disk.
    pub fn disk_bytes(&self) -> u64 {
        let blocks = self.blocks().map(|index| Geometry::disk_bytes(self.len(index)));
        DATA_AT + blocks.sum::<u64>()
    }

    /// The checksum of a block of this segment. Whose it is counts: a block that lies in the place
    /// of another is none.
    pub fn crc_of(&self, index: usize, data: &[u8]) -> u32 {
        crc_of((&self.key, self.segment), index, data)
    }

    pub fn encode(&self) -> [u8; HEADER_BYTES] {
        let mut out = [0; HEADER_BYTES];
        out[..8].copy_from_slice(&MAGIC);
        out[8..10].copy_from_slice(&VERSION.to_le_bytes());
        out[10] = self.geometry.block_log2;
        out[11] = self.key.as_bytes().len().try_into().unwrap_or(0);
        out[16..20].copy_from_slice(&self.segment.to_le_bytes());
        out[KEY_AT..][..self.key.as_bytes().len()].copy_from_slice(self.key.as_bytes());
        out[TOKEN_AT..PRESENT_AT].copy_from_slice(&self.token.encode());
        for (place, word) in out[PRESENT_AT..COUNTS_AT].chunks_exact_mut(8).zip(&self.present) {
            place.copy_from_slice(&word.to_le_bytes());
        }
        let Used { hits, hit_bytes, cold, damaged } = self.used;
        let counts = [hits, hit_bytes, cold, damaged];
        for (place, count) in out[COUNTS_AT..CRCS_AT].chunks_exact_mut(8).zip(counts) {
            place.copy_from_slice(&count.to_le_bytes());
        }
        for (place, crc) in out[CRCS_AT..].chunks_exact_mut(4).zip(&*self.crcs) {
            place.copy_from_slice(&crc.to_le_bytes());
        }
        let crc = checksum(&out);
        out[12..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    /// What the beginning of a segment says.
    ///
    /// # Errors
    /// It is none, or not whole.
    pub fn decode(bytes: &[u8]) -> Result<Self, HeaderError> {
        let bytes: &[u8; HEADER_BYTES] = bytes
            .get(..HEADER_BYTES)
            .and_then(|bytes| bytes.try_into().ok())
            .ok_or(HeaderError::Foreign)?;
        let long = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let short = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        if bytes[..8] != MAGIC {
            return Err(HeaderError::Foreign);
        }
        if short(12) != checksum(bytes) {
            return Err(HeaderError::Checksum);
        }
        let found = u16::from_le_bytes([bytes[8], bytes[9]]);
        if found != VERSION {
            return Err(HeaderError::Version { found });
        }
        let geometry = Geometry::from_log2(bytes[10]).ok_or(HeaderError::Invalid)?;
        let key = bytes[KEY_AT..TOKEN_AT].get(..usize::from(bytes[11]));
        let key = key.and_then(Key::new).ok_or(HeaderError::Invalid)?;
        let token = Token::decode(&std::array::from_fn(|i| bytes[TOKEN_AT + i]));
        let count = |index: usize| long(COUNTS_AT + 8 * index);
        let used = Used { hits: count(0), hit_bytes: count(1), cold: count(2), damaged: count(3) };
        let present = std::array::from_fn(|i| long(PRESENT_AT + 8 * i));
        let crcs = Box::new(std::array::from_fn(|i| short(CRCS_AT + 4 * i)));
        let header = Self { geometry, segment: short(16), key, token, used, present, crcs };
        // A block behind the end of the file is none.
        let is_inside = header.blocks().all(|index| header.len(index) > 0);
        is_inside.then_some(header).ok_or(HeaderError::Invalid)
    }
}

/// Of all but its own place.
pub(crate) fn checksum(bytes: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&bytes[..12]);
    hasher.update(&[0; 4]);
    hasher.update(&bytes[16..]);
    hasher.finalize()
}

/// See [`Header::crc_of`].
pub fn crc_of((key, segment): (&Key, u32), index: usize, data: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(key.as_bytes());
    hasher.update(&segment.to_le_bytes());
    hasher.update(&(index as u64).to_le_bytes());
    hasher.update(&(data.len() as u64).to_le_bytes());
    hasher.update(data);
    hasher.finalize()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::key::Time;

    pub(crate) fn token(size: u64, seconds: i64) -> Token {
        let time = Time { seconds, nanos: 1 };
        Token { size, mtime: time, ctime: time, fileid: 7, change: 0 }
    }

    fn header() -> Header {
        let geometry = Geometry::of_blocks_up_to(65_536);
        let mut header = Header::new(geometry, Key::new(&[5; 64]).unwrap(), 3, token(1 << 30, 9));
        header.put(0, 11);
        header.put(255, u32::MAX);
        header.used.hits = 4;
        header
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let header = header();
        let bytes = header.encode();
        assert_eq!(Header::decode(&bytes), Ok(header));
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Header::decode(&flipped).is_err(), "bit {bit}");
        }
        assert_eq!(Header::decode(&bytes[1..]), Err(HeaderError::Foreign));
        assert_eq!(Header::decode(&[0; HEADER_BYTES]), Err(HeaderError::Foreign));
    }

    #[test]
    fn another_version_and_what_cannot_be_are_reported() {
        let sealed = |change: &dyn Fn(&mut [u8; HEADER_BYTES])| {
            let mut bytes = header().encode();
            change(&mut bytes);
            let crc = checksum(&bytes);
            bytes[12..16].copy_from_slice(&crc.to_le_bytes());
            Header::decode(&bytes)
        };
        assert_eq!(sealed(&|bytes| bytes[8] = 2), Err(HeaderError::Version { found: 2 }));
        assert_eq!(sealed(&|bytes| bytes[10] = 11), Err(HeaderError::Invalid));
        assert_eq!(sealed(&|bytes| bytes[11] = 0), Err(HeaderError::Invalid));
        assert_eq!(sealed(&|bytes| bytes[11] = 129), Err(HeaderError::Invalid));
        // The file ends before the last block that it lists.
        let short = |bytes: &mut [u8; HEADER_BYTES]| bytes[TOKEN_AT..][..8].fill(0);
        assert_eq!(sealed(&short), Err(HeaderError::Invalid));
    }

    #[test]
    fn a_block_in_the_place_of_another_is_none() {
        let (one, other) = (header(), Header { segment: 4, ..header() });
        let key = Header { key: Key::new(&[6; 64]).unwrap(), ..header() };
        let crc = one.crc_of(1, b"data");
        for wrong in [one.crc_of(2, b"data"), other.crc_of(1, b"data"), key.crc_of(1, b"data")] {
            assert_ne!(crc, wrong);
        }
    }

    #[test]
    fn blocks_are_as_long_as_the_file_reaches() {
        let geometry = Geometry::of_blocks_up_to(100_000);
        assert_eq!(geometry.block_bytes(), 65_536);
        assert_eq!(geometry.block_len(0, 0, 10), 10);
        assert_eq!(geometry.block_len(0, 1, 65_536), 0);
        assert_eq!(geometry.block_len(1, 0, geometry.segment_bytes() + 1), 1);
        assert_eq!(geometry.segment_of(u64::MAX), None);
        let of_reads = |bytes| Geometry::of_reads_of(bytes).block_bytes();
        assert_eq!([8192, 12_288, 1 << 20, 100_001].map(of_reads), [8192, 4096, 65_536, 4096]);
        assert_eq!(Geometry::of_blocks_up_to(0).block_bytes(), 4096);
        assert_eq!(Geometry::of_blocks_up_to(u64::MAX).block_bytes(), 1 << 20);
        let mut header = header();
        header.take(255);
        assert_eq!(header.disk_bytes(), 4096 + 65_536);
        assert!(!header.is_empty() && header.crc(255).is_none());
    }
}
