//! Files that were saved: a folder, or one file.

use std::fs;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use super::{Allowance, Files, archive, beginning, read};

/// Files of one folder, and folders in it, at most: a report of a whole host has some thousands.
pub const ENTRIES_MAX: usize = 20_000;

/// All of an archive, unpacked.
pub(super) const BYTES_MAX: u64 = 4 << 30;

/// Enough to see what a file is.
const HEAD_LEN: u64 = 512;

/// A path as it would be if links below /proc were followed, which archives keep as such:
/// `proc/self` leads to `proc/4711`, and `proc/net` to `proc/self/net`.
pub(super) fn canonical(path: &str) -> String {
    let parts: Vec<&str> = path.split('/').collect();
    let is_number = |part: &str| !part.is_empty() && part.bytes().all(|one| one.is_ascii_digit());
    let proc = parts
        .windows(2)
        .position(|two| two[0] == "proc" && (two[1] == "self" || is_number(two[1])));
    let Some(proc) = proc else { return path.to_owned() };
    let (head, tail) = (&parts[..=proc], &parts[proc + 2..]);
    let middle: &[&str] = if tail.first() == Some(&"net") { &[] } else { &["self"] };
    [head, middle, tail].concat().join("/")
}

/// Reads a folder with what is below it, one file, or, where the path is `-`, standard input.
///
/// # Errors
/// The path itself cannot be read; what is below it and cannot is noted.
pub fn saved(path: &Path) -> io::Result<Files> {
    if path.as_os_str() == "-" {
        return one("-", fs::File::open("/dev/stdin")?);
    }
    if fs::metadata(path)?.is_dir() {
        return Folder::new(path).all();
    }
    let name = path.file_name().map_or_else(|| "-".into(), |name| name.to_string_lossy());
    one(&name, fs::File::open(path)?)
}

/// A file, which may be an archive.
fn one(name: &str, mut file: fs::File) -> io::Result<Files> {
    let mut head = Vec::new();
    file.by_ref().take(HEAD_LEN).read_to_end(&mut head)?;
    if let Some(packing) = archive::packing(&head) {
        return Ok(archive::unpacked(name, head.chain(file), packing));
    }
    let mut files = Files::default();
    match archive::other(&head) {
        Some(why) => files.note(name, why),
        // A pipe can be read once.
        None => files.put(name, beginning(head.chain(file))?),
    }
    Ok(files)
}

/// A folder that is being read.
struct Folder<'a> {
    path: &'a Path,
    files: Files,
    /// Folders below it that are still to be read.
    left: Vec<PathBuf>,
    entries: usize,
    allowance: Allowance,
}

impl<'a> Folder<'a> {
    fn new(path: &'a Path) -> Self {
        let (files, left) = (Files::default(), vec![PathBuf::new()]);
        Self { path, files, left, entries: 0, allowance: Allowance::default() }
    }

    fn all(mut self) -> io::Result<Files> {
        while let Some(folder) = self.left.pop() {
            let listed = match fs::read_dir(self.path.join(&folder)) {
                Ok(listed) => listed,
                Err(cause) if folder.as_os_str().is_empty() => return Err(cause),
                Err(cause) => {
                    self.files.note(folder.to_string_lossy(), cause.to_string());
                    continue;
                }
            };
            for entry in listed.flatten() {
                self.entries += 1;
                let inside = folder.join(entry.file_name());
                let name = canonical(&inside.to_string_lossy());
                if self.entries > ENTRIES_MAX {
                    let why = "and what follows it: there is too much in this folder";
                    self.files.note(name, why);
                    return Ok(self.files);
                }
                self.take(&entry, inside, name);
            }
        }
        Ok(self.files)
    }

    /// Links are not followed: they lead out of what was saved.
    fn take(&mut self, entry: &fs::DirEntry, inside: PathBuf, name: String) {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => self.left.push(inside),
            Ok(kind) if kind.is_file() => self.read(entry, name),
            _ => {}
        }
    }

    fn read(&mut self, entry: &fs::DirEntry, name: String) {
        let len = entry.metadata().map_or(0, |found| found.len());
        if !self.allowance.takes(&name, len) {
            return self.files.note(name, format!("{len} bytes are too many for counters"));
        }
        match read(&entry.path()) {
            Ok(text) => self.files.put_once(name, text),
            Err(cause) => self.files.note(name, cause.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_processes_are_ourselves() {
        for (path, leads_to) in [
            ("host/proc/4711/mountstats", "host/proc/self/mountstats"),
            ("proc/4711/net/rpc/nfs", "proc/net/rpc/nfs"),
            ("proc/self/net/snmp", "proc/net/snmp"),
            ("proc/self/mountinfo", "proc/self/mountinfo"),
            ("proc/fs/nfsd/threads", "proc/fs/nfsd/threads"),
            ("a/4711/b", "a/4711/b"),
        ] {
            assert_eq!(canonical(path), leads_to);
        }
    }

    #[test]
    fn a_folder_is_read_with_what_is_below_it_and_links_are_not_followed() {
        let root = tempfile::tempdir().unwrap();
        fs::create_dir_all(root.path().join("a/b")).unwrap();
        fs::write(root.path().join("a/b/c"), "text").unwrap();
        std::os::unix::fs::symlink("/etc/passwd", root.path().join("link")).unwrap();
        let files = saved(root.path()).unwrap();
        assert_eq!(files.all().collect::<Vec<_>>(), [("a/b/c", &b"text"[..])]);
        let one = saved(&root.path().join("a/b/c")).unwrap();
        assert_eq!(one.text("c"), Some(&b"text"[..]));
        assert!(saved(&root.path().join("none")).is_err());
    }

    #[test]
    fn a_pipe_is_read_once_and_whole() {
        use std::os::fd::AsRawFd as _;

        let text = "0123456789".repeat(1_000);
        let (from, mut into) = io::pipe().unwrap();
        io::Write::write_all(&mut into, text.as_bytes()).unwrap();
        drop(into);
        let fd = from.as_raw_fd().to_string();
        let files = saved(&Path::new("/dev/fd").join(&fd)).unwrap();
        assert_eq!(files.text(&fd), Some(text.as_bytes()));
    }
}
