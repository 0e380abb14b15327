//! Calls by procedure, and who has counted them.

use std::collections::BTreeMap;
use std::path::Path;

use counters::mountstats;
use perf::units::Nanos;

/// Where the kernel tells what its mounts have done.
const MOUNTSTATS: &str = "/proc/self/mountstats";

/// How many, by the names of the procedures.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Calls {
    pub(crate) calls: BTreeMap<String, u64>,
    /// Processor time of who made them, where that is another process of ours.
    pub(super) cpu: Nanos,
}

impl Calls {
    /// Those that were not made before.
    pub(super) fn since(&self, before: &Self) -> Self {
        let new = self.calls.iter().map(|(name, calls)| {
            (name.clone(), calls.saturating_sub(before.calls.get(name).copied().unwrap_or(0)))
        });
        let calls = new.filter(|(_, calls)| *calls > 0).collect();
        Self { calls, cpu: self.cpu.saturating_sub(before.cpu) }
    }

    pub(super) fn total(&self) -> u64 {
        self.calls.values().sum()
    }

    /// The most frequent first: `LOOKUP 21 MKDIR 20`.
    pub(super) fn words(&self) -> String {
        let mut each: Vec<(&String, &u64)> = self.calls.iter().collect();
        each.sort_by_key(|(_, calls)| std::cmp::Reverse(**calls));
        each.iter().map(|(name, calls)| format!("{name} {calls}")).collect::<Vec<_>>().join(" ")
    }
}

/// What the kernel has counted for the NFS mount that `dir` lies on; `None` where it does not.
pub(super) fn of_kernel(dir: &Path) -> Option<Calls> {
    let text = std::fs::read(MOUNTSTATS).ok()?;
    of_mountstats(&text, dir)
}

fn of_mountstats(text: &[u8], dir: &Path) -> Option<Calls> {
    let mounts = mountstats::read(text).ok()?;
    let above = mounts.iter().filter(|mount| dir.starts_with(&mount.point));
    // Of those that are mounted on each other the last covers the others.
    let own = above.max_by_key(|mount| Path::new(&mount.point).components().count())?;
    let calls = own.operations.iter().map(|one| (one.name.to_uppercase(), one.calls));
    let calls = calls.filter(|(_, calls)| *calls > 0).collect();
    Some(Calls { calls, cpu: Nanos::ZERO })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn calls(pairs: &[(&str, u64)]) -> Calls {
        let calls = pairs.iter().map(|(name, calls)| ((*name).to_owned(), *calls)).collect();
        Calls { calls, cpu: Nanos::ZERO }
    }

    #[test]
    fn only_what_is_new_counts() {
        let before = calls(&[("GETATTR", 5), ("READ", 2)]);
        let after = calls(&[("GETATTR", 7), ("READ", 2), ("WRITE", 30)]);
        let since = after.since(&before);
        assert_eq!(since, calls(&[("GETATTR", 2), ("WRITE", 30)]));
        assert_eq!((since.total(), since.words().as_str()), (32, "WRITE 30 GETATTR 2"));
    }

    #[test]
    fn the_kernel_counts_for_the_deepest_nfs_mount() {
        let text = b"\
device server:/a mounted on /mnt with fstype nfs statvers=1.1
\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)
\tper-op statistics
\t        NULL: 0 0 0 0 0 0 0 0 0
\t     GETATTR: 4 4 0 1 1 0 1 1 0
device server:/b mounted on /mnt/deep with fstype nfs statvers=1.1
\tRPC iostats version: 1.1  p/v: 100003/3 (nfs)
\tper-op statistics
\t     GETATTR: 9 9 0 1 1 0 1 1 0
";
        let of = |dir: &str| of_mountstats(text, Path::new(dir));
        assert_eq!(of("/mnt/x"), Some(calls(&[("GETATTR", 4)])));
        assert_eq!(of("/mnt/deep/y"), Some(calls(&[("GETATTR", 9)])));
        assert_eq!(of("/home"), None);
    }
}
