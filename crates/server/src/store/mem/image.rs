//! Images of a memory store: copies of all files as they are at a moment, and the way to keep one
//! up to date. For a store that tells apart what a crash leaves.

use bytes::Bytes;
use parking_lot::RwLock;

use crate::types::{Attr, Handle, Status};

use super::chunks::Prepared;
use super::inodes::Limits;
use super::{MemOptions, MemStore, TimeSource};

impl MemStore {
    /// Another store with the same files under the same handles. Their data are shared until one
    /// of the two changes them.
    pub(in crate::store) fn image(&self, options: MemOptions, time: TimeSource) -> Self {
        let mut tree = self.tree.read().clone();
        tree.limits = Limits { bytes_max: options.bytes_max, files_max: options.files_max };
        Self { options, time, tree: RwLock::new(tree) }
    }

    /// Data as they are, and what the file is like, without an access.
    ///
    /// # Errors
    /// As [`Self::put`].
    pub(in crate::store) fn peek(
        &self,
        handle: &Handle,
        offset: u64,
        len: usize,
    ) -> Result<(Bytes, Attr), Status> {
        let tree = self.tree.read();
        let id = tree.resolve(handle)?;
        let data = tree.inode(id)?.regular()?.read(offset, len).gather();
        Ok((data, tree.attr(id)?))
    }

    /// Puts data where another image has them, which says `attr` of the file.
    ///
    /// # Errors
    /// `Stale` when the file is not there, `Invalid` or `IsDirectory` when it is another kind.
    pub(in crate::store) fn put(
        &self,
        handle: &Handle,
        offset: u64,
        data: &[u8],
        attr: &Attr,
    ) -> Result<(), Status> {
        let prepared = Prepared::new(offset, data);
        let mut tree = self.tree.write();
        let id = tree.resolve(handle)?;
        tree.inode(id)?.regular()?;
        tree.with_mut(id, |inode| {
            inode.regular_mut()?.write_prepared(offset, &prepared);
            inode.mode = attr.mode;
            inode.modified = attr.modified;
            inode.changed = attr.changed;
            Ok(())
        })?
    }
}
