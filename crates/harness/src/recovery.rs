//! The recovery of a write log in words: `nfskit serve` does it at its start, `nfskit log` without
//! a server.

use std::path::Path;

use perf::words::counted;
use server::store::dir::write_log::{
    Lost, Named, Progress, Recovered, Replaced, Stage, Unreadable,
};

use crate::exit::Failure;
use crate::{output, shell};

/// How far the recovery of a long log has come.
pub fn progress(progress: Progress) {
    let Progress { stage, done_bytes, all_bytes } = progress;
    let what = match stage {
        Stage::Reading => "read",
        Stage::Writing => "of stable writes done again",
    };
    output::say(format!("write log: {} of {} MiB {what}", done_bytes >> 20, all_bytes >> 20));
}

/// What was done with what a log held; `dir` has its files.
pub fn summary(recovered: &Recovered, dir: &Path) -> String {
    let Recovered { files, gone, was_running, unreadable, .. } = recovered;
    let lost = losses(recovered) + &unreadable.as_ref().map_or_else(String::new, unread);
    match (*files, was_running) {
        (0, _) => lost + "the write log held nothing that was not in its place",
        (files, true) => {
            let (files, gone) = (counted(files - gone, "file"), gone_of(*gone));
            let gone = gone.map_or_else(String::new, |gone| format!(" ({gone} gone)"));
            format!("{lost}{files} of the write log synced{gone}: the machine was not switched off")
        }
        (_, false) => lost + &replayed(recovered, dir),
    }
}

/// What a command has done with a log; and `and`, what that means for the log.
///
/// # Errors
/// Something of the log is lost.
pub fn brought(recovered: &Recovered, dir: &Path, and: &str) -> Result<String, Failure> {
    let text = format!("{}; {} {and}", summary(recovered, dir), dir.display());
    match (has_losses(recovered), recovered.was_running) {
        (false, _) => Ok(text),
        (true, true) => Err(Failure::check(
            text,
            "nothing for the files: they have their bytes, as the machine was not switched off. \
             Calls that are retransmitted may be executed again",
        )),
        (true, false) => Err(Failure::check(
            text,
            "a backup of the files, to compare them with: which of them the lost frames were of \
             is not known",
        )),
    }
}

/// Something that had been answered is not in its place, or may not be.
fn has_losses(recovered: &Recovered) -> bool {
    let &Recovered { lost, is_end_lost, cut_bytes, unreadable, was_running, .. } = recovered;
    let newest_is_unread = unreadable.is_some_and(|unreadable| unreadable.may_be_newest);
    let frames = lost.map_or(0, |lost| lost.frames);
    is_end_lost || cut_bytes > 0 || frames > 0 || newest_is_unread && !was_running
}

fn losses(recovered: &Recovered) -> String {
    let &Recovered { lost, is_end_lost, cut_bytes, .. } = recovered;
    let mut text = String::new();
    if cut_bytes > 0 {
        text += &format!(
            "LOST of the write log: {cut_bytes} bytes that were cut off, and what was in them is \
             not known; "
        );
    }
    if is_end_lost {
        text += "LOST of the damaged write log: frames of which nothing is known; ";
    }
    match lost {
        Some(Lost { frames: 0, .. }) if text.is_empty() => {
            text += "the write log was damaged where nobody needs it; ";
        }
        None | Some(Lost { frames: 0, .. }) => {}
        Some(Lost { frames, first }) => {
            let frames = counted(frames, "frame");
            text += &format!("LOST of the damaged write log: {frames}, from number {first} on; ");
        }
    }
    text
}

/// Beside what is lost.
pub fn unread(unreadable: &Unreadable) -> String {
    let what = match unreadable.may_be_newest {
        true => "where the newest frame may have been: what was answered last may be LOST",
        false => "and nothing else that is needed is there",
    };
    format!("of the write log, {unreadable}, {what}; ")
}

