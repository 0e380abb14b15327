//! What changes a cache: in place if nobody has it, else by an order to the process that has it.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use cache::offline::carry_out;
use cache::orders::{Command, Order};
use cache::place::OpenError;
use cache::survey::{Blocks, Found};
use cache::{FileHash, Filled};
use harness::exit::Failure;
use harness::mounts::disk::unusable;
use harness::output;
use harness::signals::Interrupts;
use net::clock::Clock;
use perf::units::Nanos;
use rustix::io::Errno;

use super::below;
use super::exports::{fileids, mib, name, origins, unreadable, walk};
use crate::args::cache::{Clean, Invalidate};

/// How long a process is waited for that has an order: it looks each second, and may be storing.
const LOOKS_MAX: u32 = 1200;
const LOOK: Nanos = Nanos::from_millis(100);

/// What is wanted of one export.
type Orders = Vec<Order>;

pub(super) fn invalidate(args: &Invalidate) -> Result<(), Failure> {
    let all = origins(&args.dir)?;
    let text = all_done(&args.dir, &forget(&all, &args.paths)?)?;
    output::print(if text.is_empty() { "nothing of it is stored\n" } else { &text })
}

/// All that is stored of the exports, or of these files.
fn forget<'f>(all: &'f [Found], paths: &[PathBuf]) -> Result<Vec<(&'f Found, Orders)>, Failure> {
    if paths.is_empty() {
        return Ok(all.iter().map(|found| (found, vec![Order::Forget(None)])).collect());
    }
    let of_export = |(found, files): (_, BTreeSet<_>)| {
        let orders: Orders = files.into_iter().map(|file| Order::Forget(Some(file))).collect();
        (!orders.is_empty()).then_some((found, orders))
    };
    Ok(files(all, paths)?.into_iter().filter_map(of_export).collect())
}

pub(super) fn clean(args: &Clean) -> Result<(), Failure> {
    let all = origins(&args.dir)?;
    let orders: Vec<_> = all.iter().map(|found| (found, vec![Order::Clean(args.to)])).collect();
    output::print(&all_done(&args.dir, &orders)?)
}

fn all_done(dir: &Path, orders: &[(&Found, Orders)]) -> Result<String, Failure> {
    orders.iter().map(|(found, orders)| done(dir, found, orders)).collect()
}

/// Sees to it that orders are carried out; says by whom.
fn done(dir: &Path, found: &Found, orders: &[Order]) -> Result<String, Failure> {
    match carried_out(dir, found, orders)? {
        Some(text) => Ok(text),
        None => ordered(dir, found, orders),
    }
}

/// Carries orders out here. None: another process has the folder.
fn carried_out(dir: &Path, found: &Found, orders: &[Order]) -> Result<Option<String>, Failure> {
    match carry_out(dir, &found.folder, orders) {
        Ok(Filled { bytes, files }) => {
            let (name, mib) = (name(found), mib(bytes));
            Ok(Some(format!("{name}: {files} local files of {mib} MiB removed\n")))
        }
        Err(OpenError::Busy { .. }) => Ok(None),
        Err(error) => Err(unusable(error)),
    }
}

/// Leaves orders to the process that has the cache, and waits until all are carried out.
fn ordered(dir: &Path, found: &Found, orders: &[Order]) -> Result<String, Failure> {
    let waited = async {
        let mut interrupts = Interrupts::catch()?;
        let mut command = left(found, orders).map_err(|errno| unreadable(found, &errno.into()))?;
        interrupts.or(waited(dir, found, orders, &mut command)).await
    };
    net::runtime::block_on(waited).map_err(Failure::resources)?
}

fn left(found: &Found, orders: &[Order]) -> Result<Command, Errno> {
    let mut command = Command::begin(found.dir())?;
    orders.iter().try_for_each(|order| command.leave(*order))?;
    Ok(command)
}

/// Waits until all are carried out, for none of them longer than its time after another. Who has
/// the folder may be a command like this one, or end: then it is done here.
async fn waited(
    dir: &Path,
    found: &Found,
    orders: &[Order],
    command: &mut Command,
) -> Result<String, Failure> {
    let clock = Clock::real();
    let (mut left, mut looks) = (usize::MAX, 0);
    loop {
        match command.look() {
            0 => return Ok(format!("{}: done by the mount or proxy that has it\n", name(found))),
            fewer if fewer < left => (left, looks) = (fewer, 0),
            _ => looks += 1,
        }
        if let Some(text) = carried_out(dir, found, orders)? {
            return Ok(text);
        }
        if looks > LOOKS_MAX {
            return Err(Failure::environment(
                format!("{}: the process that has it has done nothing for 120 s", name(found)),
                "the same again, when that has counted what is there and its disk answers",
            ));
        }
        clock.sleep(LOOK).await;
    }
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
