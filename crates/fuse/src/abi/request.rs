//! Requests of the kernel: a header that says who asks for which node, and an operation.

use client::locks::{Kind, Lock, Owner, Range};
use thiserror::Error;

use super::fattr;

/// A request that cannot be read.
#[derive(Clone, Copy, Debug, Eq, Error, PartialEq)]
pub(crate) enum Malformed {
    #[error("{left} bytes where {wanted} are needed")]
    Short { wanted: usize, left: usize },
    #[error("a name without its end")]
    Unterminated,
}

/// Who asks, and for what (`fuse_in_header`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Header {
    pub(crate) opcode: u32,
    /// The answer names it.
    pub(crate) unique: u64,
    pub(crate) node: u64,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
    /// The thread that asks; 0 where it is of a name space that we do not see.
    pub(crate) pid: u32,
}

/// What is requested. Names are the procedures' of fuse.h.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Operation<'a> {
    Lookup {
        name: &'a [u8],
    },
    Forget {
        lookups: u64,
    },
    Getattr {
        file: Option<u64>,
    },
    Setattr(Setattr),
    Readlink,
    Symlink {
        name: &'a [u8],
        target: &'a [u8],
    },
    Mknod {
        name: &'a [u8],
        mode: u32,
        rdev: u32,
    },
    Mkdir {
        name: &'a [u8],
        mode: u32,
    },
    Unlink {
        name: &'a [u8],
    },
    Rmdir {
        name: &'a [u8],
    },
    Rename {
        name: &'a [u8],
        new_dir: u64,
        new_name: &'a [u8],
        flags: u32,
    },
    Link {
        node: u64,
        name: &'a [u8],
    },
    Open {
        flags: u32,
    },
    Read {
        file: u64,
        offset: u64,
        count: u32,
        /// Past the kernel's cache.
        is_direct: bool,
        /// Past ours, too (O_DIRECT).
        asks_server: bool,
    },
    Write {
        file: u64,
        offset: u64,
        count: u32,
        how: How,
    },
    Statfs,
    Release {
        file: u64,
    },
    Fsync {
        file: u64,
    },
    Flush {
        file: u64,
        /// The process that closes it, by the number that its locks have.
        owner: u64,
    },
    Getlk(LockRequest),
    Setlk {
        lock: LockRequest,
        may_wait: bool,
    },
    Init(Init),
    Opendir {
        /// By opendir(3) or fts(3), to list it: these open with O_NONBLOCK (glibc), others rarely.
        lists: bool,
    },
    Readdir {
        dir: u64,
        offset: u64,
        size: u32,
        /// With attributes (READDIRPLUS).
        is_plus: bool,
    },
    Releasedir {
        dir: u64,
    },
    Fsyncdir,
    Access {
        mask: u32,
    },
    Create {
        name: &'a [u8],
        mode: u32,
        flags: u32,
    },
    Interrupt {
        unique: u64,
    },
    BatchForget(Forgets<'a>),
    Destroy,
    /// What we do not serve; the kernel remembers that and does without.
    Unserved,
}

/// How data is written.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct How {
    pub(crate) from: From,
    /// A program writes at the end (O_APPEND), and the offset is where the kernel takes it to be.
    pub(crate) appends: bool,
    /// The server is to have it when the write returns (O_DIRECT).
    pub(crate) asks_server: bool,
    /// The file loses its set-id bits by it, if it has any.
    pub(crate) kills_setid: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum From {
    /// write(2), which the kernel has copied to its cache as well.
    Program,
    /// write(2) past the kernel's cache, which may have been filled since its last notification to
    /// forget these bytes: the kernel does that before it asks, and not when an asynchronous write
    /// is done.
    PastCache,
    /// What the kernel has cached, and now writes back: no program waits for it.
    Cache,
}

/// What INIT says of the kernel (`fuse_init_in`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Init {
    pub(crate) major: u32,
    pub(crate) minor: u32,
    pub(crate) max_readahead: u32,
    pub(crate) flags: u64,
}

