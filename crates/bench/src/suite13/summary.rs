//! The outcome as text: a table of times for each number of copies, and the calls of each test.

use std::fmt::Write;

use harness::compared::{Better, Compared, Which};
use harness::records::{cell, sample};
use load::suite13::Test;
use perf::record::Durability;
use perf::stats::Sample;
use perf::words::counted;

use super::measured::{Measured, Outcome};
use super::plan::Plan;
use super::target::Described;

/// Columns of a place.
const WIDTH: usize = 36;

pub(super) fn text(outcome: &Outcome, plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    write(&mut text, outcome, plan).ok();
    text
}

fn write(out: &mut String, outcome: &Outcome, plan: &Plan) -> std::fmt::Result {
    for &copies in &plan.copies {
        write_times(out, outcome, plan, copies)?;
        write_calls(out, outcome, plan, copies)?;
        write_compared(out, outcome, plan, copies)?;
        writeln!(out)?;
    }
    outcome.places.iter().try_for_each(|place| write_place(out, place))?;
    writeln!(out, "            what servers keep in memory is theirs, and is not dropped")?;
    write_own(out, outcome)?;
    if !plan.missing.is_empty() {
        let missing = plan.missing.join(" and ");
        writeln!(
            out,
            "left off    test 5: there is no {missing} here; install a C compiler and make"
        )?;
    }
    Ok(())
}

fn write_place(out: &mut String, place: &Described) -> std::fmt::Result {
    let survives = survives(place);
    let Described { name, place, file_system, cached, .. } = place;
    writeln!(
        out,
        "{name:11} {place} ({file_system}): what a test has changed survives {survives}"
    )?;
    writeln!(out, "            before each test: {cached}")
}

fn write_row(
    out: &mut String,
    outcome: &Outcome,
    plan: &Plan,
    copies: u32,
    test: Test,
) -> std::fmt::Result {
    let mark = if plan.sync && test.writes() { "*" } else { "" };
    write!(out, "{:>3} {:25}", test.number(), format!("{}{mark}", test.name()))?;
    for target in 0..outcome.places.len() {
        let one = outcome.of(target, copies, test);
        let span = one.and_then(|one| one.seconds(|ran| Some(ran.span())));
        let mut shown = cell(span.as_ref(), 4);
        if target > 0 {
            shown += &match ratio(outcome, plan, target, copies, test) {
                Some(ratio) => format!(" x{ratio:<6.2}"),
                None => " -      ".to_owned(),
            };
        }
        write!(out, "{shown:>WIDTH$}")?;
    }
    writeln!(out)
}

fn write_times(out: &mut String, outcome: &Outcome, plan: &Plan, copies: u32) -> std::fmt::Result {
    let at_once = if copies == 1 { "alone".to_owned() } else { format!("{copies} copies at once") };
    let flushed = if plan.sync { "* to its flush, " } else { "" };
    let scale = match plan.scale {
        1.0 => "as large as the paper's".to_owned(),
        scale => format!("{scale} of the paper's sizes"),
    };
    writeln!(
        out,
        "suite13     {at_once}; seconds, {flushed}medians of up to {}; {scale}, seed {}",
        counted(plan.repeats, "run"),
        plan.seed
    )?;
    write!(out, "{:29}", "")?;
    for place in &outcome.places {
        write!(out, "{:>WIDTH$}", place.name)?;
    }
    writeln!(out)?;
    for &test in &plan.tests {
        write_row(out, outcome, plan, copies, test)?;
    }
    let first = &outcome.places[0];
    for place in outcome.places.iter().skip(1).filter(|place| !is_fair(place, first, plan)) {
        writeln!(
            out,
            "            writing tests of {} and {} are not compared: what is written does not \
             survive the same (--mix-durability)",
            place.name, first.name
        )?;
    }
    Ok(())
}

/// Which place is faster than the first, of all tests together and of each.
fn write_compared(
    out: &mut String,
    outcome: &Outcome,
    plan: &Plan,
    copies: u32,
) -> std::fmt::Result {
    let first = &outcome.places[0].name;
    for (target, place) in outcome.places.iter().enumerate().skip(1) {
        let (together, each) = compared(outcome, plan, target, copies);
        let Some(together) = together else { continue };
        let (slower, faster) = (won(&each, Which::First), won(&each, Which::Second));
        writeln!(out, "compared    {}", together.sentence(first, &place.name))?;
        let won = by_itself([&place.name, first], [&faster, &slower], each.len());
        let each = each.len();
        writeln!(out, "            by the mean of {each} tests' logarithms; {won}")?;
    }
    Ok(())
}

/// Who is faster in which tests. Numbers of tests, and how many they are, are not to be mistaken
/// for each other.
fn by_itself(names: [&str; 2], won: [&[String]; 2], all: usize) -> String {
    let [one, two] = names;
    let [of_one, of_two] = won.map(listed);
    let undecided = match all - won[0].len() - won[1].len() {
        0 => "all are decided".to_owned(),
        1 => "one test cannot be decided".to_owned(),
        some => format!("{some} tests cannot be decided"),
    };
    format!("of each by itself (95 %): {one} is faster in {of_one}, {two} in {of_two}; {undecided}")
}

/// The tests in which one is faster.
fn won(each: &[(Test, Compared)], which: Which) -> Vec<String> {
    let won = each.iter().filter(|(_, compared)| compared.faster() == Some(which));
    won.map(|(test, _)| test.number().to_string()).collect()
}

fn listed(tests: &[String]) -> String {
    match tests {
        [] => "none".to_owned(),
        [only] => format!("test {only}"),
        [first @ .., last] => format!("tests {} and {last}", first.join(", ")),
    }
}

