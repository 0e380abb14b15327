//! Directories whose names are looked up one by one: for the second name the directory is listed,
//! and the reply has all of them.
//!
//! A program that walks a tree that it knows (git, make) looks every name up. A client makes one
//! LOOKUP each of that; one READDIRPLUS has the same of a whole directory. The first name is a
//! LOOKUP. A listing without the name that was wanted is not repeated for as long as nobody changes
//! the directory.

use lru::LruCache;
use wire::nfs3::FileHandle;

use super::attributes::{Version, at_least_one};

/// Directories that are followed; of more, the least recently used begin anew.
const DIRS_MAX: usize = 4096;

/// See the module's head.
#[derive(Debug)]
pub struct Singly {
    dirs: LruCache<FileHandle, (Version, LookedUp)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum LookedUp {
    Once,
    /// A listing is no help.
    InVain,
}

impl Default for Singly {
    fn default() -> Self {
        Self { dirs: LruCache::new(at_least_one(DIRS_MAX)) }
    }
}

impl Singly {
    /// Whether to list a directory of this version in place of a LOOKUP in it.
    pub fn lists(&mut self, dir: &FileHandle, version: Version) -> bool {
        match self.dirs.get(dir) {
            Some((known, LookedUp::Once)) if *known == version => {
                self.dirs.pop(dir);
                true
            }
            Some((known, LookedUp::InVain)) if *known == version => false,
            _ => {
                self.dirs.put(*dir, (version, LookedUp::Once));
                false
            }
        }
    }

    /// Whether [`Singly::lists`] would say so.
    pub fn would_list(&self, dir: &FileHandle, version: Version) -> bool {
        self.dirs.peek(dir) == Some(&(version, LookedUp::Once))
    }

    /// A listing did not have the name that was wanted.
    pub fn in_vain(&mut self, dir: &FileHandle, version: Version) {
        self.dirs.put(*dir, (version, LookedUp::InVain));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::attributes::tests::versions;

    #[test]
    fn every_second_name_is_listed_unless_that_was_in_vain() {
        let [now, later] = versions();
        let [dir, other] = [0, 1].map(|number| FileHandle::new(&[number]).unwrap());
        let mut singly = Singly::default();
        assert!(!singly.lists(&dir, now) && !singly.lists(&other, now));
        assert!(singly.lists(&dir, now));
        assert!(
            !singly.lists(&dir, now) && singly.lists(&dir, now),
            "what was listed is old again"
        );
        assert!(!singly.lists(&dir, now));
        assert!(!singly.lists(&dir, later), "others have changed it");
        singly.in_vain(&dir, later);
        assert!(!singly.lists(&dir, later) && !singly.lists(&dir, later));
        assert!(!singly.lists(&dir, now), "it is another state");
    }
}
