//! A directory beside the log for what the origin refuses: a file for each of the origin's, with
//! the bytes that it has not taken, at their places. Where this host has no files so long, they are
//! one behind the other, below a list of their places.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, FileExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use bytes::Bytes;
use server::small_file::NO_LINK;

use super::medium::KeepError;

/// Files in it, at most.
const FILES_MAX: u64 = 4096;

/// What a file takes at least, for the sum.
const FILE_BYTES: u64 = 4096;

/// See the module's head. Bounded by files and by bytes; a file that does not fit is not made.
#[derive(Clone, Debug)]
pub(super) struct Refused {
    dir: PathBuf,
    bytes_max: u64,
}

impl Refused {
    /// That of this log, for as many bytes as the log has.
    pub(super) fn beside(log: &Path, bytes_max: u64) -> Self {
        let mut dir = log.to_owned().into_os_string();
        dir.push(".refused");
        Self { dir: PathBuf::from(dir), bytes_max }
    }

    /// Makes a file of this length with these pieces in it, over one of the same name; gives its
    /// path when it survives power loss. No length is too long.
    pub(super) fn keep(
        &self,
        name: &[u8],
        size: u64,
        pieces: &[(u64, Bytes)],
    ) -> Result<String, KeepError> {
        let path = self.dir.join(std::ffi::OsStr::from_bytes(name));
        let failed = |cause| KeepError::File { path: path.display().to_string(), cause };
        self.make().map_err(failed)?;
        let more = pieces.iter().map(|(_, data)| data.len() as u64).sum::<u64>().max(FILE_BYTES);
        let (files, bytes) = self.filled(&path).map_err(failed)?;
        if files >= FILES_MAX || bytes + more > self.bytes_max {
            return Err(KeepError::Full { dir: self.dir.display().to_string(), bytes, files });
        }
        // A draft: what has the name is whole.
        let draft = self.dir.join(".new");
        let (written, note) = match self.write(&draft, size, pieces) {
            Err(error) if is_too_long(&error) => {
                let listed = [(0, Bytes::from(listed(size, pieces)))];
                (self.write(&draft, 0, &listed), LISTED)
            }
            written => (written, ""),
        };
        let renamed = written.and_then(|()| fs::rename(&draft, &path));
        renamed.and_then(|()| File::open(&self.dir)?.sync_all()).map_err(failed)?;
        Ok(format!("{}{note}", path.display()))
    }

    /// The directory is there, and its owner's only.
    fn make(&self) -> io::Result<()> {
        match DirBuilder::new().mode(0o700).create(&self.dir) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            _ => {}
        }
        let found = fs::symlink_metadata(&self.dir)?;
        let is_ours = found.is_dir()
            && found.uid() == rustix::process::geteuid().as_raw()
            && found.mode() & 0o022 == 0;
        match is_ours {
            true => Ok(()),
            false => Err(io::Error::other("its directory is not ours alone")),
        }
    }

    /// Files and bytes but for this one.
    fn filled(&self, but: &Path) -> io::Result<(u64, u64)> {
        let (mut files, mut bytes) = (0, 0);
        for entry in fs::read_dir(&self.dir)? {
            let entry = entry?;
            if entry.path() != but {
                files += 1;
                bytes += (entry.metadata()?.blocks() * 512).max(FILE_BYTES);
            }
        }
        Ok((files, bytes))
    }

    fn write(&self, draft: &Path, size: u64, pieces: &[(u64, Bytes)]) -> io::Result<()> {
        match fs::remove_file(draft) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut options = File::options();
        options.write(true).create_new(true).mode(0o600).custom_flags(NO_LINK);
        let file = options.open(draft)?;
        file.set_len(size)?;
        pieces.iter().try_for_each(|(at, data)| file.write_all_at(data, *at))?;
        file.sync_all()
    }
}

/// What is written of a file beside its path.
pub(super) const LISTED: &str = ", below a list of its places";

/// Whether the system has no files so long.
fn is_too_long(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::FileTooLarge | io::ErrorKind::InvalidInput)
}

/// The pieces of a file one behind the other, below lines that say where they belong.
pub(super) fn listed(size: u64, pieces: &[(u64, Bytes)]) -> Vec<u8> {
    let mut text = format!("{} pieces of a file of {size} bytes:\n", pieces.len());
    for (at, data) in pieces {
        text += &format!("{} bytes at {at}\n", data.len());
    }
    let mut listed = text.into_bytes();
    pieces.iter().for_each(|(_, data)| listed.extend_from_slice(data));
    listed
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    fn piece(at: u64, text: &'static str) -> (u64, Bytes) {
        (at, Bytes::from_static(text.as_bytes()))
    }

    #[test]
    fn a_file_has_its_pieces_at_their_places_and_is_its_owners_only() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Refused::beside(&dir.path().join("log"), 1 << 20);
        let path = refused.keep(b"name.nfskit-conflict-7", 12, &[piece(3, "abc")]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"\0\0\0abc\0\0\0\0\0\0");
        refused.keep(b"name.nfskit-conflict-7", 2, &[piece(0, "xy")]).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"xy", "over the one before");
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(Path::new(&path)), mode(&refused.dir)), (0o600, 0o700));
        assert_eq!(fs::read_dir(&refused.dir).unwrap().count(), 1, "no draft is left");
    }

    #[test]
    fn of_a_file_that_is_longer_than_any_here_the_pieces_are_stored_with_their_places() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Refused::beside(&dir.path().join("log"), 1 << 20);
        let far = u64::MAX - 9;
        let entry = refused.keep(b"long", u64::MAX, &[piece(7, "abc"), piece(far, "xy")]).unwrap();
        let path = entry.strip_suffix(LISTED).unwrap();
        let right = format!(
            "2 pieces of a file of {} bytes:\n3 bytes at 7\n2 bytes at {far}\nabcxy",
            u64::MAX
        );
        assert_eq!(fs::read_to_string(path).unwrap(), right);
        refused.keep(b"empty", u64::MAX, &[]).unwrap();
    }

    #[test]
    fn what_does_not_fit_is_not_made_and_says_what_is_there() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Refused::beside(&dir.path().join("log"), 3 * FILE_BYTES);
        refused.keep(b"a", 10, &[piece(0, "1")]).unwrap();
        refused.keep(b"b", 10, &[piece(0, "1")]).unwrap();
        let large = (0, Bytes::from(vec![1; 5000]));
        let full = refused.keep(b"c", 5000, &[large]).unwrap_err();
        assert!(matches!(full, KeepError::Full { files: 2, .. }), "{full}");
        refused.keep(b"b", 10, &[piece(0, "2")]).unwrap();
    }

    #[test]
    fn a_directory_that_others_may_write_to_or_a_link_is_not_taken() {
        let dir = tempfile::tempdir().unwrap();
        let refused = Refused::beside(&dir.path().join("log"), 1 << 20);
        fs::create_dir(&refused.dir).unwrap();
        fs::set_permissions(&refused.dir, fs::Permissions::from_mode(0o777)).unwrap();
        assert!(refused.keep(b"a", 1, &[]).is_err());
        fs::remove_dir(&refused.dir).unwrap();
        fs::create_dir(dir.path().join("other")).unwrap();
        std::os::unix::fs::symlink("other", &refused.dir).unwrap();
        assert!(refused.keep(b"a", 1, &[]).is_err());
    }
}
