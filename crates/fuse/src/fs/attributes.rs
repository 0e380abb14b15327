//! What asks and sets attributes.

use std::time::Duration;

use client::session::Credential;
use rustix::io::Errno;
use wire::nfs3::{FType, Fattr3, FileHandle, Sattr3, SetTime, access};

use super::names::{NAME_LEN_MAX, done};
use super::{FileSystem, errno};
use crate::abi::answer::{self, Statfs};
use crate::abi::fattr;
use crate::abi::request::Setattr;
use crate::attributes::{is_out_of_range, kernel_mtime, wanted};
use crate::inflight::Reply;
use crate::notify::Notice;

/// The unit in which space is given.
const BLOCK_BYTES: u32 = 4096;

impl FileSystem {
    pub(super) async fn getattr(
        &self,
        who: Credential,
        node: u64,
        file: Option<u64>,
        reply: Reply,
    ) {
        let result = async {
            let handle = self.file(node)?;
            let who = self.opener(file, who);
            let (attributes, valid) = self.attributes(&who, node, file, handle).await?;
            if self.writes_back && attributes.ftype == FType::Reg {
                self.follow(&who, node, &attributes).await;
            }
            self.ends_at(node, attributes.size);
            Ok((attributes, valid))
        };
        self.answer_attr(result.await, reply);
    }

    pub(super) async fn setattr(&self, who: Credential, node: u64, setattr: Setattr, reply: Reply) {
        // The file of which size or time was set, and the size that the node had.
        let mut changed = None;
        let result = async {
            let handle = self.file(node)?;
            let mut new = wanted(&setattr, self.clock.since_1970());
            // A file that is cut through its descriptor is cut by who has opened it.
            let who = match new.size {
                Some(_) => self.opener(setattr.file, who),
                None => who,
            };
            if self.without_own_time(node, &setattr, &mut new) {
                self.links_changed(node).await;
            }
            if new == Sattr3::default() {
                // A kernel that tells a file's time does not look at the attributes, and the file
                // may be gone: it tells that of each file whose last name it removes. Those that
                // are not good it asks for when somebody wants them.
                let known = self.files.found(&handle).map(|found| found.attributes);
                let known = known.or_else(|| self.files.last(&handle));
                return Ok((handle, known.unwrap_or_else(|| self.presumed(node))));
            }
            if new.size.is_some() && setattr.file.is_none() {
                self.may_cut(&who, handle).await?;
            }
            if new.mode.is_some() || new.uid.is_some() || new.gid.is_some() {
                self.write_back_of_writers(node).await;
            }
            let attributes = self.files.setattr(&who, handle, new).await.map_err(errno)?;
            let mut nodes = self.nodes.lock();
            if new.size.is_some() {
                nodes.changed(node);
            }
            if let Some(node) = nodes.find_mut(node) {
                let sets_time = new.mtime != SetTime::DontChange;
                changed = (new.size.is_some() || sets_time).then_some((handle, node.size));
                node.size = new.size.unwrap_or(node.size);
                node.kernel_mtime = kernel_mtime(&setattr).unwrap_or(node.kernel_mtime);
                if sets_time {
                    (node.mtime, node.owes_time) = (None, false);
                }
            }
            if self.writes_back && is_out_of_range(&setattr) {
                // Whoever looks when it is answered finds another node.
                nodes.lost(&handle);
            }
            drop(nodes);
            Ok((handle, attributes))
        };
        let valid = |(file, attributes)| (attributes, self.attr_valid(node, &file));
        let is_heard = self.answer_attr(result.await.map(valid), reply);
        let Some((file, had)) = changed else { return };
        if !is_heard && let Some(node) = self.nodes.lock().find_mut(node) {
            node.size = had;
        }
        // Size and time one that writes back has for itself, and no later reply could correct them:
        // as they were before what it has not heard of, or a time as the program has it.
        if self.writes_back && (!is_heard || is_out_of_range(&setattr)) {
            self.disown(&file).await;
        }
    }

    /// truncate(2) by name. A server lets an owner cut a file that it may not write, as programs do
    /// that have it open; so the right is queried where no kernel has looked at the mode.
    async fn may_cut(&self, who: &Credential, file: FileHandle) -> Result<(), Errno> {
        if self.callers.are_several() {
            return Ok(());
        }
        let granted = self.files.access(who, file, access::MODIFY).await.map_err(errno)?;
        if granted & access::MODIFY == 0 { Err(Errno::ACCESS) } else { Ok(()) }
    }

    /// Before rights are taken from who has written through a mapping what it has written goes to
    /// the server. A kernel that writes back does so itself.
    async fn write_back_of_writers(&self, node: u64) {
        let has_writers = self.nodes.lock().find(node).is_some_and(|node| node.writers > 0);
        if has_writers && !self.writes_back {
            self.write_back(node).await;
        }
    }

