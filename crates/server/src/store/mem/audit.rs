//! Whether the tree's books balance.

use std::collections::BTreeMap;

use super::directory::FileId;
use super::inode::Body;
use super::inodes::{Inodes, ROOT};

impl Inodes {
    /// Compares what the tree says of itself with what a walk over everything finds.
    pub(super) fn audit(&self) -> Result<(), &'static str> {
        let used = self.inodes().map(|(_, inode)| inode.used()).sum();
        let files = self.inodes().count() as u64;
        ensure(self.counted() == (used, files), "bytes or files counted")?;

        // Names per file: the root has one without an entry, each directory its own ".", and its
        // parent's name for each subdirectory's "..".
        let mut names: BTreeMap<FileId, u32> = BTreeMap::from([(ROOT, 1)]);
        for (id, inode) in self.inodes() {
            let Body::Directory(directory) = &inode.body else {
                continue;
            };
            *names.entry(id).or_default() += 1;
            for (_, name, child) in directory.after(0) {
                ensure(directory.find(name) == Some(child), "name and cookie")?;
                *names.entry(child).or_default() += 1;
                let entry = self.inode(child).map_err(|_| "an entry without a file")?;
                if let Body::Directory(below) = &entry.body {
                    ensure(below.parent == id, "a directory's parent")?;
                    *names.entry(id).or_default() += 1;
                }
            }
        }
        for (id, inode) in self.inodes() {
            ensure(names.get(&id) == Some(&inode.links), "a file's links")?;
            ensure(inode.links > 0, "a file without a name")?;
        }
        Ok(())
    }
}

fn ensure(holds: bool, what: &'static str) -> Result<(), &'static str> {
    holds.then_some(()).ok_or(what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::mem::inode::tests::{directory, file};
    use crate::store::mem::inodes::Limits;

    #[test]
    fn a_file_that_no_name_leads_to_is_noticed() {
        let limits = Limits { bytes_max: 1 << 20, files_max: 10 };
        let mut root = directory(0o755, 0, 0);
        root.links = 2;
        let mut tree = Inodes::new(1, limits, root);
        assert_eq!(tree.audit(), Ok(()));
        let id = tree.add(file(0o644, 0, 0)).unwrap();
        assert_eq!(tree.audit(), Err("a file's links"));
        tree.discard(id);
        assert_eq!(tree.audit(), Ok(()));
    }
}
