//! Namespaces of our own: a loopback, a /run and processes that nobody else sees.
//!
//! A command calls its own program again inside them. Everything there ends with the first
//! process, and that one ends when the caller has gone.
//!
//! TCP there controls congestion by Reno, whatever this host has. BBR, which many hosts have, sends
//! at the pace that it has estimated. On a loopback whose processors were busy that is a low one,
//! and a READ of 1 MiB took 27 ms where it takes 0.5.

use std::ffi::OsStr;
use std::io;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use super::scratch::warn_unless_removed;

const UNSHARE: [&str; 7] =
    ["unshare", "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"];
const PREPARE_NAMESPACES: &str = "ip link set lo up && mount -t tmpfs tmpfs /run && \
    { echo reno >/proc/sys/net/ipv4/tcp_congestion_control || true; } && exec \"$@\"";

/// Whether the namespaces can be made and prepared; needs root, and a container that allows it.
pub(crate) fn is_possible() -> bool {
    let attempt = inside().arg("true").stdin(Stdio::null()).stderr(Stdio::null()).status();
    attempt.is_ok_and(|status| status.success())
}

/// Runs ourselves inside the namespaces, for `command`.
pub(crate) fn run_ourselves<A: AsRef<OsStr>>(
    command: &str,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    let ourselves = std::env::current_exe()
        .map_err(|error| format!("{command}: our own program is not known: {error}"))?;
    run(command, &ourselves, arguments)
}

/// Runs `program` inside the namespaces, for `command`; fails when that did, and reported why.
pub(crate) fn run<A: AsRef<OsStr>>(
    command: &str,
    program: &Path,
    arguments: impl IntoIterator<Item = A>,
) -> Result<(), String> {
    let mut inside = inside()
        .arg(program)
        .args(arguments)
        .stdin(Stdio::piped())
        .spawn()
        .map_err(|error| format!("unshare does not start: {error}"))?;
    let lifeline = inside.stdin.take();
    let status = inside.wait().map_err(|error| format!("waiting for unshare failed: {error}"))?;
    drop(lifeline);
    match status.success() {
        true => Ok(()),
        false => Err(format!("{command}: failed, see above")),
    }
}

/// To be called first by what [`run`] started: ends us when the caller is gone.
///
/// The first process of a namespace is spared the interrupt from the keyboard. So our standard
/// input is a pipe that closes when the caller has gone, and with us everything here ends.
pub(crate) fn end_with_caller(scratch: &Path) {
    let folder = scratch.to_owned();
    end_after(move || warn_unless_removed(std::fs::remove_dir_all(folder)));
}

/// As [`end_with_caller`], where there are mounts that must not be walked into: what is on disk is
/// left to the next run, which removes it.
pub(crate) fn end_with_caller_and_mounts() {
    end_after(|| ());
}

/// Ends us when the caller is gone and `work` is done.
fn end_after(work: impl FnOnce() + Send + 'static) {
    thread::spawn(|| {
        // Its end and its failure mean the same.
        let _ = io::copy(&mut io::stdin(), &mut io::sink());
        work();
        std::process::exit(1);
    });
}

fn inside() -> Command {
    let mut command = Command::new(UNSHARE[0]);
    command.args(&UNSHARE[1..]).args(["sh", "-c", PREPARE_NAMESPACES, "sh"]);
    command
}
