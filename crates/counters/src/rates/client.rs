//! Rates of `/proc/net/rpc/nfs`: all mounts of a host together.

use serde::Serialize;

use super::{Less, NetRates, ProcedureRates, Span, began_anew, net_rates, of_net};
use super::{of_version, paired, procedure_rates, share};
use crate::client::Client;

/// See the module's head. What the kernel does not count is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ClientRates {
    pub span: Span,
    pub calls: Option<u64>,
    pub calls_per_s: Option<f64>,
    pub retransmissions: Option<u64>,
    /// Of the calls.
    pub retransmission_share: Option<f64>,
    pub authentication_refreshes: Option<u64>,
    pub net: Option<NetRates>,
    /// Of versions 2 and 3, called or not. Version 4's clients name theirs by mount only.
    pub procedures: Vec<ProcedureRates>,
    /// Version 4, all operations of its clients.
    pub v4_calls: Option<u64>,
}

/// What came since `before`, `elapsed_s` ago; all since the machine started, `up_s` ago, where
/// there is no sample before or the counters began anew.
pub fn rates(now: &Client, before: Option<(&Client, f64)>, up_s: Option<f64>) -> ClientRates {
    let before = before.filter(|(before, _)| !is_anew(now, before));
    let span = match before {
        Some((_, elapsed_s)) => Span::sample(elapsed_s),
        None => Span::beginning(up_s),
    };
    let all = Less(now, before.map(|(before, _)| before));
    let rpc = all.part(|client| client.rpc.as_ref());
    let calls = rpc.map(|rpc| rpc.of(|rpc| rpc.calls));
    let retransmissions = rpc.map(|rpc| rpc.of(|rpc| rpc.retransmissions));
    let versions = [all.part(|client| client.v2.as_ref()), all.part(|client| client.v3.as_ref())];
    let procedures = versions.into_iter().flatten();
    ClientRates {
        span,
        calls,
        calls_per_s: calls.and_then(|calls| span.per_s(calls)),
        retransmissions,
        retransmission_share: retransmissions.zip(calls).and_then(|(some, all)| share(some, all)),
        authentication_refreshes: rpc.map(|rpc| rpc.of(|rpc| rpc.authentication_refreshes)),
        net: all.part(|client| client.net.as_ref()).map(net_rates),
        procedures: procedures
            .flat_map(|of| procedure_rates(of, &span).collect::<Vec<_>>())
            .collect(),
        v4_calls: all.part(|client| client.v4.as_ref()).map(|v4| {
            let of = |at: usize| v4.maybe(|v4| v4.calls.get(at).copied()).unwrap_or(0);
            (0..v4.0.calls.len()).fold(0, |sum: u64, at| sum.saturating_add(of(at)))
        }),
    }
}

fn is_anew(now: &Client, before: &Client) -> bool {
    let versions = [(&now.v2, &before.v2), (&now.v3, &before.v3), (&now.v4, &before.v4)];
    let procedures = versions.into_iter().flat_map(of_version);
    let rpc = paired(now.rpc.as_ref(), before.rpc.as_ref(), |rpc| {
        [rpc.calls, rpc.retransmissions, rpc.authentication_refreshes]
    });
    let net = paired(now.net.as_ref(), before.net.as_ref(), of_net);
    began_anew(&procedures.chain(rpc).chain(net).collect::<Vec<_>>())
}
