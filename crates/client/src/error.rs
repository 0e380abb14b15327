//! What can go wrong on the way to a file, and where.

use std::net::SocketAddr;

use net::error::{CallError, ConnectError, Refusal};
use thiserror::Error;
use wire::mount::MountStat3;
use wire::nfs3::{Fattr3, NfsStat3, PostOpAttr, WccAttr, WccData, link, rename};

use crate::url::Protocol;

/// An operation did not succeed; says what was tried and by whose fault it failed.
#[derive(Clone, Debug, Error)]
pub enum Error {
    #[error("{}{cause}", of_service(*service, cause))]
    Connect { service: Service, cause: ConnectError },
    /// The call got no usable reply.
    #[error("{procedure} to {server}: {cause}")]
    Call { procedure: &'static str, server: SocketAddr, cause: CallError },
    /// The server answered that it would or could not.
    #[error("{procedure} to {server}: {status}")]
    Status {
        procedure: &'static str,
        server: SocketAddr,
        status: NfsStat3,
        /// What the server answered of the files all the same.
        detail: Box<Detail>,
    },
    #[error("mounting {path:?} from {server}: {status}")]
    Mount { path: String, server: SocketAddr, status: MountStat3 },
    #[error("the portmapper of {host} knows no {service}, version {version}, over {}",
        protocol.name().to_uppercase())]
    NotRegistered { host: String, service: Service, version: u32, protocol: Protocol },
    /// Neither the portmapper nor the usual ports led to the service.
    #[error("cannot find the {service} of {host}; tried: {}", list(tried))]
    NotFound {
        host: String,
        service: Service,
        /// What was wrong at each place.
        tried: Vec<Self>,
    },
    /// The reply makes no sense, though it could be decoded.
    #[error("{procedure} to {server}: {what}")]
    Nonsense { procedure: &'static str, server: SocketAddr, what: &'static str },
}

/// A name that leads to no address has nothing to do with the service.
fn of_service(service: Service, cause: &ConnectError) -> String {
    match cause {
        ConnectError::Resolve { .. } => String::new(),
        _ => format!("{service}: "),
    }
}

fn list(errors: &[Error]) -> String {
    let texts: Vec<String> = errors.iter().map(ToString::to_string).collect();
    texts.join("; ")
}

/// What a failed procedure tells of the files it was called on.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Detail {
    #[default]
    Nothing,
    /// The attributes of the one file.
    Attributes(Fattr3),
    /// The file or directory that was to be changed, before and after: the same, if the server
    /// does not say how it was before.
    Changed(WccData),
    /// RENAME: both directories.
    Renamed { from: WccData, to: WccData },
    /// LINK: the file, and the directory.
    Linked { file: PostOpAttr, dir: WccData },
}

impl From<()> for Detail {
    fn from((): ()) -> Self {
        Self::Nothing
    }
}

impl From<PostOpAttr> for Detail {
    fn from(attributes: PostOpAttr) -> Self {
        attributes.map_or(Self::Nothing, Self::Attributes)
    }
}

impl From<WccData> for Detail {
    fn from(wcc: WccData) -> Self {
        Self::Changed(refused(wcc))
    }
}

impl From<rename::ReplyOk> for Detail {
    fn from(both: rename::ReplyOk) -> Self {
        Self::Renamed { from: refused(both.fromdir_wcc), to: refused(both.todir_wcc) }
    }
}

impl From<link::ReplyOk> for Detail {
    fn from(both: link::ReplyOk) -> Self {
        Self::Linked { file: both.file_attributes, dir: refused(both.linkdir_wcc) }
    }
}

/// What a server tells that has refused a change: unless it says how the file was before, it has
/// found it as it is. A success would be taken to have made that state, and it may be another
/// client's.
fn refused(wcc: WccData) -> WccData {
    WccData { before: wcc.before.or_else(|| wcc.after.as_ref().map(WccAttr::from)), ..wcc }
}

/// The three services of an NFS v3 server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Service {
    Portmapper,
    Mount,
    Nfs,
}

impl std::fmt::Display for Service {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Portmapper => "portmapper",
            Self::Mount => "MOUNT service",
            Self::Nfs => "NFS service",
        })
    }
}

impl Error {
    /// The status, when the server gave one.
    pub fn status(&self) -> Option<NfsStat3> {
        match self {
            Self::Status { status, .. } => Some(*status),
            _ => None,
        }
    }

    /// Whether nothing listens wherever the service was looked for.
    pub fn is_refused(&self) -> bool {
        match self {
            Self::Connect { cause: ConnectError::Refused { .. }, .. } => true,
            Self::NotFound { tried, .. } => tried.iter().all(Self::is_refused),
            _ => false,
        }
    }

    /// Whether the server does not have the procedure: it refuses it, or the program's version.
    pub fn is_unsupported(&self) -> bool {
        let refused =
            |cause: &CallError| matches!(cause, CallError::Refused(Refusal::ProcedureUnavailable));
        self.status() == Some(NfsStat3::NotSupp)
            || matches!(self, Self::Call { cause, .. } if refused(cause))
    }

    /// The files' attributes in a reply that is a failure.
    pub fn detail(&self) -> Detail {
        match self {
            Self::Status { detail, .. } => **detail,
            _ => Detail::Nothing,
        }
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::NfsTime;

    use super::*;

    #[test]
    fn a_refusal_that_tells_no_state_before_has_found_the_one_it_tells() {
        let (before, after) = (WccAttr::from(&FOUND), Some(FOUND));
        let wcc = WccData { before: None, after };
        assert_eq!(refused(wcc), WccData { before: Some(before), after });
        let other = WccAttr { size: 1, ..before };
        let changed = WccData { before: Some(other), after };
        assert_eq!(refused(changed), changed, "a part of it was done");
        assert_eq!(refused(WccData::default()), WccData::default());
    }

    const FOUND: Fattr3 = Fattr3::of_file(6, NfsTime { seconds: 5, nseconds: 0 });
}
