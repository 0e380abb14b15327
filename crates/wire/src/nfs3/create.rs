//! CREATE: a regular file (RFC 1813 section 3.3.8).

use crate::show::{Line, Show};
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
            value => Err(DecodeErrorKind::BadEnum { value }.at(at).in_field("mode")),
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
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FOO, NEW, VERF, WCC, golden};
    use crate::xdr::from_bytes;

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # where.dir
        00000003 666f6f 00           # where.name: foo
        00000002                     # how: EXCLUSIVE
        0102030405060708             # verf
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        NEW                          # obj, obj_attributes, dir_wcc
    ";
    pub(crate) const FAIL: &str = "
        00000011                     # status: NFS3ERR_EXIST (17)
        WCC                          # dir_wcc
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { where_: FOO, how: CreateHow::Exclusive(VERF) };
        golden(ARGS, args);
        golden::<Reply>(OK, Ok(NEW));
        let failure = ReplyFail { status: NfsStat3::Exist, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }

    #[test]
    fn the_other_two_modes_carry_attributes() {
        let attributes = "
            00000001 000001a4        # mode: 0644
            00000000 00000000        # uid, gid: unchanged
            00000000                 # size: unchanged
            00000000 00000000        # atime, mtime: unchanged
        ";
        let mode = Sattr3::of_mode(0o644);
        golden(&format!("00000000 {attributes}"), CreateHow::Unchecked(mode));
        golden(&format!("00000001 {attributes}"), CreateHow::Guarded(mode));
        let error = from_bytes::<CreateHow>(&[0, 0, 0, 3]).unwrap_err();
        assert_eq!(error.to_string(), "mode at byte 0: 3 is not one of the listed values");
    }
}
