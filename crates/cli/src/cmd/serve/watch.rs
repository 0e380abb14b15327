//! What a server reports while it runs: counters on an address of their own, and events in
//! the log.

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::sync::Arc;

use harness::events::{Log, Rise};
use harness::exit::Failure;
use harness::hints;
use harness::metrics;
use harness::served::Running;
use net::clock::Clock;
use net::http::Listener;
use net::serve::{Counts, Host, Limits};
use net::slack::Slack;
use net::transport::CALL_BYTES_MAX;
use perf::units::Nanos;
use server::Engine;
use server::metrics::{Metrics, SlowCalls};
use server::store::Store;

use crate::args::Serve;

/// How often counts are looked at that only the log tells of.
const LOOK_INTERVAL: Nanos = Nanos::from_secs(1);

/// The counters that were requested, if any; slow calls go to the log.
pub(super) fn metrics(args: &Serve, log: &Log, clock: &Clock) -> Option<Metrics> {
    let monotonic = world::machine::passing(clock);
    let metrics = match (args.slow_log, args.metrics) {
        (Some(threshold), _) => {
            let (metrics, slow) = Metrics::with_slow_log(monotonic, threshold);
            clock.spawn(log_slow(slow, log.clone()));
            metrics
        }
        (None, Some(_)) => Metrics::new(monotonic),
        (None, None) => return None,
    };
    Some(if args.metrics_files { metrics.with_files() } else { metrics })
}

async fn log_slow(mut slow: SlowCalls, log: Log) {
    while let Some(call) = slow.next().await {
        log.slow(&call);
    }
}

/// Where the counters are to be, if anywhere.
pub(super) fn bind(args: &Serve) -> Result<Option<(SocketAddr, Listener)>, Failure> {
    let Some(listen) = args.metrics else { return Ok(None) };
    let bound = Listener::bind(listen).and_then(|bound| Ok((bound.local_addr()?, bound)));
    bound.map(Some).map_err(|cause| hints::metrics(listen, &cause))
}

/// Begins to report about `running`, its counters at `pages`.
pub(super) fn begin<S: Store>(
    pages: Option<Listener>,
    running: &Running<S>,
    limits: Limits,
    log: &Log,
    clock: &Clock,
) {
    if let Some(listener) = pages {
        let host = running.host.clone();
        let others = move || metrics::host(&host.counts());
        metrics::serve(listener, &running.engine, others, clock);
    }
    let watch = Watch {
        host: running.host.clone(),
        engine: Arc::clone(&running.engine),
        log: log.clone(),
        limits,
        rises: Rises::default(),
        idle: Slack::default(),
    };
    let own = clock.clone();
    clock.spawn(async move { watch.run(&own).await });
}

/// Looks in a row that find calls waiting in the system before that is logged.
const STALLED_LOOKS: u32 = 5;

/// What has been logged of each count.
#[derive(Default)]
struct Rises {
    refused: Rise,
    denied: Rise,
    evicted: Rise,
    short: Rise,
    too_long: Rise,
    /// Looks in a row that found calls waiting in the system.
    stalled_looks: u32,
    /// Failed syncs, by the export.
    sync_failures: HashMap<String, Rise>,
    /// Exports some of whose handles a restart would forget.
    unstored: HashSet<String>,
    /// A restart would forget replies.
    forgets_replies: bool,
}

/// Counts that only the log tells of.
struct Watch<S> {
    host: Host,
    engine: Arc<Engine<S>>,
    log: Log,
    limits: Limits,
    rises: Rises,
    idle: Slack,
}

impl<S: Store> Watch<S> {
    async fn run(mut self, clock: &Clock) {
        loop {
            clock.sleep(LOOK_INTERVAL).await;
            let counts = self.host.counts();
            self.connections(&counts);
            self.stalls(counts.calls_stalled);
            self.syncs();
            self.handles();
            self.replies();
            if self.idle.is_due(self.host.take_peak_bytes(), counts.bytes_in_flight) {
                self.host.release();
                net::slack::begin_to_give_back();
            }
        }
    }

    fn connections(&mut self, counts: &Counts) {
        let (log, limits) = (&self.log, &self.limits);
        if let Some(connections) = self.rises.refused.look(counts.connections_refused) {
            log.refused(connections, limits);
        }
        if let Some(connections) = self.rises.denied.look(counts.connections_denied) {
            log.denied(connections);
        }
        if let Some(connections) = self.rises.evicted.look(counts.connections_evicted) {
            log.evicted(connections, limits);
        }
        if let Some(times) = self.rises.short.look(counts.connections_short) {
            log.short(times);
        }
        if let Some(records) = self.rises.too_long.look(counts.records_too_long) {
            log.records_too_long(records, CALL_BYTES_MAX);
        }
    }

    fn stalls(&mut self, calls: u64) {
        let before = self.rises.stalled_looks;
        self.rises.stalled_looks = if calls > 0 { before.saturating_add(1) } else { 0 };
        if self.rises.stalled_looks == STALLED_LOOKS || (calls == 0 && before >= STALLED_LOOKS) {
            self.log.calls_stalled(calls);
        }
    }

    fn handles(&mut self) {
        for exported in self.engine.exports().iter() {
            let name = &exported.export.name;
            let unstored = Some(exported.store.unstored_handles()).filter(|unstored| *unstored > 0);
            let is_news = match unstored {
                Some(_) => self.rises.unstored.insert(name.clone()),
                None => self.rises.unstored.remove(name),
            };
            if is_news {
                self.log.handles_unstored(name, unstored);
            }
        }
    }

    fn replies(&mut self) {
        let forgets = self.engine.forgets_replies();
        if std::mem::replace(&mut self.rises.forgets_replies, forgets) != forgets {
            self.log.replies_unstored(forgets);
        }
    }

    fn syncs(&mut self) {
        for exported in self.engine.exports().iter() {
            let name = &exported.export.name;
            let failed = self.rises.sync_failures.entry(name.clone()).or_default();
            if let Some(count) = failed.look(exported.store.sync_failures()) {
                self.log.sync_failed(name, count);
            }
        }
    }
}
