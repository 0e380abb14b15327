//! What changes would give, by the server that was fitted.

use std::convert::Infallible;

use harness::compared::is_wide;
use perf::model::queue::line::Line;
use perf::model::trace::{Explained, Group, Work};
use perf::stats::{Estimate, Interval};

use super::cycle::Way;
use super::is_known;

/// A change, and by which factor calls of the most frequent group would come faster.
#[derive(Clone, Debug)]
pub(super) struct Change {
    pub(super) what: What,
    /// None where only bounds are known.
    pub(super) factor: Option<f64>,
    pub(super) interval: Option<(f64, f64)>,
}

perf::named! {
    /// What is changed, in the order in which it is shown.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub(super) enum What {
        WindowTimes4 => "window_times_4",
        HalfTheWay => "half_the_way",
        UnstableWrites => "unstable_writes",
    }
}

impl Change {
    pub(super) fn between(what: What, (lo, hi): (f64, f64)) -> Self {
        Self { what, factor: None, interval: Some((lo.min(hi), lo.max(hi))) }
    }

    /// Whether it says anything: what may give next to nothing or ten times as much does not.
    /// Bounds are no estimate, and hold however far they are apart.
    fn is_identified(&self) -> bool {
        let Some(factor) = self.factor else { return true };
        factor.is_finite() && self.interval.is_none_or(|(lo, hi)| !is_wide(&Interval { lo, hi }))
    }

