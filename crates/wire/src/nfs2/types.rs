//! Types that several procedures share (RFC 1094 section 2.3).

use std::fmt;

use crate::show::{Line, Show};
use crate::xdr::macros::{xdr_codec, xdr_enum, xdr_struct};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

use super::{FHandle, NAME_LEN_MAX, NfsStat2};

/// Where in a mode the type of the file is.
pub const MODE_TYPE_MASK: u32 = 0o170_000;

/// [`Fattr2::rdev`] of a named pipe, which is sent as a character device (practice of SunOS and
/// everybody since; the RFC has no type for it). In a CREATE the same number is its "size".
pub const RDEV_FIFO: u32 = u32::MAX;

/// [`Timeval::useconds`] of a SETATTR that asks for the server's time (practice of SunOS).
pub const USECONDS_SERVER_TIME: u32 = 1_000_000;

/// What no field of [`Sattr2`] is set to: it stays as it is.
const UNCHANGED: u32 = u32::MAX;

/// The types of files as they stand in a mode ([`MODE_TYPE_MASK`]).
pub mod mode_type {
    pub const FIFO: u32 = 0o010_000;
    pub const CHR: u32 = 0o020_000;
    pub const DIR: u32 = 0o040_000;
    pub const BLK: u32 = 0o060_000;
    pub const REG: u32 = 0o100_000;
    pub const LNK: u32 = 0o120_000;
    pub const SOCK: u32 = 0o140_000;
}

xdr_enum! {
    /// The type of a file (`ftype`). The last three are not in the RFC, but some servers send
    /// them; the type in the mode says the same.
    pub enum FType {
        Non = 0 "NON",
        Reg = 1 "REG",
        Dir = 2 "DIR",
        Blk = 3 "BLK",
        Chr = 4 "CHR",
        Lnk = 5 "LNK",
        Sock = 6 "SOCK",
        Bad = 7 "BAD",
        Fifo = 8 "FIFO",
    }
}

xdr_codec! {
    /// A time since 1970, UTC (`timeval`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
    pub struct Timeval {
        pub seconds: u32,
        pub useconds: u32,
    }
}

impl fmt::Display for Timeval {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.seconds, self.useconds)
    }
}

impl Show for Timeval {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, self);
    }
}

xdr_codec! {
    /// The attributes of a file (`fattr`).
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct Fattr2 {
        pub ftype: FType,
        /// Type and permission bits.
        pub mode: u32,
        pub nlink: u32,
        pub uid: u32,
        pub gid: u32,
        /// Bytes in the file.
        pub size: u32,
        /// Bytes in a block of the disk.
        pub blocksize: u32,
        pub rdev: u32,
        /// Blocks of 512 bytes it takes.
        pub blocks: u32,
        pub fsid: u32,
        pub fileid: u32,
        pub atime: Timeval,
        pub mtime: Timeval,
        pub ctime: Timeval,
    }
}

impl Fattr2 {
    /// Bytes on the wire.
    pub const LEN: usize = 68;
}

impl Show for Fattr2 {
    /// Type, mode and size: `REG/0644/8192`.
    fn show(&self, name: &'static str, line: &mut Line) {
        let Self { ftype, mode, size, .. } = self;
        line.field(name, format_args!("{ftype}/{:04o}/{size}", mode & !MODE_TYPE_MASK));
    }
}

/// The attributes a client may set (`sattr`); those that are absent, -1 on the wire, stay as they
/// are. A time of which either half is -1 is absent.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub struct Sattr2 {
    pub mode: Option<u32>,
    pub uid: Option<u32>,
    pub gid: Option<u32>,
    pub size: Option<u32>,
    pub atime: Option<Timeval>,
    pub mtime: Option<Timeval>,
}

impl Encode for Sattr2 {
    fn encode(&self, out: &mut Vec<u8>) {
        for number in [self.mode, self.uid, self.gid, self.size] {
            number.unwrap_or(UNCHANGED).encode(out);
        }
        for time in [self.atime, self.mtime] {
            let absent = Timeval { seconds: UNCHANGED, useconds: UNCHANGED };
            time.unwrap_or(absent).encode(out);
        }
    }
}

impl Decode<'_> for Sattr2 {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let mut number = |name| r.field(name).map(settable);
        let (mode, uid) = (number("mode")?, number("uid")?);
        let (gid, size) = (number("gid")?, number("size")?);
        let mut time = |name| r.field(name).map(settable_time);
        let (atime, mtime) = (time("atime")?, time("mtime")?);
        Ok(Self { mode, uid, gid, size, atime, mtime })
    }
}

fn settable(number: u32) -> Option<u32> {
    (number != UNCHANGED).then_some(number)
}

fn settable_time(time: Timeval) -> Option<Timeval> {
    (time.seconds != UNCHANGED && time.useconds != UNCHANGED).then_some(time)
}

impl Show for Sattr2 {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.mode.show("mode", line);
        self.uid.show("uid", line);
        self.gid.show("gid", line);
        self.size.show("size", line);
        self.atime.show("atime", line);
        self.mtime.show("mtime", line);
    }
}

xdr_struct! {
    /// A name in a directory (`diropargs`).
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct DirOp<'a> {
        pub dir: FHandle,
        pub name: &'a [u8] where len <= NAME_LEN_MAX,
    }
}

/// Attributes, or why there are none (`attrstat`).
pub type AttrStat = Result<Fattr2, NfsStat2>;

/// What LOOKUP, CREATE and MKDIR return alike (`diropres`).
pub type DirOpRes = Result<DirOpOk, NfsStat2>;

xdr_struct! {
    /// A file and its attributes.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct DirOpOk {
        pub file: FHandle,
        pub attributes: Fattr2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ATTR2, golden};
    use crate::xdr::from_bytes;

    #[test]
    fn attributes_have_the_bytes_of_the_rfc() {
        golden("ATTR2", ATTR2);
        assert_eq!(ATTR2.to_bytes().len(), Fattr2::LEN);
        let mut bytes = ATTR2.to_bytes();
        bytes[3] = 9;
        let error = from_bytes::<Fattr2>(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "ftype at byte 0: 9 is not one of the listed values");
    }

    #[test]
    fn minus_one_sets_nothing() {
        golden(&"ff".repeat(32), Sattr2::default());
        let mut bytes = Sattr2::default().to_bytes();
        bytes[16..20].copy_from_slice(&[0; 4]); // seconds of atime, without its useconds
        assert_eq!(from_bytes(&bytes), Ok(Sattr2::default()));
        bytes[20..24].copy_from_slice(&[0; 4]);
        let epoch = Sattr2 { atime: Some(Timeval::default()), ..Sattr2::default() };
        assert_eq!(from_bytes(&bytes), Ok(epoch));
    }
}
