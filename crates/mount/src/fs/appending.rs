//! Appending (O_APPEND) beside other clients: two programs on two hosts that append in turn, each
//! with an fsync, do not overwrite each other's records.
//!
//! A kernel appends where it takes the end of the file to be, and it is right as long as it is
//! ours. Once everything of ours is stable, another client may have appended: so before the first
//! append after an open, an fsync or a close the server is asked. A kernel that writes back asks us
//! by a GETATTR that names the open file, if it has no attributes that are good; one that does not
//! sends each write, which then goes to the end that the server knows of.

use client::session::Credential;
use rustix::io::Errno;
use wire::nfs3::{Fattr3, FileHandle};

use super::{FileSystem, errno};
use crate::notify::Notice;

impl FileSystem {
    /// What was written through a node is stable. An append that follows asks where the file ends.
    pub(super) async fn is_stable(&self, node: u64) {
        if self.nodes.lock().must_ask_to_append(node) && self.writes_back {
            self.notifier.tell(Notice::ForgetAttributes { node }).await;
        }
    }

    /// The attributes before an append through this open file, or before anything else.
    pub(super) async fn attributes(
        &self,
        who: &Credential,
        node: u64,
        file: Option<u64>,
        handle: FileHandle,
    ) -> Result<Fattr3, Errno> {
        let open = file.and_then(|file| self.opens.file(file));
        let is_asked = open.is_some_and(|open| open.appends) && self.nodes.lock().asks(node);
        let attributes = match is_asked {
            true => self.files.ask_attributes(who, handle).await,
            false => self.files.getattr(who, handle).await,
        };
        attributes.map_err(errno)
    }
}
