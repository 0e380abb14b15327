//! What changes a cache: in place if nobody has it, else by an order to the mount that has it.

use std::collections::BTreeSet;
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

use super::{mib, name, origins, seen, unreadable};
use crate::args::cache::{Clean, Files, Invalidate};

/// How long a mount is waited for that has an order: it looks each second, and may be storing.
const LOOKS_MAX: u32 = 100;
const LOOK: Nanos = Nanos::from_millis(100);

pub(super) fn invalidate(args: &Invalidate) -> Result<(), Failure> {
    let mut text = String::new();
    for found in origins(&args.dir)? {
        let orders: Vec<Order> = match args.paths.is_empty() {
            true => vec![Order::Forget(None)],
            false => {
                let files = files(&found, &args.paths)?;
                files.into_iter().map(|file| Order::Forget(Some(file))).collect()
            }
        };
        for order in orders {
            text += &done(&args.dir, &found, order)?;
        }
    }
    output::print(if text.is_empty() { "nothing of it is stored\n" } else { &text })
}

pub(super) fn clean(args: &Clean) -> Result<(), Failure> {
    let mut text = String::new();
    for found in origins(&args.dir)? {
        text += &done(&args.dir, &found, Order::Clean(args.to))?;
    }
    output::print(&text)
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
            format!("{}: the mount that has it has not done it within 10 s", name(found)),
            "wait: it is done when its disk answers, or when it ends",
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
    for found in origins(&args.dir)? {
        let files = files(&found, &args.paths)?;
        count += files.len();
        set_pins(&found, files, is_pinned).map_err(|errno| not_pinned(&found, errno))?;
    }
    if count == 0 {
        return Err(Failure::environment(
            "nothing is stored of these files",
            "nfskit cache warm PATH, and then again",
        ));
    }
    let how = if is_pinned { "pinned" } else { "not pinned any more" };
    output::print(&format!("{count} files are {how}\n"))
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
    match errno {
        rustix::io::Errno::NOSPC => Failure::environment(
            format!("more than {} files cannot be pinned, or the disk is full", orders::PINS_MAX),
            "unpin others",
        ),
        errno => unreadable(found, &errno.into()),
    }
}

/// The files of an export that these paths name, as far as anything is stored of them.
fn files(found: &Found, paths: &[PathBuf]) -> Result<BTreeSet<FileHash>, Failure> {
    let mut wanted = BTreeSet::new();
    for path in paths {
        wanted.insert(seen(path)?.fileid);
    }
    let mut files = BTreeSet::new();
    found
        .walk(false, &mut |looked| {
            if looked.token().is_some_and(|token| wanted.contains(&token.fileid)) {
                files.insert(looked.name.file);
            }
        })
        .map_err(|cause| unreadable(found, &cause))?;
    Ok(files)
}
