//! What a server did between two moments.

use net::clock::Clock;
use net::processor;
use perf::model::disk::Counts;
use perf::units::Nanos;
use server::store::sim::Stats;
use tokio::sync::oneshot;

use crate::server::Server;

/// What a server did in the time that counts. Of a server that started again in it, its disk and
/// its cache are those of the last life.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ServerOutcome {
    pub number: usize,
    pub cores: usize,
    /// Of 1.
    pub processor_utilization: f64,
    /// How long a piece of work waited for a core, on average.
    pub processor_wait: Nanos,
    /// Of 1.
    pub disk_utilization: f64,
    pub disk: Counts,
    pub cache_hits: u64,
    pub cache_misses: u64,
    /// How often it had started at the end.
    pub lives: u64,
}

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
            own.sleep(span).await;
            done.send(between(&server, number, &begin, span)).ok();
        });
        Self { outcome }
    }

    /// Waits for the second moment; none if the world ended before.
    pub(super) async fn read(self) -> Option<ServerOutcome> {
        self.outcome.await.ok()
    }
}

fn between(server: &Server, number: usize, begin: &Reading, span: Nanos) -> ServerOutcome {
    let end = Reading::of(server);
    let same_life = begin.lives == end.lives;
    let since = |now: u64, then: u64| if same_life { now.saturating_sub(then) } else { now };
    let busy = |now: Nanos, then: Nanos| if same_life { now - then } else { now };
    let share = |busy: Nanos, servers: usize| {
        busy.as_secs_f64() / (span.as_secs_f64() * servers.max(1) as f64)
    };
    let (cores, jobs) = (end.processor.cores, end.processor.jobs - begin.processor.jobs);
    let (now, then) = (&end.store.disk, &begin.store.disk);
    ServerOutcome {
        number,
        cores,
        processor_utilization: share(end.processor.busy - begin.processor.busy, cores),
        processor_wait: match jobs {
            0 => Nanos::ZERO,
            jobs => (end.processor.waited - begin.processor.waited) / jobs,
        },
        disk_utilization: share(
            busy(end.store.disk_busy, begin.store.disk_busy),
            server.spec().store.disk.parallel,
        ),
        disk: Counts {
            reads: since(now.reads, then.reads),
            writes: since(now.writes, then.writes),
            syncs: since(now.syncs, then.syncs),
            bytes_read: since(now.bytes_read, then.bytes_read),
            bytes_written: since(now.bytes_written, then.bytes_written),
            seeks: since(now.seeks, then.seeks),
        },
        cache_hits: since(end.store.cache_hits, begin.store.cache_hits),
        cache_misses: since(end.store.cache_misses, begin.store.cache_misses),
        lives: end.lives,
    }
}
