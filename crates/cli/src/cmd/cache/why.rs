//! Why a file is read from a cache, or is not.

use std::collections::{BTreeMap, BTreeSet};

use cache::header::{Header, Used};
use cache::missed::Misses;
use cache::survey::{Blocks, Found, Looked};
use cache::{Catalog, FileHash};
use harness::exit::Failure;
use harness::output;

use super::exports::{Seen, name, names_of, origins, seen, walk};
use super::origin;
use crate::args::cache::Why;

pub(super) fn run(args: &Why) -> Result<(), Failure> {
    let seen = seen(&args.path)?;
    let mut text = String::new();
    let all = origins(&args.dir)?;
    for found in origin::of_path(&all, &args.path)? {
        text += &text_of(found, &seen)?;
    }
    if text.is_empty() {
        text = format!(
            "nothing is stored of {}: it was never read through a mount with this cache, had to \
             make room, or is younger than what the server's clock tells apart\n",
            args.path.display()
        );
    } else if let Some(doubt) = origin::doubt(&all, &args.path) {
        text += &format!("{doubt}\n");
    }
    output::print(&text)
}

/// All that an export has of a file; nothing if that is nothing.
fn text_of(found: &Found, seen: &Seen) -> Result<String, Failure> {
    let mut missed = found.missed();
    missed.retain(|_, misses| misses.fileid == seen.fileid);
    let mut lines = lines_of(found, seen, &missed.keys().copied().collect())?;
    if lines.is_empty() && missed.is_empty() {
        return Ok(String::new());
    }
    if lines.is_empty() {
        lines.push((0, "  nothing of it is stored\n".to_owned()));
    }
    lines.sort();
    let lines = lines.into_iter().map(|(_, line)| line);
    let missed = missed.values().map(missed_line);
    Ok(format!("{}\n", name(found)) + &lines.chain(missed).collect::<String>())
}

/// A line for all that an export has of a file, with the segment's number. A header that cannot be
/// read is known by its name to be of one of `hashes`.
fn lines_of(
    found: &Found,
    seen: &Seen,
    hashes: &BTreeSet<FileHash>,
) -> Result<Vec<(u32, String)>, Failure> {
    let pins = cache::pins::read(found.dir()).map_or_else(|_| BTreeMap::new(), |pins| pins.files);
    let mut lines = Vec::new();
    walk(found, Blocks::Of(seen.fileid), &mut |looked| {
        let number = looked.name.segment;
        let line = match (&looked.catalog, &looked.header) {
            (Some(catalog), _) => {
                (catalog.token.fileid == seen.fileid).then(|| directory_line(catalog, seen))
            }
            (None, Ok(header)) => (header.token.fileid == seen.fileid).then(|| {
                let is_pinned = pins.contains_key(&looked.name.file);
                segment_line(header, &looked, seen, is_pinned)
            }),
            (None, Err(error)) => hashes
                .contains(&looked.name.file)
                .then(|| format!("  segment {number}: not used, it is damaged: {error}\n")),
        };
        lines.extend(line.map(|line| (number, line)));
    })?;
    Ok(lines)
}

/// How many reads were not served, and why.
fn missed_line(misses: &Misses) -> String {
    format!("  reads that were not served: {}, by cause: {}\n", misses.all(), misses.words())
}

/// What of a directory a catalog has, and whether it is used.
fn directory_line(catalog: &Catalog, seen: &Seen) -> String {
    let Catalog { token, whole, .. } = catalog;
    let all = names_of(catalog).count();
    let absent = names_of(catalog).filter(|entry| !entry.is_there).count();
    let links = names_of(catalog).filter(|entry| !entry.link.is_empty()).count();
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
        all - absent,
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
