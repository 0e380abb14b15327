//! Random plans in worlds: what clients do, what goes wrong, and the reference beside them.
//!
//! The worlds are an example of the testkit, built here; all options but `--dev` are its own.

use std::path::Path;
use std::process::Command;

/// Builds, and runs with `options`. With `--dev` first it is the program that `cargo test` has
/// built: a tenth of the speed, and nothing to compile where tests have run.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), String> {
    let (profile, options) = match options {
        ["--dev", rest @ ..] => ("dev", rest),
        options => ("release", options),
    };
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.args(["run", "--profile", profile, "--quiet", "--package", "nfskit-testkit"]);
    command.args(["--example", "sim", "--"]).args(options).current_dir(root);
    let status = command.status().map_err(|error| format!("cargo: {error}"))?;
    match status.success() {
        true => Ok(()),
        false => {
            Err("sim: not all is as the reference has it, or the options make no sense".to_owned())
        }
    }
}
