//! Files that were changed after their last record, and get other bytes by a replay.
//!
//! The times of such a file do not say whether it was a program on this machine that changed it, or
//! whether its inode came to the disk and the bytes of a WRITE did not. So the WRITEs are done
//! again, because they were answered, and the files that had other bytes in their place are
//! reported.

use std::collections::BTreeMap;
use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::PathBuf;

use log::Key;
use rustix::io::Errno;

use crate::store::dir::stat::Stat;

/// So many files are reported by name.
pub const NAMED_MAX: usize = 16;

/// Bytes that are read at once.
const READ_BYTES: usize = 256 << 10;

/// What a replay replaced in files that were newer than their records.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Replaced {
    pub files: u64,
    /// The first [`NAMED_MAX`] of them.
    pub named: Vec<Named>,
}

#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Named {
    pub inode: u64,
    /// In the directory, if the kernel knows it: of a file that was reached by its handle it often
    /// does not.
    pub path: Option<PathBuf>,
}

pub(super) struct Overtaken(BTreeMap<Key, Content>);

/// The part of a file that its records write.
struct Content {
    /// It had so many bytes before: what lies behind them replaces nothing.
    end: u64,
    /// Ends by where they begin; they neither overlap nor touch.
    ranges: BTreeMap<u64, u64>,
    before: u64,
}

impl Overtaken {
    /// Files that are newer than their records, and how many bytes each has.
    pub(super) fn new(files: impl Iterator<Item = (Key, u64)>) -> Self {
        Self(
            files
                .map(|(key, end)| (key, Content { end, ranges: BTreeMap::new(), before: 0 }))
                .collect(),
        )
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// A record of it writes these bytes.
    pub(super) fn writes(&mut self, key: &Key, offset: u64, bytes: usize) {
        if let Some(content) = self.0.get_mut(key) {
            content.cover(offset, offset.saturating_add(bytes as u64));
        }
    }

    /// Before anything is written.
    pub(super) fn look<'f>(&mut self, file: impl Fn(&Key) -> Option<&'f OwnedFd>) -> Failed {
        for (&key, content) in &mut self.0 {
            let Some(fd) = file(&key) else { continue };
            content.before = content.digest(fd).map_err(|errno| (key, errno))?;
        }
        Ok(())
    }

    /// After all was written: the files that had other bytes, and those that were shorter.
    pub(super) fn replaced<'f>(
        &self,
        root: &OwnedFd,
        file: impl Fn(&Key) -> Option<&'f OwnedFd>,
    ) -> Result<[Replaced; 2], (Key, Errno)> {
        let [mut other, mut shorter] = <[Replaced; 2]>::default();
        for (&key, content) in &self.0 {
            let Some(fd) = file(&key) else { continue };
            let stop = |errno| (key, errno);
            let stat = Stat::of(fd).map_err(stop)?;
            if content.digest(fd).map_err(stop)? != content.before {
                other.add(root, fd, &stat);
            }
            if stat.size() > content.end {
                shorter.add(root, fd, &stat);
            }
        }
        Ok([other, shorter])
    }
}

impl Replaced {
    fn add(&mut self, root: &OwnedFd, fd: &OwnedFd, stat: &Stat) {
        self.files += 1;
        if self.named.len() < NAMED_MAX {
            let inode = stat.identity().inode;
            self.named.push(Named { inode, path: path_in(root, fd) });
        }
    }
}

type Failed = Result<(), (Key, Errno)>;

impl Content {
    fn cover(&mut self, mut start: u64, end: u64) {
        let mut end = end.min(self.end);
        if start >= end {
            return;
        }
        while let Some((&other, &other_end)) = self.ranges.range(..=end).next_back()
            && other_end >= start
        {
            self.ranges.remove(&other);
            (start, end) = (start.min(other), end.max(other_end));
        }
        self.ranges.insert(start, end);
    }

    fn digest(&self, fd: &OwnedFd) -> Result<u64, Errno> {
        let mut hasher = DefaultHasher::new();
        let mut buffer = vec![0; READ_BYTES];
        for (&start, &end) in &self.ranges {
            let mut at = start;
            while at < end {
                let left =
                    usize::try_from(end - at).map_or(READ_BYTES, |left| left.min(READ_BYTES));
                match rustix::io::pread(fd, &mut buffer[..left], at) {
                    Ok(0) => break,
                    Ok(count) => {
                        hasher.write(&buffer[..count]);
                        at += count as u64;
                    }
                    Err(Errno::INTR) => {}
                    Err(errno) => return Err(errno),
                }
            }
            at.hash(&mut hasher);
        }
        Ok(hasher.finish())
    }
}

/// Where a file is, or how it is found.
pub(super) fn place(root: &OwnedFd, fd: &OwnedFd) -> Result<String, Errno> {
    let inode = Stat::of(fd)?.identity().inode;
    let dir = path_of(root).unwrap_or_default();
    Ok(match path_in(root, fd) {
        Some(path) => dir.join(path).display().to_string(),
        None => format!("the file that find {} -xdev -inum {inode} shows", dir.display()),
    })
}

/// As the kernel has it.
pub(super) fn path_of(fd: &OwnedFd) -> Option<PathBuf> {
    fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

fn path_in(root: &OwnedFd, fd: &OwnedFd) -> Option<PathBuf> {
    let path = path_of(fd)?.strip_prefix(path_of(root)?).ok()?.to_owned();
    (!path.as_os_str().is_empty()).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_joined_and_end_where_the_file_did() {
        let mut content = Content { end: 100, ranges: BTreeMap::new(), before: 0 };
        for (start, end) in [(10, 20), (30, 40), (50, 60), (20, 31), (90, 200), (100, 120)] {
            content.cover(start, end);
        }
        let ranges: Vec<_> = content.ranges.iter().map(|(&start, &end)| (start, end)).collect();
        assert_eq!(ranges, [(10, 40), (50, 60), (90, 100)]);
        content.cover(0, 95);
        assert_eq!(content.ranges, BTreeMap::from([(0, 100)]));
    }
}
