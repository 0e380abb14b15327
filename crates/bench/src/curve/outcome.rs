//! What a load curve measured, and how.

use client::url::Target;
use load::curve::{self, Breach, Measured, Settings, Signature};
use perf::units::Nanos;

/// Everything that was measured, and how.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(super) settings: Settings,
    pub(super) started: String,
    pub(super) took: Nanos,
    pub(super) threads: u32,
    /// Processes that generated together.
    pub(super) processes: u32,
    pub(super) connections: usize,
    pub(super) servers: Vec<Server>,
    pub(super) neighbours_share: Option<f64>,
}

/// A server with its curve.
#[derive(Debug)]
pub(super) struct Server {
    pub(super) name: String,
    pub(super) target: Target,
    pub(super) measured: Measured,
    pub(super) signature: Option<Signature>,
}

impl Outcome {
    pub(super) fn is_empty(&self) -> bool {
        self.servers.iter().all(|server| server.measured.points.is_empty())
    }

    /// Points that do not hold a rule.
    pub(super) fn invalid(&self) -> usize {
        let points = self.servers.iter().flat_map(|server| &server.measured.points);
        points.filter(|point| !point.is_valid()).count()
    }

    /// What helps against the rule that most points do not hold.
    pub(super) fn advice(&self) -> &'static str {
        let points = self.servers.iter().flat_map(|server| &server.measured.points);
        most_common(points.flat_map(|point| &point.breaches))
    }

    /// What differs from SFS's rules, for a server.
    pub(super) fn deviations(&self, server: &Server) -> Vec<String> {
        let built = server.measured.built;
        let points = &server.measured.points;
        let peak = points.iter().map(|point| match point.kind {
            curve::Kind::Open => point.load,
            curve::Kind::Closed => point.outcome.achieved_per_s(),
        });
        let peak = peak.fold(0.0, f64::max);
        let mut found = curve::validity::deviations(&self.settings, Some((built.bytes, peak)));
        let invalid = points.iter().filter(|point| !point.is_valid()).count();
        match points.len() - invalid {
            _ if invalid == 0 => {}
            0 => found.push("rules: no point holds them".to_owned()),
            _ => found.push(format!(
                "rules: {invalid} of {} points do not hold them; what the curve shows rests \
                 on the others alone",
                points.len()
            )),
        }
        found
    }
}

/// The advice for the most frequent of them; of as many, for those of the server, and for the
/// first.
fn most_common<'a>(breaches: impl Iterator<Item = &'a Breach>) -> &'static str {
    let mut counts: Vec<(&Breach, usize)> = Vec::new();
    for breach in breaches {
        match counts.iter_mut().find(|(found, _)| found.code() == breach.code()) {
            Some((_, count)) => *count += 1,
            None => counts.push((breach, 1)),
        }
    }
    let weight = |(breach, count): &&(&Breach, usize)| (*count, breach.is_of_the_server());
    let most = counts.iter().rev().max_by_key(weight);
    most.map_or("", |(breach, _)| breach.advice())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_advice_is_that_for_the_rule_that_most_points_break() {
        let (late, mix) =
            (Breach::Late { share: 0.5 }, Breach::Mix { points: 3.0, points_max: 1.5 });
        let advice = |breaches: &[&Breach]| most_common(breaches.iter().copied());
        assert_eq!(advice(&[&late, &mix, &late]), late.advice());
        assert_eq!(advice(&[&late, &mix, &mix]), mix.advice());
        assert_eq!((advice(&[&mix, &late]), advice(&[])), (mix.advice(), ""));
        let errors = Breach::Errors { share: 0.69, first: None };
        assert_eq!(advice(&[&late, &errors]), errors.advice());
        assert_eq!(advice(&[&late, &errors, &late]), late.advice());
    }
}
