//! How a phase fails, what is known of the host by then, and what a cause is.

use crate::finding::Layer;

/// How a phase failed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Fault {
    /// The name has no address.
    Unresolved,
    /// There is no way, says this host or a router.
    Unreachable,
    /// The host refuses the port: it is alive, and nobody listens.
    Refused,
    /// Nothing came back: no connection.
    Silent,
    /// There is a connection, and no reply to a call.
    NoReply,
    /// The peer ended the connection.
    Closed,
    /// What came is no reply of ONC RPC.
    NotRpc,
    /// The portmapper does not know the program.
    NotRegistered,
    /// The port does not serve the program, or not in that version.
    NoProgram,
    NoVersion {
        low: u32,
        high: u32,
    },
    /// RPC refused who calls.
    Authentication,
    /// The server refused the caller: ACCES, PERM.
    Denied,
    /// There is no such export, or directory.
    Absent,
    ReadOnly,
    /// No space, or no quota.
    Full,
    /// The handle is of what is no more.
    Stale,
    /// The server's own error: IO, SERVERFAULT.
    Server,
    /// The server asks to come again later: JUKEBOX.
    Later,
    /// Any other error.
    Other,
}

impl Fault {
    pub const ALL: [Self; 19] = [
        Self::Unresolved,
        Self::Unreachable,
        Self::Refused,
        Self::Silent,
        Self::NoReply,
        Self::Closed,
        Self::NotRpc,
        Self::NotRegistered,
        Self::NoProgram,
        Self::NoVersion { low: 4, high: 4 },
        Self::Authentication,
        Self::Denied,
        Self::Absent,
        Self::ReadOnly,
        Self::Full,
        Self::Stale,
        Self::Server,
        Self::Later,
        Self::Other,
    ];
}

/// What is known of the host when a phase fails.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Known {
    pub host: String,
    /// Something of it has answered, on any port.
    pub is_alive: bool,
    /// The host is this one.
    pub is_local: bool,
    /// Calls come from a port that only root has.
    pub is_privileged: bool,
    /// The exports that it lists; none if it lists none, or was not queried.
    pub exports: Option<Vec<String>>,
    /// The path of the MOUNT call.
    pub path: String,
    /// The part of it that is an export and was mounted.
    pub inside_of: Option<String>,
    /// The port that failed.
    pub port: Option<u16>,
    /// Versions of NFS that it serves on that port.
    pub versions: Vec<u32>,
}

/// One likely cause, and how to see whether it is the one, or what to change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Cause {
    pub what: String,
    pub check: String,
    /// Where it is.
    pub layer: Layer,
}

/// One at the server, as most are.
pub(super) fn cause(what: impl Into<String>, check: impl Into<String>) -> Cause {
    Cause { what: what.into(), check: check.into(), layer: Layer::Server }
}

impl Cause {
    pub(super) fn of(self, layer: Layer) -> Self {
        Self { layer, ..self }
    }
}
