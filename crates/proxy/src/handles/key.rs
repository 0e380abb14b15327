//! The key of the seals: random, and in the state directory for the next life.

use std::fs::DirBuilder;
use std::io::{self, ErrorKind};
use std::os::unix::fs::DirBuilderExt;
use std::path::Path;

use rustix::rand::{GetRandomFlags, getrandom};
use server::small_file;

use super::HandlesError;

const NAME: &str = "proxy-key";
const KEY_BYTES: usize = 16;

/// The key that lies in the directory, or a new one.
pub(super) fn find(state: Option<&Path>) -> Result<[u8; KEY_BYTES], HandlesError> {
    let Some(dir) = state else {
        return random().map_err(|error| HandlesError::Key { path: "random".to_owned(), error });
    };
    let path = dir.join(NAME);
    let found = read(&path).and_then(|found| match found {
        Some(key) => Ok(key),
        None => make(dir, &path),
    });
    found.map_err(|error| of_file(&path, error))
}

/// The key that lies in the directory, if there is one.
pub(super) fn stored(dir: &Path) -> Result<Option<[u8; KEY_BYTES]>, HandlesError> {
    let path = dir.join(NAME);
    read(&path).map_err(|error| of_file(&path, error))
}

fn of_file(path: &Path, error: io::Error) -> HandlesError {
    HandlesError::Key { path: path.display().to_string(), error }
}

fn read(path: &Path) -> io::Result<Option<[u8; KEY_BYTES]>> {
    let wrong = |key: Vec<u8>| {
        let what = format!("it has {} bytes and not {KEY_BYTES}: remove it", key.len());
        io::Error::new(ErrorKind::InvalidData, what)
    };
    let found = small_file::read(path, KEY_BYTES as u64 + 1)?;
    found.map(|key| <[u8; KEY_BYTES]>::try_from(key).map_err(wrong)).transpose()
}

/// A new one, which is whole or not there after a power failure.
fn make(dir: &Path, path: &Path) -> io::Result<[u8; KEY_BYTES]> {
    DirBuilder::new().recursive(true).mode(0o700).create(dir)?;
    let key = random()?;
    small_file::replace(path, &key)?;
    Ok(key)
}

fn random() -> io::Result<[u8; KEY_BYTES]> {
    let mut key = [0; KEY_BYTES];
    match getrandom(&mut key[..], GetRandomFlags::empty())? {
        KEY_BYTES => Ok(key),
        _ => Err(io::Error::other("the system has no random bytes")),
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::{PermissionsExt, symlink};

    use super::*;

    #[test]
    fn a_key_is_made_once_and_nobody_else_may_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let state = dir.path().join("state");
        let key = find(Some(&state)).unwrap();
        assert_eq!(find(Some(&state)).unwrap(), key);
        let mode = fs::metadata(state.join(NAME)).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        assert_ne!(find(None).unwrap(), key);
    }

    #[test]
    fn what_is_no_key_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for wrong in [&b""[..], b"short", &[1; 17]] {
            fs::write(dir.path().join(NAME), wrong).unwrap();
            let error = find(Some(dir.path())).unwrap_err().to_string();
            assert!(error.contains("proxy-key: it has"), "{error}");
        }
        fs::remove_file(dir.path().join(NAME)).unwrap();
        fs::write(dir.path().join("mine"), [1; 16]).unwrap();
        symlink(dir.path().join("mine"), dir.path().join(NAME)).unwrap();
        assert!(find(Some(dir.path())).is_err(), "a link is not followed");
    }
}
