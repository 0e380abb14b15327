//! A rule, and its thresholds: each has a default, and can be set.

use std::collections::BTreeMap;

use super::case::Case;
use super::finding::{Judged, Layer, Severity};

/// What a rule is about.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub enum About {
    /// A mount of this host.
    Mount,
    /// The server on this host.
    Server,
    /// The host itself: its network, memory and disks.
    Host,
    /// A client and a server in a capture.
    Capture,
    /// A run record of ours.
    Record,
}

/// One rule. NoFinding in it is decided outside of its file.
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

/// A number that decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Threshold {
    pub name: &'static str,
    pub default: f64,
    /// What it is a number of, as in "share of the calls".
    pub of: &'static str,
}

/// Thresholds that were set, by the names of rule and threshold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Limits(pub(super) BTreeMap<(&'static str, &'static str), f64>);

impl Limits {
    /// What holds; of a name that the rule has not, nothing ever does.
    pub fn of(&self, rule: &Rule, name: &'static str) -> f64 {
        let default = || rule.thresholds.iter().find(|one| one.name == name);
        let set = self.0.get(&(rule.name, name)).copied();
        set.unwrap_or_else(|| default().map_or(f64::INFINITY, |one| one.default))
    }
}
