//! `nfskit log`: write logs that no server has.

use std::path::{Path, PathBuf};

use harness::exit::Failure;
use harness::served::CommitMode;
use harness::verbosity::Verbosity;
use harness::write_back::{self, KEEP_A_COPY};
use harness::{origin, output, recovery, served, unservable, unused};
use perf::words::counted;
use server::store::dir::write_log::{self, Inspection, LogError, LogTrouble, Recovered, WriteLog};
use server::store::dir::{DirOptions, DirStore};
use wire::show::Hex;

use crate::args::log::{Drain, Inspect, Log, Replay, Status, Verify};

/// Runs the command.
pub(crate) fn run(args: &Log, verbosity: Verbosity) -> Result<(), Failure> {
    let text = match args {
        Log::Inspect(Inspect { files }) => {
            summary(&write_log::inspect(files).map_err(|error| unusable(files, error))?)
        }
        Log::Verify(args) => verify(args)?,
        Log::Replay(args) => replay(args)?,
        Log::Drain(args) => drain(args)?,
        Log::Status(Status { file }) => write_back::status(file)?,
    };
    output::print_text(verbosity, [], || text)
}

fn verify(Verify { files }: &Verify) -> Result<String, Failure> {
    const SALVAGE: &str =
        "keep a copy of it; nfskit log replay --salvage brings what is whole to its place";
    let inspection = write_log::inspect(files).map_err(|error| match error {
        LogError::Damaged { .. } if has_log_of_proxy(files) => Failure::check(error, KEEP_A_COPY),
        LogError::Damaged { .. } => Failure::check(error, SALVAGE),
        error => unusable(files, error),
    })?;
    let Inspection { frames, frames_bytes, unreadable, .. } = inspection;
    let unread = unreadable.map_or_else(String::new, |of| recovery::unread(&of));
    Ok(format!("{unread}whole: {frames} frames of {frames_bytes} bytes\n"))
}

fn unusable(files: &[PathBuf], error: LogError) -> Failure {
    let advice = match error.kind() {
        LogTrouble::Damaged | LogTrouble::WrongLength if has_log_of_proxy(files) => KEEP_A_COPY,
        kind => unservable::about_log(kind),
    };
    Failure::environment(error, advice)
}

/// Of a proxy's log nothing is salvaged: what is missing may be what the rest was built on.
fn has_log_of_proxy(files: &[PathBuf]) -> bool {
    files.iter().any(|file| write_log::begins_as_of_proxy(file))
}

/// Opens the directory with its log, which brings to its place what that holds.
fn replayed(
    files: &[PathBuf],
    dir: &Path,
    salvages: bool,
) -> Result<(DirStore, Recovered), Failure> {
    // A file that is there is looked at with its directory. What is not there would be made, and so
    // would one on a blank device.
    let is_there = |file: &PathBuf| if salvages { file.exists() } else { file.is_file() };
    // A proxy's has no directory, whatever stands behind it.
    if !files.iter().all(is_there) || has_log_of_proxy(files) {
        write_log::inspect(files).map_err(|error| unusable(files, error))?;
    }
    let log = WriteLog {
        salvages,
        progress: Some(recovery::progress),
        ..WriteLog::new(files.to_vec(), 0)
    };
    let options =
        DirOptions { write_log: Some(log), ..served::dir_options(CommitMode::Concurrent) };
    harness::descriptors::raise_limit();
    let store = DirStore::open(dir, &options).map_err(|cause| {
        let what = format!("nothing is brought to its place in {}: {cause}", dir.display());
        Failure::environment(what, unservable::about_store(&cause))
    })?;
    let recovered = store.recovered().cloned().unwrap_or_default();
    Ok((store, recovered))
}

fn replay(args: &Replay) -> Result<String, Failure> {
    let (files, dir) = args.place()?;
    let (_, recovered) = replayed(files, dir, args.damaged.salvage)?;
    recovery::brought(&recovered, dir, "keeps its log").map(line)
}

fn drain(args: &Drain) -> Result<String, Failure> {
    let ((files, dir), salvage) = (args.place()?, args.damaged.salvage);
    if origin::is_origin(&dir.to_string_lossy()) {
        return write_back::drain(files, &dir.to_string_lossy(), salvage, args.limit);
    }
    unused::refuse([(args.limit.is_some(), "--for")], "the log of a proxy")?;
    let (store, recovered) = replayed(files, dir, salvage)?;
    net::runtime::block_on(store.end_log())
        .map_err(Failure::resources)?
        .map_err(|why| Failure::environment(why, "the same again, or its server with the log"))?;
    recovery::brought(&recovered, dir, "needs no log any more").map(line)
}

fn line(text: String) -> String {
    text + "\n"
}

fn summary(found: &Inspection) -> String {
    let id = Hex(&found.id);
    let end = match (found.is_clean, found.is_torn) {
        (true, _) => "ended in order",
        (false, true) => "ended in the middle of a write that was not acknowledged",
        (false, false) => "did not end in order",
    };
    let doubts = if found.has_doubts { "; a sync of a file had failed" } else { "" };
    let logs = if found.logs == 1 { String::new() } else { format!(" in {} logs", found.logs) };
    let Inspection { size_bytes, frames, frames_bytes, sequence, files, .. } = found;
    let needed = recovery::records_of(found.records, found.attributes, found.bytes);
    format!(
        "id       {id}\nsize     {size_bytes} bytes{logs}\n\
         frames   {frames} of {frames_bytes} bytes, the last is number {sequence}\n\
         needed   {needed} to {}\n\
         server   {end}{doubts}\n",
        counted(*files, "file"),
    )
}
