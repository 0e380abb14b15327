//! What a command took of this machine, which `-v` says.

use std::fs;

use load::cpu::Usage;
use net::clock::Clock;
use perf::units::Nanos;

use crate::output;
use crate::verbosity::Verbosity;

/// Runs a command; with `-v`, says afterwards what it took.
pub fn shown<T>(verbosity: Verbosity, run: impl FnOnce() -> T) -> T {
    let clock = Clock::real();
    let (begun, before) = (clock.now(), Usage::now());
    let outcome = run();
    if verbosity == Verbosity::Verbose {
        let used = Usage::now().since(before);
        output::say(sentence(clock.now().since(begun), used.process, memory_bytes_max()));
    }
    outcome
}

fn sentence(took: Nanos, processor: Nanos, memory_bytes_max: Option<u64>) -> String {
    let memory = memory_bytes_max
        .map_or_else(String::new, |bytes| format!(", {} MiB of memory at most", bytes >> 20));
    format!("took {took}, {processor} of processor time{memory}")
}

/// The most memory that this process ever had, where the system says it.
pub fn memory_bytes_max() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_known_is_left_out() {
        let of = |memory| sentence(Nanos::from_secs(3), Nanos::from_millis(20), memory);
        assert_eq!(of(None), "took 3.00 s, 20.0 ms of processor time");
        assert!(of(Some(5 << 20)).ends_with("time, 5 MiB of memory at most"));
        assert!(memory_bytes_max().is_none_or(|bytes| bytes > 0));
    }
}
