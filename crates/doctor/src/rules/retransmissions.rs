//! Calls that were retransmitted.

use super::{About, Case, Rule, Threshold};
use crate::finding::{Found, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if};
use crate::subject::{Group, Mounted};

pub(super) static RULE: Rule = Rule {
    name: "retransmissions",
    about: About::Mount,
    layer: Layer::Network,
    severity: Severity::Medium,
    needs: &["/proc/self/mountstats", "nfsstat -c"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "tcp_share", default: 0.0, of: "share of the calls, over TCP" },
        Threshold { name: "udp_share", default: 0.0005, of: "share of the calls, over UDP" },
        Threshold { name: "high_share", default: 0.05, of: "share that is high" },
        Threshold {
            name: "late_share",
            default: 0.5,
            of: "bad XIDs among retransmissions, from which the server is slow",
        },
    ],
    source: "Sun 1990, chapter 3 and section 4.1 (below 1 % may be a restart, 5 to 10 % is a \
             problem: history; bad XIDs as many as retransmissions: a slow server); nfs(5): over \
             TCP a call is retransmitted only after `timeo`, or a new connection",
    explanation: "A call whose reply does not come in time is retransmitted. Over UDP a lost \
                  fragment is enough; over TCP it takes a server that is silent for `timeo`, or a \
                  connection that broke. Nearly as many bad XIDs (replies for which no call waits \
                  any more) as retransmissions show a slow server. No bad XIDs show a network that \
                  loses packets, or over UDP transfers that are too large for it. As many failed \
                  calls as timeouts are soft mounts that gave up. Where no more retransmissions \
                  are counted than calls were outstanding, they may be these calls: unless there \
                  were major timeouts, there is neither a finding nor a clean result.",
    remedy: "Over UDP `proto=tcp`; over TCP find out why connections break (`dmesg`, firewalls), \
             and leave `timeo` at 600.",
    gain: "Cannot be predicted: a wait of `timeo` is not in the times of a call that succeeds.",
    explained_by: &["connection-breaks", "major-timeouts", "short-timeo", "udp-mount"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let mount = case.mount()?;
    let total = mount.total();
    not_applicable_if((total.calls as f64) < case.limit(&RULE, "calls_min"))?;
    let (calls, again) = (total.calls, total.retransmissions);
    let share = again as f64 / calls as f64;
    let limit = if mount.is_udp() { "udp_share" } else { "tcp_share" };
    let numbers = match case.evidence.last.rates_of {
        // Nobody has counted what is made of rates.
        Some(_) => format!("{:.2} % of the calls retransmitted", share * 100.0),
        None => format!("{again} of {calls} calls retransmitted ({:.2} %)", share * 100.0),
    };
    fine_if(share <= case.limit(&RULE, limit), &numbers)?;
    may_be_under_way(mount, &total)?;
    let late = bad_xids(mount);
    let is_slow = late.map(|late| late as f64 > case.limit(&RULE, "late_share") * again as f64);
    let is_high = share > case.limit(&RULE, "high_share");
    let cause = cause(is_slow, mount.is_tcp());
    let found = Found::new(&RULE, format!("{numbers}; {cause}"), remedy(is_slow, mount))
        .severity(if is_high { Severity::High } else { Severity::Medium })
        .unpredicted("the wait before a retransmission is in no call's time");
    let found = match late {
        Some(late) => found.evidence(format!("{late} replies that nobody waited for any more")),
        None => found.against("bad XIDs, which tell these apart, are not counted here"),
    };
    Ok(together(case, mount).into_iter().fold(found, Found::evidence))
}

/// Calls under way when a sample was taken are sent, and not yet counted: whether no more than
/// those were retransmitted is not known, unless there was a major timeout.
fn may_be_under_way(mount: &Mounted<'_>, total: &Group) -> Result<(), NoFinding> {
    let under_way = mount.rates.total.in_system_mean.unwrap_or(0.0).ceil();
    let again = total.retransmissions;
    if again as f64 > under_way || total.major_timeouts > 0 {
        return Ok(());
    }
    let what = format!(
        "whether {again} of {} calls were retransmitted, or under way when the sample was taken",
        total.calls
    );
    Err(NoFinding::missing(what, "the same for longer (--for 5m), or while fewer calls are made"))
}

/// Replies whose call had been given up, where they are counted.
fn bad_xids(mount: &Mounted<'_>) -> Option<u64> {
    let known = mount.rates.transports.iter().filter_map(|one| one.bad_xids);
    known.reduce(u64::saturating_add)
}

/// `is_slow`: replies come late.
fn cause(is_slow: Option<bool>, is_tcp: bool) -> &'static str {
    match (is_slow, is_tcp) {
        (Some(true), _) => "replies come too late: the server is slow, or timeo too short",
        (Some(false), true) => "replies do not come: the network loses, or connections break",
        (Some(false), false) => {
            "replies do not come: the network loses, or transfers are too large for it"
        }
        (None, _) => "the server is slow, or the network loses",
    }
}

