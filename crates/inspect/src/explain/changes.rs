//! What changes would give, by the server that was fitted.

use std::convert::Infallible;

use harness::compared::is_wide;
use perf::model::queue::line::Line;
use perf::model::trace::{Explained, Group, Work};
use perf::stats::{Estimate, Interval};

/// A change, and by which factor calls of the most frequent group would come faster.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) name: &'static str,
    /// None where only bounds are known.
    pub(super) factor: Option<f64>,
    pub(super) interval: Option<(f64, f64)>,
}

impl Change {
    pub(super) fn between(name: &'static str, (lo, hi): (f64, f64)) -> Self {
        Self { name, factor: None, interval: Some((lo.min(hi), lo.max(hi))) }
    }

    /// Whether it says anything: what may give next to nothing or ten times as much does not.
    /// Bounds are no estimate, and hold however far they are apart.
    fn is_identified(&self) -> bool {
        let Some(factor) = self.factor else { return true };
        factor.is_finite() && self.interval.is_none_or(|(lo, hi)| !is_wide(&Interval { lo, hi }))
    }

    /// A sentence.
    pub(super) fn text(&self) -> String {
        let what = match self.name {
            "window_times_4" => "four times the calls outstanding",
            "half_the_way" => "half the network's round trip",
            _ => "unstable WRITEs instead",
        };
        format!("{what}: {} times the calls", self.factor_text())
    }

    fn factor_text(&self) -> String {
        match (self.factor, self.interval) {
            (Some(factor), Some((lo, hi))) => format!("{factor:.2} ({lo:.2} to {hi:.2})"),
            (Some(factor), None) => format!("{factor:.2}"),
            (None, Some((lo, hi))) => format!("between {lo:.2} and {hi:.2}"),
            (None, None) => "unknown".to_owned(),
        }
    }
}

/// Calls a second with `window` outstanding: never more than the way lets through, or the servers.
fn rate(way_us: f64, demand_us: f64, servers: f64, window: f64) -> f64 {
    (window / (way_us + demand_us)).min(servers / demand_us)
}

/// What changes would give for the calls of the most frequent group; empty where the way was not
/// found, or nothing that such a call takes of a server: then no limit is known. Where only what a
/// disk takes was found, unstable WRITEs have bounds.
///
/// Parameters that only together are known (such as `op` and `ser` of calls of one size) make no
/// answer less certain that needs their sum: intervals are by all of the fit's covariance.
pub(super) fn changes(explained: &Explained) -> Vec<Change> {
    let Some(group) = frequent(explained) else { return Vec::new() };
    let calls = Calls { explained, group };
    let is_stable = group.work == Work::Stable;
    let has_demand = calls.is_memory_found() || (is_stable && calls.is_found("block"));
    if !calls.is_found("way") || !has_demand {
        return Vec::new();
    }
    let known = ALTERNATIVES.iter().filter(|other| is_stable || !other.without_block);
    known.map(|other| calls.change(other)).filter(Change::is_identified).collect()
}

/// What is changed.
struct Alternative {
    name: &'static str,
    way_share: f64,
    window_times: f64,
    without_block: bool,
}

const ALTERNATIVES: [Alternative; 3] = [
    Alternative { name: "window_times_4", way_share: 1.0, window_times: 4.0, without_block: false },
    Alternative { name: "half_the_way", way_share: 0.5, window_times: 1.0, without_block: false },
    Alternative { name: "unstable_writes", way_share: 1.0, window_times: 1.0, without_block: true },
];

/// As it is.
const NOW: Alternative =
    Alternative { name: "now", way_share: 1.0, window_times: 1.0, without_block: false };

/// The calls of a group, with the parameters that were found.
struct Calls<'a> {
    explained: &'a Explained,
    group: &'a Group,
}

