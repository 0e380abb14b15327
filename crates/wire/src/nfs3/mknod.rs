//! MKNOD: a device, socket or named pipe (RFC 1813 section 3.3.11).

use crate::show::{Line, Show};
use crate::xdr::macros::xdr_struct;
use crate::xdr::{Decode, DecodeError, Encode, Reader};

use super::{DirOp, FType, Sattr3, Specdata};

xdr_struct! {
    /// `MKNOD3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub what: MknodData,
    }
}

/// What to make (`mknoddata3`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum MknodData {
    Chr(DeviceData),
    Blk(DeviceData),
    Sock(Sattr3),
    Fifo(Sattr3),
    /// To be answered with NFS3ERR_BADTYPE, as the next two: CREATE, MKDIR and SYMLINK make these.
    Reg,
    Dir,
    Lnk,
}

xdr_struct! {
    /// `devicedata3`
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub struct DeviceData {
        pub dev_attributes: Sattr3,
        pub spec: Specdata,
    }
}

/// `MKNOD3res` has the fields of that of CREATE.
pub use super::create::{Reply, ReplyFail, ReplyOk};

impl MknodData {
    /// The type of the object to make.
    pub const fn ftype(&self) -> FType {
        match self {
            Self::Chr(_) => FType::Chr,
            Self::Blk(_) => FType::Blk,
            Self::Sock(_) => FType::Sock,
            Self::Fifo(_) => FType::Fifo,
            Self::Reg => FType::Reg,
            Self::Dir => FType::Dir,
            Self::Lnk => FType::Lnk,
        }
    }
}

impl Encode for MknodData {
    fn encode(&self, out: &mut Vec<u8>) {
        self.ftype().encode(out);
        match self {
            Self::Chr(device) | Self::Blk(device) => device.encode(out),
            Self::Sock(pipe_attributes) | Self::Fifo(pipe_attributes) => {
                pipe_attributes.encode(out);
            }
            Self::Reg | Self::Dir | Self::Lnk => {}
        }
    }
}

impl Decode<'_> for MknodData {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        match r.field("type")? {
            FType::Chr => Ok(Self::Chr(r.field("device")?)),
            FType::Blk => Ok(Self::Blk(r.field("device")?)),
            FType::Sock => Ok(Self::Sock(r.field("pipe_attributes")?)),
            FType::Fifo => Ok(Self::Fifo(r.field("pipe_attributes")?)),
            FType::Reg => Ok(Self::Reg),
            FType::Dir => Ok(Self::Dir),
            FType::Lnk => Ok(Self::Lnk),
        }
    }
}

impl Show for MknodData {
    fn show(&self, _name: &'static str, line: &mut Line) {
        line.word(self.ftype());
        match self {
            Self::Chr(device) | Self::Blk(device) => device.show("", line),
            Self::Sock(attributes) | Self::Fifo(attributes) => attributes.show("", line),
            Self::Reg | Self::Dir | Self::Lnk => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::{NfsStat3, SetTime};
    use crate::testing::{FOO, NEW, WCC, golden};
    use crate::xdr::from_bytes;

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # where.dir
        00000003 666f6f 00           # where.name: foo
        00000004                     # what: NF3CHR
        00000001 000001a4            # mode: 0644
        00000000 00000000 00000000   # uid, gid, size: unchanged
        00000000 00000000            # atime, mtime: unchanged
        00000001 00000003            # spec: 1, 3 (/dev/null)
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        NEW                          # obj, obj_attributes, dir_wcc
    ";
    pub(crate) const FAIL: &str = "
        00002717                     # status: NFS3ERR_BADTYPE (10007)
        WCC                          # dir_wcc
    ";

    const DEVICE: DeviceData = DeviceData {
        dev_attributes: Sattr3 {
            mode: Some(0o644),
            uid: None,
            gid: None,
            size: None,
            atime: SetTime::DontChange,
            mtime: SetTime::DontChange,
        },
        spec: Specdata { specdata1: 1, specdata2: 3 },
    };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { where_: FOO, what: MknodData::Chr(DEVICE) };
        golden(ARGS, args);
        golden::<Reply>(OK, Ok(NEW));
        let failure = ReplyFail { status: NfsStat3::BadType, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }

    #[test]
    fn types_that_other_procedures_make_carry_nothing_and_unlisted_ones_are_garbage() {
        golden("00000001", MknodData::Reg);
        golden("00000002", MknodData::Dir);
        golden("00000005", MknodData::Lnk);
        let error = from_bytes::<MknodData>(&[0, 0, 0, 8]).unwrap_err();
        assert_eq!(error.to_string(), "type at byte 0: 8 is not one of the listed values");
    }
}
