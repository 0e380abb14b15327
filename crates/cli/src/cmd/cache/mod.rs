//! `nfskit cache`: what mounts keep of files on a local disk. Everything but `warm` works on the
//! directory itself: whether a mount has it or not is found out, and what is to be changed is left
//! to that mount as an order.

mod below;
mod change;
mod origin;
mod warm;

use std::collections::BTreeMap;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use cache::header::{Header, Used};
use cache::missed::Misses;
use cache::survey::{self, Found, Looked};
use cache::{Catalog, FileHash, Time, orders};
use harness::exit::Failure;
use harness::mounts::disk::unusable;
use harness::output;
use harness::table::{Table, left, right};
use harness::verbosity::Verbosity;
use perf::words::counted;
use server::locked::is_locked;

use crate::args::cache::{Cache, Status, Verify, Why};

/// Runs the command.
pub(crate) fn run(command: &Cache, verbosity: Verbosity) -> Result<(), Failure> {
    match command {
        Cache::Status(args) => status(args),
        Cache::Why(args) => why(args),
        Cache::Warm(args) => warm::run(&args.paths, verbosity),
        Cache::Pin(args) => change::pin(args, true),
        Cache::Unpin(args) => change::pin(args, false),
        Cache::Invalidate(args) => change::invalidate(args),
        Cache::Clean(args) => change::clean(args),
        Cache::Verify(args) => verify(args),
    }
}

/// The exports that a directory has something of.
fn origins(dir: &Path) -> Result<Vec<Found>, Failure> {
    survey::origins(dir).map_err(unusable)
}

fn unreadable(found: &Found, cause: &std::io::Error) -> Failure {
    let what = format!("{} cannot be read: {cause}", found.path.display());
    Failure::environment(what, "as the user whose cache it is")
}

/// Looks at all that is stored of an export, and at its bytes if `reads`.
fn walk(found: &Found, reads: bool, look: &mut dyn FnMut(Looked)) -> Result<(), Failure> {
    found.walk(reads, look).map_err(|cause| unreadable(found, &cause))
}

