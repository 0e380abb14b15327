//! Rates of `/proc/net/rpc/nfsd` and `/proc/fs/nfsd/pool_stats`: the kernel's server.

use serde::Serialize;

use super::{Less, NetRates, ProcedureRates, Span, began_anew, listed, net_rates, of_net};
use super::{of_version, paired, procedure_rates, share};
use crate::pools::Pool;
use crate::server::Server;

/// See the module's head. What the kernel does not count is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ServerRates {
    pub span: Span,
    pub calls: Option<u64>,
    pub calls_per_s: Option<f64>,
    pub refused: Option<RefusedRates>,
    pub reply_cache: Option<ReplyCacheRates>,
    /// Handles of what is no more.
    pub stale_handles: Option<u64>,
    pub read_bytes: Option<u64>,
    pub written_bytes: Option<u64>,
    pub read_bytes_per_s: Option<f64>,
    pub written_bytes_per_s: Option<f64>,
    /// There are now.
    pub threads: Option<u64>,
    /// Times that all threads were busy; newer kernels do not count them.
    pub all_busy: Option<u64>,
    pub net: Option<NetRates>,
    /// Of versions 2 to 4, called or not.
    pub procedures: Vec<ProcedureRates>,
    /// Operations inside of version 4's COMPOUND, by their numbers (RFC 7530, section 16).
    pub v4_operations: Vec<u64>,
    pub pools: Vec<PoolRates>,
}

/// Calls that were not served.
#[derive(Clone, Copy, Debug, Eq, PartialEq, Serialize)]
pub struct RefusedRates {
    pub all: u64,
    pub bad_format: u64,
    pub bad_authentication: u64,
    pub bad_client: u64,
}

/// The duplicate request cache.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReplyCacheRates {
    /// Retransmissions of what had been answered, or was in progress.
    pub hits: u64,
    pub misses: u64,
    pub uncached: u64,
    /// Of all that came.
    pub hit_share: Option<f64>,
}

/// One pool of threads.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PoolRates {
    pub number: u64,
    pub arrived: Option<u64>,
    /// Messages that found no idle thread, and their share of those that arrived.
    pub enqueued: Option<u64>,
    pub enqueued_share: Option<f64>,
    pub woken: Option<u64>,
    pub timed_out: Option<u64>,
}

/// One sample of the server; the pools are empty where they cannot be read.
#[derive(Clone, Copy, Debug)]
pub struct Sample<'a> {
    pub server: &'a Server,
    pub pools: &'a [Pool],
}

/// What came since `before`, `elapsed_s` ago; all since the machine started, `up_s` ago, where
/// there is no sample before or the counters began anew.
pub fn rates(now: Sample<'_>, before: Option<(Sample<'_>, f64)>, up_s: Option<f64>) -> ServerRates {
    let before = before.filter(|(before, _)| !is_anew(now.server, before.server));
    let span = match before {
        Some((_, elapsed_s)) => Span::sample(elapsed_s),
        None => Span::beginning(up_s),
    };
    let all = Less(now.server, before.map(|(before, _)| before.server));
    let rpc = all.part(|server| server.rpc.as_ref());
    let calls = rpc.map(|rpc| rpc.of(|rpc| rpc.calls));
    let io = all.part(|server| server.io.as_ref());
    let read_bytes = io.map(|io| io.of(|io| io.read_bytes));
    let written_bytes = io.map(|io| io.of(|io| io.written_bytes));
    let threads = all.part(|server| server.threads.as_ref());
    ServerRates {
        span,
        calls,
        calls_per_s: calls.and_then(|calls| span.per_s(calls)),
        refused: rpc.map(|rpc| RefusedRates {
            all: rpc.of(|rpc| rpc.bad),
            bad_format: rpc.of(|rpc| rpc.bad_format),
            bad_authentication: rpc.of(|rpc| rpc.bad_authentication),
            bad_client: rpc.of(|rpc| rpc.bad_client),
        }),
        reply_cache: all.part(|server| server.reply_cache.as_ref()).map(reply_cache),
        stale_handles: all.maybe(|server| server.stale_handles),
        read_bytes,
        written_bytes,
        read_bytes_per_s: read_bytes.and_then(|bytes| span.per_s(bytes)),
        written_bytes_per_s: written_bytes.and_then(|bytes| span.per_s(bytes)),
        threads: threads.map(|threads| threads.0.threads),
        all_busy: threads.map(|threads| threads.of(|threads| threads.all_busy)),
        net: all.part(|server| server.net.as_ref()).map(net_rates),
        procedures: procedures(all, &span),
        v4_operations: v4_operations(all),
        pools: pools(now.pools, before.map(|(before, _)| before.pools)),
    }
}

