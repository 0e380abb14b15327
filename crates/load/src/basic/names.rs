//! Test 7: files are renamed, and get their old name back as a second one.

use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Changes, Known, Place};
use super::site::{Site, make_file};
use super::tree::{dir_name, file_name};

/// The suite's name.
pub(super) fn new_name(number: u32) -> String {
    format!("newfile.{number}")
}

pub(super) async fn run<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    for number in 0..sizes.files {
        make_file(site, dir, &file_name(number)).await?;
    }
    let first = site.stat(dir, &file_name(0), Expect::EMPTY).await?;
    site.start();
    for _ in 0..sizes.count {
        for number in 0..sizes.files {
            there_and_back(site, dir, &file_name(number), &new_name(number)).await?;
        }
    }
    site.stop();
    let calls = u64::from(sizes.files) * u64::from(sizes.count) * 2;
    site.line(Work::RenamedAndLinked, [calls, u64::from(sizes.files), 0]);
    let (old, new) = (file_name(0), new_name(0));
    let same = Expect { fileid: Some(first.fileid), ..Expect::EMPTY };
    site.stat(dir, &old, same).await?;
    let (absent, taken) = (&[Known::NoEnt], &[Known::Exist]);
    let rename = place.rename(dir, &new, &old);
    site.must_fail("rename of what is not there,", &new, rename, absent, "ENOENT").await?;
    let link = place.link(dir, &old, &old);
    site.must_fail("link to a name that is taken,", &old, link, taken, "EEXIST").await?;
    site.changes(dir, Changes::Renaming, (&new, &dir_name(0))).await
}

async fn there_and_back<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    old: &str,
    new: &str,
) -> Result<(), Ended> {
    let place = site.place;
    let (one, two) = (Expect::EMPTY, Expect { links: Some(2), ..Expect::EMPTY });
    site.must("rename", old, place.rename(dir, old, new)).await?;
    site.gone(dir, old, "after a rename").await?;
    site.stat(dir, new, one).await?;
    let linked = site.must("link", new, place.link(dir, new, old)).await?;
    site.attributes_of_reply("link", new, two, linked.stat)?;
    site.stat(dir, new, two).await?;
    site.stat(dir, old, two).await?;
    site.must("remove", new, place.remove(dir, new)).await?;
    site.stat(dir, old, one).await?;
    Ok(())
}
