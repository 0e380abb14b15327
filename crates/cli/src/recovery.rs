//! The recovery of a write log in words: `nfskit serve` does it at its start, `nfskit log` without
//! a server.

use harness::output;
use server::store::dir::write_log::{Lost, Progress, Recovered, Stage};

/// How far the recovery of a long log has come.
pub(crate) fn progress(progress: Progress) {
    let Progress { stage, done_bytes, all_bytes } = progress;
    let what = match stage {
        Stage::Reading => "read",
        Stage::Writing => "of stable writes done again",
    };
    output::say(format!("write log: {} of {} MiB {what}", done_bytes >> 20, all_bytes >> 20));
}

/// What was done with what a log held.
pub(crate) fn summary(recovered: &Recovered) -> String {
    let Recovered { files, was_running, lost, .. } = recovered;
    let lost = lost.as_ref().map_or_else(String::new, losses);
    match (files, was_running) {
        (0, _) => lost + "the write log held nothing that was not in its place",
        (files, true) => {
            format!("{lost}{files} files of the write log synced: the machine was not switched off")
        }
        (_, false) => lost + &replayed(recovered),
    }
}

fn losses(lost: &Lost) -> String {
    match lost {
        Lost { frames: 0, .. } => "the write log was damaged where nobody needs it; ".to_owned(),
        Lost { frames, first } => {
            format!("LOST of the damaged write log: {frames} frames, from number {first} on; ")
        }
    }
}

fn replayed(recovered: &Recovered) -> String {
    let Recovered { files, records, bytes, gone, changed, .. } = recovered;
    let mut text = format!("{records} stable writes of {bytes} bytes to {files} files done again");
    if *gone > 0 {
        text += &format!(", of which {gone} files are gone");
    }
    if *changed > 0 {
        text += &format!(
            "; {changed} files had been changed after their last stable write: by UNSTABLE \
             writes, or by programs here, whose bytes may be overwritten"
        );
    }
    text
}
