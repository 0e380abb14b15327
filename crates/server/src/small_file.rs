//! Small files that outlive the process: whole or not there after a power failure, and their
//! owner's alone.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

/// For [`OpenOptionsExt::custom_flags`]: a link that somebody has put there is not followed.
pub const NO_LINK: i32 = OFlags::NOFOLLOW.bits().cast_signed();

/// What a file has in it, up to so many bytes; none if there is no such file.
///
/// # Errors
/// It is a link, or it cannot be read.
pub fn read(path: &Path, bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let file = match File::options().read(true).custom_flags(NO_LINK).open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    file.take(bytes_max).read_to_end(&mut bytes)?;
    Ok(Some(bytes))
}

/// Writes a file anew: under `PATH.new` until it is whole, and synced with its directory after.
///
/// # Errors
/// It cannot be made, and what was there stays; or the directory cannot be synced.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut new = path.to_owned().into_os_string();
    new.push(".new");
    let new = PathBuf::from(new);
    match fs::remove_file(&new) {
        Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&new)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    fs::rename(&new, path)?;
    sync_directory(path)
}

/// Syncs the directory that has this name in it.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    let dir = path.parent().filter(|dir| !dir.as_os_str().is_empty());
    File::open(dir.unwrap_or_else(|| Path::new(".")))?.sync_all()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_and_a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        assert_eq!(read(&path, 9).unwrap(), None);
        fs::write(dir.path().join("file.new"), "what a killed process has left").unwrap();
        for text in ["one", "another"] {
            replace(&path, text.as_bytes()).unwrap();
            assert_eq!(read(&path, 9).unwrap().unwrap(), text.as_bytes());
        }
        assert_eq!(read(&path, 3).unwrap().unwrap(), b"ano");
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 1);
        symlink(&path, dir.path().join("link")).unwrap();
        assert!(read(&dir.path().join("link"), 9).is_err());
    }
}