fn reply_cache(cache: Less<'_, crate::server::ReplyCache>) -> ReplyCacheRates {
    let hits = cache.of(|cache| cache.hits);
    let misses = cache.of(|cache| cache.misses);
    let uncached = cache.of(|cache| cache.uncached);
    let all = hits.saturating_add(misses).saturating_add(uncached);
    ReplyCacheRates { hits, misses, uncached, hit_share: share(hits, all) }
}

fn procedures(all: Less<'_, Server>, span: &Span) -> Vec<ProcedureRates> {
    let versions = [
        all.part(|server| server.v2.as_ref()),
        all.part(|server| server.v3.as_ref()),
        all.part(|server| server.v4.as_ref()),
    ];
    let each = versions.into_iter().flatten();
    each.flat_map(|of| procedure_rates(of, span).collect::<Vec<_>>()).collect()
}

fn v4_operations(all: Less<'_, Server>) -> Vec<u64> {
    let Some(operations) = all.part(|server| server.v4_operations.as_ref()) else {
        return Vec::new();
    };
    let of = |at: usize| operations.maybe(|of| of.get(at).copied()).unwrap_or(0);
    (0..operations.0.len()).map(of).collect()
}

fn pools(now: &[Pool], before: Option<&[Pool]>) -> Vec<PoolRates> {
    let each = now.iter().map(|pool| {
        let same = |other: &&Pool| other.number == pool.number;
        let pool = Less(pool, before.and_then(|before| before.iter().find(same)));
        let arrived = pool.maybe(|pool| pool.arrived);
        let enqueued = pool.maybe(|pool| pool.enqueued);
        PoolRates {
            number: pool.0.number,
            arrived,
            enqueued,
            enqueued_share: enqueued.zip(arrived).and_then(|(some, all)| share(some, all)),
            woken: pool.maybe(|pool| pool.woken),
            timed_out: pool.maybe(|pool| pool.timed_out),
        }
    });
    each.collect()
}

/// The module was loaded anew, or it is another network namespace's.
fn is_anew(now: &Server, before: &Server) -> bool {
    let versions = [(&now.v2, &before.v2), (&now.v3, &before.v3), (&now.v4, &before.v4)];
    let procedures = versions.into_iter().flat_map(of_version);
    let operations = listed(now.v4_operations.as_ref(), before.v4_operations.as_ref());
    let rpc = paired(now.rpc.as_ref(), before.rpc.as_ref(), |rpc| {
        [rpc.calls, rpc.bad, rpc.bad_format, rpc.bad_authentication, rpc.bad_client]
    });
    let cache = paired(now.reply_cache.as_ref(), before.reply_cache.as_ref(), |cache| {
        [cache.hits, cache.misses, cache.uncached]
    });
    let net = paired(now.net.as_ref(), before.net.as_ref(), of_net);
    // Of 32 bits, bytes may grow by more than half of their range.
    let mut io =
        paired(now.io.as_ref(), before.io.as_ref(), |io| [io.read_bytes, io.written_bytes]);
    io.retain(|(_, before)| *before > u64::from(u32::MAX));
    let all = procedures.chain(operations).chain(rpc).chain(cache).chain(net).chain(io);
    began_anew(&all.collect::<Vec<_>>())
}
