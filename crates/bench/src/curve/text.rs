//! What is printed of a curve.

use harness::records::{NEIGHBOURS_SHARE_MAX, bytes, number, quantile_ms, write_stability};
use harness::table::{Table, left, right};
use load::curve::search::Search;
use load::curve::{Breach, Kind, Point, Signature};
use load::mix::Operation;
use perf::stats::Estimate;
use perf::words::counted;

use super::beside;
use super::outcome::{Outcome, Server};

/// The report as text.
pub(super) fn text(outcome: &Outcome) -> String {
    let settings = &outcome.settings;
    let mut text = format!("mix         {}: {}\n", settings.mix.name, settings.mix.source);
    text += &format!("load        {}\n", load(outcome));
    text += &format!("generator   {}\n", generator(outcome));
    text += &format!("cached      {CACHED}\n");
    text += &format!("durable     {}\n", durable(outcome));
    for server in &outcome.servers {
        text += &of_server(outcome, server);
    }
    text += &format!("\n{LEGEND}");
    text + &compared(outcome)
}

pub(super) const CACHED: &str = "nothing by the client: each operation is a call; the server's \
                                 caches are not controlled";

const LEGEND: &str = "over: more was offered than the server can do. Response times count from \
                      when an operation was\nmeant to start; late: started more than 1 ms later by \
                      the generator's fault; held: because of\n--outstanding-max. Intervals (95 %) \
                      of points are those of batch means, the others' of a bootstrap.\n";

/// Which server is faster, where there are several.
fn compared(outcome: &Outcome) -> String {
    let lines = beside::lines(outcome);
    if lines.is_empty() {
        return String::new();
    }
    let mut text = "\ncompared\n".to_owned();
    for (what, sentence) in beside::names(outcome).into_iter().chain(lines) {
        text += &format!("  {what:20} {sentence}\n");
    }
    // Where nothing could be decided there may be no interval.
    let has_interval = text.contains(" to ");
    if has_interval {
        text += &format!("  {}\n", beside::legend());
    }
    text
}

/// Which loop with which times.
pub(super) fn load(outcome: &Outcome) -> String {
    let settings = &outcome.settings;
    let loop_ = match settings.kind() {
        Kind::Open => format!("open loop, {} arrivals", settings.arrivals),
        Kind::Closed => "closed loop".to_owned(),
    };
    let repeats = match settings.repeats {
        1 => String::new(),
        repeats => format!(" x {repeats}"),
    };
    format!("{loop_}, {}{repeats} a point after {}", settings.time, settings.warm_up)
}

/// The most that generating took.
pub(super) fn generator(outcome: &Outcome) -> String {
    let points = || outcome.servers.iter().flat_map(|server| &server.measured.points);
    let busiest = points().filter_map(|point| point.outcome.effort).map(|effort| effort.busiest);
    let per_operation = points().filter_map(us_per_operation).fold(f64::INFINITY, f64::min);
    let processes = match outcome.processes {
        1 => String::new(),
        processes => format!("{processes} processes of "),
    };
    format!(
        "{processes}{}, {}; busy at most {:.0} % of a thread; at best {} us of it an operation",
        counted(outcome.threads, "thread"),
        counted(outcome.connections as u64, "connection"),
        100.0 * busiest.fold(0.0, f64::max),
        number(per_operation),
    )
}

/// Processor time of the generators for an operation.
pub(super) fn us_per_operation(point: &Point) -> Option<f64> {
    let effort = point.outcome.effort?;
    let answered = point.outcome.answered;
    (answered > 0).then(|| effort.busy.as_micros_f64() / answered as f64)
}

/// Who else used the processors, where that may have made a generator late.
pub(super) fn neighbours(outcome: &Outcome) -> Option<String> {
    let share = outcome.neighbours_share.filter(|share| *share > NEIGHBOURS_SHARE_MAX)?;
    let percent = 100.0 * share;
    Some(format!(
        "others used {percent:.0} % of the processors here, a server on this host among them: what \
         starts late may be their doing"
    ))
}

