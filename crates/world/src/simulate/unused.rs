//! Entries of a topology that would have no effect: refused, as whoever writes one expects
//! something of it.

use super::topology::{Fault, Topology};

/// Of `[workload]`: what has no effect beside, or without, another.
const BESIDE: [(&str, &str); 4] =
    [("outstanding", "rate"), ("mix", "write"), ("rate", "write"), ("arrivals", "write")];
const WITHOUT: [(&str, &str); 2] = [("arrivals", "rate"), ("commit", "write")];

/// Of the text of a topology.
///
/// # Errors
/// What has no effect, and why.
pub(super) fn refuse(topology: &Topology, text: &str) -> Result<(), String> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let workload = table.get("workload").and_then(toml::Value::as_table);
    let has = |key: &str| workload.is_some_and(|workload| workload.contains_key(key));
    for (key, other) in BESIDE {
        if has(key) && has(other) {
            return Err(format!("workload.{key} has no effect beside workload.{other}"));
        }
    }
    for (key, other) in WITHOUT {
        if has(key) && !has(other) {
            return Err(format!("workload.{key} has no effect without workload.{other}"));
        }
    }
    topology.faults.iter().try_for_each(|fault| refuse_fault(topology, fault))
}

fn refuse_fault(topology: &Topology, fault: &Fault) -> Result<(), String> {
    let (at, end) =
        (fault.at(), topology.workload.warm_up.nanos() + topology.workload.time.nanos());
    match () {
        () if at >= end => Err(format!("{fault} has no effect: the run ends after {end}")),
        () if fault.is_nothing() => Err(format!("{fault} has no effect")),
        () => Ok(()),
    }
}
