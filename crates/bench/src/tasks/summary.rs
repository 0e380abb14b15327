//! The outcome as text.

use std::fmt::Write;

use harness::compared::{Better, Compared, letter};
use harness::records::{bytes, cell, known};
use load::tasks::{Names, Run};
use perf::words::counted;

use super::plan::{Case, Plan};
use super::{Measured, Outcome};

/// A client that uses so much of all processors may be what limits.
const BUSY_SHARE: f64 = 0.9;

/// A table for each length and kind of files.
pub(super) fn text(outcome: &Outcome, plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a String does not fail.
    write(&mut text, outcome, plan).ok();
    text
}

fn write(out: &mut String, outcome: &Outcome, plan: &Plan) -> std::fmt::Result {
    let groups = outcome.measured.chunk_by(|a, b| {
        let (a, b) = (&a.case.workload, &b.case.workload);
        // A sweep is one table.
        a.names == b.names && (a.file_bytes == b.file_bytes || plan.is_sweep)
    });
    for group in groups {
        write_group(out, group, outcome, plan)?;
    }
    for (number, place) in outcome.places.iter().enumerate() {
        writeln!(
            out,
            "target {}    {} ({}{}): what was closed survives {}",
            letter(number),
            place.name,
            place.file_system,
            clients(place.is_server, plan.clients),
            place.survives
        )?;
    }
    writeln!(
        out,
        "caches      as the tasks leave them: files are not read, and nothing is dropped"
    )?;
    write_own(out, outcome)
}

fn clients(is_server: bool, clients: usize) -> String {
    match (is_server, clients) {
        (true, 1) => ", 1 client".to_owned(),
        (true, clients) => format!(", {clients} clients"),
        (false, _) => String::new(),
    }
}

fn write_group(
    out: &mut String,
    group: &[Measured],
    outcome: &Outcome,
    plan: &Plan,
) -> std::fmt::Result {
    let Some(first) = group.first() else { return Ok(()) };
    write_head(out, first, plan)?;
    for one in group {
        write_case(out, one, plan)?;
        if outcome.places.len() > 1 && one.case.only.is_none() {
            write_targets(out, one, outcome)?;
            write_compared(out, one, outcome)?;
        }
    }
    if !plan.is_sweep {
        write_spans(out, group)?;
    }
    writeln!(out)
}

/// What the tasks of a group do, and the columns of its table.
fn write_head(out: &mut String, first: &Measured, plan: &Plan) -> std::fmt::Result {
    let work = first.case.workload;
    let length = match plan.is_sweep {
        true => "files of growing length".to_owned(),
        false => bytes(work.file_bytes),
    };
    let which = match work.names {
        Names::Same => "the same file",
        Names::Different => "another file",
    };
    writeln!(
        out,
        "tasks       {length}, {which} each time, {} times, in calls of {}{}; medians of up to {}, \
         in Mbit/s (10^6)",
        work.times,
        bytes(u64::from(work.call_bytes)),
        if work.sync { ", flushed" } else { "" },
        counted(plan.repeats, "run"),
    )?;
    writeln!(
        out,
        "{:>16}{:>19}{:>22}{:>27}{:>27}{:>7}",
        if plan.is_sweep { "tasks    length" } else { "tasks" },
        "s, first..last",
        "each task (sd)",
        "sum of the tasks",
        "all, until the last",
        "CPU"
    )
}

fn write_spans(out: &mut String, group: &[Measured]) -> std::fmt::Result {
    writeln!(out, "seconds of each task, in the run whose length is the median:")?;
    for one in group.iter().filter(|one| one.case.only.is_none()) {
        let Some(typical) = one.typical() else { continue };
        let spans = typical.tasks.iter().map(|task| format!("{:.3}", task.span.as_secs_f64()));
        let spans = spans.collect::<Vec<_>>().join(" ");
        writeln!(out, "{:>7}  {spans}", one.case.tasks)?;
    }
    Ok(())
}

/// The name of a row.
fn named(case: &Case, plan: &Plan) -> String {
    let tasks = match case.only {
        None => case.tasks.to_string(),
        Some(target) => {
            let tasks = plan.seats(case).len();
            format!("{tasks} on {} alone", letter(target))
        }
    };
    match plan.is_sweep {
        true => format!("{tasks} {:>9}", bytes(case.workload.file_bytes)),
        false => tasks,
    }
}

