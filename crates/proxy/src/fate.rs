//! The reply to a client whose call to the origin failed.

use client::error::{Detail, Error};
use net::error::{CallError, Refusal};
use server::types::{Attr, Status, Wcc};

use crate::neutral;

/// What it means to make a call again.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Kind {
    /// The same: reading, and writing to a place that is named.
    Repeatable,
    /// Something else, if it was executed: a name that is made or removed.
    Once,
}

/// Why a call failed, for the client.
///
/// While the origin is away, a call that may be repeated is to be repeated later
/// (NFS3ERR_JUKEBOX): clients do so with another XID. One that may not, and may have been executed,
/// fails: repeated, its reply would be that the name is there already, or gone. (Where the mount of
/// the origin is `hard`, neither happens: the call waits.)
pub(crate) fn status(error: &Error, kind: Kind) -> Status {
    match error {
        Error::Status { status, .. } => neutral::status(*status),
        Error::Call { cause, .. } => match cause {
            CallError::TimedOut { .. }
            | CallError::Closed
            | CallError::Connect(_)
            | CallError::Transport(_)
            | CallError::NobodyListens => match kind {
                Kind::Repeatable => Status::Away,
                Kind::Once => Status::Io,
            },
            CallError::Refused(Refusal::Authentication { .. }) => Status::Access,
            CallError::Refused(Refusal::ProcedureUnavailable) => Status::NotSupported,
            CallError::Refused(_)
            | CallError::Malformed(_)
            | CallError::Echo
            | CallError::Unsolicited { .. }
            | CallError::TooLarge { .. } => Status::ServerFault,
        },
        // What only mounting says, and replies that make no sense.
        Error::Connect { .. }
        | Error::Mount { .. }
        | Error::NotRegistered { .. }
        | Error::NotFound { .. }
        | Error::Nonsense { .. } => Status::ServerFault,
    }
}

/// Whether nobody knows what has become of the call.
pub(crate) fn is_away(error: &Error) -> bool {
    matches!(
        error,
        Error::Call {
            cause: CallError::TimedOut { .. }
                | CallError::Closed
                | CallError::Connect(_)
                | CallError::Transport(_)
                | CallError::NobodyListens,
            ..
        }
    )
}

/// The attributes that came with a failure.
pub(crate) fn attr(error: &Error) -> Option<Attr> {
    match error.detail() {
        Detail::Attributes(attributes) => Some(neutral::attr(&attributes)),
        _ => None,
    }
}

/// The states that came with a failure.
pub(crate) fn wcc(error: &Error) -> Wcc {
    match error.detail() {
        Detail::Changed(wcc) => neutral::wcc(&wcc),
        _ => Wcc::default(),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};

    use perf::units::Nanos;
    use wire::nfs3::NfsStat3;

    use super::*;

    const SERVER: SocketAddr = SocketAddr::V4(std::net::SocketAddrV4::new(Ipv4Addr::LOCALHOST, 1));

    fn call(cause: CallError) -> Error {
        Error::Call { procedure: "REMOVE", server: SERVER, cause }
    }

    #[test]
    fn a_call_that_may_have_been_executed_is_not_to_be_repeated_as_another() {
        let late = call(CallError::TimedOut { limit: Nanos::from_secs(1) });
        assert_eq!(status(&late, Kind::Repeatable), Status::Away);
        assert_eq!(status(&late, Kind::Once), Status::Io);
        assert!(is_away(&late));
    }

    #[test]
    fn what_the_origin_says_is_passed_on_and_nonsense_is_not() {
        let detail = Box::default();
        let says = |status| Error::Status { procedure: "GETATTR", server: SERVER, status, detail };
        assert_eq!(status(&says(NfsStat3::DQuot), Kind::Once), Status::Quota);
        let nonsense = Error::Nonsense { procedure: "READ", server: SERVER, what: "" };
        assert_eq!(status(&nonsense, Kind::Repeatable), Status::ServerFault);
        assert!(!is_away(&nonsense));
        assert_eq!(status(&call(CallError::Echo), Kind::Once), Status::ServerFault);
    }
}
