//! Which files stay: a list in the folder of each export, which whoever has it reads.

use std::collections::{BTreeMap, BTreeSet};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use cache::FileHash;
use cache::pins::{self, PINS_MAX};
use cache::survey::{Blocks, Found};
use harness::exit::Failure;
use harness::output;
use perf::printable::printable;
use perf::words::counted;
use rustix::io::Errno;

use super::exports::{fileids, name, origins, seen, unreadable, walk};
use super::{below, origin};
use crate::args::cache::{Pin, Unpin};

/// The files of an export of which something is stored, by their fileids.
type Stored = BTreeMap<u64, BTreeSet<FileHash>>;

/// What a command pins, by the folders of exports.
#[derive(Default)]
struct Chosen<'f> {
    /// Of the exports that were looked at.
    stored: BTreeMap<&'f str, Stored>,
    files: BTreeMap<&'f str, BTreeMap<FileHash, u64>>,
    /// Nothing is stored of these.
    missing: Vec<PathBuf>,
}

impl<'f> Chosen<'f> {
    fn add(&mut self, path: PathBuf, exports: Vec<&'f Found>) -> Result<(), Failure> {
        let (fileid, mut is_stored) = (seen(&path)?.fileid, false);
        for found in exports {
            let folder = &*found.folder;
            if !self.stored.contains_key(folder) {
                self.stored.insert(folder, stored_in(found)?);
            }
            for file in self.stored[folder].get(&fileid).into_iter().flatten() {
                self.files.entry(folder).or_default().insert(*file, fileid);
                is_stored = true;
            }
        }
        self.missing.extend((!is_stored).then_some(path));
        Ok(())
    }

    /// Files, of which there may be several states with other handles.
    fn count(&self) -> usize {
        let fileids = |files: &BTreeMap<_, u64>| files.values().collect::<BTreeSet<_>>().len();
        self.files.values().map(fileids).sum()
    }
}

pub(super) fn pin(args: &Pin) -> Result<(), Failure> {
    let all = origins(&args.dir)?;
    let mut chosen = Chosen::default();
    // The names of directories go when they are not used; what is pinned is data.
    for path in below::files(&args.paths)? {
        let exports = origin::of_path(&all, &path)?;
        if has_data(&path) {
            chosen.add(path, exports)?;
        }
    }
    let count = chosen.count();
    for found in &all {
        let Some(more) = chosen.files.remove(&*found.folder) else { continue };
        let _held = hold(found)?;
        let mut files = whole(&args.dir, found)?;
        files.extend(more);
        pins::write(found.dir(), &files).map_err(|errno| not_written(found, errno))?;
    }
    report(count as u64, &chosen.missing)
}

/// What a file without data has is never stored in blocks.
fn has_data(path: &Path) -> bool {
    std::fs::symlink_metadata(path).is_ok_and(|found| found.is_file() && found.len() > 0)
}

fn stored_in(found: &Found) -> Result<Stored, Failure> {
    let mut stored = Stored::new();
    walk(found, Blocks::Unread, &mut |looked| {
        if let Ok(header) = &looked.header {
            stored.entry(header.token.fileid).or_default().insert(looked.name.file);
        }
    })?;
    Ok(stored)
}

fn report(count: u64, missing: &[PathBuf]) -> Result<(), Failure> {
    if count > 0 {
        let are = if count == 1 { "is" } else { "are" };
        output::print(&format!("{} {are} pinned\n", counted(count, "file")))?;
    }
    let what = match missing {
        [] if count > 0 => return Ok(()),
        [] => "there is no file with data".to_owned(),
        [only] => format!("nothing is stored of {}", printable(only.as_os_str().as_bytes())),
        [first, ..] => {
            let files = counted(missing.len() as u64, "file");
            format!(
                "nothing is stored of {files}, the first is {}",
                printable(first.as_os_str().as_bytes())
            )
        }
    };
    let advice = "nfskit cache warm PATH, or read them through the proxy whose cache it is; and \
                  then again";
    Err(Failure::environment(what, advice))
}

pub(super) fn unpin(args: &Unpin) -> Result<(), Failure> {
    let all = origins(&args.dir)?;
    let wanted = match &args.paths[..] {
        [] => None,
        paths => Some(fileids(&all, &below::files(paths)?)?),
    };
    let mut count = 0;
    for found in &all {
        count += match &wanted {
            None => without_any(found)?,
            Some(wanted) => match wanted.get(&*found.folder) {
                Some(fileids) => without(&args.dir, found, fileids)?,
                None => 0,
            },
        };
    }
    output::print(&match count {
        0 => "none of them was pinned\n".to_owned(),
        1 => "1 file is not pinned any more\n".to_owned(),
        count => format!("{count} files are not pinned any more\n"),
    })
}

/// Takes these off the list; says how many were in it.
fn without(dir: &Path, found: &Found, fileids: &BTreeSet<u64>) -> Result<usize, Failure> {
    let _held = hold(found)?;
    let mut files = whole(dir, found)?;
    let before = files.len();
    files.retain(|_, fileid| !fileids.contains(fileid));
    if files.len() < before {
        pins::write(found.dir(), &files).map_err(|errno| not_written(found, errno))?;
    }
    Ok(before - files.len())
}

fn without_any(found: &Found) -> Result<usize, Failure> {
    let _held = hold(found)?;
    let pins = pins::read(found.dir()).map_err(|errno| unreadable(found, &errno.into()))?;
    if !pins.files.is_empty() || !pins.is_whole {
        pins::write(found.dir(), &BTreeMap::new()).map_err(|errno| not_written(found, errno))?;
    }
    Ok(pins.files.len())
}

/// The right to change the list of an export, see [`pins::hold`].
fn hold(found: &Found) -> Result<OwnedFd, Failure> {
    pins::hold(found.dir()).map_err(|errno| unreadable(found, &errno.into()))
}

/// The list, which is not replaced without a word if it is damaged.
fn whole(dir: &Path, found: &Found) -> Result<BTreeMap<FileHash, u64>, Failure> {
    let pins = pins::read(found.dir()).map_err(|errno| unreadable(found, &errno.into()))?;
    if pins.is_whole {
        return Ok(pins.files);
    }
    Err(Failure::environment(
        format!("{}: the list of pinned files is damaged", name(found)),
        format!("`nfskit cache unpin {}` removes it; then pin them anew", dir.display()),
    ))
}

fn not_written(found: &Found, errno: Errno) -> Failure {
    if errno != Errno::NOSPC {
        return unreadable(found, &errno.into());
    }
    let what = format!("more than {PINS_MAX} files cannot be pinned, or the disk is full");
    Failure::environment(what, "unpin others")
}
