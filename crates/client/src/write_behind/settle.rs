//! Who waits until what was written has arrived, or is stable.

use std::ops::Range;
use std::sync::Arc;

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use wire::nfs3::FileHandle;

use super::engine::Engine;
use super::file::{File, State};
use crate::error::Error;

/// COMMITs that [`Engine::drain`] keeps outstanding.
const DRAINING_MAX: usize = 16;

impl Engine {
    pub(super) async fn flush(
        self: &Arc<Self>,
        handle: FileHandle,
        range: Option<Range<u64>>,
    ) -> Result<(), Error> {
        let Some(file) = self.known(handle) else { return Ok(()) };
        self.arrive_all(&file, range).await;
        file.state.lock().tell_anybody()
    }

    pub(super) async fn arrive(self: &Arc<Self>, handle: FileHandle, range: Option<Range<u64>>) {
        if let Some(file) = self.known(handle) {
            self.arrive_all(&file, range).await;
        }
    }

    async fn arrive_all(self: &Arc<Self>, file: &Arc<File>, range: Option<Range<u64>>) {
        let age = self.update(file, &mut 0, State::hurry);
        self.until(file, |state| match &range {
            None => state.index.oldest_unanswered().is_none_or(|oldest| oldest > age),
            Some(range) => !state.index.is_unanswered(range, age),
        })
        .await;
    }

    pub(super) async fn commit(self: &Arc<Self>, handle: FileHandle) -> Result<(), Error> {
        match self.known(handle) {
            Some(file) => self.commit_all(&file).await,
            None => Ok(()),
        }
    }

    pub(super) async fn settle(self: &Arc<Self>, handle: FileHandle) {
        if let Some(file) = self.known(handle) {
            self.settle_all(&file).await;
        }
    }

    /// Commits what has been written so far.
    async fn commit_all(self: &Arc<Self>, file: &Arc<File>) -> Result<(), Error> {
        self.settle_all(file).await;
        file.state.lock().tell_anybody()
    }

    pub(super) async fn settle_all(self: &Arc<Self>, file: &Arc<File>) {
        let hurry = match self.policy.writes_stably() {
            true => State::hurry_to_be_stable,
            false => State::hurry,
        };
        let age = self.update(file, &mut 0, hurry);
        self.until(file, |state| {
            if state.index.oldest_unanswered().is_some_and(|oldest| oldest <= age) {
                return false;
            }
            if state.index.oldest_unstable().is_none_or(|oldest| oldest > age) {
                return true;
            }
            self.start_commit(file, state);
            false
        })
        .await;
    }

    /// Waits until `is_done` says so; it is called whenever a reply has come.
    async fn until(&self, file: &File, mut is_done: impl FnMut(&mut State) -> bool) {
        loop {
            let changed = file.changed.notified();
            let mut changed = std::pin::pin!(changed);
            changed.as_mut().enable();
            if is_done(&mut file.state.lock()) {
                return;
            }
            changed.await;
        }
    }

    pub(super) async fn drain(self: &Arc<Self>) -> Vec<(FileHandle, Error)> {
        let mut files = self.all_files();
        files.sort_unstable_by_key(|file| file.handle.as_bytes().to_vec());
        for file in &files {
            self.update(file, &mut 0, State::hurry);
        }
        let mut lost = Vec::new();
        let mut committing = FuturesUnordered::new();
        for file in files {
            if committing.len() >= DRAINING_MAX {
                lost.extend(committing.next().await.flatten());
            }
            committing.push(async move {
                let outcome = self.commit_all(&file).await;
                outcome.err().map(|error| (file.handle, error))
            });
        }
        while let Some(outcome) = committing.next().await {
            lost.extend(outcome);
        }
        lost
    }
}
