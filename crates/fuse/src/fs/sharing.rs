//! What other clients have done to a file that this kernel caches. See `nodes` for the idea.

use bytes::Bytes;
use client::cache::attributes::Version;
use client::files::Found;
use client::session::Credential;
use rustix::io::Errno;
use tokio::sync::oneshot;
use wire::nfs3::{Fattr3, FileHandle};

use super::{FileSystem, errno};
use crate::notify::Notice;

/// What opening a file has shown of the kernel's cache of it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Verdict {
    /// It has what the server has.
    Same,
    /// Its data are to be forgotten, and it is shown a size that has grown; all else it asks for.
    /// Whoever opens the file before that is done finds the same. One that writes back keeps the
    /// time.
    Changed,
    /// Size and time of the node are no longer the file's, and the name has to be looked up again.
    Outdated,
    /// The kernel comes again: the file has changed between that and the open, or there is no name
    /// to look up but that of a descriptor (/proc/self/fd). So it is not cached at all.
    ChangedAgain,
}

impl FileSystem {
    /// Compares what the kernel has of a file, which a thread opens, with what is known of it now.
    pub(super) fn judge(&self, (node, thread): (u64, u32), file: &FileHandle) -> Verdict {
        let now = self.files.version(file);
        let mut nodes = self.nodes.lock();
        let Some(known) = nodes.find(node) else {
            return Verdict::Outdated;
        };
        let is_same = known.version == now;
        if !self.writes_back {
            return if is_same { Verdict::Same } else { Verdict::Changed };
        }
        let stays = !is_same && nodes.staying(file, self.files.size(file)) == Some(node);
        match (is_same, nodes.was_refused(*file, thread)) {
            (true, _) => Verdict::Same,
            _ if stays => Verdict::Changed,
            (false, true) => Verdict::ChangedAgain,
            (false, false) => {
                nodes.refuse(*file, thread);
                Verdict::Outdated
            }
        }
    }

    /// Whether the name by which a thread opens a file may lead to another one by now. The kernel
    /// looks it up once more; where it comes again, the server has it, or there is no name.
    pub(super) async fn may_lead_elsewhere(
        &self,
        (node, thread): (u64, u32),
        file: &FileHandle,
    ) -> bool {
        let may_have_moved = self.files.may_have_moved(file);
        if !may_have_moved && self.writes_back {
            // `judge` does so.
            return false;
        }
        let is_refused = {
            let mut nodes = self.nodes.lock();
            let comes_again = nodes.was_refused(*file, thread);
            // With what is written back, `judge` looks for that once more.
            if may_have_moved && (!comes_again || self.writes_back) {
                nodes.refuse(*file, thread);
            }
            may_have_moved && !comes_again
        };
        if is_refused {
            self.write_back(node).await;
        }
        is_refused
    }

    /// A file that was looked up: before it gets another node, what the kernel has not yet written
    /// of it through older ones is written. So it is where its node stays, which has then what the
    /// file has.
    pub(super) async fn settled(&self, who: &Credential, found: Found) -> Result<Found, Errno> {
        let named = self.named(&found);
        let written: Vec<u64> = {
            let nodes = self.nodes.lock();
            let written = nodes.outdated(&named).filter(|(_, node)| node.writers > 0);
            written.map(|(id, _)| id).collect()
        };
        if written.is_empty() {
            return Ok(found);
        }
        let now = self.files.version(&found.handle);
        for old in written {
            self.write_back(old).await;
        }
        let found = self.files.find_again(who, found.handle).await.map_err(errno)?;
        if let Some(node) = self.staying(&found.handle) {
            self.has_forgotten(who, node, (&found.handle, now)).await;
        }
        Ok(found)
    }

    /// See [`Nodes::staying`](crate::nodes::Nodes::staying).
    fn staying(&self, file: &FileHandle) -> Option<u64> {
        let nodes = self.nodes.lock();
        // The node's size counts what programs write after the file's does: here it waits.
        nodes.staying(file, self.files.size(file))
    }

    /// The kernel forgets what it has of a file that others have changed, and has from then on what
    /// is known of it now. Gives whether it has the size as well.
    pub(super) async fn catch_up(&self, who: &Credential, node: u64, file: &FileHandle) -> bool {
        let now = self.files.version(file);
        self.write_back(node).await;
        self.has_forgotten(who, node, (file, now)).await
    }

