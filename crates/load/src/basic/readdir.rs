//! Test 6: a directory is listed while its files vanish one after the other.

use std::collections::BTreeSet;

use super::bench::{Site, make_file};
use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Entry, Listing, Place};
use super::tree::file_name;

/// More entries than the test has made are taken, so that they can be told.
const OTHERS_MAX: usize = 16;
/// The same, where they do not matter.
const IGNORED_MAX: usize = 1 << 20;

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    for number in 0..sizes.files {
        make_file(site, dir, &file_name(number)).await?;
    }
    with_attributes(site, dir).await?;
    let mut entries = 0;
    site.start();
    for pass in 0..sizes.count {
        entries += list(site, dir, Listing::Names, pass).await?.len() as u64;
        let name = file_name(pass);
        site.must("remove", &name, place.remove(dir, &name)).await?;
    }
    site.stop();
    site.line(Work::Listed, [entries, u64::from(sizes.files), 0]);
    // The file of the last pass is gone as well.
    list(site, dir, Listing::Names, sizes.count).await.map(drop)
}

/// What READDIRPLUS tells of each file is what is asked for by name.
async fn with_attributes<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    for entry in list(site, dir, Listing::WithAttributes, 0).await? {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        let Some(told) = entry.stat.filter(|_| name != "." && name != "..") else { continue };
        let step = || format!("readdirplus, the attributes of {name}");
        site.compare(step, Expect { fileid: Some(entry.fileid), ..Expect::EMPTY }, &told)?;
        site.stat(dir, &name, Expect::all(&told)).await?;
    }
    Ok(())
}

/// Lists the directory, in which the first `removed` files are no more.
async fn list<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    how: Listing,
    removed: u32,
) -> Result<Vec<Entry>, Ended> {
    let files = site.sizes.files;
    let others = if site.plan.ignore_others { IGNORED_MAX } else { OTHERS_MAX };
    let most = files as usize + 2 + others;
    let place = site.place;
    let step = match how {
        Listing::Names => format!("readdir, pass {removed},"),
        Listing::WithAttributes => "readdirplus".to_owned(),
    };
    let entries = site.must(&step, "of .", place.list(dir, how, most)).await?;
    let mut missing: BTreeSet<String> = (removed..files).map(file_name).collect();
    let mut seen = BTreeSet::new();
    for entry in &entries {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        if !seen.insert(name.clone()) {
            return Err(site.failed(step, format!("{name} once"), "it twice"));
        }
        let is_known = missing.remove(&name) || name == "." || name == "..";
        if is_known {
            continue;
        }
        let number = name.strip_prefix("file.").and_then(|number| number.parse::<u32>().ok());
        match number {
            Some(number) if number < removed => {
                return Err(site.failed(step, format!("no {name}, which was removed"), "it"));
            }
            _ if site.plan.ignore_others => {}
            _ => {
                let expected = "nothing but the test's own files";
                return Err(site.failed(step, expected, format!("{name:?}")));
            }
        }
    }
    for name in [".", ".."] {
        if !seen.contains(name) {
            return Err(site.failed(step, format!("an entry {name}"), "none"));
        }
    }
    match missing.first() {
        None => Ok(entries),
        Some(first) => {
            let expected = format!("{} files, {first} among them", files - removed);
            let seen = format!("{} without it", files as usize - removed as usize - missing.len());
            Err(site.failed(step, expected, seen))
        }
    }
}
