//! What a directory remembers of its logs while it has some: their id, and where they lie. Neither
//! is used without the other, so that stable writes are not forgotten in a log that nobody
//! replays, and no log is replayed over what came after it.
//!
//! It is an extended attribute that everybody sees who may read the directory: also a server
//! without privilege must not serve it then. Whoever may write to the directory can set it, too,
//! and a copy may have it. So it counts if it stands a second time where only privileged processes
//! write (`trusted.*`), or if a log that it names is this one's; else only where nobody but root
//! and the server's user could have set it, or where this process does not see the second.

use std::ffi::OsString;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use log::Stamp;
use rustix::fs::XattrFlags;
use rustix::io::Errno;

use super::file;
use crate::store::dir::handles::KEY_ATTRIBUTE;

pub(in crate::store::dir) const ATTRIBUTE: &str = "user.nfskit.write_log";

/// The same again, which shows that a server has set it.
const PROOF: &str = "trusted.nfskit.write_log";

/// How far the log had come at the newest start, and a proof of that, too: its id, and the sequence
/// of the first frame of the start.
const START: [&str; 2] = ["user.nfskit.write_log.start", "trusted.nfskit.write_log.start"];

/// Set while a log in which a start has found no room is begun anew, and a proof of it: its id. All
/// that it held is in its place.
const ANEW: [&str; 2] = ["user.nfskit.write_log.anew", "trusted.nfskit.write_log.anew"];

/// Set for a moment, to see whether a directory takes such attributes.
const TRIAL: &str = "user.nfskit.write_log.trial";

