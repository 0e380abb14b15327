//! `nfskit mount`, and `mount.nfskit`: an NFS file system that any program can use.

mod args;
mod background;
pub(crate) mod helper;
pub(crate) mod inside;
mod notices;
mod reach;

use std::ffi::OsString;
use std::io;
use std::path::Path;

use client::error::Error;
use fuse::KernelCache;
use fuse::session::{Covered, Ended, Flags, Mount, Options, Unmounted, check, mounted, remount};
use harness::exit::Failure;
use harness::mounts::settings::Settings;
use harness::mounts::{disk, failures, metrics};
use harness::served;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use net::clock::Clock;
use perf::words::counted;

pub(crate) use self::args::Args;
use self::notices::Notices;
use self::reach::Reached;

/// Runs the command.
pub(crate) fn run(args: &Args, verbosity: Verbosity) -> Result<(), Failure> {
    run_with(args, verbosity, detached)
}

/// The arguments of the process that stays. What stands behind `--` is a place: the option that
/// makes it the one that stays comes first.
fn detached() -> Vec<OsString> {
    let mut line: Vec<OsString> = std::env::args_os().skip(1).collect();
    let command = line.iter().position(|word| word == "mount").map_or(0, |at| at + 1);
    line.insert(command, "--detached".into());
    line
}

/// Arguments with the whole path of DIR: the process that stays leaves the directory in which it
/// was started, and others find its mount by its command line. DIR comes behind what is mounted.
fn placed(mut line: Vec<OsString>, dir: &Path) -> Vec<OsString> {
    let is_source = |word: &&OsString| word.to_string_lossy().contains(":/");
    let sources = line.iter().take_while(|word| !is_source(word)).count();
    let place = line.iter().skip(sources).position(|word| word.as_os_str() == dir.as_os_str());
    if let (Some(place), Ok(whole)) = (place, std::path::absolute(dir)) {
        line[sources + place] = whole.into();
    }
    line
}

/// The same; `again` is how to run it once more, as the process that stays.
fn run_with(
    args: &Args,
    verbosity: Verbosity,
    again: impl FnOnce() -> Vec<OsString>,
) -> Result<(), Failure> {
    let settings = settings(args)?;
    if settings.remount {
        return remount(&args.dir, &settings.flags).map_err(failures::directory);
    }
    if args.background && !args.detached && !args.foreground {
        return background::start(placed(again(), &args.dir));
    }
    let notices = Notices::new(verbosity);
    let at = check(&args.dir, settings.nonempty).map_err(failures::directory)?;
    net::runtime::block_on_threads(served::worker_threads(), async {
        serve(&settings, &at, &notices, args.detached).await
    })
    .map_err(Failure::resources)?
}

/// Only looks whether arguments and directory are right (`mount -f`).
fn look(args: &Args) -> Result<(), Failure> {
    let settings = settings(args)?;
    if settings.remount {
        return mounted(&args.dir).map(drop).map_err(failures::directory);
    }
    check(&args.dir, settings.nonempty).map(drop).map_err(failures::directory)
}

fn settings(args: &Args) -> Result<Settings, Failure> {
    // Whoever mounts wants one answer to "is it mounted?", whatever the reason.
    let usage = |what: String| Failure::environment(what, "`nfskit mount --help`");
    let mut settings = Settings::of(&args.source).map_err(usage)?;
    for word in args.words() {
        settings.word(&word).map_err(usage)?;
    }
    settings.check().map_err(usage)?;
    settings.flags.allow_other |= rustix::process::geteuid().is_root();
    Ok(settings)
}

async fn serve(
    settings: &Settings,
    at: &Path,
    notices: &Notices,
    detached: bool,
) -> Result<(), Failure> {
    let clock = Clock::real();
    let mut interrupts = Interrupts::catch()?;
    let reached = tokio::select! {
        reached = reach::reach(&clock, settings, notices) => reached?,
        () = interrupts.next() => return Err(Failure::interrupted()),
    };
    let mount = begin(&clock, settings, at, &reached)?;
    if settings.kernel_dirty_max.is_some() && !mount.untuned().is_empty() {
        notices.warn("kernel_dirty_max has no effect: setting it takes root");
    }
    if let Some(listen) = settings.metrics {
        metrics::serve(&clock, listen, &reached.files)?;
    }
    if detached {
        background::detach()?;
        notices.detach();
    }
    announce(settings, at, &mount, &reached, notices);
    tokio::select! {
        () = mount.is_over() => notices.say("unmounted by somebody else"),
        () = interrupts.next() => notices.say("writing back and unmounting"),
    }
    let ended = tokio::select! {
        ended = mount.end(settings.grace) => ended,
        () = interrupts.next() => {
            mount.abandon();
            return Err(given_up(at));
        }
    };
    disk::end(&reached.files);
    let dropped_bytes = reached.files.write_behind().counters().dropped_bytes;
    report(at, settings, ended, dropped_bytes, notices)
}

/// Mounts what was reached.
fn begin(
    clock: &Clock,
    settings: &Settings,
    at: &Path,
    reached: &Reached,
) -> Result<Mount, Failure> {
    let all_are_one = settings.target.uid.is_some();
    let options = Options {
        flags: Flags { all_are_one, ..settings.flags.clone() },
        cache: settings.kernel_cache(),
        dirty_bytes_max: settings.kernel_dirty_max(),
        waiting_bytes_max: settings.waiting_bytes_max(),
        credential: reached.credential.clone(),
    };
    let mount = Mount::start(clock, reached.files.clone(), at, options);
    mount.map_err(failures::directory)
}

