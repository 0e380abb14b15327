//! `nfskit log`: write logs that no server has.

use std::fmt::Write;

use harness::exit::Failure;
use harness::output;
use harness::served;
use harness::served::CommitMode;
use server::store::dir::DirOptions;
use server::store::dir::write_log::{self, Inspection, LogError, Recovered, WriteLog};

use crate::args::log::{Drain, Inspect, Log, Verify};

/// Runs the command.
pub(crate) fn run(args: &Log) -> Result<(), Failure> {
    match args {
        Log::Inspect(Inspect { file }) => {
            output::print(&told(&write_log::inspect(file).map_err(unusable)?))
        }
        Log::Verify(Verify { file }) => match write_log::inspect(file) {
            Ok(inspection) => {
                let Inspection { frames, frames_bytes, .. } = inspection;
                output::print(&format!("whole: {frames} frames of {frames_bytes} bytes\n"))
            }
            Err(error @ LogError::Damaged { .. }) => {
                Err(Failure::check(error, "keep a copy of it; its server does not start with it"))
            }
            Err(error) => Err(unusable(error)),
        },
        Log::Drain(args) => drain(args),
    }
}

fn unusable(error: LogError) -> Failure {
    Failure::environment(error, "the log of a server that has ended, as given to --write-log")
}

fn drain(Drain { file, dir }: &Drain) -> Result<(), Failure> {
    // It would be made, and would be empty.
    write_log::inspect(file).map_err(unusable)?;
    let log = WriteLog { file: file.clone(), bytes: 0, boot: None };
    let options =
        DirOptions { write_log: Some(log), ..served::dir_options(CommitMode::Concurrent) };
    let store = served::open(dir, &options).map_err(served::cannot_open)?;
    let recovered = store.recovered().unwrap_or_default();
    net::runtime::block_on(store.end_log())
        .map_err(|cause| Failure::environment(cause, "raise the limit of open files"))?
        .map_err(|why| Failure::environment(why, "the same again, or its server with the log"))?;
    output::print(&format!("{}; {} needs no log any more\n", done(&recovered), dir.display()))
}

/// What was done with what a log held.
pub(crate) fn done(recovered: &Recovered) -> String {
    let Recovered { files, records, bytes, gone, changed, was_running } = *recovered;
    if files == 0 {
        return "the write log held nothing that was not in its place".to_owned();
    }
    if was_running {
        return format!("{files} files of the write log synced: the machine was not switched off");
    }
    let mut text = format!("{records} stable writes of {bytes} bytes to {files} files done again");
    if gone > 0 {
        write!(text, ", of which {gone} files are gone").expect("a String takes everything");
    }
    if changed > 0 {
        write!(
            text,
            "; {changed} files had been changed after their last stable write: by UNSTABLE \
             writes, or by programs here, whose bytes may be overwritten"
        )
        .expect("a String takes everything");
    }
    text
}

fn told(found: &Inspection) -> String {
    let id: String = found.id.iter().map(|byte| format!("{byte:02x}")).collect();
    let end = match (found.is_clean, found.is_torn) {
        (true, _) => "ended in order",
        (false, true) => "ended in the middle of a write that nobody was answered",
        (false, false) => "did not end in order",
    };
    let doubts = if found.has_doubts { "; a sync of a file had failed" } else { "" };
    format!(
        "id       {id}\nsize     {} bytes\nframes   {} of {} bytes, the last is number {}\n\
         needed   {} stable writes of {} bytes to {} files\nserver   {end}{doubts}\n",
        found.size_bytes,
        found.frames,
        found.frames_bytes,
        found.sequence,
        found.records,
        found.bytes,
        found.files,
    )
}
