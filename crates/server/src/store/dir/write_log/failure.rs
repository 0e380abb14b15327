//! A log that cannot be written any more.
//!
//! Its files are synced. If all of them could be, nothing needs the log, also not the directory,
//! which forgets it before anybody is answered: a replay would put older bytes over what is made
//! stable from then on. If not, log and directory stay as they are, for a start that replays what
//! can be read of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use tokio::sync::oneshot;

use super::Log;
use super::marker::Marker;
use super::options::OnFailure;
use super::shared::{Failed, GivenUp, Shared};
use crate::store::dir::objects::Object;
use crate::types::Status;

impl Shared {
    /// After the files were synced.
    pub(super) fn give_up(&self, is_all_stable: bool) {
        let state = self.state.lock();
        // The kernel tells an error once: also one that another sync has met counts.
        let has_failed = |object: &Arc<Object>| object.has_failed.load(Ordering::Acquire);
        let is_all_stable = is_all_stable && !state.objects.values().any(has_failed);
        drop(state);
        let given_up = match is_all_stable && self.marker.remove(&self.root).is_ok() {
            true => GivenUp::InPlace,
            false => {
                // The same disk may refuse this, too; then only the kernel knows of it.
                let _ = Marker::doubt(&self.root);
                GivenUp::Needed
            }
        };
        let mut state = self.state.lock();
        state.given_up = Some(given_up);
        let gone = match given_up {
            GivenUp::InPlace => {
                state.journal.abandon();
                std::mem::take(&mut state.objects)
            }
            GivenUp::Needed => Default::default(),
        };
        let waiters = std::mem::take(&mut state.to_hear);
        drop(state);
        for waiter in waiters {
            // A caller who went away is no reason not to tell the others.
            let _ = waiter.send(given_up);
        }
        self.syncer.drop_aside(gone);
    }

    fn to_hear(&self) -> oneshot::Receiver<GivenUp> {
        let (waiter, heard) = oneshot::channel();
        let mut state = self.state.lock();
        match state.given_up {
            Some(given_up) => drop(waiter.send(given_up)),
            None => {
                state.to_hear.retain(|waiter| !waiter.is_closed());
                state.to_hear.push(waiter);
            }
        }
        heard
    }
}

impl Log {
    /// Waits until the log could not be written, however long, and what it held was taken care of.
    pub(in crate::store::dir) async fn given_up(&self) -> GivenUp {
        // It ends without an answer with the log itself.
        self.shared.to_hear().await.unwrap_or(GivenUp::Needed)
    }

    /// Which log could not be written, and why.
    pub(in crate::store::dir) fn failure(&self) -> Option<String> {
        self.shared.state.lock().failure.clone()
    }

    /// Somebody was not answered by the log: whether a sync of the file alone may answer him.
    pub(super) async fn without_log(&self, Failed: Failed) -> Result<(), Status> {
        if !self.has_failed() {
            return Err(Status::Io);
        }
        match (self.given_up().await, self.on_failure) {
            (GivenUp::InPlace, OnFailure::Degrade) => Ok(()),
            (GivenUp::InPlace, OnFailure::Stop) => Err(Status::Jukebox),
            (GivenUp::Needed, _) => Err(Status::Io),
        }
    }
}
