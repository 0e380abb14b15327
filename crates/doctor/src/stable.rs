//! Calls that are answered when what they change is on stable storage.

use super::subject::{Group, Mounted};

/// Answered when it is stable, in every version. (WRITE, where that is requested.)
const STABLE: [&str; 10] = [
    "COMMIT", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK", "SETATTR",
];

/// All of them that a mount has made.
pub fn calls(mount: &Mounted<'_>) -> Group {
    let names = STABLE.into_iter().chain(has_writes(mount).then_some("WRITE"));
    mount.group(&names.collect::<Vec<_>>())
}

/// Whether WRITEs are among them: with these options; and small ones that no COMMIT follows, as the
/// kernel sends what a program wants to be stable by itself.
pub fn has_writes(mount: &Mounted<'_>) -> bool {
    const SMALL_BYTES: f64 = 32_768.0;
    let is_set = |option| mount.now.option(option).is_some();
    let (writes, commits) = (mount.group(&["WRITE"]), mount.group(&["COMMIT"]));
    let bytes = writes.sent_bytes as f64 / (writes.calls as f64).max(1.0);
    let is_alone = writes.calls > commits.calls.saturating_mul(100) && bytes < SMALL_BYTES;
    is_set("sync") || is_set("noac") || is_alone
}
