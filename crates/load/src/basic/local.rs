//! A directory of any mounted file system, by system calls relative to open directories.

use std::ffi::CStr;
use std::fs::File as Opened;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use rustix::fs::{self, AtFlags, FileType, OFlags};
use rustix::io::Errno;

use super::place::{
    Above, Answer, Change, Changes, Entry, Kind, Listing, Place, Refused, Space, Stat,
    WithAttributes,
};
use crate::error::Error;

/// See the module's head. Operations block: run it on a thread of its own.
#[derive(Clone, Debug)]
pub struct Local {
    root: Dir,
    sync: bool,
}

/// An open directory, and the path that led to it.
#[derive(Clone, Debug)]
pub struct Dir {
    fd: Arc<OwnedFd>,
    path: PathBuf,
}

impl Dir {
    fn failed(&self, doing: &'static str, name: &str) -> impl FnOnce(Errno) -> Refused + use<> {
        let path = self.path.join(name);
        move |errno| Refused::local(doing, path, errno)
    }
}

/// An open file.
#[derive(Debug)]
pub struct File {
    file: Opened,
    path: PathBuf,
}

impl File {
    fn failed(&self, doing: &'static str, cause: &std::io::Error) -> Refused {
        let errno = Errno::from_io_error(cause).unwrap_or(Errno::IO);
        Refused::local(doing, self.path.clone(), errno)
    }
}

const CREATE: OFlags = OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::CLOEXEC);

impl Local {
    /// Works in `dir`; with `sync` test 5 writes with O_SYNC.
    ///
    /// # Errors
    /// The directory is not there, is none, or is not for this user to search.
    pub fn open(dir: &Path, sync: bool) -> Result<Self, Error> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::open(dir, flags, fs::Mode::empty()).map_err(|errno| Error::Local {
            doing: "opening a directory",
            path: dir.to_owned(),
            cause: errno.into(),
        })?;
        Ok(Self { root: Dir { fd: Arc::new(fd), path: dir.to_owned() }, sync })
    }

    fn make(&self, dir: &Dir, name: &str, flags: OFlags) -> Answer<File> {
        let sync = if self.sync { OFlags::SYNC } else { OFlags::empty() };
        let fd = fs::openat(&dir.fd, name, CREATE | flags | sync, fs::Mode::from_raw_mode(0o666))
            .map_err(dir.failed("making a file", name))?;
        Ok(File { file: fd.into(), path: dir.path.join(name) })
    }
}

fn stat_of(found: &fs::Stat) -> Stat {
    Stat {
        kind: match FileType::from_raw_mode(found.st_mode) {
            FileType::RegularFile => Kind::File,
            FileType::Directory => Kind::Dir,
            FileType::Symlink => Kind::Symlink,
            _ => Kind::Other,
        },
        mode: found.st_mode & 0o7777,
        links: links(found),
        size: u64::try_from(found.st_size).unwrap_or(0),
        fileid: found.st_ino,
        modified: (found.st_mtime, u32::try_from(found.st_mtime_nsec).unwrap_or(0)),
    }
}

/// Its width differs between machines.
fn links(found: &fs::Stat) -> u64 {
    #[allow(clippy::useless_conversion, reason = "no conversion on some machines")]
    u64::from(found.st_nlink)
}

fn without_attributes<T>(value: T) -> WithAttributes<T> {
    WithAttributes { value, stat: None }
}

impl Place for Local {
    type Dir = Dir;
    type File = File;
    type Path = PathBuf;

    fn root(&self) -> Dir {
        self.root.clone()
    }

    fn show(&self, dir: &Dir) -> String {
        dir.path.display().to_string()
    }

