//! Programs get an error where they could wait.

use super::{About, Case, Found, Judged, Layer, Rule, Severity, not_applicable_if};

pub(super) static RULE: Rule = Rule {
    name: "soft-mount",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Low,
    needs: &["/proc/self/mountstats"],
    thresholds: &[],
    source: "nfs(5) (\"soft\": silent data corruption in certain cases)",
    explanation: "With `soft`, a call that is not answered after `retrans` retransmissions of \
                  `timeo` ends with EIO. Data that a program had written and not synced may be \
                  lost.",
    remedy: "`hard`, at least for what is written; `softerr` or `softreval` for what is only read.",
    gain: "None: it is about safety.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let is_soft = mount.now.option("soft").is_some();
    not_applicable_if(!is_soft || mount.now.option("ro").is_some())?;
    let writes = mount.group(&["WRITE"]).calls;
    let what = "the mount is soft: what a server does not answer in time is an error (EIO)";
    Found::new(&RULE, what, "mount again with hard")
        .of_settings()
        .severity(if writes > 0 { Severity::Medium } else { Severity::Low })
        .evidence(format!("{writes} WRITEs; timeo={}", mount.now.option("timeo").unwrap_or("?")))
        .unpredicted("it is about safety, not speed")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    #[test]
    fn a_soft_mount_that_is_written_to_is_found() {
        let write = "WRITE: 1000 1000 0 0 0 1 3000 3100 0";
        assert_eq!(found(&RULE, &one(&mount("rw,soft", &[write]))).severity, Severity::Medium);
        assert_eq!(found(&RULE, &one(&mount("rw,soft", &[]))).severity, Severity::Low);
    }

    #[test]
    fn a_hard_one_is_not() {
        is_quiet(&RULE, &one(&mount("rw,hard", &[])));
    }
}
