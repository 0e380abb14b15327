//! Where output goes: to standard output, or to a file that has its name when it is whole.
//!
//! Until then it is `NAME.partial`: who interrupts us, or runs out of room, is not left with half a
//! file that looks whole, and what was there before stays until there is something to take its
//! place. A device, a pipe, and a file in a directory where we may make none, are written as they
//! are.

use std::fs::{self, File};
use std::io::{self, Stdout, Write, stdout};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;
use server::small_file::NO_LINK;

use crate::{replaced, stderr};

/// Standard output for `-`, or a file.
#[derive(Debug)]
pub enum Sink {
    Stdout(Stdout),
    File(Unfinished),
}

/// A file that is being written.
#[derive(Debug)]
pub struct Unfinished {
    file: File,
    /// The name it has, and the one it is to have.
    names: Option<(PathBuf, PathBuf)>,
}

impl Sink {
    pub fn create(path: &Path) -> io::Result<Self> {
        match path == Path::new("-") {
            true => Ok(Self::Stdout(stdout())),
            false => Unfinished::create(path).map(Self::File),
        }
    }

    /// The same, for who writes it and does not give it back.
    pub fn another(&self) -> io::Result<Self> {
        Ok(match self {
            Self::Stdout(_) => Self::Stdout(stdout()),
            Self::File(Unfinished { file, .. }) => {
                Self::File(Unfinished { file: file.try_clone()?, names: None })
            }
        })
    }

    /// Writes all of it. Where that fails, nothing is left: a disk that is full stays as it was.
    pub fn whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
        let mut sink = Self::create(path)?;
        let partial = match &sink {
            Self::File(Unfinished { names: Some((partial, _)), .. }) => Some(partial.clone()),
            _ => None,
        };
        sink.write_all(bytes).and_then(|()| sink.end()).inspect_err(|_| {
            partial.into_iter().for_each(|partial| drop(fs::remove_file(partial)));
        })
    }

    /// All is written: a file gets its name.
    pub fn end(self) -> io::Result<()> {
        match self {
            Self::Stdout(mut out) => out.flush(),
            Self::File(file) => file.end(),
        }
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Stdout(out) => out.write(bytes),
            Self::File(Unfinished { file, .. }) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Self::Stdout(out) => out.flush(),
            Self::File(Unfinished { file, .. }) => file.flush(),
        }
    }
}

impl Unfinished {
    fn create(path: &Path) -> io::Result<Self> {
        refuse_links_of_others(path)?;
        let found = fs::metadata(path).ok();
        if found.as_ref().is_some_and(|found| !found.is_file()) {
            return Ok(Self { file: no_file(path)?, names: None });
        }
        // What a link leads to is replaced, and the link stays.
        let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        let partial = replaced::partial(&path);
        // That of an earlier run, or a link that somebody has put there; or a user's own.
        if fs::remove_file(&partial).is_ok() {
            stderr::say(format_args!("{} was there, and is replaced", partial.display()));
        }
        let Ok(file) = File::options().write(true).create_new(true).open(&partial) else {
            let mut open = File::options();
            open.custom_flags(NO_LINK);
            let file = open.write(true).create(true).truncate(true).open(&path)?;
            return Ok(Self { file, names: None });
        };
        if let Some(found) = found {
            take_over(&file, &found)?;
        }
        Ok(Self { file, names: Some((partial, path)) })
    }

    fn end(self) -> io::Result<()> {
        let Self { file, names } = self;
        finish(&file)?;
        match names {
            Some((partial, path)) => fs::rename(partial, path),
            None => Ok(()),
        }
    }
}

/// Gives a new file the mode of the one that it replaces, without the bits of set-user-id and
/// set-group-id. Another user's mode only narrows the umask's: he could open our file to everybody.
fn take_over(file: &File, found: &fs::Metadata) -> io::Result<()> {
    let own = file.metadata()?;
    let of_found = if found.uid() == own.uid() { found.mode() } else { found.mode() & own.mode() };
    file.set_permissions(fs::Permissions::from_mode(of_found & 0o777)).ok();
    Ok(())
}

/// A new file that nobody else may read, in the place of one that is there: that one may be another
/// user's, or be open to him. A device or pipe is written to as it is.
///
/// # Errors
/// It cannot be made; what is there cannot be removed; a link of another user is there.
pub fn private(path: &Path) -> io::Result<File> {
    refuse_links_of_others(path)?;
    let path = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    match fs::symlink_metadata(&path) {
        Ok(found) if !found.is_file() => return no_file(&path),
        Ok(_) => fs::remove_file(&path)?,
        Err(_) => {}
    }
    File::options().write(true).create_new(true).mode(0o600).open(path)
}

