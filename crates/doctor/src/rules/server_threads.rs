//! Calls find no idle thread of the server.

use counters::rates::server::PoolRates;

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::subject::Served;

pub(super) static RULE: Rule = Rule {
    name: "server-threads",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::High,
    needs: &["/proc/fs/nfsd/pool_stats", "/proc/net/rpc/nfsd"],
    thresholds: &[
        Threshold { name: "arrived_min", default: 200.0, of: "fewest messages for a finding" },
        Threshold { name: "share", default: 0.01, of: "share of them that found no idle thread" },
        Threshold { name: "woke_none", default: 0.8, of: "the same where only wakes are counted" },
        Threshold { name: "idle", default: 0.05, of: "share of idle processors that is none" },
    ],
    source: "Linux, Documentation/filesystems/nfs/knfsd-stats.rst (ideally none; kernel 6.1 \
             enqueues every message, and those count that woke no thread); the thresholds are ours",
    explanation: "A message that finds no idle thread waits until one is free. Eight calls that \
                  wait for the disk occupy eight threads, which was long the default. If the \
                  processors have no idle time either, more threads do not help.",
    remedy: "`threads=64` under `[nfsd]` in nfs.conf, or `rpc.nfsd 64` at once.",
    gain: "Cannot be predicted: how long calls waited for a thread is not counted.",
    explained_by: &["server-disks", "server-processors"],
    judge,
};

fn sum(server: &Served, of: fn(&PoolRates) -> Option<u64>) -> Option<u64> {
    server.rates.pools.iter().filter_map(of).reduce(u64::saturating_add)
}

/// Messages that arrived, those of them that found no idle thread, and the threshold for these.
///
/// Where every message is enqueued, those that waited woke no thread; but a thread that is about to
/// sleep takes the next one without being woken, too: one call at a time, for eight threads of one
/// processor, woke none in half of all cases.
fn waited(server: &Served) -> Option<(u64, u64, &'static str)> {
    let arrived = sum(server, |pool| pool.arrived)?;
    let enqueued = sum(server, |pool| pool.enqueued)?;
    let woken = sum(server, |pool| pool.woken).filter(|_| enqueued >= arrived);
    Some(match woken {
        Some(woken) => (arrived, arrived.saturating_sub(woken), "woke_none"),
        None => (arrived, enqueued, "share"),
    })
}

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let Some((arrived, waited, limit)) = waited(server) else {
        let what = "whether calls find an idle thread";
        return Err(NoFinding::missing(what, "cat /proc/fs/nfsd/pool_stats"));
    };
    not_applicable_if((arrived as f64) < case.limit(&RULE, "arrived_min"))?;
    let share = waited as f64 / arrived as f64;
    let threads = server.rates.threads.unwrap_or(0);
    let numbers = format!("{:.1} % of the calls found no idle thread of {threads}", share * 100.0);
    fine_if(share <= case.limit(&RULE, limit), &numbers)?;
    let found = Found::new(&RULE, numbers, remedy(threads))
        .evidence(format!("{waited} of {arrived} messages"))
        .unpredicted("how long calls waited for a thread is not counted");
    Ok(match case.host.idle() {
        Some(idle) if idle < case.limit(&RULE, "idle") => found
            .against("the processors have no idle time: more threads do not help")
            .severity(Severity::Medium),
        Some(idle) => found.evidence(format!("the processors are idle {:.0} %", idle * 100.0)),
        None => found,
    })
}

/// More than there are, up to a number with which no processor is waited for.
fn remedy(threads: u64) -> String {
    /// As many are busy in practice with storage, or with one lock.
    const THREADS_MAX: u64 = 1024;
    match threads.saturating_mul(4).clamp(32, THREADS_MAX) {
        more if more > threads => format!("rpc.nfsd {more} (threads={more} in nfs.conf)"),
        _ => "cat /proc/PID/stack of nfsd's threads, for what all of them wait for: disks, locks"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server, wants_more};

    #[test]
    fn too_few_threads_are_found_unless_there_is_no_processor_for_more() {
        let pool = "# pool packets-arrived sockets-enqueued threads-woken threads-timedout\n\
            0 10000 900 9000 0\n";
        let few = found(&RULE, &server("", &[("proc/fs/nfsd/pool_stats", pool)]));
        assert!(few.what.starts_with("9.0 % of the calls found no idle thread of 8"), "{few:?}");
        let busy = [("proc/fs/nfsd/pool_stats", pool), ("proc/stat", "cpu 50 0 950 0 0 0 0\n")];
        assert_eq!(found(&RULE, &server("", &busy)).severity, Severity::Medium);
    }

    #[test]
    fn a_kernel_that_enqueues_every_message_is_understood() {
        let names = "# pool packets-arrived sockets-enqueued threads-woken threads-timedout\n";
        let few = format!("{names}0 10000 10000 1000 0\n");
        let found = found(&RULE, &server("", &[("proc/fs/nfsd/pool_stats", &few)]));
        assert!(found.what.starts_with("90.0 %"), "{found:?}");
        let enough = format!("{names}0 10000 10000 7900 0\n");
        is_fine(&RULE, &server("", &[("proc/fs/nfsd/pool_stats", &enough)]));
    }

    #[test]
    fn more_threads_are_advised_than_there_are_or_none() {
        for (threads, advised) in
            [(0, "rpc.nfsd 32 "), (8, "rpc.nfsd 32 "), (512, "rpc.nfsd 1024 ")]
        {
            assert!(remedy(threads).starts_with(advised), "{threads}");
        }
        for threads in [1024, 4096] {
            assert!(remedy(threads).starts_with("cat /proc/PID/stack"), "{threads}");
        }
    }

    #[test]
    fn enough_threads_are_fine() {
        let pool = "# pool packets-arrived sockets-enqueued\n0 10000 9\n";
        is_fine(&RULE, &server("", &[("proc/fs/nfsd/pool_stats", pool)]));
        wants_more(&RULE, &server("", &[]));
    }
}
