//! What is done on a mount: programs that people use, and our own exercises.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use super::mounted::Mounted;
use super::options::Options;
use super::served::{Kind, new_folder};
use crate::host::child::{finish, text};
use crate::host::{last_lines, tools};

/// Where a step works.
pub(super) struct Stage<'a> {
    pub(super) kind: Kind,
    pub(super) nfskit: &'a Path,
    pub(super) material: &'a Path,
    /// On a local disk.
    pub(super) scratch: &'a Path,
    pub(super) options: &'a Options,
    /// What is exercised: a mount, or a local folder.
    pub(super) place: &'a Path,
    /// Where a second mount can be made.
    pub(super) url: Option<&'a str>,
}

/// A step: its name, and what it does; what is worth a word, or why it failed.
type Step = (&'static str, fn(&Stage<'_>) -> Result<String, String>);

/// In their order; the quick ones first.
pub(super) const STEPS: [Step; 10] = [
    ("basic", basic),
    ("calls", calls),
    ("tree", tree),
    ("sqlite", sqlite),
    ("close-to-open", close_to_open),
    ("contests", super::contests::play),
    ("fsx", fsx),
    ("seqwrite", seqwrite),
    ("memory", super::memory::play),
    ("suite13", suite13),
];

/// Whether a step is worth its time: with packets lost, thousands of files cost minutes.
pub(super) fn is_wanted(step: &str, kind: Kind, options: &Options) -> bool {
    let is_long = ["calls", "tree", "seqwrite", "memory", "suite13"].contains(&step);
    let is_slow = kind == Kind::LossyUdp && options.quick && is_long;
    // It has a server of its own.
    let is_apart = step == "contests" && !matches!(kind, Kind::Local | Kind::Nfskit);
    options.wants(step) && !is_slow && !is_apart
}

impl Stage<'_> {
    pub(super) fn is_quick(&self) -> bool {
        self.options.quick
    }

    fn is_local(&self) -> bool {
        self.kind == Kind::Local
    }

    /// What a step may take: lost packets cost a second each.
    pub(super) fn within(&self, quick_s: u64, full_s: u64) -> Duration {
        let factor = if self.kind == Kind::LossyUdp { 3 } else { 1 };
        Duration::from_secs(factor * if self.is_quick() { quick_s } else { full_s })
    }

    fn folder(&self, name: &str) -> Result<PathBuf, String> {
        new_folder(self.place, name)
    }
}

/// Runs a script of checks, each of which prints a line; the failed ones are the error.
fn checks(command: &mut Command, within: Duration) -> Result<String, String> {
    // What failed is on standard output, whatever the exit code is: let a shell keep it.
    let mut shell = Command::new("sh");
    shell.args(["-c", "\"$@\" 2>&1; echo exit $?", "sh"]).arg(command.get_program());
    shell.args(command.get_args());
    let done = finish(&mut shell, within, text)?;
    let passed = done.value.lines().filter(|line| line.starts_with("ok ")).count();
    if done.value.trim_end().ends_with("exit 0") {
        return Ok(format!("{passed} in {:.1} s", done.seconds));
    }
    let failed: Vec<&str> = done.value.lines().filter(|line| line.starts_with("FAIL ")).collect();
    match failed.is_empty() {
        true => Err(last_lines(&done.value, 6).join("; ")),
        false => Err(failed.join("; ")),
    }
}

/// Operations in the manner of the Connectathon suite.
fn basic(stage: &Stage<'_>) -> Result<String, String> {
    let mut command = Command::new("python3");
    command.arg(stage.material.join("basic.py")).arg(stage.folder("basic")?);
    if stage.is_quick() || stage.kind == Kind::LossyUdp {
        command.arg("--quick");
    }
    if stage.is_local() {
        command.arg("--local");
    }
    checks(&mut command, stage.within(60, 300))
}