/// What SETATTR sets: `valid` says which of the others count (`fuse_setattr_in`).
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub(crate) struct Setattr {
    pub(crate) valid: u32,
    pub(crate) file: Option<u64>,
    pub(crate) size: u64,
    pub(crate) atime: i64,
    pub(crate) mtime: i64,
    pub(crate) atime_nanos: u32,
    pub(crate) mtime_nanos: u32,
    pub(crate) mode: u32,
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// A lock that a program asks for, or gives up (`fuse_lk_in`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct LockRequest {
    pub(crate) open: u64,
    pub(crate) owner: Owner,
    /// None: these bytes are to be free of the owner's locks.
    pub(crate) kind: Option<Kind>,
    pub(crate) range: Range,
    pub(crate) pid: u32,
}

impl LockRequest {
    /// Of a user.
    pub(crate) fn lock(&self, kind: Kind, uid: u32) -> Lock {
        let Self { open, owner, range, pid, .. } = *self;
        Lock { owner, kind, range, open, pid, uid }
    }
}

/// Nodes and how many lookups of each are forgotten.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Forgets<'a>(&'a [u8]);

impl Iterator for Forgets<'_> {
    type Item = (u64, u64);

    fn next(&mut self) -> Option<(u64, u64)> {
        let mut reader = Reader(self.0);
        let one = (reader.u64().ok()?, reader.u64().ok()?);
        self.0 = reader.0;
        Some(one)
    }
}

/// Reads a request.
pub(crate) fn parse(bytes: &[u8]) -> Result<(Header, Operation<'_>), (u64, Malformed)> {
    let mut reader = Reader(bytes);
    let header = header(&mut reader).map_err(|malformed| (0, malformed))?;
    let operation = operation(&header, reader).map_err(|malformed| (header.unique, malformed))?;
    Ok((header, operation))
}

fn header(reader: &mut Reader<'_>) -> Result<Header, Malformed> {
    let _length = reader.u32()?;
    let opcode = reader.u32()?;
    let (unique, node) = (reader.u64()?, reader.u64()?);
    let (uid, gid, pid) = (reader.u32()?, reader.u32()?, reader.u32()?);
    let _extensions = reader.u32()?;
    Ok(Header { opcode, unique, node, uid, gid, pid })
}

fn operation<'a>(header: &Header, mut r: Reader<'a>) -> Result<Operation<'a>, Malformed> {
    Ok(match header.opcode {
        1 => Operation::Lookup { name: r.name()? },
        2 => Operation::Forget { lookups: r.u64()? },
        3 => r.getattr()?,
        4 => Operation::Setattr(r.setattr()?),
        5 => Operation::Readlink,
        6 => Operation::Symlink { name: r.name()?, target: r.name()? },
        8 => {
            let (mode, rdev) = (r.u32()?, r.u32()?);
            r.skip(8)?;
            Operation::Mknod { name: r.name()?, mode, rdev }
        }
        9 => {
            let mode = r.u32()?;
            r.skip(4)?;
            Operation::Mkdir { name: r.name()?, mode }
        }
        10 => Operation::Unlink { name: r.name()? },
        11 => Operation::Rmdir { name: r.name()? },
        12 => {
            let new_dir = r.u64()?;
            Operation::Rename { name: r.name()?, new_dir, new_name: r.name()?, flags: 0 }
        }
        13 => Operation::Link { node: r.u64()?, name: r.name()? },
        14 => Operation::Open { flags: r.u32()? },
        15 => {
            let (file, offset, count) = (r.u64()?, r.u64()?, r.u32()?);
            let is_direct = r.u32()? & LOCK_OWNER != 0;
            r.skip(8)?;
            let asks_server = r.u32()? & O_DIRECT != 0;
            Operation::Read { file, offset, count, is_direct, asks_server }
        }
        16 => r.write()?,
        17 => Operation::Statfs,
        18 => Operation::Release { file: r.u64()? },
        20 => Operation::Fsync { file: r.u64()? },
        25 => {
            let file = r.u64()?;
            r.skip(8)?;
            Operation::Flush { file, owner: r.u64()? }
        }
        26 => Operation::Init(r.init()?),
        27 => Operation::Opendir { lists: r.u32()? & O_NONBLOCK != 0 },
        28 | 44 => {
            let (dir, offset, size) = (r.u64()?, r.u64()?, r.u32()?);
            Operation::Readdir { dir, offset, size, is_plus: header.opcode == 44 }
        }
        29 => Operation::Releasedir { dir: r.u64()? },
        30 => Operation::Fsyncdir,
        31 => Operation::Getlk(r.lock()?),
        32 | 33 => Operation::Setlk { lock: r.lock()?, may_wait: header.opcode == 33 },
        34 => Operation::Access { mask: r.u32()? },
        35 => {
            let (flags, mode) = (r.u32()?, r.u32()?);
            r.skip(8)?;
            Operation::Create { name: r.name()?, mode, flags }
        }
        36 => Operation::Interrupt { unique: r.u64()? },
        38 => Operation::Destroy,
        42 => Operation::BatchForget(r.forgets()?),
        45 => {
            let (new_dir, flags) = (r.u64()?, r.u32()?);
            r.skip(4)?;
            Operation::Rename { name: r.name()?, new_dir, new_name: r.name()?, flags }
        }
        _ => Operation::Unserved,
    })
}

