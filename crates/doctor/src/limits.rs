//! Thresholds of rules: each has a default, and can be set.

use std::collections::BTreeMap;

use super::rules::{ALL, Rule};

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
pub struct Limits(BTreeMap<(&'static str, &'static str), f64>);

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

    /// What holds; of a name that the rule has not, nothing ever does.
    pub fn of(&self, rule: &Rule, name: &'static str) -> f64 {
        let default = || rule.thresholds.iter().find(|one| one.name == name);
        let set = self.0.get(&(rule.name, name)).copied();
        set.unwrap_or_else(|| default().map_or(f64::INFINITY, |one| one.default))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
