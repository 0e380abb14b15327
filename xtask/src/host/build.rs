//! Builds of our own programs, and where cargo put them.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::about;
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

/// The nfskit that a command was given, or one that is built as users get it. Its path is good in
/// any directory and in a guest that mounts the host's file system.
pub(crate) fn given_or_release(
    root: &Path,
    command: &str,
    given: Option<&Path>,
) -> Result<PathBuf, String> {
    match given {
        Some(program) => std::fs::canonicalize(program).map_err(about(program)),
        None => release(root, command, "nfskit", "nfskit"),
    }
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
    fn a_program_that_is_given_is_found_from_any_directory() {
        let own = std::env::current_exe().unwrap();
        let up = Path::new("..").join("src/host/build.rs");
        let given = |path: &Path| given_or_release(Path::new("/"), "test", Some(path));
        // Tests run in the package's directory.
        let found = given(&Path::new("src").join(&up)).unwrap();
        assert!(found.is_absolute() && found.ends_with("xtask/src/host/build.rs"), "{found:?}");
        assert_eq!(given(&own).unwrap(), own.canonicalize().unwrap());
        assert!(given(Path::new("nowhere/nfskit")).unwrap_err().contains("nowhere/nfskit"));
    }

    #[test]
    fn the_executable_is_the_one_that_cargo_names_last() {
        let messages = "{\"reason\":\"compiler-artifact\",\"executable\":null}\n\
                        {\"reason\":\"compiler-artifact\",\"executable\":\"/b/release/nfskit\"}\n\
                        {\"reason\":\"build-finished\",\"success\":true}\n";
        assert_eq!(executable(messages), Some(PathBuf::from("/b/release/nfskit")));
        assert_eq!(executable("warning: text\n"), None);
    }
}
