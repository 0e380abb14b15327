//! The header of a reply (RFC 5531 section 9, `reply_body`).

use std::fmt;

use crate::xdr::{Decode, DecodeError, DecodeErrorKind, Encode, Reader};

use super::{AuthStat, MessageType, OpaqueAuth, ReplyStat, VERSION, decode_start, decode_versions};

/// What stands before the results, which follow only after [`AcceptStatus::Success`].
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ReplyHeader<'a> {
    /// Transaction id of the call.
    pub xid: u32,
    pub body: ReplyBody<'a>,
}

/// Whether the call was accepted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum ReplyBody<'a> {
    Accepted { verifier: OpaqueAuth<'a>, status: AcceptStatus },
    Denied(RejectStatus),
}

/// What became of an accepted call (`accept_stat`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum AcceptStatus {
    /// The results follow.
    Success,
    /// The program is not served here.
    ProgUnavail,
    /// The program is served, in the versions from `low` to `high`.
    ProgMismatch { low: u32, high: u32 },
    /// The program has no such procedure.
    ProcUnavail,
    /// The arguments could not be decoded.
    GarbageArgs,
    /// Something else, such as a lack of memory.
    SystemErr,
}

/// Why a call was not accepted (`reject_stat`).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum RejectStatus {
    /// The RPC versions from `low` to `high` are spoken.
    RpcMismatch {
        low: u32,
        high: u32,
    },
    AuthError(AuthStat),
}

impl ReplyHeader<'_> {
    /// The header before results.
    pub const fn success(xid: u32) -> Self {
        Self::accepted(xid, AcceptStatus::Success)
    }

    /// An accepted call, with an empty verifier.
    pub const fn accepted(xid: u32, status: AcceptStatus) -> Self {
        Self { xid, body: ReplyBody::Accepted { verifier: OpaqueAuth::NONE, status } }
    }

    /// The whole answer to a call of another RPC version.
    pub const fn rpc_mismatch(xid: u32) -> Self {
        Self {
            xid,
            body: ReplyBody::Denied(RejectStatus::RpcMismatch { low: VERSION, high: VERSION }),
        }
    }

    /// The whole answer to a call whose credential is refused.
    pub const fn auth_error(xid: u32, why: AuthStat) -> Self {
        Self { xid, body: ReplyBody::Denied(RejectStatus::AuthError(why)) }
    }
}

impl Encode for ReplyHeader<'_> {
    fn encode(&self, out: &mut Vec<u8>) {
        self.xid.encode(out);
        MessageType::Reply.encode(out);
        match self.body {
            ReplyBody::Accepted { verifier, status } => {
                ReplyStat::Accepted.encode(out);
                verifier.encode(out);
                status.encode(out);
            }
            ReplyBody::Denied(status) => {
                ReplyStat::Denied.encode(out);
                status.encode(out);
            }
        }
    }
}

impl<'a> Decode<'a> for ReplyHeader<'a> {
    fn decode(r: &mut Reader<'a>) -> Result<Self, DecodeError> {
        let xid = decode_start(r, MessageType::Reply)?;
        let body = match r.field("reply_stat")? {
            ReplyStat::Accepted => {
                ReplyBody::Accepted { verifier: r.field("verf")?, status: r.field("accept_stat")? }
            }
            ReplyStat::Denied => ReplyBody::Denied(r.field("reject_stat")?),
        };
        Ok(Self { xid, body })
    }
}

impl AcceptStatus {
    const fn code(self) -> u32 {
        match self {
            Self::Success => 0,
            Self::ProgUnavail => 1,
            Self::ProgMismatch { .. } => 2,
            Self::ProcUnavail => 3,
            Self::GarbageArgs => 4,
            Self::SystemErr => 5,
        }
    }
}

impl Encode for AcceptStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        self.code().encode(out);
        if let Self::ProgMismatch { low, high } = self {
            low.encode(out);
            high.encode(out);
        }
    }
}

