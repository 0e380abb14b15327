//! The header of a call (RFC 5531 section 9, `call_body`).

use crate::Procedure;
use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Encode, Reader};

use super::{MessageType, OpaqueAuth, VERSION, decode_start};

/// What stands before the arguments. The arguments are the rest of the reader.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct CallHeader<'a> {
    /// Transaction id: the reply carries the same.
    pub xid: u32,
    pub program: u32,
    pub version: u32,
    /// Number of the procedure; see [`Self::procedure()`].
    pub procedure: u32,
    pub credential: OpaqueAuth<'a>,
    pub verifier: OpaqueAuth<'a>,
}

/// A call as a server meets it: of our RPC version, or of one we can only refuse.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call<'a> {
    Version2(CallHeader<'a>),
    /// To be answered with RPC_MISMATCH. What follows cannot be read.
    OtherVersion {
        xid: u32,
        version: u32,
    },
}

impl<'a> CallHeader<'a> {
    /// A call of `procedure` with an empty verifier.
    pub const fn new(xid: u32, procedure: Procedure, credential: OpaqueAuth<'a>) -> Self {
        let (program, version, procedure) = procedure.numbers();
        Self { xid, program, version, procedure, credential, verifier: OpaqueAuth::NONE }
    }

    /// What is called, by name where it is known.
    pub fn procedure(&self) -> Procedure {
        Procedure::of(self.program, self.version, self.procedure)
    }
}

impl Encode for CallHeader<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.xid.encode(out);
        MessageType::Call.encode(out);
        VERSION.encode(out);
        self.program.encode(out);
        self.version.encode(out);
        self.procedure.encode(out);
        self.credential.encode(out);
        self.verifier.encode(out);
    }
}

impl<'a> Decode<'a> for CallHeader<'a> {
    /// Fails on another RPC version; a server decodes [`Call`] instead.
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let at = r.at();
        match Call::decode(r)? {
            Call::Version2(header) => Ok(header),
            Call::OtherVersion { version: value, .. } => {
                Err(DecodeErrorKind::BadEnum { value }.at(at + 8).in_field("rpcvers"))
            }
        }
    }
}

impl<'a> Decode<'a> for Call<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = decode_start(r, MessageType::Call)?;
        match r.field("rpcvers")? {
            VERSION => Ok(Self::Version2(CallHeader {
                xid,
                program: r.field("prog")?,
                version: r.field("vers")?,
                procedure: r.field("proc")?,
                credential: r.field("cred")?,
                verifier: r.field("verf")?,
            })),
            version => Ok(Self::OtherVersion { xid, version }),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3;
    use crate::testing::{bytes_of, golden};
    use crate::xdr::from_bytes;

    /// The header of an NFS version 3 WRITE.
    pub(crate) const HEADER: &str = "
        0000001a                     # xid
        00000000                     # mtype: CALL
        00000002                     # rpcvers
        000186a3 00000003 00000007   # prog: NFS, vers, proc: WRITE
        00000001 00000014            # cred: AUTH_SYS, 20 bytes
        00000000 00000000            # stamp, machinename
        00000000 00000000 00000000   # uid, gid, gids
        00000000 00000000            # verf: AUTH_NONE
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let write = Procedure::Nfs3(nfs3::Procedure::Write);
        let header = CallHeader::new(0x1a, write, OpaqueAuth::sys(&[0; 20]));
        golden(HEADER, header);
        assert_eq!(header.procedure(), write);
    }

    #[test]
    fn a_call_of_another_rpc_version_still_gives_its_xid() {
        let bytes = bytes_of("0000001a 00000000 00000003 ffffffff");
        let call = Call::decode(&mut Reader::new(bytes)).unwrap();
        let expected = Call::OtherVersion { xid: 0x1a, version: 3 };
        assert_eq!(call, expected);
        let error = from_bytes::<CallHeader<'_>>(bytes).unwrap_err();
        assert_eq!(error.to_string(), "rpcvers at byte 8: 3 is not one of the listed values");
    }

    #[test]
    fn a_reply_is_not_a_call() {
        let error = from_bytes::<Call<'_>>(bytes_of("0000001a 00000001")).unwrap_err();
        assert_eq!(error.to_string(), "mtype at byte 4: 1 is not one of the listed values");
    }
}
