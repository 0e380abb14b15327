//! Segments in a folder of a local file system: sparse files in 256 folders, by the hash of their
//! key. Nothing is followed that is a symbolic link, and all is made for its owner alone.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use parking_lot::Mutex;
use rustix::fs::{AtFlags, FallocateFlags, FileType, Mode, OFlags, RawDir};
use rustix::io::{Errno, ReadWriteFlags};

use super::{Each, Free, Medium, Stored};
use crate::key::{FileHash, Name};
use crate::limits::Filled;
use crate::missed;
use crate::orders::{self, Order};
use crate::pins::{self, Pins};

const FOR_OWNER: Mode = Mode::from_raw_mode(0o600);
const FOLDER_FOR_OWNER: Mode = Mode::from_raw_mode(0o700);

/// The file of what was there, and how it is written: bytes, files, and a checksum of both.
pub(crate) const FILLED: &str = "filled";
const FILLED_BYTES: usize = 20;

/// Room for the names of a folder that are read at once.
const NAMES_BYTES: usize = 1 << 16;
/// Segments that are reported at once.
const LISTED_AT_ONCE: usize = 1024;

/// See the module's head. Whoever makes it has the folder locked, or only looks.
#[derive(Debug)]
pub struct Folder {
    dir: OwnedFd,
    /// How segments are opened.
    access: OFlags,
    /// Guards which pins were read last.
    pins: Mutex<Option<(u64, i64, u64)>>,
}

impl Folder {
    /// The folder open at `dir`.
    pub fn new(dir: OwnedFd) -> Self {
        Self { dir, access: OFlags::RDWR, pins: Mutex::default() }
    }

    /// The same, for who only reads: it may be on a disk that cannot be written to.
    pub(crate) fn to_look_at(dir: OwnedFd) -> Self {
        Self { access: OFlags::RDONLY, ..Self::new(dir) }
    }

    fn open_at(&self, name: Name, flags: OFlags) -> Result<OwnedFd, Errno> {
        let flags = flags | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        rustix::fs::openat(&self.dir, path(name), flags, FOR_OWNER)
    }
}

/// `ab/abcd...-0`: the folder, the file's hash, the number of the segment.
fn path(name: Name) -> String {
    let first = name.file.as_bytes()[0];
    format!("{first:02x}/{}-{:x}", name.file, name.segment)
}

/// Reads the last part of a path; nothing of others.
pub(crate) fn parse(name: &[u8]) -> Option<Name> {
    let (file, segment) = std::str::from_utf8(name).ok()?.split_once('-')?;
    let name =
        Name { file: FileHash::parse(file)?, segment: u32::from_str_radix(segment, 16).ok()? };
    path(name).ends_with(segment).then_some(name)
}

impl Medium for Folder {
    fn open(&self, name: Name) -> io::Result<Option<Arc<dyn Stored>>> {
        match self.open_at(name, self.access) {
            Ok(fd) => Ok(Some(Arc::new(File { fd }))),
            Err(Errno::NOENT) => Ok(None),
            Err(errno) => Err(errno.into()),
        }
    }

    fn make(&self, name: Name) -> io::Result<Arc<dyn Stored>> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::EXCL;
        let fd = match self.open_at(name, flags) {
            Err(Errno::EXIST) => {
                self.remove(name)?;
                self.open_at(name, flags)
            }
            Err(Errno::NOENT) => {
                let folder = format!("{:02x}", name.file.as_bytes()[0]);
                match rustix::fs::mkdirat(&self.dir, folder, FOLDER_FOR_OWNER) {
                    Ok(()) | Err(Errno::EXIST) => self.open_at(name, flags),
                    Err(errno) => Err(errno),
                }
            }
            made => made,
        }?;
        Ok(Arc::new(File { fd }))
    }

    fn remove(&self, name: Name) -> io::Result<()> {
        match rustix::fs::unlinkat(&self.dir, path(name), AtFlags::empty()) {
            Ok(()) | Err(Errno::NOENT) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }

    fn list(&self, each: &mut Each<'_>) -> io::Result<()> {
        let mut room = Vec::with_capacity(NAMES_BYTES);
        let mut found = Vec::new();
        for first in 0..=u8::MAX {
            list_folder(self.dir.as_fd(), first, &mut room, &mut found)?;
        }
        found.sort_unstable_by_key(|(changed, name, _)| (*changed, *name));
        for some in found.chunks(LISTED_AT_ONCE) {
            let some: Vec<_> = some.iter().map(|(_, name, bytes)| (*name, *bytes)).collect();
            each(&some);
        }
        Ok(())
    }

    fn free(&self) -> io::Result<Free> {
        let statvfs = rustix::fs::fstatvfs(&self.dir)?;
        let bytes = |blocks: u64| blocks.saturating_mul(statvfs.f_frsize);
        Ok(Free { bytes: bytes(statvfs.f_bavail), all_bytes: bytes(statvfs.f_blocks) })
    }

    fn noted(&self) -> Option<Filled> {
        let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = rustix::fs::openat(&self.dir, FILLED, flags, Mode::empty()).ok()?;
        let mut bytes = [0; FILLED_BYTES];
        let count = rustix::io::pread(&fd, &mut bytes, 0).ok()?;
        let crc = crc32fast::hash(&bytes[..16]).to_le_bytes();
        let number = |at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
        (count == FILLED_BYTES && crc == bytes[16..])
            .then(|| Filled { bytes: number(0), files: number(8) })
    }

    fn note(&self, filled: Filled) {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let mut bytes = [0; FILLED_BYTES];
        bytes[..8].copy_from_slice(&filled.bytes.to_le_bytes());
        bytes[8..16].copy_from_slice(&filled.files.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..16]).to_le_bytes();
        bytes[16..].copy_from_slice(&crc);
        // Without it the next start counts before it stores.
        if let Ok(fd) = rustix::fs::openat(&self.dir, FILLED, flags, FOR_OWNER) {
            rustix::io::pwrite(&fd, &bytes, 0).ok();
        }
    }

    fn missed(&self) -> Option<String> {
        missed::read(self.dir.as_fd())
    }

    fn note_missed(&self, text: &str) {
        missed::write(self.dir.as_fd(), text);
    }

    fn orders(&self) -> Vec<Order> {
        orders::take(self.dir.as_fd())
    }

    fn ordered(&self) {
        orders::finish(self.dir.as_fd());
    }

    fn pins(&self) -> Option<Pins> {
        let stamp = pins::stamp(self.dir.as_fd());
        let mut last = self.pins.lock();
        if *last == stamp {
            return None;
        }
        let pins = pins::read(self.dir.as_fd()).ok()?;
        *last = stamp;
        Some(pins)
    }
}

