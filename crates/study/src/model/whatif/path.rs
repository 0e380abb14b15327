//! A change of the path that a probe found: by the formula of the transaction cycle, by mean value
//! analysis, and by a world.

use harness::exit::Failure;
use harness::records::scaled;
use harness::table::{Table, left, right};
use harness::verdict::HELD_PCT;
use perf::model::saved::SavedPath;
use perf::model::transaction::{Bound, Cycle, Term, Transfer};
use perf::model::whatif::believed::{
    Believed, Held, Model, TransferPoint, Why, believed, observed,
};
use perf::model::whatif::of_path::{PathCase, PathPrediction};
use perf::record::Warning;
use perf::units::Nanos;

use super::logged;
use super::text::added_latency;
use super::text::{refused, times, with_interval};
use crate::model::args::estimate::WhatIf;
use crate::model::page::{Page, or_dash, span};

pub(super) fn page(
    args: &WhatIf,
    saved: &SavedPath,
    warnings: &[Warning],
) -> Result<Page, Failure> {
    let found = found(args, saved)?;
    let measured = measured_at(saved, &found);
    let before = measured.map_or(found, |mib_per_s| found.calibrated(mib_per_s));
    let after = before.changed(&args.changes).map_err(refused)?;
    let page = Page::new("whatif", Some(&args.file));
    let mut compared = Compared { page, table: table(), notes: Vec::new() };
    // Of a change of calls alone, the record may have the answer itself.
    let is_path = after.path == before.path && after.server == before.server;
    let measured_after = measured_at(saved, &after).filter(|_| is_path);
    let base_answer = compared.answer("before", &before, saved, measured_at(saved, &before))?;
    let answer = compared.answer("after", &after, saved, measured_after)?;
    compared.gain(&base_answer, &answer);
    let held = held(&found, &saved.measured);
    // Where something else limits than the models have, neither is believed.
    match measured_after.filter(|_| after != before) {
        Some(mib_per_s) => compared.measured(&answer, mib_per_s, measured),
        None if measured.is_none() || is_held(&found, measured) => {
            compared.believe(&base_answer, &answer, &held, measured);
        }
        None => {}
    }
    let Compared { mut page, notes, .. } = compared;
    logged::write(args, &before, saved, &mut page)?;
    page.line(base(&found, measured));
    if let Some(differ_pct) = saved.runs_differ_pct.filter(|_| measured.is_some()) {
        steadiness(differ_pct, &mut page);
    }
    page.line(format_args!(
        "the cycle after the change, with its share of a COMMIT: {}",
        cycle(&after, saved.stable_in_op)
    ));
    notes.iter().for_each(|note| page.note("no-simulation", note, ""));
    for Warning { code, text, try_, .. } in warnings {
        page.note(code, &format!("the record warns: {text}, while it was measured"), try_);
    }
    if found.latency_us == 0.0 {
        added_latency(&args.changes, "2 T_prop", &mut page);
    }
    Ok(page)
}

/// A round trip was not measured more exactly than this.
const ROUND_TRIP_SURE: f64 = 1.1;

/// The path of the record, with what was given of it.
fn found(args: &WhatIf, saved: &SavedPath) -> Result<PathCase, Failure> {
    let mut found = saved.case();
    let latency = args.latency.unwrap_or(Nanos::ZERO);
    if 2.0 * latency.as_micros_f64() > ROUND_TRIP_SURE * saved.round_trip_us {
        let measured = span(saved.round_trip_us);
        return Err(Failure::usage(
            format!("--latency {latency}: twice that is more than the round trip of {measured}"),
            "the latency of one way, as the path had it while it was measured",
        ));
    }
    found.transfer.outstanding = args.outstanding.unwrap_or(found.transfer.outstanding);
    found.latency_us = args.latency.map_or(found.latency_us, Nanos::as_micros_f64);
    Ok(found)
}

/// What the record has of such calls.
fn measured_at(saved: &SavedPath, case: &PathCase) -> Option<f64> {
    observed(&saved.measured, case.transfer.call_bytes, case.transfer.outstanding)
}

/// Before and after, so far.
struct Compared {
    page: Page,
    table: Table,
    notes: Vec<String>,
}

