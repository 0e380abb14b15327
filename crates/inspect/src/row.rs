//! What `--csv` and `--parquet` say of a transaction alike.

use std::borrow::Cow;

use trace::{Ends, Flows, RpcVerdict, Transaction};

/// Who spoke with whom.
pub(super) struct Who {
    /// The address; and the port, by which connections of one client differ.
    pub(super) client: String,
    pub(super) client_port: u16,
    /// With its port.
    pub(super) server: String,
    pub(super) transport: &'static str,
}

/// Empty where there was no room to tell connections apart.
pub(super) fn who(transaction: &Transaction, flows: &Flows) -> Who {
    match flows.get(transaction.flow).and_then(|flow| flow.ends) {
        Some(Ends { client, server, is_tcp }) => Who {
            client: client.ip().to_string(),
            client_port: client.port,
            server: server.to_string(),
            transport: if is_tcp { "tcp" } else { "udp" },
        },
        None => Who { client: String::new(), client_port: 0, server: String::new(), transport: "" },
    }
}

/// `nfsstat`; or why there is none. Nothing for procedures without a status, and encrypted ones.
pub(super) fn status(transaction: &Transaction) -> Option<Cow<'static, str>> {
    match (transaction.verdict, transaction.status) {
        (RpcVerdict::Success, Some(0)) => Some("0".into()),
        (RpcVerdict::Success, Some(status)) => Some(status.to_string().into()),
        (RpcVerdict::Success, None) => None,
        (RpcVerdict::Refused(status), _) => Some(format!("accept_stat={status}").into()),
        (RpcVerdict::Denied(status), _) => Some(format!("reject_stat={status}").into()),
        (RpcVerdict::Unknown, _) => Some("cut".into()),
    }
}