/// The system calls that the kernel's own client is checked with.
fn calls(stage: &Stage<'_>) -> Result<String, String> {
    let mut command = Command::new("python3");
    command.arg(stage.material.join("checks.py")).arg(stage.folder("calls")?);
    command.args(["--callers", "--privileged"]);
    if stage.is_local() {
        command.arg("--local");
    }
    if stage.kind == Kind::LossyUdp || stage.is_quick() {
        // Ten thousand files, or two thousand renames, with a second for each that is lost.
        let few = "renames_refused,sparse_files,links,special_files,modes_and_owners,\
                   removed_while_open,exclusive_and_append,locks,mapped,random_writes,totals";
        command.args(["--only", few]);
    }
    checks(&mut command, stage.within(90, 400))
}

/// tar, make of a C program, git clone and fsck, rm -rf; what is left equals what a local disk has.
fn tree(stage: &Stage<'_>) -> Result<String, String> {
    for (program, package) in [("tar", "tar"), ("gcc", "gcc"), ("make", "make"), ("git", "git")] {
        tools::find(program, package)?;
    }
    let within = stage.within(150, 600);
    let manifest = |folder: &Path| {
        let mut command = Command::new("bash");
        command.arg(stage.material.join("manifest.sh")).arg(folder);
        Ok::<_, String>(finish(&mut command, within, text)?.value)
    };
    let make = |folder: &Path| {
        let mut command = Command::new("bash");
        command.arg(stage.material.join("tree.sh")).arg(folder).arg(stage.material);
        checks(&mut command, within)
    };
    let folder = stage.folder("tree")?;
    let made = make(&folder)?;
    let got = manifest(&folder)?;
    let local = stage.scratch.join("tree-local");
    if !local.exists() {
        new_folder(stage.scratch, "tree-local")?;
        make(&local).map_err(|why| format!("on a local disk: {why}"))?;
    }
    let expected = manifest(&local)?;
    match got.lines().zip(expected.lines()).find(|(got, expected)| got != expected) {
        Some((got, expected)) => Err(format!("{got:?} should be {expected:?}")),
        None if got.lines().count() != expected.lines().count() => {
            Err(format!("{} entries, not {}", got.lines().count(), expected.lines().count()))
        }
        None => Ok(format!("{made}, {} entries as on a local disk", got.lines().count())),
    }
}

/// Thousands of transactions, of two writers at once, and one that is killed.
fn sqlite(stage: &Stage<'_>) -> Result<String, String> {
    tools::find("sqlite3", "sqlite3")?;
    let transactions = match (stage.is_quick(), stage.kind) {
        (true, Kind::LossyUdp) => 30,
        (true, _) => 200,
        (false, Kind::LossyUdp) => 500,
        (false, _) => 3_000,
    };
    let mut command = Command::new("python3");
    command.arg(stage.material.join("sqlite.py")).arg(stage.folder("sqlite")?);
    checks(command.arg(transactions.to_string()), stage.within(90, 600))
}

/// Two mounts, one writing and closing, one opening and reading.
fn close_to_open(stage: &Stage<'_>) -> Result<String, String> {
    let folder = stage.folder("close-to-open")?;
    let second = match stage.url {
        Some(url) => {
            let name = format!("second-{}", stage.kind.name());
            Some(Mounted::start(stage.nfskit, stage.scratch, &name, url, &[])?)
        }
        None => None,
    };
    let other = match &second {
        Some(second) => second.dir.join("close-to-open"),
        None => folder.clone(),
    };
    let steps = match (stage.is_quick(), stage.kind) {
        (true, Kind::LossyUdp) => "100",
        (true, _) => "1000",
        (false, Kind::LossyUdp) => "1000",
        (false, _) => "10000",
    };
    let ourselves = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = Command::new(ourselves);
    command.arg(CLOSE_TO_OPEN).args([&folder, &other]);
    command.args([stage.options.seed.to_string(), steps.to_owned()]);
    let played = finish(&mut command, stage.within(60, 400), text)?;
    if let Some(second) = second {
        second.stop().map_err(|why| format!("the second mount: {why}"))?;
    }
    Ok(format!("{} in {:.1} s", played.value.trim(), played.seconds))
}

