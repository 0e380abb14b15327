//! A curve in a few numbers: base, slope, saturation, knee (Martin & Culler 1999, section 2.2), and
//! the overall response time of SPEC.
//!
//! Only points that hold all rules count: of what an invalid point shows nothing is concluded.
//!
//! - The saturation is the highest throughput of any point, if more load was tried in vain: an open
//!   loop that offered more than came, a closed one that gained nothing from more outstanding.
//!   Otherwise it is not known, and the highest throughput is the least that it can be.
//! - The knee is the point with the most throughput for its response time (Kleinrock's power): up
//!   to there, more load costs little. It takes three points, and one beyond it.
//! - The base is the response time of the point with the least load, of those that sustained it:
//!   of others it says how long was measured.
//! - A point with more load and clearly less throughput than another shows a server that does less
//!   when more is wanted: base, knee, slope and overall response time are of the points before.
//! - The slope is that of the least-squares line through the points up to the knee, of which there
//!   have to be three.
//! - The overall response time is the area under the curve from the origin, over the highest
//!   throughput (`perf::model::curve`), of the points that sustained their load: beyond,
//!   response times say how long was measured, and curves turn back.
//!
//! Intervals come from a bootstrap of the batches: each point's are drawn again, with replacement,
//! a thousand times, in blocks of neighbours that do not resemble the next block, and each weighs
//! by what it has. They cover what varies within the run, and not what differs from day to day.

use fastrand::Rng;
use perf::model::curve::{Curve, Point as CurvePoint};
use perf::stats::{Blocks, Estimate, Interval, Sample, Sum, fit_least_squares};

use super::point::{answered, responses};
use super::{Kind, Point};

/// How often batches are drawn again.
const DRAWS: usize = 1_000;

/// Points that a slope needs, and a knee.
const SLOPE_POINTS_MIN: usize = 3;

/// A closed loop that gains less than this from its last step is full.
const FULL_GAIN: f64 = 0.05;
/// A point below one of less load by more than this lies beyond the peak: by less it is chance.
const BEYOND: f64 = 0.05;
/// An invalid point above the others by more than this shows that there is more to be had.
const ABOVE: f64 = 0.01;

/// See the module's head; times in microseconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Signature {
    /// `None` where all points are over.
    pub base_us: Option<Estimate>,
    /// Microseconds for each operation a second.
    pub slope: Option<Estimate>,
    /// Where the slope's line meets the axis of times.
    pub intercept_us: Option<Estimate>,
    pub highest_per_s: Estimate,
    /// The highest throughput is all that the server can do.
    pub is_saturated: bool,
    /// Throughput and response time.
    pub knee: Option<(f64, f64)>,
    pub overall_us: Option<Estimate>,
    /// Points that it rests on.
    pub points: usize,
    drawn: Drawn,
}

/// What two curves can be compared by.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Quantity {
    Base,
    Highest,
    Overall,
}

/// Throughput and mean response time, of the whole and of its batches.
struct Seen {
    load: f64,
    per_s: f64,
    response_us: f64,
    keeps_up: bool,
    is_over: bool,
    /// How far its rate and its times may be off is known.
    has_interval: bool,
    /// Answers over seconds, and response times over responses, of each batch.
    answered: Vec<Sum>,
    responses: Vec<Sum>,
    blocks: Blocks,
}