/// Set when a file could not be synced and no frame could record that any more.
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
    /// Not one that others have set.
    ///
    /// # Errors
    /// It is not known whether there is one.
    pub(super) fn of(root: &OwnedFd) -> Result<Option<Self>, Errno> {
        Ok(Self::standing(root)?.filter(|marker| marker.is_believed(root)))
    }

    /// One that others have set, or that was copied from another directory.
    pub(super) fn strange(root: &OwnedFd) -> Option<Self> {
        Self::standing(root).ok()?.filter(|marker| !marker.is_believed(root))
    }

    fn standing(root: &OwnedFd) -> Result<Option<Self>, Errno> {
        Ok(read(root, ATTRIBUTE)?.map(|value| Self::decode(&value)))
    }

    fn decode(value: &[u8]) -> Self {
        let id: [u8; 16] = value.get(..16).unwrap_or_default().try_into().unwrap_or_default();
        let files = value.get(16..).unwrap_or_default().split(|&byte| byte == 0);
        let files = files.map(|file| PathBuf::from(OsString::from_vec(file.to_vec()))).collect();
        Self { id, files }
    }

    fn is_believed(&self, root: &OwnedFd) -> bool {
        let is_proven =
            || read(root, PROOF).map_or(true, |proof| proof.is_some_and(|it| it == self.value()));
        let known_by_log = self.is_of(root);
        known_by_log.unwrap_or_else(|| is_proven() || !sees_proofs(root) || is_private(root))
    }

    /// Whether its logs are of this directory; `None` where they are not to be found.
    fn is_of(&self, root: &OwnedFd) -> Option<bool> {
        let found = self.files.iter().filter_map(|path| file::identity_at(path));
        let named = found.filter(|identity| identity.id == self.id).map(|own| own.export).next()?;
        Some(file::is_same_root(&named, &file::export_name(root).ok()?))
    }

    fn value(&self) -> Vec<u8> {
        let files: Vec<_> = self.files.iter().map(|file| file.as_os_str().as_bytes()).collect();
        // No path has a zero in it.
        [&self.id[..], &files.join(&0)].concat()
    }

    /// Which of the logs lies at this path, as far as it is known.
    pub(super) fn place(&self, path: &Path) -> Option<usize> {
        let real = std::fs::canonicalize(path).ok()?;
        self.files.iter().position(|file| *file == real)
    }

    /// Whether the directory takes it.
    pub(super) fn try_out(&self, root: &OwnedFd) -> Result<(), Errno> {
        rustix::fs::fsetxattr(root, TRIAL, &self.value(), XattrFlags::empty())?;
        rustix::fs::fremovexattr(root, TRIAL)
    }

    /// Sets it, and makes it stable.
    pub(super) fn set(&self, root: &OwnedFd) -> Result<(), Errno> {
        let value = self.value();
        // Not everybody may, and not every file system can.
        rustix::fs::fsetxattr(root, PROOF, &value, XattrFlags::empty()).ok();
        rustix::fs::fsetxattr(root, ATTRIBUTE, &value, XattrFlags::empty())?;
        rustix::fs::fsync(root)
    }

    /// What the log held is in its place, as the frame of this sequence records. Not before:
    /// without that frame the next start looks at the times of inodes again.
    pub(super) fn started(&self, root: &OwnedFd, sequence: u64) -> Result<(), Errno> {
        let [anew, proof] = ANEW;
        rustix::fs::fremovexattr(root, proof).ok();
        for done in [DOUBT, REPLAY, anew] {
            match rustix::fs::fremovexattr(root, done) {
                Ok(()) | Err(Errno::NODATA) => {}
                Err(errno) => return Err(errno),
            }
        }
        // Where there is no room for it, an older one stands.
        self.note(root, START, &sequence.to_le_bytes()).ok();
        rustix::fs::fsync(root)
    }

    /// The frame that its newest start began with: a log that has not come so far is a copy of an
    /// earlier time. Zero where that is not known.
    pub(super) fn newest_start(&self, root: &OwnedFd) -> u64 {
        let start = self.noted(root, START).and_then(|sequence| sequence.try_into().ok());
        start.map_or(0, u64::from_le_bytes)
    }

    /// All that the log holds is in its place and stable, and its next frame lies over others.
    pub(super) fn begins_anew(&self, root: &OwnedFd) -> Result<(), Errno> {
        self.note(root, ANEW, &[])?;
        rustix::fs::fsync(root)
    }

    /// Whether an earlier start came no further than that: nothing is needed of the log, and not
    /// all of it may be whole.
    pub(super) fn is_begun_anew(&self, root: &OwnedFd) -> bool {
        self.noted(root, ANEW).is_some()
    }

    fn note(&self, root: &OwnedFd, [name, proof]: [&str; 2], what: &[u8]) -> Result<(), Errno> {
        let value = [&self.id[..], what].concat();
        // Not everybody may, and not every file system can.
        rustix::fs::fsetxattr(root, proof, &value, XattrFlags::empty()).ok();
        rustix::fs::fsetxattr(root, name, &value, XattrFlags::empty())
    }

    /// What a server has noted of this log, and nobody else.
    fn noted(&self, root: &OwnedFd, [name, proof]: [&str; 2]) -> Option<Vec<u8>> {
        let value = read(root, name).ok()??;
        let is_proven = || read(root, proof).is_ok_and(|proof| proof.as_ref() == Some(&value));
        let own = value.strip_prefix(&self.id[..])?.to_vec();
        (is_private(root) || is_proven()).then_some(own)
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

    /// Not that of another log.
    pub(super) fn remove(&self, root: &OwnedFd) -> Result<(), Errno> {
        if Self::standing(root)?.is_some_and(|standing| standing.value() != self.value()) {
            return Ok(());
        }
        // Alone they say nothing.
        for alone in [PROOF].into_iter().chain(START).chain(ANEW) {
            rustix::fs::fremovexattr(root, alone).ok();
        }
        match rustix::fs::fremovexattr(root, ATTRIBUTE) {
            Ok(()) | Err(Errno::NODATA) => rustix::fs::fsync(root),
            Err(errno) => Err(errno),
        }
    }
}

/// As long as an attribute can be (XATTR_SIZE_MAX of Linux).
const VALUE_BYTES_MAX: usize = 64 << 10;

fn read(root: &OwnedFd, attribute: &str) -> Result<Option<Vec<u8>>, Errno> {
    let mut value = vec![0; VALUE_BYTES_MAX];
    match rustix::fs::fgetxattr(root, attribute, &mut value[..]) {
        Ok(len) => {
            value.truncate(len);
            Ok(Some(value))
        }
        Err(Errno::NODATA | Errno::OPNOTSUPP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Whether this process would see a proof: a server with a log leaves the key of its handles where
/// proofs are.
fn sees_proofs(root: &OwnedFd) -> bool {
    rustix::fs::fgetxattr(root, KEY_ATTRIBUTE, &mut [0; 16][..]).is_ok()
}

/// Whether only root and the server's user can write to the directory.
pub(super) fn is_private(root: &OwnedFd) -> bool {
    let own = rustix::process::geteuid().as_raw();
    rustix::fs::fstat(root)
        .is_ok_and(|stat| [0, own].contains(&stat.st_uid) && stat.st_mode & 0o022 == 0)
}
