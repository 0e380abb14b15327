//! Curves of several servers beside the first: which is faster, as far as the points show it.

use harness::compared::{Better, Compared, letter};
use harness::records::sample;
use load::curve::{Kind, Point, Quantity, Signature};

use super::outcome::{Outcome, Server};

/// What is compared, and in which words.
pub(super) type Line = (String, String);

/// Of each server after the first; nothing of a single one.
pub(super) fn lines(outcome: &Outcome) -> Vec<Line> {
    let Some((first, others)) = outcome.servers.split_first() else { return Vec::new() };
    let others = others.iter().enumerate();
    others.flat_map(|(at, other)| between(("A", first), (&letter(at + 1), other))).collect()
}

/// Letters and what they stand for; nothing of a single server.
pub(super) fn names(outcome: &Outcome) -> Vec<Line> {
    let named = outcome.servers.iter().enumerate();
    let names = named.map(|(at, server)| (letter(at), server.name.clone()));
    if outcome.servers.len() > 1 { names.collect() } else { Vec::new() }
}

fn between((a, first): (&str, &Server), (b, other): (&str, &Server)) -> Vec<Line> {
    let (Some(one), Some(two)) = (&first.signature, &other.signature) else {
        let mut lacking = Vec::new();
        for (name, server) in [(a, first), (b, other)] {
            if server.signature.is_none() {
                lacking.push(name);
            }
        }
        let why = format!(
            "{a} and {b} cannot be distinguished: no point of {} holds the rules",
            lacking.join(" and ")
        );
        return vec![("compared".to_owned(), why)];
    };
    let points = (&first.measured.points[..], &other.measured.points[..]);
    let of_all = || ("throughput".to_owned(), throughput((a, one), (b, two)));
    let mut lines = vec![in_loops(a, b, points).unwrap_or_else(of_all)];
    let times = [("response at base", Quantity::Base), ("response overall", Quantity::Overall)];
    for (what, quantity) in times {
        if let Some(ratio) = one.ratio(two, quantity) {
            let compared = Compared::of_ratio(ratio, Better::Smaller);
            lines.push((what.to_owned(), compared.sentence(a, b)));
        }
    }
    lines.extend(response(a, b, points));
    lines
}

/// Of two that were saturated; of one that was, when the other did more.
fn throughput((a, one): (&str, &Signature), (b, two): (&str, &Signature)) -> String {
    let reached = |names: &str| {
        format!("{a} and {b} cannot be distinguished: {names} did all that was offered")
    };
    let Some(ratio) = one.ratio(two, Quantity::Highest) else { return reached("one") };
    let compared = Compared::of_ratio(ratio, Better::Larger);
    match (one.is_saturated, two.is_saturated, compared.faster()) {
        (true, true, _) => compared.sentence(a, b),
        (false, false, _) => reached(&format!("{a} and {b}")),
        (true, false, Some(harness::compared::Which::Second)) => {
            format!("at least: {}", compared.sentence(a, b))
        }
        (false, true, Some(harness::compared::Which::First)) => {
            format!("at least: {}", compared.sentence(a, b))
        }
        (is_saturated, ..) => reached(if is_saturated { b } else { a }),
    }
}

/// The points of two servers.
type Points<'a> = (&'a [Point], &'a [Point]);

/// Response times at the highest load that both sustained, where there is such a one.
fn response(a: &str, b: &str, points: Points<'_>) -> Option<Line> {
    let (one, two) = at_one_load(points)?;
    let [first, other] = [one, two].map(|point| sample(point.batches_us()));
    let compared = Compared::of(&first?, &other?, Better::Smaller)?;
    let what = format!("response at {}", super::text::shown_load(one));
    Some((what, compared.sentence(a, b)))
}

/// Throughput with the most operations outstanding that both were measured with. Nothing is offered
/// in a closed loop: what a server did is what it could do so.
fn in_loops(a: &str, b: &str, points: Points<'_>) -> Option<Line> {
    let (one, two) = at_one_load(points).filter(|(one, _)| one.kind == Kind::Closed)?;
    let [first, other] = [one, two].map(|point| sample(point.batches_per_s()));
    let compared = Compared::of(&first?, &other?, Better::Larger)?;
    let what = format!("throughput at {}", super::text::shown_load(one));
    Some((what, compared.sentence(a, b)))
}