impl Signature {
    /// Of points in any order. `None` without a valid point that was answered.
    pub fn of(points: &[Point]) -> Option<Self> {
        let valid = || points.iter().filter(|point| point.is_valid());
        let seen: Vec<Seen> = valid().filter_map(Seen::of).collect();
        let mut seen = before_the_peak(seen);
        seen.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        let least = (0..seen.len())
            .filter(|at| !seen[*at].is_over)
            .min_by(|a, b| seen[*a].load.total_cmp(&seen[*b].load));
        let plain: Vec<(f64, f64)> =
            seen.iter().map(|seen| (seen.per_s, seen.response_us)).collect();
        let (highest_per_s, _) = *plain.last()?;
        let knee = knee(&plain)?;
        let invalid = points.iter().filter(|point| !point.is_valid()).filter_map(Seen::of);
        let is_topped = invalid.into_iter().any(|one| one.per_s > (1.0 + ABOVE) * highest_per_s);
        let line = line(&plain[..=knee]);
        let overall_us = overall_us(&seen, &plain);

        let mut random = Rng::with_seed(1);
        let mut drawn = Drawn::default();
        for _ in 0..DRAWS {
            let again: Vec<(f64, f64)> = seen.iter().map(|seen| seen.draw(&mut random)).collect();
            drawn.base.extend(least.map(|least| again[least].1));
            drawn.highest.extend(again.last().map(|(per_s, _)| *per_s));
            if let Some((intercept, slope)) = self::line(&again[..=knee]) {
                drawn.intercept.push(intercept);
                drawn.slope.push(slope);
            }
            drawn.overall.extend(self::overall_us(&seen, &again));
        }
        let sustained = seen.iter().filter(|seen| seen.keeps_up);
        Some(Self {
            base_us: least.map(|at| estimate_of(&seen[at..=at], plain[at].1, &drawn.base)),
            slope: line.map(|(_, slope)| estimate_of(&seen[..=knee], slope, &drawn.slope)),
            intercept_us: line
                .map(|(intercept, _)| estimate_of(&seen[..=knee], intercept, &drawn.intercept)),
            highest_per_s: estimate_of(&seen[seen.len() - 1..], highest_per_s, &drawn.highest),
            is_saturated: !is_topped && is_full(&valid().collect::<Vec<_>>()),
            knee: (plain.len() >= SLOPE_POINTS_MIN && knee + 1 < plain.len()).then(|| plain[knee]),
            overall_us: overall_us
                .map(|overall_us| estimate_of(sustained, overall_us, &drawn.overall)),
            points: plain.len(),
            drawn,
        })
    }

    /// How many times the other's quantity is this one's, with the interval of what was drawn of
    /// both; `None` where one has none.
    pub fn ratio(&self, other: &Self, quantity: Quantity) -> Option<Estimate> {
        let of = |signature: &Self| match quantity {
            Quantity::Base => signature.base_us,
            Quantity::Highest => Some(signature.highest_per_s),
            Quantity::Overall => signature.overall_us,
        };
        let (other_one, own) = (of(other)?, of(self)?);
        let value = other_one.value / own.value;
        let is_known = other_one.ci95.is_some() && own.ci95.is_some();
        let drawn = |signature: &'_ Self| -> Vec<f64> {
            match quantity {
                Quantity::Base => signature.drawn.base.clone(),
                Quantity::Highest => signature.drawn.highest.clone(),
                Quantity::Overall => signature.drawn.overall.clone(),
            }
        };
        // Both were drawn with the same numbers: in the other order they have nothing in common.
        let (own, others) = (drawn(self), drawn(other));
        let ratios = own.iter().zip(others.iter().rev()).map(|(own, other)| other / own);
        let ratios: Vec<f64> = ratios.filter(|ratio| ratio.is_finite()).collect();
        let Estimate { ci95, .. } = estimate(value, &ratios);
        value.is_finite().then(|| Estimate { value, ci95: ci95.filter(|_| is_known) })
    }
}

/// Whether more load was tried in vain.
fn is_full(valid: &[&Point]) -> bool {
    let mut closed: Vec<(f64, f64)> = valid
        .iter()
        .filter(|point| point.kind == Kind::Closed)
        .map(|point| (point.load, point.outcome.achieved_per_s()))
        .collect();
    closed.sort_by(|a, b| a.0.total_cmp(&b.0));
    let gains_nothing = match closed[..] {
        [.., (_, before), (_, last)] => last <= (1.0 + FULL_GAIN) * before,
        _ => false,
    };
    gains_nothing || valid.iter().any(|point| point.is_over())
}

/// As many of each as was drawn again.
#[derive(Clone, Debug, Default, PartialEq)]
struct Drawn {
    base: Vec<f64>,
    slope: Vec<f64>,
    intercept: Vec<f64>,
    highest: Vec<f64>,
    overall: Vec<f64>,
}

impl Seen {
    fn of(point: &Point) -> Option<Self> {
        let outcome = &point.outcome;
        let (per_s, response) = (outcome.achieved_per_s(), outcome.response_mean()?);
        if outcome.broken.is_some() || !(per_s.is_finite() && per_s > 0.0) {
            return None;
        }
        let (answered, responses) = (answered(outcome), responses(outcome));
        // Both are drawn together, so that what they have in common stays.
        let (a, b) = (Blocks::of(&answered), Blocks::of(&responses));
        let blocks =
            Blocks { length: a.length.max(b.length), widening: a.widening.max(b.widening) };
        Some(Self {
            load: point.load,
            per_s,
            response_us: response.as_micros_f64(),
            keeps_up: point.keeps_up,
            is_over: point.is_over(),
            has_interval: [Some(point.achieved_per_s()), point.response_us()]
                .iter()
                .all(|found| found.is_some_and(|found| found.ci95.is_some())),
            answered,
            responses,
            blocks,
        })
    }

