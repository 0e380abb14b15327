//! Clients ask a second time for what the server has done.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "reply-cache-hits",
    about: About::Server,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/net/rpc/nfsd"],
    thresholds: &[Threshold { name: "share", default: 0.0005, of: "hits among the calls" }],
    source: "fs/nfsd/stats.c (`rc`); what it means is our reading",
    explanation: "A hit in the duplicate reply cache is a retransmitted call: its reply was lost, \
                  or came after the client's timeout.",
    remedy: "Run nfskit doctor on the clients, and check the network between.",
    gain: "Cannot be predicted: clients know how long they waited.",
    explained_by: &["server-disks", "server-processors", "server-threads"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let cache = server.rates.reply_cache.ok_or(NoFinding::NotApplicable)?;
    let all = cache.hits.saturating_add(cache.misses).saturating_add(cache.uncached);
    let share = cache.hits as f64 / (all as f64).max(1.0);
    let numbers = format!("{} of {all} calls came a second time", cache.hits);
    match share > case.limit(&RULE, "share") {
        true => {
            Found::new(&RULE, numbers, "nfskit doctor on a client; nstat -az TcpRetransSegs here")
                .unpredicted("clients know how long they waited")
                .into()
        }
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server};

    #[test]
    fn calls_that_come_twice_are_found() {
        assert!(found(&RULE, &server("rc 20 1000 9000\n", &[])).what.starts_with("20 of 10020"));
    }

    #[test]
    fn none_are_fine() {
        is_fine(&RULE, &server("rc 0 1000 9000\n", &[]));
    }
}
