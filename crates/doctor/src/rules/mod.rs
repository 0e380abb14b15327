//! The rules: one file each, one line in [`ALL`]. `docs/doctor-rules.md` is made of this list.

mod attribute_caching_off;
mod client_queue;
mod document;
mod retransmissions;

use super::case::Case;
use super::finding::{Judged, Layer, Severity};
use super::limits::Threshold;

pub use document::document;

/// What a rule is about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum About {
    /// A mount of this host.
    Mount,
    /// The server on this host.
    Server,
    /// The host itself: its network, memory and disks.
    Host,
}

/// One rule. Nothing in it is decided outside of its file.
#[derive(Debug)]
pub struct Rule {
    /// Words with hyphens, for programs and for `--set`.
    pub name: &'static str,
    pub about: About,
    pub layer: Layer,
    /// Of what it finds, where that does not say another.
    pub severity: Severity,
    /// Files or outputs that it needs.
    pub needs: &'static [&'static str],
    pub thresholds: &'static [Threshold],
    /// Where the rule and its thresholds come from.
    pub source: &'static str,
    pub explanation: &'static str,
    /// In general; a finding has it for its case.
    pub remedy: &'static str,
    /// How the gain is predicted, or why it is not.
    pub gain: &'static str,
    /// Rules whose findings explain this one's.
    pub explained_by: &'static [&'static str],
    pub judge: fn(&Case<'_>) -> Judged,
}

/// All rules, by the names of their files.
pub static ALL: [&Rule; 3] =
    [&attribute_caching_off::RULE, &client_queue::RULE, &retransmissions::RULE];

/// The rule of a name.
pub fn named(name: &str) -> Option<&'static Rule> {
    ALL.iter().find(|rule| rule.name == name).copied()
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
}
