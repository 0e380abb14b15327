//! What a caller may do with a file, as the server answered ACCESS.
//!
//! Good as long as the file's attributes are good and its time of change is what it was; whoever
//! opens a file needs those that were requested since.

use lru::LruCache;
use perf::units::Instant;
use wire::nfs3::{FileHandle, NfsTime};

use super::attributes::at_least_one;

/// Which caller: the number under which [`crate::files`] knows a credential.
#[derive(Clone, Copy, Debug, Eq, Hash, PartialEq)]
pub struct CallerId(pub u64);

/// See the module's head.
#[derive(Debug)]
pub struct Rights {
    rights: LruCache<(FileHandle, CallerId), Known>,
}

#[derive(Clone, Copy, Debug)]
struct Known {
    ctime: NfsTime,
    requested: u32,
    granted: u32,
    /// When the oldest of them was requested.
    sent: Instant,
}

impl Rights {
    pub fn new(max: usize) -> Self {
        Self { rights: LruCache::new(at_least_one(max)) }
    }

    /// Which of the rights `requested` are granted, if all of them are known.
    pub fn find(
        &mut self,
        file: &FileHandle,
        who: CallerId,
        ctime: NfsTime,
        requested: u32,
    ) -> Option<u32> {
        let known = self.rights.get(&(*file, who))?;
        (known.ctime == ctime && known.requested & requested == requested)
            .then_some(known.granted & requested)
    }

    /// The same, if all of them were requested since `then`.
    pub fn find_since(
        &mut self,
        file: &FileHandle,
        who: CallerId,
        (ctime, then): (NfsTime, Instant),
        requested: u32,
    ) -> Option<u32> {
        let is_of_then = self.rights.peek(&(*file, who))?.sent >= then;
        self.find(file, who, ctime, requested).filter(|_| is_of_then)
    }

    /// A reply to a call that was sent then has these rights.
    pub fn put(
        &mut self,
        file: &FileHandle,
        who: CallerId,
        (ctime, sent): (NfsTime, Instant),
        requested: u32,
        granted: u32,
    ) {
        let mut known = Known { ctime, requested, granted: granted & requested, sent };
        if let Some(older) = self.rights.peek(&(*file, who))
            && older.ctime == ctime
            && older.requested & !requested != 0
        {
            known.granted |= older.granted & !requested;
            known.requested |= older.requested;
            known.sent = known.sent.min(older.sent);
        }
        self.rights.put((*file, who), known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rights_are_as_old_as_the_oldest_of_them() {
        let (file, who, ctime) = (FileHandle::new(&[1]).unwrap(), CallerId(1), NfsTime::default());
        let [then, later] = [1, 2].map(Instant::from_nanos);
        let mut rights = Rights::new(10);
        rights.put(&file, who, (ctime, then), 3, 1);
        assert_eq!(rights.find_since(&file, who, (ctime, then), 3), Some(1));
        assert_eq!(rights.find_since(&file, who, (ctime, later), 3), None);
        rights.put(&file, who, (ctime, later), 4, 4);
        assert_eq!(rights.find(&file, who, ctime, 7), Some(5));
        assert_eq!(rights.find_since(&file, who, (ctime, later), 4), None, "one age for all");
        rights.put(&file, who, (ctime, later), 7, 4);
        assert_eq!(rights.find_since(&file, who, (ctime, later), 7), Some(4));
    }
}
