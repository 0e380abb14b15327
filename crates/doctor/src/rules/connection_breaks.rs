//! The mount's connections are made anew.

use counters::sum;

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "connection-breaks",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[Threshold {
        name: "per_h",
        default: 1.0,
        of: "connections made anew in an hour",
    }],
    source: "mountstats(8) (`connect_count` of `xprt:`); the threshold is ours",
    explanation: "When a connection breaks, every call that was outstanding on it is lost and is \
                  retransmitted over the next one. Causes are a server that restarts, a firewall \
                  that forgets idle connections, or two clients with the same name (version 4).",
    remedy: "Look in `dmesg` for \"not responding\"; set keepalive below the firewall's limit; \
             give each client its own `nfs4_unique_id`.",
    gain: "Cannot be predicted: what a break costs is not in the times of calls that succeed.",
    explained_by: &["tcp-loss"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let known: Vec<u64> = mount.rates.transports.iter().filter_map(|one| one.reconnects).collect();
    let seconds =
        mount.rates.span.seconds.filter(|_| !known.is_empty()).ok_or(NoFinding::NotApplicable)?;
    let breaks = sum(known.iter().copied());
    let each_h = breaks as f64 / known.len() as f64 / seconds * 3600.0;
    let numbers = format!("{breaks} connections made anew in {seconds:.0} s");
    // One break in a short time is no rate.
    let is_often = each_h > case.limit(&RULE, "per_h") && (breaks > 1 || !mount.is_lifetime());
    match is_often {
        true => Found::new(&RULE, numbers, "dmesg | grep -i 'nfs: server'; then what is between")
            .unpredicted("a call that a break has delayed is not counted apart")
            .against(
                "an idle connection is closed by client or server after minutes, and costs little",
            )
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one};

    #[test]
    fn connections_that_break_again_and_again_are_found() {
        let text = mount("rw", &[]).replace("tcp 800 1 1 0", "tcp 800 1 9 0");
        assert!(found(&RULE, &one(&text)).what.contains("8 connections made anew in 1234 s"));
    }

    #[test]
    fn one_that_has_held_is_fine() {
        is_fine(&RULE, &one(&mount("rw", &[])));
    }
}