fn write_case(out: &mut String, one: &Measured, plan: &Plan) -> std::fmt::Result {
    let ends = one.typical().map_or_else(String::new, |run| {
        let spans = run.tasks.iter().map(|task| task.span.as_secs_f64());
        let first = spans.clone().fold(f64::INFINITY, f64::min);
        format!("{first:.3}..{:.3}", spans.fold(0.0, f64::max))
    });
    let each = one.sample(each).map_or_else(String::new, |each| {
        let deviation =
            known(one.sample(deviation).map(|sample| format!("{:.2}", sample.median())));
        format!("{:.1} ({deviation})", each.median())
    });
    let sum = one.sample(|run| run.sum_mbit_per_s(|_| true));
    let wall = one.sample(Run::wall_mbit_per_s);
    writeln!(
        out,
        "{:>16}{ends:>19}{each:>22}{:>27}{:>27}{:>6.0}%",
        named(&one.case, plan),
        cell(sum.as_ref(), 1),
        cell(wall.as_ref(), 1),
        one.own_share() * 100.0,
    )
}

/// Throughput of each target's tasks, all at once.
fn write_targets(out: &mut String, one: &Measured, outcome: &Outcome) -> std::fmt::Result {
    for target in 0..outcome.places.len() {
        let sum = one.sample(|run| run.sum_mbit_per_s(|task| task.target == target));
        let name = format!("of these on {}", letter(target));
        writeln!(out, "{name:>16}{:>19}{:>22}{:>27}", "", "", cell(sum.as_ref(), 1))?;
    }
    Ok(())
}

/// Which target's tasks are faster than those of the first.
fn write_compared(out: &mut String, one: &Measured, outcome: &Outcome) -> std::fmt::Result {
    let first = &outcome.places[0];
    for (target, place) in outcome.places.iter().enumerate().skip(1) {
        let (a, b) = (letter(0), letter(target));
        if place.survives != first.survives {
            writeln!(
                out,
                "{:>16}  {a} and {b} are not compared: what was closed does not survive the same",
                ""
            )?;
            continue;
        }
        if let Some(compared) = compared(one, target) {
            writeln!(out, "{:>16}  {}", "", compared.sentence(&a, &b))?;
        }
    }
    Ok(())
}

/// The target's tasks beside those of the first, which ran at the same time.
pub(super) fn compared(one: &Measured, target: usize) -> Option<Compared> {
    let sum = |target| one.sample(|run| run.sum_mbit_per_s(|task| task.target == target));
    Compared::of(&sum(0)?, &sum(target)?, Better::Larger)
}

/// The mean throughput of the tasks of a run.
pub(super) fn each(run: &Run) -> f64 {
    run.sum_mbit_per_s(|_| true) / run.tasks.len() as f64
}

/// How far they lie apart: no number of one task, of which the thesis has 0.
pub(super) fn deviation(run: &Run) -> f64 {
    let mean = each(run);
    let squares = run.tasks.iter().map(|task| (run.task_mbit_per_s(task) - mean).powi(2));
    let others = run.tasks.len().saturating_sub(1) as f64;
    (squares.sum::<f64>() / others).sqrt()
}

fn write_own(out: &mut String, outcome: &Outcome) -> std::fmt::Result {
    let share = outcome.measured.iter().map(Measured::own_share).fold(0.0, f64::max);
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    write!(
        out,
        "generator   up to {:.0} % of one processor of {processors}, with our client for a server",
        share * 100.0
    )?;
    if is_busy(share) {
        write!(out, ": it may be what limits")?;
    }
    writeln!(out)
}

pub(super) fn is_busy(share: f64) -> bool {
    share > BUSY_SHARE * std::thread::available_parallelism().map_or(1, usize::from) as f64
}

#[cfg(test)]
mod tests {
    use load::tasks::{TaskRun, Workload};
    use perf::units::Nanos;

    use super::*;

    #[test]
    fn one_task_has_no_deviation() {
        let workload = Workload {
            file_bytes: 1_000_000,
            call_bytes: 8192,
            times: 1,
            names: Names::Same,
            sync: false,
        };
        let of = |seconds: &[u64]| {
            let span = |s: &u64| TaskRun { target: 0, client: 0, span: Nanos::from_secs(*s) };
            let (wall, cpu_span) = (Nanos::from_secs(9), Nanos::from_secs(9));
            let tasks = seconds.iter().map(span).collect();
            deviation(&Run { workload, tasks, wall, cpu: Nanos::ZERO, cpu_span })
        };
        assert!(!of(&[3]).is_finite());
        assert_eq!(of(&[2, 2]), 0.0);
        // 4 and 2 Mbit/s, 1 from their mean each.
        assert!((of(&[2, 4]) - 2_f64.sqrt()).abs() < 1e-9);
    }
}
