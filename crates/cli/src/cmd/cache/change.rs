//! What changes a cache: in place if nobody has it, else by an order to the process that has it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cache::offline::carry_out;
use cache::orders::{self, Order};
use cache::place::OpenError;
use cache::survey::{Blocks, Found};
use cache::{FileHash, Filled};
use harness::exit::Failure;
use harness::mounts::disk::unusable;
use harness::output;
use net::clock::Clock;
use perf::units::Nanos;

use super::below;
use super::exports::{fileids, mib, name, origins, unreadable, walk};
use crate::args::cache::{Clean, Invalidate};

/// How long a process is waited for that has an order: it looks each second, and may be storing.
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

/// Leaves an order to the process that has the cache, and waits until it is carried out.
fn ordered(found: &Found, order: Order) -> Result<String, Failure> {
    let number = format!("{}-{:016x}", std::process::id(), distinct(found, order));
    let failed = |errno: rustix::io::Errno| unreadable(found, &errno.into());
    orders::leave(found.dir(), &number, order).map_err(failed)?;
    match net::runtime::block_on(is_done(found, &number)) {
        Ok(true) => Ok(format!("{}: done by the mount or proxy that has it\n", name(found))),
        Ok(false) => Err(Failure::environment(
            format!("{}: the process that has it has not done it within 120 s", name(found)),
            "wait: it is done when that has counted what is there and its disk answers",
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

/// The files that these paths name, or that are below them, with their exports, as far as anything
/// is stored of them.
fn files<'f>(
    all: &'f [Found],
    paths: &[PathBuf],
) -> Result<Vec<(&'f Found, BTreeSet<FileHash>)>, Failure> {
    let wanted = fileids(all, &below::all(paths)?)?;
    let of_each = all.iter().filter_map(|found| Some((found, wanted.get(&*found.folder)?)));
    of_each.map(|(found, wanted)| Ok((found, stored_of(found, wanted)?))).collect()
}

fn stored_of(found: &Found, wanted: &BTreeSet<u64>) -> Result<BTreeSet<FileHash>, Failure> {
    let mut files = BTreeSet::new();
    walk(found, Blocks::Unread, &mut |looked| {
        let is_wanted = looked.token().is_some_and(|token| wanted.contains(&token.fileid));
        files.extend(is_wanted.then_some(looked.name.file));
    })?;
    Ok(files)
}
