//! The mix of the server has so many writes that a log for them pays.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Gain, Judged, Layer, Severity};
use crate::limits::Threshold;

pub(super) static RULE: Rule = Rule {
    name: "server-writes",
    about: About::Server,
    layer: Layer::Storage,
    severity: Severity::Medium,
    needs: &["/proc/net/rpc/nfsd"],
    thresholds: &[
        Threshold { name: "calls_min", default: 1000.0, of: "fewest calls for a finding" },
        Threshold { name: "share", default: 0.15, of: "share of calls that change something" },
        Threshold { name: "low_share", default: 0.05, of: "the same, from which it is low" },
    ],
    source: "Sun 1990, chapter 3 (a write log pays from 5 to 15 % of writes on: history, when each \
             WRITE was stable)",
    explanation: "WRITE, COMMIT and what changes names must be stable before they are answered. \
                  The more of them, the more the server is as fast as its disk's log.",
    remedy: "The log of the exported file system on storage with a battery or power-loss \
             protection. Not `async` in exports(5), which loses data silently.",
    gain: "From the client's counters (slow-commit): the server does not count times.",
    explained_by: &[],
    judge,
};

const CHANGES: [&str; 11] = [
    "WRITE", "COMMIT", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK",
    "SETATTR",
];

fn judge(case: &Case<'_>) -> Judged {
    let Some(server) = case.server else { return Judged::Quiet };
    let all = server.all_calls();
    if (all as f64) < case.limit(&RULE, "calls_min") {
        return Judged::Quiet;
    }
    let changes: u64 = CHANGES.iter().map(|name| server.calls(name)).sum();
    let share = changes as f64 / all as f64;
    let numbers = format!("{:.1} % of the calls change something", share * 100.0);
    if share < case.limit(&RULE, "low_share") {
        return Judged::Fine(numbers);
    }
    let is_async = case.evidence.setting("etc/exports").is_some_and(|text| {
        text.lines().any(|line| !line.starts_with('#') && line.contains("async"))
    });
    let mut found = Found::new(
        &RULE,
        numbers,
        "the file system's log on an SSD with power-loss \
                                               protection; nfskit doctor on a client says the gain",
    )
    .severity(match share > case.limit(&RULE, "share") && !is_async {
        true => Severity::Medium,
        false => Severity::Low,
    })
    .certainty(crate::Certainty::Possible)
    .evidence(format!("{} WRITEs, {} COMMITs", server.calls("WRITE"), server.calls("COMMIT")))
    .against("on storage that is quickly stable there is nothing to gain")
    .gain(Gain::unpredicted("the server does not count times; its clients do"));
    if is_async {
        found =
            found.against("an export is async: it does not wait, and loses data when it crashes");
    }
    found.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server};

    #[test]
    fn a_mix_of_many_writes_is_found() {
        // getattr 500, read 200, write 250, commit 100
        let mix = "proc3 22 0 500 0 0 0 0 200 250 0 0 0 0 0 0 0 0 0 0 0 0 0 100\n";
        let found = found(&RULE, &server(mix, &[]));
        assert!(found.what.starts_with("33.3 % of the calls change"), "{found:?}");
        assert_eq!(found.severity, Severity::Medium);
    }

    #[test]
    fn a_mix_of_reads_is_fine() {
        let mix = "proc3 22 0 500 0 0 0 0 2000 20 0 0 0 0 0 0 0 0 0 0 0 0 0 10\n";
        is_fine(&RULE, &server(mix, &[]));
    }
}