/// What a WRITE asks for.
pub(super) fn durable(outcome: &Outcome) -> &'static str {
    write_stability(&outcome.settings.mix)
}

fn of_server(outcome: &Outcome, server: &Server) -> String {
    let (measured, built) = (&server.measured, &server.measured.built);
    let mut text = format!("\n{}\n", server.name);
    text += &format!(
        "files       {} with {}, of which {} are touched at the highest load\n",
        built.files,
        mib(built.bytes),
        built.accessed
    );
    if let Some(search) = &measured.search {
        text += &format!("found       with so many outstanding, {}\n", steps(search));
    }
    text += &points(&measured.points).text();
    text.extend(measured.points.iter().map(breaches));
    if let Some(point) = typical(&measured.points) {
        text += &operations(point);
    }
    text += &of_signature(server.signature.as_ref());
    let deviations = outcome.deviations(server);
    if !deviations.is_empty() {
        text += &format!("not as SFS  {}\n", deviations.join("; "));
    }
    if let Some(broken) = &measured.broken {
        text += &format!("PARTIAL     {}\n", broken.why);
    }
    text
}

fn steps(search: &Search) -> String {
    let steps = search.steps().iter().map(|(n, per_s)| format!("{n}: {per_s:.0}/s"));
    steps.collect::<Vec<_>>().join(", ")
}

/// Why a point is not valid, and what failed at it.
fn breaches(point: &Point) -> String {
    let load = shown_load(point);
    let breaches = point.breaches.iter();
    let lines = breaches.map(|breach| format!("INVALID     at {load}: {breach}\n"));
    let failed = few_failed(point).map(|failed| format!("failed      at {load}: {failed}\n"));
    let given_up = given_up(point).map(|what| format!("given up    at {load}: {what}\n"));
    lines.chain(failed).chain(given_up).collect()
}

/// Between the load and the verdict.
const COLUMNS: [&str; 9] =
    ["achieved/s", "mean ms", "+-", "p50", "p99", "p99.9", "late", "held", "us/op"];

fn points(points: &[Point]) -> Table {
    let columns = COLUMNS.map(right).into_iter().chain([left("verdict")]);
    let mut table = Table::new([right("load")].into_iter().chain(columns));
    points.iter().for_each(|point| table.row(row(point)));
    table
}

fn row(point: &Point) -> [String; 11] {
    let run = &point.outcome;
    let times = run.response_times();
    let response = point.response_us();
    let half = response.and_then(|response| response.ci95).map(|ci| (ci.hi - ci.lo) / 2.0);
    let ms = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| number(us / 1e3));
    let quantile = |share| quantile_ms(&times, share);
    [
        shown_load(point),
        format!("{:.1}", run.achieved_per_s()),
        ms(response.map(|response| response.value)),
        ms(half),
        quantile(0.5),
        quantile(0.99),
        quantile(0.999),
        run.late.to_string(),
        run.held.to_string(),
        us_per_operation(point).map_or_else(|| "-".to_owned(), |us| format!("{us:.1}")),
        verdict(point),
    ]
}

/// What a point is worth.
pub(super) fn verdict(point: &Point) -> String {
    let codes: Vec<&str> = point.breaches.iter().map(Breach::code).collect();
    match (codes.is_empty(), point.is_over()) {
        (true, false) => "valid".to_owned(),
        (true, true) => "over".to_owned(),
        (false, _) => format!("INVALID: {}", codes.join(", ")),
    }
}

/// What failed at a point, where that is too little to break a rule.
pub(super) fn few_failed(point: &Point) -> Option<String> {
    let (run, is_errors) = (&point.outcome, |breach: &Breach| breach.code() == "errors");
    let failed = run.failed();
    if failed == 0 || point.breaches.iter().any(is_errors) {
        return None;
    }
    let first = run.first_failure.as_deref().unwrap_or("of what, is not known");
    Some(format!("{failed} of {} operations, as in: {first}", run.meant))
}

