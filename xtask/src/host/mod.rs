//! Programs on this machine that a command of xtask needs: servers, ours and others', the
//! packages they come from, and the namespaces and folders that they run in.

pub(crate) mod build;
pub(crate) mod child;
pub(crate) mod content;
pub(crate) mod family;
pub(crate) mod ganesha;
pub(crate) mod isolate;
pub(crate) mod metrics;
pub(crate) mod nfskit;
pub(crate) mod process;
pub(crate) mod report;
pub(crate) mod scratch;
pub(crate) mod tools;

use std::fmt::Display;
use std::net::{Ipv4Addr, TcpListener};
use std::path::Path;

/// For `map_err`: an error in words, behind the path that it is about.
pub(crate) fn about<E: Display>(path: &Path) -> impl Fn(E) -> String + Copy {
    move |error| format!("{}: {error}", path.display())
}

/// Whether continuous integration runs us: nothing may be skipped there.
pub(crate) fn is_ci() -> bool {
    std::env::var("CI").is_ok_and(|ci| ci == "true")
}

/// What `command` comes to where it cannot run, and `what` is therefore not known.
pub(crate) fn not_run(command: &str, what: &str, why: &str) -> Result<(), String> {
    if is_ci() {
        return Err(format!("{command}: NOT RUN, and CI=true: {why}"));
    }
    println!("{command}: NOT RUN, {what}: {why}");
    Ok(())
}

/// A port of the loopback that was free a moment ago.
pub(crate) fn free_port() -> std::io::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// The last lines of a text.
pub(crate) fn last_lines(text: &str, count: usize) -> Vec<&str> {
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(count)..].to_vec()
}