impl Compared {
    /// All models of one case, with a row of the table.
    fn answer(
        &mut self,
        when: &str,
        case: &PathCase,
        saved: &SavedPath,
        measured: Option<f64>,
    ) -> Result<Answer, Failure> {
        let prediction = case.predicted(&saved.spread()).map_err(|error| refused(error.into()))?;
        let world =
            world(case).map_err(|why| self.notes.push(format!("no simulation {when}: {why}")));
        let answer = Answer { prediction, world: world.ok() };
        let mut row = row(when, case, &answer, measured);
        if let (true, Bound::Cycle(Term::Op)) = (saved.stable_in_op, prediction.bound) {
            OP_OR_BLOCK.clone_into(&mut row[7]);
        }
        self.table.row(row);
        let record = &mut self.page.record;
        record.estimate(&format!("formula/{when}/mib_per_s"), &prediction.formula, "MiB/s", 1);
        record.metric(&format!("mva/{when}/mib_per_s"), prediction.closed_mib_per_s, "MiB/s");
        for (name, value) in [("simulation", answer.world), ("measured", measured)] {
            record.metric_if_known(&format!("{name}/{when}/mib_per_s"), value, "MiB/s");
        }
        Ok(answer)
    }

    /// The last row, and the table.
    fn gain(&mut self, base: &Answer, answer: &Answer) {
        let formula = answer.prediction.formula.value / base.prediction.formula.value;
        let closed = answer.prediction.closed_mib_per_s / base.prediction.closed_mib_per_s;
        let world = base.world.zip(answer.world).map(|(before, after)| after / before);
        let [formula_x, closed_x, world_x] =
            [Some(formula), Some(closed), world].map(|gain| or_dash(gain.map(times)));
        self.table.row(["gain", "", "", &formula_x, &closed_x, &world_x]);
        self.page.table(&self.table);
        self.page.record.metric("formula/gain", formula, "ratio");
    }

    /// What the record has of the change itself: no model is believed beside it.
    fn measured(&mut self, answer: &Answer, mib_per_s: f64, before: Option<f64>) {
        let gain = before.map(|before| mib_per_s / before);
        let formula = answer.prediction.formula.value;
        self.page.line(format_args!("\n{}", measured_sentence(mib_per_s, gain, formula)));
        self.page.record.metric_if_known("measured/gain", gain, "ratio");
    }

    /// The answer of the model that is nearer to what was measured.
    fn believe(&mut self, base: &Answer, answer: &Answer, held: &[Held], measured: Option<f64>) {
        let world = answer.world.map(|after| held_to(measured, base.world, after));
        let believed = believed(answer.prediction.formula.value, world, held);
        // As in the table: of the model's own level before the change.
        let (before, after) = match believed.model {
            Model::Formula => {
                (Some(base.prediction.formula.value), Some(answer.prediction.formula.value))
            }
            Model::Simulation => (base.world, answer.world),
        };
        let gain = before.zip(after).map_or(f64::NAN, |(before, after)| after / before);
        if let Some(note) = unsure(&believed, held.len()) {
            self.page.text.insert_str(0, &format!("note: {note}\n\n"));
            let advice = "what limits the path besides: a rate limiter, another client, a cache";
            self.page.record.warn("not-explained", &note, advice);
        }
        self.page.line(format_args!("\n{}", sentence(&believed, held.len(), gain)));
        let record = &mut self.page.record;
        record.metric("believed/mib_per_s", believed.mib_per_s, "MiB/s");
        record.metric("believed/gain", gain, "ratio");
        record.model.insert("believed".to_owned(), believed.model.name().into());
    }
}

/// What a simulation has after a change, where it is held to what was measured before: what it is
/// off by there is no gain.
fn held_to(measured: Option<f64>, before: Option<f64>, after: f64) -> f64 {
    measured.zip(before).map_or(after, |(measured, before)| measured * after / before)
}

/// How far the runs that changes are held to agree among themselves.
fn steadiness(differ_pct: f64, page: &mut Page) {
    page.record.metric("base/runs_differ_pct", differ_pct, "%");
    if differ_pct > HELD_PCT {
        let note = format!(
            "the runs that changes are held to differ by {differ_pct:.0} % among themselves, and \
             no level here is surer than that"
        );
        page.note("unsteady-base", &note, "probe again when client and server are quiet");
    }
}

fn table() -> Table {
    let first = [left("MiB/s"), right("outstanding"), right("calls of"), left("formula")];
    let names = [right("MVA"), right("simulation"), right("measured, steady"), left("bound by")];
    Table::new(first.into_iter().chain(names))
}

/// By the formula and mean value analysis, and in a world.
struct Answer {
    prediction: PathPrediction,
    world: Option<f64>,
}

