//! One connection carries as much as one flow does.

use super::{About, Case, Rule, Threshold};
use crate::finding::{
    Certainty, Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if,
};

pub(super) static RULE: Rule = Rule {
    name: "single-connection",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats, twice"],
    thresholds: &[
        Threshold {
            name: "bytes_per_s",
            default: 300e6,
            of: "bytes a second, one way, from which one flow may be what limits",
        },
        Threshold { name: "outstanding", default: 4.0, of: "calls under way, on average" },
    ],
    source: "Azure NetApp Files, performance-linux-mount-options (a job of 8 h took 5.5 h with \
             nconnect=8, the best of 1 to 16); the thresholds are guesses",
    explanation: "A TCP connection is one flow: at either end one processor copies and checks its \
                  bytes, one loss slows all of it, and one link of a bond carries it. With \
                  `nconnect` a mount has several connections.",
    remedy: "Unmount every mount of this server, then mount with `nconnect=4`, and 8 for \
             comparison (at most 16).",
    gain: "As others have measured; no model of ours includes the processors of both ends.",
    explained_by: &["slow-interface", "tcp-loss"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case
        .mount
        .filter(|mount| mount.is_tcp() && !mount.is_lifetime())
        .ok_or(NoFinding::NotApplicable)?;
    let has_others = mount.now.is_printed() && mount.number("nconnect").is_some();
    not_applicable_if(mount.now.transports.len() != 1 || has_others)?;
    let total = &mount.rates.total;
    let both = total.sent_bytes_per_s.zip(total.received_bytes_per_s);
    let (Some((sent, received)), Some(outstanding)) = (both, total.outstanding_mean) else {
        return Err(NoFinding::NotApplicable);
    };
    let rate = sent.max(received);
    let numbers = format!("one connection carries {:.0} MB/s", rate / 1e6);
    let is_full =
        rate >= case.limit(&RULE, "bytes_per_s") && outstanding >= case.limit(&RULE, "outstanding");
    fine_if(!is_full, &numbers)?;
    Found::new(
        &RULE,
        format!("{numbers}, with {outstanding:.0} calls under way"),
        format!("umount the mounts of {}; mount -o nconnect=4, then 8", mount.host()),
    )
    .certainty(Certainty::Possible)
    .against("a link that is full carries no more with several connections")
    .gain(Gain::faster("bytes", (1.0, 8.0 / 5.5), "what others have measured"))
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, is_quiet, mount, one, two};

    fn evidence(bytes: u64, xprts: usize) -> crate::Evidence {
        let text = |calls: u64, bytes: u64, age: &str| {
            let line = format!("READ: {calls} {calls} 0 0 {bytes} 0 {} {0} 0", calls * 5);
            let text = mount("rw,proto=tcp", &[&line]).replace("1234", age);
            let xprt = "\txprt:\ttcp 800 1 1 0 3 400 400 0 450 17 16 30 40\n";
            text.replace(xprt, &xprt.repeat(xprts))
        };
        two(10.0, &text(1_000, 0, "1234"), &text(11_000, bytes, "1244"))
    }

    #[test]
    fn a_flow_that_carries_much_is_found() {
        let found = found(&RULE, &evidence(5_000_000_000, 1));
        assert!(found.what.contains("500 MB/s, with 5 calls under way"), "{found:?}");
    }

    #[test]
    fn little_is_fine_and_several_are_not_its_subject() {
        is_fine(&RULE, &evidence(5_000_000, 1));
        is_quiet(&RULE, &evidence(5_000_000_000, 4));
        is_quiet(&RULE, &one(&mount("rw", &[])));
    }
}
