//! The write log of a server: which it may have, and when it ends the server.

use std::path::{Path, PathBuf};

use harness::exit::Failure;
use harness::exports::Spec;
use harness::{output, served};
use server::store::dir::write_log::{self, GivenUp};
use server::store::dir::{DirStore, leads_to};
use server::store::sim::LogSpec;

use super::stores::{EMULATED, Kind};
use crate::args::{LogFailure, MetadataSync, Serve};

/// A log belongs to a directory, and where its clients cannot write.
pub(super) fn check_write_log(args: &Serve, kind: Kind) -> Result<(), Failure> {
    if args.write_log.is_empty() {
        return Ok(());
    }
    let Some(store) = &args.store else {
        let what = "--write-log is for a single DIR, which --export only names";
        return Err(Failure::usage(what, "nfskit serve DIR --export /=OPTIONS --write-log FILE"));
    };
    let what = match kind {
        Kind::Emulated(_) => return check_emulated_log(args, store),
        Kind::Directories => return check_directory_log(args, store),
        Kind::Origin => "is stable where its origin says so",
        Kind::Memory => "has no stable storage",
    };
    Err(Failure::usage(format!("{store} {what}"), "a directory, or no --write-log"))
}

fn check_directory_log(args: &Serve, store: &str) -> Result<(), Failure> {
    if let Some(log) = args.write_log.iter().find(|log| is_emulated(log)) {
        let what = format!("{} is an emulated disk: nothing is stable there", log.display());
        return Err(Failure::usage(what, "a file, or sim:hdd in the place of the directory"));
    }
    if args.metadata_sync == Some(MetadataSync::Never) {
        let what = "--write-log promises what --metadata-sync never gives up";
        return Err(Failure::usage(what, "one of the two"));
    }
    log_in_export(args, Path::new(store)).map_or(Ok(()), |what| {
        Err(Failure::environment(what, "a place outside of it, such as /var/lib/nfskit"))
    })
}

/// Why a directory cannot be exported, if a log can be reached through it.
pub(super) fn log_in_export(args: &Serve, dir: &Path) -> Option<String> {
    let log = args.write_log.iter().find(|log| leads_to(dir, log))?;
    let (log, dir) = (log.display(), dir.display());
    Some(format!("the write log {log} lies in {dir}, where clients could change it"))
}

/// Warns of a directory that names a log and is served without, because it is not believed.
pub(super) fn named_in_vain(Spec { path, .. }: &Spec) -> Option<String> {
    let logs = write_log::named_in_vain(path)?;
    let logs: Vec<_> = logs.iter().map(|log| log.display().to_string()).collect();
    Some(format!(
        "{} names a write log ({}) that is not known to be its own, and is served without: another \
         user may have set that, or the directory is a copy; setfattr -x user.nfskit.write_log \
         ends this warning",
        path.display(),
        logs.join(" and ")
    ))
}

/// Warns of logs that are of another size than `--write-log-size` says.
pub(super) fn other_sizes(args: &Serve, store: &DirStore) -> Vec<String> {
    let Some(wanted) = args.write_log_size else { return Vec::new() };
    // Of a device all is taken, and of a file whole blocks.
    let is_other = |(log, bytes): &&(PathBuf, u64)| log.is_file() && wanted >> 12 != bytes >> 12;
    let sentence = |(log, bytes): &(PathBuf, u64)| {
        format!(
            "the write log {} is of {} MiB: --write-log-size is for a new one (nfskit log drain, \
             remove it, and start again)",
            log.display(),
            bytes >> 20
        )
    };
    store.logs().iter().filter(is_other).map(sentence).collect()
}

/// Warns of logs that a loss of power takes with the disk of their file system.
pub(super) fn above_memory(store: &DirStore) -> Vec<String> {
    let sentence = |(log, _): &(PathBuf, u64)| {
        write_log::is_above_memory(log).then(|| {
            format!(
                "the write log {} lies in memory, by the disk or the overlay that its file system \
                 stands on: a loss of power takes it with what it holds",
                log.display()
            )
        })
    };
    store.logs().iter().filter_map(sentence).collect()
}

fn is_emulated(log: &Path) -> bool {
    log.to_string_lossy().starts_with(EMULATED)
}

/// An emulated store has one log, on an emulated disk, in the same bounds as one in a file has.
fn check_emulated_log(args: &Serve, store: &str) -> Result<(), Failure> {
    let [log] = &args.write_log[..] else {
        let what = format!("{store} has one log at most");
        return Err(Failure::usage(what, "--write-log sim:nvram"));
    };
    if !is_emulated(log) {
        let what = format!("{store} is not stable, and so has no log in a file");
        return Err(Failure::usage(what, "an emulated log: --write-log sim:nvram"));
    }
    if !served::LOG_BYTES.contains(&args.new_log_bytes()) {
        let what = format!("a log of {} bytes", args.new_log_bytes());
        return Err(Failure::usage(what, "16M to 1G: --write-log-size 64M"));
    }
    Ok(())
}

/// The log of an emulated store, on an emulated disk of its own.
pub(super) fn emulated_log(args: &Serve) -> Result<Option<LogSpec>, Failure> {
    let Some(log) = args.write_log.first() else { return Ok(None) };
    let text = log.to_string_lossy();
    let disk = text.strip_prefix(EMULATED).unwrap_or_default().parse().map_err(|cause| {
        Failure::usage(format!("--write-log {text}: {cause}"), "--write-log sim:nvram")
    })?;
    Ok(Some(LogSpec { disk, bytes: args.new_log_bytes() }))
}

/// Waits for a write log that cannot be written, if there is one and that is to end the server.
pub(super) async fn stopped(log_failure: LogFailure, logged: Option<&DirStore>) -> Failure {
    let Some(store) = logged else { return std::future::pending().await };
    let given_up = store.log_given_up().await;
    let lost = lost(&store.log_failure().unwrap_or_default(), given_up);
    if log_failure == LogFailure::Degrade {
        output::say(format_args!("{lost}{}", goes_on(given_up)));
        return std::future::pending().await;
    }
    Failure::environment(
        lost,
        match given_up {
            GivenUp::InPlace => {
                "another device for a new log, no --write-log, or --log-failure degrade"
            }
            GivenUp::Needed => {
                "keep the log: the next start with it brings what can be read of it to its place"
            }
        },
    )
}

fn lost(why: &str, given_up: GivenUp) -> String {
    let outcome = match given_up {
        GivenUp::InPlace => "what it held is in its place",
        GivenUp::Needed => "not all that it holds could be brought to its place",
    };
    format!("the write log cannot be written ({why}); {outcome}")
}

/// How it goes on without the log.
fn goes_on(given_up: GivenUp) -> &'static str {
    match given_up {
        GivenUp::InPlace => ", and from now on files are synced, as without a log",
        GivenUp::Needed => {
            ": keep it for the next start; calls of files that cannot be synced fail"
        }
    }
}