/// Of what the response times are not.
fn given_up(point: &Point) -> Option<String> {
    let run = &point.outcome;
    let what = "operations never started; response times are of the others";
    (run.given_up > 0).then(|| format!("{} of {} {what}", run.given_up, run.meant))
}

/// The load in its unit.
pub(super) fn shown_load(point: &Point) -> String {
    match point.kind {
        Kind::Open => format!("{:.1}/s", point.load),
        Kind::Closed => format!("{:.0} out", point.load),
    }
}

/// The highest load that the server sustained.
pub(super) fn typical(points: &[Point]) -> Option<&Point> {
    points.iter().rfind(|point| point.is_valid() && !point.is_over())
}

/// Quantiles of each operation; the last is the longest.
pub(super) const OF_AN_OPERATION: [f64; 5] = [0.5, 0.9, 0.99, 0.999, 1.0];

fn operations(point: &Point) -> String {
    let names = ["calls", "p50", "p90", "p99", "p99.9", "max"].map(right);
    let mut table = Table::new([left("  operation")].into_iter().chain(names));
    for operation in Operation::ALL {
        let Some(tally) = point.outcome.operations.get(&operation) else { continue };
        let times = &tally.response_time;
        let counted = [format!("  {}", operation.name()), times.count().to_string()];
        table
            .row(counted.into_iter().chain(OF_AN_OPERATION.map(|share| quantile_ms(times, share))));
    }
    format!("operations  at {}, in ms:\n{}", shown_load(point), table.text())
}

fn of_signature(signature: Option<&Signature>) -> String {
    lines(signature).iter().map(|(name, value)| format!("{name:<11} {value}\n")).collect()
}

/// The numbers of a curve, each with its name, as far as valid points have them.
pub(super) fn lines(signature: Option<&Signature>) -> Vec<(&'static str, String)> {
    let Some(signature) = signature else {
        let why = "base, slope, knee and saturation are not known: no point holds the rules";
        return vec![("curve", why.to_owned())];
    };
    let ms = |estimate: &Estimate| with_interval(&scaled(estimate, 1e-3), "ms");
    let not_known = || "not known: every valid point is over".to_owned();
    let mut lines = vec![("base", signature.base_us.as_ref().map_or_else(not_known, ms))];
    if let Some(slope) = &signature.slope {
        lines.push(("slope", with_interval(slope, "us for each operation a second")));
    }
    lines.push(("knee", knee(signature)));
    let highest = with_interval(&signature.highest_per_s, "a second");
    lines.push((
        "saturation",
        match signature.is_saturated {
            true => highest,
            false => format!("not reached by a valid point: at least {highest}"),
        },
    ));
    if let Some(overall) = &signature.overall_us {
        lines.push(("overall", format!("{}, overall response time", ms(overall))));
    }
    lines
}

fn knee(signature: &Signature) -> String {
    match (signature.knee, signature.points) {
        (Some((per_s, response_us)), _) => {
            format!("{} a second, {} ms", number(per_s), number(response_us / 1e3))
        }
        (None, points @ 0..3) => format!("not known from {points} valid point(s): it takes three"),
        (None, _) => "not reached by a valid point: to the last one, more load costs little \
                      response time"
            .to_owned(),
    }
}

fn scaled(estimate: &Estimate, factor: f64) -> Estimate {
    let ci95 = estimate.ci95.map(|mut ci| {
        (ci.lo, ci.hi) = (ci.lo * factor, ci.hi * factor);
        ci
    });
    Estimate { value: estimate.value * factor, ci95 }
}

fn with_interval(estimate: &Estimate, unit: &str) -> String {
    let interval = estimate
        .ci95
        .map(|ci| format!(" ({}..{})", number(ci.lo), number(ci.hi)))
        .unwrap_or_default();
    format!("{} {unit}{interval}", number(estimate.value))
}

