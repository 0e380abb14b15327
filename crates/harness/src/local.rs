//! A directory of this host in which a benchmark writes: whether it is one, whether there is room,
//! and what is told when it cannot be cleared.

use std::path::Path;

use load::place::FileSystem;

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

/// What a run ends with whose directory is still there, because of `cause`.
pub fn left<T>(dir: &Path, cause: &str, outcome: Result<T, Failure>) -> Failure {
    let left = format!("the scratch directory {} could not be removed: {cause}", dir.display());
    match outcome {
        Ok(_) => Failure::environment(left, "remove it; the system's log may say more"),
        Err(failure) => failure.and(left),
    }
}
