//! What several procedures share (RFC 1813 sections 2.5 and 2.6).

use std::fmt;

use crate::show::{Line, Show};
use crate::xdr::macros::{xdr_codec, xdr_enum, xdr_struct};
use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Encode, Reader};

use super::{FileHandle, NAME_LEN_MAX};

xdr_enum! {
    /// The type of a file (`ftype3`).
    pub enum FType {
        Reg = 1 "REG",
        Dir = 2 "DIR",
        Blk = 3 "BLK",
        Chr = 4 "CHR",
        Lnk = 5 "LNK",
        Sock = 6 "SOCK",
        Fifo = 7 "FIFO",
    }
}

xdr_enum! {
    /// What a WRITE leaves on stable storage (`stable_how`).
    #[derive(Ord, PartialOrd)]
    pub enum StableHow {
        /// Perhaps nothing yet: a COMMIT must follow.
        Unstable = 0 "UNSTABLE",
        /// The data, and the attributes needed to find it.
        DataSync = 1 "DATA_SYNC",
        /// The data and all attributes.
        FileSync = 2 "FILE_SYNC",
    }
}

xdr_codec! {
    /// A time since 1970, UTC (`nfstime3`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, Ord, PartialEq, PartialOrd)]
    pub struct NfsTime {
        pub seconds: u32,
        pub nseconds: u32,
    }
}

impl fmt::Display for NfsTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:09}", self.seconds, self.nseconds)
    }
}

impl Show for NfsTime {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, self);
    }
}

xdr_codec! {
    /// Major and minor number of a device (`specdata3`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Specdata {
        pub specdata1: u32,
        pub specdata2: u32,
    }
}

impl Show for Specdata {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, format_args!("{}:{}", self.specdata1, self.specdata2));
    }
}

xdr_codec! {
    /// The attributes of a file (`fattr3`).
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct Fattr3 {
        pub ftype: FType,
        /// Permission bits, without the type.
        pub mode: u32,
        pub nlink: u32,
        pub uid: u32,
        pub gid: u32,
        /// Bytes in the file.
        pub size: u64,
        /// Bytes of disk space it takes.
        pub used: u64,
        pub rdev: Specdata,
        pub fsid: u64,
        pub fileid: u64,
        pub atime: NfsTime,
        pub mtime: NfsTime,
        pub ctime: NfsTime,
    }
}

impl Fattr3 {
    /// Bytes on the wire.
    pub const LEN: usize = 84;

    /// A regular file of root's with one name, whose times are all the same; what else it has is
    /// put over it.
    pub const fn of_file(size: u64, time: NfsTime) -> Self {
        Self {
            ftype: FType::Reg,
            mode: 0o644,
            nlink: 1,
            uid: 0,
            gid: 0,
            size,
            used: size,
            rdev: Specdata { specdata1: 0, specdata2: 0 },
            fsid: 0,
            fileid: 1,
            atime: time,
            mtime: time,
            ctime: time,
        }
    }
}

impl Show for Fattr3 {
    /// Type, mode and size: `REG/0644/8192`.
    fn show(&self, name: &'static str, line: &mut Line) {
        let Self { ftype, mode, size, .. } = self;
        line.field(name, format_args!("{ftype}/{mode:04o}/{size}"));
    }
}

/// Attributes after an operation, if the server has them at hand (`post_op_attr`).
pub type PostOpAttr = Option<Fattr3>;

/// The handle of a new object, if the server has it at hand (`post_op_fh3`).
pub type PostOpFh = Option<FileHandle>;

xdr_codec! {
    /// What identifies the state of a file before an operation (`wcc_attr`).
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct WccAttr {
        pub size: u64,
        pub mtime: NfsTime,
        pub ctime: NfsTime,
    }
}

impl From<&Fattr3> for WccAttr {
    fn from(attr: &Fattr3) -> Self {
        Self { size: attr.size, mtime: attr.mtime, ctime: attr.ctime }
    }
}

