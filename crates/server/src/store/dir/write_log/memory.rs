//! Whether a log lies in memory, where nothing is stable: by itself, or because the device or the
//! upper layer of its file system does, and so on. An overlay that is mounted volatile, whose syncs
//! do nothing, is no better than memory. The first is refused, the second warned of: who
//! builds such a file system knows it, as a test does, or lives on one (a live system). A directory
//! that is served may lie there as well, and is announced as what it is.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::device;
use crate::store::dir::file_system::FileSystem;
use crate::store::dir::overlay;

/// A file system in a file of another, and so on: so many are looked at.
const STEPS_MAX: u32 = 8;

/// What is not to be seen from here does not count.
///
/// # Errors
/// The file itself cannot be looked at.
pub(super) fn has(file: &File) -> io::Result<bool> {
    let data = file.metadata()?;
    match data.file_type().is_block_device() {
        true => Ok(has_device(&device::entry(data.rdev()), STEPS_MAX)),
        false => Ok(FileSystem::of(file.as_fd())?.keeps_nothing()),
    }
}

/// Whether what the file system of a log stands on does.
pub fn is_below(log: &Path) -> bool {
    let flags = libc::O_PATH | libc::O_NONBLOCK;
    let opened = File::options().read(true).custom_flags(flags).open(log);
    let file = opened.ok().filter(|file| file.metadata().is_ok_and(|data| data.is_file()));
    file.is_some_and(|file| has_below(&file, STEPS_MAX) == Some(true))
}

/// Whether a directory does, itself or by what it stands on.
pub fn has_dir(dir: &Path) -> bool {
    has_file(dir, STEPS_MAX) == Some(true)
}

fn has_file(path: &Path, steps: u32) -> Option<bool> {
    let file = File::open(path).ok()?;
    let system = FileSystem::of(file.as_fd()).ok()?;
    Some(system.keeps_nothing() || has_below(&file, steps)?)
}

/// What its file system stands on.
fn has_below(file: &File, steps: u32) -> Option<bool> {
    let steps = steps.checked_sub(1)?;
    match FileSystem::of(file.as_fd()).ok()?.is_overlay() {
        true => has_file(&overlay::upper_layer(file.as_fd())?, steps),
        false => Some(has_device(&device::entry(file.metadata().ok()?.dev()), steps)),
    }
}

/// A disk in memory, a loop device whose file lies there, or what is made of such.
fn has_device(entry: &Path, steps: u32) -> bool {
    let Some(steps) = steps.checked_sub(1) else { return false };
    let Ok(entry) = fs::canonicalize(entry) else { return false };
    let name = entry.file_name().and_then(OsStr::to_str).unwrap_or_default();
    if name.starts_with("ram") || name.starts_with("zram") {
        return true;
    }
    let backing = fs::read_to_string(entry.join("loop/backing_file")).ok();
    let is_in_file = backing.and_then(|path| has_file(Path::new(path.trim_end()), steps));
    let whole = entry.parent().filter(|_| entry.join("partition").exists());
    let slaves = fs::read_dir(entry.join("slaves")).into_iter().flatten().flatten();
    let mut parts = slaves.map(|slave| slave.path()).chain(whole.map(Path::to_owned));
    is_in_file == Some(true) || parts.any(|part| has_device(&part, steps))
}
