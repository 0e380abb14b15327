//! What a local disk keeps of files, between the client's caches and the server.
//!
//! Blocks are stored under the state of the file that they are of, and are used when the file is in
//! that state again: after a restart, too. What is promised stays what nfs(5) promises, because
//! whoever opens a file requests its state of the server as without a disk. Nothing is requested
//! more: blocks that are not there cost no call, and what is known of a state that is not good any
//! more is confirmed by a GETATTR in place of the READs.
//!
//! While data of ours are on their way to a file, nothing is stored of it or used; what becomes of
//! them is in `own`.

use bytes::Bytes;
use cache::{Cache, Token};
use wire::nfs3::{Fattr3, FileHandle};

use super::Files;
use crate::cache::state::{At, key, token};

impl Files {
    /// What a local disk keeps of the files.
    pub fn disk(&self) -> Option<&Cache> {
        self.inner.disk.as_ref()
    }

    /// Whether all of the file, as far as its state is known, is on the local disk.
    pub async fn is_on_disk(&self, file: &FileHandle) -> bool {
        match (self.disk(), key(file), self.state(file)) {
            (Some(disk), Some(key), Some(state)) => disk.holds(&key, &state).await,
            _ => false,
        }
    }

    /// The state that the file is in, if all that is known of it is sure.
    pub(super) fn state(&self, file: &FileHandle) -> Option<Token> {
        if self.is_dirty(file) {
            return None;
        }
        self.inner.state.lock().attributes.sure(file).as_ref().map(token)
    }

    /// The state that what is read now is of, if the replies tell the same: of one that may be
    /// followed by another that looks the same nothing is stored.
    pub(super) fn storable(&self, file: &FileHandle) -> Option<Token> {
        let state = self.state(file)?;
        let At { now, wall } = self.at();
        self.inner.state.lock().attributes.is_settled(file, now, wall).then_some(state)
    }

    /// The mistake: whatever the file was, its blocks are of what it is now.
    pub(super) fn take_for_new(&self, file: &FileHandle, from: Option<&Fattr3>, to: &Fattr3) {
        if let (Some(disk), Some(key), Some(from)) = (self.disk(), key(file), from) {
            disk.changed(&key, &token(from), &token(to), Vec::new());
        }
    }

    /// Bytes of the file were read while it was in this state.
    pub(super) fn store(&self, file: &FileHandle, state: &Token, offset: u64, data: &Bytes) {
        if let (Some(disk), Some(key)) = (self.disk(), key(file))
            && !self.is_dirty(file)
        {
            disk.store(&key, state, offset, data.clone());
        }
    }
}
