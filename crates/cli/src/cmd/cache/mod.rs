//! `nfskit cache`: what mounts keep of files on a local disk. Everything but `warm` works on the
//! directory itself: whether a mount has it or not is found out, and what is to be changed is left
//! to that mount as an order.

mod below;
mod change;
mod origin;
mod pins;
mod verify;
mod warm;
mod why;

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use cache::catalog::Entry;
use cache::header::{Header, Used};
use cache::missed::Misses;
use cache::place::NoIdentity;
use cache::survey::{self, Blocks, Found, Looked};
use cache::{Catalog, FileHash, Time};
use harness::exit::Failure;
use harness::mounts::disk::unusable;
use harness::output;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use server::locked::is_locked;

use crate::args::cache::{Cache, Status};

/// Runs the command.
pub(crate) fn run(command: &Cache, verbosity: Verbosity) -> Result<(), Failure> {
    match command {
        Cache::Status(args) => status(args),
        Cache::Why(args) => why::run(args),
        Cache::Warm(args) => warm::run(&args.paths, verbosity),
        Cache::Pin(args) => pins::pin(args),
        Cache::Unpin(args) => pins::unpin(args),
        Cache::Invalidate(args) => change::invalidate(args),
        Cache::Clean(args) => change::clean(args),
        Cache::Verify(args) => verify::run(&args.dir),
    }
}

/// The exports that a directory has something of.
fn origins(dir: &Path) -> Result<Vec<Found>, Failure> {
    survey::origins(dir).map_err(unusable)
}

