//! A directory of this host in which a benchmark writes: whether it is one, and root's alone where
//! root measures; whether there is room, the run's own directory there, and what is reported when
//! that cannot be removed.

use std::fs::{DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

use load::error::Error as LoadError;
use load::file_system::FileSystem;
use load::scratch::Scratch;
use net::clock::Clock;
use tempfile::TempDir;

use crate::exit::Failure;
use crate::hints;
use crate::replaceable::replaceable;

/// Room that must be left besides the files: a file system needs some for its own accounts.
const SPARE_BYTES: u64 = 1 << 20;

/// The file system of what must be a directory, which was given with `option`.
pub fn directory(dir: &Path, option: &str) -> Result<FileSystem, Failure> {
    let file_system = FileSystem::of(dir).map_err(Failure::from)?;
    match dir.is_dir() {
        true => is_fit_for_root(dir).map(|()| file_system),
        false => {
            let what = format!("{} is not a directory", dir.display());
            Err(Failure::environment(what, format!("a directory with {option}")))
        }
    }
}

/// Files are made, written and run there by their paths. Where root measures, nobody else may lead
/// such a path to another file.
pub fn is_fit_for_root(dir: &Path) -> Result<(), Failure> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let failed = |cause| {
        let (doing, path) = ("looking at a directory", dir.to_owned());
        Failure::from(LoadError::Local { doing, path, cause })
    };
    let Some(changed) = replaceable(dir, 0).map_err(failed)? else { return Ok(()) };
    let what = format!(
        "{}: root does not measure where others can put their own files in the place of its own: \
         {changed}",
        dir.display()
    );
    let user = match changed.owner {
        0 => "as a user".to_owned(),
        owner => format!("as that user (sudo -u '#{owner}' nfskit ...)"),
    };
    Err(Failure::environment(what, format!("{user}, or in a directory that root alone can change")))
}

/// Whether `needed` bytes and a little more have room where `free` bytes are; there or on a server.
pub fn room(place: &str, needed: u64, free: u64, advice: &str) -> Result<(), Failure> {
    let needed = needed.saturating_add(SPARE_BYTES);
    if free >= needed {
        return Ok(());
    }
    let what = format!("{place}: {needed} bytes are needed there, and {free} are free");
    Err(Failure::environment(what, advice))
}

/// Makes a directory of the run's own in `dir`, closed to everybody else.
pub fn scratch(dir: &Path, tag: &str) -> Result<PathBuf, Failure> {
    is_fit_for_root(dir)?;
    let path = dir.join(Scratch::name_for(tag));
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => Ok(path),
        Err(cause) => Err(LoadError::Local { doing: "making a directory", path, cause }.into()),
    }
}

/// A directory for the time of a run, in `parent` or among the temporary ones, closed to everybody
/// else. `advice` is for where none can be made.
pub fn private(parent: Option<&Path>, advice: &str) -> Result<TempDir, Failure> {
    parent.map_or(Ok(()), is_fit_for_root)?;
    let mut builder = tempfile::Builder::new();
    builder.prefix("nfskit-").permissions(Permissions::from_mode(0o700));
    let made = match parent {
        Some(parent) => builder.tempdir_in(parent),
        None => builder.tempdir(),
    };
    made.map_err(|cause| {
        let advice = match parent {
            Some(_) => hints::writing(&cause),
            None => advice,
        };
        Failure::environment(format!("cannot make a directory: {cause}"), advice)
    })
}

/// A part of a name that no other run has.
pub fn tag(clock: &Clock) -> String {
    format!("{:x}-{}", clock.since_1970().as_nanos(), std::process::id())
}

/// What a run ends with whose directory is still there, because of `cause`.
pub fn left<T>(dir: &Path, cause: &str, outcome: Result<T, Failure>) -> Failure {
    let left = format!("the scratch directory {} could not be removed: {cause}", dir.display());
    match outcome {
        Ok(_) => Failure::environment(left, "remove it; the system's log may say more"),
        Err(failure) => failure.and(left),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn root_does_not_measure_where_another_user_can_put_his_files() {
        if !rustix::process::geteuid().is_root() {
            return println!("NOT TESTED: only root gives a directory to another user");
        }
        let base = tempfile::tempdir().unwrap();
        let dir = base.path().join("users");
        std::fs::create_dir(&dir).unwrap();
        directory(&dir, "--dir").unwrap();
        std::fs::remove_dir(scratch(&dir, "own").unwrap()).unwrap();
        std::os::unix::fs::chown(&dir, Some(27001), None).unwrap();
        let refused = [directory(&dir, "--dir").map(drop), scratch(&dir, "tag").map(drop)];
        for failure in refused.map(Result::unwrap_err) {
            assert!(failure.what().contains("belongs to uid 27001"), "{failure:?}");
            assert!(failure.advice().contains("sudo -u '#27001'"), "{failure:?}");
        }
        assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 0);
    }
}
