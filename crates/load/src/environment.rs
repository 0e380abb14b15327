//! The machine a measurement ran on.

use std::fs;
use std::time::Duration;

use net::clock::Clock;
use perf::record::Environment;

/// Reads what there is to read; what cannot be read stays empty.
pub fn describe() -> Environment {
    let uname = rustix::system::uname();
    let text = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let cpuinfo = text("/proc/cpuinfo");
    let field = |key: &str| {
        let line = cpuinfo.lines().find(|line| line.starts_with(key))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };
    let memory_kib = text("/proc/meminfo")
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok());
    let flags = field("flags").unwrap_or_default();
    let virtualization = if flags.split(' ').any(|flag| flag == "hypervisor") {
        field("Hypervisor vendor").unwrap_or_else(|| "hypervisor".to_owned())
    } else {
        "none".to_owned()
    };
    let mut environment = Environment {
        kernel: Some(format!(
            "{} {} {}",
            uname.sysname().to_string_lossy(),
            uname.release().to_string_lossy(),
            uname.machine().to_string_lossy()
        )),
        cpus: std::thread::available_parallelism().ok().and_then(|n| u32::try_from(n.get()).ok()),
        memory: memory_kib.map(|kib: u64| kib * 1024),
        virtualization: Some(virtualization),
        clock_resolution_ns: Some(clock_resolution()),
        load_average: load_average(&text("/proc/loadavg")),
        ..Environment::default()
    };
    if let Some(model) = field("model name") {
        environment.other.insert("cpu_model".to_owned(), model.into());
    }
    environment
}

/// The time in UTC, as RFC 3339 writes it.
pub fn rfc3339(clock: &Clock) -> String {
    rfc3339_of(clock.since_1970())
}

/// A time since 1970 in UTC, as RFC 3339 writes it.
pub fn rfc3339_of(since_1970: Duration) -> String {
    humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since_1970).to_string()
}

fn clock_resolution() -> u64 {
    let resolution = rustix::time::clock_getres(rustix::time::ClockId::Monotonic);
    u64::try_from(resolution.tv_nsec).unwrap_or(0)
}

fn load_average(loadavg: &str) -> Option<[f64; 3]> {
    let mut values = loadavg.split(' ').map_while(|value| value.parse().ok());
    Some([values.next()?, values.next()?, values.next()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worlds_epoch_is_the_first_of_january() {
        let clock = net::clock::world::World::new().clock();
        assert_eq!(rfc3339(&clock), "2026-01-01T00:00:00Z");
    }

    #[test]
    fn this_machine_has_a_processor_and_a_kernel() {
        let environment = describe();
        assert!(environment.cpus >= Some(1));
        assert!(environment.kernel.is_some_and(|kernel| kernel.contains(' ')));
    }
}
