//! Calls that nobody answered.

use super::{About, Case, Found, Judged, Layer, Rule, Severity, Threshold, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "major-timeouts",
    about: About::Mount,
    layer: Layer::Server,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[Threshold { name: "timeouts", default: 0.0, of: "major timeouts" }],
    source: "nfs(5) (`timeo`, `retrans`); net/sunrpc/stats.c",
    explanation: "After `retrans` retransmissions a call has a major timeout: \"server not \
                  responding\". With `hard` the program continues to wait; with `soft` it gets \
                  EIO. The server was down, overloaded, or could not be reached.",
    remedy: "Check the server's log, and the path to it at that time.",
    gain: "Cannot be predicted: calls without a reply have no time.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let total = mount.total();
    let timeouts = total.major_timeouts;
    not_applicable_if(timeouts as f64 <= case.limit(&RULE, "timeouts"))?;
    let what = format!("the server did not answer: {timeouts} major timeouts");
    let gives_up = mount.now.option("soft").is_some() || mount.now.option("softerr").is_some();
    let host = mount.host();
    Found::new(&RULE, what, format!("ping {host}; then the server's log; dmesg | grep responding"))
        .evidence(format!("{} calls, {} retransmissions", total.calls, total.retransmissions))
        .evidence(match gives_up {
            true => "the mount is soft: programs got errors",
            false => "the mount is hard: programs waited",
        })
        .unpredicted("calls without a reply have no time")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    #[test]
    fn a_server_that_did_not_answer_is_found() {
        let text = mount("rw,soft", &["READ: 100 120 4 0 0 1 200 210 0"]);
        let found = found(&RULE, &one(&text));
        assert!(found.what.contains("4 major timeouts") && found.evidence[1].contains("errors"));
    }

    #[test]
    fn one_that_did_is_not() {
        is_quiet(&RULE, &one(&mount("rw", &["READ: 100 100 0 0 0 1 200 210 0"])));
    }
}
