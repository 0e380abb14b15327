//! What a rule is given: the evidence, whom it is about, and the thresholds.

use super::evidence::Evidence;
use super::limits::Limits;
use super::rules::Rule;
use super::subject::Mounted;

/// One subject with all that is known.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub evidence: &'a Evidence,
    pub limits: &'a Limits,
    /// The mount that it is about, if it is about one.
    pub mount: Option<&'a Mounted>,
}

impl Case<'_> {
    /// A rule's threshold.
    pub fn limit(&self, rule: &Rule, name: &'static str) -> f64 {
        self.limits.of(rule, name)
    }
}
