//! Finding a file that a local process has moved, by its inode number.
//!
//! Directory entries carry inode numbers, so a directory is searched by listing it; only an entry
//! with the right number is opened. The search goes breadth first from the root, because what was
//! moved was mostly moved nearby or upwards, and it is bounded: [`ENTRIES_MAX`] entries, some
//! 20 ms. It never leaves the export: directories are opened as everywhere, below one another,
//! without links and mount points.

use std::collections::VecDeque;
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::store::dir::beneath::{Beneath, Component};
use crate::store::dir::errno::{stale_status, status};
use crate::store::dir::stat::{Identity, Stat};
use crate::types::Status;

/// Entries looked at before the search is given up.
pub(super) const ENTRIES_MAX: usize = 1 << 16;

/// Directories that wait to be searched; each holds a descriptor.
const DIRS_MAX: usize = 256;

/// A file found: the way down from the root, each step with its name, and the file itself.
pub(super) struct Found {
    pub(super) steps: Vec<(Box<[u8]>, Identity)>,
    pub(super) fd: OwnedFd,
}

struct Dir {
    fd: OwnedFd,
    steps: Vec<(Box<[u8]>, Identity)>,
}

/// Looks for `wanted` below `root`.
///
/// # Errors
/// `Stale` when it is nowhere, or further away than is searched. Any other when a part could not
/// be searched: the file may be there.
pub(super) fn search(
    beneath: Beneath,
    root: BorrowedFd<'_>,
    wanted: Identity,
) -> Result<Found, Status> {
    let start = rustix::io::fcntl_dupfd_cloexec(root, 0).map_err(status)?;
    let mut waiting = VecDeque::from([Dir { fd: start, steps: Vec::new() }]);
    let mut left = ENTRIES_MAX;
    let mut outcome = Status::Stale;
    while let Some(dir) = waiting.pop_front() {
        let listed = list(&dir.fd, wanted.inode, &mut left, waiting.len() < DIRS_MAX);
        let Listing { same_number, dirs } = match listed {
            Ok(listing) => listing,
            // Removed meanwhile, or closed to us: what is there cannot be served either.
            Err(Errno::NOENT | Errno::ACCESS | Errno::PERM) => continue,
            Err(errno) => {
                outcome = status(errno);
                continue;
            }
        };
        for name in same_number {
            match open(beneath, &dir, &name) {
                Ok((fd, file)) if file == wanted => {
                    let mut steps = dir.steps;
                    steps.push((name, file));
                    return Ok(Found { steps, fd });
                }
                Ok(_) | Err(Status::Stale | Status::Access | Status::NotOwner) => {}
                Err(other) => outcome = other,
            }
        }
        for name in dirs {
            match open(beneath, &dir, &name) {
                Ok((fd, identity)) => {
                    let mut steps = dir.steps.clone();
                    steps.push((name, identity));
                    waiting.push_back(Dir { fd, steps });
                }
                Err(Status::Stale | Status::Access | Status::NotOwner) => {}
                Err(other) => outcome = other,
            }
        }
    }
    Err(outcome)
}

fn open(beneath: Beneath, dir: &Dir, name: &[u8]) -> Result<(OwnedFd, Identity), Status> {
    let name = Component::new(name)?;
    let fd = beneath.child(dir.fd.as_fd(), name).map_err(stale_status)?;
    let identity = Stat::of(&fd).map_err(status)?.identity();
    Ok((fd, identity))
}

#[derive(Default)]
struct Listing {
    same_number: Vec<Box<[u8]>>,
    dirs: Vec<Box<[u8]>>,
}

fn list(dir: &OwnedFd, inode: u64, left: &mut usize, deeper: bool) -> Result<Listing, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, c".", flags, Mode::empty())?;
    let mut buffer = [MaybeUninit::uninit(); 16 << 10];
    let mut entries = RawDir::new(fd, &mut buffer);
    let mut listing = Listing::default();
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let name = entry.file_name().to_bytes();
        if *left == 0 {
            break;
        }
        if matches!(name, b"." | b"..") {
            continue;
        }
        *left -= 1;
        if entry.ino() == inode {
            listing.same_number.push(name.into());
        }
        let may_be_dir = matches!(entry.file_type(), FileType::Directory | FileType::Unknown);
        if deeper && may_be_dir && listing.dirs.len() < DIRS_MAX {
            listing.dirs.push(name.into());
        }
    }
    Ok(listing)
}
