//! Tests 1 and 2: a tree is made, and removed.

use super::check::{Ended, Expect};
use super::lines::Work;
use super::place::{Changes, Known, Place};
use super::site::{Site, make_file};

/// Names that a message lists.
const SHOWN_MAX: usize = 5;

/// The suite's names.
pub(super) fn file_name(number: u32) -> String {
    format!("file.{number}")
}

pub(super) fn dir_name(number: u32) -> String {
    format!("dir.{number}")
}

/// A directory that is being worked through.
struct Level<D> {
    dir: D,
    /// Levels below it and itself.
    levels: u32,
    /// Directories in it that are done.
    done: u32,
}

/// Test 1.
pub(super) async fn create<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    site.changes(dir, Changes::Making, (&file_name(0), &dir_name(0))).await?;
    site.start();
    let (files, dirs) = grow(site, dir).await?;
    site.stop();
    site.line(Work::Created, [files, dirs, u64::from(site.sizes.levels)]);
    verify(site, dir).await?;
    let place = site.place;
    if site.sizes.files > 0 {
        let (name, taken) = (file_name(0), &[Known::Exist]);
        let again = place.create_new(dir, &name);
        site.must_fail("create, not to be there,", &name, again, taken, "EEXIST").await?;
    }
    if site.sizes.dirs > 0 {
        let (name, taken) = (dir_name(0), &[Known::Exist]);
        site.must_fail("mkdir, again,", &name, place.make_dir(dir, &name), taken, "EEXIST").await?;
    }
    Ok(())
}

/// Makes the tree; gives the numbers of files and directories in it.
async fn grow<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(u64, u64), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    let (mut files, mut dirs) = (0, 0);
    let mut way = vec![Level { dir: dir.clone(), levels: sizes.levels, done: 0 }];
    while let Some(level) = way.last_mut() {
        if level.done == 0 {
            for number in 0..sizes.files {
                make_file(site, &level.dir, &file_name(number)).await?;
                files += 1;
            }
        }
        if level.done == sizes.dirs {
            way.pop();
            continue;
        }
        let name = dir_name(level.done);
        level.done += 1;
        let made = site.must("mkdir", &name, place.make_dir(&level.dir, &name)).await?;
        site.attributes_of_reply("mkdir", &name, Expect::DIR, made.stat)?;
        dirs += 1;
        let below = site.must("chdir", &name, place.enter(&level.dir, &name)).await?;
        site.attributes_of_reply("lookup", &name, Expect::DIR, below.stat)?;
        let levels = level.levels - 1;
        if levels > 0 {
            way.push(Level { dir: below.value, levels, done: 0 });
        }
    }
    Ok((files, dirs))
}

/// Everything is there, and what it should be.
async fn verify<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    let mut way = vec![Level { dir: dir.clone(), levels: sizes.levels, done: 0 }];
    while let Some(level) = way.last_mut() {
        if level.done == 0 {
            for number in 0..sizes.files {
                site.stat(&level.dir, &file_name(number), Expect::EMPTY).await?;
            }
        }
        if level.done == sizes.dirs {
            way.pop();
            continue;
        }
        let name = dir_name(level.done);
        level.done += 1;
        site.stat(&level.dir, &name, Expect::DIR).await?;
        let levels = level.levels - 1;
        if levels > 0 {
            let below = site.must("chdir", &name, place.enter(&level.dir, &name)).await?.value;
            way.push(Level { dir: below, levels, done: 0 });
        }
    }
    Ok(())
}

/// Test 2, of the tree that test 1 has made, or of one that is made first.
pub(super) async fn remove<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    is_made: bool,
) -> Result<(), Ended> {
    let place = site.place;
    if !is_made {
        grow(site, dir).await?;
    }
    let sizes = site.sizes;
    if sizes.dirs > 0 && sizes.levels > 1 {
        // RFC 1813, section 3.3.13, knows both errors, and so does POSIX.
        let (name, full) = (dir_name(0), &[Known::NotEmpty, Known::Exist]);
        let refused = place.remove_dir(dir, &name);
        site.must_fail("rmdir of what is not empty,", &name, refused, full, "ENOTEMPTY").await?;
    }
    site.start();
    let (files, dirs) = fell(site, dir).await?;
    site.stop();
    site.line(Work::Removed, [files, dirs, u64::from(sizes.levels)]);
    for number in 0..sizes.files {
        site.gone(dir, &file_name(number), "after its removal").await?;
    }
    for number in 0..sizes.dirs {
        site.gone(dir, &dir_name(number), "after its removal").await?;
    }
    let (name, absent) = (file_name(0), &[Known::NoEnt]);
    site.must_fail("remove, again,", &name, place.remove(dir, &name), absent, "ENOENT").await?;
    site.changes(dir, Changes::Removing, (&file_name(0), &dir_name(0))).await
}

/// Removes the tree; gives the numbers of files and directories that were in it.
async fn fell<P: Place>(site: &mut Site<'_, P>, dir: &P::Dir) -> Result<(u64, u64), Ended> {
    let (place, sizes) = (site.place, site.sizes);
    let (mut files, mut dirs) = (0, 0);
    let mut way = vec![Level { dir: dir.clone(), levels: sizes.levels, done: 0 }];
    while let Some(level) = way.last_mut() {
        if level.done == 0 {
            for number in 0..sizes.files {
                let name = file_name(number);
                site.must("remove", &name, place.remove(&level.dir, &name)).await?;
                files += 1;
            }
        }
        if level.done < sizes.dirs {
            let name = dir_name(level.done);
            let below = site.must("chdir", &name, place.enter(&level.dir, &name)).await?.value;
            let levels = level.levels - 1;
            if levels > 0 {
                way.push(Level { dir: below, levels, done: 0 });
                continue;
            }
            level.done += 1;
            remove_empty(site, &level.dir, &name, below).await?;
            dirs += 1;
            continue;
        }
        let Some(done) = way.pop() else { break };
        if let Some(above) = way.last_mut() {
            let name = dir_name(above.done);
            above.done += 1;
            remove_empty(site, &above.dir, &name, done.dir).await?;
            dirs += 1;
        }
    }
    Ok((files, dirs))
}

/// Leaves a directory that should be empty, and removes it; if it is not, says what is in it.
async fn remove_empty<P: Place>(
    site: &mut Site<'_, P>,
    dir: &P::Dir,
    name: &str,
    below: P::Dir,
) -> Result<(), Ended> {
    let place = site.place;
    let leave = async {
        drop(below);
        place.remove_dir(dir, name).await
    };
    let refused = match site.must("rmdir", name, leave).await {
        Err(Ended::Failed(failed)) => failed,
        ended => return ended,
    };
    let mut there = Vec::new();
    if let Ok(below) = place.enter(dir, name).await {
        for number in 0..site.sizes.files {
            let name = file_name(number);
            if there.len() < SHOWN_MAX && place.stat(&below.value, &name).await.is_ok() {
                there.push(name);
            }
        }
    }
    if there.is_empty() {
        return Err(Ended::Failed(refused));
    }
    let seen = format!("{}: {} still there", refused.seen, there.join(", "));
    let step = format!("rmdir {name}, whose files were removed");
    Err(site.failed(step, "success", seen))
}
