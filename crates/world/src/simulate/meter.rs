//! What a server did between two moments.

use net::clock::Clock;
use net::processor;
use perf::model::disk::Counts;
use perf::units::Nanos;
use server::store::sim::Stats;
use tokio::sync::oneshot;

use crate::server::Server;

/// What a server did in the time that counts, over all its lives.
#[derive(Clone, Debug, PartialEq)]
pub struct ServerOutcome {
    pub number: usize,
    pub cores: usize,
    /// Of 1.
    pub processor_utilization: f64,
    /// How long a piece of work waited for a core, on average.
    pub processor_wait: Nanos,
    /// Of 1: of what it does at once, or of its rate, whichever is more.
    pub disk_utilization: f64,
    pub disk: Counts,
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// How often it had started at the end.
    pub lives: u64,
    /// Utilization in equal slices of the time that counts.
    pub over_time: Vec<Slice>,
}

/// A part of the time that counts. What begins in a slice is counted in it, so that one may be a
/// little over 1, and the next a little under what it was.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slice {
    /// The slice's end, from the beginning of the time that counts.
    pub until: Nanos,
    /// Of 1.
    pub processor: f64,
    pub disk: f64,
}

/// Slices that the time is cut into.
const SLICES: u64 = 50;

/// Reads a server's counters at two moments.
#[derive(Debug)]
pub(super) struct Meter {
    outcome: oneshot::Receiver<ServerOutcome>,
}

struct Reading {
    processor: processor::Load,
    store: Stats,
    lives: u64,
}

impl Reading {
    fn of(server: &Server) -> Self {
        Self { processor: server.load(), store: server.stats(), lives: server.lives() }
    }
}

impl Meter {
    /// From `after` from now on, for `span`.
    pub(super) fn start(
        clock: &Clock,
        server: &Server,
        number: usize,
        after: Nanos,
        span: Nanos,
    ) -> Self {
        let (done, outcome) = oneshot::channel();
        let (own, server) = (clock.clone(), server.clone());
        clock.spawn(async move {
            own.sleep(after).await;
            let begin = Reading::of(&server);
            let mut over_time = Vec::new();
            let (began, mut last) = (own.now(), Reading::of(&server));
            for slice in 1..=SLICES {
                let until = span * slice / SLICES;
                own.sleep((began + until).since(own.now())).await;
                let now = Reading::of(&server);
                over_time.push(part(&server, &last, &now, until, span / SLICES));
                last = now;
            }
            done.send(ServerOutcome { over_time, ..between(&server, number, &begin, span) }).ok();
        });
        Self { outcome }
    }

    /// Waits for the second moment; none if the world ended before.
    pub(super) async fn read(self) -> Option<ServerOutcome> {
        self.outcome.await.ok()
    }
}

/// Of 1.
fn share(busy: Nanos, servers: usize, span: Nanos) -> f64 {
    busy.as_secs_f64() / (span.as_secs_f64() * servers.max(1) as f64)
}

/// Of a disk: it is full where its slots are, and where a few requests use all of its rate.
fn disk_share(server: &Server, last: &Stats, now: &Stats, span: Nanos) -> f64 {
    let slots = now.disk_busy.saturating_sub(last.disk_busy);
    let transferred = now.disk_transferred.saturating_sub(last.disk_transferred);
    let of_slots = share(slots, server.spec().store.disk.parallel, span);
    of_slots.max(share(transferred, 1, span))
}

fn part(server: &Server, last: &Reading, now: &Reading, until: Nanos, span: Nanos) -> Slice {
    let cores = now.processor.cores;
    Slice {
        until,
        processor: share(now.processor.busy - last.processor.busy, cores, span),
        disk: disk_share(server, &last.store, &now.store, span),
    }
}

fn between(server: &Server, number: usize, begin: &Reading, span: Nanos) -> ServerOutcome {
    let end = Reading::of(server);
    let (cores, jobs) = (end.processor.cores, end.processor.jobs - begin.processor.jobs);
    let (now, then) = (&end.store.disk, &begin.store.disk);
    ServerOutcome {
        number,
        cores,
        processor_utilization: share(end.processor.busy - begin.processor.busy, cores, span),
        processor_wait: match jobs {
            0 => Nanos::ZERO,
            jobs => (end.processor.waited - begin.processor.waited) / jobs,
        },
        disk_utilization: disk_share(server, &begin.store, &end.store, span),
        disk: Counts {
            reads: now.reads - then.reads,
            writes: now.writes - then.writes,
            syncs: now.syncs - then.syncs,
            bytes_read: now.bytes_read - then.bytes_read,
            bytes_written: now.bytes_written - then.bytes_written,
            seeks: now.seeks - then.seeks,
        },
        cache_hits: end.store.cache_hits - begin.store.cache_hits,
        cache_misses: end.store.cache_misses - begin.store.cache_misses,
        lives: end.lives,
        over_time: Vec::new(),
    }
}
