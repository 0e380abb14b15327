//! Why a file is read from a cache, or is not.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cache::header::{Header, Used};
use cache::missed::Misses;
use cache::survey::{Blocks, Found, Looked};
use cache::{Catalog, FileHash};
use fuse::question;
use harness::exit::Failure;
use harness::output;

use super::exports::{Seen, name, names_of, origins, seen, walk};
use super::origin;
use crate::args::cache::Why;

pub(super) fn run(args: &Why) -> Result<(), Failure> {
    let link = followed(&args.path)?;
    let path = link.as_deref().unwrap_or(&args.path);
    let mut text = link.iter().fold(String::new(), |_, to| {
        format!("{} is a symbolic link to {}\n", args.path.display(), to.display())
    });
    let seen = seen(path)?;
    let all = origins(&args.dir)?;
    let mut stored = String::new();
    for found in origin::of_path(&all, path)? {
        stored += &text_of(found, &seen, path)?;
    }
    text += &match stored.is_empty() {
        true => format!(
            "nothing is stored of {}: it was never read through a mount with this cache, had to \
             make room, or is younger than what the server's clock tells apart\n",
            path.display()
        ),
        false => stored,
    };
    text.extend(origin::doubt(&all, path).map(|doubt| doubt + "\n"));
    output::print(&text)
}

/// Where a symbolic link leads in the end: reads go there.
fn followed(path: &Path) -> Result<Option<PathBuf>, Failure> {
    if !std::fs::symlink_metadata(path).is_ok_and(|found| found.is_symlink()) {
        return Ok(None);
    }
    std::fs::canonicalize(path).map(Some).map_err(|cause| {
        let what = format!("{} is a symbolic link: {cause}", path.display());
        Failure::environment(what, "a file of the mount")
    })
}

/// All that an export has of a file; nothing if that is nothing.
fn text_of(found: &Found, seen: &Seen, path: &Path) -> Result<String, Failure> {
    let mut missed = found.missed();
    missed.retain(|_, misses| misses.fileid == seen.fileid);
    let is_current = is_current(found, seen, path)?;
    let hashes = missed.keys().copied().collect();
    let mut lines = lines_of(found, (seen, is_current), &hashes)?;
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

/// Whether what is stored of a file is of its state on the server, which the mount knows if all of
/// it is stored. None: that is not known.
fn is_current(found: &Found, seen: &Seen, path: &Path) -> Result<Option<bool>, Failure> {
    if origin::is_used(found, path) != Some(true) {
        return Ok(None);
    }
    let has_all = question::has_all(path);
    let (mut blocks, mut all) = (0, u64::MAX);
    walk(found, Blocks::Unread, &mut |looked| {
        if let Ok(header) = &looked.header
            && (header.token.fileid, header.token.size) == (seen.fileid, seen.size)
        {
            blocks += header.blocks().count() as u64;
            all = seen.size.div_ceil(header.geometry.block_bytes());
        }
    })?;
    Ok(has_all.filter(|has_all| *has_all || blocks == all))
}

/// A line for all that an export has of a file, with the segment's number. A header that cannot be
/// read is known by its name to be of one of `hashes`.
fn lines_of(
    found: &Found,
    (seen, is_current): (&Seen, Option<bool>),
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
                segment_line(header, &looked, (seen, is_current), is_pinned)
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
fn segment_line(
    header: &Header,
    looked: &Looked,
    (seen, is_current): (&Seen, Option<bool>),
    is_pinned: bool,
) -> String {
    let start = u64::from(header.segment) * header.geometry.segment_bytes();
    let blocks = header.blocks().count();
    let token = header.token;
    let verdict = match () {
        () if token.size != seen.size => "not used: the file's size has changed since",
        () if token.mtime != seen.mtime => "not used: the file's data have changed since (mtime)",
        () if blocks == 0 => "nothing of it is there",
        () if !looked.wrong.is_empty() => "used, but for its damaged blocks",
        () if token.ctime == seen.ctime || is_current == Some(true) => "used",
        () if is_current == Some(false) => {
            "not used: the file's attributes or links have changed since (ctime)"
        }
        // A kernel that writes back has a time of its own for what was written here.
        () => "used, unless the file's ctime is another on the server, too, as it is here",
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
