//! Random plans in worlds: what clients do, what goes wrong, and the reference beside them.
//!
//! The worlds are an example of the testkit, built here; all options are its own.

use std::path::Path;
use std::process::Command;

/// Builds, and runs with `options`.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), String> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--release", "--quiet", "--package", "nfskit-testkit"]);
    command.args(["--example", "sim", "--"]).args(options).current_dir(root);
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => {
            Err("sim: not all is as the reference has it, or the options make no sense".to_owned())
        }
    }
}
