//! Which transactions are looked at.

use std::net::IpAddr;

use super::files::{FileId, Files};
use super::operation::Operation;
use super::talks::Ends;

/// Empty parts let everything through.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    pub clients: Vec<IpAddr>,
    pub servers: Vec<IpAddr>,
    /// Names of operations, in capitals.
    pub operations: Vec<String>,
    /// A part of the path, or of the handle in hexadecimal.
    pub file: Option<String>,
    /// Calls from this moment on, in nanoseconds since the first packet.
    pub from_ns: Option<u64>,
    /// Calls before this moment.
    pub until_ns: Option<u64>,
}

impl Filter {
    /// Whether it lets everything through.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
            && self.servers.is_empty()
            && self.operations.is_empty()
            && self.file.is_none()
            && self.from_ns.is_none()
            && self.until_ns.is_none()
    }

    /// By what is known when the call is seen.
    pub(super) fn takes_call(
        &self,
        ends: Option<Ends>,
        operation: Operation,
        since_ns: u64,
    ) -> bool {
        let among = |list: &[IpAddr], end: Option<IpAddr>| {
            list.is_empty() || end.is_some_and(|end| list.contains(&end))
        };
        among(&self.clients, ends.map(|ends| ends.client.ip()))
            && among(&self.servers, ends.map(|ends| ends.server.ip()))
            && (self.operations.is_empty()
                || self
                    .operations
                    .iter()
                    .any(|name| name == operation.name() || *name == operation.to_string()))
            && self.from_ns.is_none_or(|from| since_ns >= from)
            && self.until_ns.is_none_or(|until| since_ns < until)
    }

    /// By the file, whose name may have been learned with the reply.
    pub(super) fn takes_file(&self, files: &Files, file: FileId) -> bool {
        let Some(part) = &self.file else { return true };
        if file == FileId::OTHER {
            return false;
        }
        let hex = || files.handle(file).iter().map(|b| format!("{b:02x}")).collect::<String>();
        files.path(file).contains(part) || hex().contains(part)
    }
}
