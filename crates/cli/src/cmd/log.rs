//! `nfskit log`: write logs that no server has.

use std::path::Path;

use harness::exit::Failure;
use harness::output;
use harness::served;
use harness::served::CommitMode;
use perf::words::counted;
use server::store::dir::write_log::{self, Inspection, LogError, Recovered, WriteLog};
use server::store::dir::{DirOptions, DirStore};

use crate::args::log::{Drain, Inspect, Log, Place, Replay, Status, Verify};
use crate::{origin, recovery};

/// Runs the command.
pub(crate) fn run(args: &Log) -> Result<(), Failure> {
    match args {
        Log::Inspect(Inspect { files }) => {
            output::print(&summary(&write_log::inspect(files).map_err(unusable)?))
        }
        Log::Verify(args) => verify(args),
        Log::Replay(args) => replay(args),
        Log::Drain(Drain { place }) if origin::is_origin(&place.dir.to_string_lossy()) => {
            crate::write_back::drain(place)
        }
        Log::Drain(args) => drain(args),
        Log::Status(Status { file }) => crate::write_back::status(file),
    }
}

fn verify(Verify { files }: &Verify) -> Result<(), Failure> {
    const SALVAGE: &str =
        "keep a copy of it; nfskit log replay --salvage brings what is whole to its place";
    let inspection = write_log::inspect(files).map_err(|error| match error {
        LogError::Damaged { .. } => Failure::check(error, SALVAGE),
        error => unusable(error),
    })?;
    let Inspection { frames, frames_bytes, .. } = inspection;
    output::print(&format!("whole: {frames} frames of {frames_bytes} bytes\n"))
}

fn unusable(error: LogError) -> Failure {
    let error = error.to_string();
    let advice = advice(&error);
    Failure::environment(error, advice)
}

/// A directory that cannot be served, by what its store says: because of its log, or otherwise.
pub(crate) fn cannot_open(why: String) -> Failure {
    if !why.contains("write log") {
        return served::cannot_open(why);
    }
    let advice = advice(&why);
    Failure::environment(why, advice)
}

/// What to do about a log that is refused, by what the store says of it.
fn advice(why: &str) -> &'static str {
    let known = ADVICE.iter().find(|(words, _)| words.iter().any(|word| why.contains(word)));
    known.map_or("nfskit log inspect FILE tells what a write log holds", |(_, advice)| advice)
}

const ADVICE: [(&[&str], &str); 17] = [
    (&["in memory"], "a place on a disk, such as /var/lib/nfskit, or a block device"),
    (&["is of 16 MiB to 1 GiB", "takes 16 MiB at least"], "--write-log-size of 16M to 1G"),
    (&["No space left"], "a disk with room for all of the log, or a smaller --write-log-size"),
    (&["leads nowhere"], "the path of the log itself"),
    (&["that is no log"], "another path for the log, or that file moved away"),
    (
        &["belongs to another user", "may be written to by others"],
        "a log that was made by this user, in a folder of its own; one that others may write to is \
         not believed",
    ),
    (&["cannot be made"], "a folder that is there, and in which this user may make files"),
    (&["Permission denied"], "as the user who has the log, or as root"),
    (&["No such file"], "the log by its name, as nfskit serve --write-log had it"),
    (
        &["kernel's handles"],
        "as root, or with the capability CAP_DAC_READ_SEARCH, on a file system that has handles, \
         such as ext4, xfs or btrfs",
    ),
    (&["attributes that are synced"], "without --metadata-sync never"),
    (&["cannot remember it"], "a file system with user.* attributes, such as ext4, xfs or btrfs"),
    (&["another server has it", "in use"], "its server ended first, or another log"),
    (
        &["had the write log", "another directory", "another server or directory"],
        "--write-log with the log that this directory had; nfskit log drain LOG DIR brings what a \
         log holds to its place, after which the directory needs none; if it is lost for good, \
         setfattr -x user.nfskit.write_log DIR",
    ),
    (
        &["damaged", "checksum", "was made with"],
        "a copy of it first; then nfskit log replay --salvage LOG DIR brings what is whole of it \
         to its place",
    ),
    (
        &["not a write log", "neither a file nor", "Is a directory"],
        "the log by its name, as its server had it; where a new one is to be made, a name that \
         nothing has, or a blank block device",
    ),
    (&["all are needed", "given twice"], "--write-log with each of the directory's logs, once"),
];

