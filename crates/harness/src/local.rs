//! A directory of this host in which a benchmark writes: whether it is one, whether there is room,
//! the run's own directory there, and what is reported when that cannot be removed.

use std::fs::DirBuilder;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use load::error::Error as LoadError;
use load::file_system::FileSystem;
use load::scratch::Scratch;
use net::clock::Clock;

use crate::exit::Failure;

/// Room that must be left besides the files: a file system needs some for its own accounts.
const SPARE_BYTES: u64 = 1 << 20;

/// The file system of what must be a directory, which was given with `option`.
pub fn directory(dir: &Path, option: &str) -> Result<FileSystem, Failure> {
    let file_system = FileSystem::of(dir).map_err(Failure::from)?;
    match dir.is_dir() {
        true => Ok(file_system),
        false => {
            let what = format!("{} is not a directory", dir.display());
            Err(Failure::environment(what, format!("a directory with {option}")))
        }
    }
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
    let path = dir.join(Scratch::name_for(tag));
    match DirBuilder::new().mode(0o700).create(&path) {
        Ok(()) => Ok(path),
        Err(cause) => Err(LoadError::Local { doing: "making a directory", path, cause }.into()),
    }
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
