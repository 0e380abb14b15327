//! What is told about a server while it runs: counters on an address of their own, and events in
//! the log.

use std::collections::HashMap;
use std::sync::Arc;

use net::clock::Clock;
use net::serve::Host;
use perf::units::Nanos;
use server::metrics::{Metrics, Reading};
use server::store::Store;

use crate::args;
use crate::exit::Failure;
use crate::log::{Log, Rise};
use crate::metrics;
use crate::served::Running;

/// How often counts are looked at that only the log tells of.
const LOOK_INTERVAL: Nanos = Nanos::from_secs(1);

/// The counters that were asked for, if any; slow calls go to the log.
pub(super) fn metrics(args: &args::Serve, log: &Log, clock: &Clock) -> Option<Metrics> {
    let monotonic = metrics::monotonic(clock);
    if let Some(threshold) = args.slow_log {
        let (metrics, mut slow) = Metrics::with_slow_log(monotonic, threshold);
        let log = log.clone();
        clock.spawn(async move {
            while let Some(call) = slow.next().await {
                log.slow(&call);
            }
        });
        return Some(metrics);
    }
    args.metrics.map(|_| Metrics::new(monotonic))
}

/// Begins to tell about `running`.
pub(super) fn begin<S: Store>(
    args: &args::Serve,
    running: &Running<S>,
    log: &Log,
    clock: &Clock,
) -> Result<(), Failure> {
    if let Some(listen) = args.metrics {
        let host = running.host.clone();
        let others = move || of_host(&host);
        metrics::serve(listen, &running.engine, others, clock).map_err(|cause| {
            Failure::environment(
                format!("cannot serve metrics on {listen}: {cause}"),
                "another port (--metrics 127.0.0.1:0 takes a free one)",
            )
        })?;
    }
    let (host, engine) = (running.host.clone(), Arc::clone(&running.engine));
    let (log, own, limit) = (log.clone(), clock.clone(), args.connections as usize);
    clock.spawn(async move {
        let mut refused = Rise::default();
        let mut failures: HashMap<String, Rise> = HashMap::new();
        loop {
            own.sleep(LOOK_INTERVAL).await;
            if let Some(connections) = refused.look(host.counts().connections_refused) {
                log.refused(connections, limit, None);
            }
            for exported in engine.exports().iter() {
                let name = &exported.export.name;
                let failed = failures.entry(name.clone()).or_default();
                if let Some(count) = failed.look(sync_failures(&*exported.store)) {
                    log.sync_failed(name, count);
                }
            }
        }
    });
    Ok(())
}

fn sync_failures(store: &impl Store) -> u64 {
    let readings = store.readings();
    let failures = readings.iter().find(|r| r.name == "nfskit_store_sync_failures_total");
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count")]
    failures.map_or(0, |failures| failures.value as u64)
}

/// What connections and datagrams have come to.
fn of_host(host: &Host) -> Vec<Reading> {
    let counts = host.counts();
    let reading = |name, help, value: u64| Reading::new(name, help, value as f64);
    vec![
        reading("nfskit_connections", "Connections being served.", counts.served_now),
        reading(
            "nfskit_connections_accepted_total",
            "Connections let in.",
            counts.connections_accepted,
        ),
        reading(
            "nfskit_connections_refused_total",
            "Connections that found no place.",
            counts.connections_refused,
        ),
        reading(
            "nfskit_connections_idle_total",
            "Connections closed because nothing was asked.",
            counts.connections_idle,
        ),
        reading(
            "nfskit_connections_stalled_total",
            "Connections closed because the peer did not go on.",
            counts.connections_stalled,
        ),
        reading(
            "nfskit_in_flight_bytes",
            "Bytes of calls in progress and replies not yet sent.",
            counts.bytes_in_flight,
        ),
        reading("nfskit_datagrams_total", "Datagrams received.", counts.datagrams),
        reading(
            "nfskit_datagrams_dropped_total",
            "Datagrams dropped because too much was in progress.",
            counts.datagrams_dropped,
        ),
        reading(
            "nfskit_datagram_replies_dropped_total",
            "Replies in datagrams that could not be sent.",
            counts.replies_dropped,
        ),
    ]
}