/// Opens the directory with its log, which brings to its place what that holds.
fn replayed(Place { files, dir, salvage }: &Place) -> Result<(DirStore, Recovered), Failure> {
    let is_there = *salvage && files.iter().all(|file| file.exists());
    if let Err(error) = write_log::inspect(files)
        && !is_there
    {
        // It would be made, and would be empty.
        return Err(unusable(error));
    }
    let log = WriteLog {
        salvages: *salvage,
        progress: Some(recovery::progress),
        ..WriteLog::new(files.clone(), 0)
    };
    let options =
        DirOptions { write_log: Some(log), ..served::dir_options(CommitMode::Concurrent) };
    let store = served::open(dir, &options).map_err(|why| {
        cannot_open(why.replacen("cannot serve", "nothing is brought to its place in", 1))
    })?;
    let recovered = store.recovered().cloned().unwrap_or_default();
    Ok((store, recovered))
}

fn replay(Replay { place }: &Replay) -> Result<(), Failure> {
    let (_, recovered) = replayed(place)?;
    print_done(&recovered, &place.dir, "keeps its log")
}

fn drain(Drain { place }: &Drain) -> Result<(), Failure> {
    let (store, recovered) = replayed(place)?;
    net::runtime::block_on(store.end_log())
        .map_err(Failure::resources)?
        .map_err(|why| Failure::environment(why, "the same again, or its server with the log"))?;
    print_done(&recovered, &place.dir, "needs no log any more")
}

/// What was brought to its place in `dir`, and what that means for its log.
fn print_done(recovered: &Recovered, dir: &Path, and: &str) -> Result<(), Failure> {
    let done = recovery::summary(recovered, dir);
    output::print(&format!("{done}; {} {and}\n", dir.display()))
}

fn summary(found: &Inspection) -> String {
    let id: String = found.id.iter().map(|byte| format!("{byte:02x}")).collect();
    let end = match (found.is_clean, found.is_torn) {
        (true, _) => "ended in order",
        (false, true) => "ended in the middle of a write that was not acknowledged",
        (false, false) => "did not end in order",
    };
    let doubts = if found.has_doubts { "; a sync of a file had failed" } else { "" };
    let logs = if found.logs == 1 { String::new() } else { format!(" in {} logs", found.logs) };
    let Inspection { size_bytes, frames, frames_bytes, sequence, records, bytes, files, .. } =
        found;
    format!(
        "id       {id}\nsize     {size_bytes} bytes{logs}\n\
         frames   {frames} of {frames_bytes} bytes, the last is number {sequence}\n\
         needed   {} of {bytes} bytes to {}\n\
         server   {end}{doubts}\n",
        counted(*records, "stable write"),
        counted(*files, "file"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_refusal_has_advice_of_its_own() {
        for (why, to_do) in [
            ("it cannot be made: it lies in memory (tmpfs), where nothing is stable", "on a disk"),
            ("a log is of 16 MiB to 1 GiB (--write-log-size)", "16M to 1G"),
            ("it cannot be made: No space left on device (os error 28)", "smaller"),
            ("it cannot be made: No such file or directory (os error 2)", "a folder"),
            ("another server has it", "ended first"),
            ("it was made for another directory", "drain"),
            ("it is damaged in the middle: frame 39 is not whole", "--salvage"),
            ("it is of 8388608 bytes and was made with 16777216", "--salvage"),
            ("it is not a write log of nfskit", "where a new one"),
            ("write log x: No such file or directory (os error 2)", "by its name"),
            ("write log x: Permission denied (os error 13)", "as root"),
            ("files can be opened by the kernel's handles", "CAP_DAC_READ_SEARCH"),
            ("a write log is only for names and attributes that are synced", "never"),
            ("the directory cannot remember it (user.nfskit.write_log): x", "user.*"),
            ("it is log 1 of 2, and one was given: all are needed, each once", "each of"),
        ] {
            assert!(advice(why).contains(to_do), "{why}: {}", advice(why));
        }
        assert!(advice("?").contains("nfskit log inspect"));
    }
}