    async fn create(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<File>> {
        self.make(dir, name, OFlags::TRUNC).map(without_attributes)
    }

    async fn create_new(&self, dir: &Dir, name: &str) -> Answer<()> {
        self.make(dir, name, OFlags::EXCL).map(drop)
    }

    async fn open(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<File>> {
        let fd = fs::openat(&dir.fd, name, OFlags::RDONLY | OFlags::CLOEXEC, fs::Mode::empty())
            .map_err(dir.failed("opening a file", name))?;
        Ok(without_attributes(File { file: fd.into(), path: dir.path.join(name) }))
    }

    async fn write(
        &self,
        file: &mut File,
        offset: u64,
        data: &Bytes,
    ) -> Answer<WithAttributes<()>> {
        let written = file.file.write_all_at(data, offset);
        written.map_err(|cause| file.failed("writing a file", &cause))?;
        Ok(without_attributes(()))
    }

    async fn read(&self, file: &File, offset: u64, count: u32) -> Answer<WithAttributes<Vec<u8>>> {
        let mut data = vec![0; count as usize];
        let mut done = 0;
        while done < data.len() {
            match file.file.read_at(&mut data[done..], offset + done as u64) {
                Ok(0) => break,
                Ok(got) => done += got,
                Err(cause) => return Err(file.failed("reading a file", &cause)),
            }
        }
        data.truncate(done);
        Ok(without_attributes(data))
    }

    /// Errors of close(2) are not reported here; a read finds missing bytes.
    async fn close(&self, file: File) -> Answer<()> {
        drop(file);
        Ok(())
    }

    async fn make_dir(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<()>> {
        fs::mkdirat(&dir.fd, name, fs::Mode::from_raw_mode(0o777))
            .map_err(dir.failed("making a directory", name))?;
        Ok(without_attributes(()))
    }

    async fn enter(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<Dir>> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = fs::openat(&dir.fd, name, flags, fs::Mode::empty())
            .map_err(dir.failed("opening a directory", name))?;
        Ok(without_attributes(Dir { fd: Arc::new(fd), path: dir.path.join(name) }))
    }

    async fn remove(&self, dir: &Dir, name: &str) -> Answer<()> {
        fs::unlinkat(&dir.fd, name, AtFlags::empty()).map_err(dir.failed("removing a file", name))
    }

    async fn remove_dir(&self, dir: &Dir, name: &str) -> Answer<()> {
        fs::unlinkat(&dir.fd, name, AtFlags::REMOVEDIR)
            .map_err(dir.failed("removing a directory", name))
    }

    async fn stat(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<Stat>> {
        let found = fs::statat(&dir.fd, name, AtFlags::SYMLINK_NOFOLLOW)
            .map_err(dir.failed("looking at a file", name))?;
        Ok(without_attributes(stat_of(&found)))
    }

    async fn stat_dir(&self, dir: &Dir) -> Answer<Stat> {
        let found = fs::fstat(&dir.fd).map_err(dir.failed("looking at a directory", ""))?;
        Ok(stat_of(&found))
    }

    async fn set_mode(&self, dir: &Dir, name: &str, mode: u32) -> Answer<WithAttributes<()>> {
        fs::chmodat(&dir.fd, name, fs::Mode::from_raw_mode(mode), AtFlags::empty())
            .map_err(dir.failed("setting the mode of a file", name))?;
        Ok(without_attributes(()))
    }

    async fn rename(&self, dir: &Dir, from: &str, to: &str) -> Answer<()> {
        fs::renameat(&dir.fd, from, &dir.fd, to).map_err(dir.failed("renaming a file", from))
    }

    async fn link(&self, dir: &Dir, from: &str, to: &str) -> Answer<WithAttributes<()>> {
        fs::linkat(&dir.fd, from, &dir.fd, to, AtFlags::empty())
            .map_err(dir.failed("linking a file", from))?;
        Ok(without_attributes(()))
    }

    async fn symlink(&self, dir: &Dir, name: &str, target: &str) -> Answer<WithAttributes<()>> {
        fs::symlinkat(target, &dir.fd, name).map_err(dir.failed("making a symbolic link", name))?;
        Ok(without_attributes(()))
    }

    async fn read_link(&self, dir: &Dir, name: &str) -> Answer<WithAttributes<Vec<u8>>> {
        let target = fs::readlinkat(&dir.fd, name, Vec::new())
            .map_err(dir.failed("reading a symbolic link", name))?;
        Ok(without_attributes(target.into_bytes()))
    }

    async fn list(&self, dir: &Dir, _: Listing, most: usize) -> Answer<Vec<Entry>> {
        let failed = dir.failed("listing a directory", "");
        let read = || {
            // Another description: this one's place in the directory is nobody else's.
            let listing = fs::Dir::read_from(dir.fd.as_fd())?;
            let mut entries = Vec::new();
            for entry in listing.take(most) {
                let entry = entry?;
                let name: &CStr = entry.file_name();
                let (name, fileid) = (name.to_bytes().to_vec(), entry.ino());
                entries.push(Entry { name, fileid, stat: None });
            }
            Ok(entries)
        };
        read().map_err(failed)
    }

    async fn changes(&self, _: &Dir, _: Changes, _: (&str, &str)) -> Answer<Vec<Change>> {
        Ok(Vec::new())
    }

    async fn space(&self, dir: &Dir) -> Answer<Space> {
        let found = fs::fstatvfs(&dir.fd).map_err(dir.failed("asking for space", ""))?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        Ok(Space {
            total: bytes(found.f_blocks),
            free: bytes(found.f_bfree),
            available: bytes(found.f_bavail),
        })
    }

    /// By the system's own account of the descriptor, which asks the file system as much, or as
    /// little, as getcwd(2).
    async fn path_of(&self, dir: &Dir) -> Answer<Above<PathBuf>> {
        let link = format!("/proc/self/fd/{}", dir.fd.as_raw_fd());
        let path = fs::readlink(link, Vec::new()).map_err(dir.failed("finding the path of", ""))?;
        let path = PathBuf::from(std::ffi::OsStr::from_bytes(path.as_bytes()));
        Ok(Above { path, parent: None })
    }

    async fn stat_path(&self, path: &PathBuf) -> Answer<Stat> {
        let found = fs::stat(path)
            .map_err(|errno| Refused::local("looking at a directory", path.clone(), errno))?;
        Ok(stat_of(&found))
    }
}
