//! What is written at once: a header, records, and zeros to the end of the block, all under one
//! checksum. A frame is there whole or not at all, and so are the answers that wait for it.

use crate::{BLOCK, BLOCK_BYTES, Key, Reply};

pub const MAGIC: u64 = u64::from_le_bytes(*b"nfsframe");

/// Before the records.
pub const HEADER_BYTES: usize = 112;

/// Where in the header the frame's checksum is, and behind it that of what is before both, by which
/// a frame that was begun is known. Both count as zero in the first.
const CHECKSUM_AT: usize = 104;
const HEADER_CHECKSUM_AT: usize = 108;

/// Before the key and the data of a record.
pub const RECORD_BYTES: usize = 56;

/// Most bytes of data in one record: larger writes are made stable in their file, which costs no
/// more then and does not write them twice.
pub const DATA_BYTES_MAX: usize = 256 << 10;

/// Records are added to a frame as long as it is shorter: what a disk writes in some 2 ms (guess).
pub const FRAME_BYTES_DUE: usize = 1 << 20;

/// No frame is longer.
pub const FRAME_BYTES_MAX: usize = FRAME_BYTES_DUE + DATA_BYTES_MAX + BLOCK;

/// No log comes so far: a frame that claims it is none, so that what follows one has a number.
const SEQUENCE_MAX: u64 = u64::MAX / 2;

/// Kinds of records that only proxies write.
const CHANGE: u8 = 8;
const DONE: u8 = 9;

/// Flag: no file needs anything before this frame, and the server ended as it should.
pub const CLEAN: u32 = 1;
/// Flag: a sync of a file has failed; what is in the page cache may never come to the disk, and
/// also a server that starts on a machine that was not switched off has to do everything again.
pub const DOUBT: u32 = 2;
/// Flag: the first after a recovery. It follows the frame that is its `stable`; those between were
/// begun and answered to nobody.
pub const FIRST: u32 = 4;

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Header {
    pub id: [u8; 16],
    /// The boot of the machine in which it was written: in the same one, the page cache has what
    /// was in it.
    pub boot: [u8; 16],
    /// Which of the logs it is in, and where: a copy that a client writes is none.
    pub log: u32,
    pub at: u64,
    pub sequence: u64,
    /// The oldest frame that is needed; this one, if none before it is.
    pub tail: u64,
    pub flags: u32,
    pub records: u32,
    /// With header and zeros.
    pub bytes: u64,
    /// The sequence of the first record after this frame's.
    pub next_record: u64,
    /// The newest frame that was stable, with all before it, when this one was begun.
    pub stable: u64,
    /// Of so many records before `next_record` it is not known whether the calls of replies among
    /// them were executed.
    pub undecided: u32,
}

/// When a file was last changed, as in the WRITE's reply.
#[derive(Clone, Copy, Debug, Default, Eq, Ord, PartialEq, PartialOrd)]
pub struct Stamp {
    pub seconds: i64,
    pub nanos: u32,
}

/// What a SETATTR has set; the modification time is in the record's stamp.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Attributes {
    pub size: Option<u64>,
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub accessed: Option<Stamp>,
}

impl Attributes {
    pub(crate) const BYTES: usize = 40;

