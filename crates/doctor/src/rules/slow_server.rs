//! Calls that do next to nothing take much longer than the way.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold, fine_if};
use crate::finding::not_applicable_if;
use crate::floor;
use crate::subject::Mounted;

pub(super) static RULE: Rule = Rule {
    name: "slow-server",
    about: About::Mount,
    layer: Layer::Server,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "ss -tino"],
    thresholds: &[
        Threshold { name: "times", default: 4.0, of: "times the round trip of TCP" },
        Threshold { name: "ms", default: 2.0, of: "mean time of the cheapest call, ms" },
        Threshold { name: "blind_ms", default: 50.0, of: "the same where no round trip is known" },
    ],
    source: "Boumenot 2002; nfsiostat(8); the thresholds are ours (50 ms: a course on nfsstat, \
             NKU)",
    explanation: "GETATTR, ACCESS and the like read what the server has in memory. Where they take \
                  several times the round trip, they wait in the server: for a thread, for its \
                  processors, or behind what its disks do. The smoothed round trip is subtracted, \
                  and so is the wait behind other calls of the same mount: the bytes of READs and \
                  WRITEs that are outstanding, at the rate of the mount or of 1 Gbit/s if that is \
                  more. The rest is divided by the calls outstanding.",
    remedy: "`nfskit doctor` on the server: its threads, processors and disks.",
    gain: "Cannot be predicted from the client: the cause is on the server.",
    explained_by: &["full-path"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let cheap = floor::cheapest_call_ms(mount).ok_or(NoFinding::NotApplicable)?;
    let Some(floor) = case.floor() else {
        let what =
            format!("the cheapest call takes {cheap:.1} ms, and the round trip is not known");
        return match cheap > case.limit(&RULE, "blind_ms") {
            true => Found::new(&RULE, what, REMEDY)
                .severity(Severity::Medium)
                .certainty(crate::Certainty::Possible)
                .against("a long path takes as long: ping, or ss -tino, tells them apart")
                .unpredicted("what is waited for is on the server")
                .into(),
            false => Err(NoFinding::NotApplicable),
        };
    };
    let numbers =
        format!("the cheapest call takes {cheap:.2} ms, the round trip {:.2} ms", floor.ms);
    // It waits behind the mount's own calls, too: what is left is its part of them.
    let calls = mount.rates.total.outstanding_mean.unwrap_or(1.0).max(1.0);
    let part = (cheap - ahead_ms(mount, calls)) / calls;
    let is_slow =
        |part: f64| part > case.limit(&RULE, "ms") && part > case.limit(&RULE, "times") * floor.ms;
    fine_if(!is_slow(part), &numbers)?;
    // Without the most that the network may take of a call. Otherwise network-or-server has it.
    not_applicable_if(!is_slow(part - floor.most_ms / calls))?;
    Found::new(&RULE, format!("{numbers}: the server lets calls wait"), REMEDY)
        .unpredicted("what is waited for is on the server")
        .into()
}

/// What the bytes of the mount's own READs and WRITEs take that are outstanding: as long as the
/// link and both ends need for them, whatever the server does.
fn ahead_ms(mount: &Mounted<'_>, calls: f64) -> f64 {
    /// 1 Gbit/s without headers. A mount that is slower than that is not excused by its bytes.
    const BYTES_PER_MS_MIN: f64 = 117_000.0;
    let (data, total) = (mount.group(&["READ", "WRITE"]), mount.total());
    let bytes = data.sent_bytes.saturating_add(data.received_bytes) as f64;
    let outstanding = calls * (data.rtt_ms / total.rtt_ms.max(f64::MIN_POSITIVE)).min(1.0);
    let bytes_ahead = outstanding * bytes / (data.calls as f64).max(1.0);
    let milliseconds = mount.rates.span.seconds.unwrap_or(0.0) * 1e3;
    let bytes_per_ms = if milliseconds > 0.0 { bytes / milliseconds } else { 0.0 };
    bytes_ahead / bytes_per_ms.max(BYTES_PER_MS_MIN)
}

const REMEDY: &str = "on the server: nfskit doctor (threads, processors, disks)";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, is_quiet, mount, one};

    fn evidence(ms: u64, now: &str) -> crate::Evidence {
        let ss = format!("ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:{now}/1 minrtt:0.2\n");
        let getattr = format!("GETATTR: 1000 1000 0 0 0 9 {ms} {ms} 0");
        let stats = mount("rw,addr=10.0.0.1", &[&getattr]);
        files(&[("proc/self/mountstats", &stats), ("ss.txt", &ss)])
    }

    #[test]
    fn a_server_that_lets_calls_wait_is_found() {
        let sure = found(&RULE, &evidence(8_000, "0.3"));
        assert!(sure.what.starts_with("the cheapest call takes 8.00 ms"), "{sure:?}");
        assert!(sure.against.is_empty());
        is_quiet(&RULE, &evidence(8_000, "7.9"));
        // What the network cannot have taken is the server's.
        found(&RULE, &evidence(22_000, "5.5"));
        is_quiet(&RULE, &evidence(7_000, "5.5"));
    }

    #[test]
    fn a_call_that_waits_behind_those_of_its_own_mount_does_not_blame_the_server() {
        // 1234 s in which 40 READs were outstanding on average.
        let read = "READ: 100000 100000 0 0 0 9 49360000 49400000 0";
        let stats = mount("rw,addr=10.0.0.1", &["GETATTR: 1000 1000 0 0 0 9 17000 17000 0", read]);
        let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.3/1 minrtt:0.2\n";
        is_fine(&RULE, &files(&[("proc/self/mountstats", &stats), ("ss.txt", ss)]));
    }

    #[test]
    fn a_call_that_waits_behind_the_bytes_of_its_own_mount_does_not_blame_the_server() {
        // 4 s in which two WRITEs were outstanding on average.
        let of = |bytes: u64| {
            let getattr =
                |calls: u64| format!("GETATTR: {calls} {calls} 0 0 0 9 {} 500 0", calls * 5);
            let bytes = 1_400 * bytes;
            let write = format!("WRITE: 1400 1400 0 {bytes} 0 9 8000 48000 0");
            let before = mount("rw,addr=10.0.0.1", &[&getattr(0), "WRITE: 0 0 0 0 0 0 0 0 0"]);
            let now = mount("rw,addr=10.0.0.1", &[&getattr(40), &write]);
            let ss = "ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:0.3/1 minrtt:0.01\n";
            crate::testing::host_twice(
                "proc/self/mountstats",
                &before,
                &now.replace("age:\t1234", "age:\t1238"),
                &[
                    ("1/proc/uptime", "1000.0 0\n"),
                    ("2/proc/uptime", "1004.0 0\n"),
                    ("2/ss.txt", ss),
                ],
            )
        };
        is_fine(&RULE, &of(1_048_800));
        // As long, behind next to no bytes.
        assert!(found(&RULE, &of(4_300)).what.starts_with("the cheapest call takes 5.00 ms"));
    }

    #[test]
    fn one_that_answers_at_once_is_fine() {
        is_fine(&RULE, &evidence(400, "0.3"));
        is_quiet(&RULE, &one(&mount("rw", &["GETATTR: 1000 1000 0 0 0 9 8000 8000 0"])));
    }
}
