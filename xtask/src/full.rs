//! `cargo xtask full`: what takes long, compares speeds, plays in real time or talks to foreign
//! servers. The gate leaves it out, because a busy machine fails it for no fault of a change.
//!
//! It is run before a release, and a stage by itself (`--only`) when its subject changed. A stage
//! that fails does not stop the others. docs/benchmarks.md keeps the last result of each.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use clap::Parser;

use crate::check::cargo_program;
use crate::options;

/// Where the table stands, between its two marks.
const DOCUMENT: &str = "docs/benchmarks.md";
const BEGIN: &str = "<!-- full: begin -->";
const END: &str = "<!-- full: end -->";

/// Runs what takes long, compares speeds, plays in real time or talks to foreign servers.
#[derive(Debug, Parser)]
#[command(
    name = "full",
    bin_name = "cargo xtask full",
    after_help = "It wants root, and the Debian packages that `.ci/packages full` installs."
)]
struct Options {
    /// These stages.
    #[arg(long, value_name = "STAGE,...", value_delimiter = ',', value_parser = find)]
    only: Vec<&'static str>,
    /// All but these.
    #[arg(long, value_name = "STAGE,...", value_delimiter = ',', value_parser = find)]
    skip: Vec<&'static str>,
    /// Writes the results into the table of docs/benchmarks.md; those of other stages stay.
    #[arg(long)]
    record: bool,
    /// Names the stages, and runs none.
    #[arg(long)]
    list: bool,
}

impl Options {
    fn stages(&self) -> Vec<&'static Stage> {
        let is_chosen = |name| self.only.is_empty() || self.only.contains(name);
        let stages = STAGES.iter().filter(|Stage { name, .. }| is_chosen(name));
        stages.filter(|Stage { name, .. }| !self.skip.contains(name)).collect()
    }
}

fn find(name: &str) -> Result<&'static str, String> {
    options::find(name, STAGES.iter().map(|stage| (stage.name, stage.name)))
}

/// One command: xtask's own, or a shell's.
struct Stage {
    name: &'static str,
    about: &'static str,
    work: Work,
}

enum Work {
    Xtask(&'static [&'static str]),
    Shell(&'static str),
}

const fn xtask(name: &'static str, about: &'static str, words: &'static [&'static str]) -> Stage {
    Stage { name, about, work: Work::Xtask(words) }
}

const fn shell(name: &'static str, about: &'static str, line: &'static str) -> Stage {
    Stage { name, about, work: Work::Shell(line) }
}

