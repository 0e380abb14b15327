//! Calls wait for a slot, of which the limit is reached.

use counters::rates::mounts;

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "slot-limit",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "/proc/sys/sunrpc/tcp_max_slot_table_entries"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold {
            name: "backlog",
            default: 1.0,
            of: "calls that wait for a slot of a connection, on average",
        },
    ],
    source: "Azure NetApp Files, performance-linux-concurrency (128 slots for a connection there); \
             mountstats(8) (`max_slots`, backlog); the threshold is ours",
    explanation: "A connection has a limit on its outstanding calls. Where the largest number of \
                  slots in use equals the limit and calls wait for a slot, the limit decides the \
                  concurrency, even if the server could serve more.",
    remedy: "A larger `sunrpc.tcp_max_slot_table_entries` by sysctl (and in modprobe.d, for the \
             next boot), or `nconnect`. A server that allows fewer calls sets the limit itself.",
    gain: "By the closed model, from what waits.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, _, means) = case.used(&RULE)?;
    let transports = &mount.rates.transports;
    let slots = transports.iter().filter_map(|one| one.slots_max).max();
    let backlog = mounts::mean_at_a_send(transports, |one| one.backlog_mean).unwrap_or(0.0);
    let outstanding = mounts::mean_at_a_send(transports, |one| one.outstanding_mean).unwrap_or(0.0);
    let slots = slots.ok_or(NoFinding::NotApplicable)? as f64;
    let numbers = format!(
        "{backlog:.1} calls wait for a slot{} when one is sent, of at most {slots}",
        if transports.len() > 1 { " of a connection" } else { "" }
    );
    fine_if(backlog <= case.limit(&RULE, "backlog"), &numbers)?;
    let name = if mount.is_udp() { "udp_slot_table_entries" } else { "tcp_max_slot_table_entries" };
    let limit = case.evidence.number(&format!("proc/sys/sunrpc/{name}"));
    not_applicable_if(limit.is_some_and(|limit| slots < limit))?;
    let times = ((outstanding + backlog) / outstanding.max(1.0)).ceil().clamp(2.0, 8.0);
    let remedy = match mount.is_udp() {
        true => "mount again with proto=tcp,nconnect=4".to_owned(),
        false => remedy(name, slots, times, transports.len() as f64),
    };
    let on_way = mount
        .rates
        .total
        .outstanding_mean
        .unwrap_or(outstanding * transports.len() as f64)
        .max(1.0);
    let found = Found::new(&RULE, numbers, remedy)
        .evidence(format!("{outstanding:.1} calls outstanding when one is sent"))
        .gain(model::more_outstanding(on_way, means.rtt_ms, means.queue_ms, case.floor_ms()));
    Ok(match limit {
        Some(_) => found,
        None => found
            .against(format!("the limit is not known (sysctl sunrpc.{name})"))
            .severity(Severity::Medium),
    })
}

/// More slots than there are, or more connections: each has its own.
fn remedy(name: &str, slots: f64, times: f64, connections: f64) -> String {
    /// Of the kernel (RPC_MAX_SLOT_TABLE_LIMIT, and NFS_MAX_CONNECTIONS).
    const SLOTS_MAX: f64 = 65_536.0;
    const CONNECTIONS_MAX: f64 = 16.0;
    let more = (slots * times).clamp(64.0, SLOTS_MAX);
    let slots =
        (more > slots).then(|| format!("sysctl -w sunrpc.{name}={more:.0}, then mount again"));
    let more = (connections * times).min(CONNECTIONS_MAX);
    let connections = (more > connections).then(|| format!("nconnect={more:.0}"));
    let both: Vec<String> = slots.into_iter().chain(connections).collect();
    match both.is_empty() {
        true => "fewer calls: larger rsize and wsize; no kernel has more slots".to_owned(),
        false => both.join("; or "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, is_quiet, mount};

    fn evidence(backlog: u64, limit: &str) -> crate::Evidence {
        let stats = mount("rw", &["WRITE: 1000 1000 0 0 0 20000 20000 41000 0"])
            .replace("400 400 0 450 17 16", &format!("400 400 0 6400 {} 16", backlog * 400));
        files(&[
            ("proc/self/mountstats", &stats),
            ("proc/sys/sunrpc/tcp_max_slot_table_entries", limit),
        ])
    }

    #[test]
    fn a_limit_that_is_reached_is_found() {
        let found = found(&RULE, &evidence(30, "16\n"));
        assert!(found.what.starts_with("30.0 calls wait for a slot"), "{found:?}");
        assert!(found.remedy.contains("entries=64, then mount again; or nconnect=3"), "{found:?}");
    }

    #[test]
    fn more_is_advised_than_there_is() {
        for slots in [128.0, 1024.0] {
            let stats = mount("rw", &["WRITE: 1000 1000 0 0 0 20000 20000 41000 0"])
                .replace("400 400 0 450 17 16", &format!("400 400 0 40000 800000 {slots}"));
            let limit = format!("{slots}\n");
            let found = found(
                &RULE,
                &files(&[
                    ("proc/self/mountstats", &*stats),
                    ("proc/sys/sunrpc/tcp_max_slot_table_entries", &*limit),
                ]),
            );
            let (_, more) = found.remedy.split_once("entries=").unwrap();
            let more: f64 = more.split(',').next().unwrap().parse().unwrap();
            assert!(more > slots, "{slots}: {found:?}");
        }
        assert_eq!(remedy("x", 65_536.0, 2.0, 8.0), "nconnect=16");
        assert!(remedy("x", 65_536.0, 2.0, 16.0).starts_with("fewer calls"));
        assert_eq!(remedy("x", 128.0, 2.0, 16.0), "sysctl -w sunrpc.x=256, then mount again");
    }

    #[test]
    fn of_several_connections_each_has_its_slots() {
        let eight = |backlog: u64| {
            let xprt = format!("\txprt:\ttcp 800 1 1 0 3 400 400 0 25600 {backlog} 64 30 40\n");
            let one = mount("rw,nconnect=8", &["WRITE: 3200 3200 0 0 0 20000 20000 41000 0"]);
            let (head, tail) = one.split_once("\txprt:").unwrap();
            let tail = tail.split_once('\n').unwrap().1;
            files(&[("proc/self/mountstats", &format!("{head}{}{tail}", xprt.repeat(8)))])
        };
        let found = found(&RULE, &eight(512 * 400));
        let expected =
            "512.0 calls wait for a slot of a connection when one is sent, of at most 64";
        assert_eq!(found.what, expected);
        assert_eq!(found.evidence, ["64.0 calls outstanding when one is sent"]);
        // 0.2 calls wait at a send: 1.6 of all eight together.
        is_fine(&RULE, &eight(80));
    }

    #[test]
    fn one_that_is_not_is_not() {
        is_fine(&RULE, &evidence(0, "16\n"));
        is_quiet(&RULE, &evidence(30, "65536\n"));
    }
}
