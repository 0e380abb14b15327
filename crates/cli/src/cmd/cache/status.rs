//! What lies in a cache, by export and by file.

use std::collections::BTreeMap;

use cache::FileHash;
use cache::header::{Header, Used};
use cache::missed::Misses;
use cache::survey::{Blocks, Found, Looked};
use harness::exit::Failure;
use harness::output;
use harness::table::{Table, left, right};
use server::locked::is_locked;

use super::exports::{mib, name, names_of, origins, walk};
use crate::args::cache::Status;

pub(super) fn run(args: &Status) -> Result<(), Failure> {
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
