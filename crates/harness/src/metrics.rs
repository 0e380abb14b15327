//! The pages of `--metrics`: what engine, connections and process have counted.

use std::fs;
use std::sync::Arc;
use std::time::Duration;

use net::clock::Clock;
use net::http::{Found, Listener};
use net::serve::Counts;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use rustix::process::{Resource, getrlimit};
use rustix::time::ClockId;
use server::Engine;
use server::metrics::{CONTENT_TYPE, Page, Reading};
use server::store::Store;
use server::store::dir::act_as_server;
use world::machine::passing;

/// Answers `/metrics`, `/files` and `/healthz` in a task of its own. `others` are collected at each
/// scrape.
pub fn serve<S: Store>(
    listener: Listener,
    engine: &Arc<Engine<S>>,
    others: impl Fn() -> Vec<Reading> + Clone + Send + Sync + 'static,
    clock: &Clock,
) {
    let (engine, started, now) = (Arc::clone(engine), clock.since_1970(), passing(clock));
    let files_of = Arc::clone(&engine);
    let recent: Arc<Mutex<Recent>> = Arc::default(); // guards the latest page
    let make = move || {
        // This thread may have acted as a caller, who may not look at our /proc.
        act_as_server();
        let mut page = Page::default();
        engine.write_metrics(&mut page);
        page.readings(&others());
        page.readings(&process(started));
        page.into_string()
    };
    let files = move || {
        let mut page = Page::default();
        files_of.write_files(&mut page).then(|| page.into_string())
    };
    answer(listener, clock, move |path| match path {
        "/files" => files(),
        "/metrics" => Some(recent.lock().page(now(), &make)),
        _ => None,
    });
}

/// Answers with these pages and `/healthz`, in a task of its own.
fn answer(
    listener: Listener,
    clock: &Clock,
    page: impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static,
) {
    let pages = move |path: &str| match path {
        "/healthz" => Some(Found::text("ok\n")),
        path => Some(Found { content_type: CONTENT_TYPE, body: page(path)? }),
    };
    let own = clock.clone();
    clock.spawn(async move { listener.serve(own, pages).await });
}

/// Answers `/metrics`, with what the process has counted below, and `/healthz`.
pub(crate) fn serve_page(
    listener: Listener,
    clock: &Clock,
    write: impl Fn(&mut Page) + Clone + Send + Sync + 'static,
) {
    let started = clock.since_1970();
    answer(listener, clock, move |path| {
        let mut page = (path == "/metrics").then(Page::default)?;
        write(&mut page);
        page.readings(&process(started));
        Some(page.into_string())
    });
}

/// The latest page, for those who ask more often than anybody needs to.
#[derive(Debug, Default)]
struct Recent {
    page: String,
    /// Pages made since `since`.
    made: u32,
    since: Instant,
}

impl Recent {
    /// Pages made in one [`Recent::SPAN`]; who asks beyond that gets the latest.
    const PAGES_MAX: u32 = 20;
    const SPAN: Nanos = Nanos::from_secs(1);

    fn page(&mut self, now: Instant, make: impl Fn() -> String) -> String {
        if now.since(self.since) >= Self::SPAN {
            (self.made, self.since) = (0, now);
        }
        if self.made < Self::PAGES_MAX {
            self.made += 1;
            self.page = make();
        }
        self.page.clone()
    }
}

/// What connections and datagrams have counted.
pub fn host(counts: &Counts) -> Vec<Reading> {
    let reading = |&(name, help, count): &HostCount| Reading::new(name, help, count(counts) as f64);
    HOST_COUNTS.iter().map(reading).collect()
}

/// A metric's name, its help, and where it is counted.
type HostCount = (&'static str, &'static str, fn(&Counts) -> u64);

