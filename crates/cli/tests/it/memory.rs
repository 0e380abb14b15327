//! How much memory a process holds (proc(5), `/proc/PID/status`).

use crate::program::Program;

/// Resident memory, in KiB: now, and the most it has ever been.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Resident {
    pub(crate) now_kib: u64,
    pub(crate) most_kib: u64,
}

impl Resident {
    pub(crate) fn of(program: &Program) -> Self {
        let status = std::fs::read_to_string(format!("/proc/{}/status", program.pid())).unwrap();
        let field = |name: &str| -> u64 {
            let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim().trim_end_matches(" kB").parse().unwrap()
        };
        Self { now_kib: field("VmRSS:"), most_kib: field("VmHWM:") }
    }

    /// Asserts that since `earlier` the program has never held more than `kib` beyond what it held
    /// then.
    #[track_caller]
    pub(crate) fn grew_at_most(self, kib: u64, earlier: Self) {
        let grown = self.most_kib.saturating_sub(earlier.now_kib);
        println!("{grown} KiB more than {} KiB at the most", earlier.now_kib);
        assert!(grown <= kib, "{grown} KiB more than before: {earlier:?}, then {self:?}");
    }
}