    /// The point, had other batches of it been seen.
    fn draw(&self, random: &mut Rng) -> (f64, f64) {
        let n = self.responses.len();
        let drawn = self.blocks.draw(n, |n| random.usize(..n));
        let mean = |sums: &[Sum], whole: f64| {
            let mean = Sum::of(drawn.iter().map(|&at| &sums[at])).mean();
            // As a factor: a rate or a time is never below nothing.
            mean.map_or(whole, |mean| whole * (mean / whole).powf(self.blocks.widening))
        };
        (mean(&self.answered, self.per_s), mean(&self.responses, self.response_us))
    }
}

/// Without points that have more load and clearly less throughput than another.
fn before_the_peak(mut seen: Vec<Seen>) -> Vec<Seen> {
    let all: Vec<(f64, f64)> = seen.iter().map(|one| (one.load, one.per_s)).collect();
    let is_beyond = |one: &Seen| {
        let least = one.per_s / (1.0 - BEYOND);
        all.iter().any(|(load, per_s)| *load < one.load && *per_s > least)
    };
    seen.retain(|one| !is_beyond(one));
    seen
}

/// The number of the point with the highest power.
fn knee(points: &[(f64, f64)]) -> Option<usize> {
    let power = |(per_s, response_us): &(f64, f64)| per_s / response_us.max(f64::MIN_POSITIVE);
    (0..points.len()).max_by(|a, b| power(&points[*a]).total_cmp(&power(&points[*b])))
}

/// Intercept and slope.
fn line(points: &[(f64, f64)]) -> Option<(f64, f64)> {
    if points.len() < SLOPE_POINTS_MIN {
        return None;
    }
    let (x, y): (Vec<f64>, Vec<f64>) = points.iter().copied().unzip();
    let fit = fit_least_squares(&x, &y).ok()?;
    Some((fit.intercept.value, fit.slope.value))
}

/// Of the points that sustained their load; where two have the same throughput, the first.
fn overall_us(seen: &[Seen], points: &[(f64, f64)]) -> Option<f64> {
    let mut on_curve: Vec<CurvePoint> = Vec::new();
    for (_, &(per_s, response_us)) in seen.iter().zip(points).filter(|(seen, _)| seen.keeps_up) {
        if on_curve.last().is_none_or(|last| per_s > last.per_s) {
            on_curve.push(CurvePoint { per_s, response_us });
        }
    }
    Some(Curve::new(on_curve).ok()?.overall_response_us())
}

/// Without an interval where one of the points has none.
fn estimate_of<'a>(
    points: impl IntoIterator<Item = &'a Seen>,
    value: f64,
    drawn: &[f64],
) -> Estimate {
    let are_known = points.into_iter().all(|seen| seen.has_interval);
    let Estimate { value, ci95 } = estimate(value, drawn);
    Estimate { value, ci95: ci95.filter(|_| are_known) }
}

fn estimate(value: f64, drawn: &[f64]) -> Estimate {
    let ci95 = Sample::new(drawn).ok().filter(|sample| sample.n() > 1).map(|sample| Interval {
        lo: sample.quantile(0.025).min(value),
        hi: sample.quantile(0.975).max(value),
    });
    Estimate { value, ci95 }
}

#[cfg(test)]
mod tests {
    use perf::units::Nanos;

    use super::*;
    use crate::curve::Breach;
    use crate::mix::outcome::{Batch, Tally};
    use crate::mix::{Operation, Outcome};

    /// A point of 20 s whose batches vary by a tenth up and down.
    fn point(per_s: u64, response_us: u64, keeps_up: bool) -> Point {
        let mut outcome = Outcome { span: Nanos::from_secs(20), ..Outcome::default() };
        let response_time = std::iter::once(Nanos::from_micros(response_us)).collect();
        let total = Nanos::from_micros(response_us);
        outcome.operations.insert(Operation::Read, Tally { response_time, total, failed: 0 });
        outcome.answered = per_s * 20;
        outcome.meant = per_s * 20;
        outcome.batches = (0..20)
            .map(|number| {
                let tenth = if number % 2 == 0 { 9 } else { 11 };
                let response_total = Nanos::from_micros(response_us * tenth / 10) * per_s;
                Batch { answered: per_s, responses: per_s, response_total }
            })
            .collect();
        Point { kind: Kind::Open, load: per_s as f64, outcome, keeps_up, breaches: Vec::new() }
    }

