//! Clients want files that others have delegations of.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "delegation-conflicts",
    about: About::Server,
    layer: Layer::Application,
    severity: Severity::Low,
    needs: &["/proc/net/rpc/nfsd"],
    thresholds: &[
        Threshold { name: "opens_min", default: 100.0, of: "fewest OPENs for a finding" },
        Threshold { name: "returned", default: 0.5, of: "DELEGRETURNs for each OPEN" },
        Threshold { name: "getattrs", default: 0.01, of: "recalls for a GETATTR among the calls" },
    ],
    source: "RFC 7530, section 10.4 (a delegation is recalled when another client wants the file); \
             fs/nfsd/stats.c (`wdeleg_getattr`, Linux 6.6); the thresholds are guesses",
    explanation: "An OPEN of a file for which another client has a delegation waits until the \
                  delegation is returned. So does a GETATTR of a file that another client writes. \
                  Many such waits mean that several clients share files.",
    remedy: "Do not share files that clients write; otherwise try without delegations \
             (`fs.leases-enable = 0` on the server), and compare.",
    gain: "Cannot be predicted: how long a recall takes is not counted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let (opens, returned) = (server.calls("OPEN"), server.calls("DELEGRETURN"));
    let getattrs = server.delegation_getattrs.unwrap_or(0);
    let share = getattrs as f64 / (server.all_calls() as f64).max(1.0);
    let is_enough = opens as f64 >= case.limit(&RULE, "opens_min");
    let each = returned as f64 / (opens as f64).max(1.0);
    let is_high = is_enough && each > case.limit(&RULE, "returned");
    let numbers = format!("{returned} delegations returned for {opens} OPENs");
    if !is_high && share <= case.limit(&RULE, "getattrs") {
        return if is_enough {
            Err(NoFinding::Fine(numbers))
        } else {
            Err(NoFinding::NotApplicable)
        };
    }
    Found::new(&RULE, numbers, "find out who shares files; sysctl fs.leases-enable=0 to compare")
        .evidence(format!("{getattrs} GETATTRs of files that another client writes"))
        .against("a client also returns what it does not need any more")
        .unpredicted("how long a recall takes is not counted")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, is_quiet, server};

    /// DELEGRETURN is operation 8, OPEN 18 (RFC 7530, section 16).
    fn evidence(returned: u64, opens: u64, getattrs: u64) -> crate::Evidence {
        let mut calls = vec![0_u64; 40];
        (calls[8], calls[18]) = (returned, opens);
        let calls: Vec<String> = calls.iter().map(u64::to_string).collect();
        let lines = format!("proc4ops 40 {}\nwdeleg_getattr {getattrs}\n", calls.join(" "));
        server(&lines, &[])
    }

    #[test]
    fn files_that_clients_share_are_found() {
        let all = found(&RULE, &evidence(800, 1_000, 0));
        assert!(all.what.starts_with("800 delegations returned for 1000 OPENs"), "{all:?}");
        let written = found(&RULE, &evidence(0, 1_000, 500));
        assert!(written.evidence[0].starts_with("500 GETATTRs"), "{written:?}");
    }

    #[test]
    fn delegations_that_last_are_fine() {
        is_fine(&RULE, &evidence(10, 1_000, 1));
        is_quiet(&RULE, &evidence(0, 0, 0));
    }
}
