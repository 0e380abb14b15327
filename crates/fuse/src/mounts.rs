//! What is mounted where: /proc/self/mountinfo (proc_pid_mountinfo(5)). Asking it costs the file
//! system itself nothing, which stat(2) would.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use perf::words::unescaped;

/// Something that is mounted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Entry {
    /// The number of the mount, which no other has while it is mounted.
    pub id: String,
    /// `major:minor`, as in /sys/class/bdi.
    pub device: String,
    pub at: PathBuf,
    /// The type, such as `ext4` or `fuse.nfskit`.
    pub kind: String,
    pub source: String,
}

/// What is mounted exactly there, the topmost.
///
/// # Errors
/// /proc cannot be read.
pub(crate) fn at(dir: &Path) -> io::Result<Option<Entry>> {
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(parse(&text).filter(|entry| entry.at == dir).last())
}

/// The topmost of a type that is mounted exactly there, whatever is above it.
///
/// # Errors
/// /proc cannot be read.
pub(crate) fn of_type(dir: &Path, kind: &str) -> io::Result<Option<Entry>> {
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(parse(&text).filter(|entry| entry.at == dir && entry.kind == kind).last())
}

/// Whether it is still mounted, be there others above it.
pub(crate) fn is_there(entry: &Entry) -> bool {
    let text = fs::read("/proc/self/mountinfo").unwrap_or_default();
    parse(&text).any(|there| there == *entry)
}

/// What is mounted of the file system that a path is in.
///
/// # Errors
/// It is not there, or may not be looked at; /proc cannot be read.
pub fn of(path: &Path) -> io::Result<Option<Entry>> {
    let device = rustix::fs::lstat(path)?.st_dev;
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let text = fs::read("/proc/self/mountinfo")?;
    Ok(parse(&text).find(|entry| entry.device == format!("{major}:{minor}")))
}

fn parse(text: &[u8]) -> impl Iterator<Item = Entry> {
    text.split(|&byte| byte == b'\n').filter_map(|line| {
        let mut words = line.split(|&byte| byte == b' ');
        let id = words.next()?;
        let device = words.nth(1)?;
        let at = words.nth(1)?;
        // Optional fields end with a dash.
        words.find(|word| word == b"-")?;
        let (kind, source) = (words.next()?, words.next()?);
        let text = |word: &[u8]| String::from_utf8_lossy(&unescaped(word)).into_owned();
        Some(Entry {
            id: text(id),
            device: text(device),
            at: PathBuf::from(OsString::from_vec(unescaped(at))),
            kind: text(kind),
            source: text(source),
        })
    })
}

/// A path as it stands in the kernel's tables: absolute, without links.
///
/// # Errors
/// It is not there, or may not be looked at.
pub(crate) fn canonical(dir: &Path) -> io::Result<PathBuf> {
    // A mount whose server is gone cannot be looked at; its directory can.
    match fs::canonicalize(dir) {
        Ok(path) => Ok(path),
        Err(error) => match (dir.parent(), dir.file_name()) {
            (Some(parent), Some(name)) if error.kind() == io::ErrorKind::NotConnected => {
                let here = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
                Ok(fs::canonicalize(here)?.join(name))
            }
            _ => Err(error),
        },
    }
}

/// A path in the words of a message.
pub(crate) fn c_string(path: &Path) -> io::Result<std::ffi::CString> {
    std::ffi::CString::new(path.as_os_str().as_bytes()).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_an_entry_whatever_stands_between() {
        let text = b"36 35 98:0 /mnt1 /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw\n\
            37 35 0:52 / /x rw - fuse.nfskit nfs://h/\\134 rw,user_id=0\n\
            broken line\n";
        let entries: Vec<Entry> = parse(text).collect();
        assert_eq!(entries.len(), 2);
        assert_eq!((entries[0].id.as_str(), &*entries[0].at), ("36", Path::new("/mnt/a b")));
        assert_eq!((entries[1].device.as_str(), entries[1].kind.as_str()), ("0:52", "fuse.nfskit"));
        assert_eq!(entries[1].source, "nfs://h/\\");
    }

    #[test]
    fn the_root_is_mounted() {
        assert!(at(Path::new("/proc")).unwrap().is_some_and(|entry| entry.kind == "proc"));
        assert_eq!(at(Path::new("/proc/self")).unwrap(), None);
        let of_stat = of(Path::new("/proc/self/stat")).unwrap();
        assert!(of_stat.is_some_and(|entry| entry.kind == "proc"));
    }
}
