//! The time of calls is the network's round trip.

use super::{About, Case, Found, Judged, Layer, NoFinding, Rule, Severity, Threshold, fine_if};
use crate::finding::not_applicable_if;
use crate::floor;
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "latency-bound",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "ss -tino"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "share", default: 0.5, of: "share of the time of all calls" },
        Threshold { name: "floor_ms", default: 1.0, of: "round trip, from which it is high, ms" },
    ],
    source: "Boumenot 2002 (the cycle of a call); Martin and Culler 1999 (3 us of response for \
             each us of latency above 150 us); Little's law",
    explanation: "TCP's smallest round trip is a lower bound for every call. Where it is most of \
                  the time, neither a faster server nor a faster disk helps: only fewer calls, \
                  more of them outstanding, or a shorter path. A round trip that is longer than \
                  calls take belongs to other connections, and is not used.",
    remedy: "More programs or threads at once; longer attribute caching; `nconnect` and read-ahead \
             for bulk data; a nearer cache or server.",
    gain: "That of a path half as long, by the share of the time that is round trip.",
    explained_by: &["full-path", "read-ahead"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, means) = case.used(&RULE)?;
    let Some(floor) = case.floor() else {
        let what = "how much of a call's time is the network";
        return Err(match (floor::refuted(mount), mount.is_udp()) {
            (Some((floor, least)), _) => NoFinding::missing(
                format!(
                    "{what}: by ss the round trip is {:.2} ms, and calls take {least:.2} ms: it is \
                     not of these connections, or of another time",
                    floor.ms
                ),
                "ss -tino while the mount is in use, saved beside the counters",
            ),
            (None, true) => NoFinding::missing(what, "nfskit bench rtt --target URL"),
            (None, false) => NoFinding::missing(what, "ss -tino, saved beside the counters"),
        });
    };
    let share = (floor.ms / means.execute_ms).min(1.0);
    let numbers = format!(
        "the round trip is {:.2} ms of {:.2} ms of a call ({:.0} %)",
        floor.ms,
        means.execute_ms,
        share * 100.0
    );
    let is_short = share <= case.limit(&RULE, "share");
    let is_short_at_most = floor.most_ms <= case.limit(&RULE, "share") * means.execute_ms;
    // Otherwise network-or-server has it.
    not_applicable_if(is_short && !is_short_at_most)?;
    fine_if(is_short, &numbers)?;
    let is_far = floor.ms >= case.limit(&RULE, "floor_ms");
    let outstanding = mount.rates.total.outstanding_mean;
    let mut found = Found::new(
        &RULE,
        numbers,
        "more of it at once (threads, make -j), longer actimeo; or a nearer server or cache",
    )
    .severity(if is_far { Severity::High } else { Severity::Low })
    .gain(model::without_share(share, (0.5, 0.5)))
    .evidence(format!("{} calls", total.calls));
    if let Some(outstanding) = outstanding.filter(|_| !mount.is_lifetime()) {
        found = found.evidence(format!("{outstanding:.1} calls outstanding on average"));
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, judged, mount, one, wants_more};

    fn evidence(rtt: &str) -> crate::Evidence {
        let ss = format!("ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:{rtt}/1 minrtt:{rtt}\n");
        let stats = mount("rw,addr=10.0.0.1", &["LOOKUP: 1000 1000 0 0 0 9 11000 11100 0"]);
        files(&[("proc/self/mountstats", &stats), ("ss.txt", &ss)])
    }

    #[test]
    fn a_long_way_is_found() {
        let found = found(&RULE, &evidence("10.2"));
        assert!(found.what.contains("10.20 ms of 11.10 ms"), "{found:?}");
        assert_eq!(found.severity, Severity::High);
    }

    #[test]
    fn a_round_trip_that_calls_refute_is_no_verdict() {
        // Each call has its answer after 11 ms.
        found(&RULE, &evidence("11.0"));
        let Err(NoFinding::Missing(missing)) = judged(&RULE, &evidence("25.0")) else { panic!() };
        assert!(missing.what.contains("is 25.00 ms, and calls take 11.00 ms"), "{missing:?}");
    }

    #[test]
    fn a_short_way_is_fine_and_an_unknown_one_is_requested() {
        is_fine(&RULE, &evidence("0.2"));
        wants_more(&RULE, &one(&mount("rw", &["LOOKUP: 1000 1000 0 0 0 9 11000 11100 0"])));
    }
}