/// A device or pipe, for writing. The system would wait for somebody who reads a pipe, past all
/// signals that are caught: without a reader it is refused.
pub(crate) fn no_file(path: &Path) -> io::Result<File> {
    let mut open = File::options();
    open.write(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let file = open.open(path).map_err(|cause| match Errno::from_io_error(&cause) {
        Some(Errno::NXIO) => io::Error::new(io::ErrorKind::BrokenPipe, "nobody reads this pipe"),
        _ => cause,
    })?;
    rustix::fs::fcntl_setfl(&file, OFlags::empty())?;
    Ok(file)
}

/// Whoever may write to a folder, as everybody to `/tmp`, can put a link there that leads to a file
/// of ours.
pub(crate) fn refuse_links_of_others(path: &Path) -> io::Result<()> {
    let us = rustix::process::geteuid().as_raw();
    match fs::symlink_metadata(path) {
        Ok(link) if link.is_symlink() && ![us, 0].contains(&link.uid()) => {
            let whose = format!("it is a symbolic link of another user (uid {})", link.uid());
            Err(io::Error::new(io::ErrorKind::PermissionDenied, whose))
        }
        _ => Ok(()),
    }
}

/// That there is no room for a file, or that its server is gone, some file systems say only at the
/// end, and nobody hears what close(2) says.
fn finish(file: &File) -> io::Result<()> {
    match file.metadata()?.is_file() {
        true => file.sync_data(),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<String> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_has_its_name_when_it_is_whole_and_what_was_there_stays_until_then() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.csv");
        for text in ["first", "second"] {
            let before = fs::read_to_string(&path).ok();
            let mut sink = Sink::create(&path).unwrap();
            sink.write_all(text.as_bytes()).unwrap();
            assert_eq!(fs::read_to_string(&path).ok(), before);
            assert_eq!(fs::read_to_string(folder.path().join("f.csv.partial")).unwrap(), text);
            sink.end().unwrap();
            assert_eq!(fs::read_to_string(&path).unwrap(), text);
            assert_eq!(names(folder.path()), ["f.csv"]);
        }
        // Interrupted: it says that it is not whole, and the next run begins anew.
        Sink::create(&path).unwrap().write_all(b"half").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "second");
        assert_eq!(names(folder.path()), ["f.csv", "f.csv.partial"]);
        Sink::create(&path).unwrap().end().unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        assert_eq!(names(folder.path()), ["f.csv"]);
    }

    #[test]
    fn a_private_file_is_a_new_one_that_nobody_has_open() {
        let folder = tempfile::tempdir().unwrap();
        let (path, link) = (folder.path().join("link.pcap"), folder.path().join("by"));
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o666)).unwrap();
        symlink(&path, &link).unwrap();
        let mut open = File::open(&path).unwrap();
        for by in [&path, &link] {
            private(by).unwrap().write_all(b"bytes of others").unwrap();
            let found = fs::symlink_metadata(&path).unwrap();
            assert_eq!((found.mode() & 0o777, found.len()), (0o600, 15));
            assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        }
        assert_eq!(io::read_to_string(&mut open).unwrap(), "old");
        private(&folder.path().join("new")).unwrap();
        private(Path::new("/dev/null")).unwrap().write_all(b"away").unwrap();
    }

    #[test]
    fn a_link_stays_one_permissions_stay_and_a_device_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        let mut sink = Sink::create(&link).unwrap();
        sink.write_all(b"new").unwrap();
        sink.end().unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);

        // What somebody has put in the way is not followed.
        let precious = folder.path().join("precious");
        fs::write(&precious, "kept").unwrap();
        symlink(&precious, folder.path().join("file.partial")).unwrap();
        Sink::create(&file).unwrap().end().unwrap();
        assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");

        if rustix::process::geteuid().is_root() {
            let link = folder.path().join("link of another");
            symlink(&precious, &link).unwrap();
            std::os::unix::fs::lchown(&link, Some(65_534), Some(65_534)).unwrap();
            let refused = Sink::create(&link).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::PermissionDenied);
            assert_eq!(fs::read_to_string(&precious).unwrap(), "kept");
        } else {
            eprintln!("NOT TESTED: a link of another user: only root can make one");
        }

        let mut sink = Sink::create(Path::new("/dev/null")).unwrap();
        sink.write_all(b"gone").unwrap();
        sink.end().unwrap();
        assert!(!Path::new("/dev/null.partial").exists());
        assert!(Sink::create(folder.path()).is_err());
    }

    #[test]
    fn a_file_of_another_user_does_not_decide_who_may_write_ours() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f.json");
        let mode = |mode: u32, owner: Option<u32>| {
            File::create(&path).unwrap();
            if std::os::unix::fs::chown(&path, owner, owner).is_err() {
                return None;
            }
            fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
            Sink::whole(&path, b"text").unwrap();
            let found = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            fs::remove_file(&path).unwrap();
            Some(found)
        };
        assert_eq!([0o6777, 0o600].map(|of| mode(of, None)), [Some(0o777), Some(0o600)]);
        let Some(open) = mode(0o6777, Some(65_534)) else {
            return println!("SKIPPED: files of another user need root");
        };
        // The umask of the tests is not theirs to know.
        File::create(&path).unwrap();
        let own = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
        assert_eq!((open, mode(0o600, Some(65_534))), (own, Some(own & 0o600)));
    }
}
