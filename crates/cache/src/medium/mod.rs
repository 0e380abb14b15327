//! Where segments lie: a folder of a local file system, or memory in tests and worlds.

use std::fmt::Debug;
use std::io;
use std::sync::Arc;

use crate::key::Name;
use crate::limits::Filled;
use crate::orders::Order;
use crate::pins::Pins;

pub mod folder;
pub mod memory;

pub use folder::Folder;
pub use memory::Memory;

/// Receives segments, each with the bytes that it takes.
pub type Each<'a> = dyn FnMut(&[(Name, u64)]) + 'a;

/// Segments by name. All calls may block on a disk, unless they say that they do not.
pub trait Medium: Debug + Send + Sync {
    /// None: there is none of this name.
    ///
    /// # Errors
    /// As the file system says.
    fn open(&self, name: Name) -> io::Result<Option<Arc<dyn Stored>>>;

    /// An empty one, which takes the place of one that was there; whoever has that open keeps it.
    ///
    /// # Errors
    /// As the file system says.
    fn make(&self, name: Name) -> io::Result<Arc<dyn Stored>>;

    /// It need not be there.
    ///
    /// # Errors
    /// As the file system says.
    fn remove(&self, name: Name) -> io::Result<()>;

    /// All that are there, each with the bytes that it takes, those that were changed longest ago
    /// first.
    ///
    /// # Errors
    /// As the file system says; what was reported before holds.
    fn list(&self, each: &mut Each<'_>) -> io::Result<()>;

    /// What is free of the file system.
    ///
    /// # Errors
    /// As the file system says.
    fn free(&self) -> io::Result<Free>;

    /// What lay there when it was last noted, and notes what lies there now.
    fn noted(&self) -> Option<Filled> {
        None
    }

    /// Notes what lies there, for the next process.
    fn note(&self, filled: Filled) {
        let _ = filled;
    }

    /// What was missed of which files, as it was noted last ([`crate::missed`]).
    fn missed(&self) -> Option<String> {
        None
    }

    /// Notes it, for the next process and for commands.
    fn note_missed(&self, text: &str) {
        let _ = text;
    }

    /// What commands have ordered since the last call.
    fn orders(&self) -> Vec<Order> {
        Vec::new()
    }

    /// What was ordered is carried out and noted.
    fn ordered(&self) {}

    /// The files that stay, if that has changed since the last call.
    fn pins(&self) -> Option<Pins> {
        None
    }
}

/// Room of a file system.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Free {
    /// For us.
    pub bytes: u64,
    pub all_bytes: u64,
}

/// A segment that is open.
pub trait Stored: Debug + Send + Sync {
    /// Reads until `into` is full or the segment ends. With `at_once` only what needs no disk:
    /// [`io::ErrorKind::WouldBlock`] else.
    ///
    /// # Errors
    /// As the file system says.
    fn read(&self, at: u64, into: &mut [u8], at_once: bool) -> io::Result<usize>;

    /// # Errors
    /// As the file system says.
    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()>;

    /// It is at least so long, before anything is written so far behind. Local file systems
    /// allocate room behind the end of what grows (XFS: as much again), which no bound would count.
    ///
    /// # Errors
    /// As the file system says.
    fn lengthen(&self, bytes: u64) -> io::Result<()> {
        let _ = bytes;
        Ok(())
    }

    /// As a [`Stored::write`] of zeros that takes no room, where the file system can do that.
    ///
    /// # Errors
    /// As the file system says.
    fn clear(&self, at: u64, bytes: usize) -> io::Result<()> {
        self.write(at, &vec![0; bytes])
    }
}