impl Calls<'_> {
    fn is_found(&self, name: &str) -> bool {
        let mut found = self.explained.fitted.parameters.iter();
        found.any(|found| found.name == name && !found.at_bound)
    }

    fn is_memory_found(&self) -> bool {
        self.is_found("op") || self.is_found("ser")
    }

    fn value(&self, values: &[f64], name: &str) -> f64 {
        let mut found = self.explained.fitted.parameters.iter().zip(values);
        found.find(|(found, _)| found.name == name).map_or(0.0, |(_, value)| *value)
    }

    /// Calls a second.
    fn rate(&self, values: &[f64], of: &Alternative) -> f64 {
        let memory = self.value(values, "op") + self.group.kib * self.value(values, "ser");
        let has_block = self.group.work == Work::Stable && !of.without_block;
        let block = if has_block { self.value(values, "block") } else { 0.0 };
        let way = self.value(values, "way") * of.way_share;
        rate(way, memory + block, f64::from(self.explained.servers), self.window(of))
    }

    fn window(&self, of: &Alternative) -> f64 {
        f64::from(self.group.outstanding) * of.window_times
    }

    fn change(&self, of: &Alternative) -> Change {
        let fitted = &self.explained.fitted;
        let values = fitted.values();
        // No server is faster than one that takes no time.
        let fastest = self.window(of) / (self.value(&values, "way") * of.way_share);
        let ideal = fastest / self.rate(&values, &NOW);
        if of.without_block && !self.is_memory_found() {
            return Change::between(of.name, (1.0, ideal));
        }
        let most = if of.without_block { ideal } else { ideal.min(of.window_times / of.way_share) };
        let factor = |values: &[f64]| self.rate(values, of) / self.rate(values, &NOW);
        let Ok(Estimate { value: at, ci95 }) =
            fitted.answer(|values| Ok::<f64, Infallible>(factor(values)));
        let interval = ci95.filter(|_| at > 0.0);
        let within = |found: Interval| (found.lo.max(1.0).min(at), found.hi.min(most).max(at));
        Change { name: of.name, factor: Some(at), interval: interval.map(within) }
    }
}

/// The group with the most calls.
pub(super) fn frequent(explained: &Explained) -> Option<&Group> {
    explained.groups.iter().max_by_key(|group| group.calls)
}

/// The server as a line of calls before m servers (M/M/m), for the mix of the trace.
#[derive(Clone, Copy, Debug)]
pub(super) struct Queue {
    pub(super) servers: u32,
    /// Mean time that a call takes of a server, us.
    pub(super) service_us: f64,
    pub(super) saturation_per_s: f64,
    /// Calls a second that came, while there were any.
    pub(super) seen_per_s: f64,
    /// What a call takes at that rate with the way, if calls come at random; none over saturation.
    pub(super) response_us: Option<f64>,
    /// Mean over the groups' medians.
    pub(super) measured_us: f64,
}

impl Queue {
    /// None where a parameter was not found.
    pub(super) fn of(explained: &Explained, seen_per_s: f64) -> Option<Self> {
        let value = |name: &str| explained.fitted.value(name).unwrap_or(0.0);
        if explained.fitted.parameters.iter().any(|found| found.at_bound) {
            return None;
        }
        let service_us = mean(&explained.groups, |group| {
            let block = if group.work == Work::Stable { value("block") } else { 0.0 };
            value("op") + group.kib * value("ser") + block
        });
        let line = Line::new(explained.servers, service_us).ok()?;
        Some(Self {
            servers: explained.servers,
            service_us,
            saturation_per_s: line.saturation_per_s(),
            seen_per_s,
            response_us: line.response_us(seen_per_s).map(|us| us + value("way")),
            measured_us: mean(&explained.groups, |group| group.measured_us),
        })
    }
}

/// Over all calls of all groups.
fn mean(groups: &[Group], of: impl Fn(&Group) -> f64) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a number of calls")]
    let share = |group: &Group| group.calls as f64;
    let calls: f64 = groups.iter().map(share).sum();
    groups.iter().map(|group| of(group) * share(group)).sum::<f64>() / calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gain_between_nothing_and_ten_times_is_not_told() {
        let change = |interval| Change { name: "half_the_way", factor: Some(1.4), interval };
        assert!(change(Some((1.0, 3.9))).is_identified() && change(None).is_identified());
        assert!(!change(Some((1.0, 250.0))).is_identified());
        assert!(Change::between("window_times_4", (1.0, 250.0)).is_identified());
    }
}