const STAGES: &[Stage] = &[
    // Installing finds in the target directory what was built, and compiles nothing twice.
    shell(
        "release",
        "the binary as users get it, built and installed, and a study with it",
        "cargo build --release && root=$(mktemp -d) && \
         cargo install --locked --path crates/cli --root \"$root\" && \
         \"$root/bin/nfskit\" study --out \"$root/study\" && rm -r \"$root\"",
    ),
    xtask("interop", "libnfs, fio, rpcbind and NFS-Ganesha", &["interop"]),
    xtask("captures", "tshark, on captures made here", &["captures"]),
    xtask("mounts", "programs on our mount, NFS-Ganesha among the servers", &["mounts", "--quick"]),
    xtask("filesystems", "the server's tests on other file systems", &["filesystems"]),
    xtask("stress", "killed under load, as root", &["stress", "--seconds", "20"]),
    xtask(
        "stress-unprivileged",
        "killed under load, as an ordinary user",
        &["stress", "--seconds", "20", "--unprivileged"],
    ),
    xtask(
        "powercut",
        "power cuts of our server, with and without a write log",
        &["powercut", "--rounds", "10"],
    ),
    xtask(
        "powercut-others",
        "power cuts of knfsd and NFS-Ganesha, and planted mistakes",
        &[
            "powercut",
            "--rounds",
            "4",
            "--only",
            "knfsd,ganesha,planted-late,planted-late-log,planted-names,planted-replies,\
             knfsd-async",
        ],
    ),
    xtask(
        "powercut-proxies",
        "power cuts and kills of proxies with a log and of mounts with a cache",
        &[
            "powercut",
            "--rounds",
            "10",
            "--load",
            "2s",
            "--only",
            "proxy,proxy-xfs,proxy-killed,planted-proxy,mount,mount-xfs,mount-killed,\
             planted-mount",
        ],
    ),
    xtask("guest", "the Linux kernel's client", &["guest"]),
    xtask("guest-proxy", "the same before proxies", &["guest", "--proxy"]),
    xtask("guest-ganesha", "before proxies of NFS-Ganesha", &["guest", "--proxy", "--ganesha"]),
    xtask(
        "guest-write-back",
        "before proxies that answer from a log",
        &["guest", "--proxy", "--write-back"],
    ),
    xtask("guest-calls", "calls of programs, beside the kernel's client", &["guest", "calls"]),
    xtask("guest-fscache", "the cache beside FS-Cache", &["guest", "fscache"]),
    xtask("guest-behind", "untar through proxies, 10 ms from their server", &["guest", "behind"]),
    xtask("guest-write-log", "what a write log saves a disk", &["guest", "write-log"]),
    xtask("guest-seen", "clients of two proxies and of their server", &["guest", "seen"]),
    xtask("drill", "staged faults, and what doctor says of them", &["drill"]),
    xtask("sim", "fresh seeds of simulated faults", &["sim", "--count", "2000"]),
    xtask(
        "contest",
        "fresh seeds of clients that compete",
        &["sim", "--contest", "--count", "20000"],
    ),
    xtask(
        "kills",
        "fresh seeds of clients that are killed while they fill a cache",
        &["sim", "--kills", "--count", "10000"],
    ),
    shell(
        "write-log",
        "10,000 simulated machines with a write log, and planted mistakes",
        "NFSKIT_SEEDS=10000 cargo test --release -p nfskit-log --test it",
    ),
    shell(
        "write-back",
        "10,000 simulated proxies with a log that are killed, under one client and under three",
        "NFSKIT_SEEDS=10000 cargo test --release -p nfskit-proxy --test it what_",
    ),
    shell(
        "close-to-open",
        "10,000 simulated pairs of clients, by a server and by proxies, also killed ones",
        "NFSKIT_SEEDS=10000 cargo test --release -p nfskit-testkit --test it close_to_open",
    ),
    shell(
        "scale",
        "10,000 simulated clients within two minutes",
        "timeout 120 \"${CARGO_TARGET_DIR:-target}\"/release/nfskit model simulate \
         crates/world/topologies/ten-thousand.toml",
    ),
    shell(
        "coverage",
        "how often intervals hold the truth: the table of docs/models.md",
        "cargo run -q -p nfskit-load --example coverage -- --check",
    ),
    xtask("generator", "processor time beside libnfs and fio", &["generator", "--rounds", "1"]),
    xtask("attacks", "what bad clients cost good ones", &["attacks", "--check"]),
    xtask("ranks", "two processes of mpirun beside one", &["ranks"]),
    xtask("packages", "a clean Debian, an image, Prometheus, the examples", &["packages"]),
];

/// What became of a stage.
struct Outcome {
    stage: &'static Stage,
    passed: bool,
    took: Duration,
}

/// Runs the stages that the arguments leave.
pub(crate) fn run(root: &Path, words: &[&str]) -> Result<(), String> {
    let options: Options = options::parse(words)?;
    let stages = options.stages();
    if options.list {
        for stage in stages {
            println!("{:<22}{}", stage.name, stage.about);
        }
        return Ok(());
    }
    let outcomes: Vec<Outcome> = stages.into_iter().map(|stage| perform(root, stage)).collect();
    let commit = commit(root)?;
    let rows: Vec<String> = outcomes.iter().map(|outcome| outcome.row(&commit)).collect();
    print!("\n{HEAD}{}", rows.concat());
    if options.record {
        write_down(root, &rows)?;
    }
    let failed: Vec<&str> = outcomes
        .iter()
        .filter(|outcome| !outcome.passed)
        .map(|outcome| outcome.stage.name)
        .collect();
    match failed.as_slice() {
        [] => Ok(()),
        names => Err(format!(
            "full: failed: {}; again, alone: cargo xtask full --only {}",
            names.join(", "),
            names.join(",")
        )),
    }
}

fn perform(root: &Path, stage: &'static Stage) -> Outcome {
    println!("==== {}: {}", stage.name, stage.about);
    let start = Instant::now();
    let passed = command(stage).and_then(|mut command| {
        let status = command.current_dir(root).status();
        status.map_err(|error| format!("{}: {error}", stage.name))
    });
    let took = start.elapsed();
    let passed = match passed {
        Ok(status) => status.success(),
        Err(message) => {
            eprintln!("{message}");
            false
        }
    };
    println!("==== {} {} after {:.0} s", stage.name, verdict(passed), took.as_secs_f64());
    Outcome { stage, passed, took }
}

