//! The time of calls is the network's or the server's, and TCP cannot tell which.

use super::{About, Case, Certainty, Found, Judged, Layer, Rule, Severity, Threshold};
use crate::finding::{NoFinding, not_applicable_if};
use crate::floor::Floor;
use crate::subject::{Group, Mounted};

pub(super) static RULE: Rule = Rule {
    name: "network-or-server",
    about: About::Mount,
    layer: Layer::NetworkOrServer,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "ss -tino"],
    thresholds: &[
        Threshold { name: "calls_min", default: 20.0, of: "fewest calls for a finding" },
        Threshold { name: "share", default: 0.25, of: "share of a call's time that is in doubt" },
        Threshold { name: "high_share", default: 0.5, of: "share that is high" },
        Threshold { name: "ms", default: 1.0, of: "time in doubt of a call, ms" },
        Threshold { name: "idle", default: 0.1, of: "share of idle processors, else it is them" },
        Threshold { name: "bytes", default: 4096.0, of: "bytes of a call acknowledged at once" },
        Threshold {
            name: "most",
            default: 0.75,
            of: "share of a call, above what their replies give",
        },
    ],
    source: "RFC 9293, section 3.8.6.3 (an acknowledgement may wait for data to go with it); \
             Linux, include/net/tcp.h (TCP_DELACK_MIN, 40 ms); 150 bytes whose reply took 10 ms \
             had a smoothed round trip of 10.2 ms over a link of 5 us, 4.3 KB one of 0.01 ms, \
             66 KB one of 5.4 ms; the thresholds are ours",
    explanation: "TCP's smallest round trip shows the network at its best: without a queue, and \
                  before a link's delay has grown. The smoothed round trip contains both. It also \
                  contains the server's time, where the server acknowledges small calls only with \
                  its replies. What lies between the two, up to the time of the lightest calls, is \
                  the network's or the server's. Where calls carry data that are acknowledged at \
                  once, and take hardly longer than their acknowledgements, it is likely the \
                  network's.",
    remedy: "Find out which: `ping` the server while it is slow. The server's kernel answers, \
             without NFS or a disk.",
    gain: "Cannot be predicted: it is not known which of the two must become faster.",
    explained_by: &["full-path", "tcp-loss"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, means) = case.used(&RULE)?;
    let floor = case.floor().ok_or(NoFinding::NotApplicable)?;
    let doubt_ms = floor.most_ms - floor.ms;
    let share = doubt_ms / means.execute_ms.max(f64::MIN_POSITIVE);
    let is_small = doubt_ms <= case.limit(&RULE, "ms") || share <= case.limit(&RULE, "share");
    // Packets that wait for a processor of this host wait as long.
    let is_busy = case.idle_now().is_some_and(|idle| idle < case.limit(&RULE, "idle"));
    not_applicable_if(is_small || is_busy)?;
    let is_network = is_network(case, &total, floor.most_ms / means.rtt_ms);
    let Floor { ms, most_ms, .. } = floor;
    let range = format!(
        "calls take {:.2} ms, of which the network takes {ms:.2} to {:.2} ms",
        means.execute_ms,
        most_ms.min(means.execute_ms)
    );
    let what = match is_network {
        true => format!("{range}: likely nearly all, in a queue or on a path that became longer"),
        false => {
            format!("{range} and the server the rest; which of them is slow is not known from here")
        }
    };
    let is_high = share > case.limit(&RULE, "high_share");
    Ok(Found::new(&RULE, what, remedy(mount, most_ms))
        .severity(if is_high { Severity::High } else { Severity::Medium })
        .certainty(if is_network { Certainty::Likely } else { Certainty::Possible })
        .evidence(smoothed(mount, floor))
        .evidence(format!("{} calls of {:.0} bytes", total.calls, bytes(&total)))
        .against_if(
            mount.is_lifetime(),
            "TCP's round trip is of now, and the calls are of all time",
        )
        .unpredicted("whether the network or the server is to be made faster is not known"))
}

