//! Whether a mount has a cache on a disk, which one, and whether that has all of a file, for a
//! program that has only a path in it.
//!
//! An extended attribute would be the usual way, and is too dear: the kernel looks for those of a
//! file system that has any with each write and each listing. So it is the look-up of a name that
//! no file has: longer than any of Linux, and short enough for kernels to pass it on (1,024 bytes).
//! The errors tell.

use std::ffi::OsStr;
use std::io::ErrorKind;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;

use crate::fs::names::NAME_LEN_MAX;

type Question = [u8; NAME_LEN_MAX + 1];

const HAS_CACHE: Question = question(b"nfskit: is there a cache");

/// What names the cache's folder follows.
const IS_CACHE: Question = question(b"nfskit: is the cache this one");

/// The name of the file follows.
const HAS_ALL: Question = question(b"nfskit: does the cache have all of");

const fn question(words: &[u8]) -> Question {
    let (mut name, mut at) = ([b'?'; NAME_LEN_MAX + 1], 0);
    while at < words.len() {
        name[at] = words[at];
        at += 1;
    }
    name
}

/// What whoever looks a name up is answered, if it is a question about the cache. `folder` says
/// what names the cache's folder.
pub(crate) fn answer(
    name: &[u8],
    has_cache: bool,
    folder: impl FnOnce() -> Option<String>,
) -> Option<Errno> {
    if name == HAS_CACHE {
        return Some(verdict(has_cache));
    }
    let other = name.strip_prefix(&IS_CACHE)?;
    Some(verdict(folder().is_some_and(|folder| folder.as_bytes() == other)))
}

/// The file of the directory whose presence in the cache is the question.
pub(crate) fn about(name: &[u8]) -> Option<&[u8]> {
    name.strip_prefix(&HAS_ALL).filter(|file| !file.is_empty())
}

pub(crate) fn verdict(is_so: bool) -> Errno {
    if is_so { Errno::EXIST } else { Errno::NOENT }
}

/// Whether the mount of ours that a path is in has a cache on a disk. None: it does not know the
/// question, being of an older version, or the path may not be looked at.
pub fn has_cache(path: &Path) -> Option<bool> {
    let dir = if path.is_dir() { path } else { path.parent()? };
    ask(dir, &HAS_CACHE)
}

/// Whether the cache of the mount of ours that a path is in has this folder. None as for
/// [`has_cache`].
pub fn is_cache(path: &Path, folder: &str) -> Option<bool> {
    let dir = if path.is_dir() { path } else { path.parent()? };
    ask(dir, &[&IS_CACHE, folder.as_bytes()].concat())
}

/// Whether the cache of the mount has all of a file, in the state in which it is now. None: it does
/// not know.
pub fn has_all(path: &Path) -> Option<bool> {
    let question = [&HAS_ALL, path.file_name()?.as_bytes()].concat();
    ask(path.parent()?, &question)
}

fn ask(dir: &Path, question: &[u8]) -> Option<bool> {
    match dir.join(OsStr::from_bytes(question)).symlink_metadata().map_err(|cause| cause.kind()) {
        Err(ErrorKind::AlreadyExists) => Some(true),
        Err(ErrorKind::NotFound) => Some(false),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_name_of_a_file_is_the_question() {
        let answer = |name: &[u8], has_cache| answer(name, has_cache, || Some("1-a".to_owned()));
        assert_eq!(answer(&HAS_CACHE, true), Some(Errno::EXIST));
        assert_eq!(answer(&HAS_CACHE, false), Some(Errno::NOENT));
        assert_eq!(answer(&HAS_CACHE[..NAME_LEN_MAX], true), None);
        assert_eq!(answer(&[b'?'; NAME_LEN_MAX + 1], true), None);
        let is_cache = |folder: &[u8]| answer(&[&IS_CACHE, folder].concat(), true);
        assert_eq!([is_cache(b"1-a"), is_cache(b"1-b")], [Some(Errno::EXIST), Some(Errno::NOENT)]);
        assert!(HAS_CACHE.starts_with(b"nfskit: is there a cache??"));
        assert_eq!(about(&[&HAS_ALL[..], b"f"].concat()), Some(&b"f"[..]));
        assert_eq!((about(&HAS_ALL), about(&HAS_CACHE), about(b"f")), (None, None, None));
    }
}
