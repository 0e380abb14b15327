//! What a server tells of itself while it runs: pages of metrics, and lines in a log.

use std::net::SocketAddr;

use net::clock::Clock;
use net::serve::Drained;
use perf::units::Nanos;
use server::metrics::{Metrics, SlowCalls};
use server::store::Store;

use crate::args;
use crate::exit::Failure;
use crate::log::{Log, Rise, Writer};
use crate::metrics;
use crate::served::Running;

/// How often counts are looked at that are worth a line when they rise.
const LOOK_INTERVAL: Nanos = Nanos::from_secs(1);

/// The log, and what is measured for it and for `--metrics`.
#[derive(Debug)]
pub(super) struct Observed {
    pub(super) log: Log,
    writer: Writer,
    metrics: Option<Metrics>,
    slow: Option<SlowCalls>,
}

impl Observed {
    pub(super) fn prepare(args: &args::Serve, clock: &Clock) -> Result<Self, Failure> {
        let (log, writer) = Log::start(args.log_format, clock).map_err(|cause| {
            Failure::environment(cause, "raise the limit of threads (ulimit -u)")
        })?;
        let time = metrics::monotonic(clock);
        let (metrics, slow) = match (args.slow_log, args.metrics) {
            (Some(threshold), _) => {
                let (metrics, slow) = Metrics::with_slow_log(time, threshold);
                (Some(metrics), Some(slow))
            }
            (None, Some(_)) => (Some(Metrics::new(time)), None),
            (None, None) => (None, None),
        };
        Ok(Self { log, writer, metrics, slow })
    }

    pub(super) fn metrics(&self) -> Option<Metrics> {
        self.metrics.clone()
    }

    /// Serves the pages, and tells what happens from here on.
    pub(super) fn begin<S: Store>(
        &mut self,
        args: &args::Serve,
        running: &Running<S>,
        address: SocketAddr,
        clock: &Clock,
    ) -> Result<(), Failure> {
        let mut listen = vec![address];
        if let Some(at) = args.metrics {
            let host = running.host.clone();
            let others = move || metrics::host(&host.counts());
            let at = metrics::serve(at, &running.engine, others, clock).map_err(|cause| {
                Failure::environment(
                    format!("cannot listen on {at} for --metrics: {cause}"),
                    "another address or port",
                )
            })?;
            listen.push(at);
        }
        if let Some(mut slow) = self.slow.take() {
            let log = self.log.clone();
            clock.spawn(async move {
                while let Some(call) = slow.next().await {
                    log.slow(&call);
                }
            });
        }
        self.look(args, running, clock);
        let versions = match (args.versions.nfs2, args.versions.nfs3) {
            (true, true) => "NFS 2, 3",
            (true, false) => "NFS 2",
            _ => "NFS 3",
        };
        self.log.started(&listen, &names(running), versions);
        Ok(())
    }

    /// The server was asked to end, and has.
    pub(super) fn end(self, drained: Drained) {
        self.log.shutdown(drained.calls_abandoned, drained.connections_abandoned);
        self.writer.end();
    }

    /// Tells of connections refused and of syncs that failed.
    fn look<S: Store>(&self, args: &args::Serve, running: &Running<S>, clock: &Clock) {
        let (log, own, limit) = (self.log.clone(), clock.clone(), args.connections as usize);
        let (host, engine) = (running.host.clone(), std::sync::Arc::clone(&running.engine));
        let (mut refused, mut failed) = (Rise::default(), Rise::default());
        clock.spawn(async move {
            loop {
                own.sleep(LOOK_INTERVAL).await;
                if let Some(count) = refused.look(host.counts().connections_refused) {
                    log.refused(count, limit);
                }
                if let Some(count) = failed.look(engine.sync_failures()) {
                    log.sync_failed(count);
                }
            }
        });
    }
}

/// The names of the exports.
pub(super) fn names<S: Store>(running: &Running<S>) -> Vec<String> {
    running.engine.exports().iter().map(|exported| exported.export.name.clone()).collect()
}
