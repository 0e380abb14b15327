//! Caches as they are before a test: what this process may do about those of the system.
//!
//! A file's pages can be dropped by anybody who may read it, once they are written
//! (`posix_fadvise`); names and attributes stay. Who may write `/proc/sys/vm/drop_caches` drops
//! everybody's, with names and attributes. What a server keeps, and what lies below a kernel, stays
//! in any case. A mount of our own is better made anew.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use super::failed::Failed;
use super::run::flush;
use crate::cached;

const DROP_CACHES: &str = "/proc/sys/vm/drop_caches";

/// Whether this process may drop the caches of the whole system.
pub fn may_drop_caches() -> bool {
    rustix::fs::access(DROP_CACHES, rustix::fs::Access::WRITE_OK).is_ok()
}

/// Drops the pages of every file below `dirs`.
///
/// # Errors
/// As the system says of reading the directories; a file that cannot be dropped stays.
pub fn drop_pages(dirs: &[PathBuf]) -> Result<(), Failed> {
    if let Some(dir) = dirs.first() {
        // Pages that are not written cannot be dropped.
        flush(dir)?;
    }
    let mut left: Vec<PathBuf> = dirs.to_vec();
    while let Some(dir) = left.pop() {
        for entry in fs::read_dir(&dir).map_err(Failed::at("listing", &dir))? {
            let entry = entry.map_err(Failed::at("listing", &dir))?;
            let kind = entry.file_type().map_err(Failed::at("looking at", &entry.path()))?;
            if kind.is_dir() {
                left.push(entry.path());
            } else {
                cached::drop_pages(&entry.path()).ok();
            }
        }
    }
    Ok(())
}

/// Drops the caches of the whole system, names and attributes as well.
///
/// # Errors
/// It is for root alone.
pub fn drop_system() -> Result<(), Failed> {
    let path = Path::new(DROP_CACHES);
    let dropped = fs::OpenOptions::new().write(true).open(path);
    dropped.and_then(|mut file| file.write_all(b"3\n")).map_err(Failed::at("writing", path))
}

/// Files on the local disk that have nothing to do with the tests, as the paper had them.
#[derive(Debug)]
pub struct Unrelated {
    file: File,
}

/// As much as the paper read.
const UNRELATED_BYTES: usize = 8 << 20;

impl Unrelated {
    /// Makes a temporary file.
    ///
    /// # Errors
    /// No room for it.
    pub fn new() -> Result<Self, Failed> {
        let failed = || Failed::at("making a temporary file in", &std::env::temp_dir());
        let mut file = tempfile::tempfile().map_err(failed())?;
        file.write_all(&vec![1; UNRELATED_BYTES]).map_err(failed())?;
        Ok(Self { file })
    }

    /// Reads it all.
    ///
    /// # Errors
    /// As the system says.
    pub fn read(&mut self) -> Result<(), Failed> {
        use std::io::Seek;
        let mut content = Vec::with_capacity(UNRELATED_BYTES + 1);
        let read = self.file.rewind().and_then(|()| self.file.read_to_end(&mut content));
        read.map(drop).map_err(Failed::at("reading a temporary file in", &std::env::temp_dir()))
    }
}
