//! A cache's directory: whose it is, of which version, and who has it.
//!
//! ```text
//!   DIR/nfskit-cache              the marker: "nfskit cache 1"
//!   DIR/SERVER-0123.../identity   of one server and export
//!                     /lock       locked as long as a process has it
//!                     /filled     what lay there lately
//!                     /pins       files that stay
//!                     /orders/    what commands want of the process that has it
//!                     /00/ ...    segments
//! ```
//!
//! All of it is for its owner alone. Symbolic links are not followed, and nothing is done in a
//! directory that somebody else owns or may write to.

use std::fs::DirBuilder;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::{fmt, io};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use super::texts::{FOR_OWNER, TEXT_BYTES_MAX, body_of, checked};
use super::texts::{names, open_dir, read_text, unfinished, write_text};
use crate::header::Geometry;
use crate::key::Origin;
use crate::limits::Filled;
use crate::medium::{Folder, Medium};

/// Of the directory, and of what lies in it.
pub const VERSION: u32 = 1;

const MARKER: &str = "nfskit-cache";
pub(crate) const IDENTITY: &str = "identity";
pub(crate) const LOCK: &str = "lock";
/// Of who makes a directory into a cache, as long as that takes.
const MARKER_LOCK: &str = "nfskit-cache.lock";
const FOLDER_FOR_OWNER: Mode = Mode::from_raw_mode(0o700);

/// Why a directory is not used.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("{}: {error}", path.display())]
    System { path: PathBuf, error: io::Error },
    #[error("{} has no room", path.display())]
    Full { path: PathBuf },
    #[error("{} is on a file system that is read only", path.display())]
    ReadOnly { path: PathBuf },
    #[error("{} belongs to another user (uid {uid})", path.display())]
    NotOurs { path: PathBuf, uid: u32 },
    #[error("{} may be written to by others (mode {mode:o})", path.display())]
    Open { path: PathBuf, mode: u32 },
    #[error("{} is a symbolic link", path.display())]
    Link { path: PathBuf },
    #[error("{} has other files in it, and no cache", path.display())]
    NoCache { path: PathBuf },
    #[error("{} is empty: it is no cache yet", path.display())]
    Empty { path: PathBuf },
    #[error("{} is a cache of version {found}, and this program has version {VERSION}",
        path.display())]
    Version { path: PathBuf, found: String },
    #[error("{} is of {found}", path.display())]
    OtherOrigin { path: PathBuf, found: String },
    #[error("{} does not say whose it is: its identity is {cause}", path.display())]
    Identity { path: PathBuf, cause: NoIdentity },
    #[error("{} is used by another process", path.display())]
    Busy { path: PathBuf },
    #[error("threads cannot be started: {0}")]
    Threads(io::Error),
}

/// An origin's folder, locked until it is dropped.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    dir: OwnedFd,
    geometry: Geometry,
    lock: OwnedFd,
    was_damaged: bool,
}

/// A folder, whatever its path: its device and inode.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct FolderId(u64, u64);

impl FolderId {
    /// None: the system does not say.
    pub(crate) fn of(dir: BorrowedFd<'_>) -> Option<Self> {
        rustix::fs::fstat(dir).ok().map(|stat| Self(stat.st_dev, stat.st_ino))
    }
}

impl fmt::Display for FolderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:x}-{:x}", self.0, self.1)
    }
}

/// What an identity says.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Identity {
    pub origin: Origin,
    pub geometry: Geometry,
}

/// Why it is not known whose a folder is.
#[derive(Clone, Debug, Eq, PartialEq, thiserror::Error)]
pub enum NoIdentity {
    #[error("missing")]
    Missing,
    #[error("damaged")]
    Damaged,
    #[error("of version {0}")]
    Version(String),
}