/// Random reads, writes, truncations and mappings, verified.
fn fsx(stage: &Stage<'_>) -> Result<String, String> {
    let seconds = match (stage.is_quick(), stage.kind) {
        (true, Kind::Nfskit) => 30,
        (true, _) => 8,
        (false, Kind::Local) => 60,
        (false, _) => 600,
    };
    let folder = stage.folder("fsx")?;
    let run = |files: &str, size: &str, seconds: u64| {
        let mut command = Command::new(stage.nfskit);
        command.args(["bench", "fsx", "--seed", &stage.options.seed.to_string()]);
        command.args(["--files", files, "--size", size, "--time", &format!("{seconds}s"), "--dir"]);
        let within = Duration::from_secs(seconds) + stage.within(60, 120);
        let done = finish(command.arg(&folder), within, text)?;
        Ok::<_, String>(done.value.lines().last().unwrap_or_default().replace("fsx: ", ""))
    };
    let small = run("1", "256K", seconds / 2)?;
    // NFS-Ganesha 4.3 now and then replies the size that a file had before; what the mount makes of
    // it is a size that is wrong, in about one run of ten. A full run shows it.
    if stage.is_quick() && stage.kind == Kind::Ganesha {
        return Ok(small);
    }
    let large = run("3", "8M", seconds / 2)?;
    Ok(format!("{small}; 3 files: {large}"))
}

/// The thirteen tests of the caching benchmark, alone and four at once, every byte compared.
fn suite13(stage: &Stage<'_>) -> Result<String, String> {
    let scale = if stage.is_quick() { "0.05" } else { "1" };
    let place = format!("place={}", stage.place.display());
    let mut command = Command::new(stage.nfskit);
    command.args(["bench", "suite13", "--repeats", "1", "--scale", scale, "--json", "-"]);
    let done = finish(command.args(["--compare", &place]), stage.within(90, 600), text)?;
    let records: serde_json::Value =
        serde_json::from_str(&done.value).map_err(|error| format!("its record: {error}"))?;
    let tests = |index: usize| records[index]["tests"].as_object().map_or(0, |tests| tests.len());
    match (tests(0), tests(1)) {
        (13, 13) => Ok(format!("13 tests, alone and four at once, in {:.1} s", done.seconds)),
        (alone, at_once) => Err(format!("{alone} and {at_once} tests were run, and not 13")),
    }
}

/// The write benchmark, beside the local disk.
fn seqwrite(stage: &Stage<'_>) -> Result<String, String> {
    let size = if stage.is_quick() { "16M" } else { "256M" };
    let repeats = if stage.is_quick() { "1" } else { "3" };
    let local = stage.scratch.join(format!("seqwrite-{}", stage.kind.name()));
    std::fs::create_dir(&local).map_err(|error| error.to_string())?;
    let mut command = Command::new(stage.nfskit);
    command.args(["bench", "seqwrite", "--size", size, "--repeats", repeats, "--json", "-"]);
    command.arg("--dir").arg(&local).arg("--dir").arg(stage.place);
    let done = finish(&mut command, stage.within(60, 300), text)?;
    let records: serde_json::Value =
        serde_json::from_str(&done.value).map_err(|error| format!("its record: {error}"))?;
    let rate = |index: usize, name: &str| {
        records[index]["metrics"][name]["value"].as_f64().unwrap_or(f64::NAN)
    };
    let ratio = rate(1, "written_mib_per_s") / rate(0, "written_mib_per_s");
    Ok(format!(
        "written {:.0} MiB/s, x {ratio:.2} of the local disk's; flushed {:.0}, there {:.0}",
        rate(1, "written_mib_per_s"),
        rate(1, "flushed_mib_per_s"),
        rate(0, "flushed_mib_per_s")
    ))
}

/// The command by which a step calls us again.
pub(crate) const CLOSE_TO_OPEN: &str = "mounts-close-to-open";
