//! Replies that a store keeps with what they answer, so that they survive a loss of power.
//!
//! A store with a log makes a call's effect and the record of its reply stable at the same time,
//! not one after the other. So it needs the reply before the call is answered: the engine says
//! which call it serves ([`Recording::during`]), the store says what came of it ([`Outcome`]), and
//! gets the bytes that will be sent if all becomes stable.

use tokio::task::futures::TaskLocalFuture;
use wire::Procedure;
use wire::rpc::ReplyHeader;
use wire::xdr::Encode;

use crate::proc2;
use crate::proc3;
use crate::store::Node;
use crate::types::{Attr, Stability, Time, Verifier, Wcc};

tokio::task_local! {
    /// The call that is being served, if its reply is to be recorded.
    static SERVED: Option<Recording>;
}

/// A call that must not be executed twice.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Recording {
    pub(crate) call: log::reply::Call,
    pub(crate) came: Time,
    pub(crate) procedure: Procedure,
    /// Of the first handle: what is made in it has it in its own.
    pub(crate) export: u32,
}

/// What came of a call that has succeeded, if it becomes stable.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Outcome<'o> {
    Made {
        node: &'o Node,
        dir: &'o Wcc,
    },
    /// Something was removed from a directory, or attributes were set.
    Changed(&'o Wcc),
    Renamed {
        from: &'o Wcc,
        to: &'o Wcc,
    },
    Linked {
        attr: Option<&'o Attr>,
        dir: &'o Wcc,
    },
    Written {
        file: &'o Wcc,
        count: u32,
        stability: Stability,
        verifier: Verifier,
    },
}

impl Recording {
    /// Serves a call, which may be of no interest.
    pub(crate) fn during<F: Future>(
        recording: Option<Self>,
        serving: F,
    ) -> TaskLocalFuture<Option<Self>, F> {
        SERVED.scope(recording, serving)
    }

    /// The call that is being served, if its reply is to be recorded.
    pub(crate) fn current() -> Option<Self> {
        SERVED.try_with(|served| *served).ok().flatten()
    }

    /// Its reply; none if this is not what such a call comes to.
    pub(crate) fn reply(&self, outcome: &Outcome<'_>) -> Option<Vec<u8>> {
        let mut bytes = Vec::with_capacity(log::reply::REPLY_BYTES_MAX);
        ReplyHeader::success(self.call.xid).encode(&mut bytes);
        match self.procedure {
            Procedure::Nfs3(procedure) => {
                proc3::recorded(procedure, self.export, outcome, &mut bytes)?;
            }
            Procedure::Nfs2(procedure) => {
                proc2::recorded(procedure, self.export, outcome, &mut bytes)?;
            }
            _ => return None,
        }
        Some(bytes)
    }
}
