//! Whether a mount has a cache on a disk, for a program that has only a path in it.
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

const NAME: [u8; NAME_LEN_MAX + 1] = {
    let mut name = [b'?'; NAME_LEN_MAX + 1];
    let (question, mut at) = (b"nfskit: is there a cache", 0);
    while at < question.len() {
        name[at] = question[at];
        at += 1;
    }
    name
};

/// What whoever looks a name up is answered, if it is the question.
pub(crate) fn answer(name: &[u8], has_cache: bool) -> Option<Errno> {
    let answer = if has_cache { Errno::EXIST } else { Errno::NOENT };
    (name == NAME).then_some(answer)
}

/// Whether the mount of ours that a path is in has a cache on a disk. None: it does not know the
/// question, being of an older version, or the path may not be looked at.
pub fn has_cache(path: &Path) -> Option<bool> {
    let dir = if path.is_dir() { path } else { path.parent()? };
    match dir.join(OsStr::from_bytes(&NAME)).symlink_metadata().map_err(|cause| cause.kind()) {
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
        assert_eq!(answer(&NAME, true), Some(Errno::EXIST));
        assert_eq!(answer(&NAME, false), Some(Errno::NOENT));
        assert_eq!(answer(&NAME[..NAME_LEN_MAX], true), None);
        assert_eq!(answer(&[b'?'; NAME_LEN_MAX + 1], true), None);
        assert!(NAME.starts_with(b"nfskit: is there a cache??"));
    }
}
