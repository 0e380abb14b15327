//! The server has more threads than it ever needs.

use counters::sum;

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "idle-threads",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::Low,
    needs: &["/proc/fs/nfsd/pool_stats", "/proc/net/rpc/nfsd", "/proc/uptime"],
    thresholds: &[
        Threshold { name: "hours", default: 3.0, of: "fewest hours for a finding" },
        Threshold {
            name: "share",
            default: 0.5,
            of: "of the threads that were idle for an hour, each hour",
        },
    ],
    source: "Documentation/filesystems/nfs/knfsd-stats.rst (`threads-timedout` counts threads that \
             were idle for 60 minutes: a weak clue); the share is ours",
    explanation: "A thread that was idle for an hour was not needed in that hour. Too many threads \
                  cost memory and little else.",
    remedy: "Fewer `threads` in `[nfsd]` of /etc/nfs.conf, if memory is short.",
    gain: "None in speed: it is memory.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let threads =
        server.rates.threads.filter(|threads| *threads > 0).ok_or(NoFinding::NotApplicable)?;
    let hours = server.rates.span.seconds.map_or(0.0, |seconds| seconds / 3600.0);
    let timed_out = sum(server.rates.pools.iter().filter_map(|pool| pool.timed_out));
    not_applicable_if(hours < case.limit(&RULE, "hours"))?;
    let idle = timed_out as f64 / hours;
    let numbers =
        format!("{idle:.1} of {threads} threads were idle for an hour, in each of {hours:.0} h");
    match idle > case.limit(&RULE, "share") * threads as f64 {
        true => {
            Found::new(&RULE, numbers, "threads=N in [nfsd] of /etc/nfs.conf, if memory is short")
                .unpredicted("none in speed: it is memory")
                .into()
        }
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{is_fine, is_quiet, judged, server};

    fn evidence(timed_out: u64, uptime: &str) -> crate::Evidence {
        let pools = format!(
            "# pool packets-arrived sockets-enqueued threads-woken threads-timedout\n\
             0 1000 0 1000 {timed_out}\n"
        );
        server("", &[("proc/fs/nfsd/pool_stats", &pools), ("proc/uptime", uptime)])
    }

    #[test]
    fn threads_that_nobody_needs_are_found() {
        let judged = judged(&RULE, &evidence(60, "36000 1\n"));
        let Ok(found) = judged else { panic!("{judged:?}") };
        assert!(found.what.starts_with("6.0 of 8 threads"), "{found:?}");
    }

    #[test]
    fn those_that_worked_are_fine_and_an_hour_says_nothing() {
        is_fine(&RULE, &evidence(3, "36000 1\n"));
        is_quiet(&RULE, &evidence(60, "3600 1\n"));
    }
}
