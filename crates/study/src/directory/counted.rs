//! What the kernel's client of NFS did in one step: the calls behind the calls of a program.

use std::collections::BTreeMap;
use std::path::Path;

use doctor::Evidence;
use doctor::collect::{self, Files};
use doctor::subject::{Group, Mounted};

/// Calls of one operation; sums of their times in ms.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Operation {
    pub(super) calls: u64,
    pub(super) received_bytes: u64,
    pub(super) queue_ms: f64,
    pub(super) rtt_ms: f64,
    pub(super) execute_ms: f64,
}

/// By their names.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Counted {
    pub(super) operations: BTreeMap<String, Operation>,
}

impl Counted {
    /// All operations together.
    pub(super) fn total(&self) -> Operation {
        let mut total = Operation::default();
        self.operations.values().for_each(|one| total.add(one));
        total
    }

    pub(super) fn add(&mut self, other: &Self) {
        for (name, one) in &other.operations {
            self.operations.entry(name.clone()).or_default().add(one);
        }
    }

    /// `WRITE 1.0, COMMIT 1.0`: calls for each of a program's, the most frequent first.
    pub(super) fn for_each(&self, program_calls: usize) -> String {
        let each = |one: &Operation| one.calls as f64 / program_calls.max(1) as f64;
        let all = self.operations.iter().map(|(name, one)| (name, each(one)));
        let mut seen: Vec<(&String, f64)> = all.filter(|(_, calls)| *calls >= 0.005).collect();
        seen.sort_by(|a, b| b.1.total_cmp(&a.1));
        let first = seen.iter().take(4).map(|(name, calls)| format!("{name} {calls:.2}"));
        first.collect::<Vec<String>>().join(", ")
    }
}

impl Operation {
    fn of(group: &Group) -> Self {
        let Group { calls, received_bytes, queue_ms, rtt_ms, execute_ms, .. } = *group;
        Self { calls, received_bytes, queue_ms, rtt_ms, execute_ms }
    }

    fn add(&mut self, other: &Self) {
        self.calls += other.calls;
        self.received_bytes += other.received_bytes;
        self.queue_ms += other.queue_ms;
        self.rtt_ms += other.rtt_ms;
        self.execute_ms += other.execute_ms;
    }
}

/// The counters of mounts, which are cheap to read.
pub(super) fn look(root: &Path) -> Files {
    collect::live(root, &["proc/uptime", "proc/self/mountstats"])
}

/// The NFS mount that a directory is on: of those above it the deepest.
pub(super) fn mount_above(dir: &Path, files: &Files) -> Option<String> {
    let evidence = Evidence::of(files.clone());
    let mounts = evidence.last.mounts.iter().filter(|mount| dir.starts_with(&mount.point));
    mounts.max_by_key(|mount| mount.point.len()).map(|mount| mount.point.clone())
}

/// What a mount did between two looks; nothing where the counters do not tell.
pub(super) fn between(point: &str, first: Files, last: Files) -> Option<Counted> {
    let evidence = Evidence::of(Files::samples(first, last));
    let mounts = Mounted::all(&evidence);
    // Of several on each other, the last is the one that is seen.
    let mount = mounts.iter().rfind(|mount| mount.now.point == point)?;
    let of = |name: &String| (name.clone(), Operation::of(&mount.group(&[name])));
    let made = mount.rates.operations.iter().filter(|one| one.calls > 0);
    let operations = made.map(|one| of(&one.name)).collect();
    (!mount.is_lifetime()).then_some(Counted { operations })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(uptime: &str, calls: &str) -> Files {
        let text = format!(
            "device s:/e mounted on /mnt with fstype nfs statvers=1.1\n\tage:\t{uptime}\n\
             \tRPC iostats version: 1.1  p/v: 100003/3 (nfs)\n\tper-op statistics\n{calls}"
        );
        let mut files = Files::default();
        files.put("proc/self/mountstats", text);
        files.put("proc/uptime", format!("{uptime}.50 1\n"));
        files
    }

    #[test]
    fn the_calls_of_a_step_are_what_came_between_two_looks() {
        let first = files("100", "\tWRITE: 10 10 0 0 0 1 20 30 0\n");
        let last = files("110", "\tWRITE: 14 14 0 0 0 2 28 40 0\n\tCOMMIT: 8 8 0 0 0 0 16 16 0\n");
        let point = mount_above(Path::new("/mnt/a/b"), &last);
        assert_eq!(point.as_deref(), Some("/mnt"));
        assert_eq!(mount_above(Path::new("/mnta"), &last), None);
        let counted = between("/mnt", first, last.clone()).unwrap();
        assert_eq!(counted.total().calls, 12);
        assert!((counted.total().execute_ms - 26.0).abs() < 1e-9, "{counted:?}");
        assert_eq!(counted.for_each(4), "COMMIT 2.00, WRITE 1.00");
        assert_eq!(between("/other", last.clone(), last), None);
    }
}
