//! For the tests of this crate: golden bytes as text, and random values of every message type.

use std::fmt::Debug;

use crate::nfs2::{self, FHandle, Fattr2, Timeval};
use crate::nfs3::{DirOp, FType, Fattr3, FileHandle, NewObject, NfsTime, Specdata};
use crate::nfs3::{WccAttr, WccData};
use crate::xdr::{Bulk, Decode, Encode, List, from_bytes, padding};

mod differential;
mod messages;
mod properties;
mod samples;
mod seeds;

/// `ATTR` in golden text; its bytes are checked in `nfs3/types.rs`.
pub(crate) const ATTR: Fattr3 = Fattr3 {
    ftype: FType::Reg,
    mode: 0o644,
    nlink: 1,
    uid: 1000,
    gid: 100,
    size: 8192,
    used: 12_288,
    rdev: Specdata { specdata1: 0, specdata2: 0 },
    fsid: 0xfd01,
    fileid: 42,
    atime: time(0, 1),
    mtime: time(1, 2),
    ctime: time(2, 3),
};
const ATTR_TEXT: &str = "
    00000001 000001a4 00000001   # type: NF3REG, mode: 0644, nlink
    000003e8 00000064            # uid: 1000, gid: 100
    00000000 00002000            # size: 8192
    00000000 00003000            # used: 12288
    00000000 00000000            # rdev
    00000000 0000fd01            # fsid
    00000000 0000002a            # fileid: 42
    6553f100 00000001            # atime: 1700000000
    6553f101 00000002            # mtime
    6553f102 00000003            # ctime
";

/// `WCC` in golden text: both sides are there.
pub(crate) const WCC: WccData = WccData {
    before: Some(WccAttr { size: 4096, mtime: time(0, 0), ctime: time(1, 0) }),
    after: Some(ATTR),
};
const WCC_TEXT: &str = "
    00000001                     # before: present
    00000000 00001000            # size: 4096
    6553f100 00000000            # mtime
    6553f101 00000000            # ctime
    00000001 ATTR                # after
";

/// In golden text: `00000005 a1a2a3a4 a5000000`.
pub(crate) const FH: FileHandle = FileHandle::new(&[0xa1, 0xa2, 0xa3, 0xa4, 0xa5]).unwrap();

/// In golden text: the handle above, then `00000003 666f6f 00`.
pub(crate) const FOO: DirOp<'static> = DirOp { dir: FH, name: b"foo" };

/// `NEW` in golden text: everything is there.
pub(crate) const NEW: NewObject =
    NewObject { obj: Some(FH), obj_attributes: Some(ATTR), dir_wcc: WCC };

const NEW_TEXT: &str = "
    00000001                     # obj: present
    00000005 a1a2a3a4 a5000000
    00000001 ATTR                # obj_attributes
    WCC                          # dir_wcc
";

/// `ATTR2` in golden text; its bytes are checked in `nfs2/types.rs`.
pub(crate) const ATTR2: Fattr2 = Fattr2 {
    ftype: nfs2::FType::Reg,
    mode: 0o100_644,
    nlink: 1,
    uid: 1000,
    gid: 100,
    size: 8192,
    blocksize: 4096,
    rdev: 0,
    blocks: 24,
    fsid: 0xfd01,
    fileid: 42,
    atime: Timeval { seconds: 1_700_000_000, useconds: 1 },
    mtime: Timeval { seconds: 1_700_000_001, useconds: 2 },
    ctime: Timeval { seconds: 1_700_000_002, useconds: 3 },
};
const ATTR2_TEXT: &str = "
    00000001 000081a4 00000001   # type: NFREG, mode: regular, 0644, nlink
    000003e8 00000064            # uid: 1000, gid: 100
    00002000 00001000            # size: 8192, blocksize: 4096
    00000000 00000018            # rdev, blocks: 24
    0000fd01 0000002a            # fsid, fileid: 42
    6553f100 00000001            # atime: 1700000000
    6553f101 00000002            # mtime
    6553f102 00000003            # ctime
";

/// `FH2` in golden text.
pub(crate) const FH2: FHandle = {
    let mut bytes = [0; nfs2::HANDLE_LEN];
    bytes.split_at_mut(5).0.copy_from_slice(&[0xa1, 0xa2, 0xa3, 0xa4, 0xa5]);
    FHandle(bytes)
};
const FH2_TEXT: &str = "
    a1a2a3a4 a5000000 00000000 00000000 00000000 00000000 00000000 00000000
";

