//! Which file a name leads to, as far as the origin has answered it: a REMOVE or RENAME changes
//! links and times of a file that it does not name.
//!
//! Bounded: [`NAMES_MAX`]; of more, the one that was used longest ago is not known.

use std::num::NonZeroUsize;

use lru::LruCache;
use parking_lot::Mutex;
use wire::nfs3::{FType, Fattr3, FileHandle};

/// Clients look a name up before they remove it (guess).
const NAMES_MAX: NonZeroUsize = NonZeroUsize::new(1 << 14).expect("it is not zero");

type Name = (FileHandle, Box<[u8]>);

/// Where a name leads.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Leads {
    To(FileHandle),
    /// Nothing has the name, or what has no bytes that could be read ahead.
    Nowhere,
}

impl Leads {
    pub(crate) fn to(file: FileHandle, returned: Option<&Fattr3>) -> Self {
        match returned {
            Some(returned) if returned.ftype != FType::Reg => Self::Nowhere,
            _ => Self::To(file),
        }
    }
}

/// See the module's head.
pub(crate) struct Names {
    /// Guards what is known; held for looks.
    known: Mutex<LruCache<Name, Leads>>,
}

impl Default for Names {
    fn default() -> Self {
        Self { known: Mutex::new(LruCache::new(NAMES_MAX)) }
    }
}

impl std::fmt::Debug for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Names").field("known", &self.known.lock().len()).finish()
    }
}

impl Names {
    /// The origin has answered, or done, this.
    pub(crate) fn note(&self, dir: &FileHandle, name: &[u8], leads: Leads) {
        self.known.lock().put((*dir, name.into()), leads);
    }

    /// Where a name led that leads there no more.
    pub(crate) fn take(&self, dir: &FileHandle, name: &[u8]) -> Option<Leads> {
        self.known.lock().pop(&(*dir, name.into()))
    }
}
