//! What a caller may do with a file, as the server answered ACCESS.
//!
//! Good as long as the file's attributes are good and its time of change is what it was.

use lru::LruCache;
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

    pub fn put(
        &mut self,
        file: &FileHandle,
        who: CallerId,
        ctime: NfsTime,
        requested: u32,
        granted: u32,
    ) {
        let mut known = Known { ctime, requested, granted: granted & requested };
        if let Some(older) = self.rights.peek(&(*file, who))
            && older.ctime == ctime
        {
            known.granted |= older.granted & !requested;
            known.requested |= older.requested;
        }
        self.rights.put((*file, who), known);
    }
}
