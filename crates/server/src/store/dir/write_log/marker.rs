//! What a directory remembers of its logs while it has some: their id, and where they lie. Neither
//! is used without the other, so that stable writes are not forgotten in a log that nobody
//! replays, and no log is replayed over what came after it.
//!
//! It is an extended attribute that everybody sees who may read the directory: also a server
//! without privilege must not serve it then.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use log::Stamp;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

const ATTRIBUTE: &str = "user.nfskit.write_log";

/// Set when a file could not be synced and no frame could say so any more.
const DOUBT: &str = "user.nfskit.write_log.doubt";

/// Set while what a log holds is done again: since when. A file that was changed later was changed
/// by that, and its times say nothing of what its disk had before.
const REPLAY: &str = "user.nfskit.write_log.replay";

#[derive(Clone, Debug)]
pub(super) struct Marker {
    pub(super) id: [u8; 16],
    /// By their numbers.
    pub(super) files: Vec<PathBuf>,
}

impl Marker {
    pub(super) fn of(root: &OwnedFd) -> Option<Self> {
        let mut value = vec![0; 16 + 4096];
        let len = rustix::fs::fgetxattr(root, ATTRIBUTE, &mut value[..]).ok()?;
        value.truncate(len);
        let id: [u8; 16] = value.get(..16).unwrap_or_default().try_into().unwrap_or_default();
        let files = value.get(16..).unwrap_or_default().split(|&byte| byte == 0);
        let files = files.map(|file| PathBuf::from(OsString::from_vec(file.to_vec()))).collect();
        Some(Self { id, files })
    }

    /// Which of the logs lies at this path, as far as it is known.
    pub(super) fn place(&self, path: &Path) -> Option<usize> {
        let real = std::fs::canonicalize(path).ok()?;
        self.files.iter().position(|file| *file == real)
    }

    /// Sets it, and makes it stable.
    pub(super) fn set(&self, root: &OwnedFd) -> Result<(), Errno> {
        let files: Vec<_> = self.files.iter().map(|file| file.as_os_str().as_bytes()).collect();
        // No path has a zero in it.
        let value = [&self.id[..], &files.join(&0)].concat();
        rustix::fs::fsetxattr(root, ATTRIBUTE, &value, XattrFlags::empty())?;
        for done in [DOUBT, REPLAY] {
            match rustix::fs::fremovexattr(root, done) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(errno),
            }
        }
        rustix::fs::fsync(root)
    }

    /// Since when a replay is under way that an earlier start may have begun, if one has.
    pub(super) fn replays_since(root: &OwnedFd) -> Option<Stamp> {
        let mut value = [0; 12];
        let len = rustix::fs::fgetxattr(root, REPLAY, &mut value[..]).ok()?;
        let (seconds, nanos) = value.split_first_chunk()?;
        let nanos = u32::from_le_bytes(nanos.try_into().ok()?);
        (len == 12).then_some(Stamp { seconds: i64::from_le_bytes(*seconds), nanos })
    }

    /// One is about to begin.
    pub(super) fn replays(root: &OwnedFd, since: Stamp) -> Result<(), Errno> {
        let value = [&since.seconds.to_le_bytes()[..], &since.nanos.to_le_bytes()].concat();
        rustix::fs::fsetxattr(root, REPLAY, &value, XattrFlags::empty())?;
        rustix::fs::fsync(root)
    }

    /// What is in the page cache may never come to the disk: what the log holds has to be done
    /// again, also on a machine that was not switched off.
    pub(super) fn doubt(root: &OwnedFd) -> Result<(), Errno> {
        rustix::fs::fsetxattr(root, DOUBT, b"1", XattrFlags::empty())?;
        rustix::fs::fsync(root)
    }

    pub(super) fn is_in_doubt(root: &OwnedFd) -> bool {
        rustix::fs::fgetxattr(root, DOUBT, &mut [0; 1][..]).is_ok()
    }

    pub(super) fn remove(root: &OwnedFd) -> Result<(), Errno> {
        match rustix::fs::fremovexattr(root, ATTRIBUTE) {
            Ok(()) | Err(Errno::NODATA) => rustix::fs::fsync(root),
            Err(errno) => Err(errno),
        }
    }
}