impl Show for WccAttr {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, format_args!("{}@{}", self.size, self.mtime));
    }
}

xdr_codec! {
    /// A file before and after an operation (`wcc_data`): whether a cache that knew the state
    /// before may keep what it has. Before is known only if no one else could come between.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct WccData {
        pub before: Option<WccAttr>,
        pub after: PostOpAttr,
    }
}

impl WccData {
    /// Most bytes on the wire: both sides are there.
    pub const LEN_MAX: usize = 4 + 24 + 4 + Fattr3::LEN;
}

impl Show for WccData {
    /// The attributes after; nothing when they are absent.
    fn show(&self, name: &'static str, line: &mut Line) {
        self.after.show(name, line);
    }
}

/// How a time stamp is to be set (`set_atime`, `set_mtime`).
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum SetTime {
    #[default]
    DontChange,
    /// To the server's clock.
    ServerTime,
    /// To a time the client gives.
    ClientTime(NfsTime),
}

impl Encode for SetTime {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::DontChange => 0u32.encode(out),
            Self::ServerTime => 1u32.encode(out),
            Self::ClientTime(time) => {
                2u32.encode(out);
                time.encode(out);
            }
        }
    }
}

impl Decode<'_> for SetTime {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = r.at();
        match r.u32()? {
            0 => Ok(Self::DontChange),
            1 => Ok(Self::ServerTime),
            2 => NfsTime::decode(r).map(Self::ClientTime),
            value => Err(DecodeErrorKind::BadEnum { value }.at(at)),
        }
    }
}

impl Show for SetTime {
    fn show(&self, name: &'static str, line: &mut Line) {
        match self {
            Self::DontChange => {}
            Self::ServerTime => line.field(name, "server"),
            Self::ClientTime(time) => time.show(name, line),
        }
    }
}

xdr_struct! {
    /// The attributes a client may set (`sattr3`); those that are absent stay as they are.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub struct Sattr3 {
        pub mode: Option<u32>,
        pub uid: Option<u32>,
        pub gid: Option<u32>,
        pub size: Option<u64>,
        pub atime: SetTime,
        pub mtime: SetTime,
    }
}

impl Sattr3 {
    /// The mode alone.
    pub fn of_mode(mode: u32) -> Self {
        Self { mode: Some(mode), ..Self::default() }
    }
}

xdr_struct! {
    /// A name in a directory (`diropargs3`).
    #[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
    pub struct DirOp<'a> {
        pub dir: FileHandle,
        pub name: &'a [u8] where len <= NAME_LEN_MAX,
    }
}

xdr_struct! {
    /// What CREATE, MKDIR, SYMLINK and MKNOD return alike.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct NewObject {
        /// The handle; without it the client has to LOOKUP.
        pub obj: PostOpFh,
        pub obj_attributes: PostOpAttr,
        pub dir_wcc: WccData,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{ATTR, NEW, WCC, golden};
    use crate::xdr::from_bytes;

    #[test]
    fn shared_structures_have_the_bytes_of_the_rfc() {
        golden("ATTR", ATTR);
        golden("WCC", WCC);
        golden("NEW", NEW);
        assert_eq!(ATTR.to_bytes().len(), Fattr3::LEN);
        assert_eq!(WCC.to_bytes().len(), WccData::LEN_MAX);
    }

    #[test]
    fn unlisted_types_and_times_are_errors_that_name_the_field() {
        let mut bytes = ATTR.to_bytes();
        bytes[3] = 8;
        let error = from_bytes::<Fattr3>(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "ftype at byte 0: 8 is not one of the listed values");
        let mut bytes = Sattr3::default().to_bytes();
        bytes[23] = 3;
        let error = from_bytes::<Sattr3>(&bytes).unwrap_err();
        assert_eq!(error.to_string(), "mtime at byte 20: 3 is not one of the listed values");
    }
}
