//! What runs leave, and its removal by name: a target whose listings are wrong is cleaned, too.

use super::place::{Answer, Listing, Place};
use super::tree::{dir_name, file_name};
use super::{Plan, Test, data, names};

/// Entries of a directory that are looked at.
const LOOK_MAX: usize = 4096;

/// What is in a directory that should be empty, each in order.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Leftovers {
    /// Names that the tests would use.
    pub ours: Vec<String>,
    pub others: Vec<String>,
}

/// Looks for what an earlier run has left in `dir`, and for what is somebody else's.
///
/// # Errors
/// The directory cannot be listed.
pub async fn leftovers<P: Place>(place: &P, dir: &P::Dir) -> Answer<Leftovers> {
    let mut left = Leftovers::default();
    for entry in place.list(dir, Listing::Names, LOOK_MAX).await? {
        let name = String::from_utf8_lossy(&entry.name).into_owned();
        match name.as_str() {
            "." | ".." => {}
            name if is_ours(name) => left.ours.push(name.to_owned()),
            _ => left.others.push(name),
        }
    }
    left.ours.sort_unstable();
    left.others.sort_unstable();
    Ok(left)
}

fn is_ours(name: &str) -> bool {
    let is_number = |rest: &str| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit());
    let prefixes = ["file.", "dir.", "newfile."];
    name == data::NAME
        || prefixes.iter().any(|prefix| name.strip_prefix(prefix).is_some_and(is_number))
}

/// Removes what these tests make in `dir`, as far as it is there and can be removed.
pub async fn sweep<P: Place>(place: &P, dir: &P::Dir, plan: &Plan, tests: &[Test]) {
    for &test in tests {
        // The first is made by tests of any number of files.
        let files = plan.sizes(test).files.max(1);
        match test {
            Test::Create | Test::Remove => sweep_tree(place, dir, plan, test).await,
            Test::Data => drop(place.remove(dir, data::NAME).await),
            Test::Lookup | Test::Statfs => {}
            Test::Attributes | Test::Readdir | Test::Rename | Test::Symlink => {
                if test == Test::Rename {
                    place.remove_dir(dir, &dir_name(0)).await.ok();
                }
                for number in 0..files {
                    place.remove(dir, &file_name(number)).await.ok();
                    if test == Test::Rename {
                        place.remove(dir, &names::new_name(number)).await.ok();
                    }
                }
            }
        }
    }
}

/// Depth first; directories that are not there are not entered. Of a tree that was not finished,
/// or is half removed, any part may be missing.
async fn sweep_tree<P: Place>(place: &P, dir: &P::Dir, plan: &Plan, test: Test) {
    let sizes = plan.sizes(test);
    let mut way = vec![(dir.clone(), 0)];
    loop {
        let depth = way.len();
        let Some((level, done)) = way.last_mut() else { break };
        if *done == 0 {
            for number in 0..sizes.files.max(1) {
                place.remove(level, &file_name(number)).await.ok();
            }
        }
        if *done == sizes.dirs.max(1) {
            way.pop();
            if let Some((above, done)) = way.last() {
                place.remove_dir(above, &dir_name(*done - 1)).await.ok();
            }
            continue;
        }
        let name = dir_name(*done);
        *done += 1;
        match place.enter(level, &name).await {
            Ok(below) if depth < sizes.levels as usize => way.push((below.value, 0)),
            Ok(_) => drop(place.remove_dir(level, &name).await),
            Err(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::is_ours;

    #[test]
    fn names_of_the_suite_are_known() {
        for ours in ["file.0", "dir.17", "newfile.3", "bigfile"] {
            assert!(is_ours(ours), "{ours}");
        }
        for other in ["file.", "file.x", "file", "bigfile2", "dir.1.bak", "profile.1"] {
            assert!(!is_ours(other), "{other}");
        }
    }
}
