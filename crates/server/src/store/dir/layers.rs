//! Whether files of an overlay keep their numbers.
//!
//! Where all layers lie on one file system, or with `xino=on`, a file's number is that of its
//! layer, and the device is the overlay's. Otherwise files have a device for each layer, those
//! copied up may change it, and directories are numbered as they are met, anew whenever the kernel
//! has forgotten them: a client would see that the directory it is in is another one.

use std::os::fd::OwnedFd;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags};

use super::stat::Stat;

/// Entries that are looked at where no file can be made.
const ENTRIES_MAX: usize = 1000;

/// For the overlay that `root` is in. A file without a name tells; where none can be made, files
/// that are there, if any are.
pub(super) fn keep_numbers(root: &OwnedFd, stat: &Stat) -> bool {
    let flags = OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC;
    let made = rustix::fs::openat(root, c".", flags, Mode::RUSR | Mode::WUSR);
    match made.and_then(Stat::of) {
        Ok(made) => made.device() == stat.device(),
        Err(_) => devices_of_files(root).all(|device| device == stat.device()),
    }
}

fn devices_of_files(root: &OwnedFd) -> impl Iterator<Item = u64> {
    let entries = Dir::read_from(root).into_iter().flatten().flatten().take(ENTRIES_MAX);
    entries.filter_map(move |entry| {
        let name = entry.file_name();
        let is_file = entry.file_type() == FileType::RegularFile;
        let stat = is_file.then(|| rustix::fs::statat(root, name, AtFlags::SYMLINK_NOFOLLOW));
        stat?.ok().map(|stat| stat.st_dev)
    })
}