fn remedy(is_slow: Option<bool>, mount: &Mounted<'_>) -> &'static str {
    match (is_slow, mount.is_udp(), mount.is_tcp()) {
        (Some(true), _, false) => {
            "nfskit doctor on the server: its threads, processors and disks; then a longer timeo"
        }
        (_, true, _) => {
            "mount again with proto=tcp; where that cannot be, with rsize=8192,wsize=8192"
        }
        (_, _, true) => {
            "dmesg | grep 'not responding'; then what lies between (firewall, bond, switch)"
        }
        _ => {
            "netstat -i and netstat -s on both ends; proto=tcp, or over UDP smaller rsize and wsize"
        }
    }
}

/// What nfsstat of SunOS and its successors says besides, of all mounts.
fn together(case: &Case<'_>, mount: &Mounted<'_>) -> Vec<String> {
    let rpc = case.evidence.last.client.as_ref().and_then(|client| client.rpc);
    let Some(rpc) = rpc.filter(|_| !mount.has_times) else { return Vec::new() };
    let (Some(timeouts), bad) = (rpc.timeouts, rpc.bad_calls.unwrap_or(0)) else {
        return Vec::new();
    };
    let mut lines = vec![format!("{timeouts} timeouts")];
    if timeouts > 0 && bad as f64 > SOFT_SHARE * timeouts as f64 {
        lines.push(format!("{bad} calls failed, about as many as timed out: soft mounts gave up"));
    }
    lines
}

/// Of the timeouts, from which on they are about as many: a guess.
const SOFT_SHARE: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{files, found, is_fine, mount, one, two, wants_more};

    #[test]
    fn retransmitted_calls_are_found_and_late_replies_blame_the_server() {
        let text = mount("rw,proto=tcp", &["READ: 1000 1080 3 0 0 1 2000 2010 0"]);
        let lost = found(&RULE, &one(&text));
        assert_eq!(lost.severity, Severity::High);
        assert!(lost.what.contains("80 of 1000 calls") && lost.what.contains("network loses"));
        let late = found(&RULE, &one(&text.replace("400 400 0 450", "400 400 79 450")));
        assert!(late.what.contains("the server is slow"), "{late:?}");
    }

    /// Of the guide's figure 7, with other numbers of what went wrong.
    fn nfsstat(bad: u64, again: u64, late: u64, timeouts: u64) -> crate::Evidence {
        let text = format!(
            "Client rpc:\ncalls badcalls retrans badxid timeout wait newcred timers\n\
             109373 {bad} {again} {late} {timeouts} 0 0 666\n\n\
             Client nfs:\ncalls badcalls nclget nclsleep\n108963 1 108963 0\n\
             null getattr setattr root lookup readlink read\n\
             0 0% 24508 22% 285 0% 0 0% 27023 24% 37771 34% 6348 5%\n"
        );
        files(&[("nfsstat.txt", &text)])
    }

    #[test]
    fn the_guides_figures_have_the_guides_answers() {
        let lossy = found(&RULE, &nfsstat(411, 670, 131, 1_074));
        assert!(lossy.what.starts_with("1074 of 109373 calls retransmitted (0.98 %)"), "{lossy:?}");
        assert!(lossy.what.contains("network loses, or transfers are too large"), "{lossy:?}");
        assert_eq!(lossy.severity, Severity::Medium);
        let slow = found(&RULE, &nfsstat(0, 9_000, 8_700, 9_000));
        assert!(slow.what.contains("the server is slow"), "{slow:?}");
        assert_eq!(slow.severity, Severity::High);
        let soft = found(&RULE, &nfsstat(356, 101, 0, 457));
        assert!(soft.evidence.iter().any(|line| line.contains("soft mounts gave up")), "{soft:?}");
        is_fine(&RULE, &nfsstat(0, 0, 0, 0));
        let linux =
            "Client rpc stats:\ncalls      retrans    authrefrsh\n20000      400        0\n";
        let unknown = found(&RULE, &files(&[("nfsstat.txt", linux)]));
        assert!(unknown.what.contains("400 of 20000"), "{unknown:?}");
        assert!(unknown.against[0].contains("bad XIDs"), "{unknown:?}");
    }

    #[test]
    fn what_may_be_under_way_is_neither_well_nor_found() {
        let before = mount("rw,proto=tcp", &["READ: 0 0 0 0 0 0 0 0 0"]);
        let evidence = |read: &str| {
            let now = mount("rw,proto=tcp", &[read]).replace("age:\t1234", "age:\t1244");
            two(10.0, &before, &now)
        };
        // 1,000 calls of 950 ms in 10 s: 95 under way on average.
        wants_more(&RULE, &evidence("READ: 1000 1090 0 0 0 1 2000 950000 0"));
        let lost = found(&RULE, &evidence("READ: 1000 1090 40 0 0 1 2000 950000 0"));
        assert!(lost.what.starts_with("90 of 1000 calls retransmitted"), "{lost:?}");
        found(&RULE, &evidence("READ: 1000 1100 0 0 0 1 2000 950000 0"));
        is_fine(&RULE, &evidence("READ: 1000 1000 0 0 0 1 2000 950000 0"));
    }

    #[test]
    fn calls_that_went_once_are_fine() {
        is_fine(&RULE, &one(&mount("rw", &["READ: 1000 1000 0 0 0 1 2000 2010 0"])));
    }
}
