//! Builds of our own programs, and where cargo put them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::check::cargo_program;

/// Builds a binary as users get it; `command` is the one that needs it, which is printed.
pub(crate) fn release(
    root: &Path,
    command: &str,
    package: &str,
    bin: &str,
) -> Result<PathBuf, String> {
    build(root, command, &["--package", package, "--bin", bin, "--release"])
}

/// Builds an example as `cargo test --workspace` does: built by its package alone, it and all below
/// it would be compiled again, with the features of this package alone.
pub(crate) fn tested_example(root: &Path, command: &str, name: &str) -> Result<PathBuf, String> {
    build(root, command, &["--workspace", "--example", name])
}

fn build(root: &Path, command: &str, what: &[&str]) -> Result<PathBuf, String> {
    println!("{command}: cargo build {}", what.join(" "));
    let output = Command::new(cargo_program())
        .arg("build")
        .args(what)
        .arg("--message-format=json-render-diagnostics")
        .current_dir(root)
        .stderr(Stdio::inherit())
        .output()
        .map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(format!("{command}: cargo build {}: {}", what.join(" "), output.status));
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
}