    #[test]
    fn a_straight_line_with_a_bend_has_its_numbers() {
        // 1000 us + 1 us for each operation a second, up to 800; then it bends.
        let mut points: Vec<Point> =
            (1..=8).map(|n| point(100 * n, 1_000 + 100 * n, true)).collect();
        points.push(point(900, 4_000, true));
        points.push(point(950, 30_000, false));
        points.reverse();
        let found = Signature::of(&points).unwrap();
        assert_eq!(found.base_us.unwrap().value, 1_100.0);
        assert_eq!((found.highest_per_s.value, found.is_saturated), (950.0, true));
        assert_eq!(found.knee, Some((800.0, 1_800.0)));
        let slope = found.slope.unwrap();
        assert!((slope.value - 1.0).abs() < 1e-9, "{slope:?}");
        assert!(slope.ci95.unwrap().contains(1.0));
        assert!((found.intercept_us.unwrap().value - 1_000.0).abs() < 1e-6);
        // From the origin to 1100 us, then 1100 to 1800 us, then to 4000 us, over 900 a second.
        let area = 50.0 * 1_100.0 + 700.0 * 1_450.0 + 100.0 * 2_900.0;
        let overall = found.overall_us.unwrap();
        assert!((overall.value - area / 900.0).abs() < 1e-6, "{overall:?}");
        let base = found.base_us.unwrap().ci95.unwrap();
        // The standard error of 20 batches that vary by a tenth is 24.6 us.
        assert!(base.hi - base.lo > 60.0 && base.hi - base.lo < 140.0, "{base:?}");
    }

    #[test]
    fn a_batch_that_stalled_is_in_the_interval_of_what_it_made_longer() {
        let mut stalled = point(100, 1_000, true);
        // Its operations waited for a second, and none was answered in it.
        let stall = &mut stalled.outcome.batches[7];
        stall.answered = 0;
        stall.response_total = Nanos::from_secs(1) * stall.responses;
        let mean_us: f64 = (19.0 * 1_000.0 + 1e6) / 20.0;
        let total = Nanos::from_micros_f64(mean_us);
        let response_time = std::iter::once(total).collect();
        stalled
            .outcome
            .operations
            .insert(Operation::Read, Tally { response_time, total, failed: 0 });
        let base = Signature::of(&[stalled]).unwrap().base_us.unwrap();
        let ci95 = base.ci95.unwrap();
        assert!((base.value / mean_us - 1.0).abs() < 1e-6 && ci95.hi > 1.5 * mean_us, "{base:?}");
    }

    #[test]
    fn a_queue_that_grows_gives_no_interval_of_either_kind() {
        let grown = |per_s| {
            let mut point = point(per_s, 1_000, true);
            for (at, batch) in (1..).zip(&mut point.outcome.batches) {
                batch.response_total = Nanos::from_micros(100 * at * at) * batch.responses;
            }
            point
        };
        assert_eq!(grown(100).response_us().unwrap().ci95, None);
        let found = Signature::of(&[grown(100)]).unwrap();
        assert_eq!((found.base_us.unwrap().ci95, found.highest_per_s.ci95), (None, None));
        let steady = Signature::of(&[point(100, 1_000, true)]).unwrap();
        assert!(steady.base_us.unwrap().ci95.is_some() && steady.highest_per_s.ci95.is_some());
        assert_eq!(steady.ratio(&found, Quantity::Base).unwrap().ci95, None);
    }

    #[test]
    fn the_base_of_a_server_that_thrashes_is_that_of_its_least_load() {
        let closed = |load, per_s, response_us| Point {
            kind: Kind::Closed,
            load,
            ..point(per_s, response_us, true)
        };
        let thrashes = [closed(1.0, 100, 9_960), closed(8.0, 18, 424_000)];
        let found = Signature::of(&thrashes).unwrap();
        assert_eq!((found.base_us.unwrap().value, found.points), (9_960.0, 1));
        assert_eq!((found.overall_us, found.is_saturated), (None, true));
        let grown = [closed(1.0, 100, 9_960), closed(2.0, 190, 10_500), thrashes[1].clone()];
        let found = Signature::of(&grown).unwrap();
        assert_eq!((found.base_us.unwrap().value, found.points), (9_960.0, 2));
        assert!(found.overall_us.unwrap().value < 11_000.0, "{:?}", found.overall_us);
        // Not the least throughput, which differs by chance.
        let flat = [closed(1.0, 100, 9_960), closed(2.0, 98, 20_100)];
        let found = Signature::of(&flat).unwrap();
        assert_eq!((found.base_us.unwrap().value, found.points), (9_960.0, 2));
    }

