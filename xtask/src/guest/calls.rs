//! How many calls programs make: the kernel's client and our mount, both in the guest, before one
//! server of ours, which counts.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::stage::{ADDRESS, Stage, User};

use crate::host::about;

const PORT: u16 = 2049;
const METRICS: u16 = 9100;
/// Of the kernel's calls, at most so many in a hundred, where ours are to be far fewer.
const SHARE_MAX: u64 = 60;

/// What `programs.sh` runs, what that is, and whether our calls are to be far fewer.
const PROGRAMS: [(&str, &str, bool); 13] = [
    ("untar", "tar x", true),
    ("list", "find -ls", false),
    ("copy_into", "cp -a into the mount", true),
    ("copy_within", "cp -a within it", true),
    ("remove", "rm -r", false),
    ("clone", "git clone", false),
    ("status", "git status", false),
    ("checkout", "git checkout", true),
    ("sources", "cp -r of 43 sources", false),
    ("compile", "make", false),
    ("compile_again", "make, nothing to do", false),
    ("package", "dpkg --unpack", false),
    ("inserts", "sqlite3, 100 inserts", false),
];

/// Calls by client, program and procedure.
type Counted = BTreeMap<(String, String), BTreeMap<String, u64>>;

pub(super) fn play(mut stage: Stage<'_>, material: &Path, scratch: &Path) -> Result<(), String> {
    let export = stage.folder().join("data");
    let state = stage.folder().join("state");
    for folder in [&export, &state, &export.join("kernel"), &export.join("ours")] {
        fs::create_dir(folder).map_err(about(folder))?;
    }
    let metrics = ["--metrics".to_owned(), format!("{ADDRESS}:{METRICS}")];
    stage.serve(User::Root, export.as_os_str(), &state, PORT, &metrics)?;
    let out = scratch.join("out");
    let settings = [("METRICS", METRICS.to_string())];
    let played = stage.play(&material.join("programs.sh"), material, &settings, &out);
    let lines = fs::read_to_string(out.join("calls"));
    let lines = lines.map_err(|error| format!("guest: no calls: {error}"));
    let reported = lines.and_then(|lines| tell(&counted(&lines)));
    let stopped = stage.stop();
    played.and(reported).and(stopped)
}

/// What the guest has left: `CLIENT PROGRAM PROCEDURE NUMBER` a line.
fn counted(lines: &str) -> Counted {
    let mut counted = Counted::new();
    for line in lines.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        if let [client, program, procedure, number] = words[..]
            && let Ok(number) = number.parse()
        {
            let key = (client.to_owned(), program.to_owned());
            counted.entry(key).or_default().insert(procedure.to_owned(), number);
        }
    }
    counted
}

/// Prints the table, and fails where ours are more than they may be.
fn tell(counted: &Counted) -> Result<(), String> {
    println!("| | kernel | ours | share | ours, of what |\n|---|---|---|---|---|");
    let mut missed = Vec::new();
    for (program, title, is_far_fewer) in PROGRAMS {
        let of = |client: &str| counted.get(&(client.to_owned(), program.to_owned()));
        let (Some(kernel), Some(ours)) = (of("kernel"), of("ours")) else {
            missed.push(format!("{title}: not counted"));
            continue;
        };
        let [theirs, our_calls] = [kernel, ours].map(|calls| calls.values().sum::<u64>());
        let share = our_calls * 100 / theirs.max(1);
        println!("| {title} | {theirs} | {our_calls} | {share} % | {} |", most(ours));
        println!("|   | kernel: {} |", most(kernel));
        let is_missed = our_calls > theirs || (is_far_fewer && share > SHARE_MAX);
        if is_missed {
            missed.push(format!("{title}: {our_calls} of {theirs}"));
        }
    }
    match missed.is_empty() {
        true => Ok(()),
        false => Err(format!("guest: more calls than wanted: {}", missed.join("; "))),
    }
}

/// The procedures that are called most.
fn most(calls: &BTreeMap<String, u64>) -> String {
    let mut calls: Vec<(&String, &u64)> = calls.iter().collect();
    calls.sort_by_key(|(_, number)| std::cmp::Reverse(**number));
    let named = calls.iter().take(6).map(|(name, number)| format!("{name} {number}"));
    named.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_added_up_by_program_and_too_many_are_reported() {
        let mut lines = String::from("kernel untar seconds 1.5\n");
        for (program, ..) in PROGRAMS {
            lines += &format!("kernel {program} WRITE 8\nkernel {program} COMMIT 2\n");
            lines += &format!("ours {program} WRITE 6\n");
        }
        assert_eq!(tell(&counted(&lines)), Ok(()));
        let more = lines.replace("ours list WRITE 6", "ours list WRITE 11");
        assert!(tell(&counted(&more)).unwrap_err().contains("find -ls: 11 of 10"));
        let more = lines.replace("ours untar WRITE 6", "ours untar WRITE 7");
        assert!(tell(&counted(&more)).unwrap_err().contains("tar x: 7 of 10"));
        assert!(tell(&counted("")).is_err());
    }
}
