//! Which directory of the origin a proxy's log has changes of: `LOG.root`.
//!
//! ```text
//!   fsid NUMBER
//!   fileid NUMBER
//!   handle HEX          as clients of the proxy have it
//! ```
//!
//! The origin may export another directory under that name by now: a disk is not mounted there yet.
//! Its files would be taken for removed, and what clients have written to them would become copies
//! in the wrong place.
//!
//! A server may have another fsid after each boot, or several handles of one directory, and two
//! file systems may have the same handle (`fsid=` in exports(5)). So it is another directory if its
//! fileid differs, or both others do. Who knows better removes the file.

use std::path::Path;

use perf::words::counted;
use proxy::Remote;
use server::small_file;
use server::store::Store;
use wire::show::Hex;

use crate::exit::Failure;
use crate::write_back::{beside, read_beside};

const BYTES_MAX: u64 = 512;

/// What the origin exports.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) struct Root {
    fsid: u64,
    fileid: u64,
    handle: String,
}

impl Root {
    pub(crate) fn of(remote: &Remote) -> Self {
        let (fsid, fileid) = remote.root_identity();
        Self { fsid, fileid, handle: Hex(remote.root().as_bytes()).to_string() }
    }

    fn text(&self) -> String {
        let Self { fsid, fileid, handle } = self;
        format!("fsid {fsid}\nfileid {fileid}\nhandle {handle}\n")
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let (fsid, fileid) = (value("fsid")?.parse().ok()?, value("fileid")?.parse().ok()?);
        Some(Self { fsid, fileid, handle: value("handle")?.to_owned() })
    }

    fn is(&self, now: &Self) -> bool {
        self.fileid == now.fileid && (self.fsid == now.fsid || self.handle == now.handle)
    }
}

/// As long as the log holds anything, it is to be the same one each time. A version before has
/// recorded none.
pub(crate) fn check(log: &Path, root: &Root, changes: usize) -> Result<(), Failure> {
    let path = beside(log, ".root");
    let bytes = read_beside(&path, BYTES_MAX)?.filter(|_| changes > 0);
    let Some(bytes) = bytes else { return Ok(()) };
    let before = Root::parse(&String::from_utf8_lossy(&bytes));
    if before.is_some_and(|before| before.is(root)) {
        return Ok(());
    }
    let what = format!(
        "the log {} holds {} of files in another directory than what the origin exports now, by \
         {}",
        log.display(),
        counted(changes, "change"),
        path.display()
    );
    let advice = format!(
        "mount at the origin what is to be there; or remove {}, if these changes are for what is \
         there now",
        path.display()
    );
    Err(Failure::environment(what, advice))
}

pub(crate) fn remember(log: &Path, root: &Root) -> std::io::Result<()> {
    small_file::replace(&beside(log, ".root"), root.text().as_bytes())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_log_that_holds_changes_is_for_the_directory_that_it_was_for_alone() {
        let dir = tempfile::tempdir().expect("there is room");
        let log = dir.path().join("log");
        let root = Root { fsid: 7, fileid: 2, handle: "4f00ab".to_owned() };
        assert!(check(&log, &root, 1).is_ok(), "it was of a version before");
        remember(&log, &root).expect("there is room");
        assert!(check(&log, &root, 1).is_ok());
        let booted = Root { fsid: 8, ..root.clone() };
        let mounted_otherwise = Root { handle: "4f00cd".to_owned(), ..root };
        assert!(check(&log, &booted, 1).is_ok(), "its handle is the same");
        assert!(check(&log, &mounted_otherwise, 1).is_ok(), "it has two");
        let beneath = Root { fileid: 131_073, ..root.clone() };
        let other = Root { fsid: 8, ..mounted_otherwise };
        for another in [beneath, other] {
            let failed = check(&log, &another, 2).expect_err("it is another one");
            assert!(failed.what().contains("2 changes of files in another directory"));
            assert!(failed.advice().contains(".root"), "{}", failed.advice());
            assert!(check(&log, &another, 0).is_ok(), "it holds nothing");
        }
        fs::write(beside(&log, ".root"), "fsid 7\n").expect("there is room");
        check(&log, &root, 1).expect_err("it says nothing");
        fs::remove_file(beside(&log, ".root")).expect("it is there");
        assert!(check(&log, &root, 1).is_ok());
    }
}