fn unreadable(found: &Found, cause: &std::io::Error) -> Failure {
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
fn walk(found: &Found, blocks: Blocks, look: &mut dyn FnMut(Looked)) -> Result<(), Failure> {
    found.walk(blocks, look).map_err(|cause| unreadable(found, &cause))
}

fn name(found: &Found) -> String {
    match &found.identity {
        Ok(known) => known.origin.name.clone(),
        Err(NoIdentity::Missing) => "(no identity)".to_owned(),
        Err(cause) => format!("(identity {cause})"),
    }
}

/// What is stored of a file, or of several.
#[derive(Clone, Debug, Default)]
struct Stored {
    segments: u64,
    data_bytes: u64,
    file_bytes: u64,
    fileid: u64,
    used: Used,
}

impl Stored {
    fn add(&mut self, header: &Header) {
        let Used { hits, hit_bytes, cold, damaged } = header.used;
        self.segments += 1;
        self.data_bytes += header.data_bytes();
        if !header.token.is_draft() {
            self.file_bytes = self.file_bytes.max(header.token.size);
        }
        self.fileid = header.token.fileid;
        self.used.hits += hits;
        self.used.hit_bytes += hit_bytes;
        self.used.cold += cold;
        self.used.damaged += damaged;
    }

    fn row(&self, hash: FileHash, misses: &Misses) -> [String; 8] {
        let Self { fileid, data_bytes, file_bytes, used, .. } = self;
        let [fileid, hits] = [*fileid, used.hits].map(|number| number.to_string());
        let [data, file, hit] = [*data_bytes, *file_bytes, used.hit_bytes].map(mib);
        let ratio = self.hit_ratio(misses.all());
        [hash.to_string(), fileid, data, file, hits, hit, ratio, misses.words()]
    }

    /// Of the reads of the file, or of what is there of it where nobody has counted others.
    fn hit_ratio(&self, misses: u64) -> String {
        let hits = self.used.hits;
        let all = hits.saturating_add(misses.max(self.used.cold + self.used.damaged));
        match all {
            0 => "-".to_owned(),
            all => format!("{:.1} %", 100.0 * hits as f64 / all as f64),
        }
    }
}

/// What is stored of an export.
#[derive(Default)]
struct Totals {
    disk_bytes: u64,
    all: Stored,
    unusable: u64,
    directories: u64,
    names: usize,
    files: BTreeMap<FileHash, Stored>,
}

impl Totals {
    fn of(found: &Found, tells_files_apart: bool) -> Result<Self, Failure> {
        let mut totals = Self::default();
        walk(found, Blocks::Unread, &mut |looked| totals.add(looked, tells_files_apart))?;
        Ok(totals)
    }

    fn add(&mut self, looked: Looked, tells_files_apart: bool) {
        self.disk_bytes += looked.disk_bytes;
        match (looked.header, looked.catalog) {
            (_, Some(catalog)) => {
                self.directories += 1;
                self.names += names_of(&catalog).count();
            }
            (Ok(header), None) => {
                self.all.add(&header);
                if tells_files_apart {
                    self.files.entry(looked.name.file).or_default().add(&header);
                }
            }
            (Err(_), None) => self.unusable += 1,
        }
    }

    fn row(&self, found: &Found) -> [String; 12] {
        let Self { all: Stored { segments, data_bytes, used, .. }, unusable, .. } = self;
        let is_used = found.lock().is_ok_and(|lock| is_locked(&lock));
        let by = if is_used { "a process" } else { "nobody" }.to_owned();
        let pinned = pinned(found);
        let counts = [segments + unusable, used.hits, used.cold, used.damaged + unusable];
        let [files, hits, cold, damaged] = counts.map(|count| count.to_string());
        let [disk, data, hit] = [self.disk_bytes, *data_bytes, used.hit_bytes].map(mib);
        let (directories, names) = (self.directories.to_string(), self.names.to_string());
        [name(found), by, files, disk, data, hits, hit, cold, damaged, pinned, directories, names]
    }
}

/// How many files are pinned.
fn pinned(found: &Found) -> String {
    match cache::pins::read(found.dir()) {
        Ok(pins) if pins.is_whole => pins.files.len().to_string(),
        _ => "damaged".to_owned(),
    }
}

fn status(args: &Status) -> Result<(), Failure> {
    let bytes = ["local files", "MiB on disk", "MiB of data"].map(right);
    let reads = ["hits", "hit MiB", "cold", "damaged"].map(right);
    let counts =
        bytes.into_iter().chain(reads).chain(["pinned", "directories", "names"].map(right));
    let mut table = Table::new([left("export"), left("used by")].into_iter().chain(counts));
    let mut text = String::new();
    for found in origins(&args.dir)? {
        let totals = Totals::of(&found, args.files > 0)?;
        table.row(totals.row(&found));
        text += &by_file(totals.files, &found, args.files as usize);
    }
    output::print(&format!("{}{text}", table.text()))
}

/// The files whose reads have saved most, then those of which most were not served.
fn by_file(files: BTreeMap<FileHash, Stored>, found: &Found, count: usize) -> String {
    if count == 0 {
        return String::new();
    }
    let missed = found.missed();
    let misses_of = |hash: &FileHash| missed.get(hash).copied().unwrap_or_default();
    let mut all: BTreeMap<FileHash, Stored> = missed
        .iter()
        .map(|(hash, misses)| (*hash, Stored { fileid: misses.fileid, ..Stored::default() }))
        .collect();
    all.extend(files);
    let mut files: Vec<_> = all.into_iter().collect();
    files.sort_by_key(|(hash, stored)| {
        std::cmp::Reverse((stored.used.hit_bytes, misses_of(hash).all()))
    });
    let numbers = ["fileid", "MiB of", "MiB", "hits", "hit MiB", "hit ratio"].map(right);
    let columns = [left("file")].into_iter().chain(numbers).chain([left("misses")]);
    let shown = files.iter().take(count);
    let rows = shown.map(|(hash, stored)| stored.row(*hash, &misses_of(hash)));
    format!("\n{}\n{}", name(found), Table::of(columns, rows).text())
}

/// What is known of the names of a directory, without the two that each has.
fn names_of(catalog: &Catalog) -> impl Iterator<Item = &Entry> {
    catalog.entries.iter().filter(|entry| entry.name != b"." && entry.name != b"..")
}

fn mib(bytes: u64) -> String {
    format!("{:.1}", bytes as f64 / f64::from(1 << 20))
}

/// A file as its mount tells it.
struct Seen {
    fileid: u64,
    size: u64,
    mtime: Time,
    ctime: Time,
}

fn seen(path: &Path) -> Result<Seen, Failure> {
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
fn fileids<'f>(
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
