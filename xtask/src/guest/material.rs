//! What the guest works with: our scripts, and this repository as an archive and as a repository.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::host::about;

const SCRIPTS: [(&str, &str); 12] = [
    ("behind.sh", include_str!("scripts/behind.sh")),
    ("checking.py", include_str!("scripts/checking.py")),
    ("checks.py", include_str!("scripts/checks.py")),
    ("clients.sh", include_str!("scripts/clients.sh")),
    ("fscache.sh", include_str!("scripts/fscache.sh")),
    ("large.py", include_str!("scripts/large.py")),
    ("manifest.sh", include_str!("scripts/manifest.sh")),
    ("programs.sh", include_str!("scripts/programs.sh")),
    ("small.py", include_str!("scripts/small.py")),
    ("tree.sh", include_str!("scripts/tree.sh")),
    ("workload.sh", include_str!("scripts/workload.sh")),
    ("writelog.sh", include_str!("scripts/writelog.sh")),
];

/// Makes the folder that becomes `/add/material` in the guest; other commands use it here.
pub(crate) fn make(root: &Path, scratch: &Path) -> Result<PathBuf, String> {
    let material = scratch.join("material");
    let written = fs::create_dir(&material).and_then(|()| {
        SCRIPTS.iter().try_for_each(|(name, text)| fs::write(material.join(name), text))
    });
    written.map_err(about(&material))?;
    // The checkout may belong to somebody else, which is no danger: it is only read.
    let git = || {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*", "-C"]).arg(root);
        git
    };
    let archive = material.join("tree.tar");
    succeed(git().args(["archive", "--output"]).arg(archive).arg("HEAD"))?;
    let source = format!("file://{}", root.display());
    let repository = material.join("repository.git");
    // A worktree or a shallow clone is cloned like any other; a few commits are enough.
    succeed(git().args(["clone", "--quiet", "--bare", "--depth=20", &source]).arg(repository))?;
    Ok(material)
}

fn succeed(command: &mut Command) -> Result<(), String> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| format!("{program} does not start: {error}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    output.status.success().then_some(()).ok_or_else(|| format!("{program}: {complaint}"))
}
