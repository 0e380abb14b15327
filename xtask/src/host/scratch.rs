//! One scratch folder for what a command makes on disk; what an interrupted run left is removed
//! by the next.

use std::io;
use std::path::Path;

use tempfile::TempDir;

const SCRATCH_PREFIX: &str = "nfskit-";

/// A folder for `command`, which goes away with the value.
pub(crate) fn make(command: &str) -> Result<TempDir, String> {
    remove_left_over(command, &std::env::temp_dir());
    tempfile::Builder::new()
        .prefix(&format!("{SCRATCH_PREFIX}{command}-{}-", std::process::id()))
        .tempdir()
        .map_err(|error| format!("no scratch folder: {error}"))
}

/// Removes scratch folders whose process is gone: it was interrupted and could not.
fn remove_left_over(command: &str, folder: &Path) {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return;
    };
    for entry in entries.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        if let Some(pid) = owner(command, &name)
            && !Path::new("/proc").join(pid.to_string()).exists()
        {
            println!("{command}: removing {}", entry.path().display());
            warn_unless_removed(std::fs::remove_dir_all(entry.path()));
        }
    }
}

pub(crate) fn warn_unless_removed(outcome: io::Result<()>) {
    if let Err(error) = outcome {
        println!("xtask: cannot remove a scratch folder: {error}");
    }
}

/// The process that made the scratch folder of this name.
fn owner(command: &str, name: &str) -> Option<u32> {
    let rest = name.strip_prefix(SCRATCH_PREFIX)?.strip_prefix(command)?.strip_prefix('-')?;
    let (pid, _) = rest.split_once('-')?;
    pid.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_own_scratch_folders_have_an_owner() {
        assert_eq!(owner("interop", "nfskit-interop-4711-a1B2c3"), Some(4711));
        assert_eq!(owner("interop", "nfskit-interop-x-y"), None);
        assert_eq!(owner("interop", "nfskit-study-4711-a"), None);
        assert_eq!(owner("peers", "nfskit-interop-4711-a"), None);
    }
}
