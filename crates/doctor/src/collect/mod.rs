//! Files of a host, by their paths below its root.
//!
//! What is read of a live host is a list of paths, so that nothing else is: no mount is asked
//! ([`live`] never names a path below one), and a server that does not answer holds up nothing.

mod saved;

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

pub use saved::{ENTRIES_MAX, saved};

/// Bytes of one file that are read; of a longer one, its beginning.
pub const FILE_BYTES_MAX: u64 = 16 << 20;

/// Texts by their paths below a root, and what was left out.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Files {
    texts: BTreeMap<String, Vec<u8>>,
    pub notes: Vec<Note>,
}

/// Something that was passed over, and why.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub struct Note {
    pub path: String,
    pub why: String,
}

impl Files {
    pub fn put(&mut self, path: impl Into<String>, text: impl Into<Vec<u8>>) {
        self.texts.insert(path.into(), text.into());
    }

    pub fn text(&self, path: &str) -> Option<&[u8]> {
        self.texts.get(path).map(Vec::as_slice)
    }

    /// All of them, in the order of their paths.
    pub fn all(&self) -> impl Iterator<Item = (&str, &[u8])> {
        self.texts.iter().map(|(path, text)| (path.as_str(), text.as_slice()))
    }

    pub fn is_empty(&self) -> bool {
        self.texts.is_empty()
    }

    pub fn note(&mut self, path: impl Into<String>, why: impl Into<String>) {
        self.notes.push(Note { path: path.into(), why: why.into() });
    }

    /// The same files in a folder of this name.
    #[must_use]
    pub fn below(self, folder: &str) -> Self {
        let inside = |(path, text): (String, Vec<u8>)| (format!("{folder}/{path}"), text);
        Self { texts: self.texts.into_iter().map(inside).collect(), notes: self.notes }
    }

    pub fn join(&mut self, other: Self) {
        self.texts.extend(other.texts);
        self.notes.extend(other.notes);
    }
}

/// What counts: read twice, for rates.
pub const COUNTERS: [&str; 20] = [
    "proc/uptime",
    "proc/self/mountstats",
    "proc/net/rpc/nfs",
    "proc/net/rpc/nfsd",
    "proc/fs/nfsd/pool_stats",
    "proc/fs/nfsd/threads",
    "proc/net/snmp",
    "proc/net/snmp6",
    "proc/net/netstat",
    "proc/net/dev",
    "proc/net/softnet_stat",
    "proc/net/sockstat",
    "proc/meminfo",
    "proc/vmstat",
    "proc/diskstats",
    "proc/stat",
    "proc/loadavg",
    "proc/pressure/cpu",
    "proc/pressure/io",
    "proc/pressure/memory",
];

/// The files of a live host that are on a list; what is not there is no part of it, and what may
/// not be read is noted.
pub fn live(root: &Path, paths: &[&str]) -> Files {
    let mut files = Files::default();
    for path in paths {
        match read(&root.join(path)) {
            Ok(text) => files.put(*path, text),
            Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
            Err(cause) => files.note(*path, cause.to_string()),
        }
    }
    files
}

/// The beginning of a file.
fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut text = Vec::new();
    File::open(path)?.take(FILE_BYTES_MAX).read_to_end(&mut text)?;
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_there_is_left_out_and_what_may_not_be_read_is_told() {
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("proc/uptime")).unwrap();
        std::fs::write(root.path().join("proc/stat"), "cpu 1\n").unwrap();
        let files = live(root.path(), &COUNTERS);
        assert_eq!(files.text("proc/stat"), Some(&b"cpu 1\n"[..]));
        assert_eq!(files.all().count(), 1);
        assert_eq!(files.notes.len(), 1);
        assert_eq!(files.notes[0].path, "proc/uptime");
        assert_eq!(files.below("1").text("1/proc/stat"), Some(&b"cpu 1\n"[..]));
    }
}