/// What lies in one of the folders, with the time of its last change. What is none of ours is
/// left alone.
fn list_folder(
    dir: BorrowedFd<'_>,
    first: u8,
    room: &mut Vec<u8>,
    found: &mut Vec<((i64, i64), Name, u64)>,
) -> io::Result<()> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let folder = match rustix::fs::openat(dir, format!("{first:02x}"), flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(()),
        opened => opened?,
    };
    let mut entries = RawDir::new(&folder, room.spare_capacity_mut());
    while let Some(entry) = entries.next() {
        let entry = entry?;
        let Some(name) = parse(entry.file_name().to_bytes()) else { continue };
        let flags = AtFlags::SYMLINK_NOFOLLOW;
        let Ok(stat) = rustix::fs::statat(&folder, entry.file_name(), flags) else { continue };
        if FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile {
            let bytes = u64::try_from(stat.st_blocks).unwrap_or(0).saturating_mul(512);
            let changed = (stat.st_mtime, stat.st_mtime_nsec.cast_signed());
            found.push((changed, name, bytes));
        }
    }
    Ok(())
}

#[derive(Debug)]
struct File {
    fd: OwnedFd,
}

impl Stored for File {
    fn read(&self, at: u64, into: &mut [u8], at_once: bool) -> io::Result<usize> {
        let mut done = 0;
        while done < into.len() {
            let rest = &mut into[done..];
            let place = at + done as u64;
            let count = if at_once {
                let mut rest = [io::IoSliceMut::new(rest)];
                let flags = ReadWriteFlags::NOWAIT;
                match rustix::io::preadv2(&self.fd, &mut rest, place, flags) {
                    Err(Errno::OPNOTSUPP | Errno::AGAIN) => {
                        return Err(io::ErrorKind::WouldBlock.into());
                    }
                    read => read,
                }
            } else {
                rustix::io::pread(&self.fd, rest, place)
            };
            match count {
                Ok(0) => break,
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(done)
    }

    fn write(&self, at: u64, bytes: &[u8]) -> io::Result<()> {
        let mut done = 0;
        while done < bytes.len() {
            match rustix::io::pwrite(&self.fd, &bytes[done..], at + done as u64) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => done += count,
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    fn lengthen(&self, bytes: u64) -> io::Result<()> {
        let has_bytes = u64::try_from(rustix::fs::fstat(&self.fd)?.st_size).unwrap_or(0);
        if has_bytes < bytes {
            rustix::fs::ftruncate(&self.fd, bytes)?;
        }
        Ok(())
    }

    fn clear(&self, at: u64, bytes: usize) -> io::Result<()> {
        let how = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        match rustix::fs::fallocate(&self.fd, how, at, bytes as u64) {
            Ok(()) => Ok(()),
            Err(Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => self.write(at, &vec![0; bytes]),
            Err(errno) => Err(errno.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_ours_are_read() {
        let name = Name { file: FileHash::from_bytes([0xab; 16]), segment: 0x1f };
        let path = path(name);
        assert_eq!(path, format!("ab/{}-1f", "ab".repeat(16)));
        assert_eq!(parse(&path.as_bytes()[3..]), Some(name));
        for wrong in ["", "-", "lock", "filled", &format!("{}-01f", "ab".repeat(16))] {
            assert_eq!(parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