    /// The same where it has forgotten its data of before this version. Without the size of a file
    /// that has grown sendfile(2), splice(2) and mappings end where it ended: they do not request
    /// attributes as read(2) does.
    async fn has_forgotten(
        &self,
        who: &Credential,
        node: u64,
        (file, version): (&FileHandle, Option<Version>),
    ) -> bool {
        let has_size = self.follow_to(who, node, self.files.size(file)).await;
        if has_size {
            self.nodes.lock().caught_up(node, version, self.writes_back);
        }
        has_size
    }

    /// The kernel writes what it has of a node, and forgets its data.
    pub(crate) async fn write_back(&self, node: u64) {
        self.forget_pages(node, 0, 0).await;
    }

    /// The same of `length` bytes from `offset` on; 0 for all there are.
    pub(super) async fn forget_pages(&self, node: u64, offset: u64, length: u64) {
        self.notifier.notify(Notice::Forget { node, offset, length }).await;
    }

    /// Before and after a write past the kernel's cache: what it has of the file by other nodes is
    /// written, and no longer the file's, and an append through these asks for the end.
    pub(super) async fn others_forget(&self, node: u64) {
        let others = self.nodes.lock().others(node);
        for (other, _) in others.iter().filter(|(_, known)| known.opens > 0) {
            self.write_back(*other).await;
            self.is_to_ask(*other).await;
        }
    }

    /// An open file that somebody else has changed: a kernel that writes back would not see it
    /// (`tail -f`). It forgets what it has of the data, unless programs here write them, too; and a
    /// file that has grown it is given the last byte of, which moves the end.
    pub(super) async fn follow(&self, who: &Credential, node: u64, attributes: &Fattr3) {
        let (now, forgets) = {
            let nodes = self.nodes.lock();
            let Some(known) = nodes.find(node) else { return };
            let now = self.files.version(&known.file);
            // Ours, or of no owner: a reply has overtaken what we know to be written.
            if known.version.is_none() || known.version == now {
                return;
            }
            (now, known.data != now && known.has_pages && known.opens > 0 && !known.is_written)
        };
        if forgets {
            self.write_back(node).await;
            if let Some(node) = self.nodes.lock().find_mut(node) {
                node.data = now;
            }
        }
        self.follow_to(who, node, attributes.size).await;
    }

    /// The last byte of a file of this size. Read by a task of its own: who waits for it may be
    /// killed, and the file is to be closed all the same.
    async fn last_byte(&self, who: &Credential, file: &FileHandle, size: u64) -> Option<Bytes> {
        let open = self.files.open_made(who, *file);
        let (tell, answer) = oneshot::channel();
        self.clock.spawn(async move {
            let last = open.read(size.saturating_sub(1), 1).await;
            open.close().await;
            // Nobody may be waiting any more.
            tell.send(last).ok();
        });
        answer.await.ok()?.ok().filter(|last| last.len() == 1)
    }

    /// A file that has grown, whoever has made it so long. Gives whether the kernel has that size.
    pub(super) async fn follow_to(&self, who: &Credential, node: u64, size: u64) -> bool {
        let (file, had) = match self.nodes.lock().find(node) {
            Some(known) if known.size < size => (known.file, known.size),
            known => return known.is_some(),
        };
        // What the kernel has written reaches us before its data are forgotten; and the page in
        // which the file ended has nothing behind the end.
        self.forget_pages(node, had, 0).await;
        let Ok(attributes) = self.files.getattr(who, file).await else {
            return false;
        };
        if self.nodes.lock().find(node).is_none_or(|known| known.size >= attributes.size) {
            return true;
        }
        let offset = attributes.size - 1;
        let last = self.last_byte(who, &file, attributes.size).await;
        let is_read = last.is_some();
        let data = last.unwrap_or(Bytes::from_static(&[0]));
        if !self.notifier.notify(Notice::Store { node, offset, data }).await {
            return false;
        }
        if let Some(known) = self.nodes.lock().find_mut(node) {
            known.size = known.size.max(attributes.size);
        }
        if !is_read {
            // Who may not read the file has moved its end all the same.
            self.notifier.notify(Notice::Forget { node, offset, length: 1 }).await;
        }
        true
    }

    /// A reply shows where a file ends: who does not write back may take it to end there from now
    /// on.
    pub(super) fn ends_at(&self, node: u64, end: u64) {
        if !self.writes_back
            && let Some(known) = self.nodes.lock().find_mut(node)
        {
            known.size = known.size.min(end);
        }
    }

    /// What the kernel has of a file is not what the file has: it forgets what programs have open,
    /// and whoever opens the file next gets another node.
    pub(super) async fn disown(&self, file: &FileHandle) {
        let open = self.nodes.lock().lost(file);
        for node in open {
            self.write_back(node).await;
        }
    }
}