fn announce(settings: &Settings, at: &Path, mount: &Mount, reached: &Reached, notices: &Notices) {
    notices.say(&format!(
        "{} mounted on {} ({}; write policy {}, kernel cache {})",
        settings.flags.source,
        at.display(),
        reached.spoken,
        settings.policy,
        cache_of(settings, mount)
    ));
    notices.say("locks (flock, fcntl) hold on this host only: other clients do not see them");
    if let (Some(disk), Some(dir)) = (reached.files.disk(), &settings.disk) {
        let block_kib = disk.geometry().block_bytes() >> 10;
        let dir = dir.display();
        notices.say(&format!("blocks of {block_kib} KiB are cached in {dir} (cache)"));
    }
    if !mount.untuned().is_empty() && mount.writes_back() {
        notices.say(THROTTLED);
    }
}

const THROTTLED: &str = "the kernel throttles writers of this mount, and reads little ahead: \
    changing that takes root (max_bytes, strict_limit and read_ahead_kb in /sys/class/bdi)";

/// What the kernel's cache has become.
fn cache_of(settings: &Settings, mount: &Mount) -> &'static str {
    match settings.kernel_cache() {
        KernelCache::Writeback if mount.writes_back() => "writeback",
        KernelCache::Writeback | KernelCache::Writethrough => "writethrough",
        KernelCache::None => "none",
    }
}

fn given_up(at: &Path) -> Failure {
    Failure::check(
        format!("interrupted again: what was not yet written back of {} is lost", at.display()),
        "a longer wait: the first Ctrl-C writes everything back, as long as the server answers",
    )
}

fn report(
    at: &Path,
    settings: &Settings,
    ended: Ended,
    dropped_bytes: u64,
    notices: &Notices,
) -> Result<(), Failure> {
    let written = all_written(at, settings, &ended, dropped_bytes);
    match ended.unmounted {
        Unmounted::Cleanly => {}
        Unmounted::Lazily { open_files, .. } => notices.warn(&format!(
            "{} was in use ({}): taken out of the tree, and who still uses it gets errors from now \
             on",
            at.display(),
            counted(open_files, "open file")
        )),
        Unmounted::Not(cause) => {
            let stays = not_unmounted(at, &cause);
            return Err(match written {
                Ok(()) => stays,
                Err(lost) => lost.and(stays.what()),
            });
        }
    }
    written?;
    notices.say(&farewell(dropped_bytes));
    Ok(())
}

/// Programs have got the errors of what was given up.
fn farewell(dropped_bytes: u64) -> String {
    match dropped_bytes {
        0 => "unmounted; everything is written".to_owned(),
        lost => format!(
            "unmounted; {lost} bytes could not be written since it was mounted, which programs got \
             as errors; all else is written"
        ),
    }
}

/// Whether what programs have written is on the server.
fn all_written(
    at: &Path,
    settings: &Settings,
    ended: &Ended,
    dropped_bytes: u64,
) -> Result<(), Failure> {
    let losses = ended.losses.as_ref().ok_or_else(|| out_of_time(settings))?;
    if let Some(first) = losses.first() {
        return Err(lost(losses.len(), &first.error, dropped_bytes));
    }
    if matches!(ended.unmounted, Unmounted::Lazily { were_written: true, .. }) {
        return Err(Failure::check(
            "programs wrote to the last moment: what they wrote then may be lost",
            format!("ending them before the mount: fuser -m {} lists them", at.display()),
        ));
    }
    Ok(())
}

fn not_unmounted(at: &Path, cause: &io::Error) -> Failure {
    let at = at.display();
    let is_covered = cause.get_ref().is_some_and(|cause| cause.is::<Covered>());
    let advice = match is_covered {
        true => format!("umount {at}, which takes that one away, and then umount -l {at}"),
        false => format!("umount -l {at}"),
    };
    Failure::environment(format!("{at} could not be unmounted: {cause}"), advice)
}

fn out_of_time(settings: &Settings) -> Failure {
    let grace = settings.grace;
    Failure::check(
        format!("not everything could be written back within {grace}: the rest is lost"),
        "a longer --grace, and see whether the server is alive",
    )
}

/// What no program has been given the error of. The bytes are those of all errors.
fn lost(files: usize, why: &Error, bytes: u64) -> Failure {
    let files = counted(files, "file");
    Failure::check(
        format!("{files} could not be written whole, and no program has got this error: {why}"),
        format!("the server's log and its disk ({bytes} bytes are lost since it was mounted)"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_given_up_is_not_written() {
        assert_eq!(farewell(0), "unmounted; everything is written");
        let given_up = farewell(3_100_000);
        assert!(given_up.contains("3100000 bytes could not be written"), "{given_up}");
        assert!(!given_up.contains("everything"), "{given_up}");
    }

    #[test]
    fn the_process_that_stays_has_the_whole_path_of_its_directory() {
        let line = ["mount", "-o", "mnt", "nfs://server/x", "mnt", "--metrics", "127.0.0.1:9049"];
        let placed = placed(line.map(OsString::from).into(), Path::new("mnt"));
        let whole = std::env::current_dir().unwrap().join("mnt");
        assert_eq!((placed[2].to_str(), &placed[4]), (Some("mnt"), &whole.into_os_string()));
        assert_eq!(placed.len(), line.len());
    }
}
