//! Finding a file that a local process has moved, by its inode number.
//!
//! Directory entries carry inode numbers, so a directory is searched by listing it; only an entry
//! with the right number is opened. The search goes breadth first from the root, because what was
//! moved was mostly moved nearby or upwards, and it is bounded: [`ENTRIES_MAX`] entries, some
//! 20 ms, or several times that where all are directories. It never leaves the export: directories
//! are opened as everywhere, below one another, without links and mount points.
//!
//! A directory that waits to be searched is its name and the directory it is in; it is opened, by
//! the way from the root, when its turn has come.

use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{FileType, Mode, OFlags, RawDir};
use rustix::io::Errno;

use crate::store::dir::beneath::{Beneath, Component};
use crate::store::dir::errno::stale_status;
use crate::store::dir::stat::Identity;
use crate::types::Status;

/// Entries looked at before the search is given up.
pub(super) const ENTRIES_MAX: usize = 1 << 16;

/// A name on the way down, and who has it.
type Step = (Box<[u8]>, Identity);

/// A file found: the way down from the root, and the file itself.
pub(super) struct Found {
    pub(super) steps: Vec<Step>,
    pub(super) fd: OwnedFd,
}

/// Tells who is open at a descriptor.
pub(super) type Identify<'i> = &'i dyn Fn(BorrowedFd<'_>) -> Result<Identity, Status>;

/// A directory met.
struct Dir {
    /// Where it stands among those met; the root is in none.
    parent: usize,
    name: Box<[u8]>,
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
    identify: Identify<'_>,
) -> Result<Found, Status> {
    let mut met = vec![Dir { parent: 0, name: Box::from(&b""[..]) }];
    let mut left = ENTRIES_MAX;
    let mut outcome = Status::Stale;
    let mut turn = 0;
    while turn < met.len() && left > 0 {
        let way = way(&met, turn);
        let opened = beneath.path(root, &way);
        let listed = opened.and_then(|fd| Ok((list(&fd, wanted.inode, &mut left)?, fd)));
        let (Listing { same_number, dirs }, fd) = match listed {
            Ok(listed) => listed,
            Err(errno) => {
                outcome = unless_gone(outcome, stale_status(errno));
                turn += 1;
                continue;
            }
        };
        for name in same_number {
            let opened = Component::new(&name).and_then(|name| {
                let fd = beneath.child(fd.as_fd(), name).map_err(stale_status)?;
                Ok((identify(fd.as_fd())?, fd))
            });
            match opened {
                Ok((file, fd)) if file == wanted => {
                    let mut steps = identified(beneath, root, &way, identify)?;
                    steps.push((name, file));
                    return Ok(Found { steps, fd });
                }
                Ok(_) => {}
                Err(status) => outcome = unless_gone(outcome, status),
            }
        }
        met.extend(dirs.into_iter().map(|name| Dir { parent: turn, name }));
        turn += 1;
    }
    Err(outcome)
}

/// What was removed meanwhile or is closed to us could not be served either.
fn unless_gone(outcome: Status, status: Status) -> Status {
    match status {
        Status::Stale | Status::Access | Status::NotOwner => outcome,
        other => other,
    }
}

/// The names from the root to a directory.
fn way(met: &[Dir], mut at: usize) -> Vec<Box<[u8]>> {
    let mut names = Vec::new();
    while at != 0 {
        names.push(met[at].name.clone());
        at = met[at].parent;
    }
    names.reverse();
    names
}

/// The directories on a way, each with who it is.
fn identified(
    beneath: Beneath,
    root: BorrowedFd<'_>,
    way: &[Box<[u8]>],
    identify: Identify<'_>,
) -> Result<Vec<Step>, Status> {
    let mut steps = Vec::with_capacity(way.len() + 1);
    let mut at: Option<OwnedFd> = None;
    for name in way {
        let from = at.as_ref().map_or(root, AsFd::as_fd);
        let fd = beneath.child(from, Component::new(name)?).map_err(stale_status)?;
        steps.push((name.clone(), identify(fd.as_fd())?));
        at = Some(fd);
    }
    Ok(steps)
}

#[derive(Default)]
struct Listing {
    same_number: Vec<Box<[u8]>>,
    dirs: Vec<Box<[u8]>>,
}

fn list(dir: &OwnedFd, inode: u64, left: &mut usize) -> Result<Listing, Errno> {
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
        if matches!(entry.file_type(), FileType::Directory | FileType::Unknown) {
            listing.dirs.push(name.into());
        }
    }
    Ok(listing)
}
