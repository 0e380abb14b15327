//! The files that stay when a cache is cleaned: one small text in its folder, which commands
//! replace as a whole and the process that has the cache reads.
//!
//! A file is a line, `HASH FILEID`: the number is that by which a path finds it again, also when
//! nothing is stored of it. The last line is a checksum of the others.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::os::fd::{BorrowedFd, OwnedFd};

use rustix::fs::{AtFlags, FlockOperation, Mode, OFlags};
use rustix::io::Errno;

use crate::key::FileHash;
use crate::texts::{CHECK_BYTES, body_of, checked, read_text, write_text};

const PINS: &str = "pins";

/// Files that can be pinned.
pub const PINS_MAX: usize = 1 << 16;

/// A hash, a number, and what is between and behind them.
const LINE_BYTES_MAX: usize = 32 + 20 + 2;
const PINS_BYTES_MAX: usize = PINS_MAX * LINE_BYTES_MAX + CHECK_BYTES;

/// What a folder has of it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Pins {
    /// With their fileids.
    pub files: BTreeMap<FileHash, u64>,
    /// False: the checksum is not that of the lines, and `files` are those that can be read of it.
    pub is_whole: bool,
}

/// Which change of the pins it is, without reading them.
pub(crate) fn stamp(dir: BorrowedFd<'_>) -> Option<(u64, i64, u64)> {
    let stat = rustix::fs::statat(dir, PINS, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    Some((stat.st_ino, stat.st_ctime, stat.st_ctime_nsec))
}

/// The files that stay; none where there is no list.
///
/// # Errors
/// As the file system says.
pub fn read(dir: BorrowedFd<'_>) -> Result<Pins, Errno> {
    let text = read_text(dir, PINS, PINS_BYTES_MAX)?;
    Ok(text.map_or(Pins { files: BTreeMap::new(), is_whole: true }, |text| parse(&text)))
}

/// The right to change the list, until it is dropped. Who adds to it or takes from it reads it with
/// this, so that two commands at once lose nothing; it waits for the other one.
///
/// # Errors
/// As the file system says.
pub fn hold(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    // A descriptor of its own: a lock of flock(2) is shared by those that were duplicated.
    let own = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = rustix::fs::openat(dir, ".", own, Mode::empty())?;
    // Not all file systems have locks.
    rustix::fs::flock(&held, FlockOperation::LockExclusive).ok();
    Ok(held)
}

/// Replaces them; as many as [`PINS_MAX`].
///
/// # Errors
/// As the file system says; `NOSPC` for too many.
pub fn write(dir: BorrowedFd<'_>, files: &BTreeMap<FileHash, u64>) -> Result<(), Errno> {
    if files.len() > PINS_MAX {
        return Err(Errno::NOSPC);
    }
    write_text(dir, PINS, &text(files))
}

fn text(files: &BTreeMap<FileHash, u64>) -> String {
    let mut text = String::new();
    for (file, fileid) in files {
        // Writing to a String does not fail.
        writeln!(text, "{file} {fileid}").ok();
    }
    checked(text)
}

pub(crate) fn parse(text: &str) -> Pins {
    let body = body_of(text);
    let lines: Vec<_> = body.unwrap_or(text).lines().map(line).collect();
    let is_whole = body.is_some() && lines.iter().all(Option::is_some);
    Pins { files: lines.into_iter().flatten().collect(), is_whole }
}

fn line(line: &str) -> Option<(FileHash, u64)> {
    let (file, fileid) = line.split_once(' ')?;
    Some((FileHash::parse(file)?, fileid.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd;

    use super::*;

    fn three() -> BTreeMap<FileHash, u64> {
        [1, 2, 3].map(|n| (FileHash::from_bytes([n; 16]), u64::MAX - u64::from(n))).into()
    }

    #[test]
    fn pins_are_read_as_they_were_written_and_none_is_too_long() {
        let written = text(&three());
        assert_eq!(parse(&written), Pins { files: three(), is_whole: true });
        assert!(written.lines().all(|line| line.len() < LINE_BYTES_MAX));
        assert!(parse(&text(&BTreeMap::new())).is_whole);
    }

    #[test]
    fn what_several_add_at_once_is_all_there() {
        let dir = tempfile::tempdir().unwrap();
        let add = |n: u8| {
            let dir = File::open(dir.path()).unwrap();
            for of_each in 0..20 {
                let _held = hold(dir.as_fd()).unwrap();
                let mut files = read(dir.as_fd()).unwrap().files;
                files.insert(FileHash::from_bytes([n + of_each; 16]), of_each.into());
                write(dir.as_fd(), &files).unwrap();
            }
        };
        std::thread::scope(|scope| {
            for n in 1..5 {
                scope.spawn(move || add(n * 20));
            }
        });
        assert_eq!(read(File::open(dir.path()).unwrap().as_fd()).unwrap().files.len(), 80);
    }

    #[test]
    fn no_changed_or_cut_list_is_taken_for_whole() {
        let written = text(&three());
        for at in 0..written.len() {
            for bit in 0..7 {
                let mut changed = written.clone().into_bytes();
                changed[at] ^= 1 << bit;
                let changed = String::from_utf8(changed).unwrap();
                assert!(!parse(&changed).is_whole, "{changed:?}");
            }
            assert!(!parse(&written[..at]).is_whole);
        }
        // What can be read of it holds.
        let changed = written.replacen('1', "x", 1);
        assert_eq!(parse(&changed).files.len(), 2);
    }
}
