//! Which name of a directory leads to which handle, or to nothing.
//!
//! What is remembered is good as long as nobody else has changed the directory, which its version
//! tells (see [`super::attributes`]). Changes of our own are entered here as they are answered.
//!
//! Of a directory that we have made all names are known: what is not here is not there. For that
//! a name that is forgotten, or whose change was not answered, stays here as one that is in doubt.

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

/// Directories of which all names are known; of more, those that were requested the longest time
/// ago are like others.
const WHOLE_MAX: usize = 4096;

/// See the module's head.
#[derive(Debug)]
pub struct Names {
    names: LruCache<Name, (Version, Known)>,
    whole: LruCache<FileHandle, Version>,
}

type Name = (FileHandle, Box<[u8]>);

#[derive(Clone, Copy, Debug)]
enum Known {
    Leads(Target),
    InDoubt,
}

impl Names {
    pub fn new(max: usize) -> Self {
        let (max, whole_max) = (at_least_one(max), at_least_one(WHOLE_MAX));
        Self { names: LruCache::new(max), whole: LruCache::new(whole_max) }
    }

    /// Where `name` leads, if it is known for this version of the directory.
    pub fn find(&mut self, dir: &FileHandle, name: &[u8], version: Version) -> Option<Target> {
        let key = (*dir, name.into());
        let (known, target) = *self.names.get(&key)?;
        if known != version {
            self.names.pop(&key);
            return None;
        }
        match target {
            Known::Leads(target) => Some(target),
            Known::InDoubt => None,
        }
    }

    /// Whether the directory of this version has no such name, because it has none but those that
    /// are known.
    pub fn is_absent(&mut self, dir: &FileHandle, name: &[u8], version: Version) -> bool {
        self.is_whole(dir, version)
            && self.names.peek(&(*dir, name.into())).is_none_or(|(known, _)| *known != version)
    }

    /// Whether all names of a directory of this version are known: we have made it.
    pub fn is_whole(&mut self, dir: &FileHandle, version: Version) -> bool {
        self.whole.get(dir) == Some(&version)
    }

    /// A directory that is empty.
    pub fn is_empty(&mut self, dir: &FileHandle, version: Version) {
        self.whole.put(*dir, version);
    }

    /// Names may have come of which nothing is known.
    pub fn is_not_whole(&mut self, dir: &FileHandle) {
        self.whole.pop(dir);
    }

    pub fn put(&mut self, dir: &FileHandle, name: &[u8], version: Version, target: Target) {
        self.keep(dir, name, version, Known::Leads(target));
    }

    pub fn forget(&mut self, dir: &FileHandle, name: &[u8]) {
        match self.whole.peek(dir).copied() {
            Some(version) => self.keep(dir, name, version, Known::InDoubt),
            None => drop(self.names.pop(&(*dir, name.into()))),
        }
    }

    fn keep(&mut self, dir: &FileHandle, name: &[u8], version: Version, known: Known) {
        let key = (*dir, name.into());
        if let Some((gone, _)) = self.names.push(key.clone(), (version, known))
            && gone != key
        {
            self.whole.pop(&gone.0);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::attributes::tests::versions;

    fn handle(number: u8) -> FileHandle {
        FileHandle::new(&[number]).unwrap()
    }

    #[test]
    fn of_a_directory_that_was_empty_all_names_are_known() {
        let ([now, later], dir, file) = (versions(), handle(0), Target::File(handle(1)));
        let mut names = Names::new(10);
        assert!(!names.is_absent(&dir, b"a", now), "nothing is known of it");
        names.is_empty(&dir, now);
        names.put(&dir, b"a", now, file);
        assert!(names.is_absent(&dir, b"b", now) && !names.is_absent(&dir, b"a", now));
        assert!(!names.is_absent(&dir, b"b", later), "others have changed it");
        names.forget(&dir, b"b");
        assert!(!names.is_absent(&dir, b"b", now), "it may have been made");
        assert_eq!(names.find(&dir, b"b", now), None);
        names.put(&dir, b"b", now, Target::Nothing);
        assert_eq!(names.find(&dir, b"b", now), Some(Target::Nothing));
        names.is_not_whole(&dir);
        assert!(!names.is_absent(&dir, b"c", now));
    }

    #[test]
    fn a_name_for_which_there_is_no_room_is_not_taken_for_absent() {
        let ([now, _], dir, other) = (versions(), handle(0), handle(1));
        let mut names = Names::new(2);
        names.is_empty(&dir, now);
        names.is_empty(&other, now);
        names.put(&dir, b"a", now, Target::File(handle(2)));
        names.put(&other, b"b", now, Target::File(handle(3)));
        names.put(&other, b"b", now, Target::File(handle(4)));
        assert!(names.is_absent(&dir, b"x", now));
        names.put(&other, b"c", now, Target::File(handle(5)));
        assert!(!names.is_absent(&dir, b"a", now), "it had to go");
        assert!(names.is_absent(&other, b"x", now));
    }
}
