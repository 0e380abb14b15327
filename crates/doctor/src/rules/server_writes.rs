//! The mix of the server has so many writes that a log for them pays.

use counters::sum;

use super::{About, Case, Rule, Threshold};
use crate::collect::exports;
use crate::finding::{Found, Gain, Judged, Layer, Severity, fine_if, not_applicable_if};
use crate::model;

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
    explanation: "WRITE, COMMIT and calls that change names must be stable before the server \
                  answers. The more of them there are, the more the log of the file system's disk \
                  determines the server's speed. With the option `async` an export does not wait.",
    remedy: "The log of the exported file system on storage with a battery or power-loss \
             protection; or, for stable WRITEs, nfskit serve --write-log FILE on such a device. \
             Not `async` in exports(5), which loses data silently.",
    gain: "Where disks count what a flush takes: by the model of nfskit model whatif \
           write-log=DEVICE, for a path of 0.2 to 1 ms (guess) and a log of 30 to 200 us, of what \
           must be stable. Otherwise from the client's counters (slow-commit).",
    explained_by: &[],
    judge,
};

const CHANGES: [&str; 11] = [
    "WRITE", "COMMIT", "CREATE", "MKDIR", "SYMLINK", "MKNOD", "REMOVE", "RMDIR", "RENAME", "LINK",
    "SETATTR",
];

fn judge(case: &Case<'_>) -> Judged {
    let server = case.server()?;
    let all = server.all_calls();
    not_applicable_if((all as f64) < case.limit(&RULE, "calls_min"))?;
    let changes = sum(CHANGES.iter().map(|name| server.calls(name)));
    let share = changes as f64 / all as f64;
    let numbers = format!("{:.1} % of the calls change something", share * 100.0);
    fine_if(share < case.limit(&RULE, "low_share"), &numbers)?;
    let exports = exports(case.evidence.setting("etc/exports").unwrap_or_default());
    let mut clients = exports.iter().flat_map(|export| &export.clients);
    let is_async = clients.any(|client| is_async(&client.options));
    let mut found = Found::new(
        &RULE,
        numbers,
        "the file system's log on an SSD with power-loss protection; for stable WRITEs nfskit \
         serve DIR --write-log FILE; nfskit doctor on a client says the gain of its calls",
    )
    .severity(match share > case.limit(&RULE, "share") && !is_async {
        true => Severity::Medium,
        false => Severity::Low,
    })
    .certainty(crate::Certainty::Possible)
    .evidence(format!("{} WRITEs, {} COMMITs", server.calls("WRITE"), server.calls("COMMIT")))
    .against("on storage that is quickly stable there is nothing to gain")
    .gain(gain(case));
    if is_async {
        found =
            found.against("an export is async: it does not wait, and loses data when it crashes");
    }
    Ok(found)
}

/// By the last of the options about it.
fn is_async(options: &[String]) -> bool {
    options
        .iter()
        .rfind(|one| ["async", "sync"].contains(&one.as_str()))
        .is_some_and(|one| one == "async")
}

/// Of the calls that must be stable, by what a flush takes of the disk that has most of them.
fn gain(case: &Case<'_>) -> Gain {
    const FLUSHES_MIN: u64 = 20;
    /// Of a call, what is not the sync, ms: a guess.
    const WAY_MS: (f64, f64) = (0.2, 1.0);
    let flushed = case.host.disks.iter().max_by_key(|disk| disk.flushes);
    let Some(disk) = flushed.filter(|disk| disk.flushes >= FLUSHES_MIN) else {
        return Gain::unpredicted("the server does not count times; its clients do");
    };
    let flush_ms = disk.flush_ms as f64 / disk.flushes as f64;
    let write_ms = disk.write_ms as f64 / disk.writes.max(1) as f64;
    let of_way =
        |way_ms: f64| model::logged(1.0, way_ms + flush_ms + write_ms, (way_ms, way_ms), 1.0);
    match (of_way(WAY_MS.0), of_way(WAY_MS.1)) {
        (Gain::Faster { most, model, .. }, Gain::Faster { least, .. }) => {
            Gain::faster("changes", (least, most), model)
        }
        (unpredicted, _) => unpredicted,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, server};

    #[test]
    fn what_a_flush_takes_says_what_a_log_gains() {
        let mix = "proc3 22 0 500 0 0 0 0 200 250 0 0 0 0 0 0 0 0 0 0 0 0 0 100\n";
        // 400 writes of 0.5 ms and 400 flushes of 8 ms.
        let disks = "8 0 sda 10 0 0 5 400 0 0 200 0 3500 3600 0 0 0 0 400 3200\n";
        let found = found(&RULE, &server(mix, &[("proc/diskstats", disks)]));
        let Gain::Faster { of, least, most, .. } = found.gain else { panic!("{found:?}") };
        assert_eq!(of, "changes");
        assert!(least > 4.0 && most < 80.0 && most / least < 20.0, "{least} {most}");
        assert!(found.remedy.contains("--write-log FILE"), "{found:?}");
    }

    #[test]
    fn a_mix_of_many_writes_is_found() {
        // getattr 500, read 200, write 250, commit 100
        let mix = "proc3 22 0 500 0 0 0 0 200 250 0 0 0 0 0 0 0 0 0 0 0 0 0 100\n";
        let found = found(&RULE, &server(mix, &[]));
        assert!(found.what.starts_with("33.3 % of the calls change"), "{found:?}");
        assert_eq!(found.severity, Severity::Medium);
    }

    #[test]
    fn an_export_is_async_by_its_options_alone() {
        let mix = "proc3 22 0 500 0 0 0 0 200 250 0 0 0 0 0 0 0 0 0 0 0 0 0 100\n";
        let is_async = |exports: &str| {
            let found = found(&RULE, &server(mix, &[("etc/exports", exports)]));
            let is_against = found.against.iter().any(|line| line.contains("export is async"));
            assert_eq!(is_against, found.severity == Severity::Low, "{found:?}");
            is_against
        };
        for exports in ["/srv/async-jobs *(rw,sync)", "/srv h(rw) # async", "/srv async.corp(rw)"] {
            assert!(!is_async(exports), "{exports}");
        }
        for exports in ["/srv *(async,rw)", "/srv -async h(rw)", "/srv h(rw) \\\n i(rw,async)"] {
            assert!(is_async(exports), "{exports}");
        }
    }

    #[test]
    fn a_mix_of_reads_is_fine() {
        let mix = "proc3 22 0 500 0 0 0 0 2000 20 0 0 0 0 0 0 0 0 0 0 0 0 0 10\n";
        is_fine(&RULE, &server(mix, &[]));
    }
}