/// The owner is in READ and WRITE (FUSE_READ_LOCKOWNER, FUSE_WRITE_LOCKOWNER): the kernel has it of
/// what goes past its cache, and of nothing else.
const LOCK_OWNER: u32 = 1 << 1;

/// A WRITE of what the kernel has cached (FUSE_WRITE_CACHE).
const FROM_CACHE: u32 = 1 << 0;

/// Whoever writes may not leave set-id bits (FUSE_WRITE_KILL_SUIDGID).
const KILL_SETID: u32 = 1 << 2;

/// Of open(2).
pub(crate) const O_APPEND: u32 = 0o2000;
/// They differ from one architecture to the next.
const O_NONBLOCK: u32 = rustix::fs::OFlags::NONBLOCK.bits();
const O_DIRECT: u32 = rustix::fs::OFlags::DIRECT.bits();

struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, count: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .0
            .split_at_checked(count)
            .ok_or(Malformed::Short { wanted: count, left: self.0.len() })?;
        self.0 = rest;
        Ok(taken)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let short = Malformed::Short { wanted: N, left: self.0.len() };
        let (taken, rest) = self.0.split_first_chunk().ok_or(short)?;
        self.0 = rest;
        Ok(*taken)
    }

    fn skip(&mut self, count: usize) -> Result<(), Malformed> {
        self.take(count).map(|_| ())
    }

    fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_ne_bytes)
    }

    fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_ne_bytes)
    }

    fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_ne_bytes)
    }

    /// Bytes up to a NUL, which is taken with them.
    fn name(&mut self) -> Result<&'a [u8], Malformed> {
        let end = self.0.iter().position(|&byte| byte == 0).ok_or(Malformed::Unterminated)?;
        let name = self.take(end)?;
        self.skip(1)?;
        Ok(name)
    }

    fn getattr(&mut self) -> Result<Operation<'a>, Malformed> {
        let has_file = self.u32()? & 1 != 0;
        self.skip(4)?;
        let file = self.u64()?;
        Ok(Operation::Getattr { file: has_file.then_some(file) })
    }

    /// The data stays where it is: see `super::WRITE_HEAD_BYTES`.
    fn write(&mut self) -> Result<Operation<'a>, Malformed> {
        let (file, offset, count) = (self.u64()?, self.u64()?, self.u32()?);
        let kind = self.u32()?;
        self.skip(8)?;
        let from = match (kind & FROM_CACHE != 0, kind & LOCK_OWNER != 0) {
            (true, _) => From::Cache,
            (false, true) => From::PastCache,
            (false, false) => From::Program,
        };
        let flags = self.u32()?;
        let is_by_program = from != From::Cache;
        let how = How {
            from,
            appends: is_by_program && flags & O_APPEND != 0,
            asks_server: is_by_program && flags & O_DIRECT != 0,
            kills_setid: kind & KILL_SETID != 0,
        };
        self.skip(4)?;
        self.skip(count as usize)?;
        Ok(Operation::Write { file, offset, count, how })
    }

    fn forgets(&mut self) -> Result<Forgets<'a>, Malformed> {
        let count = self.u32()? as usize;
        self.skip(4)?;
        self.take(count.saturating_mul(16)).map(Forgets)
    }

    fn init(&mut self) -> Result<Init, Malformed> {
        let (major, minor, max_readahead, low) =
            (self.u32()?, self.u32()?, self.u32()?, self.u32()?);
        // Only where FUSE_INIT_EXT says so.
        let high = if low & (1 << 30) == 0 { 0 } else { self.u32()? };
        Ok(Init { major, minor, max_readahead, flags: u64::from(high) << 32 | u64::from(low) })
    }

    fn lock(&mut self) -> Result<LockRequest, Malformed> {
        let (open, number, first, last) = (self.u64()?, self.u64()?, self.u64()?, self.u64()?);
        // F_RDLCK, F_WRLCK, and F_UNLCK.
        let kind = match self.u32()? {
            0 => Some(Kind::Shared),
            1 => Some(Kind::Exclusive),
            _ => None,
        };
        let pid = self.u32()?;
        let is_flock = self.u32()? & 1 != 0;
        self.skip(4)?;
        let (owner, range) = (Owner { number, is_flock }, Range { first, last });
        Ok(LockRequest { open, owner, kind, range, pid })
    }

    fn setattr(&mut self) -> Result<Setattr, Malformed> {
        let valid = self.u32()?;
        self.skip(4)?;
        let (file, size) = (self.u64()?, self.u64()?);
        self.skip(8)?;
        let (atime, mtime) = (self.i64()?, self.i64()?);
        self.skip(8)?;
        let (atime_nanos, mtime_nanos) = (self.u32()?, self.u32()?);
        self.skip(4)?;
        let mode = self.u32()?;
        self.skip(4)?;
        let (uid, gid) = (self.u32()?, self.u32()?);
        let file = (valid & fattr::FH != 0).then_some(file);
        Ok(Setattr { valid, file, size, atime, mtime, atime_nanos, mtime_nanos, mode, uid, gid })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A request's bytes.
    pub(crate) fn request(opcode: u32, node: u64, body: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        let length = u32::try_from(crate::abi::IN_HEADER_BYTES + body.len()).unwrap();
        bytes.extend(length.to_ne_bytes());
        bytes.extend(opcode.to_ne_bytes());
        bytes.extend(7u64.to_ne_bytes());
        bytes.extend(node.to_ne_bytes());
        [1000u32, 100, 4711, 0].iter().for_each(|n| bytes.extend(n.to_ne_bytes()));
        bytes.extend(body);
        bytes
    }

    #[test]
    fn a_rename_has_two_directories_and_two_names() {
        let mut body = 9u64.to_ne_bytes().to_vec();
        body.extend([1u32.to_ne_bytes(), [0; 4]].concat());
        body.extend(b"old\0new\0");
        let bytes = request(45, 5, &body);
        let (header, operation) = parse(&bytes).unwrap();
        assert_eq!((header.unique, header.node, header.uid, header.pid), (7, 5, 1000, 4711));
        let expected = Operation::Rename { name: b"old", new_dir: 9, new_name: b"new", flags: 1 };
        assert_eq!(operation, expected);
    }

    #[test]
    fn forgets_are_pairs() {
        let mut body = [2u32.to_ne_bytes(), [0; 4]].concat();
        [5u64, 1, 6, 3].iter().for_each(|n| body.extend(n.to_ne_bytes()));
        let bytes = request(42, 0, &body);
        let Ok((_, Operation::BatchForget(forgets))) = parse(&bytes) else { panic!() };
        assert_eq!(forgets.collect::<Vec<_>>(), [(5, 1), (6, 3)]);
    }

    #[test]
    fn any_bytes_are_a_request_or_not() {
        for opcode in 0..64 {
            let whole = request(opcode, 1, &[b'x'; 120]);
            let mut ended = whole.clone();
            *ended.last_mut().unwrap() = 0;
            for bytes in [whole, ended] {
                for length in 0..=bytes.len() {
                    if let Ok((_, Operation::BatchForget(forgets))) = parse(&bytes[..length]) {
                        assert!(forgets.count() <= bytes.len());
                    }
                }
            }
        }
    }

    #[test]
    fn a_write_needs_all_its_data() {
        let mut body = vec![0; 16];
        body.extend(5u32.to_ne_bytes());
        body.extend([0; 20]);
        let bytes = request(16, 1, &[body.as_slice(), b"12345"].concat());
        let Ok((_, Operation::Write { count: 5, how, .. })) = parse(&bytes) else { panic!() };
        assert_eq!(how.from, From::Program);
        assert!(parse(&bytes[..bytes.len() - 1]).is_err());
    }
}
