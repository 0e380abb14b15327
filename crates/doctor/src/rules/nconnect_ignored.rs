//! The mount has fewer connections than its options ask for.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, fine_if};

pub(super) static RULE: Rule = Rule {
    name: "nconnect-ignored",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[],
    source: "Azure NetApp Files, performance-linux-mount-options (all mounts of one server have \
             the connections of the first)",
    explanation: "Mounts of the same server and version share their connections. The first mount \
                  decides how many there are; `nconnect` of a later one is silently ignored.",
    remedy: "Unmount every mount of this server, then mount the first with `nconnect`.",
    gain: "Cannot be predicted unless calls wait; then client-queue predicts it.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let is_known = !mount.now.transports.is_empty() && !mount.now.is_printed();
    let wanted = mount.number("nconnect").filter(|_| is_known).ok_or(NoFinding::NotApplicable)?;
    let there_are = mount.now.transports.len();
    let numbers = format!("{there_are} connections of nconnect={wanted:.0}");
    fine_if(there_are as f64 >= wanted, &numbers)?;
    let others = case.evidence.last.mounts.iter();
    let of_server = others.filter(|other| other.device.starts_with(&format!("{}:", mount.host())));
    Found::new(
        &RULE,
        format!("{numbers}: the others were not made"),
        format!(
            "unmount the {} mounts of {} and mount them again, \
         each with nconnect={wanted:.0}",
            of_server.count(),
            mount.host()
        ),
    )
    .of_settings()
    .unpredicted("whether calls wait for a connection is what client-queue says")
    .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, is_quiet, mount, one};

    #[test]
    fn connections_that_were_not_made_are_found() {
        let found = found(&RULE, &one(&mount("rw,nconnect=4", &[])));
        assert!(found.what.contains("1 connections of nconnect=4"), "{found:?}");
    }

    #[test]
    fn those_that_were_are_fine() {
        is_fine(&RULE, &one(&mount("rw,nconnect=1", &[])));
        is_quiet(&RULE, &one(&mount("rw", &[])));
    }
}
