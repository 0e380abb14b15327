//! Calls wait in the client before they are sent.

use super::{About, Rule};
use crate::case::Case;
use crate::finding::{Found, Judged, Layer, Severity};
use crate::limits::Threshold;
use crate::model;

pub(super) static RULE: Rule = Rule {
    name: "client-queue",
    about: About::Mount,
    layer: Layer::Client,
    severity: Severity::High,
    needs: &["/proc/self/mountstats"],
    thresholds: &[
        Threshold { name: "calls_min", default: 100.0, of: "calls, below which nothing is said" },
        Threshold { name: "queue_ms", default: 10.0, of: "mean wait before sending, ms" },
        Threshold { name: "share", default: 0.25, of: "share of the whole time of a call" },
    ],
    source: "nfsiostat(8), net/sunrpc/stats.c (queue, RTT and execute of each operation); the \
             thresholds are ours",
    explanation: "A call that is made waits for a slot, for the socket, or behind a burst of \
                  WRITEs before it is sent. The server does not see this time, and cannot be \
                  blamed for it.",
    remedy: "More connections (`nconnect=8`), more slots (`sunrpc.tcp_max_slot_table_entries`, for \
             version 4.1 `nfs.max_session_slots`), or smaller bursts (`vm.dirty_bytes`).",
    gain: "By a closed model of the calls that wait and those that are outstanding.",
    explained_by: &["session-slots", "slot-limit", "small-transfers"],
    judge,
};

fn judge(case: &Case<'_>) -> Judged {
    let (mount, total, means) = match case.used(&RULE) {
        Ok(used) => used,
        Err(judged) => return judged,
    };
    let share = means.queue_ms / means.execute_ms.max(means.queue_ms).max(f64::MIN_POSITIVE);
    let is_long = means.queue_ms > case.limit(&RULE, "queue_ms")
        && share > case.limit(&RULE, "share")
        || means.queue_ms > means.rtt_ms && means.queue_ms >= 1.0;
    let numbers = format!(
        "a call waits {:.1} ms in the client and {:.1} ms for its reply",
        means.queue_ms, means.rtt_ms
    );
    if !is_long {
        return Judged::Fine(numbers);
    }
    let what = format!(
        "calls wait in the client: {:.1} of {:.1} ms ({:.0} %) before they are sent",
        means.queue_ms,
        means.execute_ms,
        share * 100.0
    );
    let on_way = mount.rates.total.outstanding_mean.unwrap_or(1.0).max(1.0);
    let floor_ms = case.floor().map(|floor| floor.ms);
    let connections = mount.now.transports.len().max(1);
    let remedy = match connections {
        1 => "unmount every mount of this server, then mount with nconnect=8".to_owned(),
        _ => format!(
            "{connections} connections are in use: sysctl sunrpc.tcp_max_slot_table_entries, and \
             fewer bytes at once: sysctl -w vm.dirty_bytes=31457280"
        ),
    };
    let mut found = Found::new(&RULE, what, remedy)
        .evidence(numbers)
        .evidence(format!("{} calls, {connections} connections", total.calls))
        .gain(model::more_outstanding(on_way, means.rtt_ms, means.queue_ms, floor_ms));
    if floor_ms.is_none() {
        found =
            found.against("how much of the reply's time is the network is not known (ss -tino)");
    }
    found.into()
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
    fn a_few_calls_say_nothing() {
        wants_more(&RULE, &one(&mount("rw", &["WRITE: 9 9 0 0 0 60000 20000 81000 0"])));
    }
}
