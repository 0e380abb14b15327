//! Test 6: a directory is listed while its files vanish one after the other.

use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Entry, Listing, Place};
use super::site::{Site, make_file};
use super::tree::file_name;

/// More entries than the test has made are taken, so that they can be named.
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

/// What READDIRPLUS tells of each file is what is requested by name.
async fn with_attributes<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    for entry in list(site, dir, Listing::WithAttributes, 0).await? {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        let Some(in_reply) = entry.stat.filter(|_| name != "." && name != "..") else { continue };
        let step = || format!("readdirplus, the attributes of {name}");
        site.compare(step, Expect { fileid: Some(entry.fileid), ..Expect::EMPTY }, &in_reply)?;
        site.stat(dir, &name, Expect::all(&in_reply)).await?;
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
    let others = Seen::of(&entries, files);
    let failed = |expected: String, seen: String| Err(site.failed(step.clone(), expected, seen));
    if let Some(twice) = others.twice {
        return failed(format!("{twice} once"), "it twice".to_owned());
    }
    if let Some(number) = others.files.iter().take(removed as usize).position(|seen| *seen) {
        let name = format!("file.{number}");
        return failed(format!("no {name}, which was removed"), "it".to_owned());
    }
    if let Some(other) = others.other.filter(|_| !site.plan.ignore_others) {
        return failed("nothing but the test's own files".to_owned(), format!("{other:?}"));
    }
    for (name, is_seen) in [(".", others.dot), ("..", others.dot_dot)] {
        if !is_seen {
            return failed(format!("an entry {name}"), "none".to_owned());
        }
    }
    let there = &others.files[removed as usize..];
    match there.iter().position(|seen| !seen) {
        None => Ok(entries),
        Some(first) => {
            let name = file_name(removed + u32::try_from(first).unwrap_or(0));
            let seen = there.iter().filter(|seen| **seen).count();
            let expected = format!("{} files, {name} among them", there.len());
            failed(expected, format!("{seen} without it"))
        }
    }
}

/// What a listing has.
#[derive(Default)]
struct Seen {
    /// By number.
    files: Vec<bool>,
    dot: bool,
    dot_dot: bool,
    /// The first name that was there before.
    twice: Option<String>,
    /// The first name that is none of ours.
    other: Option<String>,
}

impl Seen {
    fn of(entries: &[Entry], files: u32) -> Self {
        let mut seen = Self { files: vec![false; files as usize], ..Self::default() };
        for Entry { name, .. } in entries {
            let number = number_of(name);
            let slot = match name.as_slice() {
                b"." => Some(&mut seen.dot),
                b".." => Some(&mut seen.dot_dot),
                _ => number.and_then(|number| seen.files.get_mut(number)),
            };
            let text = || String::from_utf8_lossy(name).into_owned();
            match slot {
                None => drop(seen.other.get_or_insert_with(text)),
                Some(is_seen) if *is_seen => drop(seen.twice.get_or_insert_with(text)),
                Some(is_seen) => *is_seen = true,
            }
        }
        seen
    }
}

/// The number in a name of ours, which has no zero before it.
fn number_of(name: &[u8]) -> Option<usize> {
    let digits = name.strip_prefix(b"file.")?;
    let is_plain =
        digits.iter().all(u8::is_ascii_digit) && matches!(digits, [b'0'] | [b'1'..=b'9', ..]);
    std::str::from_utf8(digits).ok().filter(|_| is_plain)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::number_of;

    #[test]
    fn only_names_that_were_made_have_a_number() {
        assert_eq!(number_of(b"file.0"), Some(0));
        assert_eq!(number_of(b"file.199"), Some(199));
        for other in [&b"file."[..], b"file.01", b"file.+1", b"file.1x", b"newfile.1", b"."] {
            assert_eq!(number_of(other), None);
        }
    }
}
