//! Files that may have lost the name by which they were found: an open has shown that somebody else
//! has changed one last in another way than by writing (its ctime is not its mtime).
//!
//! A file that another client has replaced by a RENAME lives on while somebody there has it open,
//! under a name that stands for it. Its handle is good, and a directory's attributes are good for
//! half a minute: whoever opens the name would get the old file, and lose it in the midst of
//! reading when that name goes. So its name is looked up at the server once more.

use lru::LruCache;
use wire::nfs3::{Fattr3, FileHandle};

use super::attributes::at_least_one;

/// Files that wait to be looked up again (guess); of more, the oldest keep their names.
const FILES_MAX: usize = 4096;

/// See the module's head.
#[derive(Debug)]
pub struct Moved {
    files: LruCache<FileHandle, ()>,
}

impl Default for Moved {
    fn default() -> Self {
        Self { files: LruCache::new(at_least_one(FILES_MAX)) }
    }
}

impl Moved {
    /// Somebody else has left the file so.
    pub fn changed(&mut self, file: &FileHandle, attributes: &Fattr3) {
        if attributes.ctime != attributes.mtime {
            self.files.put(*file, ());
        }
    }

    pub fn contains(&self, file: &FileHandle) -> bool {
        self.files.contains(file)
    }

    /// A reply has a name of it.
    pub fn named(&mut self, file: &FileHandle) {
        self.files.pop(file);
    }
}
