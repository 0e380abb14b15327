//! Every byte is signed or encrypted.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity};

pub(super) static RULE: Rule = Rule {
    name: "kerberos",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats"],
    thresholds: &[],
    source: "Azure NetApp Files, performance-linux-mount-options (warns of `nconnect` with krb5)",
    explanation: "Both ends sign every call with `sec=krb5i` and encrypt it with `sec=krb5p`. That \
                  costs processor time for each byte, and several connections of one mount contend \
                  for the same context.",
    remedy: "`sec=krb5` where the network is trusted, or TLS (RFC 9289); without `nconnect`.",
    gain: "Cannot be predicted: the processor time of the cryptography is not counted separately.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let kind = mount
        .now
        .option("sec")
        .filter(|sec| matches!(*sec, "krb5i" | "krb5p"))
        .ok_or(NoFinding::NotApplicable)?;
    let connections = mount.now.transports.len();
    let does = if kind == "krb5p" { "encrypted" } else { "signed" };
    let what = format!("every byte is {does} (sec={kind})");
    let severity = if connections > 1 { Severity::Medium } else { Severity::Low };
    Found::new(&RULE, what, "measure once with sec=krb5: nfskit doctor before and after")
        .of_settings()
        .severity(severity)
        .evidence(format!("{connections} connections share the context"))
        .unpredicted("the time of the cryptography is not counted apart")
        .into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_quiet, mount, one};

    #[test]
    fn encryption_is_reported() {
        let found = found(&RULE, &one(&mount("rw,sec=krb5p", &[])));
        assert!(found.what.contains("encrypted") && found.severity == Severity::Low);
    }

    #[test]
    fn plain_calls_are_not() {
        is_quiet(&RULE, &one(&mount("rw,sec=krb5", &[])));
    }
}
