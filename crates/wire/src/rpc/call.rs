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

impl CallHeader<'_> {
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
            Call::OtherVersion { version: value, .. } => Err(DecodeErrorKind::BadEnum { value }
                .at(at + 8)
                .in_field("rpcvers")),
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
