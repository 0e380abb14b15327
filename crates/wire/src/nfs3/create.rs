//! CREATE: a regular file (RFC 1813 section 3.3.8).

use crate::dissect::{Line, Show};
use crate::xdr::macros::xdr_struct;
use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Encode, Reader};

use super::{DirOp, Failure, NewObject, Sattr3, WccData};

xdr_struct! {
    /// `CREATE3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub where_: DirOp<'a>,
        pub how: CreateHow,
    }
}

/// What to do when the name exists (`createhow3`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum CreateHow {
    /// Take what is there.
    Unchecked(Sattr3),
    /// Fail with NFS3ERR_EXIST.
    Guarded(Sattr3),
    /// Fail, unless it was created with the same verifier: a retransmission of this call.
    Exclusive([u8; 8]),
}

/// `CREATE3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

/// `CREATE3resok`
pub type ReplyOk = NewObject;

/// `CREATE3resfail`: `dir_wcc`.
pub type ReplyFail = Failure<WccData>;

impl Encode for CreateHow {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::Unchecked(attributes) => {
                0u32.encode(out);
                attributes.encode(out);
            }
            Self::Guarded(attributes) => {
                1u32.encode(out);
                attributes.encode(out);
            }
            Self::Exclusive(verf) => {
                2u32.encode(out);
                verf.encode(out);
            }
        }
    }
}

impl Decode<'_> for CreateHow {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = r.at();
        match r.field("mode")? {
            0 => Ok(Self::Unchecked(r.field("obj_attributes")?)),
            1 => Ok(Self::Guarded(r.field("obj_attributes")?)),
            2 => Ok(Self::Exclusive(r.field("verf")?)),
            value => Err(DecodeErrorKind::BadEnum { value }.at(at)),
        }
    }
}

impl Show for CreateHow {
    fn show(&self, _name: &'static str, line: &mut Line) {
        match self {
            Self::Unchecked(attributes) => {
                line.word("UNCHECKED");
                attributes.show("", line);
            }
            Self::Guarded(attributes) => {
                line.word("GUARDED");
                attributes.show("", line);
            }
            Self::Exclusive(verf) => {
                line.word("EXCLUSIVE");
                verf.show("verf", line);
            }
        }
    }
}

#[cfg(test)]
impl crate::testing::Sample<'_> for CreateHow {
    fn sample(entropy: &mut crate::testing::Entropy<'_>) -> Self {
        let attributes = Sattr3::sample(entropy);
        let verf = entropy.array();
        *entropy.choose(&[
            Self::Unchecked(attributes),
            Self::Guarded(attributes),
            Self::Exclusive(verf),
        ])
    }
}
