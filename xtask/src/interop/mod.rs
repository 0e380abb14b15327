//! `cargo xtask interop`: the release binary against peers that we did not write.
//!
//! libnfs's tools list and copy from `nfskit serve`; `nfskit study` measures NFS-Ganesha, and
//! then our own server. Ganesha registers with a portmapper, of which a machine has one, so
//! everything runs in namespaces of its own where the system lets us: with its own loopback, its
//! own /run, and its own processes, which all end with the first of them. Where it does not, it
//! runs on the machine's loopback, unless the machine has a portmapper already.
//!
//! No child outlives its deadline. What is made on disk is in one scratch folder, removed at the
//! end; what an interrupted run left is removed by the next.

mod child;
mod content;
mod ganesha;
mod report;
mod served;
mod study;
mod tools;

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use crate::check::cargo_program;
use report::Report;

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "interop-inside";
const SCRATCH_PREFIX: &str = "nfskit-interop-";

/// Builds the binary, makes a place to work in, and runs every check there.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let nfskit = build(root)?;
    remove_left_over(&std::env::temp_dir());
    let scratch = tempfile::Builder::new()
        .prefix(&format!("{SCRATCH_PREFIX}{}-", std::process::id()))
        .tempdir()
        .map_err(|error| format!("no scratch folder: {error}"))?;
    if can_isolate() {
        run_isolated(scratch.path(), &nfskit)
    } else {
        println!("interop: no namespaces here; this machine's loopback must do");
        run_checks(scratch.path(), &nfskit)
    }
}

/// Calls us again inside the namespaces, and waits for the end of that.
fn run_isolated(scratch: &Path, nfskit: &Path) -> Result<(), String> {
    let ourselves = std::env::current_exe()
        .map_err(|error| format!("our own program is not known: {error}"))?;
    let mut inside = Command::new(UNSHARE[0])
        .args(&UNSHARE[1..])
        .args(["sh", "-c", PREPARE_NAMESPACES, "sh"])
        .args([&ourselves, Path::new(INSIDE), scratch, nfskit])
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("unshare does not start: {error}"))?;
    let lifeline = inside.stdin.take();
    let status = inside.wait().map_err(|error| format!("waiting for unshare failed: {error}"))?;
    drop(lifeline);
    if status.success() { Ok(()) } else { Err("interop failed, see above".to_owned()) }
}

/// Runs every check in the namespaces, of which we are the first process.
///
/// The first process of a namespace is spared the interrupt from the keyboard. So our standard
/// input is a pipe that closes when `run` has gone, and with us everything here ends.
pub(crate) fn run_inside(scratch: &Path, nfskit: &Path) -> Result<(), String> {
    let folder = scratch.to_owned();
    thread::spawn(move || {
        // Its end and its failure mean the same.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        warn_unless_removed(std::fs::remove_dir_all(folder));
        std::process::exit(1);
    });
    run_checks(scratch, nfskit)
}

fn run_checks(scratch: &Path, nfskit: &Path) -> Result<(), String> {
    let mut report = Report::default();
    served::check(&mut report, scratch, nfskit);
    study::check_ganesha(&mut report, scratch, nfskit);
    study::check_own_server(&mut report, scratch, nfskit);
    println!("\n{report}");
    report.verdict(std::env::var("CI").is_ok_and(|ci| ci == "true"))
}

const UNSHARE: [&str; 7] =
    ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const PREPARE_NAMESPACES: &str = "ip link set lo up && mount -t tmpfs tmpfs /run && exec \"$@\"";

/// Whether the namespaces can be made and prepared; needs root, and a container that allows it.
fn can_isolate() -> bool {
    let attempt = Command::new(UNSHARE[0])
        .args(&UNSHARE[1..])
        .args(["sh", "-c", PREPARE_NAMESPACES, "sh", "true"])
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .status();
    attempt.is_ok_and(|status| status.success())
}

/// Builds `nfskit` as users get it; returns where cargo put it.
fn build(root: &Path) -> Result<PathBuf, String> {
    println!("interop: cargo build --release");
    let output = Command::new(cargo_program())
        .args(["build", "--release", "--package=nfskit", "--bin=nfskit"])
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err("nfskit does not build".to_owned());
    }
    executable(&String::from_utf8_lossy(&output.stdout))
        .ok_or_else(|| "cargo named no executable".to_owned())
}

/// The program that cargo's messages, one JSON object a line, say they made.
fn executable(messages: &str) -> Option<PathBuf> {
    messages.lines().rev().find_map(|line| {
        let message: serde_json::Value = serde_json::from_str(line).ok()?;
        message.get("executable")?.as_str().map(PathBuf::from)
    })
}

/// Removes scratch folders whose process is gone: it was interrupted and could not.
fn remove_left_over(folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(pid) = owner(&name)
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            println!("interop: removing {}", entry.path().display());
            warn_unless_removed(std::fs::remove_dir_all(entry.path()));
        }
    }
}

fn warn_unless_removed(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        println!("interop: cannot remove it: {error}");
    }
}

/// The process that made the scratch folder of this name.
fn owner(name: &str) -> Option<u32> {
    let (pid, _) = name.strip_prefix(SCRATCH_PREFIX)?.split_once('-')?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_executable_is_the_one_that_cargo_names_last() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/b/release/nfskit\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/b/release/nfskit")));
        assert_eq!(executable("warning: text\n"), None);
    }

    #[test]
    fn only_our_own_scratch_folders_have_an_owner() {
        assert_eq!(owner("nfskit-interop-4711-a1B2c3"), Some(4711));
        assert_eq!(owner("nfskit-interop-x-y"), None);
        assert_eq!(owner("nfskit-study-4711-a"), None);
    }
}
