//! What `--csv` and `--parquet` say of a transaction alike.

use std::borrow::Cow;

use analyze::trace::{Ends, Talks, Transaction, Verdict};

/// Who spoke with whom.
pub(super) struct Who {
    pub(super) client: String,
    pub(super) server: String,
    pub(super) transport: &'static str,
}

/// Empty where there was no room to tell connections apart.
pub(super) fn who(transaction: &Transaction, talks: &Talks) -> Who {
    match talks.get(transaction.talk).and_then(|talk| talk.ends) {
        Some(Ends { client, server, is_tcp }) => Who {
            client: client.to_string(),
            server: server.to_string(),
            transport: if is_tcp { "tcp" } else { "udp" },
        },
        None => Who { client: String::new(), server: String::new(), transport: "" },
    }
}

/// `nfsstat`; or why there is none. Nothing for procedures without a status, and encrypted ones.
pub(super) fn status(transaction: &Transaction) -> Option<Cow<'static, str>> {
    match (transaction.verdict, transaction.status) {
        (Verdict::Success, Some(0)) => Some("0".into()),
        (Verdict::Success, Some(status)) => Some(status.to_string().into()),
        (Verdict::Success, None) => None,
        (Verdict::Refused(status), _) => Some(format!("accept_stat={status}").into()),
        (Verdict::Denied(status), _) => Some(format!("reject_stat={status}").into()),
        (Verdict::Unknown, _) => Some("cut".into()),
    }
}
