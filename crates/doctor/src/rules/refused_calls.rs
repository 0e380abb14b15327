//! The server refuses calls.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "refused-calls",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::Medium,
    needs: &["/proc/net/rpc/nfsd"],
    thresholds: &[Threshold { name: "share", default: 0.001, of: "refused among the calls" }],
    source: "fs/nfsd/stats.c (`rpc`: badcalls, badfmt, badauth, badclnt); the threshold is ours",
    explanation: "The server refused calls that it could not decode (badfmt), whose caller has no \
                  access (badauth: the export, or Kerberos), or whose client it does not know \
                  (badclnt). Scanners cause a few of these.",
    remedy: "Look in `exportfs -v` and the server's log for clients without access.",
    gain: "None for those that are served.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let (Some(refused), Some(calls)) = (server.rates.refused, server.rates.calls) else {
        return Err(NoFinding::NotApplicable);
    };
    let share = refused.all as f64 / (calls as f64).max(1.0);
    let numbers = format!("{} of {calls} calls refused", refused.all);
    match refused.all > 0 && share > case.limit(&RULE, "share") {
        true => Found::new(&RULE, numbers, "exportfs -v; journalctl -u nfs-mountd -u nfs-server")
            .evidence(format!(
                "format {}, authentication {}, client {}",
                refused.bad_format, refused.bad_authentication, refused.bad_client
            ))
            .unpredicted("calls that are refused take no time of others")
            .into(),
        false => Err(NoFinding::Fine(numbers)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server};

    #[test]
    fn refused_calls_are_found() {
        let found = found(&RULE, &server("rpc 1000 50 0 50 0\n", &[]));
        assert!(found.evidence[0].contains("authentication 50"), "{found:?}");
    }

    #[test]
    fn none_are_fine() {
        is_fine(&RULE, &server("rpc 1000 0 0 0 0\n", &[]));
    }
}