/// The points that were measured with calls of this size, and what the models have there: the
/// first, the last, and those in between, as many as a moment is enough for.
fn held(found: &PathCase, measured: &[TransferPoint]) -> Vec<Held> {
    let same_size = |point: &&TransferPoint| point.call_bytes == found.transfer.call_bytes;
    let points: Vec<&TransferPoint> = measured.iter().filter(same_size).collect();
    let step = points.len().div_ceil(HELD_MAX).max(1);
    let held = |point: &&TransferPoint| {
        let transfer = Transfer { outstanding: point.outstanding, ..found.transfer };
        let case = PathCase { transfer, ..*found };
        let simulated = world(&case).ok()?;
        let (measured, formula) = (point.mib_per_s, case.formula().mib_per_s);
        Some(Held { measured, formula, simulated })
    };
    points.iter().step_by(step).filter_map(held).collect()
}

/// Points that worlds are run for.
const HELD_MAX: usize = 4;

/// What was measured of the change, and how far off the formula is. A record's point is what its
/// run had, over the share of the steady state that the model expects of such a run.
fn measured_sentence(mib_per_s: f64, gain: Option<f64>, formula: f64) -> String {
    let gain = gain.map_or_else(String::new, |gain| format!(", {}", times(gain)));
    let off_pct = (formula / mib_per_s - 1.0) * 100.0;
    format!("measured{STEADY}: {mib_per_s:.1} MiB/s{gain}; the formula is {off_pct:+.0} % off that")
}

/// What a record's points are.
const STEADY: &str = ", less the beginning and the end of the run by the model";

/// Which of the models is believed, and why.
fn sentence(believed: &Believed, points: usize, gain: f64) -> String {
    let Believed { model, mib_per_s, why } = believed;
    let why = match *why {
        Why::Alone => "the simulation has no answer".to_owned(),
        Why::Unmeasured => {
            "nothing was measured that it and the simulation could be held to".to_owned()
        }
        Why::Errors { formula_pct, simulation_pct } => {
            let own_pct = match model {
                Model::Formula => formula_pct,
                Model::Simulation => simulation_pct,
            };
            format!(
                "of the path as it is, the formula is {formula_pct:.1} % off and the simulation \
                 {simulation_pct:.1} %, at the median of {points} points{}",
                if own_pct > HELD_PCT { "; the answer is no surer than that" } else { "" }
            )
        }
    };
    format!("believe the {}: {mib_per_s:.1} MiB/s, {gain:.2} x its own before; {why}", model.name())
}

/// Of a believed model, percent, from which on its predictions are worth little.
const UNSURE_PCT: f64 = 100.0 * perf::model::trace::TOLERATED;

/// The first line of all, of a model that does not have the path as it is.
fn unsure(believed: &Believed, points: usize) -> Option<String> {
    let Why::Errors { formula_pct, simulation_pct } = believed.why else { return None };
    let off_pct = match believed.model {
        Model::Formula => formula_pct,
        Model::Simulation => simulation_pct,
    };
    (off_pct > UNSURE_PCT).then(|| {
        format!(
            "not sure: the {} is {off_pct:.0} % off what was measured of the path as it is, at the \
             median of {points} points; what it has of a change may be as far off",
            believed.model.name()
        )
    })
}

/// Whether the models are near enough to what was measured that they could be held to it.
fn is_held(found: &PathCase, measured: Option<f64>) -> bool {
    measured.is_some_and(|mib_per_s| {
        let formula = found.formula().mib_per_s;
        found.calibrated(mib_per_s) != *found || mib_per_s == formula
    })
}

/// A base that is nearer is held to what was measured.
const HELD_WITHIN: f64 = 0.01;

/// What the level of the answers rests on.
fn base(found: &PathCase, measured: Option<f64>) -> String {
    let formula = found.formula().mib_per_s;
    match measured {
        Some(mib_per_s) if !is_held(found, measured) => {
            format!(
                "base: the formula has {formula:.1} MiB/s where {mib_per_s:.1} were measured; \
                 something else limits, and no answer here can be relied on"
            )
        }
        Some(mib_per_s) => {
            let held = found.calibrated(mib_per_s).formula().mib_per_s;
            let part = match (held / mib_per_s - 1.0).abs() > HELD_WITHIN {
                true => format!("{held:.1} of "),
                false => String::new(),
            };
            format!(
                "base: held to {part}the {mib_per_s:.1} MiB/s that were measured{STEADY}; the \
                 formula alone has {formula:.1}"
            )
        }
        None => format!(
            "base: {formula:.1} MiB/s by the formula; with so many outstanding nothing was \
             measured, and the gain is surer than the level"
        ),
    }
}

