//! A host that is a folder: system calls of this machine, on what its kernel has mounted there.
//!
//! A file's handle is its inode number, so that the file system must not use a number again for
//! another file while a contest lasts (tmpfs does not).

use std::fs::{self, File, Metadata, OpenOptions};
use std::io::{self, Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::PathBuf;

use rustix::fs::{AtFlags, CWD, FlockOperation, Mode, OFlags, flock, linkat};
use rustix::io::Errno;
use wire::nfs3::{FileHandle, NfsStat3};

use super::locker::Locker;
use super::refused::{Refused, Way};

/// See the module's head.
pub(super) struct Folder {
    pub(super) path: PathBuf,
    /// Whether the kernel may answer from what it remembers of names.
    pub(super) remembers: bool,
    /// The program that locks as fcntl(2) does.
    pub(super) locker: Option<PathBuf>,
    /// Whether programs sync before they close.
    pub(super) syncs: bool,
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        let status = Errno::from_io_error(&error).and_then(|errno| match errno {
            Errno::NOENT => Some(NfsStat3::NoEnt),
            Errno::EXIST => Some(NfsStat3::Exist),
            Errno::STALE => Some(NfsStat3::Stale),
            Errno::NOSPC => Some(NfsStat3::NoSpc),
            Errno::IO => Some(NfsStat3::Io),
            _ => None,
        });
        Self::new(status, error.to_string())
    }
}

impl Folder {
    /// A process that has a file open to lock it.
    pub(super) fn locker(&self, name: &str) -> io::Result<(FileHandle, Locker)> {
        let program = self.locker.as_ref().ok_or(io::ErrorKind::Unsupported)?;
        Ok((self.look(name)?, Locker::start(program, &self.path.join(name))?))
    }

    pub(super) fn look(&self, name: &str) -> io::Result<FileHandle> {
        fs::symlink_metadata(self.path.join(name)).map(|found| handle(&found))
    }

    pub(super) fn make(&self, name: &str) -> io::Result<FileHandle> {
        let made = OpenOptions::new().write(true).create_new(true).open(self.path.join(name))?;
        made.metadata().map(|found| handle(&found))
    }

    pub(super) fn remove(&self, name: &str) -> io::Result<()> {
        fs::remove_file(self.path.join(name))
    }

    pub(super) fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        fs::rename(self.path.join(from), self.path.join(to))
    }

    /// Gives this file another name. The first may have become another file's since it was looked
    /// at: that one is not linked, and this one counts as stale.
    pub(super) fn link(&self, (from, file): (&str, FileHandle), to: &str) -> io::Result<()> {
        let how = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let opened = File::from(rustix::fs::open(self.path.join(from), how, Mode::empty())?);
        if handle(&opened.metadata()?) != file {
            return Err(Errno::STALE.into());
        }
        let opened = format!("/proc/self/fd/{}", opened.as_raw_fd());
        Ok(linkat(CWD, opened, CWD, self.path.join(to), AtFlags::SYMLINK_FOLLOW)?)
    }

    pub(super) fn set_mode(&self, name: &str) -> io::Result<()> {
        fs::set_permissions(self.path.join(name), fs::Permissions::from_mode(0o640))
    }

    pub(super) fn open(&self, name: &str, way: Way) -> io::Result<(FileHandle, File)> {
        let appends = way == Way::Append;
        let how = OpenOptions::new().read(true).write(!appends).append(appends).clone();
        let file = how.open(self.path.join(name))?;
        Ok((handle(&file.metadata()?), file))
    }

    pub(super) fn read(&self, name: &str) -> io::Result<(FileHandle, Vec<u8>)> {
        let mut file = File::open(self.path.join(name))?;
        let mut data = Vec::new();
        file.read_to_end(&mut data)?;
        Ok((handle(&file.metadata()?), data))
    }

    pub(super) fn entries(&self) -> io::Result<fs::ReadDir> {
        fs::read_dir(&self.path)
    }
}

pub(super) fn names(entries: fs::ReadDir) -> io::Result<Vec<String>> {
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

pub(super) fn write(to: &File, at: u64, data: &[u8]) -> io::Result<()> {
    to.write_all_at(data, at)
}

pub(super) fn append(mut to: &File, data: &[u8]) -> io::Result<()> {
    to.write_all(data)
}

/// Waits until nobody else has it (flock(2)).
pub(super) fn lock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::LockExclusive)?)
}

pub(super) fn unlock(file: &File) -> io::Result<()> {
    Ok(flock(file, FlockOperation::Unlock)?)
}

fn handle(found: &Metadata) -> FileHandle {
    FileHandle::new(&found.ino().to_le_bytes()).expect("eight bytes")
}
