//! The origin does not answer: what is cached of it is the reply then. It is away from when a call
//! has waited in vain for [`PATIENCE`], until any is answered. One waits for that, however long:
//! the others are answered by what is cached before a reply comes over a long path.
//!
//! One that has answered NFS3ERR_JUKEBOX is there: the file is not to be had for the moment,
//! perhaps because another client is bringing newer bytes. That is passed on.

use std::pin::pin;
use std::sync::Arc;

use perf::units::Nanos;
use server::store::Store;
use server::types::{Caller, Status};

use super::Inner;
use super::state::State;

/// How long the origin is waited for before it counts as away, and while it does.
pub(super) const PATIENCE: Nanos = Nanos::from_secs(2);
const AWAY_PATIENCE: Nanos = Nanos::from_millis(50);

/// When it is called again after a mount that is soft has given a call up.
const AGAIN: Nanos = Nanos::from_secs(1);

/// Anybody may have the attributes of the root.
pub(super) const ANYBODY: Caller = Caller { uid: 0, gid: 0, gids: Vec::new() };

impl<S: Store> Inner<S> {
    /// The origin has not answered, or has answered.
    pub(super) fn is_away(&self, state: &mut State, is_away: bool) {
        state.is_away = is_away;
        if is_away {
            self.left.notify_one();
        }
    }

    /// Waits for the origin whenever it is away.
    pub(super) async fn await_return(self: Arc<Self>) {
        loop {
            self.left.notified().await;
            while self.state.lock().is_away {
                match self.store.attr(&ANYBODY, &self.root).await {
                    Err(Status::Away) => self.clock.sleep(AGAIN).await,
                    _ => self.state.lock().is_away = false,
                }
            }
        }
    }

    /// The origin has called a file stale: its name is gone, unless the whole export is. That is so
    /// while its disk is not mounted there, and ends: until then the origin is away.
    pub(super) async fn has_gone(&self) -> Result<(), Status> {
        match self.store.attr(&ANYBODY, &self.root).await {
            Ok(root) if root.fileid == self.root_fileid => Ok(()),
            Ok(_) | Err(Status::Stale | Status::BadHandle) => Err(Status::Away),
            Err(status) => Err(status),
        }
    }

    /// What the origin tells; while it is away, what is cached of it, if anything.
    pub(super) async fn origin_or_cached<T>(
        &self,
        call: impl Future<Output = Result<T, Status>>,
        cached: impl Fn(&mut State) -> Option<T>,
    ) -> Result<T, Status> {
        let patience = if self.state.lock().is_away { AWAY_PATIENCE } else { PATIENCE };
        let mut call = pin!(call);
        let outcome = self.clock.within(patience, call.as_mut()).await;
        let is_given_up = match outcome {
            Ok(Err(Status::Away)) => true,
            Ok(outcome) => {
                self.state.lock().is_away = false;
                return outcome;
            }
            Err(_elapsed) => false,
        };
        let cached = {
            let mut state = self.state.lock();
            self.is_away(&mut state, true);
            cached(&mut state)
        };
        match cached {
            Some(cached) => Ok(cached),
            None if is_given_up => Err(Status::Away),
            None => {
                let outcome = call.await;
                let is_away = matches!(outcome, Err(Status::Away));
                self.is_away(&mut self.state.lock(), is_away);
                outcome
            }
        }
    }
}
