//! Small files of text in a folder that is open: read, made, and replaced as a whole.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FileType, Mode, OFlags};
use rustix::io::Errno;

pub(crate) const FOR_OWNER: Mode = Mode::from_raw_mode(0o600);

/// Of a marker or an identity: what is longer is none.
pub(crate) const TEXT_BYTES_MAX: usize = 4096;

/// Of the last line of a text that has its checksum.
pub(crate) const CHECK_BYTES: usize = "check 01234567\n".len();

/// A text with its checksum as the last line.
pub(crate) fn checked(body: String) -> String {
    let check = crc32fast::hash(body.as_bytes());
    body + &format!("check {check:08x}\n")
}

/// The text before its checksum; none if that is another's.
pub(crate) fn body_of(text: &str) -> Option<&str> {
    let body = text.get(..text.len().checked_sub(CHECK_BYTES)?)?;
    (checked(body.to_owned()) == text).then_some(body)
}

pub(crate) fn open_dir(base: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    rustix::fs::openat(base, name, flags, Mode::empty())
}

/// The names in a directory, without the two that each has.
pub(crate) fn names(dir: BorrowedFd<'_>) -> Result<Vec<String>, Errno> {
    let entries = rustix::fs::Dir::read_from(dir)?;
    let mut found = Vec::new();
    for entry in entries {
        let name = entry?.file_name().to_string_lossy().into_owned();
        if name != "." && name != ".." {
            found.push(name);
        }
    }
    found.sort_unstable();
    Ok(found)
}

/// What a small file says; none if there is none. What is no text or too long is an empty one.
pub(crate) fn read_text(
    dir: BorrowedFd<'_>,
    name: &str,
    bytes_max: usize,
) -> Result<Option<String>, Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let fd = match rustix::fs::openat(dir, name, flags, Mode::empty()) {
        Err(Errno::NOENT) => return Ok(None),
        opened => opened?,
    };
    let stat = rustix::fs::fstat(&fd)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Ok(Some(String::new()));
    }
    let most = u64::try_from(stat.st_size).unwrap_or(0).min(bytes_max as u64);
    let mut bytes = vec![0; usize::try_from(most).unwrap_or(0)];
    let count = rustix::io::pread(&fd, &mut bytes, 0)?;
    bytes.truncate(count);
    Ok(Some(String::from_utf8(bytes).unwrap_or_default()))
}

/// Writes a small file, as a whole or not at all.
pub(crate) fn write_text(dir: BorrowedFd<'_>, name: &str, text: &str) -> Result<(), Errno> {
    let (fd, new) = write_new(dir, name, text)?;
    // Renamed before its content is on the disk, it could be empty after a power failure.
    rustix::fs::fdatasync(&fd)?;
    rustix::fs::renameat(dir, &new, dir, name)
}

/// As [`write_text`], of what may be lost with the power.
pub(crate) fn replace_text(dir: BorrowedFd<'_>, name: &str, text: &str) -> Result<(), Errno> {
    let (_, new) = write_new(dir, name, text)?;
    rustix::fs::renameat(dir, &new, dir, name)
}

fn write_new(dir: BorrowedFd<'_>, name: &str, text: &str) -> Result<(OwnedFd, String), Errno> {
    let new = unfinished(name);
    let flags =
        OFlags::WRONLY | OFlags::CREATE | OFlags::TRUNC | OFlags::CLOEXEC | OFlags::NOFOLLOW;
    let fd = rustix::fs::openat(dir, &new, flags, FOR_OWNER)?;
    if let Err(errno) = write_all(fd.as_fd(), text.as_bytes()) {
        rustix::fs::unlinkat(dir, &new, AtFlags::empty()).ok();
        return Err(errno);
    }
    Ok((fd, new))
}

/// Where a small file is written before it has its name.
pub(crate) fn unfinished(name: &str) -> String {
    format!("{name}.new")
}

fn write_all(fd: BorrowedFd<'_>, mut rest: &[u8]) -> Result<(), Errno> {
    while !rest.is_empty() {
        let count = rustix::io::write(fd, rest)?;
        rest = &rest[count..];
    }
    Ok(())
}