/// The same in a world, or why there is none.
fn world(case: &PathCase) -> Result<f64, String> {
    if case.transfer.outstanding > OUTSTANDING_MAX {
        return Err(format!("it is run with at most {OUTSTANDING_MAX} calls outstanding"));
    }
    world::path::case_mib_per_s(case).map_err(|error| error.to_string())
}

/// Calls outstanding in a world: each keeps its data in memory.
const OUTSTANDING_MAX: u32 = 4096;

fn row(when: &str, case: &PathCase, answer: &Answer, measured: Option<f64>) -> [String; 8] {
    let mib = |value: f64| format!("{value:.1}");
    let Answer { prediction, world } = answer;
    [
        when.to_owned(),
        case.transfer.outstanding.to_string(),
        scaled(case.transfer.call_bytes as f64),
        with_interval(&prediction.formula, mib),
        mib(prediction.closed_mib_per_s),
        or_dash(world.map(mib)),
        or_dash(measured.map(mib)),
        bound(prediction.bound).to_owned(),
    ]
}

/// Of a record in which T_B is in T_op.
const OP_OR_BLOCK: &str = "processing or storage (T_op + T_B)";

pub(crate) fn bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Cycle(Term::Prop) => "network round trip (2 T_prop)",
        Bound::Cycle(Term::Ser) => "transmission of the bytes (T_ser)",
        Bound::Cycle(Term::Op) => "processing (T_op)",
        Bound::Cycle(Term::Block) => "storage (T_B)",
        Bound::Capacity => "link and processing, always busy",
        Bound::Storage => "storage, always busy",
        Bound::Server => "a server that does one thing at a time",
    }
}

fn cycle(case: &PathCase, is_stable_in_op: bool) -> String {
    let Cycle { prop_us, ser_us, op_us, block_us } = case.formula().cycle;
    if is_stable_in_op {
        let [prop, ser, both] = [prop_us, ser_us, op_us + block_us].map(span);
        return format!("2 T_prop {prop}, T_ser {ser}, T_op + T_B {both}");
    }
    let [prop, ser, op, block] = [prop_us, ser_us, op_us, block_us].map(span);
    format!("2 T_prop {prop}, T_ser {ser}, T_op {op}, T_B {block}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_measured_of_a_change_is_reported_with_what_the_formula_has() {
        let sentence = measured_sentence(1235.3, Some(1.483), 833.0);
        // The run itself had less: its last COMMIT is taken away by the model.
        let expected = "measured, less the beginning and the end of the run by the model: 1235.3 \
                        MiB/s, 1.48 x; the formula is -33 % off that";
        assert_eq!(sentence, expected);
        assert!(!measured_sentence(10.0, None, 11.0).contains(" x;"));
    }

    #[test]
    fn what_a_simulation_is_off_by_before_a_change_is_no_gain() {
        assert_eq!(held_to(Some(117.0), Some(118.0), 118.0), 117.0);
        assert_eq!(held_to(Some(100.0), Some(110.0), 220.0), 200.0);
        assert_eq!(held_to(None, Some(110.0), 220.0), 220.0);
    }

    #[test]
    fn a_model_that_is_off_as_it_is_gives_no_sure_answer() {
        let of = |formula_pct, simulation_pct, model| {
            let why = Why::Errors { formula_pct, simulation_pct };
            sentence(&Believed { model, mib_per_s: 10.0, why }, 4, 0.5)
        };
        let sure = of(3.0, 1.0, Model::Formula);
        assert!(
            sure.starts_with("believe the formula: 10.0 MiB/s, 0.50 x its own before;"),
            "{sure}"
        );
        assert!(!sure.contains("no surer"), "{sure}");
        assert!(of(33.1, 36.2, Model::Formula).contains("no surer than that"));
        assert!(!of(33.1, 2.0, Model::Simulation).contains("no surer"));
        let first = |formula_pct, simulation_pct, model| {
            let why = Why::Errors { formula_pct, simulation_pct };
            unsure(&Believed { model, mib_per_s: 10.0, why }, 4)
        };
        let note = first(44.4, 37.0, Model::Formula).unwrap();
        assert!(note.starts_with("not sure: the formula is 44 % off"), "{note}");
        assert_eq!(first(33.1, 2.0, Model::Simulation), None);
        assert_eq!(first(24.0, 2.0, Model::Formula), None);
    }
}