impl Place {
    /// Opens and locks the folder of an origin, and makes what is missing.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open(path: &Path, origin: &Origin, geometry: Geometry) -> Result<Self, OpenError> {
        let base = open_base(path, true)?;
        let folder = origin.folder();
        let at = path.join(&folder);
        let failed = |errno| system(&at, errno);
        match rustix::fs::mkdirat(&base, &folder, FOLDER_FOR_OWNER) {
            Ok(()) | Err(Errno::EXIST) => {}
            Err(errno) => return Err(failed(errno)),
        }
        Self::open_folder((base.as_fd(), path), &folder, Some((origin, geometry)))
    }

    /// Opens and locks a folder that is there, whoever's it is.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub fn open_existing(path: &Path, folder: &str) -> Result<Self, OpenError> {
        let base = open_base(path, false)?;
        Self::open_folder((base.as_fd(), path), folder, None)
    }

    fn open_folder(
        (base, path): (BorrowedFd<'_>, &Path),
        folder: &str,
        of: Option<(&Origin, Geometry)>,
    ) -> Result<Self, OpenError> {
        let at = path.join(folder);
        let failed = |errno| system(&at, errno);
        let dir = open_dir(base, folder).map_err(failed)?;
        is_ours(&dir, &at)?;
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let lock = rustix::fs::openat(&dir, LOCK, flags, FOR_OWNER).map_err(failed)?;
        match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(OpenError::Busy { path: at }),
            Err(errno) => return Err(failed(errno)),
        }
        let found = read_text(dir.as_fd(), IDENTITY, TEXT_BYTES_MAX).map_err(failed)?;
        let found = found.ok_or(NoIdentity::Missing).and_then(|text| Identity::parse(&text));
        let was_damaged = found == Err(NoIdentity::Damaged);
        let geometry = match (found, of) {
            (Ok(found), None) => found.geometry,
            (Ok(found), Some((origin, _))) if found.origin == *origin => found.geometry,
            (Ok(found), Some(_)) => {
                return Err(OpenError::OtherOrigin { path: at, found: found.origin.name });
            }
            (Err(NoIdentity::Version(found)), _) => {
                return Err(OpenError::Version { path: at, found });
            }
            // What fits the new one is found again.
            (Err(_), Some((origin, geometry))) => {
                let identity = Identity { origin: origin.clone(), geometry };
                write_text(dir.as_fd(), IDENTITY, &identity.text()).map_err(failed)?;
                geometry
            }
            (Err(cause), None) => return Err(OpenError::Identity { path: at, cause }),
        };
        let place = Self { path: at, dir, geometry, lock, was_damaged };
        place.begin()?;
        Ok(place)
    }

    /// Of a folder without segments it is known that nothing lies there.
    fn begin(&self) -> Result<(), OpenError> {
        let folder = self.folder()?;
        if folder.noted().is_none() {
            let is_new = (0..=u8::MAX).all(|first| {
                let name = format!("{first:02x}");
                rustix::fs::statat(&self.dir, name, AtFlags::SYMLINK_NOFOLLOW).is_err()
            });
            if is_new {
                folder.note(Filled::default());
            }
        }
        Ok(())
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    pub fn geometry(&self) -> Geometry {
        self.geometry
    }

    /// Which folder it is, by whatever path.
    pub(crate) fn id(&self) -> Option<FolderId> {
        FolderId::of(self.dir())
    }

    /// Its identity was, and was written anew.
    pub(crate) fn was_damaged(&self) -> bool {
        self.was_damaged
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    /// Its segments.
    ///
    /// # Errors
    /// No descriptor is left.
    pub fn folder(&self) -> Result<Folder, OpenError> {
        let dir = self.dir.try_clone();
        let system = |error| OpenError::System { path: self.path.clone(), error };
        dir.map(Folder::new).map_err(system)
    }
}

/// A process that is just being started has our descriptor for a moment: closing it is not enough.
impl Drop for Place {
    fn drop(&mut self) {
        rustix::fs::flock(&self.lock, FlockOperation::Unlock).ok();
    }
}

impl Identity {
    fn text(&self) -> String {
        let root: String = self.origin.root.iter().map(|byte| format!("{byte:02x}")).collect();
        // A name is a line.
        let name: String = self.origin.name.chars().filter(|c| !c.is_control()).collect();
        checked(format!(
            "nfskit cache {VERSION}\norigin {name}\nroot {root}\nblock {}\n",
            self.geometry.block_log2()
        ))
    }

    /// Reads an identity as it was written.
    ///
    /// # Errors
    /// It is not whole, or of another version.
    pub fn parse(text: &str) -> Result<Self, NoIdentity> {
        let body = body_of(text).ok_or(NoIdentity::Damaged)?;
        let (first, rest) = body.split_once('\n').ok_or(NoIdentity::Damaged)?;
        match first.strip_prefix("nfskit cache ") {
            Some(found) if found == VERSION.to_string() => {
                Self::parse_lines(rest).ok_or(NoIdentity::Damaged)
            }
            Some(found) => Err(NoIdentity::Version(shown(found))),
            None => Err(NoIdentity::Damaged),
        }
    }

    fn parse_lines(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let name = lines.next()?.strip_prefix("origin ")?.to_owned();
        // We write none, and a terminal would obey them.
        if name.chars().any(char::is_control) {
            return None;
        }
        let root = lines.next()?.strip_prefix("root ")?;
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        let root: Option<Vec<u8>> = root.as_bytes().chunks(2).map(byte).collect();
        let block_log2 = lines.next()?.strip_prefix("block ")?.parse().ok()?;
        let geometry = Geometry::from_log2(block_log2)?;
        Some(Self { origin: Origin { name, root: root? }, geometry })
    }
}

/// A version that is not ours, as far as it can be printed.
fn shown(version: &str) -> String {
    version.chars().filter(char::is_ascii_graphic).take(20).collect()
}

/// Opens a cache's directory; `makes` it and its marker if they are missing.
///
/// # Errors
/// See [`OpenError`].
pub fn open_base(path: &Path, makes: bool) -> Result<OwnedFd, OpenError> {
    let failed = |errno| system(path, errno);
    if makes {
        let made = DirBuilder::new().recursive(true).mode(0o700).create(path);
        made.map_err(|error| match Errno::from_io_error(&error) {
            Some(errno) => failed(errno),
            None => OpenError::System { path: path.to_owned(), error },
        })?;
    }
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let dir =
        rustix::fs::open(path, flags, Mode::empty()).map_err(|errno| match path.is_symlink() {
            true => OpenError::Link { path: path.to_owned() },
            false => failed(errno),
        })?;
    let is_cache = is_marked(&dir, path);
    if matches!(is_cache, Ok(false)) {
        // First, so that nobody changes the mode of a directory of something else.
        has_nothing_else(&dir, path)?;
    }
    is_ours(&dir, path)?;
    if !is_cache? {
        mark_alone(&dir, path, makes)?;
    }
    Ok(dir)
}

/// Whether there is a marker, which is then ours.
fn is_marked(dir: &OwnedFd, path: &Path) -> Result<bool, OpenError> {
    let text = read_text(dir.as_fd(), MARKER, TEXT_BYTES_MAX);
    let Some(text) = text.map_err(|errno| system(path, errno))? else { return Ok(false) };
    let found = text.trim_end().strip_prefix("nfskit cache ");
    let Some(found) = found else {
        return Err(OpenError::NoCache { path: path.to_owned() });
    };
    if found != VERSION.to_string() {
        return Err(OpenError::Version { path: path.to_owned(), found: shown(found) });
    }
    Ok(true)
}

/// Several mounts may be the first. The lock is of a file that only its owner opens: one of the
/// directory anybody may have for ever who may list it. Not all file systems have locks: whoever is
/// too late there sees a cache with no marker yet, and reports it.
fn mark_alone(dir: &OwnedFd, path: &Path, makes: bool) -> Result<(), OpenError> {
    let flags = OFlags::RDWR | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let lock = makes.then(|| rustix::fs::openat(dir, MARKER_LOCK, flags, FOR_OWNER));
    let lock = lock.transpose().map_err(|errno| system(path, errno))?;
    if let Some(lock) = &lock {
        rustix::fs::flock(lock, FlockOperation::LockExclusive).ok();
    }
    let marked = mark(dir, path, makes);
    if lock.is_some() {
        // Who has waited for this one finds the marker.
        rustix::fs::unlinkat(dir, MARKER_LOCK, AtFlags::empty()).ok();
    }
    marked
}

/// Makes a directory into a cache, unless another process has just done so.
fn mark(dir: &OwnedFd, path: &Path, makes: bool) -> Result<(), OpenError> {
    if is_marked(dir, path)? {
        return Ok(());
    }
    has_nothing_else(dir, path)?;
    if !makes {
        return Err(OpenError::Empty { path: path.to_owned() });
    }
    let text = format!("nfskit cache {VERSION}\n");
    write_text(dir.as_fd(), MARKER, &text).map_err(|errno| system(path, errno))
}

/// Whether a directory without a marker may become a cache, or has become one meanwhile.
fn has_nothing_else(dir: &OwnedFd, path: &Path) -> Result<(), OpenError> {
    let names = names(dir.as_fd()).map_err(|errno| system(path, errno))?;
    let begun = unfinished(MARKER);
    let is_nothing = |name: &String| ["lost+found", MARKER_LOCK, &begun].contains(&name.as_str());
    match names.iter().any(|name| *name == MARKER) || names.iter().all(is_nothing) {
        true => Ok(()),
        false => Err(OpenError::NoCache { path: path.to_owned() }),
    }
}

fn system(path: &Path, errno: Errno) -> OpenError {
    let path = path.to_owned();
    match errno {
        Errno::ROFS => OpenError::ReadOnly { path },
        Errno::NOSPC | Errno::DQUOT => OpenError::Full { path },
        errno => OpenError::System { path, error: errno.into() },
    }
}

/// Whether only we may change what lies there.
fn is_ours(dir: &OwnedFd, path: &Path) -> Result<(), OpenError> {
    let stat = rustix::fs::fstat(dir).map_err(|errno| system(path, errno))?;
    let path = || path.to_owned();
    if stat.st_uid != rustix::process::geteuid().as_raw() {
        return Err(OpenError::NotOurs { path: path(), uid: stat.st_uid });
    }
    let mode = stat.st_mode & 0o7777;
    if mode & 0o022 != 0 {
        return Err(OpenError::Open { path: path(), mode });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identity_is_read_as_it_was_written_and_a_changed_one_is_none() {
        let origin = Origin { name: "nfs://server/a b\n".to_owned(), root: vec![0, 0xab, 3] };
        let geometry = Geometry::of_blocks_up_to(8192);
        let text = Identity { origin, geometry }.text();
        let read = Identity::parse(&text).unwrap();
        assert_eq!((read.origin.name.as_str(), read.geometry), ("nfs://server/a b", geometry));
        assert_eq!(read.origin.root, [0, 0xab, 3]);
        for at in 0..text.len() {
            let mut changed = text.clone().into_bytes();
            changed[at] ^= 1;
            let changed = String::from_utf8(changed).unwrap();
            assert_eq!(Identity::parse(&changed), Err(NoIdentity::Damaged), "{changed:?}");
            assert_eq!(Identity::parse(&text[..at]), Err(NoIdentity::Damaged));
        }
    }

    #[test]
    fn an_identity_of_another_version_is_none_of_ours_and_not_damaged() {
        let other = checked("nfskit cache 7\nwhatever comes\n".to_owned());
        assert_eq!(Identity::parse(&other), Err(NoIdentity::Version("7".to_owned())));
        let obeyed = "nfskit cache 1\norigin nfs://a\x1b[2J\nroot 00\nblock 16\n";
        let obeyed = checked(obeyed.to_owned());
        assert_eq!(Identity::parse(&obeyed), Err(NoIdentity::Damaged));
    }

    #[test]
    fn a_cache_is_made_though_somebody_else_has_locked_its_directory() {
        let base = tempfile::tempdir().unwrap();
        let open = || rustix::fs::open(base.path(), OFlags::RDONLY, Mode::empty()).unwrap();
        let other = open();
        rustix::fs::flock(&other, FlockOperation::LockExclusive).unwrap();
        let (made, is_made) = std::sync::mpsc::channel();
        let path = base.path().to_owned();
        std::thread::spawn(move || made.send(open_base(&path, true).map(drop)).ok());
        is_made.recv_timeout(std::time::Duration::from_secs(20)).unwrap().unwrap();
        assert_eq!(names(open().as_fd()).unwrap(), [MARKER]);
    }

    #[test]
    fn a_folder_is_free_though_another_process_has_the_descriptor() {
        let base = tempfile::tempdir().unwrap();
        let origin = Origin { name: "nfs://server/a".to_owned(), root: vec![1] };
        let open = || Place::open(base.path(), &origin, Geometry::of_blocks_up_to(8192));
        let one = open().unwrap();
        assert!(matches!(open(), Err(OpenError::Busy { .. })));
        let inherited = one.lock.try_clone().unwrap();
        drop(one);
        open().unwrap();
        drop(inherited);
    }
}
