//! What a server reports while it runs: counters on an address of their own, and events in
//! the log.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

use harness::events::{Log, Rise};
use harness::exit::Failure;
use harness::hints;
use harness::metrics;
use harness::served::Running;
use net::clock::Clock;
use net::slack::Slack;
use net::transport::CALL_BYTES_MAX;
use perf::units::Nanos;
use server::metrics::Metrics;
use server::store::Store;

use crate::args;

/// How often counts are looked at that only the log tells of.
const LOOK_INTERVAL: Nanos = Nanos::from_secs(1);

/// The counters that were requested, if any; slow calls go to the log.
pub(super) fn metrics(args: &args::Serve, log: &Log, clock: &Clock) -> Option<Metrics> {
    let monotonic = world::machine::passing(clock);
    let telling = |metrics: Metrics| match args.metrics_files {
        true => metrics.with_files(),
        false => metrics,
    };
    if let Some(threshold) = args.slow_log {
        let (metrics, mut slow) = Metrics::with_slow_log(monotonic, threshold);
        let log = log.clone();
        clock.spawn(async move {
            while let Some(call) = slow.next().await {
                log.slow(&call);
            }
        });
        return Some(telling(metrics));
    }
    args.metrics.map(|_| telling(Metrics::new(monotonic)))
}

/// Begins to tell about `running`; gives where its counters are.
pub(super) fn begin<S: Store>(
    args: &args::Serve,
    running: &Running<S>,
    log: &Log,
    clock: &Clock,
) -> Result<Option<SocketAddr>, Failure> {
    let mut address = None;
    if let Some(listen) = args.metrics {
        let host = running.host.clone();
        let others = move || metrics::host(&host.counts());
        let served = metrics::serve(listen, &running.engine, others, clock);
        address = Some(served.map_err(|cause| hints::metrics(listen, &cause))?);
    }
    let (host, engine) = (running.host.clone(), Arc::clone(&running.engine));
    let (log, own, limit) = (log.clone(), clock.clone(), args.connections as usize);
    clock.spawn(async move {
        let (mut refused, mut denied) = (Rise::default(), Rise::default());
        let (mut evicted, mut too_long) = (Rise::default(), Rise::default());
        let mut idle = Slack::default();
        let mut failures: HashMap<String, Rise> = HashMap::new();
        loop {
            own.sleep(LOOK_INTERVAL).await;
            let counts = host.counts();
            if let Some(connections) = refused.look(counts.connections_refused) {
                log.refused(connections, limit, None);
            }
            if let Some(connections) = denied.look(counts.connections_denied) {
                log.denied(connections);
            }
            if let Some(connections) = evicted.look(counts.connections_evicted) {
                log.evicted(connections, limit);
            }
            if let Some(records) = too_long.look(counts.records_too_long) {
                log.records_too_long(records, CALL_BYTES_MAX);
            }
            if idle.is_due(host.take_peak_bytes(), counts.bytes_in_flight) {
                host.release();
                net::slack::begin_to_give_back();
            }
            for exported in engine.exports().iter() {
                let name = &exported.export.name;
                let failed = failures.entry(name.clone()).or_default();
                if let Some(count) = failed.look(exported.store.sync_failures()) {
                    log.sync_failed(name, count);
                }
            }
        }
    });
    Ok(address)
}
