//! Who waits for a frame.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::shared::{Failed, Shared};
use crate::store::dir::sync::others_first;

/// A WRITE that waits for its frame.
#[must_use]
pub(in crate::store::dir) struct Ticket {
    pub(super) outcome: oneshot::Receiver<Result<(), Failed>>,
    pub(super) call: Option<Call>,
}

/// A thread of this log sleeps and is to be woken, which happens when this is dropped.
pub(super) struct Call(pub(super) Arc<Shared>, pub(super) usize);

impl Drop for Call {
    fn drop(&mut self) {
        let Self(shared, log) = self;
        shared.to_write[*log].notify_one();
    }
}

impl Ticket {
    /// Waits until the frame is stable. Who is the first to need the log's thread lets all go first
    /// who are ready to run, so that their WRITEs come into the same frame.
    pub(super) async fn outcome(self) -> Result<(), Failed> {
        if let Some(call) = self.call {
            others_first(&call.0.submissions).await;
            drop(call);
        }
        self.outcome.await.unwrap_or(Err(Failed))
    }
}
