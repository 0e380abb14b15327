//! How much of a file is in this host's memory, and dropping it from there: what anybody may do.

use std::fs::File;
use std::io::{self, IoSliceMut};
use std::path::Path;

use rustix::fs::{Advice, fadvise};
use rustix::io::{Errno, ReadWriteFlags, preadv2};

/// Pages of a file that are looked up.
const SAMPLED_PAGES: u64 = 256;
const PAGE_BYTES: u64 = 4 << 10;

/// Drops what is clean of the file's pages. A file system without pages to drop returns an error,
/// which is no failure: [`resident`] tells what is left.
///
/// # Errors
/// The file cannot be opened.
pub(crate) fn drop_pages(path: &Path) -> io::Result<()> {
    let file = File::open(path)?;
    fadvise(&file, 0, None, Advice::DontNeed).ok();
    Ok(())
}

/// The share of the file's pages that can be read without waiting (`RWF_NOWAIT`), from a sample;
/// `None` where the file system does not say.
pub(crate) fn resident(path: &Path, file_bytes: u64) -> Option<f64> {
    let file = File::open(path).ok()?;
    let pages = file_bytes / PAGE_BYTES;
    let sampled = pages.clamp(1, SAMPLED_PAGES);
    let mut resident = 0;
    let mut byte = [0];
    for sample in 0..sampled {
        let offset = pages * sample / sampled * PAGE_BYTES;
        let mut slices = [IoSliceMut::new(&mut byte)];
        match preadv2(&file, &mut slices, offset, ReadWriteFlags::NOWAIT) {
            Ok(_) => resident += 1,
            Err(Errno::AGAIN) => {}
            Err(_) => return None,
        }
    }
    Some(f64::from(resident) / sampled as f64)
}