    #[test]
    fn a_base_is_of_a_point_that_sustained_its_load() {
        let over = |load: u32| Point {
            load: load.into(),
            ..point(1_000, 300_000 + u64::from(load), false)
        };
        let only = Signature::of(&[over(2_000), over(4_000)]).unwrap();
        assert_eq!((only.base_us, only.is_saturated), (None, true));
        assert_eq!(only.highest_per_s.value, 1_000.0);
        assert_eq!(only.ratio(&only, Quantity::Base), None);
        let least = Point { load: 50.0, ..point(45, 300_000, false) };
        let both = Signature::of(&[least, point(100, 1_000, true)]).unwrap();
        assert_eq!(both.base_us.unwrap().value, 1_000.0);
    }

    #[test]
    fn few_points_have_few_numbers() {
        assert_eq!(Signature::of(&[]), None);
        let one = Signature::of(&[point(100, 500, true)]).unwrap();
        assert_eq!((one.slope, one.overall_us), (None, None));
        assert_eq!((one.knee, one.is_saturated, one.points), (None, false, 1));
        let mut broken = point(100, 500, true);
        broken.outcome.broken = Some("gone".to_owned());
        assert_eq!(Signature::of(&[broken]), None);
        assert_eq!(Signature::of(&[point(0, 500, true)]), None);
    }

    /// It does not hold a rule.
    fn invalid(mut point: Point) -> Point {
        point.breaches = vec![Breach::NoAnswers];
        point
    }

    #[test]
    fn nothing_is_concluded_from_points_that_do_not_hold_the_rules() {
        let bent = || (1..=8).map(|n| point(100 * n, 1_000 + 100 * n, true)).collect::<Vec<_>>();
        let mut points = bent();
        points.push(point(900, 4_000, true));
        points.push(point(950, 30_000, false));
        let whole = Signature::of(&points).unwrap();
        assert_eq!(whole.knee, Some((800.0, 1_800.0)));
        // All the same numbers, and none of them counts.
        let all = Signature::of(&points.iter().cloned().map(invalid).collect::<Vec<_>>());
        assert_eq!(all, None);
        // Without the two beyond the bend, there is no bend; and what they show is no saturation.
        let mut below = bent();
        below.extend([invalid(point(900, 4_000, true)), invalid(point(950, 30_000, false))]);
        let found = Signature::of(&below).unwrap();
        assert_eq!((found.knee, found.is_saturated, found.points), (None, false, 8));
        assert_eq!(found.highest_per_s.value, 800.0);
        // An invalid first point is no base.
        points[0] = invalid(points[0].clone());
        assert_eq!(Signature::of(&points).unwrap().base_us.unwrap().value, 1_200.0);
    }

    #[test]
    fn the_highest_throughput_is_the_saturation_only_where_more_was_tried() {
        let sustained: Vec<Point> = (1..=5).map(|n| point(100 * n, 1_000, true)).collect();
        assert!(!Signature::of(&sustained).unwrap().is_saturated);
        let closed = |per_s: [u64; 3]| {
            let points = per_s.into_iter().zip([1.0, 2.0, 4.0]).map(|(per_s, load)| Point {
                kind: Kind::Closed,
                load,
                ..point(per_s, 1_000, true)
            });
            Signature::of(&points.collect::<Vec<_>>()).unwrap().is_saturated
        };
        assert!(closed([100, 190, 195]) && closed([100, 200, 180]));
        assert!(!closed([100, 190, 300]));
    }

    #[test]
    fn two_curves_are_compared_by_what_was_drawn_of_both() {
        let curve = |times: u64| -> Signature {
            let points: Vec<Point> =
                (1..=5).map(|n| point(100 * n, times * (1_000 + 100 * n), true)).collect();
            Signature::of(&points).unwrap()
        };
        let (one, same, slow) = (curve(1), curve(1), curve(2));
        let ci = |a: &Signature, b: &Signature, of| a.ratio(b, of).unwrap().ci95.unwrap();
        assert!(ci(&one, &same, Quantity::Base).contains(1.0));
        let twice = ci(&one, &slow, Quantity::Base);
        assert!(twice.lo > 1.8 && twice.hi < 2.2 && twice.contains(2.0), "{twice:?}");
        assert!(ci(&slow, &one, Quantity::Base).contains(0.5));
        assert!(ci(&one, &slow, Quantity::Highest).contains(1.0));
        assert!(ci(&one, &slow, Quantity::Overall).contains(2.0));
    }
}
