//! Calls are outstanding, and no reply comes.

use counters::mountstats::Transport;
use counters::sum;

use super::{About, Case, Rule, Threshold};
use crate::finding::{Certainty, Found, Judged, Layer, NoFinding, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "no-replies",
    about: About::Mount,
    layer: Layer::Server,
    severity: Severity::High,
    needs: &["/proc/self/mountstats, twice", "/proc/PID/task/TID/stat and wchan"],
    thresholds: &[Threshold { name: "seconds_min", default: 1.0, of: "seconds without a reply" }],
    source: "mountstats(8) (`xprt:`, sends and receives)",
    explanation: "More calls were sent than answered, and no reply came between the samples: the \
                  server is down, hangs, or cannot be reached. Programs that use the mount hang as \
                  well. Calls that do not end are in no time and are not counted as calls.",
    remedy: "Check whether the server answers (`ping`, `rpcinfo -T tcp SERVER nfs`), then its log, \
             and `dmesg` here.",
    gain: "Cannot be predicted: calls without a reply have no time.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount_now()?;
    let all = |of: fn(&Transport) -> Option<u64>| sum(mount.now.transports.iter().filter_map(of));
    let outstanding = all(|one| one.sends).saturating_sub(all(|one| one.receives));
    let received = sum(mount.rates.transports.iter().filter_map(|one| one.receives));
    let seconds = mount.rates.span.seconds.unwrap_or(0.0);
    not_applicable_if(
        outstanding == 0 || received > 0 || seconds < case.limit(&RULE, "seconds_min"),
    )?;
    let retransmitted = sum(mount.now.operations.iter().map(|one| one.retransmissions()));
    let (who, certainty) =
        who_waits(case, outstanding > retransmitted).ok_or(NoFinding::NotApplicable)?;
    let host = mount.host();
    let what = format!("no reply in {seconds:.0} s, and at least one call waits for one");
    Found::new(&RULE, what, format!("ping {host}; rpcinfo -T tcp {host} nfs; dmesg | tail"))
        .certainty(certainty)
        .evidence(format!(
            "{outstanding} more sent than received, {} connections",
            mount.now.transports.len()
        ))
        .evidence(who)
        .against("a call that takes this long (a lock, a tape) looks the same")
        .unpredicted("calls without a reply have no time")
        .into()
}

/// What shows that a call waits now. More was sent than received also where a call was given up, or
/// sent on a connection that broke.
fn who_waits(case: &Case<'_>, is_beyond_retransmissions: bool) -> Option<(String, Certainty)> {
    let Some(waits) = case.evidence.last.waits else {
        let who = "which programs wait is not in the evidence: `ps -eo state,wchan:30`".to_owned();
        return is_beyond_retransmissions.then_some((who, Certainty::Possible));
    };
    let tasks = |count: u64, what: &str| format!("tasks that wait {what} (state D): {count}");
    match (waits.for_replies, waits.unknown) {
        (0, 0) => None,
        (0, unknown) => Some((tasks(unknown, "where is hidden"), Certainty::Possible)),
        (known, _) => Some((tasks(known, "for replies of NFS"), Certainty::Likely)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_quiet, mount};

    /// Ten seconds in which nothing was counted but replies.
    fn evidence(receives: u64, waits: &str) -> crate::Evidence {
        let before =
            mount("rw", &["READ: 400 400 0 0 0 1 2 3 0"]).replace("400 400 0", "401 400 0");
        let now = before
            .replace("age:\t1234", "age:\t1244")
            .replace("401 400 0", &format!("401 {receives} 0"));
        let mut all = vec![
            ("1/proc/self/mountstats", &*before),
            ("1/proc/uptime", "1000.0 0\n"),
            ("2/proc/self/mountstats", &*now),
            ("2/proc/uptime", "1010.0 0\n"),
        ];
        all.extend((!waits.is_empty()).then_some(("2/ps.txt", waits)));
        files(&all)
    }

    #[test]
    fn a_server_that_hangs_is_found() {
        let of_cp = evidence(400, "S WCHAN\nD rpc_wait_bit_killable\n");
        let found = found(&RULE, &of_cp);
        assert!(found.what.starts_with("no reply in 10 s"), "{found:?}");
        assert_eq!(found.certainty, Certainty::Likely);
    }

    #[test]
    fn where_tasks_wait_may_be_hidden_or_not_be_there() {
        for waits in ["S WCHAN\nD 0\n", ""] {
            assert_eq!(found(&RULE, &evidence(400, waits)).certainty, Certainty::Possible);
        }
    }

    #[test]
    fn one_that_answers_is_not() {
        is_quiet(&RULE, &evidence(401, "S WCHAN\nD rpc_wait_bit_killable\n"));
    }

    /// A call was given up once, and now nobody uses the mount.
    #[test]
    fn an_idle_mount_is_not() {
        is_quiet(&RULE, &evidence(400, "S WCHAN\nS do_sys_poll\nD folio_wait_bit_common\n"));
    }
}
