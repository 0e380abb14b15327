//! Appending (O_APPEND) beside other clients: two programs on two hosts that append in turn, each
//! with an fsync, do not overwrite each other's records.
//!
//! A kernel appends where it takes the end of the file to be, and it is right as long as it is
//! ours. Once everything of ours is stable, another client may have appended: so before the first
//! append after an open, an fsync or a close the server is queried, whatever other programs here
//! have written in place meanwhile. A kernel that writes back asks us by a GETATTR that names the
//! open file, if it has no attributes that are good. That may as well be an lseek(2) long before
//! the append, so its answer is good for [`END_VALID`] until data come. A kernel that does not
//! write back sends each write, which then goes to the end that the server knows of.

use std::time::Duration;

use client::error::Error;
use client::session::Credential;
use rustix::io::Errno;
use wire::nfs3::{Fattr3, FileHandle};

use super::{FileSystem, errno};
use crate::notify::Notice;
use crate::opens::OpenFile;

/// How long an end of a file is good to append at: a program that appends line by line does not
/// ask for each.
const END_VALID: Duration = Duration::from_millis(10);

impl FileSystem {
    /// What was written through a node is stable, or lost. An append that follows asks where the
    /// file ends.
    pub(super) async fn is_stable(&self, node: u64) {
        self.forget_what_was_lost(node).await;
        self.is_to_ask(node).await;
    }

    /// The same of what follows, where the kernel still holds what it has written.
    pub(super) async fn is_to_ask(&self, node: u64) {
        if self.nodes.lock().must_ask_to_append(node) && self.writes_back {
            self.notifier.notify(Notice::ForgetAttributes { node }).await;
        }
    }

    /// Where an append goes that the kernel has not cached: to the end, wherever the kernel takes
    /// it to be. Before what may be a cut by another client, a GETATTR is sent.
    pub(super) async fn place_of_append(
        &self,
        file: &OpenFile,
        requested: u64,
    ) -> Result<u64, Error> {
        let end = file.open.end().await?;
        // One that writes back may have bytes before it that are not here yet.
        if end >= requested || self.writes_back {
            return Ok(end.max(requested));
        }
        let attributes = self.files.ask_attributes(&file.who, file.open.file()).await?;
        Ok(attributes.size)
    }

    /// The kernel's pages of a file keep what could not be written. It would give that to readers,
    /// and write it with whatever comes to the same page next, over what another client has
    /// written there in the meantime.
    pub(super) async fn forget_what_was_lost(&self, node: u64) {
        let Ok(file) = self.file(node) else { return };
        if !self.files.write_behind().take_given_up(file) {
            return;
        }
        self.disown(&file).await;
    }

    /// The attributes before an append through this open file, or before anything else; and how
    /// long they are good.
    pub(super) async fn attributes(
        &self,
        who: &Credential,
        node: u64,
        file: Option<u64>,
        handle: FileHandle,
    ) -> Result<(Fattr3, Duration), Errno> {
        let open = file.and_then(|file| self.opens.file(file));
        let appends = open.is_some_and(|open| open.appends);
        if appends && self.nodes.lock().asks_to_append(node) {
            let attributes = self.files.ask_attributes(who, handle).await.map_err(errno)?;
            // Whoever has made it longer: other programs here may be writing to it, too, and as
            // long as they do nobody can tell whose change was seen.
            self.follow_to(who, node, attributes.size).await;
            return Ok((attributes, self.valid(&handle).min(END_VALID)));
        }
        let attributes = self.files.getattr(who, handle).await.map_err(errno)?;
        Ok((attributes, self.attr_valid(node, &handle)))
    }
}
