//! The run record of a relay.

use harness::records;
use net::relay::Counts;
use net::shape::profile::Profile;
use perf::record::Target;

use super::banner::Leg;
use super::stats::Statistics;

pub(super) fn json(
    counts: &Counts,
    legs: &[Leg],
    profile: &Profile,
    statistics: &Statistics,
) -> String {
    let mut record = records::begin(statistics.began.clone());
    let server = legs.first().map(|leg| leg.server.to_string());
    record.target = Target { kind: "server".to_owned(), url: server, ..Target::default() };
    record.workload.name = "link".to_owned();
    record.workload.parameters.insert("link".to_owned(), profile.to_string().into());
    let elapsed_s = statistics.elapsed().as_secs_f64();
    record.metric("elapsed_s", elapsed_s, "s");
    for (name, carried) in [("there", &counts.there), ("back", &counts.back)] {
        let mut count = |what: &str, value: u64, unit: &str| {
            record.metric(&format!("{name}_{what}"), value as f64, unit);
        };
        count("messages", carried.messages, "messages");
        count("bytes", carried.bytes, "bytes");
        count("passed", carried.passed, "messages");
        count("passed_bytes", carried.passed_bytes, "bytes");
        count("duplicated", carried.duplicated, "messages");
        count("reordered", carried.reordered, "messages");
        count("corrupted", carried.corrupted, "messages");
        count("retransmitted", carried.retransmitted, "packets");
        for (loss, lost) in &carried.lost {
            count(&format!("lost_{}", loss.name().replace('-', "_")), *lost, "messages");
        }
        let mb_per_s = carried.passed_bytes as f64 * 1e-6 / elapsed_s.max(1e-9);
        record.metric(&format!("{name}_mb_per_s"), mb_per_s, "MB/s");
        record.histogram(&format!("{name}_wait"), &carried.queued);
        record.histogram(&format!("{name}_late"), &carried.late);
    }
    for (what, value) in [
        ("connections", counts.accepted),
        ("connections_refused", counts.refused),
        ("connections_unreachable", counts.unreachable),
        ("connections_broken", counts.broken),
        ("connections_garbled", counts.garbled),
        ("connections_given_up", counts.given_up),
    ] {
        record.metric(what, value as f64, "connections");
    }
    record.to_json_pretty()
}
