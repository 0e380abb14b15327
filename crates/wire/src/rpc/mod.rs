//! ONC RPC version 2 (RFC 5531): the headers before arguments and results.

pub(crate) mod answer;
pub(crate) mod auth;
pub(crate) mod call;
pub(crate) mod reply;

pub use answer::Answer;
pub use auth::{
    AUTH_BODY_LEN_MAX, AUTH_NONE, AUTH_SHORT, AUTH_SYS, AuthStat, AuthSys, GIDS_MAX, Gids,
    MACHINE_NAME_LEN_MAX, OpaqueAuth, RPCSEC_GSS,
};
pub use call::{Call, CallHeader};
pub use reply::{AcceptStatus, RejectStatus, ReplyBody, ReplyHeader};

use crate::xdr::macros::xdr_enum;
use crate::xdr::{DecodeError, DecodeErrorKind, Reader};

/// The RPC version this crate speaks.
pub const VERSION: u32 = 2;

xdr_enum! {
    /// Which way a message goes.
    pub enum MessageType {
        Call = 0 "CALL",
        Reply = 1 "REPLY",
    }
}

/// The transaction id and direction of a message, all that is needed to route it.
///
/// # Errors
/// When there are not even eight bytes, or the direction is neither call nor reply.
pub fn peek(bytes: &[u8]) -> Result<(u32, MessageType), DecodeError> {
    let mut r = Reader::new(bytes);
    Ok((r.field("xid")?, r.field("mtype")?))
}

/// Reads xid and direction, which must be `expected`.
fn decode_start(r: &mut Reader<'_>, expected: MessageType) -> Result<u32, DecodeError> {
    let xid = r.field("xid")?;
    let at = r.at();
    let found: MessageType = r.field("mtype")?;
    if found != expected {
        let value = found.code();
        return Err(DecodeErrorKind::BadEnum { value }.at(at).in_field("mtype"));
    }
    Ok(xid)
}

xdr_enum! {
    /// Whether the server took the call at all (RFC 5531, `reply_stat`).
    pub enum ReplyStat {
        Accepted = 0 "MSG_ACCEPTED",
        Denied = 1 "MSG_DENIED",
    }
}

/// The versions a server speaks, from `low` to `high`.
fn decode_versions(r: &mut Reader<'_>) -> Result<(u32, u32), DecodeError> {
    Ok((r.field("low")?, r.field("high")?))
}
