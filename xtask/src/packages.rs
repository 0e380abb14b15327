//! `cargo xtask packages`: what `packaging/` makes, tried as strangers would.
//!
//! The trial is a shell script, because what it tries are commands that people type. It installs
//! on a clean Debian, serves, mounts, measures and removes, runs the image, has Prometheus look at
//! metrics and rules, and runs the examples.

use std::path::Path;
use std::process::Command;

use crate::host::build;

pub(crate) fn run(root: &Path) -> Result<(), String> {
    let nfskit = build::release(root, "packages", "nfskit", "nfskit")?;
    let mut command = Command::new("bash");
    command.arg("packaging/try.sh").arg("-b").arg(nfskit).current_dir(root);
    let status = command.status().map_err(|error| format!("packages: bash: {error}"))?;
    if status.success() { Ok(()) } else { Err(format!("packages: packaging/try.sh: {status}")) }
}
