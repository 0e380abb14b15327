//! Random plans in worlds: what clients do, what goes wrong, and the reference beside them.
//!
//! The worlds are an example of the testkit, built here; all options but `--dev` are its own.

use std::path::Path;
use std::process::Command;

use crate::check::cargo_program;
use crate::host::build::tested_example;

/// Builds, and runs with `options`. With `--dev` first it is the program that `cargo test` has
/// built: a tenth of the speed, and nothing to compile where tests have run.
pub(crate) fn run(root: &Path, options: &[&str]) -> Result<(), String> {
    let (mut command, options) = match options {
        ["--dev", rest @ ..] => (Command::new(tested_example(root, "sim", "sim")?), rest),
        options => {
            let mut command = Command::new(cargo_program());
            command.args(["run", "--release", "--quiet", "--package", "nfskit-testkit"]);
            command.args(["--example", "sim", "--"]);
            (command, options)
        }
    };
    let status = command.args(options).current_dir(root).status();
    match status.map_err(|error| format!("sim: it does not start: {error}"))?.success() {
        true => Ok(()),
        false => {
            Err("sim: not all is as the reference has it, or the options make no sense".to_owned())
        }
    }
}
