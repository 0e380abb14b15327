//! The rules: one file each, one line in [`ALL`]. `docs/doctor-rules.md` is made of this list.

mod attribute_caching_off;
mod attribute_storm;
mod blocked_processes;
mod busy_disks;
mod busy_processors;
mod cache_misses;
pub(super) mod capture;
mod client_queue;
mod connection_breaks;
mod delays;
mod delegation_conflicts;
mod dirty_limit;
mod document;
mod full_file_system;
mod full_path;
mod idle_application;
mod idle_threads;
mod interface_errors;
mod kerberos;
mod kernel_reports;
mod latency_bound;
mod low_memory;
mod major_timeouts;
mod mtu_mismatch;
mod nconnect_ignored;
mod network_or_server;
mod no_replies;
pub(super) mod our_mount;
pub(super) mod our_server;
mod packet_backlog;
mod read_ahead;
mod refused_calls;
mod reply_cache_hits;
mod retransmissions;
pub(super) mod run_record;
mod server_disks;
mod server_processors;
mod server_threads;
mod server_writes;
mod session_slots;
mod short_timeo;
mod single_connection;
mod slot_limit;
mod slow_clock;
mod slow_commit;
mod slow_interface;
mod slow_server;
mod small_calls;
mod small_transfers;
mod socket_memory;
mod soft_mount;
mod spray_loss;
mod stale_handles;
mod swapping;
mod symbolic_links;
mod sync_mount;
mod tcp_loss;
mod udp_loss;
mod udp_mount;

// What every rule is written with.
use super::case::Case;
use super::finding::{
    Certainty, Found, Gain, Judged, Layer, NoFinding, Severity, fine_if, not_applicable_if,
};
use super::rule::{Limits, Threshold};

pub use super::rule::{About, Rule};
pub use capture::Captured;
pub use document::document;
pub use our_mount::OurMounted;
pub use our_server::{OurLog, OurServed};
pub use run_record::{Part, Recorded};

/// All rules, by their names.
pub static ALL: [&Rule; 58] = [
    &attribute_caching_off::RULE,
    &attribute_storm::RULE,
    &blocked_processes::RULE,
    &busy_disks::RULE,
    &busy_processors::RULE,
    &cache_misses::RULE,
    &capture::RULE,
    &client_queue::RULE,
    &connection_breaks::RULE,
    &delays::RULE,
    &delegation_conflicts::RULE,
    &dirty_limit::RULE,
    &full_file_system::RULE,
    &full_path::RULE,
    &idle_application::RULE,
    &idle_threads::RULE,
    &interface_errors::RULE,
    &kerberos::RULE,
    &kernel_reports::RULE,
    &latency_bound::RULE,
    &low_memory::RULE,
    &major_timeouts::RULE,
    &mtu_mismatch::RULE,
    &nconnect_ignored::RULE,
    &network_or_server::RULE,
    &no_replies::RULE,
    &our_mount::RULE,
    &our_server::RULE,
    &packet_backlog::RULE,
    &read_ahead::RULE,
    &refused_calls::RULE,
    &reply_cache_hits::RULE,
    &retransmissions::RULE,
    &run_record::RULE,
    &server_disks::RULE,
    &server_processors::RULE,
    &server_threads::RULE,
    &server_writes::RULE,
    &session_slots::RULE,
    &short_timeo::RULE,
    &single_connection::RULE,
    &slot_limit::RULE,
    &slow_clock::RULE,
    &slow_commit::RULE,
    &slow_interface::RULE,
    &slow_server::RULE,
    &small_calls::RULE,
    &small_transfers::RULE,
    &socket_memory::RULE,
    &soft_mount::RULE,
    &spray_loss::RULE,
    &stale_handles::RULE,
    &swapping::RULE,
    &symbolic_links::RULE,
    &sync_mount::RULE,
    &tcp_loss::RULE,
    &udp_loss::RULE,
    &udp_mount::RULE,
];

/// What reads attributes and names, in every version.
const LOOKS: [&str; 3] = ["GETATTR", "LOOKUP", "ACCESS"];

/// The rule of a name.
pub fn named(name: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.name == name).copied()
}

impl Limits {
    /// Sets one, by `RULE.NAME`.
    ///
    /// # Errors
    /// There is no such threshold, or the number is none that can be compared; a sentence.
    pub fn set(&mut self, name: &str, value: f64) -> Result<(), String> {
        let found = ALL.iter().find_map(|rule| {
            let below = name.strip_prefix(rule.name)?.strip_prefix('.')?;
            let threshold = rule.thresholds.iter().find(|one| one.name == below)?;
            Some((rule.name, threshold.name))
        });
        let Some(place) = found else {
            return Err(format!("{name} is not the threshold of a rule"));
        };
        if !value.is_finite() || value < 0.0 {
            return Err(format!("{name} takes a number from 0 on"));
        }
        self.0.insert(place, value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rule_is_whole_and_names_others_that_there_are() {
        assert!(ALL.is_sorted_by_key(|rule| rule.name), "by their names");
        for rule in ALL {
            let texts = [rule.source, rule.explanation, rule.remedy, rule.gain];
            assert!(texts.iter().all(|text| text.len() > 10), "{}", rule.name);
            assert!(!rule.needs.is_empty(), "{}", rule.name);
            for other in rule.explained_by {
                assert!(named(other).is_some_and(|other| other.name != rule.name), "{other}");
            }
        }
    }

    #[test]
    fn every_threshold_can_be_set_and_no_other() {
        for rule in ALL {
            for threshold in rule.thresholds {
                let mut limits = Limits::default();
                assert_eq!(limits.of(rule, threshold.name), threshold.default);
                limits.set(&format!("{}.{}", rule.name, threshold.name), 7.0).unwrap();
                assert_eq!(limits.of(rule, threshold.name), 7.0);
            }
        }
        let mut limits = Limits::default();
        assert!(limits.set("client-queue.color", 1.0).unwrap_err().contains("not the threshold"));
        assert!(limits.set("client-queue.calls_min", f64::NAN).unwrap_err().contains("from 0 on"));
    }
}