/// The points of the highest load that both sustained.
fn at_one_load<'a>((first, other): Points<'a>) -> Option<(&'a Point, &'a Point)> {
    let fit = |point: &&Point| point.is_valid() && !point.is_over();
    // Points are in the order of their loads.
    first.iter().filter(fit).rev().find_map(|one| {
        let two = other.iter().filter(fit).find(|two| (two.load - one.load).abs() < 1e-6)?;
        Some((one, two))
    })
}

/// How the lines are to be read.
pub(super) const fn legend() -> &'static str {
    "Ranges are intervals of 95 %, of what varies within this run. Other days differ by more."
}

#[cfg(test)]
mod tests {
    use load::mix::outcome::{Batch, Tally};
    use load::mix::{Operation, Outcome as Run};
    use perf::units::Nanos;

    use super::*;

    /// Points of 20 s in 20 batches that vary by a tenth.
    fn points(times: u64, keeps_up: bool) -> Vec<Point> {
        (1..=3_u64)
            .map(|n| {
                let (per_s, response_us) = (100 * n / times, 500 * times);
                let mut outcome = Run { span: Nanos::from_secs(20), ..Run::default() };
                let response_time = std::iter::once(Nanos::from_micros(response_us)).collect();
                let total = Nanos::from_micros(response_us);
                outcome
                    .operations
                    .insert(Operation::Read, Tally { response_time, total, failed: 0 });
                (outcome.answered, outcome.meant) = (per_s * 20, per_s * 20);
                outcome.batches = (0..20)
                    .map(|number| Batch {
                        answered: per_s,
                        responses: per_s,
                        response_total: Nanos::from_micros(
                            response_us * (9 + 2 * (number % 2)) / 10,
                        ) * per_s,
                    })
                    .collect();
                let (keeps_up, breaches) = (keeps_up || n < 3, Vec::new());
                Point { kind: Kind::Open, load: 100.0 * n as f64, outcome, keeps_up, breaches }
            })
            .collect()
    }

    fn compared(one: &[Point], two: &[Point]) -> (String, Option<Line>) {
        let of = |points: &[Point]| Signature::of(points).unwrap();
        (throughput(("A", &of(one)), ("B", &of(two))), response("A", "B", (one, two)))
    }

    #[test]
    fn the_points_decide_which_server_is_faster() {
        let (fast, slow) = (points(1, false), points(2, false));
        let (throughput, response) = compared(&slow, &fast);
        assert!(throughput.starts_with("B is faster 2.00 times"), "{throughput}");
        let (what, response) = response.unwrap();
        assert_eq!(what, "response at 200.0/s", "the highest that both sustained");
        assert!(response.starts_with("B is faster "), "{response}");
        let (throughput, response) = compared(&fast, &slow);
        assert!(throughput.starts_with("A is faster 2.00 times"), "{throughput}");
        assert!(response.unwrap().1.starts_with("A is faster "));
        let (throughput, response) = compared(&fast, &fast);
        assert!(throughput.contains("cannot be distinguished"), "{throughput}");
        assert!(response.unwrap().1.contains("cannot be distinguished"));
    }

    #[test]
    fn in_a_closed_loop_throughput_is_compared_though_nothing_was_offered() {
        let closed = |times| -> Vec<Point> {
            let point = |point| Point { kind: Kind::Closed, ..point };
            points(times, true).into_iter().map(point).collect()
        };
        let (fast, slow) = (closed(1), closed(2));
        let (what, faster) = in_loops("A", "B", (&slow, &fast)).unwrap();
        assert!(what.starts_with("throughput at 300"), "{what}");
        assert!(faster.starts_with("B is faster 2.00 times"), "{faster}");
        let same = in_loops("A", "B", (&fast, &fast)).unwrap().1;
        assert!(same.contains("cannot be distinguished"), "{same}");
        assert_eq!(in_loops("A", "B", (&points(1, true), &points(2, true))), None);
    }

    #[test]
    fn servers_that_did_all_that_was_offered_are_not_ranked_by_it() {
        let (fast, slow) = (points(1, true), points(2, true));
        let of_none = compared(&slow, &fast).0;
        assert!(of_none.contains("cannot be distinguished: A and B did all"), "{of_none}");
        // The slow one was saturated, the fast one was not: it is that much faster at least.
        let at_least = compared(&points(2, false), &fast).0;
        assert!(at_least.starts_with("at least: B is faster 2.00 times"), "{at_least}");
        // The fast one was saturated; what the slow one could have done is not known.
        let unknown = compared(&slow, &points(1, false)).0;
        assert!(unknown.contains("cannot be distinguished: A did all"), "{unknown}");
    }
}
