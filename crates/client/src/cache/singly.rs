//! Directories of which one name after the other is asked for: the second time they are listed, and
//! that tells of all.
//!
//! A program that walks a tree that it knows (git, make) asks for every name. One LOOKUP each is
//! what a client makes of it; one READDIRPLUS tells the same of a whole directory. Who asks for
//! one name gets a LOOKUP. A listing that did not tell what was asked for is not repeated for as
//! long as nobody changes the directory.

use lru::LruCache;
use wire::nfs3::FileHandle;

use super::attributes::{Version, at_least_one};

/// Directories that are followed; of more, those that were asked for the longest time ago begin
/// anew.
const DIRS_MAX: usize = 4096;

/// See the module's head.
#[derive(Debug)]
pub struct Singly {
    dirs: LruCache<FileHandle, (Version, Asked)>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Asked {
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
    /// A name of a directory of this version has to be asked for: whether to list instead.
    pub fn lists(&mut self, dir: &FileHandle, version: Version) -> bool {
        match self.dirs.get(dir) {
            Some((known, Asked::Once)) if *known == version => {
                self.dirs.pop(dir);
                true
            }
            Some((known, Asked::InVain)) if *known == version => false,
            _ => {
                self.dirs.put(*dir, (version, Asked::Once));
                false
            }
        }
    }

    /// A listing has not told what was asked for.
    pub fn in_vain(&mut self, dir: &FileHandle, version: Version) {
        self.dirs.put(*dir, (version, Asked::InVain));
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
        assert!(!singly.lists(&dir, now) && singly.lists(&dir, now), "what was told is old again");
        assert!(!singly.lists(&dir, now));
        assert!(!singly.lists(&dir, later), "others have changed it");
        singly.in_vain(&dir, later);
        assert!(!singly.lists(&dir, later) && !singly.lists(&dir, later));
        assert!(!singly.lists(&dir, now), "it is another state");
    }
}
