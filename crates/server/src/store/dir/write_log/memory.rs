//! Whether a log lies in memory, where nothing is stable: by itself, or because the device or the
//! upper layer of its file system does, and so on. The first is refused, the second warned of: who
//! builds such a file system knows it, as a test does, or lives on one (a live system). A directory
//! that is served may lie there as well, and is announced as what it is.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use perf::words::unescaped;

use super::device;
use crate::store::dir::file_system::FileSystem;

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
        false => Ok(FileSystem::of(file.as_fd())?.is_memory()),
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
    Some(system.is_memory() || has_below(&file, steps)?)
}

/// What its file system stands on.
fn has_below(file: &File, steps: u32) -> Option<bool> {
    let steps = steps.checked_sub(1)?;
    match FileSystem::of(file.as_fd()).ok()?.is_overlay() {
        true => has_file(&upper_layer(file)?, steps),
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

/// Of the overlay that a file is in.
fn upper_layer(file: &File) -> Option<PathBuf> {
    let info = fs::read_to_string(format!("/proc/self/fdinfo/{}", file.as_raw_fd())).ok()?;
    let mount = info.lines().find_map(|line| line.strip_prefix("mnt_id:"))?.trim();
    let mounts = fs::read("/proc/self/mountinfo").ok()?;
    upper_of(&mounts, mount)
}

fn upper_of(mounts: &[u8], mount: &str) -> Option<PathBuf> {
    let mut lines = mounts.split(|&byte| byte == b'\n');
    let line = lines.find(|line| line.split(|&byte| byte == b' ').next() == Some(mount.as_bytes()));
    let options = line?.rsplit(|&byte| byte == b' ').next()?;
    let mut options = options.split(|&byte| byte == b',');
    let upper = options.find_map(|option| option.strip_prefix(b"upperdir="))?;
    Some(PathBuf::from(OsStr::from_bytes(&unescaped(upper))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_upper_layer_of_an_overlay_is_found_by_its_mount() {
        let mounts = b"23 1 8:1 / / rw - ext4 /dev/sda1 rw\n\
            37 23 0:41 / /live rw shared:9 - overlay overlay rw,lowerdir=/a,upperdir=/m\\040y/up,workdir=/w\n";
        assert_eq!(upper_of(mounts, "37"), Some("/m y/up".into()));
        assert_eq!(upper_of(mounts, "23"), None);
        assert_eq!(upper_of(mounts, "3"), None);
    }
}
