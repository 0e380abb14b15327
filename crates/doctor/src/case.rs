//! What a rule is given: the evidence, whom it is about, and the thresholds.

use counters::host::processor::Processors;

use super::evidence::Evidence;
use super::finding::NoFinding;
use super::floor::{self, Floor};
use super::rule::{Limits, Rule};
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

    pub fn floor_ms(&self) -> Option<f64> {
        self.floor().map(|floor| floor.ms)
    }

    /// The mount, for a rule that is about one.
    pub fn mount(&self) -> Result<&'a Mounted<'a>, NoFinding> {
        self.mount.ok_or(NoFinding::NotApplicable)
    }

    /// The mount, where two samples show what it does now.
    pub fn mount_now(&self) -> Result<&'a Mounted<'a>, NoFinding> {
        let mount = self.mount.filter(|mount| !mount.is_lifetime());
        mount.ok_or(NoFinding::NotApplicable)
    }

    /// The server, for a rule that is about it.
    pub fn server(&self) -> Result<&'a Served, NoFinding> {
        self.server.ok_or(NoFinding::NotApplicable)
    }

    /// The processors' time between two samples.
    pub fn processors(&self) -> Result<Processors, NoFinding> {
        let now = self.host.processors.filter(|_| !self.host.is_lifetime);
        now.ok_or(NoFinding::NotApplicable)
    }

    /// The processors' idle share between two samples.
    pub fn idle_now(&self) -> Option<f64> {
        self.host.idle().filter(|_| !self.host.is_lifetime)
    }

    /// The mount, if it has made `calls_min` calls; their times if they are known.
    pub fn counted(
        &self,
        rule: &Rule,
    ) -> Result<(&'a Mounted<'a>, Group, Option<Means>), NoFinding> {
        let mount = self.mount()?;
        let total = mount.total();
        if !mount.has_times && self.is_enough(rule, &total) {
            return Ok((mount, total, None));
        }
        self.used(rule).map(|(mount, total, means)| (mount, total, Some(means)))
    }

    /// The mount, if it has made `calls_min` calls of which times are known.
    pub fn used(&self, rule: &Rule) -> Result<(&'a Mounted<'a>, Group, Means), NoFinding> {
        let mount = self.mount()?;
        let total = mount.total();
        let means = total.means().filter(|_| self.is_enough(rule, &total));
        means.map(|means| (mount, total, means)).ok_or_else(|| untimed(mount, &total))
    }

    fn is_enough(&self, rule: &Rule, total: &Group) -> bool {
        total.calls as f64 >= self.limit(rule, "calls_min")
    }
}

fn untimed(mount: &Mounted<'_>, total: &Group) -> NoFinding {
    match mount.has_times {
        false => NoFinding::missing(
            "the times of calls, and which mount they are of",
            "cat /proc/self/mountstats",
        ),
        true => NoFinding::missing(
            format!("{} calls of {} are too few to judge times by", total.calls, mount.now.point),
            "the same while the mount is in use; --for 60s looks for longer",
        ),
    }
}
