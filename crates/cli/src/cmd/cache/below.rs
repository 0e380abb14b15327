//! What lies below the paths that a command names.

use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use harness::exit::Failure;
use perf::printable::printable;

/// Folders below each other; what lies deeper is left.
pub(super) const DEPTH_MAX: usize = 200;

/// The paths, and what is below them. Symbolic links are left where they lead: it may be another
/// file system.
///
/// # Errors
/// A directory cannot be read.
pub(super) fn all(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let (found, failed) = readable(paths);
    failed.map_or(Ok(found), |(path, cause)| {
        let what = format!("{}: {cause}", printable(path.as_os_str().as_bytes()));
        Err(Failure::environment(what, "as a user who may read all below the paths"))
    })
}

/// The same, as far as it can be read; and the last directory that cannot.
pub(super) fn readable(paths: &[PathBuf]) -> (Vec<PathBuf>, Option<(PathBuf, io::Error)>) {
    let (mut found, mut failed) = (Vec::new(), None);
    paths.iter().for_each(|path| add(path, DEPTH_MAX, &mut found, &mut failed));
    (found, failed)
}

/// The same, without the directories.
///
/// # Errors
/// As [`all`].
pub(super) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut all = all(paths)?;
    all.retain(|path| !is_dir(path));
    Ok(all)
}

/// What is in a directory, by name.
pub(super) fn of(dir: &Path) -> io::Result<Vec<PathBuf>> {
    let mut below: Vec<_> = std::fs::read_dir(dir)?.flatten().map(|entry| entry.path()).collect();
    below.sort_unstable();
    Ok(below)
}

fn add(
    path: &Path,
    depth: usize,
    found: &mut Vec<PathBuf>,
    failed: &mut Option<(PathBuf, io::Error)>,
) {
    found.push(path.to_owned());
    if depth == 0 || !is_dir(path) {
        return;
    }
    match of(path) {
        Ok(below) => below.iter().for_each(|path| add(path, depth - 1, found, failed)),
        Err(cause) => *failed = Some((path.to_owned(), cause)),
    }
}

fn is_dir(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_dir())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_directory_is_all_that_is_below_it() {
        let base = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(base.path().join("a/b")).unwrap();
        std::fs::write(base.path().join("a/b/file"), "").unwrap();
        std::os::unix::fs::symlink("/", base.path().join("a/link")).unwrap();
        let paths = [base.path().join("a")];
        let names = |found: Vec<PathBuf>| -> Vec<String> {
            let name =
                |path: &PathBuf| path.strip_prefix(base.path()).unwrap().display().to_string();
            found.iter().map(name).collect()
        };
        assert_eq!(names(all(&paths).unwrap()), ["a", "a/b", "a/b/file", "a/link"]);
        assert_eq!(names(files(&paths).unwrap()), ["a/b/file", "a/link"]);
    }
}
