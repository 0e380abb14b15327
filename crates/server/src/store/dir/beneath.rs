//! Opening names without ever leaving the export.
//!
//! No symbolic link is followed, `..` leads nowhere above the start, no mount point is crossed:
//! the kernel promises all of it in one call (openat2, Linux 5.6). Where that call is missing or
//! filtered away, the path is walked one component at a time, each opened with O_NOFOLLOW and
//! checked to be on the same device; the descriptors, not the names, carry the walk, so that a
//! rename in between cannot lead it astray.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use super::stat::Stat;
use crate::types::Status;

/// Longest path given to the kernel in one piece: PATH_MAX (4096) less a component of 255 bytes.
const PIECE_BYTES_MAX: usize = 3840;

/// One name in a directory: not empty, not `.` or `..`, without `/` and NUL. The engine has seen
/// to that; here it is what all safety of this store rests on, so it is checked again.
#[derive(Clone, Copy, Debug)]
pub(super) struct Component<'a>(&'a [u8]);

impl<'a> Component<'a> {
    pub(super) fn new(name: &'a [u8]) -> Result<Self, Status> {
        match name {
            b"" | b"." | b".." => Err(Status::Invalid),
            _ if name.contains(&b'/') || name.contains(&0) => Err(Status::Invalid),
            _ if name.len() > 255 => Err(Status::NameTooLong),
            _ => Ok(Self(name)),
        }
    }

    pub(super) fn as_bytes(self) -> &'a [u8] {
        self.0
    }
}

/// How names are opened here.
#[derive(Clone, Copy, Debug)]
pub(super) struct Beneath {
    has_openat2: bool,
}

impl Beneath {
    /// Finds out by trying whether the kernel does the work.
    pub(super) fn probe(root: BorrowedFd<'_>) -> Self {
        Self { has_openat2: open_confined(root, b".", OFlags::PATH | OFlags::DIRECTORY).is_ok() }
    }

    #[cfg(test)]
    pub(super) fn by_component() -> Self {
        Self { has_openat2: false }
    }

    /// Opens `name` in `dir` as O_PATH, whatever kind of file it is. `XDEV`: a mount point.
    pub(super) fn child(self, dir: BorrowedFd<'_>, name: Component<'_>) -> Result<OwnedFd, Errno> {
        if self.has_openat2 {
            open_confined(dir, name.0, OFlags::PATH)
        } else {
            open_same_device(dir, name.0, OFlags::PATH)
        }
    }

    /// Opens what lies at the end of `path` below `root` as O_PATH.
    pub(super) fn path(self, root: BorrowedFd<'_>, path: &[Box<[u8]>]) -> Result<OwnedFd, Errno> {
        let Some((last, dirs)) = path.split_last() else {
            return root.try_clone_to_owned().map_err(|_| Errno::MFILE);
        };
        let mut reached: Option<OwnedFd> = None;
        let mut piece = Vec::new();
        let enter = |from: &Option<OwnedFd>, piece: &[u8]| {
            let from = from.as_ref().map_or(root, AsFd::as_fd);
            self.step(from, piece, OFlags::PATH | OFlags::DIRECTORY)
        };
        for name in dirs {
            let full = piece.len() + name.len() > PIECE_BYTES_MAX;
            if !piece.is_empty() && (full || !self.has_openat2) {
                reached = Some(enter(&reached, &piece)?);
                piece.clear();
            }
            join(&mut piece, name);
        }
        if !self.has_openat2 && !piece.is_empty() {
            reached = Some(enter(&reached, &piece)?);
            piece.clear();
        }
        join(&mut piece, last);
        let from = reached.as_ref().map_or(root, AsFd::as_fd);
        self.step(from, &piece, OFlags::PATH)
    }

    fn step(self, from: BorrowedFd<'_>, piece: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
        if self.has_openat2 {
            open_confined(from, piece, flags)
        } else {
            open_same_device(from, piece, flags)
        }
    }
}

fn join(piece: &mut Vec<u8>, name: &[u8]) {
    if !piece.is_empty() {
        piece.push(b'/');
    }
    piece.extend_from_slice(name);
}

fn open_confined(dir: BorrowedFd<'_>, path: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH
        | ResolveFlags::NO_SYMLINKS
        | ResolveFlags::NO_MAGICLINKS
        | ResolveFlags::NO_XDEV;
    rustix::fs::openat2(dir, path, flags, Mode::empty(), resolve)
}

/// `name` is a single component.
fn open_same_device(dir: BorrowedFd<'_>, name: &[u8], flags: OFlags) -> Result<OwnedFd, Errno> {
    let flags = flags | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let fd = rustix::fs::openat(dir, name, flags, Mode::empty())?;
    let found = Stat::of(&fd)?;
    if found.is_mount_root() || found.device() != Stat::of(dir)?.device() {
        return Err(Errno::XDEV);
    }
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(path: &str) -> Vec<Box<[u8]>> {
        path.split('/').map(|name| name.as_bytes().into()).collect()
    }

    #[test]
    fn both_ways_open_what_is_inside_and_refuse_links() {
        let outer = tempfile::tempdir().unwrap();
        let root = outer.path().join("root");
        fs::create_dir_all(root.join("a/b")).unwrap();
        fs::write(root.join("a/b/file"), "inside").unwrap();
        fs::write(outer.path().join("secret"), "outside").unwrap();
        symlink("../..", root.join("a/up")).unwrap();
        symlink(outer.path(), root.join("a/out")).unwrap();
        let fd = rustix::fs::open(&root, OFlags::RDONLY, Mode::empty()).unwrap();
        for beneath in [Beneath::probe(fd.as_fd()), Beneath::by_component()] {
            let open = |path: &str| beneath.path(fd.as_fd(), &names(path));
            assert_eq!(Stat::of(open("a/b/file").unwrap()).unwrap().size(), 6);
            assert!(open("a/up").is_ok(), "the link itself can be named");
            for outside in ["a/up/secret", "a/out/secret", "a/b/file/x"] {
                let errno = open(outside).unwrap_err();
                assert!(matches!(errno, Errno::LOOP | Errno::NOTDIR), "{outside}: {errno}");
            }
        }
    }

    #[test]
    fn paths_longer_than_the_kernel_takes_are_walked_in_pieces() {
        let root = tempfile::tempdir().unwrap();
        let fd = rustix::fs::open(root.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let mut at = fd.try_clone().unwrap();
        let mut path = Vec::new();
        for depth in 0..40 {
            let name = format!("{depth:0>200}");
            rustix::fs::mkdirat(&at, &name, Mode::RWXU).unwrap();
            at = rustix::fs::openat(&at, &name, OFlags::PATH, Mode::empty()).unwrap();
            path.push(name.into_bytes().into_boxed_slice());
        }
        let wanted = Stat::of(&at).unwrap().identity();
        for beneath in [Beneath::probe(fd.as_fd()), Beneath::by_component()] {
            let found = beneath.path(fd.as_fd(), &path).unwrap();
            assert_eq!(Stat::of(found).unwrap().identity(), wanted);
        }
    }

    #[test]
    fn names_that_are_not_one_component_are_refused() {
        for name in [&b""[..], b".", b"..", b"a/b", b"a\0"] {
            assert_eq!(Component::new(name).unwrap_err(), Status::Invalid);
        }
        assert_eq!(Component::new(&[b'a'; 256]).unwrap_err(), Status::NameTooLong);
        assert!(Component::new(b"...").is_ok());
    }
}
