//! Reads files, so that the cache of their mount has them.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use fuse::question::{has_all, has_cache};
use fuse::session::is_mounted;
use harness::exit::Failure;
use harness::output::{self, Bars};
use harness::verbosity::Verbosity;
use net::clock::Clock;
use perf::printable::printable;
use perf::units::Nanos;
use perf::words::counted;
use rustix::fs::{Advice, OFlags};

use super::below::{self, DEPTH_MAX};

/// Bytes that are read at once: what a read of the server has at most.
const PIECE_BYTES: usize = 1 << 20;

#[derive(Default)]
struct Done {
    files: Vec<PathBuf>,
    bytes: u64,
    failed: Vec<String>,
}

pub(super) fn run(paths: &[PathBuf], verbosity: Verbosity) -> Result<(), Failure> {
    // One that cannot be looked at is reported with those that cannot be read.
    if let Some(path) = paths.iter().find(|path| is_mounted(path).is_ok_and(|is_ours| !is_ours)) {
        return Err(Failure::environment(
            format!("{} is in no mount of nfskit: no cache would store it", path.display()),
            "a path below the directory of `nfskit mount URL DIR --cache CACHEDIR`; \
             `findmnt -t fuse.nfskit` lists what is mounted",
        ));
    }
    if let Some(path) = paths.iter().find(|path| has_cache(path) == Some(false)) {
        return Err(Failure::environment(
            format!("the mount that {} is in has no cache", path.display()),
            "`nfskit mount URL DIR --cache CACHEDIR`; that of a proxy is filled by whoever reads \
             the files through it",
        ));
    }
    if let Some(path) = paths.iter().find(|path| path.is_symlink()) {
        return Err(Failure::environment(
            format!("{} is a symbolic link, and links are not followed", path.display()),
            "what it leads to",
        ));
    }
    settle(paths)?;
    let (mut done, mut bars) = (Done::default(), Bars::new(verbosity));
    for (number, path) in paths.iter().enumerate() {
        let share = number as f64 / paths.len() as f64;
        walk(path, DEPTH_MAX, &mut done, &mut |doing: &str| bars.show_as("warming", doing, share));
    }
    bars.clear();
    let Done { files, bytes, failed } = done;
    output::print(&format!("{} of {bytes} bytes read\n", counted(files.len() as u64, "file")))?;
    if let Some(first) = failed.first() {
        return Err(Failure::environment(
            format!("{} could not be read, the first is {first}", failed.len()),
            match files.is_empty() {
                true => "the path of a file or directory that this user may read",
                false => "these again, as a user who may read them: the others were read",
            },
        ));
    }
    // At last: what was read first may have had to make room.
    let without: Vec<_> = files.iter().filter(|path| has_all(path) == Some(false)).collect();
    let Some(first) = without.first() else { return Ok(()) };
    let (count, first) = (without.len(), printable(first.as_os_str().as_bytes()));
    Err(Failure::environment(
        format!("{count} of {} are not in the cache as a whole, the first is {first}", files.len()),
        "mount with a larger --cache-size or --cache-files, make room on the cache's disk, or warm \
         fewer; what changes meanwhile is not stored",
    ))
}

/// A mount stores nothing of a state of a file that may be followed by another that looks the same:
/// it has to know it for a while, longer where the server's times are whole seconds. All are looked
/// at first, so that this is one wait.
fn settle(paths: &[PathBuf]) -> Result<(), Failure> {
    let (mut wait, now) = (Nanos::ZERO, Clock::real().since_1970().as_secs().cast_signed());
    // What cannot be looked at is reported when it cannot be read.
    for path in below::readable(paths).0 {
        let Ok(found) = std::fs::symlink_metadata(path) else { continue };
        wait = wait.max(settles_within((found.ctime(), found.ctime_nsec()), now));
    }
    let sleep = async move { Clock::real().sleep(wait).await };
    net::runtime::block_on(sleep).map_err(Failure::resources)
}

/// States that are older are sure, however wrong one of the clocks goes.
const OLD_SECS: i64 = 2 * 3600;

/// How long a state that changed last at `ctime` is looked at before it is sure.
fn settles_within((secs, nanos): (i64, i64), now: i64) -> Nanos {
    match nanos {
        _ if now.saturating_sub(secs) > OLD_SECS => Nanos::ZERO,
        0 => Nanos::from_millis(2100),
        _ => Nanos::from_millis(100),
    }
}

/// Symbolic links are left where they lead: it may be another file system.
fn walk(path: &Path, depth: usize, done: &mut Done, show: &mut dyn FnMut(&str)) {
    if let Err(cause) = tried(path, depth, done, show) {
        done.failed.push(format!("{}: {cause}", printable(path.as_os_str().as_bytes())));
    }
}

fn tried(path: &Path, depth: usize, done: &mut Done, show: &mut dyn FnMut(&str)) -> io::Result<()> {
    let found = std::fs::symlink_metadata(path)?;
    if found.is_dir() && depth > 0 {
        below::of(path)?.iter().for_each(|path| walk(path, depth - 1, done, show));
    } else if found.is_file() {
        show(&printable(path.as_os_str().as_bytes()));
        done.bytes += read(path, found.size())?;
        done.files.push(path.to_owned());
    }
    Ok(())
}

fn read(path: &Path, size: u64) -> io::Result<u64> {
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or(0);
    let mut file = File::options().read(true).custom_flags(flags).open(path)?;
    // What the kernel has of it already would never reach the mount.
    rustix::fs::fadvise(&file, 0, None, Advice::DontNeed).ok();
    let mut room = vec![0; PIECE_BYTES.min(usize::try_from(size).unwrap_or(PIECE_BYTES)).max(1)];
    let mut bytes = 0;
    loop {
        match file.read(&mut room) {
            Ok(0) => return Ok(bytes),
            Ok(count) => bytes += count as u64,
            Err(cause) if cause.kind() == io::ErrorKind::Interrupted => {}
            Err(cause) => return Err(cause),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_just_changed_is_looked_at_for_a_while_before_it_is_read() {
        let within = |secs, nanos| settles_within((secs, nanos), 10_000);
        assert_eq!(within(9_000, 1), Nanos::from_millis(100));
        assert_eq!(within(9_000, 0), Nanos::from_millis(2100), "whole seconds");
        assert_eq!(within(20_000, 1), Nanos::from_millis(100), "its clock is ahead");
        assert_eq!(within(1_000, 0), Nanos::ZERO);
    }
}