impl Decode<'_> for AcceptStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = r.at();
        match r.u32()? {
            0 => Ok(Self::Success),
            1 => Ok(Self::ProgUnavail),
            2 => decode_versions(r).map(|(low, high)| Self::ProgMismatch { low, high }),
            3 => Ok(Self::ProcUnavail),
            4 => Ok(Self::GarbageArgs),
            5 => Ok(Self::SystemErr),
            value => Err(DecodeErrorKind::BadEnum { value }.at(at)),
        }
    }
}

impl Encode for RejectStatus {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            Self::RpcMismatch { low, high } => {
                0u32.encode(out);
                low.encode(out);
                high.encode(out);
            }
            Self::AuthError(why) => {
                1u32.encode(out);
                why.encode(out);
            }
        }
    }
}

impl Decode<'_> for RejectStatus {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let at = r.at();
        match r.u32()? {
            0 => decode_versions(r).map(|(low, high)| Self::RpcMismatch { low, high }),
            1 => Ok(Self::AuthError(r.field("auth_stat")?)),
            value => Err(DecodeErrorKind::BadEnum { value }.at(at)),
        }
    }
}

impl fmt::Display for ReplyBody<'_> {
    /// The RFC's name of the state, with versions or reason.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Accepted { status, .. } => status.fmt(f),
            Self::Denied(status) => status.fmt(f),
        }
    }
}

impl fmt::Display for AcceptStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("SUCCESS"),
            Self::ProgUnavail => f.write_str("PROG_UNAVAIL"),
            Self::ProgMismatch { low, high } => write!(f, "PROG_MISMATCH({low}..{high})"),
            Self::ProcUnavail => f.write_str("PROC_UNAVAIL"),
            Self::GarbageArgs => f.write_str("GARBAGE_ARGS"),
            Self::SystemErr => f.write_str("SYSTEM_ERR"),
        }
    }
}

impl fmt::Display for RejectStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RpcMismatch { low, high } => write!(f, "RPC_MISMATCH({low}..{high})"),
            Self::AuthError(why) => write!(f, "AUTH_ERROR({why})"),
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::golden;

    pub(crate) const SUCCESS: &str = "
        0000001a                     # xid
        00000001                     # mtype: REPLY
        00000000                     # reply_stat: MSG_ACCEPTED
        00000000 00000000            # verf: AUTH_NONE
        00000000                     # accept_stat: SUCCESS
    ";
    pub(crate) const PROG_MISMATCH: &str = "
        0000001a 00000001 00000000   # xid, REPLY, MSG_ACCEPTED
        00000000 00000000            # verf: AUTH_NONE
        00000002 00000002 00000003   # PROG_MISMATCH: 2 to 3
    ";
    pub(crate) const RPC_MISMATCH: &str = "
        0000001a 00000001 00000001   # xid, REPLY, MSG_DENIED
        00000000 00000002 00000002   # RPC_MISMATCH: 2 to 2
    ";
    pub(crate) const AUTH_ERROR: &str = "
        0000001a 00000001 00000001   # xid, REPLY, MSG_DENIED
        00000001 00000005            # AUTH_ERROR: AUTH_TOOWEAK
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(SUCCESS, ReplyHeader::success(0x1a));
        let versions = AcceptStatus::ProgMismatch { low: 2, high: 3 };
        golden(PROG_MISMATCH, ReplyHeader::accepted(0x1a, versions));
        golden(RPC_MISMATCH, ReplyHeader::rpc_mismatch(0x1a));
        golden(AUTH_ERROR, ReplyHeader::auth_error(0x1a, AuthStat::TooWeak));
    }

    #[test]
    fn accept_states_have_the_numbers_of_the_rfc() {
        golden("00000001", AcceptStatus::ProgUnavail);
        golden("00000003", AcceptStatus::ProcUnavail);
        golden("00000004", AcceptStatus::GarbageArgs);
        golden("00000005", AcceptStatus::SystemErr);
    }
}
