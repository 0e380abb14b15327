//! Which calls are in service: a number of permits, and a gate that commits may close.
//!
//! ```text
//!   call --permit (threads)--> gate: shared --------------------> procedure
//!                                    exclusive, when it commits
//!                                    and the mode is Stall -----> procedure
//! ```
//!
//! A permit stands for a thread of a classic server: a call holds one while it waits, for the gate
//! or a disk. Both queues are fair, that of the permits among hosts, and a call never takes a
//! second permit, so none can starve or lock up. A call that is dropped while it waits leaves its
//! queue.

use std::net::IpAddr;

use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard};

use crate::permits::{Permit, Permits};

/// What other calls do while data is committed to stable storage.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CommitMode {
    /// They go on.
    #[default]
    Concurrent,
    /// They wait, all of them: the server does nothing else while its disk works, as those that
    /// the seed papers measured. For study.
    Stall,
}

#[derive(Debug)]
pub(crate) struct Service {
    permits: Permits,
    gate: Option<RwLock<()>>,
}

/// The right to be served, until dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Pass<'s> {
    _permit: Permit<'s>,
    _gate: Gate<'s>,
}

#[derive(Debug)]
#[expect(dead_code, reason = "the guards are held for their drop")]
enum Gate<'s> {
    Open,
    Shared(RwLockReadGuard<'s, ()>),
    Exclusive(RwLockWriteGuard<'s, ()>),
}

impl Service {
    /// At most `threads` calls at once, at least one.
    pub(crate) fn new(threads: usize, mode: CommitMode) -> Self {
        Self {
            permits: Permits::new(threads),
            gate: (mode == CommitMode::Stall).then(|| RwLock::new(())),
        }
    }

    /// Waits for a turn of a call from `host`. `commits` is called only when it matters.
    pub(crate) async fn enter(&self, host: IpAddr, commits: impl FnOnce() -> bool) -> Pass<'_> {
        let _permit = self.permits.acquire(host).await;
        let _gate = match &self.gate {
            None => Gate::Open,
            Some(gate) if commits() => Gate::Exclusive(gate.write().await),
            Some(gate) => Gate::Shared(gate.read().await),
        };
        Pass { _permit, _gate }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const HOST: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

    #[test]
    fn as_many_as_there_are_threads_are_in_service() {
        let service = Service::new(2, CommitMode::Concurrent);
        let enter = || service.enter(HOST, || true);
        let first = enter().now_or_never().unwrap();
        let _second = enter().now_or_never().unwrap();
        assert!(enter().now_or_never().is_none());
        drop(first);
        assert!(enter().now_or_never().is_some());
    }

    #[test]
    fn a_server_without_threads_has_one() {
        let service = Service::new(0, CommitMode::Concurrent);
        assert!(service.enter(HOST, || true).now_or_never().is_some());
    }

    #[test]
    fn a_commit_waits_for_those_before_and_holds_up_those_after() {
        let service = Service::new(10, CommitMode::Stall);
        let before = service.enter(HOST, || false).now_or_never().unwrap();
        let mut commit = Box::pin(service.enter(HOST, || true));
        assert!(commit.as_mut().now_or_never().is_none());
        let mut after = Box::pin(service.enter(HOST, || false));
        assert!(after.as_mut().now_or_never().is_none());
        drop(before);
        let committing = commit.as_mut().now_or_never().unwrap();
        assert!(after.as_mut().now_or_never().is_none());
        drop(committing);
        assert!(after.as_mut().now_or_never().is_some());
    }

    #[test]
    fn a_commit_that_gives_up_lets_the_others_through() {
        let service = Service::new(10, CommitMode::Stall);
        let _before = service.enter(HOST, || false).now_or_never().unwrap();
        let mut commit = Box::pin(service.enter(HOST, || true));
        assert!(commit.as_mut().now_or_never().is_none());
        drop(commit);
        assert!(service.enter(HOST, || false).now_or_never().is_some());
    }
}