/// Bytes of a call that are sent.
fn bytes(total: &Group) -> f64 {
    total.sent_bytes as f64 / (total.calls as f64).max(1.0)
}

/// Several segments are acknowledged at once, but for the last of them: of a server that is slow
/// they make a mean that is far below what its calls take.
fn is_network(case: &Case<'_>, total: &Group, share: f64) -> bool {
    bytes(total) >= case.limit(&RULE, "bytes") && share >= case.limit(&RULE, "most")
}

fn smoothed(mount: &Mounted<'_>, floor: Floor) -> String {
    let (before, now) = mount.smoothed_ms();
    let looks = before.into_iter().chain(now).map(|ms| format!("{ms:.2}"));
    let looks = looks.collect::<Vec<_>>().join(" and ");
    format!("TCP's round trip is {:.2} ms at least, smoothed {looks} ms", floor.ms)
}

fn remedy(mount: &Mounted<'_>, most_ms: f64) -> String {
    format!(
        "tell them apart: ping -c 20 {} while it is slow, which the server's kernel answers \
         without NFS or a disk. If it takes about {most_ms:.1} ms, the network is slow; if far \
         less, the server is (nfskit doctor there)",
        mount.host()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, host_twice, is_quiet, mount};

    fn evidence(calls: &str, smoothed: &str) -> crate::Evidence {
        let ss = format!("ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:{smoothed}/1 minrtt:0.2\n");
        let stats = mount("rw,addr=10.0.0.1", &[calls]);
        files(&[("proc/self/mountstats", &stats), ("ss.txt", &ss)])
    }

    const COMMITS: &str = "COMMIT: 1000 1000 0 150000 90000 9 10000 10100 0";

    #[test]
    fn small_calls_that_take_as_long_as_acknowledgements_are_undecided() {
        let found = found(&RULE, &evidence(COMMITS, "9.9"));
        assert!(found.what.contains("takes 0.20 to 9.90 ms and the"), "{found:?}");
        assert_eq!(found.certainty, Certainty::Possible);
        assert!(found.remedy.contains("ping -c 20 server"), "{found:?}");
    }

    #[test]
    fn data_that_are_acknowledged_no_sooner_than_answered_wait_in_the_network() {
        let writes = "WRITE: 1000 1000 0 4300000 90000 9 10000 10100 0";
        let sure = found(&RULE, &evidence(writes, "9.9"));
        assert!(sure.what.ends_with("a path that became longer"), "{sure:?}");
        assert_eq!(sure.certainty, Certainty::Likely);
        // Half of the acknowledgements came with replies.
        assert_eq!(found(&RULE, &evidence(writes, "5.4")).certainty, Certainty::Possible);
    }

    #[test]
    fn a_round_trip_that_is_short_now_leaves_no_doubt() {
        is_quiet(&RULE, &evidence(COMMITS, "0.4"));
        is_quiet(&RULE, &evidence("COMMIT: 1000 1000 0 150000 90000 9 800 900 0", "0.8"));
    }

    #[test]
    fn what_it_was_before_counts_and_not_where_processors_are_busy() {
        let ss =
            |ms: &str| format!("ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:{ms}/1 minrtt:0.2\n");
        let of = |idle: u32| {
            let first = mount("rw,addr=10.0.0.1", &["COMMIT: 0 0 0 0 0 0 0 0 0"]);
            let last = mount("rw,addr=10.0.0.1", &[COMMITS]).replace("age:\t1234", "age:\t1244");
            let cpu = format!("cpu  {} 0 0 {idle} 0 0 0 0\n", 1_000 - idle);
            let files = [
                ("1/ss.txt", &*ss("9.0")),
                ("2/ss.txt", &*ss("0.3")),
                ("1/proc/stat", "cpu  0 0 0 0 0 0 0 0\n"),
                ("2/proc/stat", &*cpu),
            ];
            host_twice("proc/self/mountstats", &first, &last, &files)
        };
        let found = found(&RULE, &of(900));
        assert!(found.evidence[0].ends_with("smoothed 9.00 and 0.30 ms"), "{found:?}");
        is_quiet(&RULE, &of(20));
    }
}