const HOST_COUNTS: [HostCount; 15] = [
    ("nfskit_connections", "Connections and sockets of datagrams being served.", |counts| {
        counts.served_now
    }),
    (
        "nfskit_calls_stalled",
        "Calls that wait in the system: their threads have been in system calls for milliseconds.",
        |counts| counts.calls_stalled,
    ),
    ("nfskit_connections_accepted_total", "Connections let in.", |counts| {
        counts.connections_accepted
    }),
    ("nfskit_connections_refused_total", "Connections that found no place.", |counts| {
        counts.connections_refused
    }),
    (
        "nfskit_connections_denied_total",
        "Connections refused: no export names the address they come from.",
        |counts| counts.connections_denied,
    ),
    (
        "nfskit_connections_evicted_total",
        "Idle connections closed to make room for new ones.",
        |counts| counts.connections_evicted,
    ),
    (
        "nfskit_connections_short_total",
        "Times that a connection could not be accepted: descriptors or memory were short.",
        |counts| counts.connections_short,
    ),
    (
        "nfskit_records_too_long_total",
        "Connections closed because of a record over the limit.",
        |counts| counts.records_too_long,
    ),
    (
        "nfskit_connections_idle_total",
        "Connections closed because no call came for too long.",
        |counts| counts.connections_idle,
    ),
    (
        "nfskit_connections_stalled_total",
        "Connections closed because the client took no reply, or finished no record, in time.",
        |counts| counts.connections_stalled,
    ),
    (
        "nfskit_in_flight_bytes",
        "Bytes of calls in progress, and of replies not yet sent.",
        |counts| counts.bytes_in_flight,
    ),
    ("nfskit_datagrams_total", "Datagrams received.", |counts| counts.datagrams),
    (
        "nfskit_datagrams_dropped_total",
        "Datagrams dropped because too much was in progress.",
        |counts| counts.datagrams_dropped,
    ),
    (
        "nfskit_datagrams_denied_total",
        "Of these, those dropped because no export names the address they come from.",
        |counts| counts.datagrams_denied,
    ),
    (
        "nfskit_datagram_replies_dropped_total",
        "Replies in datagrams that could not be sent.",
        |counts| counts.replies_dropped,
    ),
];

/// What the system says of this process, under the names that all programs use.
fn process(started: Duration) -> Vec<Reading> {
    let version = Reading::new("nfskit_build_info", "The version of nfskit.", 1.0)
        .of("version", env!("CARGO_PKG_VERSION"));
    let cpu = rustix::time::clock_gettime(ClockId::ProcessCPUTime);
    let cpu_seconds = cpu.tv_sec as f64 + cpu.tv_nsec as f64 * 1e-9;
    let mut readings = vec![
        version,
        Reading::new("process_cpu_seconds_total", "Processor time, user and system.", cpu_seconds),
        Reading::new(
            "process_start_time_seconds",
            "When the process started, since 1970.",
            started.as_secs_f64(),
        ),
    ];
    let mut add = |name, help, value: Option<f64>| {
        readings.extend(value.map(|value| Reading::new(name, help, value)));
    };
    add("process_resident_memory_bytes", "Memory in use.", resident_bytes());
    let fds = fs::read_dir("/proc/self/fd").ok().map(|fds| fds.count() as f64);
    add("process_open_fds", "Open descriptors.", fds);
    let fds_max = getrlimit(Resource::Nofile).current.map(|max| max as f64);
    add("process_max_fds", "The most descriptors there may be.", fds_max);
    readings
}

/// The second number of statm counts pages (proc_pid_statm(5)).
fn resident_bytes() -> Option<f64> {
    let statm = fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some((pages * rustix::param::page_size() as u64) as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_of_requests_makes_few_pages() {
        let (mut recent, made) = (Recent::default(), std::cell::Cell::new(0));
        let make = || {
            made.set(made.get() + 1);
            made.get().to_string()
        };
        let at = |ms| Instant::EPOCH + Nanos::from_millis(ms);
        for ms in 0..999 {
            recent.page(at(ms), make);
        }
        assert_eq!((made.get(), recent.page(at(999), make).as_str()), (20, "20"));
        assert_eq!(recent.page(at(1000), make), "21");
        // Who asks now and then always gets a new one.
        assert_eq!(recent.page(at(3000), make), "22");
    }

    #[test]
    fn the_process_is_measured() {
        let mut readings = process(Duration::from_secs(7));
        let value = |name: &str| {
            readings.iter().find(|reading| reading.name == name).map(|reading| reading.value)
        };
        assert!(value("process_cpu_seconds_total").unwrap() > 0.0);
        assert!(value("process_resident_memory_bytes").unwrap() > 1e6);
        assert!(value("process_open_fds").unwrap() >= 3.0);
        assert_eq!(value("process_start_time_seconds"), Some(7.0));
        readings.extend(host(&Counts::default()));
        let manual = include_str!("../../../docs/metrics.md");
        assert!(readings.iter().all(|reading| manual.contains(&format!("`{}`", reading.name))));
    }
}
