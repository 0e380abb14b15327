//! The exports that a cache has something of, and the files of theirs that paths name.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cache::catalog::Entry;
use cache::place::NoIdentity;
use cache::survey::{self, Blocks, Found, Looked};
use cache::{Catalog, Time};
use harness::exit::Failure;
use harness::mounts::disk::unusable;

use super::origin;

/// The exports that a directory has something of.
pub(super) fn origins(dir: &Path) -> Result<Vec<Found>, Failure> {
    survey::origins(dir).map_err(unusable)
}

pub(super) fn unreadable(found: &Found, cause: &std::io::Error) -> Failure {
    let what = format!("{}: {cause}", found.path.display());
    let advice = match cause.kind() {
        ErrorKind::PermissionDenied => "as the user whose cache it is",
        ErrorKind::ReadOnlyFilesystem => "mount its file system so that it can be written to",
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "remove something there",
        _ => "look at the disk that it is on",
    };
    Failure::environment(what, advice)
}

/// Looks at all that is stored of an export, and at these of its blocks.
pub(super) fn walk(
    found: &Found,
    blocks: Blocks,
    look: &mut dyn FnMut(Looked),
) -> Result<(), Failure> {
    found.walk(blocks, look).map_err(|cause| unreadable(found, &cause))
}

pub(super) fn name(found: &Found) -> String {
    match &found.identity {
        Ok(known) => known.origin.name.clone(),
        Err(NoIdentity::Missing) => "(no identity)".to_owned(),
        Err(cause) => format!("(identity {cause})"),
    }
}

/// What is known of the names of a directory, without the two that each has.
pub(super) fn names_of(catalog: &Catalog) -> impl Iterator<Item = &Entry> {
    catalog.entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..")
}

pub(super) fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// A file as its mount tells it.
pub(super) struct Seen {
    pub(super) fileid: u64,
    pub(super) size: u64,
    pub(super) mtime: Time,
    pub(super) ctime: Time,
}

pub(super) fn seen(path: &Path) -> Result<Seen, Failure> {
    let file = std::fs::symlink_metadata(path).map_err(|cause| {
        Failure::environment(format!("{}: {cause}", path.display()), "a file of the mount")
    })?;
    let time = |seconds, nanos: i64| Time { seconds, nanos: u32::try_from(nanos).unwrap_or(0) };
    Ok(Seen {
        fileid: file.ino(),
        size: file.size(),
        mtime: time(file.mtime(), file.mtime_nsec()),
        ctime: time(file.ctime(), file.ctime_nsec()),
    })
}

/// The fileids of the files that these paths name, by the folders of their exports.
pub(super) fn fileids<'f>(
    all: &'f [Found],
    paths: &[PathBuf],
) -> Result<BTreeMap<&'f str, BTreeSet<u64>>, Failure> {
    let mut wanted: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for path in paths {
        let exports = origin::of_path(all, path)?;
        let fileid = seen(path)?.fileid;
        for found in exports {
            wanted.entry(&found.folder).or_default().insert(fileid);
        }
    }
    Ok(wanted)
}