    /// A sentence.
    pub(super) fn text(&self) -> String {
        let what = match self.what {
            What::HalfTheWay => "half the network's round trip",
            What::UnstableWrites => "unstable WRITEs instead",
            What::WindowTimes4 => "four times the calls outstanding",
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
/// disk takes was found, unstable WRITEs have bounds. A way that takes longer than the network is
/// known to is not the network's alone: what half of that gives has bounds, too.
///
/// Parameters that only together are known (such as `op` and `ser` of calls of one size) make no
/// answer less certain that needs their sum: intervals are by all of the fit's covariance.
pub(super) fn changes(explained: &Explained, way: Way) -> Vec<Change> {
    let Some(group) = frequent(explained) else { return Vec::new() };
    let calls = Calls { explained, group, way };
    let is_stable = group.work == Work::Stable;
    if !calls.is_found("way") || !calls.shows(&["op", "ser", "block"]) {
        return Vec::new();
    }
    let known = What::ALL.into_iter().filter(|what| is_stable || *what != What::UnstableWrites);
    known.map(|what| calls.change(what)).filter(Change::is_identified).collect()
}

/// What a call takes after a change.
struct Alternative {
    way_share: f64,
    window_times: f64,
    without_block: bool,
}

impl Alternative {
    const fn of(what: What) -> Self {
        match what {
            What::HalfTheWay => Self { way_share: 0.5, ..NOW },
            What::UnstableWrites => Self { without_block: true, ..NOW },
            What::WindowTimes4 => Self { window_times: 4.0, ..NOW },
        }
    }
}

/// As it is.
const NOW: Alternative = Alternative { way_share: 1.0, window_times: 1.0, without_block: false };

/// The calls of a group, with the parameters that were found.
struct Calls<'a> {
    explained: &'a Explained,
    group: &'a Group,
    /// What is known of the network besides.
    way: Way,
}

impl Calls<'_> {
    fn is_found(&self, name: &str) -> bool {
        let mut found = self.explained.fitted.parameters.iter();
        found.any(|found| found.name == name && !found.at_bound)
    }

    /// Whether what these parameters take of a server for such a call was found, all together.
    fn shows(&self, names: &[&str]) -> bool {
        let found: Vec<&str> = names.iter().copied().filter(|name| self.is_found(name)).collect();
        let demand = |values: &[f64]| found.iter().map(|name| self.part(values, name)).sum::<f64>();
        let Ok(demand) =
            self.explained.fitted.answer(|values| Ok::<f64, Infallible>(demand(values)));
        demand.value > 0.0 && is_known(&demand)
    }

    /// What a parameter takes of a server for a call of the group, us.
    fn part(&self, values: &[f64], name: &str) -> f64 {
        let times = match name {
            "ser" => self.group.kib,
            "block" if self.group.work != Work::Stable => 0.0,
            _ => 1.0,
        };
        times * self.value(values, name)
    }

    fn value(&self, values: &[f64], name: &str) -> f64 {
        let mut found = self.explained.fitted.parameters.iter().zip(values);
        found.find(|(found, _)| found.name == name).map_or(0.0, |(_, value)| *value)
    }

    /// Calls a second.
    fn rate(&self, values: &[f64], of: &Alternative) -> f64 {
        self.rate_over(self.value(values, "way") * of.way_share, values, of)
    }

    fn rate_over(&self, way_us: f64, values: &[f64], of: &Alternative) -> f64 {
        let memory = self.part(values, "op") + self.part(values, "ser");
        let block = if of.without_block { 0.0 } else { self.part(values, "block") };
        rate(way_us, memory + block, f64::from(self.explained.servers), self.window(of))
    }

    /// What half of the network's round trip would give, where that is less than the way.
    fn half_the_network(&self, values: &[f64]) -> Option<Change> {
        let way_us = self.value(values, "way");
        let Interval { lo, hi } = self.way.measured()?;
        let now = self.rate(values, &NOW);
        let without = |us: f64| self.rate_over(way_us - us / 2.0, values, &NOW) / now;
        (hi < way_us).then(|| Change::between(What::HalfTheWay, (without(lo), without(hi))))
    }

    fn window(&self, of: &Alternative) -> f64 {
        f64::from(self.group.outstanding) * of.window_times
    }

    fn change(&self, what: What) -> Change {
        let of = &Alternative::of(what);
        let fitted = &self.explained.fitted;
        let values = fitted.values();
        if what == What::HalfTheWay
            && let Some(change) = self.half_the_network(&values)
        {
            return change;
        }
        // No server is faster than one that takes no time.
        let fastest = self.window(of) / (self.value(&values, "way") * of.way_share);
        let ideal = fastest / self.rate(&values, &NOW);
        if of.without_block && !self.shows(&["op", "ser"]) {
            return Change::between(what, (1.0, ideal));
        }
        let most = if of.without_block { ideal } else { ideal.min(of.window_times / of.way_share) };
        let factor = |values: &[f64]| self.rate(values, of) / self.rate(values, &NOW);
        let Ok(Estimate { value: at, ci95 }) =
            fitted.answer(|values| Ok::<f64, Infallible>(factor(values)));
        let interval = ci95.filter(|_| at > 0.0);
        let within = |found: Interval| (found.lo.max(1.0).min(at), found.hi.min(most).max(at));
        Change { what, factor: Some(at), interval: interval.map(within) }
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
    /// None where a parameter was not found, what such a call takes of the server was not, or how
    /// many it serves at once has no end.
    pub(super) fn of(explained: &Explained, seen_per_s: f64) -> Option<Self> {
        /// Of the saturation: where more comes, calls wait for the server and not by chance.
        const BUSIEST: f64 = 0.95;
        let calls = Calls { explained, group: frequent(explained)?, way: Way::default() };
        if !calls.shows(&["op", "ser", "block"]) || explained.servers_range.1.is_none() {
            return None;
        }
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
            response_us: line
                .response_us(seen_per_s)
                .filter(|_| seen_per_s < BUSIEST * line.saturation_per_s())
                .map(|us| us + value("way")),
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
    use perf::model::least_squares::{Fitted, Found};
    use perf::model::trace::Measured;

    use super::*;

    /// READs of one KiB with 4 outstanding, of a server with these parameters: value, and by which
    /// factor it may be off.
    fn explained(found: &[(&'static str, f64, f64)]) -> Explained {
        let found: Vec<(Found, f64)> = found.iter().map(|found| parameter(*found)).collect();
        let row = |at: usize| {
            let own = |(other, (_, variance)): (usize, &(Found, f64))| {
                if other == at { *variance } else { 0.0 }
            };
            found.iter().enumerate().map(own).collect()
        };
        Explained {
            servers: 1,
            servers_range: (1, Some(1)),
            fitted: Fitted {
                covariance: (0..found.len()).map(row).collect(),
                parameters: found.iter().map(|(found, _)| *found).collect(),
                unidentified: Vec::new(),
                residuals: vec![0.0; 20],
                deviation: 0.05,
                systematic: None,
            },
            groups: vec![Group {
                work: Work::Memory,
                kib: 1.0,
                outstanding: 4,
                calls: 100,
                measured_us: 200.0,
            }],
            transactions: 100,
            outstanding_mean: 4.0,
            measured: Measured { per_s: 20_000.0, response_us: 200.0 },
        }
    }

    fn parameter((name, value, off): (&'static str, f64, f64)) -> (Found, f64) {
        let at_bound = off.is_infinite();
        let ci95 = (!at_bound).then(|| Interval { lo: value / off, hi: value * off });
        let variance = if at_bound { 0.0 } else { (off.ln() / 2.0).powi(2) };
        (Found { name, unit: "us", estimate: Estimate { value, ci95 }, at_bound }, variance)
    }

    const WAY: (&str, f64, f64) = ("way", 190.0, 1.2);

    #[test]
    fn without_what_such_a_call_takes_of_the_server_there_is_no_limit_and_no_gain() {
        let unknown = f64::INFINITY;
        let gains = |explained: &Explained| changes(explained, Way::default()).len();
        let known = explained(&[WAY, ("op", 30.0, 1.3), ("ser", 1.0, 30.0)]);
        assert_eq!(gains(&known), 2);
        // What a kilobyte takes is none of it for calls without data.
        let mut bare = explained(&[WAY, ("op", 0.1, unknown), ("ser", 1.2, 1.3)]);
        assert_eq!(gains(&bare), 2);
        bare.groups[0].kib = 0.0;
        assert_eq!(gains(&bare), 0);
        let vague = explained(&[WAY, ("op", 0.1, unknown), ("ser", 1.2, 30.0)]);
        assert_eq!(gains(&vague), 0);
    }

    #[test]
    fn a_saturation_is_reported_where_the_servers_time_and_number_are_known() {
        let mut known = explained(&[WAY, ("op", 30.0, 1.3)]);
        let queue = Queue::of(&known, 10_000.0).unwrap();
        assert!((queue.saturation_per_s - 1e6 / 30.0).abs() < 1.0 && queue.response_us.is_some());
        // What comes at random waits so; what comes as fast as the server answers does not.
        assert!(Queue::of(&known, 33_000.0).unwrap().response_us.is_none());
        let vague = explained(&[WAY, ("op", 30.0, 30.0)]);
        assert!(Queue::of(&vague, 10_000.0).is_none());
        known.servers_range = (1, None);
        assert!(Queue::of(&known, 10_000.0).is_none());
    }

    #[test]
    fn half_the_network_gives_no_more_than_what_was_measured_of_it() {
        let explained = explained(&[WAY, ("op", 10.0, 1.3)]);
        let gain = |light_us: f64| {
            let way = Way { least_us: Some(4.0), light_us: Some(light_us), ..Way::default() };
            let changes = changes(&explained, way);
            changes.into_iter().find(|change| change.what == What::HalfTheWay).unwrap()
        };
        let bounded = gain(40.0);
        let (lo, hi) = bounded.interval.unwrap();
        assert!(bounded.factor.is_none() && lo > 1.0 && lo < 1.02 && hi < 1.12, "{bounded:?}");
        // Light calls that take as long as the way do not speak against it.
        let fitted = gain(200.0);
        assert!(fitted.factor.is_some_and(|factor| factor > 1.8), "{fitted:?}");
    }

    #[test]
    fn a_gain_between_nothing_and_ten_times_is_not_reported() {
        let change = |interval| Change { what: What::HalfTheWay, factor: Some(1.4), interval };
        assert!(change(Some((1.0, 3.9))).is_identified() && change(None).is_identified());
        assert!(!change(Some((1.0, 250.0))).is_identified());
        assert!(Change::between(What::WindowTimes4, (1.0, 250.0)).is_identified());
    }
}