/// A stage of xtask's is a process of its own, so that one that panics does not end the others.
fn command(stage: &Stage) -> Result<Command, String> {
    match stage.work {
        Work::Xtask(words) => {
            let program = std::env::current_exe().map_err(|error| format!("xtask: {error}"))?;
            let mut command = Command::new(program);
            command.args(words);
            Ok(command)
        }
        Work::Shell(line) => {
            let mut command = Command::new("bash");
            let line = line.replace("cargo ", &format!("{} ", cargo_program()));
            command.args(["-euo", "pipefail", "-c", &line]);
            Ok(command)
        }
    }
}

const fn verdict(passed: bool) -> &'static str {
    if passed { "passed" } else { "FAILED" }
}

const HEAD: &str = "| stage | what | result | s | commit |\n|---|---|---|---:|---|\n";

impl Outcome {
    /// A line of the table.
    fn row(&self, commit: &str) -> String {
        let Self { stage: Stage { name, about, .. }, passed, took } = self;
        let (verdict, took) = (verdict(*passed), took.as_secs_f64());
        format!("| {name} | {about} | {verdict} | {took:.0} | {commit} |\n")
    }
}

/// Name and date of what is checked out.
fn commit(root: &Path) -> Result<String, String> {
    let output = Command::new("git")
        .args(["log", "-1", "--format=%h of %cs"])
        .current_dir(root)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Puts rows into the table between its marks.
fn write_down(root: &Path, rows: &[String]) -> Result<(), String> {
    let path = root.join(DOCUMENT);
    let text = std::fs::read_to_string(&path).map_err(|error| format!("{DOCUMENT}: {error}"))?;
    let text = with_rows(&text, rows)
        .ok_or_else(|| format!("{DOCUMENT} lacks the lines {BEGIN} and {END}"))?;
    std::fs::write(&path, text).map_err(|error| format!("{DOCUMENT}: {error}"))
}

/// `text` with these rows in the table, in the order of the stages; those of others stay.
fn with_rows(text: &str, rows: &[String]) -> Option<String> {
    let (_, table) = text.split_once(BEGIN)?;
    let (table, _) = table.split_once(END)?;
    let is_of = |row: &str, stage: &Stage| row.starts_with(&format!("| {} |", stage.name));
    let rows = STAGES.iter().filter_map(|stage| {
        let new = rows.iter().map(|row| row.trim_end()).find(|row| is_of(row, stage));
        new.or_else(|| table.lines().find(|row| is_of(row, stage)))
    });
    let rows: Vec<&str> = rows.collect();
    let lines = format!("The last result of each:\n\n{HEAD}{}", rows.join("\n"));
    between(text, [BEGIN, END], &lines)
}

/// `text` with other lines between these marks.
pub(crate) fn between(text: &str, [begin, end]: [&str; 2], lines: &str) -> Option<String> {
    let (before, rest) = text.split_once(begin)?;
    let (_, after) = rest.split_once(end)?;
    Some(format!("{before}{begin}\n{}\n{end}{after}", lines.trim_end()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Options, String> {
        options::parse(words)
    }

    fn names(words: &[&str]) -> Vec<&'static str> {
        parse(words).unwrap().stages().iter().map(|stage| stage.name).collect()
    }

    #[test]
    fn stages_are_chosen_by_name_and_a_wrong_name_is_refused() {
        assert_eq!(names(&["--only", "sim,scale"]), ["sim", "scale"]);
        assert_eq!(names(&["--skip", "guest"]).len() + 1, STAGES.len());
        assert!(parse(&["--only", "gest"]).is_err());
        assert!(parse(&["--only"]).is_err());
        assert!(parse(&["guest"]).is_err());
    }

    #[test]
    fn a_result_replaces_that_of_its_stage_and_nothing_else() {
        let text = format!("head\n{BEGIN}\n{END}\ntail\n");
        let row = |at: usize, passed| {
            let took = Duration::from_secs(3);
            Outcome { stage: &STAGES[at], passed, took }.row("abc of 2026-01-01")
        };
        let text = with_rows(&text, &[row(1, true), row(0, false)]).unwrap();
        let text = with_rows(&text, &[row(0, true), row(2, false)]).unwrap();
        let expected = [row(0, true), row(1, true), row(2, false)].concat();
        assert!(text.contains(&format!("{HEAD}{expected}{END}\ntail\n")), "{text}");
        assert!(text.starts_with("head\n"));
        assert_eq!(with_rows("no marks", &[]), None);
    }
}