fn replayed(recovered: &Recovered, dir: &Path) -> String {
    let &Recovered { files, records, attributes, bytes, .. } = recovered;
    let Recovered { gone, changed, replaced, lengthened, .. } = recovered;
    let (records, files) = (records_of(records, attributes, bytes), counted(files, "file"));
    let mut text = format!("{records} to {files} done again");
    if let Some(gone) = gone_of(*gone) {
        text += &format!(", of which {gone} gone");
    }
    if *changed > 0 {
        let changed = counted(*changed, "file");
        text += &format!(
            "; {changed} had been changed after the last stable write, by UNSTABLE writes or by \
             programs here"
        );
        if replaced.files + lengthened.files == 0 {
            text += ", and had the bytes of the stable writes";
        }
        let [overwritten, longer] = ["OVERWRITTEN were other bytes in ", "MADE LONGER again: "];
        text += &listed(replaced, overwritten, ", perhaps those of programs", dir);
        text += &listed(lengthened, longer, ", which programs have perhaps cut off", dir);
    }
    text
}

/// What a log holds: `attributes` of its records are SETATTRs.
pub fn records_of(records: u64, attributes: u64, bytes: u64) -> String {
    let writes = format!("{} of {bytes} bytes", counted(records - attributes, "stable write"));
    match attributes {
        0 => writes,
        _ => format!("{writes} and {}", counted(attributes, "SETATTR")),
    }
}

fn gone_of(files: u64) -> Option<String> {
    match files {
        0 => None,
        1 => Some("1 is".to_owned()),
        files => Some(format!("{files} are")),
    }
}

/// Files that may have been a program's.
fn listed(replaced: &Replaced, what: &str, whose: &str, dir: &Path) -> String {
    if replaced.files == 0 {
        return String::new();
    }
    let named: Vec<_> = replaced.named.iter().map(|named| place(named, dir)).collect();
    let more = replaced.files - named.len() as u64;
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    let files = counted(replaced.files, "file");
    format!("; {what}{files}{whose}: {}{more}", named.join(", "))
}

