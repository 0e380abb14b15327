//! MKNOD: a device, socket or named pipe (RFC 1813 section 3.3.11).

use crate::dissect::{Line, Show};
use crate::xdr::macros::xdr_struct;
use crate::xdr::{Decode, DecodeError, Encode, Reader};

use super::{DirOp, FType, Failure, NewObject, Sattr3, Specdata, WccData};

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

/// `MKNOD3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

/// `MKNOD3resok`
pub type ReplyOk = NewObject;

/// `MKNOD3resfail`: `dir_wcc`.
pub type ReplyFail = Failure<WccData>;

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
impl crate::testing::Sample<'_> for MknodData {
    fn sample(entropy: &mut crate::testing::Entropy<'_>) -> Self {
        let device = DeviceData::sample(entropy);
        *entropy.choose(&[
            Self::Chr(device),
            Self::Blk(device),
            Self::Sock(device.dev_attributes),
            Self::Fifo(device.dev_attributes),
            Self::Reg,
            Self::Dir,
            Self::Lnk,
        ])
    }
}