    fn encode(&self) -> [u8; Self::BYTES] {
        let Self { size, mode, uid, gid, accessed } = *self;
        let is_set =
            [size.is_some(), mode.is_some(), uid.is_some(), gid.is_some(), accessed.is_some()];
        let mask = (0u32..).zip(is_set).map(|(bit, is_set)| u32::from(is_set) << bit).sum::<u32>();
        let accessed = accessed.unwrap_or_default();
        let mut bytes = [0; Self::BYTES];
        let mut put = |at: usize, part: &[u8]| bytes[at..at + part.len()].copy_from_slice(part);
        put(0, &mask.to_le_bytes());
        put(4, &mode.unwrap_or(0).to_le_bytes());
        put(8, &uid.unwrap_or(0).to_le_bytes());
        put(12, &gid.unwrap_or(0).to_le_bytes());
        put(16, &size.unwrap_or(0).to_le_bytes());
        put(24, &accessed.seconds.to_le_bytes());
        put(32, &accessed.nanos.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; Self::BYTES] = bytes.try_into().ok()?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let mask = half(0);
        let is_set = |bit: u32| mask >> bit & 1 == 1;
        let size = is_set(0).then(|| number(16));
        let accessed = Stamp { seconds: number(24).cast_signed(), nanos: half(32) };
        let attributes = Self {
            size,
            mode: is_set(1).then(|| half(4)),
            uid: is_set(2).then(|| half(8)),
            gid: is_set(3).then(|| half(12)),
            accessed: is_set(4).then_some(accessed),
        };
        let is_sound = size.is_none_or(|size| i64::try_from(size).is_ok());
        // What says more than is known here, or anything where nothing is, was not written by this.
        (is_sound && attributes.encode() == *bytes).then_some(attributes)
    }
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Op<'a> {
    /// A stable WRITE.
    Data { offset: u64, modified: Stamp, changed: Stamp, data: &'a [u8] },
    /// A SETATTR.
    Attributes { modified: Stamp, changed: Stamp, set: Attributes },
    /// A change that is on its way to another server, in the words of whoever writes it.
    Change { data: &'a [u8] },
    /// The same as `Past` of a change, and what came of it.
    Done { through: u64, data: &'a [u8] },
    /// The file itself is stable as it was after the record `through`: that and all before it are
    /// not needed any more, and must not be done again.
    Past { through: u64 },
    /// What a call was answered, a [`Reply`], and when it had come.
    Reply { came: Stamp, bytes: &'a [u8] },
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Record<'a> {
    pub sequence: u64,
    pub key: Key,
    pub op: Op<'a>,
}

/// Why bytes are no frame of this log.
#[derive(Clone, Copy, Debug, Eq, PartialEq, thiserror::Error)]
pub enum FrameError {
    #[error("no frame of this log begins here")]
    None,
    #[error("a frame is cut off")]
    Short,
    #[error("a frame's checksum is not that of its content")]
    Checksum,
    #[error("a frame has a record that cannot be")]
    Record,
}

impl Header {
    /// The sequence of the frame before it.
    pub(crate) fn previous(&self) -> u64 {
        if self.flags & FIRST == 0 { self.sequence - 1 } else { self.stable }
    }

    /// Reads the header at the beginning of `bytes`, which one of the logs `id` has at `at`;
    /// whether its frame is whole is another question.
    pub fn decode(bytes: &[u8], id: &[u8; 16], log: u32, at: u64) -> Result<Self, FrameError> {
        let bytes = bytes.get(..HEADER_BYTES).ok_or(FrameError::Short)?;
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        let header = Self {
            id: std::array::from_fn(|i| bytes[8 + i]),
            boot: std::array::from_fn(|i| bytes[24 + i]),
            at: number(40),
            sequence: number(48),
            tail: number(56),
            bytes: number(64),
            records: half(72),
            flags: half(76),
            next_record: number(80),
            stable: number(88),
            log: half(96),
            undecided: half(100),
        };
        let is_sound = number(0) == MAGIC
            && half(HEADER_CHECKSUM_AT) == crc32fast::hash(&bytes[..CHECKSUM_AT])
            && header.id == *id
            && (header.log, header.at) == (log, at)
            && header.tail <= header.sequence
            && header.stable < header.sequence
            && header.sequence.max(header.next_record) <= SEQUENCE_MAX
            && header.bytes >= BLOCK_BYTES
            && header.bytes.is_multiple_of(BLOCK_BYTES)
            && header.bytes <= FRAME_BYTES_MAX as u64;
        if is_sound { Ok(header) } else { Err(FrameError::None) }
    }

    fn put(&self, frame: &mut [u8]) {
        let mut put = |at: usize, bytes: &[u8]| frame[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &MAGIC.to_le_bytes());
        put(8, &self.id);
        put(24, &self.boot);
        put(40, &self.at.to_le_bytes());
        put(48, &self.sequence.to_le_bytes());
        put(56, &self.tail.to_le_bytes());
        put(64, &self.bytes.to_le_bytes());
        put(72, &self.records.to_le_bytes());
        put(76, &self.flags.to_le_bytes());
        put(80, &self.next_record.to_le_bytes());
        put(88, &self.stable.to_le_bytes());
        put(96, &self.log.to_le_bytes());
        put(100, &self.undecided.to_le_bytes());
        let checksum = crc32fast::hash(&frame[..CHECKSUM_AT]).to_le_bytes();
        frame[HEADER_CHECKSUM_AT..HEADER_BYTES].copy_from_slice(&checksum);
    }
}

/// A frame in the making, in a buffer whose memory it keeps.
#[derive(Debug)]
pub struct Builder<'b> {
    /// The frame begins at `from`.
    memory: &'b mut Vec<u8>,
    from: usize,
    records: u32,
}

impl<'b> Builder<'b> {
    pub fn new(memory: &'b mut Vec<u8>) -> Self {
        Self::at(memory, 0)
    }

    /// From this byte on: what is written past the page cache has to begin at a block of memory.
    pub fn at(memory: &'b mut Vec<u8>, from: usize) -> Self {
        memory.clear();
        memory.resize(from + HEADER_BYTES, 0);
        Self { memory, from, records: 0 }
    }

    pub fn push(&mut self, record: &Record<'_>) {
        let set = match record.op {
            Op::Attributes { set, .. } => set.encode(),
            _ => [0; Attributes::BYTES],
        };
        let (kind, data, number, stamps): (u8, &[u8], u64, [Stamp; 2]) = match record.op {
            Op::Data { offset, modified, changed, data } => (1, data, offset, [modified, changed]),
            Op::Attributes { modified, changed, .. } => (3, &set, 0, [modified, changed]),
            Op::Past { through } => (2, &[], through, [Stamp::default(); 2]),
            Op::Reply { came, bytes } => (4, bytes, 0, [came, Stamp::default()]),
            Op::Change { data } => (CHANGE, data, 0, [Stamp::default(); 2]),
            Op::Done { through, data } => (DONE, data, through, [Stamp::default(); 2]),
        };
        let key = record.key.as_bytes();
        let len = u32::try_from(data.len()).expect("data are bounded by DATA_BYTES_MAX");
        let key_len = u8::try_from(key.len()).expect("keys are bounded by Key::BYTES_MAX");
        self.memory.extend([kind, key_len, 0, 0]);
        self.memory.extend(len.to_le_bytes());
        self.memory.extend(record.sequence.to_le_bytes());
        self.memory.extend(number.to_le_bytes());
        stamps.iter().for_each(|stamp| self.memory.extend(stamp.seconds.to_le_bytes()));
        stamps.iter().for_each(|stamp| self.memory.extend(stamp.nanos.to_le_bytes()));
        self.memory.extend([0; 8]);
        self.memory.extend_from_slice(key);
        self.memory.extend_from_slice(data);
        self.records += 1;
    }

    /// Bytes of the frame as it is now, to the end of its last block.
    pub fn bytes(&self) -> u64 {
        ((self.memory.len() - self.from) as u64).next_multiple_of(BLOCK_BYTES)
    }

    /// Finishes it; of `header`, `records` and `bytes` are found here.
    pub fn seal(self, header: &Header) -> Header {
        let header = Header { records: self.records, bytes: self.bytes(), ..*header };
        let len = usize::try_from(header.bytes).expect("a frame is in memory");
        self.memory.resize(self.from + len, 0);
        let frame = &mut self.memory[self.from..];
        header.put(frame);
        let checksum = checksum(frame).to_le_bytes();
        frame[CHECKSUM_AT..HEADER_CHECKSUM_AT].copy_from_slice(&checksum);
        header
    }
}

/// A whole frame, checked.
#[derive(Clone, Copy, Debug)]
pub struct Frame<'a> {
    pub header: Header,
    bytes: &'a [u8],
}

impl<'a> Frame<'a> {
    /// Checks the frame at the beginning of `bytes`, which may be longer.
    pub fn decode(bytes: &'a [u8], id: &[u8; 16], log: u32, at: u64) -> Result<Self, FrameError> {
        let header = Header::decode(bytes, id, log, at)?;
        let len = usize::try_from(header.bytes).map_err(|_| FrameError::None)?;
        let bytes = bytes.get(..len).ok_or(FrameError::Short)?;
        if checksum(bytes).to_le_bytes() != bytes[CHECKSUM_AT..HEADER_CHECKSUM_AT] {
            return Err(FrameError::Checksum);
        }
        let frame = Self { header, bytes };
        // The checksum may be right of what a faulty program has written.
        match frame.records().all(|record| record.is_ok()) {
            true => Ok(frame),
            false => Err(FrameError::Record),
        }
    }

    /// Its records in the order in which they were submitted.
    pub fn records(&self) -> impl Iterator<Item = Result<Record<'a>, FrameError>> + use<'a> {
        let mut rest = &self.bytes[HEADER_BYTES..];
        (0..self.header.records).map(move |_| {
            let (record, after) = take_record(rest).ok_or(FrameError::Record)?;
            rest = after;
            Ok(record)
        })
    }
}

fn checksum(frame: &[u8]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&frame[..CHECKSUM_AT]);
    hasher.update(&[0; HEADER_BYTES - CHECKSUM_AT]);
    hasher.update(&frame[HEADER_BYTES..]);
    hasher.finalize()
}

fn take_record(bytes: &[u8]) -> Option<(Record<'_>, &[u8])> {
    let (fixed, rest) = bytes.split_at_checked(RECORD_BYTES)?;
    let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| fixed[at + i]));
    let half = |at: usize| u32::from_le_bytes(std::array::from_fn(|i| fixed[at + i]));
    let data_len = usize::try_from(half(4)).ok().filter(|&len| len <= DATA_BYTES_MAX)?;
    let (key, rest) = rest.split_at_checked(usize::from(fixed[1]))?;
    let (data, rest) = rest.split_at_checked(data_len)?;
    let stamp = |seconds: usize, nanos: usize| Stamp {
        seconds: number(seconds).cast_signed(),
        nanos: half(nanos),
    };
    let (modified, changed) = (stamp(24, 40), stamp(32, 44));
    let op = match fixed[0] {
        1 => {
            let offset = number(16);
            offset.checked_add(data_len as u64).filter(|&end| i64::try_from(end).is_ok())?;
            Op::Data { offset, modified, changed, data }
        }
        3 => Op::Attributes { modified, changed, set: Attributes::decode(data)? },
        2 if data.is_empty() => Op::Past { through: number(16) },
        4 if Reply::decode(data).is_some() => Op::Reply { came: modified, bytes: data },
        CHANGE => Op::Change { data },
        DONE => Op::Done { through: number(16), data },
        _ => return None,
    };
    Some((Record { sequence: number(8), key: Key::new(key)?, op }, rest))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reply::{Call, Effect, FileId};

    const ID: [u8; 16] = [9; 16];

    fn header() -> Header {
        let (boot, tail, flags, next_record) = ([3; 16], 4, 0, 12);
        let (records, bytes, stable, undecided) = (0, 0, 4, 2);
        let (log, at, sequence) = (1, 8192, 5);
        let id = ID;
        Header {
            id,
            boot,
            log,
            at,
            sequence,
            tail,
            flags,
            records,
            bytes,
            next_record,
            stable,
            undecided,
        }
    }

    fn records<'a>(data: &'a [u8], reply: &'a [u8]) -> [Record<'a>; 7] {
        let key = Key::new(b"a handle").unwrap();
        let modified = Stamp { seconds: -1, nanos: 999 };
        let changed = Stamp { seconds: 1 << 40, nanos: 1 };
        let op = Op::Data { offset: 77, modified, changed, data };
        let (mode, uid, gid) = (Some(0o4755), Some(u32::MAX - 1), Some(0));
        let accessed = Some(Stamp { seconds: i64::MIN, nanos: 5 });
        let set = Attributes { size: Some(0), mode, uid, gid, accessed };
        let some = Attributes { gid, ..Attributes::default() };
        [
            Record { sequence: 10, key, op },
            Record { sequence: 11, key, op: Op::Past { through: 10 } },
            Record { sequence: 12, key, op: Op::Attributes { modified, changed, set } },
            Record { sequence: 13, key, op: Op::Attributes { modified, changed, set: some } },
            Record { sequence: 14, key, op: Op::Reply { came: changed, bytes: reply } },
            Record { sequence: 15, key, op: Op::Change { data: b"made" } },
            Record { sequence: 16, key, op: Op::Done { through: 15, data: b"so" } },
        ]
    }

    fn reply() -> Vec<u8> {
        let call = Call { client: [4; 16], xid: 6, checksum: 7, ..Call::default() };
        let file = FileId { inode: 8, born: Some(Stamp { seconds: 9, nanos: 10 }) };
        let effect = Effect::Named { name: b"name", file };
        Reply { call, effect, is_decided: false, is_write: false, bytes: b"answered" }
            .encode()
            .unwrap()
    }

    fn frame(data: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut builder = Builder::new(&mut bytes);
        records(data, &reply()).iter().for_each(|record| builder.push(record));
        builder.seal(&header());
        bytes
    }

    #[test]
    fn what_goes_in_comes_out() {
        let data = vec![5; 5000];
        let bytes = frame(&data);
        assert_eq!(bytes.len(), 8192);
        let frame = Frame::decode(&bytes, &ID, 1, 8192).unwrap();
        let found: Vec<_> = frame.records().map(Result::unwrap).collect();
        assert_eq!(found, records(&data, &reply()));
        assert_eq!((frame.header.records, frame.header.bytes), (7, 8192));
    }

    #[test]
    fn attributes_that_cannot_be_are_no_record() {
        let set = Attributes { size: Some(7), ..Attributes::default() };
        let bytes = set.encode();
        assert_eq!(Attributes::decode(&bytes), Some(set));
        for (at, value) in [(0, 0x20), (3, 1), (4, 1), (23, 0x80), (36, 1)] {
            let mut wrong = bytes;
            wrong[at] ^= value;
            assert_eq!(Attributes::decode(&wrong), None, "byte {at}");
        }
        assert_eq!(Attributes::decode(&bytes[..39]), None);
    }

    #[test]
    fn every_flipped_bit_is_noticed() {
        let bytes = frame(b"some data");
        for bit in 0..bytes.len() * 8 {
            let mut flipped = bytes.clone();
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert!(Frame::decode(&flipped, &ID, 1, 8192).is_err(), "bit {bit}");
        }
    }

    #[test]
    fn a_frame_that_none_could_follow_is_none() {
        for (sequence, next_record) in [(u64::MAX, 12), (5, u64::MAX)] {
            let mut bytes = Vec::new();
            Builder::new(&mut bytes).seal(&Header { sequence, next_record, ..header() });
            assert_eq!(Frame::decode(&bytes, &ID, 1, 8192).unwrap_err(), FrameError::None);
        }
    }

    #[test]
    fn a_frame_of_another_log_or_at_another_place_is_none() {
        let bytes = frame(b"x");
        assert_eq!(Frame::decode(&bytes, &[8; 16], 1, 8192).unwrap_err(), FrameError::None);
        assert_eq!(Frame::decode(&bytes, &ID, 1, 4096).unwrap_err(), FrameError::None);
        assert_eq!(Frame::decode(&bytes, &ID, 0, 8192).unwrap_err(), FrameError::None);
        assert_eq!(Frame::decode(&bytes[..100], &ID, 1, 8192).unwrap_err(), FrameError::Short);
        assert_eq!(Frame::decode(&bytes[..4000], &ID, 1, 8192).unwrap_err(), FrameError::Short);
    }
}