fn place(named: &Named, dir: &Path) -> String {
    match &named.path {
        Some(path) => shell::quoted(dir.join(path)),
        None => format!("find {} -xdev -inum {}", shell::quoted(dir), named.inode),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replayed(replaced: Replaced, lengthened: Replaced) -> String {
        let changed = if replaced.files > 0 { replaced.files } else { 1 };
        let recovered = Recovered {
            files: 20,
            records: 1,
            bytes: 5,
            changed,
            replaced,
            lengthened,
            ..Recovered::default()
        };
        summary(&recovered, Path::new("/srv/a b"))
    }

    #[test]
    fn setattrs_are_not_counted_as_writes() {
        assert_eq!(records_of(5, 0, 9), "5 stable writes of 9 bytes");
        assert_eq!(records_of(5, 3, 2000), "2 stable writes of 2000 bytes and 3 SETATTRs");
        let (records, attributes) = (1, 1);
        let recovered = Recovered { files: 1, records, attributes, ..Recovered::default() };
        let text = summary(&recovered, Path::new("/srv"));
        assert_eq!(text, "0 stable writes of 0 bytes and 1 SETATTR to 1 file done again");
    }

    #[test]
    fn files_that_are_gone_are_not_counted_as_synced() {
        let of = |gone| {
            let recovered = Recovered { files: 9, gone, was_running: true, ..Recovered::default() };
            summary(&recovered, Path::new("/srv"))
        };
        assert!(of(0).starts_with("9 files of the write log synced: the"), "{}", of(0));
        assert!(of(1).starts_with("8 files of the write log synced (1 is gone)"), "{}", of(1));
        assert!(of(2).starts_with("7 files of the write log synced (2 are gone)"), "{}", of(2));
    }

    #[test]
    fn what_was_cut_off_is_never_called_unneeded() {
        let of = |recovered| summary(&recovered, Path::new("/srv"));
        let lost = Some(Lost { frames: 0, first: 0 });
        let unneeded = of(Recovered { lost, ..Recovered::default() });
        assert!(unneeded.starts_with("the write log was damaged where nobody"), "{unneeded}");
        let empty = of(Recovered { lost, is_end_lost: true, ..Recovered::default() });
        assert!(empty.starts_with("LOST of the damaged write log: frames of which"), "{empty}");
        let cut = of(Recovered { cut_bytes: 4096, ..Recovered::default() });
        assert!(cut.starts_with("LOST of the write log: 4096 bytes that were cut off"), "{cut}");
        let lost = Some(Lost { frames: 3, first: 7 });
        let both = of(Recovered { lost, cut_bytes: 4096, ..Recovered::default() });
        assert!(both.contains("4096 bytes") && both.contains("3 frames, from number 7"), "{both}");
    }

    #[test]
    fn what_is_lost_fails_a_command_and_says_how_much() {
        let of = |recovered| brought(&recovered, Path::new("/srv"), "keeps its log");
        let damaged =
            |frames| Recovered { lost: Some(Lost { frames, first: 7 }), ..Recovered::default() };
        assert!(of(Recovered::default()).unwrap().ends_with("; /srv keeps its log"));
        assert!(of(damaged(0)).is_ok(), "where nobody needs it");
        let lost = of(damaged(3)).unwrap_err();
        assert!(lost.what().contains("LOST of the damaged write log: 3 frames"), "{lost:?}");
        assert!(lost.what().ends_with("; /srv keeps its log"), "{lost:?}");
        assert!(lost.advice().starts_with("a backup of the files"), "{lost:?}");
        let ran_on = of(Recovered { was_running: true, ..damaged(3) }).unwrap_err();
        assert!(ran_on.advice().starts_with("nothing for the files"), "{ran_on:?}");
        of(Recovered { is_end_lost: true, ..Recovered::default() }).unwrap_err();
        of(Recovered { cut_bytes: 1, ..Recovered::default() }).unwrap_err();
        let unread = |may_be_newest, was_running| {
            let unreadable = Some(Unreadable { blocks: 1, log: 0, at: 0, may_be_newest });
            of(Recovered { unreadable, was_running, ..Recovered::default() })
        };
        assert!(unread(false, false).is_ok() && unread(true, true).is_ok());
        unread(true, false).unwrap_err();
    }

    #[test]
    fn blocks_that_cannot_be_read_are_reported_with_what_they_may_have_held() {
        let of = |may_be_newest| {
            let unreadable = Unreadable { blocks: 2, log: 1, at: 8192, may_be_newest };
            let recovered = Recovered { unreadable: Some(unreadable), ..Recovered::default() };
            summary(&recovered, Path::new("/srv"))
        };
        let nothing = "of the write log, 2 blocks of it cannot be read, the first at byte 8192 of \
                       log 2, and nothing else that is needed is there; the write log held";
        assert!(of(false).starts_with(nothing), "{}", of(false));
        assert!(of(true).contains("answered last may be LOST; the write log held"), "{}", of(true));
    }

    #[test]
    fn files_that_may_have_lost_the_bytes_of_programs_are_named() {
        let text = replayed(Replaced::default(), Replaced::default());
        assert!(
            text.contains("1 stable write of 5 bytes to 20 files done again; 1 file had"),
            "{text}"
        );
        assert!(text.ends_with("and had the bytes of the stable writes"), "{text}");
        let named =
            vec![Named { inode: 7, path: Some("of/one".into()) }, Named { inode: 8, path: None }];
        let text = replayed(Replaced { files: 3, named }, Replaced::default());
        let files = r#"3 files, perhaps those of programs: '/srv/a b/of/one', find '/srv/a b' -xdev -inum 8 and 1 more"#;
        assert!(text.ends_with(files), "{text}");
        let named = vec![Named { inode: 9, path: Some("log".into()) }];
        let text = replayed(Replaced::default(), Replaced { files: 1, named });
        assert!(text.contains("by programs here; MADE LONGER again: 1 file, "), "{text}");
        assert!(text.ends_with("cut off: '/srv/a b/log'"), "{text}");
    }
}
