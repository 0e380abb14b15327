//! Clients ask for files that are no more.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold};

pub(super) static RULE: Rule = Rule {
    name: "stale-handles",
    about: About::Server,
    layer: Layer::Server,
    severity: Severity::Medium,
    needs: &["/proc/net/rpc/nfsd"],
    thresholds: &[Threshold { name: "share", default: 0.001, of: "stale handles for each call" }],
    source: "fs/nfsd/stats.c (`fh`); the threshold is ours",
    explanation: "ESTALE has two causes: another client has removed the file, or the export was \
                  moved or replaced by another file system.",
    remedy: "`fsid=` in exports(5) for what moves; mount again where an export was replaced.",
    gain: "None: it is an error that programs see.",
    explained_by: &[],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let (Some(stale), Some(calls)) = (server.rates.stale_handles, server.rates.calls) else {
        return Err(NoFinding::NotApplicable);
    };
    match stale as f64 > case.limit(&RULE, "share") * (calls as f64).max(1.0) {
        true => Found::new(
            &RULE,
            format!("{stale} stale handles in {calls} calls"),
            "exportfs -v: was an export replaced? mount it again on its clients",
        )
        .unpredicted("it is an error, not a delay")
        .into(),
        false => Err(NoFinding::Fine(format!("{stale} stale handles"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server};

    #[test]
    fn stale_handles_are_found() {
        let found = found(&RULE, &server("fh 40 0 0 0 0\nrpc 1000 0 0 0 0\n", &[]));
        assert!(found.what.starts_with("40 stale handles in 1000"));
    }

    #[test]
    fn none_are_fine() {
        is_fine(&RULE, &server("fh 0 0 0 0 0\nrpc 1000 0 0 0 0\n", &[]));
    }
}