fn name(found: &Found) -> String {
    let identity = found.identity.as_ref();
    identity.map_or_else(|| "(damaged identity)".to_owned(), |known| known.origin.name.clone())
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
        walk(found, false, &mut |looked| totals.add(looked, tells_files_apart))?;
        Ok(totals)
    }

    fn add(&mut self, looked: Looked, tells_files_apart: bool) {
        self.disk_bytes += looked.disk_bytes;
        match (looked.header, looked.catalog) {
            (_, Some(catalog)) => {
                self.directories += 1;
                self.names += catalog.entries.len();
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
        let pinned = orders::pins(found.dir()).unwrap_or_default().len().to_string();
        let counts = [segments + unusable, used.hits, used.cold, used.damaged + unusable];
        let [files, hits, cold, damaged] = counts.map(|count| count.to_string());
        let [disk, data, hit] = [self.disk_bytes, *data_bytes, used.hit_bytes].map(mib);
        let (directories, names) = (self.directories.to_string(), self.names.to_string());
        [name(found), by, files, disk, data, hits, hit, cold, damaged, pinned, directories, names]
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

fn why(args: &Why) -> Result<(), Failure> {
    let seen = seen(&args.path)?;
    let mut text = String::new();
    let all = origins(&args.dir)?;
    for found in origin::of_path(&all, &args.path)? {
        let mut lines = lines_of(found, &seen)?;
        lines.sort();
        let missed = found.missed();
        let missed = missed.values().filter(|misses| misses.fileid == seen.fileid);
        lines.extend(missed.map(|misses| (u32::MAX, missed_line(misses))));
        if !lines.is_empty() {
            text += &format!("{}\n", name(found));
        }
        text.extend(lines.into_iter().map(|(_, line)| line));
    }
    if text.is_empty() {
        text = format!(
            "nothing is stored of {}: it was never read through a mount with this cache, had to \
             make room, or is younger than what the server's clock tells apart\n",
            args.path.display()
        );
    }
    output::print(&text)
}

/// A line for all that an export has of a file, with the segment's number.
fn lines_of(found: &Found, seen: &Seen) -> Result<Vec<(u32, String)>, Failure> {
    let pins = orders::pins(found.dir()).unwrap_or_default();
    let mut lines = Vec::new();
    walk(found, true, &mut |looked| {
        let catalog = looked.catalog.as_ref();
        let catalog = catalog.filter(|catalog| catalog.token.fileid == seen.fileid);
        lines.extend(catalog.map(|catalog| (0, directory_line(catalog, seen))));
        let header = looked.header.as_ref().ok();
        if let Some(header) = header.filter(|header| header.token.fileid == seen.fileid) {
            let is_pinned = pins.contains(&looked.name.file);
            lines.push((looked.name.segment, segment_line(header, &looked, seen, is_pinned)));
        }
    })?;
    Ok(lines)
}

/// How many reads were not served, and why.
fn missed_line(misses: &Misses) -> String {
    format!("  reads that were not served: {}, by cause: {}\n", misses.all(), misses.words())
}

/// What of a directory a catalog has, and whether it is used.
fn directory_line(catalog: &Catalog, seen: &Seen) -> String {
    let Catalog { token, whole, entries, .. } = catalog;
    let absent = entries.iter().filter(|entry| !entry.is_there).count();
    let links = entries.iter().filter(|entry| !entry.link.is_empty()).count();
    let verdict = match () {
        () if token.mtime != seen.mtime || token.size != seen.size => {
            "not used: names of the directory have changed since (mtime)"
        }
        () if token.ctime != seen.ctime => "not used: the directory has changed since (ctime)",
        () => "used",
    };
    let whole = if whole.is_some() { "all" } else { "not all" };
    format!(
        "  names: {} that are there ({whole} that there are), {absent} that are not, {links} \
         links; {verdict}\n",
        entries.len() - absent,
    )
}

/// What of a file a segment has, and whether it is used.
fn segment_line(header: &Header, looked: &Looked, seen: &Seen, is_pinned: bool) -> String {
    let start = u64::from(header.segment) * header.geometry.segment_bytes();
    let blocks = header.blocks().count();
    let token = header.token;
    let verdict = match () {
        () if token.size != seen.size => "not used: the file's size has changed since",
        () if token.mtime != seen.mtime => "not used: the file's data have changed since (mtime)",
        () if blocks == 0 => "nothing of it is there",
        () if !looked.wrong.is_empty() => "used, but for its damaged blocks",
        // A kernel that writes back has a time of its own for what was written here.
        () if token.ctime != seen.ctime => {
            "used, unless the file's ctime is another on the server, too, as it is here"
        }
        () => "used",
    };
    let Used { hits, cold, damaged, .. } = header.used;
    let pinned = if is_pinned { ", pinned" } else { "" };
    format!(
        "  from {start}: {blocks} blocks, {} bytes; {verdict}{pinned}; read {hits} times, {cold} \
         times not all was there, {} damaged\n",
        header.data_bytes(),
        damaged + looked.wrong.len() as u64,
    )
}

/// What a verification has seen.
#[derive(Default)]
struct Verified {
    files: u64,
    directories: u64,
    blocks: u64,
    bytes: u64,
    /// Damaged files, with what is wrong.
    damaged: Vec<String>,
}

impl Verified {
    fn add(&mut self, Looked { name, header, catalog, wrong, .. }: Looked) {
        if catalog.is_some() {
            self.directories += 1;
            return;
        }
        self.files += 1;
        let wrong = match header {
            Ok(header) => {
                self.blocks += header.blocks().count() as u64;
                self.bytes += header.data_bytes();
                (!wrong.is_empty()).then(|| counted(wrong.len() as u64, "block"))
            }
            Err(error) => Some(error.to_string()),
        };
        self.damaged
            .extend(wrong.map(|wrong| format!("{}-{:x}: {wrong}", name.file, name.segment)));
    }
}

fn verify(args: &Verify) -> Result<(), Failure> {
    let mut verified = Verified::default();
    for found in origins(&args.dir)? {
        walk(&found, true, &mut |looked| verified.add(looked))?;
    }
    let Verified { files, directories, blocks, bytes, damaged } = verified;
    if damaged.is_empty() {
        return output::print(&format!(
            "whole: {}, {} of {bytes} bytes, directories: {directories}\n",
            counted(files, "local file"),
            counted(blocks, "block"),
        ));
    }
    /// Of damaged files named.
    const NAMED_MAX: usize = 20;
    let named: Vec<&str> = damaged.iter().take(NAMED_MAX).map(String::as_str).collect();
    let more = match damaged.len() - named.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let (damaged, named) = (damaged.len(), named.join(", "));
    Err(Failure::check(
        format!("{damaged} of {files} local files are damaged: {named}{more}"),
        "nothing need be done: they are missed, and replaced when they are read; look at the disk",
    ))
}