    /// The kernel's own time of its own writes, or of a cut, follows at the close: here it would
    /// wait for all data, and only the owner may set it. What comes without an open file a program
    /// has set; or the kernel sends the time it has, because it has changed a name of the file, and
    /// another client may have left a later one. Gives whether a name was changed.
    fn without_own_time(&self, id: u64, setattr: &Setattr, new: &mut Sattr3) -> bool {
        let SetTime::ClientTime(time) = new.mtime else { return false };
        if !self.writes_back || setattr.valid & fattr::ATIME != 0 {
            return false;
        }
        let mut nodes = self.nodes.lock();
        let is_own = nodes.sends_time(id);
        let Some(node) = nodes.find_mut(id) else { return false };
        let is_known = std::mem::replace(&mut node.kernel_mtime, time) == time;
        let is_of_writes = setattr.file.is_some() || new.size.is_some();
        if is_of_writes {
            node.mtime = (node.opens > 0).then_some(time);
            node.owes_time = false;
        }
        if is_of_writes || is_known && is_own {
            new.mtime = SetTime::DontChange;
        }
        is_own
    }

    /// A name of a file was made or removed, and the kernel has the number of links of the node of
    /// that name alone: those of all it requests.
    async fn links_changed(&self, node: u64) {
        let others = self.nodes.lock().others(node);
        if others.is_empty() {
            return;
        }
        for node in others.into_iter().map(|(other, _)| other).chain([node]) {
            self.notifier.notify(Notice::ForgetAttributes { node }).await;
        }
    }

    /// What the kernel has of a node, as far as it is known.
    fn presumed(&self, node: u64) -> Fattr3 {
        let nodes = self.nodes.lock();
        let known = nodes.find(node);
        let (size, time) = known.map(|node| (node.size, node.kernel_mtime)).unwrap_or_default();
        Fattr3 { mode: 0o600, fileid: 0, ..Fattr3::of_file(size, time) }
    }

    /// False when nobody has heard it.
    fn answer_attr(&self, result: Result<(Fattr3, Duration), Errno>, reply: Reply) -> bool {
        match result {
            Ok((attributes, valid)) => reply.body(&answer::attr(&self.attr(&attributes), valid)),
            Err(errno) => reply.report_error(errno),
        }
    }

    /// access(2), where the kernel does not decide by itself.
    pub(super) async fn access(&self, who: Credential, node: u64, mask: u32, reply: Reply) {
        let result = async {
            let file = self.file(node)?;
            if mask & 7 == 0 {
                return Ok(());
            }
            let attributes = self.files.getattr(&who, file).await.map_err(errno)?;
            let needed = rights(attributes.ftype, mask);
            let granted = self.files.access(&who, file, needed).await.map_err(errno)?;
            if granted & needed == needed { Ok(()) } else { Err(Errno::ACCESS) }
        };
        done(result.await, reply);
    }

    pub(super) async fn statfs(&self, who: Credential, reply: Reply) {
        match self.files.statfs(&who).await {
            Ok(space) => {
                let blocks = |bytes: u64| bytes / u64::from(BLOCK_BYTES);
                let numbers = Statfs {
                    blocks: blocks(space.tbytes),
                    blocks_free: blocks(space.fbytes),
                    blocks_available: blocks(space.abytes),
                    files: space.tfiles,
                    files_free: space.afiles.min(space.ffiles),
                    block_bytes: BLOCK_BYTES,
                    transfer_bytes: self.files.session().sizes().write_bytes_max,
                    #[expect(clippy::cast_possible_truncation, reason = "it is 255")]
                    name_len_max: NAME_LEN_MAX as u32,
                };
                reply.body(&answer::statfs(&numbers));
            }
            Err(error) => reply.error(errno(error)),
        }
    }
}

/// What access(2) asks for, in NFS's rights.
fn rights(ftype: FType, mask: u32) -> u32 {
    let is_dir = ftype == FType::Dir;
    let mut needed = 0;
    if mask & 4 != 0 {
        needed |= access::READ;
    }
    if mask & 2 != 0 {
        needed |= access::MODIFY | access::EXTEND;
        if is_dir {
            needed |= access::DELETE;
        }
    }
    if mask & 1 != 0 {
        needed |= if is_dir { access::LOOKUP } else { access::EXECUTE };
    }
    needed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_of_a_directory_are_others_than_a_files() {
        assert_eq!(rights(FType::Reg, 5), access::READ | access::EXECUTE);
        assert_eq!(rights(FType::Dir, 1), access::LOOKUP);
        assert_eq!(rights(FType::Dir, 2), access::MODIFY | access::EXTEND | access::DELETE);
    }
}
