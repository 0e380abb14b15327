//! As many calls are outstanding as a session of version 4.1 has slots.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "session-slots",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats", "/sys/module/nfs/parameters/max_session_slots"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "share", default: 0.8, of: "share of the slots that is in use" },
    ],
    source: "Azure NetApp Files, performance-linux-concurrency (64 by default, 180 there, nconnect \
             of 2 and more)",
    explanation: "A session of version 4.1 or 4.2 allows as many outstanding calls as it has \
                  slots, over all its connections. The number of slots is the smaller of what \
                  client and server offer. Where no call waits before it is sent, the finding is \
                  of low severity.",
    remedy: "`options nfs max_session_slots=180` for the module, then mount again; the server has \
             its own limit.",
    gain: "By the closed model, from what waits.",
    explained_by: &[],
    judge,
};

/// What the kernel takes where nobody has set it.
const SLOTS: f64 = 64.0;

fn judge(case: &Case<'_>) -> Judged {
    let (mount, _, means) = case.used(&RULE)?;
    let is_session = mount.now.version() == Some(4) && mount.now.option("vers") != Some("4.0");
    not_applicable_if(!is_session)?;
    let setting = case.evidence.number("sys/module/nfs/parameters/max_session_slots");
    let slots = setting.unwrap_or(SLOTS);
    let known = mount.rates.transports.iter().filter_map(|one| one.outstanding_mean);
    let outstanding = known.reduce(|sum, one| sum + one).ok_or(NoFinding::NotApplicable)?;
    let numbers = format!("{outstanding:.1} calls outstanding of {slots:.0} slots of the session");
    fine_if(outstanding < case.limit(&RULE, "share") * slots, &numbers)?;
    let floor_ms = case.floor_ms();
    let gain = model::more_outstanding(outstanding, means.rtt_ms, means.queue_ms, floor_ms);
    // Calls that do not wait for a slot gain nothing of more.
    let waits = means.queue_ms > 0.1 * means.rtt_ms;
    Found::new(&RULE, numbers, remedy(slots))
        .severity(if waits { Severity::Medium } else { Severity::Low })
        .gain(gain)
        .into()
}

fn remedy(slots: f64) -> String {
    /// Of the kernel (NFS4_MAX_SLOT_TABLE).
    const SLOTS_MAX: f64 = 1024.0;
    match (slots * 3.0).min(SLOTS_MAX) {
        more if more > slots => format!(
            "echo options nfs max_session_slots={more:.0} > /etc/modprobe.d/nfs.conf, then load it \
             anew"
        ),
        _ => "fewer calls (larger rsize and wsize), or several hosts: no session has more slots"
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, is_quiet, mount, one};

    fn text(outstanding: u64) -> String {
        mount("rw,vers=4.1", &["WRITE: 1000 1000 0 0 0 20000 20000 41000 0"])
            .replace("100003/3", "100003/4")
            .replace("400 400 0 450", &format!("400 400 0 {}", outstanding * 400))
    }

    #[test]
    fn a_session_that_is_full_is_found() {
        assert!(found(&RULE, &one(&text(62))).what.starts_with("62.0 calls outstanding of 64"));
    }

    #[test]
    fn more_slots_are_advised_than_there_are_or_none() {
        assert!(remedy(64.0).contains("max_session_slots=192 "));
        assert!(remedy(512.0).contains("max_session_slots=1024 "));
        assert!(remedy(1024.0).starts_with("fewer calls"));
    }

    #[test]
    fn a_session_of_which_no_call_waits_is_of_little_weight() {
        let severity = |queue_ms: &str| {
            found(&RULE, &one(&text(62).replace("0 20000 20000 41000", queue_ms))).severity
        };
        assert_eq!(severity("0 20000 20000 41000"), Severity::Medium);
        assert_eq!(severity("0 0 20000 20000"), Severity::Low);
    }

    #[test]
    fn one_with_free_slots_is_fine() {
        is_fine(&RULE, &one(&text(7)));
        is_quiet(&RULE, &one(&text(62).replace("vers=4.1", "vers=4.0")));
    }
}
