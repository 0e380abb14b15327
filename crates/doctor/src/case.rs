//! What a rule is given: the evidence, whom it is about, and the thresholds.

use super::evidence::Evidence;
use super::finding::{Judged, Missing};
use super::floor::{self, Floor};
use super::limits::Limits;
use super::rules::Rule;
use super::subject::{Group, Hosted, Means, Mounted, Served};

/// One subject with all that is known.
#[derive(Clone, Copy, Debug)]
pub struct Case<'a> {
    pub evidence: &'a Evidence,
    pub limits: &'a Limits,
    pub host: &'a Hosted,
    /// The mount that it is about, if it is about one.
    pub mount: Option<&'a Mounted<'a>>,
    /// The server, if it is about that.
    pub server: Option<&'a Served>,
}

impl<'a> Case<'a> {
    /// A rule's threshold.
    pub fn limit(&self, rule: &Rule, name: &'static str) -> f64 {
        self.limits.of(rule, name)
    }

    /// The round trip of the mount's path, as far as it is known.
    pub fn floor(&self) -> Option<Floor> {
        floor::of(self.mount?)
    }

    /// What a call takes that does next to nothing; what TCP's round trip takes where the mount has
    /// made too few of them.
    pub fn cheapest_ms(&self) -> Option<f64> {
        floor::cheapest_call_ms(self.mount?).or_else(|| Some(self.floor()?.ms))
    }

    /// The mount, if it has made `calls_min` calls; their times if they are known.
    pub fn counted(&self, rule: &Rule) -> Result<(&'a Mounted<'a>, Group, Option<Means>), Judged> {
        match (self.used(rule), self.mount) {
            (Ok((mount, total, means)), _) => Ok((mount, total, Some(means))),
            (Err(_), Some(mount))
                if !mount.has_times
                    && mount.total().calls as f64 >= self.limit(rule, "calls_min") =>
            {
                Ok((mount, mount.total(), None))
            }
            (Err(judged), _) => Err(judged),
        }
    }

    /// The mount, if it has made `calls_min` calls of which times are known.
    pub fn used(&self, rule: &Rule) -> Result<(&'a Mounted<'a>, Group, Means), Judged> {
        let mount = self.mount.ok_or(Judged::Quiet)?;
        let total = mount.total();
        let is_enough = total.calls as f64 >= self.limit(rule, "calls_min");
        match total.means().filter(|_| is_enough) {
            Some(means) => Ok((mount, total, means)),
            None if !mount.has_times => Err(Judged::Missing(Missing::new(
                "the times of calls, and which mount they are of",
                "cat /proc/self/mountstats",
            ))),
            None => Err(Judged::Missing(Missing::new(
                format!(
                    "{} calls of {} are too few to judge times by",
                    total.calls, mount.now.point
                ),
                "the same while the mount is in use; --for 60s looks for longer",
            ))),
        }
    }
}
