//! What went wrong, with advice.

use harness::exit::Failure;
use load::suite13::Failed;

/// What went wrong, with advice.
pub(super) fn failure(failed: Failed) -> Failure {
    use std::io::ErrorKind;
    let advice = match &failed {
        Failed::Stopped => return Failure::interrupted(),
        Failed::Wrong { .. } => {
            return Failure::check(
                failed,
                "the same test alone, with --test; `nfskit bench fsx` finds what is wrong with a \
                 file system",
            );
        }
        Failed::Program { .. } => "the same test by hand; --test without 5 leaves it off",
        Failed::System { cause, .. } => match cause.kind() {
            ErrorKind::NotFound => "see who else works there",
            ErrorKind::PermissionDenied => "a directory that this user may write in",
            ErrorKind::ReadOnlyFilesystem => "a file system that is mounted for writing",
            ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
                "free space there, a smaller --scale, or fewer --copies"
            }
            _ => "see whether the server is alive; the system's log may say more",
        },
    };
    Failure::environment(failed, advice)
}
