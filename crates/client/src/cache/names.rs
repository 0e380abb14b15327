//! Which name of a directory leads to which handle, or to nothing.
//!
//! What is remembered is good as long as nobody else has changed the directory, which its version
//! tells (see [`super::attributes`]). Changes of our own are entered here as they are answered.

use lru::LruCache;
use wire::nfs3::FileHandle;

use super::attributes::{Version, at_least_one};

/// Where a name leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Target {
    File(FileHandle),
    /// There is no such name.
    Nothing,
}

/// See the module's head.
#[derive(Debug)]
pub struct Names {
    names: LruCache<Name, (Version, Target)>,
}

type Name = (FileHandle, Box<[u8]>);

impl Names {
    pub fn new(max: usize) -> Self {
        Self { names: LruCache::new(at_least_one(max)) }
    }

    /// Where `name` leads, if it is known for this version of the directory.
    pub fn find(&mut self, dir: &FileHandle, name: &[u8], version: Version) -> Option<Target> {
        let key = (*dir, name.into());
        let (known, target) = *self.names.get(&key)?;
        if known != version {
            self.names.pop(&key);
            return None;
        }
        Some(target)
    }

    pub fn put(&mut self, dir: &FileHandle, name: &[u8], version: Version, target: Target) {
        self.names.put((*dir, name.into()), (version, target));
    }

    pub fn forget(&mut self, dir: &FileHandle, name: &[u8]) {
        self.names.pop(&(*dir, name.into()));
    }
}
