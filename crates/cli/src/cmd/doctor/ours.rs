//! Our own servers and mounts of this host, by their metrics: found by their command lines, and
//! read twice.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use doctor::Report;
use doctor::reason::{of_our_mount, of_our_server};
use doctor::rules::{OurLog, OurMounted, OurServed};
use harness::counted::processes;
use net::clock::Clock;
use perf::units::Instant;
use watch::ours::{OurMount, OurMountProcedure, OurProcedure, OurServer, Ours, Page};

use super::absolute_from;
use crate::samples::page;

/// Of each that answers, a page and when it came.
pub(super) struct Pages(Vec<(Program, Page, Instant)>);

/// One that runs here, by its command line.
#[derive(Clone, Debug, Eq, Ord, PartialEq, PartialOrd)]
struct Program {
    metrics: SocketAddr,
    /// Of a mount: what is mounted, and where.
    mounted: Option<(String, String)>,
}

impl Pages {
    /// Asks all that there are.
    pub(super) async fn take(clock: &Clock) -> Self {
        let mut pages = Vec::new();
        for program in programs(Path::new("/proc")) {
            if let Ok(found) = page(clock, program.metrics).await {
                pages.push((program, found, clock.now()));
            }
        }
        Self(pages)
    }

    /// A report of each, of what came since `before`.
    pub(super) fn reports(&self, before: &Self, clock: &Clock) -> Vec<Report> {
        let each = self.0.iter().filter_map(|(program, now, at)| {
            let older = before.0.iter().find(|(other, ..)| other == program);
            let older = older.map(|(_, page, then)| (page, at.since(*then).as_secs_f64()));
            match now.rates(older, clock.since_1970().as_secs_f64())? {
                Ours::Server(server) => Some(report(program.metrics, &server)),
                Ours::Mount(mount) => Some(report_of_mount(program, &mount)),
            }
        });
        each.collect()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

fn report(address: SocketAddr, server: &OurServer) -> Report {
    let total = &server.total;
    let served = OurServed {
        address: address.to_string(),
        calls: total.calls,
        calls_per_s: total.calls_per_s,
        p99_ms: total.response_ms.p99,
        phases_ms: total.phases_ms_mean.clone(),
        replayed: server.replayed,
        in_service: total.in_service_mean,
        processors: server.processors_mean,
        syncs_per_s: server.syncs_per_s,
        waiting_writes: waiting_writes(server),
        write_log: server.write_log.map(|log| OurLog {
            write_us: log.write_us,
            records: log.records,
            frames: log.frames,
            refused: log.refused,
            size_bytes: log.size_bytes,
            has_failed: log.has_failed,
        }),
    };
    of_our_server(&served, server.span)
}

/// Of the time in which calls wait for the store, the part of WRITEs.
fn waiting_writes(server: &OurServer) -> Option<f64> {
    let of = |one: &OurProcedure| {
        let waits = one.phases_ms_mean.iter().find(|(name, _)| name == "sync_wait");
        waits.map_or(0.0, |(_, ms)| one.calls * ms)
    };
    let all: f64 = server.procedures.iter().map(of).sum();
    // Of version 3 and of others: `WRITE`, `WRITE v2`.
    let is_write = |one: &&OurProcedure| one.name.split(' ').next() == Some("WRITE");
    let writes: f64 = server.procedures.iter().filter(is_write).map(of).sum();
    (all > 0.0).then(|| writes / all)
}

fn report_of_mount(program: &Program, mount: &OurMount) -> Report {
    // From 0: the sum of no floats is -0.
    let sum = |of: fn(&OurMountProcedure) -> f64| {
        mount.procedures.iter().map(of).fold(0.0, std::ops::Add::add)
    };
    let calls = sum(|one| one.calls);
    let mean = |of: fn(&OurMountProcedure) -> f64| sum(of) / calls.max(1.0);
    let known = |of: fn(&OurMountProcedure) -> Option<f64>| {
        mount.procedures.iter().filter_map(of).reduce(|a, b| a + b)
    };
    let unknown = || ("?".to_owned(), format!("nfskit mount ({})", program.metrics));
    let (source, point) = program.mounted.clone().unwrap_or_else(unknown);
    let mounted = OurMounted {
        point,
        source,
        calls,
        calls_per_s: known(|one| one.calls_per_s),
        queue_ms: mean(|one| one.queue_ms_mean.unwrap_or(0.0) * one.calls),
        rtt_ms: mean(|one| one.rtt_ms_mean.unwrap_or(0.0) * one.calls),
        execute_ms: mean(|one| one.execute_ms_mean.unwrap_or(0.0) * one.calls),
        outstanding: known(|one| one.outstanding_mean),
        in_flight: mount.calls_in_flight,
        retransmissions: sum(|one| one.retransmissions),
        major_timeouts: sum(|one| one.major_timeouts),
        reconnects: mount.reconnects,
    };
    of_our_mount(&mounted, mount.span)
}

/// Our programs that run on this host with `--metrics`: those of root and of this user. Of others
/// it is not known whether they are ours at all.
fn programs(proc: &Path) -> Vec<Program> {
    let program = |folder: PathBuf| {
        let comm = std::fs::read(folder.join("comm")).ok()?;
        let line = std::fs::read(folder.join("cmdline")).ok()?;
        let directory = std::fs::read_link(folder.join("cwd")).unwrap_or_default();
        let directory = directory.to_string_lossy();
        let status = std::fs::read(folder.join("status")).ok()?;
        let owner = user_of(&String::from_utf8_lossy(&status))?;
        let is_believed = owner == 0 || owner == rustix::process::geteuid().as_raw();
        if !is_believed {
            return None;
        }
        comm.starts_with(b"nfskit").then(|| program_of(&line, &directory)).flatten()
    };
    let mut found: Vec<Program> = processes(proc).filter_map(program).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The real user id, as proc(5) has it: no program that a user starts has another's.
fn user_of(status: &str) -> Option<u32> {
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().next()?.parse().ok()
}

/// The program of `nfskit serve ... --metrics ADDRESS`, or of `nfskit mount URL DIR -o
/// metrics=ADDRESS`, whose arguments end in zeros; what is mounted at a relative DIR is so from the
/// program's working directory.
fn program_of(command_line: &[u8], directory: &str) -> Option<Program> {
    let line = String::from_utf8_lossy(command_line);
    let arguments: Vec<&str> = line.split('\0').collect();
    let command = arguments.iter().skip(1).find(|word| matches!(**word, "serve" | "mount"))?;
    let metrics = metrics_of(&arguments)?;
    let mounted = if *command == "mount" { mounted_of(&arguments) } else { None };
    let mounted = mounted.map(|(source, point)| (source, absolute_from(directory, &point)));
    (metrics.port() != 0).then_some(Program { metrics, mounted })
}

/// Where a program on this host answers: `--metrics` or `-o metrics=`.
fn metrics_of(arguments: &[&str]) -> Option<SocketAddr> {
    let behind = |option: &'static str| {
        let both = arguments.iter().zip(arguments.iter().skip(1));
        both.filter(move |(name, _)| **name == option).map(|(_, value)| *value)
    };
    let joined = arguments.iter().filter_map(|argument| argument.strip_prefix("--metrics="));
    let options = behind("-o").flat_map(|list| list.split(','));
    let of_options = options.filter_map(|word| word.strip_prefix("metrics="));
    let found = behind("--metrics").chain(joined).chain(of_options).next();
    let mut metrics: SocketAddr = found?.parse().ok()?;
    if metrics.ip().is_unspecified() {
        metrics.set_ip(IpAddr::V4(Ipv4Addr::LOCALHOST));
    }
    Some(metrics)
}

/// What is mounted is a word with :/ in it, and the place comes behind it.
fn mounted_of(arguments: &[&str]) -> Option<(String, String)> {
    let is_before = |word: &&&str| word.starts_with('-') || !word.contains(":/");
    let mut places = arguments.iter().skip_while(is_before);
    Some(((*places.next()?).to_owned(), (*places.next()?).to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_of_other_users_are_not_believed() {
        let proc = tempfile::tempdir().unwrap();
        let own = rustix::process::geteuid().as_raw();
        for (pid, name, uid) in [("7", "x", own), ("8", "nfskit\nUid:\t0", 27001), ("9", "x", 0)] {
            let folder = proc.path().join(pid);
            std::fs::create_dir(&folder).unwrap();
            std::fs::write(folder.join("comm"), "nfskit\n").unwrap();
            let line = format!("nfskit\0serve\0/srv\0--metrics\0127.0.0.1:{pid}\0");
            std::fs::write(folder.join("cmdline"), line).unwrap();
            let name = name.replace('\n', "\\n");
            let status = format!("Name:\t{name}\nUid:\t{uid}\t0\t0\t0\n");
            std::fs::write(folder.join("status"), status).unwrap();
        }
        let ports = programs(proc.path()).iter().map(|one| one.metrics.port()).collect::<Vec<_>>();
        assert_eq!(ports, [7, 9]);
    }

    #[test]
    fn a_program_is_found_by_its_arguments() {
        let of = |line: &str| program_of(line.replace(' ', "\0").as_bytes(), "/srv/home");
        let metrics = |line: &str| of(line).map(|program| program.metrics);
        let found = metrics("/usr/bin/nfskit serve /srv --metrics 127.0.0.1:9049 ");
        assert_eq!(found, Some(SocketAddr::from(([127, 0, 0, 1], 9049))));
        let anywhere = metrics("nfskit serve --metrics=0.0.0.0:1 /srv");
        assert_eq!(anywhere, Some(([127, 0, 0, 1], 1).into()));
        for mount in [
            "nfskit mount --metrics 127.0.0.1:9049 nfs://server/x /mnt ",
            "nfskit mount nfs://server/x /mnt -o ro,metrics=127.0.0.1:9049 ",
        ] {
            let (source, point) = of(mount).unwrap().mounted.unwrap();
            assert_eq!((source.as_str(), point.as_str()), ("nfs://server/x", "/mnt"));
        }
        for (dir, point) in
            [("mnt", "/srv/home/mnt"), ("./a/../b", "/srv/home/b"), ("../c", "/srv/c")]
        {
            let line = format!("nfskit mount nfs://server/x {dir} --metrics 127.0.0.1:9049 ");
            assert_eq!(of(&line).unwrap().mounted.unwrap().1, point);
        }
        assert_eq!(of("nfskit bench --metrics 127.0.0.1:9049 x y"), None);
        assert_eq!(of("nfskit serve /srv"), None);
        assert_eq!(of("nfskit serve --metrics 127.0.0.1:0"), None);
    }
}
