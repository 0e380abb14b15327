//! What changes a cache: in place if nobody has it, else by an order to the mount that has it.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use cache::offline::carry_out;
use cache::orders::{self, Order};
use cache::place::OpenError;
use cache::survey::Found;
use cache::{FileHash, Filled};
use harness::exit::Failure;
use harness::mounts::disk::unusable;
use harness::output;
use net::clock::Clock;
use perf::units::Nanos;
use perf::words::counted;

use super::{mib, name, origin, origins, seen, unreadable, walk};
use crate::args::cache::{Clean, Files, Invalidate};

/// How long a mount is waited for that has an order: it looks each second, and may be storing.
const LOOKS_MAX: u32 = 1200;
const LOOK: Nanos = Nanos::from_millis(100);

pub(super) fn invalidate(args: &Invalidate) -> Result<(), Failure> {
    let all = origins(&args.dir)?;
    let text = all_done(&args.dir, forget(&all, &args.paths)?)?;
    output::print(if text.is_empty() { "nothing of it is stored\n" } else { &text })
}

/// All that is stored of the exports, or of these files.
fn forget<'f>(all: &'f [Found], paths: &[PathBuf]) -> Result<Vec<(&'f Found, Order)>, Failure> {
    if paths.is_empty() {
        return Ok(all.iter().map(|found| (found, Order::Forget(None))).collect());
    }
    let of_export = |(found, files): (_, BTreeSet<_>)| {
        files.into_iter().map(move |file| (found, Order::Forget(Some(file))))
    };
    Ok(files(all, paths)?.into_iter().flat_map(of_export).collect())
}

pub(super) fn clean(args: &Clean) -> Result<(), Failure> {
    let all = origins(&args.dir)?;
    let orders = all.iter().map(|found| (found, Order::Clean(args.to)));
    output::print(&all_done(&args.dir, orders)?)
}

fn all_done<'f>(
    dir: &Path,
    orders: impl IntoIterator<Item = (&'f Found, Order)>,
) -> Result<String, Failure> {
    orders.into_iter().map(|(found, order)| done(dir, found, order)).collect()
}

/// Sees to it that an order is carried out; says by whom.
fn done(dir: &Path, found: &Found, order: Order) -> Result<String, Failure> {
    match carry_out(dir, &found.folder, order) {
        Ok(Filled { bytes, files }) => {
            let (name, mib) = (name(found), mib(bytes));
            Ok(format!("{name}: {files} local files of {mib} MiB removed\n"))
        }
        Err(OpenError::Busy { .. }) => ordered(found, order),
        Err(error) => Err(unusable(error)),
    }
}

/// Leaves an order to the mount that has the cache, and waits until it is carried out.
fn ordered(found: &Found, order: Order) -> Result<String, Failure> {
    let number = format!("{}-{:016x}", std::process::id(), distinct(found, order));
    let failed = |errno: rustix::io::Errno| unreadable(found, &errno.into());
    orders::leave(found.dir(), &number, order).map_err(failed)?;
    match net::runtime::block_on(is_done(found, &number)) {
        Ok(true) => Ok(format!("{}: done by the mount that has it\n", name(found))),
        Ok(false) => Err(Failure::environment(
            format!("{}: the mount that has it has not done it within 120 s", name(found)),
            "wait: it is done when the mount has counted what is there and its disk answers",
        )),
        Err(cause) => Err(Failure::resources(cause)),
    }
}

async fn is_done(found: &Found, number: &str) -> bool {
    let clock = Clock::real();
    for _ in 0..LOOKS_MAX {
        if orders::is_done(found.dir(), number) {
            return true;
        }
        clock.sleep(LOOK).await;
    }
    false
}

/// Tells two orders of one process apart.
fn distinct(found: &Found, order: Order) -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one((&found.folder, format!("{order:?}")))
}

pub(super) fn pin(args: &Files, is_pinned: bool) -> Result<(), Failure> {
    let mut count = 0;
    let all = origins(&args.dir)?;
    // The names of directories go when they are not used; what is pinned is data.
    for (found, files) in files(&all, &super::below::files(&args.paths)?)? {
        count += files.len();
        set_pins(found, files, is_pinned).map_err(|errno| not_pinned(found, errno))?;
    }
    if count == 0 {
        return Err(Failure::environment(
            "nothing is stored of these files",
            "nfskit cache warm PATH, and then again",
        ));
    }
    let how = if is_pinned { "pinned" } else { "not pinned any more" };
    let are = if count == 1 { "is" } else { "are" };
    output::print(&format!("{} {are} {how}\n", counted(count as u64, "file")))
}

fn set_pins(found: &Found, files: BTreeSet<FileHash>, is_pinned: bool) -> rustix::io::Result<()> {
    if files.is_empty() {
        return Ok(());
    }
    let mut pins = orders::pins(found.dir())?;
    for file in files {
        match is_pinned {
            true => pins.insert(file),
            false => pins.remove(&file),
        };
    }
    orders::set_pins(found.dir(), &pins)
}

fn not_pinned(found: &Found, errno: rustix::io::Errno) -> Failure {
    if errno != rustix::io::Errno::NOSPC {
        return unreadable(found, &errno.into());
    }
    let most = orders::PINS_MAX;
    let what = format!("more than {most} files cannot be pinned, or the disk is full");
    Failure::environment(what, "unpin others")
}

/// The files that these paths name, or that are below them, with their exports, as far as anything
/// is stored of them.
fn files<'f>(
    all: &'f [Found],
    paths: &[PathBuf],
) -> Result<Vec<(&'f Found, BTreeSet<FileHash>)>, Failure> {
    let paths = &super::below::all(paths)?;
    let mut wanted: BTreeMap<&str, BTreeSet<u64>> = BTreeMap::new();
    for path in paths {
        let exports = origin::of_path(all, path)?;
        let fileid = seen(path)?.fileid;
        for found in exports {
            wanted.entry(&found.folder).or_default().insert(fileid);
        }
    }
    let of_each = all.iter().filter_map(|found| Some((found, wanted.get(&*found.folder)?)));
    of_each.map(|(found, wanted)| Ok((found, stored_of(found, wanted)?))).collect()
}

fn stored_of(found: &Found, wanted: &BTreeSet<u64>) -> Result<BTreeSet<FileHash>, Failure> {
    let mut files = BTreeSet::new();
    walk(found, false, &mut |looked| {
        let is_wanted = looked.token().is_some_and(|token| wanted.contains(&token.fileid));
        files.extend(is_wanted.then_some(looked.name.file));
    })?;
    Ok(files)
}
