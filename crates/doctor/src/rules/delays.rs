//! The server asks to come again later.

use counters::mountstats::Event;

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "delays",
    about: About::Mount,
    layer: Layer::Server,
    severity: Severity::Low,
    needs: &["/proc/self/mountstats"],
    thresholds: &[Threshold { name: "share", default: 0.001, of: "delays for each call" }],
    source: "Linux, include/linux/nfs_iostat.h (`NFSIOS_DELAY`); the threshold is ours",
    explanation: "With JUKEBOX (version 3) and DELAY (version 4) the server tells the client to \
                  repeat a call later: a delegation is recalled, a file comes from tape, a \
                  snapshot is taken. The client waits 0.1 s at first and doubles the wait each \
                  time.",
    remedy: "Look on the server for delegations that clients contend for, and for file systems \
             that are slow to open.",
    gain: "Cannot be predicted: how long a delay takes is not counted.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let delays = mount.rates.events.as_ref().and_then(|events| events.of(Event::Delay));
    let (Some(delays), calls) = (delays, mount.rates.total.calls) else {
        return Err(NoFinding::NotApplicable);
    };
    not_applicable_if(delays as f64 <= case.limit(&RULE, "share") * (calls as f64).max(1.0))?;
    let what = format!("the server put off {delays} of {calls} calls to a later time");
    Found::new(&RULE, what, "on the server: cat /proc/net/rpc/nfsd, and its log")
        .unpredicted("how long a delay takes is not counted")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    const READ: &str = "READ: 9000 9000 0 0 0 1 90000 90900 0";

    #[test]
    fn delays_are_found() {
        let text = mount("rw", &[READ]).replace("23 24 0 0 0", "23 24 40 0 0");
        assert!(found(&RULE, &one(&text)).what.contains("put off 40 of 9000 calls"));
    }

    #[test]
    fn none_are_none() {
        is_quiet(&RULE, &one(&mount("rw", &[READ])));
    }
}