/// In golden text: `FH2`, then `00000003 666f6f 00`.
pub(crate) const FOO2: nfs2::DirOp<'static> = nfs2::DirOp { dir: FH2, name: b"foo" };

pub(crate) const VERF: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

const fn time(after: u32, nseconds: u32) -> NfsTime {
    NfsTime { seconds: 1_700_000_000 + after, nseconds }
}

/// The bytes of golden text: hexadecimal digits, and names of what is above; `#` begins a
/// comment.
///
/// Leaked, so that tests need not care how long borrowed messages live.
pub(crate) fn bytes_of(text: &str) -> &'static [u8] {
    let mut bytes = Vec::new();
    let words =
        text.lines().map(|line| line.split('#').next().unwrap()).flat_map(str::split_whitespace);
    for word in words {
        match word {
            "ATTR" => bytes.extend_from_slice(bytes_of(ATTR_TEXT)),
            "WCC" => bytes.extend_from_slice(bytes_of(WCC_TEXT)),
            "NEW" => bytes.extend_from_slice(bytes_of(NEW_TEXT)),
            "ATTR2" => bytes.extend_from_slice(bytes_of(ATTR2_TEXT)),
            "FH2" => bytes.extend_from_slice(bytes_of(FH2_TEXT)),
            digits => bytes.extend((0..digits.len()).step_by(2).map(|at| {
                u8::from_str_radix(&digits[at..at + 2], 16).expect("pairs of hexadecimal digits")
            })),
        }
    }
    bytes.leak()
}

/// Checks that `value` encodes to the golden bytes, and that they decode to `value`.
#[track_caller]
pub(crate) fn golden<T>(text: &str, value: T)
where
    T: Debug + Decode<'static> + Encode + PartialEq,
{
    let bytes = bytes_of(text);
    assert_eq!(value.to_bytes(), bytes, "encoding {value:?}");
    assert_eq!(from_bytes(bytes), Ok(value));
}

/// Checks that head, payload and padding together are the encoding.
#[track_caller]
pub(crate) fn assert_bulk(message: &impl Bulk) {
    let mut pieces = Vec::new();
    message.encode_head(&mut pieces);
    pieces.extend_from_slice(message.payload());
    pieces.extend_from_slice(padding(message.payload().len()));
    assert_eq!(pieces, message.to_bytes());
}

/// Where random values draw from: bytes that a property test makes and shrinks. Beyond their end
/// there are zeros, so that every value can be made and short inputs make simple values.
pub(crate) struct Entropy<'a> {
    bytes: &'a [u8],
}

impl<'a> Entropy<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes }
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        let mut array = [0; N];
        let taken = self.take(N);
        array[..taken.len()].copy_from_slice(taken);
        array
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }

    pub(crate) fn flag(&mut self) -> bool {
        self.array::<1>()[0] & 1 == 1
    }

    pub(crate) fn choose<'c, T>(&mut self, choices: &'c [T]) -> &'c T {
        &choices[usize::from(self.array::<1>()[0]) % choices.len()]
    }

    /// Mostly short opaques of every remainder modulo four.
    pub(crate) fn bytes(&mut self, len_max: usize) -> &'a [u8] {
        let len = usize::from(self.array::<1>()[0]) % 72;
        self.take(len.min(len_max))
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.bytes.split_at(len.min(self.bytes.len()));
        self.bytes = rest;
        taken
    }
}

/// A random value.
pub(crate) trait Sample<'a>: Sized {
    fn sample(entropy: &mut Entropy<'a>) -> Self;
}

impl Sample<'_> for () {
    fn sample(_entropy: &mut Entropy<'_>) -> Self {}
}

impl Sample<'_> for u32 {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.u32()
    }
}

impl Sample<'_> for u64 {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.u64()
    }
}

impl Sample<'_> for bool {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.flag()
    }
}

impl<const N: usize> Sample<'_> for [u8; N] {
    fn sample(entropy: &mut Entropy<'_>) -> Self {
        entropy.array()
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for Option<T> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        entropy.flag().then(|| T::sample(entropy))
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for Vec<T> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        let count = entropy.array::<1>()[0] % 4;
        (0..count).map(|_| T::sample(entropy)).collect()
    }
}

impl<'a, T: Sample<'a>> Sample<'a> for List<T> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        Self(Vec::sample(entropy))
    }
}

impl<'a, T: Sample<'a>, F: Sample<'a>> Sample<'a> for Result<T, F> {
    fn sample(entropy: &mut Entropy<'a>) -> Self {
        match entropy.flag() {
            true => Ok(T::sample(entropy)),
            false => Err(F::sample(entropy)),
        }
    }
}
