//! A kernel above a mounted file system: what it keeps of files.
//!
//! It is as simple as it can be and still believe the replies of `nfskit mount`: it keeps a file's
//! size and pages for as long as the file has the version with which it was found, and writes go to
//! both. What it keeps and should not shows in what programs read.

use std::collections::HashMap;

use client::cache::attributes::Version;
use client::files::Found;
use wire::nfs3::FileHandle;

#[derive(Default)]
pub(super) struct Kernel {
    /// Never walked: only looked up.
    nodes: HashMap<FileHandle, Node>,
    /// Nodes that were made and changes of their data.
    changes: u64,
}

pub(super) struct Node {
    pub(super) version: Version,
    pub(super) size: u64,
    pub(super) pages: Option<Vec<u8>>,
    /// Which change of all it was that made it or its data so: what was read before is not cached,
    /// nor of a node that was forgotten and named again.
    pub(super) changed: u64,
}

impl Kernel {
    fn next(&mut self) -> u64 {
        self.changes += 1;
        self.changes
    }

    /// A reply names a file.
    pub(super) fn named(&mut self, found: &Found) {
        let Found { handle, attributes, version } = *found;
        if self.node(&handle, Some(version)).is_none() {
            let changed = self.next();
            self.nodes
                .insert(handle, Node { version, size: attributes.size, pages: None, changed });
        }
    }

    pub(super) fn node(
        &mut self,
        file: &FileHandle,
        version: Option<Version>,
    ) -> Option<&mut Node> {
        self.nodes.get_mut(file).filter(|node| Some(node.version) == version)
    }

    /// A program begins to write.
    pub(super) fn writes(&mut self, file: &FileHandle, version: Option<Version>) {
        let changed = self.next();
        if let Some(node) = self.node(file, version) {
            node.changed = changed;
        }
    }

    /// A program has written through a descriptor of a version.
    pub(super) fn wrote(
        &mut self,
        file: &FileHandle,
        version: Option<Version>,
        at: u64,
        data: &[u8],
    ) {
        let changed = self.next();
        let Some(node) = self.node(file, version) else {
            // By an older node: what the newer one has is of before.
            self.nodes.remove(file);
            return;
        };
        node.changed = changed;
        let end = at + data.len() as u64;
        node.size = node.size.max(end);
        if let Some(pages) = &mut node.pages {
            let from = usize::try_from(at).unwrap_or(usize::MAX);
            let until = from.saturating_add(data.len());
            pages.resize(pages.len().max(until), 0);
            pages[from..until].copy_from_slice(data);
        }
    }

    /// A program cuts a file through a descriptor of a version: before it is done, so that nobody
    /// keeps what he reads meanwhile, and then.
    pub(super) fn cut(&mut self, file: &FileHandle, version: Option<Version>) {
        let changed = self.next();
        match self.node(file, version) {
            Some(node) => *node = Node { size: 0, pages: None, changed, ..*node },
            None => drop(self.nodes.remove(file)),
        }
    }
}
