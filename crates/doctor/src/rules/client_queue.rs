//! Calls wait in the client before they are sent.

use super::{About, Case, Found, Gain, Judged, Layer, Rule, Severity, Threshold, fine_if};
use crate::model;
use crate::subject::{Means, Mounted};

pub(super) static RULE: Rule = Rule {
    name: "client-queue",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats", "/proc/sys/net/ipv4/tcp_wmem"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "fewest calls for a finding" },
        Threshold { name: "queue_ms", default: 10.0, of: "mean wait before sending, ms" },
        Threshold { name: "share", default: 0.25, of: "share of the whole time of a call" },
        Threshold { name: "gain", default: 1.2, of: "gain at least, below which it is medium" },
    ],
    source: "nfsiostat(8), net/sunrpc/stats.c (queue, RTT and execute of each operation); the \
             thresholds are ours",
    explanation: "Before a call is sent, it waits for a slot, for the socket, or behind a burst of \
                  WRITEs. The server does not see this time and cannot be blamed for it.",
    remedy: "More connections (`nconnect=8`), more slots (`sunrpc.tcp_max_slot_table_entries`, for \
             version 4.1 `nfs.max_session_slots`), a larger send buffer (`net.ipv4.tcp_wmem`), or \
             smaller bursts (`vm.dirty_bytes`).",
    gain: "By a closed model of the calls that wait and those that are outstanding.",
    explained_by: &["dirty-limit", "full-path", "session-slots", "slot-limit", "small-transfers"],
    judge,
};

/// A send buffer that grows to less than the largest WRITE.
const BUFFER_BYTES_MIN: f64 = 1_048_576.0;

/// What a connection's send buffer can grow to.
fn buffer_bytes(case: &Case<'_>) -> Option<f64> {
    case.evidence.setting("proc/sys/net/ipv4/tcp_wmem")?.split_whitespace().nth(2)?.parse().ok()
}

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, means) = case.used(&RULE)?;
    let Means { queue_ms, rtt_ms, execute_ms } = means;
    let share = queue_ms / execute_ms.max(queue_ms).max(f64::MIN_POSITIVE);
    let is_long = queue_ms > case.limit(&RULE, "queue_ms") && share > case.limit(&RULE, "share")
        || queue_ms > rtt_ms && queue_ms >= 1.0;
    let numbers =
        format!("a call waits {queue_ms:.1} ms in the client and {rtt_ms:.1} ms for its reply");
    fine_if(!is_long, &numbers)?;
    let what = format!(
        "calls wait in the client: {queue_ms:.1} of {execute_ms:.1} ms ({:.0} %) before they are \
         sent",
        share * 100.0
    );
    let floor_ms = case.floor_ms();
    let connections = mount.now.transports.len().max(1);
    let gain = model::more_outstanding(on_way(mount), rtt_ms, queue_ms, floor_ms);
    Found::new(&RULE, what, remedy(case, connections))
        .severity(severity(case, &gain))
        .evidence(numbers)
        .evidence(format!("{} calls, {connections} connections", total.calls))
        .gain(gain)
        .against_if(
            floor_ms.is_none(),
            "how much of the reply's time is the network is not known (ss -tino)",
        )
        .into()
}

fn on_way(mount: &Mounted<'_>) -> f64 {
    mount.rates.total.outstanding_mean.unwrap_or(1.0).max(1.0)
}

fn remedy(case: &Case<'_>, connections: usize) -> String {
    match connections {
        _ if buffer_bytes(case).is_some_and(|bytes| bytes < BUFFER_BYTES_MIN) => {
            "sysctl -w net.ipv4.tcp_wmem='4096 16384 4194304', then mount again".to_owned()
        }
        1 => "unmount every mount of this server, then mount with nconnect=8".to_owned(),
        _ => format!(
            "{connections} connections are in use: sysctl sunrpc.tcp_max_slot_table_entries, and \
             fewer bytes at once: sysctl -w vm.dirty_bytes=31457280"
        ),
    }
}

/// WRITEs of one burst wait for each other, and nobody for each of them: where the server is never
/// idle, calls that are sent at once wait there instead. So it may be where the gain can be
/// anything.
fn severity(case: &Case<'_>, gain: &Gain) -> Severity {
    let pays = matches!(gain, Gain::Faster { least, .. } if *least >= case.limit(&RULE, "gain"));
    if !pays && case.floor().is_some() { Severity::Medium } else { Severity::High }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{found, is_fine, mount, one, wants_more};

    #[test]
    fn calls_that_wait_longer_than_they_take_are_found() {
        let evidence = one(&mount("rw", &["WRITE: 1000 1000 0 0 0 60000 20000 81000 0"]));
        let found = found(&RULE, &evidence);
        assert!(found.what.contains("60.0 of 81.0 ms (74 %)"), "{found:?}");
    }

    #[test]
    fn calls_that_are_sent_at_once_are_not() {
        is_fine(&RULE, &one(&mount("rw", &["WRITE: 1000 1000 0 0 0 200 20000 20300 0"])));
        // Longer than the reply takes, and yet too short to matter.
        is_fine(&RULE, &one(&mount("rw", &["GETATTR: 1000 1000 0 0 0 300 200 510 0"])));
    }

    #[test]
    fn a_queue_that_may_only_move_to_the_server_is_not_high() {
        let ss =
            |ms: &str| format!("ESTAB 0 0 10.0.0.2:700 10.0.0.1:2049\n\t rtt:{ms}/1 minrtt:{ms}\n");
        let stats = mount("rw,addr=10.0.0.1", &["WRITE: 1000 1000 0 0 0 60000 20000 81000 0"]);
        let of = |ms: &str| {
            let ss = ss(ms);
            let memory = "4096 4096 8192\n";
            let files = [
                ("proc/self/mountstats", &*stats),
                ("ss.txt", &ss),
                ("proc/sys/net/ipv4/tcp_wmem", memory),
            ];
            found(&RULE, &crate::testing::files(&files))
        };
        assert_eq!(of("0.1").severity, Severity::Medium);
        // It may gain nothing, or twelve times as much.
        let long = stats.replace("60000 20000 81000", "100000 9000 109000");
        let ss = ss("0.1");
        let files = [("proc/self/mountstats", &*long), ("ss.txt", &*ss)];
        let any = found(&RULE, &crate::testing::files(&files));
        assert!(matches!(any.gain, Gain::Unpredicted(_)), "{any:?}");
        assert_eq!(any.severity, Severity::Medium);
        assert_eq!(of("19").severity, Severity::High);
        assert!(of("19").remedy.contains("tcp_wmem"), "{:?}", of("19"));
    }

    #[test]
    fn a_few_calls_say_nothing() {
        wants_more(&RULE, &one(&mount("rw", &["WRITE: 9 9 0 0 0 60000 20000 81000 0"])));
    }
}