/// The place beside the first: by the geometric mean of the tests of each repetition, and by each
/// test. Tests whose results survive other things are left out.
pub(super) fn compared(
    outcome: &Outcome,
    plan: &Plan,
    target: usize,
    copies: u32,
) -> (Option<Compared>, Vec<(Test, Compared)>) {
    let (place, first) = (&outcome.places[target], &outcome.places[0]);
    let of = |target, test| outcome.of(target, copies, test);
    let seconds = |one: &Measured| one.seconds(|ran| Some(ran.span()));
    let fair = plan.tests.iter().filter(|test| !test.writes() || is_fair(place, first, plan));
    let pairs: Vec<(Test, &Measured, &Measured)> =
        fair.filter_map(|&test| Some((test, of(0, test)?, of(target, test)?))).collect();
    let each = pairs.iter().filter_map(|(test, one, two)| {
        Some((*test, Compared::of(&seconds(one)?, &seconds(two)?, Better::Smaller)?))
    });
    let each: Vec<(Test, Compared)> = each.collect();
    let one = geometric_means(pairs.iter().map(|(_, one, _)| spans_of(one)).collect());
    let two = geometric_means(pairs.iter().map(|(_, _, two)| spans_of(two)).collect());
    let together = one.zip(two).and_then(|(one, two)| Compared::of(&one, &two, Better::Smaller));
    (together, each)
}

/// Of the tests, for each repetition that all of them have.
fn geometric_means(runs: Vec<Vec<f64>>) -> Option<Sample> {
    let repeats = runs.iter().map(Vec::len).min().unwrap_or(0);
    sample((0..repeats).map(|repeat| {
        let logarithms = runs.iter().map(|runs| runs[repeat].ln());
        (logarithms.sum::<f64>() / runs.len() as f64).exp()
    }))
}

/// The times of all repetitions, in s.
fn spans_of(one: &Measured) -> Vec<f64> {
    one.runs.iter().map(|ran| ran.span().as_secs_f64()).collect()
}

/// Calls of every test, in the run whose time is the median.
fn write_calls(out: &mut String, outcome: &Outcome, plan: &Plan, copies: u32) -> std::fmt::Result {
    for (target, place) in outcome.places.iter().enumerate() {
        let rows: Vec<&Measured> =
            plan.tests.iter().filter_map(|test| outcome.of(target, copies, *test)).collect();
        if rows.iter().all(|row| row.typical().is_none_or(|ran| ran.calls.is_none())) {
            continue;
        }
        writeln!(out, "calls       of {}, counted {}", place.name, place.counted)?;
        for row in rows {
            let Some(calls) = row.typical().and_then(|ran| ran.calls.as_ref()) else { continue };
            let (test, total) = (row.test, calls.total());
            writeln!(out, "{:>3} {:25}{total:>8}  {}", test.number(), test.name(), calls.words())?;
        }
    }
    Ok(())
}

/// The median time of a test over that of the first place; `None` where there is none, or where
/// what was written does not survive the same.
pub(super) fn ratio(
    outcome: &Outcome,
    plan: &Plan,
    target: usize,
    copies: u32,
    test: Test,
) -> Option<f64> {
    let (place, first) = (&outcome.places[target], &outcome.places[0]);
    if test.writes() && !is_fair(place, first, plan) {
        return None;
    }
    let median = |target| {
        let span = outcome.of(target, copies, test)?.seconds(|ran| Some(ran.span()))?;
        Some(span.median())
    };
    let ratio = median(target)? / median(0)?;
    ratio.is_finite().then_some(ratio)
}

/// Whether what is written to one survives what it survives on the other.
pub(super) fn is_fair(place: &Described, first: &Described, plan: &Plan) -> bool {
    let is_known = place.durability.is_some();
    plan.mix_durability || (is_known && place.durability == first.durability)
}

fn survives(place: &Described) -> &'static str {
    match place.durability {
        None => "something that is not known from here",
        Some(Durability::Memory) => "nothing: it lies in memory",
        Some(Durability::PageCache) => "the end of this program, but no loss of power",
        Some(Durability::Stable) if place.is_promised => "a loss of power, as NFS promises",
        Some(Durability::Stable) => "a loss of power",
    }
}

/// Share of a processor that this process used: median of all tests' runs, and the highest.
pub(super) fn own_share(outcome: &Outcome, target: usize) -> Option<(f64, f64)> {
    let rows = outcome.measured.iter().filter(|row| row.target == target);
    let shares =
        rows.flat_map(|row| &row.runs).map(|ran| ran.cpu.as_secs_f64() / ran.span().as_secs_f64());
    let shares = sample(shares.filter(|share| share.is_finite()))?;
    Some((shares.median(), shares.max()))
}

fn write_own(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    for (target, place) in outcome.places.iter().enumerate() {
        let Some((median, most)) = own_share(outcome, target) else { continue };
        writeln!(
            out,
            "generator   on {}: {:.0} % of one processor, up to {:.0} %{}; compilers apart",
            place.name,
            median * 100.0,
            most * 100.0,
            if place.is_server { ", with our client" } else { "" },
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn which_tests_are_won_is_not_read_as_how_many() {
        let numbers = |all: &[u32]| all.iter().map(u32::to_string).collect::<Vec<_>>();
        let of = |one: &[u32], two: &[u32], all| {
            by_itself(["b", "a"], [&numbers(one), &numbers(two)], all)
        };
        let head = "of each by itself (95 %): b is faster in";
        let both = of(&[], &[1, 8], 4);
        assert_eq!(both, format!("{head} none, a in tests 1 and 8; 2 tests cannot be decided"));
        let all = of(&[2], &[1, 3, 8], 4);
        assert_eq!(all, format!("{head} test 2, a in tests 1, 3 and 8; all are decided"));
    }
}
