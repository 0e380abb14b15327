//! The run record of a relay.

use net::relay::{Carried, Counts};
use net::shape::profile::Profile;
use perf::record::{Run, Target};

use super::stats::Statistics;
use crate::records;

pub fn json(
    counts: &Counts,
    server: Option<String>,
    profile: &Profile,
    statistics: &Statistics,
) -> String {
    let mut record = records::begin(statistics.began.clone());
    record.target = Target { kind: "server".to_owned(), url: server, ..Target::default() };
    record.workload.name = "link".to_owned();
    record.workload.parameters.insert("link".to_owned(), profile.to_string().into());
    let elapsed_s = statistics.elapsed().as_secs_f64();
    record.metric("elapsed_s", elapsed_s, "s");
    for (name, carried) in [("there", &counts.there), ("back", &counts.back)] {
        way(&mut record, name, carried, elapsed_s);
    }
    for (what, value) in [
        ("connections", counts.accepted),
        ("connections_refused", counts.refused),
        ("connections_of_other_users", counts.strangers),
        ("connections_unreachable", counts.unreachable),
        ("connections_broken", counts.broken),
        ("connections_garbled", counts.garbled),
        ("connections_given_up", counts.given_up),
    ] {
        record.metric(what, value as f64, "connections");
    }
    record.to_json_pretty()
}

/// One direction.
fn way(record: &mut Run, name: &str, carried: &Carried, elapsed_s: f64) {
    for (what, value, unit) in [
        ("messages", carried.messages, "messages"),
        ("bytes", carried.bytes, "bytes"),
        ("passed", carried.passed, "messages"),
        ("passed_bytes", carried.passed_bytes, "bytes"),
        ("duplicated", carried.duplicated, "messages"),
        ("reordered", carried.reordered, "messages"),
        ("corrupted", carried.corrupted, "messages"),
        ("retransmitted", carried.retransmitted, "packets"),
    ] {
        record.metric(&format!("{name}_{what}"), value as f64, unit);
    }
    for (loss, lost) in &carried.lost {
        let loss = loss.name().replace('-', "_");
        record.metric(&format!("{name}_lost_{loss}"), *lost as f64, "messages");
    }
    let mb_per_s = carried.passed_bytes as f64 * 1e-6 / elapsed_s.max(1e-9);
    record.metric(&format!("{name}_mb_per_s"), mb_per_s, "MB/s");
    record.histogram(&format!("{name}_wait"), &carried.queued);
    record.histogram(&format!("{name}_late"), &carried.late);
}