fn mib(count: u64) -> String {
    match count >> 20 {
        0 => bytes(count),
        mib => format!("{mib} MiB"),
    }
}

#[cfg(test)]
mod tests {
    use load::mix::{Outcome as Run, outcome::Tally};
    use perf::units::Nanos;

    use super::*;

    fn point(per_s: u64, response_us: u64, keeps_up: bool, breaches: Vec<Breach>) -> Point {
        let mut outcome = Run { span: Nanos::from_secs(10), ..Run::default() };
        let total = Nanos::from_micros(response_us);
        let response_time = std::iter::once(total).collect();
        outcome.operations.insert(Operation::Read, Tally { response_time, total, failed: 0 });
        outcome.answered = per_s * 10;
        Point { kind: Kind::Open, load: per_s as f64, outcome, keeps_up, breaches }
    }

    #[test]
    fn knee_and_saturation_are_stated_of_valid_points_only() {
        let text = |points: &[Point]| of_signature(Signature::of(points).as_ref());
        let whole = |breaches: &[Breach]| {
            vec![
                point(100, 1_000, true, breaches.to_vec()),
                point(200, 1_100, true, breaches.to_vec()),
                point(300, 9_000, true, breaches.to_vec()),
                point(310, 90_000, false, breaches.to_vec()),
            ]
        };
        let valid = text(&whole(&[]));
        assert!(valid.contains("knee        200 a second, 1.10 ms"), "{valid}");
        assert!(valid.contains("saturation  310 a second"), "{valid}");
        let invalid = text(&whole(&[Breach::NoAnswers]));
        assert!(invalid.contains("are not known: no point holds the rules"), "{invalid}");
        assert!(!invalid.contains("a second"), "{invalid}");
        let valid_two = text(&whole(&[])[..2]);
        assert!(valid_two.contains("knee        not known from 2 valid"), "{valid_two}");
        assert!(valid_two.contains("saturation  not reached by a valid point: at least 200 a s"));
        let rising = text(&[100, 200, 300].map(|per_s| point(per_s, 1_000, true, Vec::new())));
        assert!(rising.contains("knee        not reached by a valid point"), "{rising}");
    }

    #[test]
    fn a_quantile_that_too_few_operations_show_is_a_dash() {
        let mut point = point(100, 1_000, true, Vec::new());
        let read = point.outcome.operations.get_mut(&Operation::Read).unwrap();
        read.response_time = vec![Nanos::from_millis(3); 100].into_iter().collect();
        let quantiles = |point: &Point| row(point)[4..7].join(" ");
        assert_eq!(quantiles(&point), "3.00 3.00 -");
        point.outcome.operations.clear();
        assert_eq!(quantiles(&point), "- - -");
    }

    #[test]
    fn a_failure_that_breaks_no_rule_is_reported_with_the_first_of_its_kind() {
        let mut outcome = Run { meant: 16_050, ..Run::default() };
        outcome.first_failure = Some("REMOVE to 192.0.2.1:2049: NFS3ERR_JUKEBOX".to_owned());
        outcome.operations.insert(Operation::Remove, Tally { failed: 1, ..Tally::default() });
        let mut point =
            Point { kind: Kind::Open, load: 1.0, outcome, keeps_up: true, breaches: vec![] };
        let failed = "1 of 16050 operations, as in: REMOVE to 192.0.2.1:2049: NFS3ERR_JUKEBOX";
        assert_eq!(few_failed(&point).as_deref(), Some(failed));
        assert_eq!(given_up(&point), None);
        point.outcome.given_up = 50;
        assert!(given_up(&point).unwrap().starts_with("50 of 16050 operations never started"));
        point.breaches = vec![Breach::Errors { share: 0.02, first: None }];
        assert_eq!(few_failed(&point), None, "it is reported as a broken rule");
        point.outcome.operations.clear();
        assert_eq!(few_failed(&point), None);
    }
}
