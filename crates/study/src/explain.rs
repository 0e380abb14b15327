//! Step 3: the measurements beside the model's predictions.

use std::collections::BTreeSet;

use harness::records::{self, median};
use harness::verdict::Errors;
use load::probe::Findings;
use load::study::{self, Configuration, Drain, Measured, Plan, Study, Subject};
use perf::model::transaction::{Bound, Cycle, Path, Prediction, Server, Term, Transfer};
use perf::model::whatif::of_path::PathCase;
use perf::stats::{Estimate, Interval};
use perf::units::Nanos;
use perf::words::counted;

use super::models::{self, Choice};

/// Predicted beside measured, for one configuration.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    pub(crate) configuration: Configuration,
    pub(crate) prediction: Prediction,
    /// By mean value analysis, and in a world.
    pub(crate) closed_mib_per_s: Option<f64>,
    pub(crate) simulated_mib_per_s: Option<f64>,
    /// With calls without end outstanding, and what is full then.
    pub(crate) full: (f64, Bound),
    /// `None` where no run had a COMMIT answered.
    pub(crate) measured_mib_per_s: Option<f64>,
}

impl Row {
    /// Without the simulation, which comes later for all rows at once.
    fn of(run: &PlannedRun, path: &Path, server: Server, measured: &Measured) -> Self {
        let configuration = measured.configuration;
        let closed = PathCase::of(*path, server, run.transfer(&configuration)).closed_mib_per_s();
        let ends = run.ends(path, server, &configuration);
        Self {
            configuration,
            prediction: run.predict(path, server, &configuration),
            closed_mib_per_s: closed.ok().map(|rate| rate * ends),
            simulated_mib_per_s: None,
            full: run.full(path, server, &configuration),
            measured_mib_per_s: measured.median(),
        }
    }

    /// How far the prediction is above the measurement, in percent of the measurement.
    pub(crate) fn error_pct(&self) -> Option<f64> {
        Some((self.prediction.mib_per_s / self.measured_mib_per_s? - 1.0) * 100.0)
    }

    fn off_pct(&self) -> Option<f64> {
        self.error_pct().map(f64::abs)
    }
}

/// All rows, and what follows from them.
#[derive(Clone, Debug)]
pub(crate) struct Explanation {
    pub(crate) rows: Vec<Row>,
    /// How each subject behaves: as we made it, or as the model fits it best.
    pub(crate) servers: Vec<Server>,
    /// Of those that somebody else made: by how much.
    pub(crate) forms: Vec<Option<Forms>>,
    /// Of the rows that were measured; not finite without any.
    pub(crate) error_pct_median: f64,
    pub(crate) error_pct_worst: f64,
    /// The same errors, at the limit and below it.
    pub(crate) errors: Errors,
    /// Which of the models is believed.
    pub(crate) choice: Choice,
    /// The configuration to start from: the first subject, the smallest call, one outstanding.
    pub(crate) before: Configuration,
    /// What the model recommends on the last subject.
    pub(crate) after: Configuration,
    /// What being stable takes is in T_op: each WRITE is stable when it is answered.
    pub(crate) is_stable_only: bool,
}

/// Median errors of the formula, percent, if a server stops for its disk and if it works on.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Forms {
    pub(crate) stall_pct: f64,
    pub(crate) concurrent_pct: f64,
}

impl Forms {
    /// By the rows of a subject, if it is one or the other; none without a row that was measured.
    fn of(rows_as: impl Fn(Server) -> Vec<Row>) -> Option<Self> {
        let error = |server| median(rows_as(server).iter().filter_map(Row::off_pct).collect());
        let (stall_pct, concurrent_pct) = (error(Server::Stall), error(Server::Concurrent));
        stall_pct.is_finite().then_some(Self { stall_pct, concurrent_pct })
    }

    pub(crate) fn better(&self) -> Server {
        if self.stall_pct < self.concurrent_pct { Server::Stall } else { Server::Concurrent }
    }

    /// Whether one is better by more than repetitions differ among themselves, and by more than it
    /// is off itself: what makes even the better one err may as well be what makes it the better
    /// one.
    pub(crate) fn differ(&self, noise_pct: Option<f64>) -> bool {
        let better = self.stall_pct.min(self.concurrent_pct);
        let apart = (self.stall_pct - self.concurrent_pct).abs();
        apart > noise_pct.unwrap_or(NOISE_UNKNOWN_PCT).max(better)
    }
}

/// What repetitions are taken to differ by where there is one. Guess.
const NOISE_UNKNOWN_PCT: f64 = 5.0;

impl Explanation {
    pub(crate) fn new(
        run: PlannedRun,
        findings: &Findings,
        known: &[Option<Server>],
        sizes: &[u32],
        measured: &[Measured],
    ) -> Self {
        let rows_as = |subject: usize, server: Server| {
            let own = measured.iter().filter(move |row| row.configuration.subject == subject);
            own.map(move |measured| Row::of(&run, &findings.path, server, measured))
        };
        let forms_of = |(subject, known): (usize, &Option<Server>)| match known {
            Some(_) => None,
            None => Forms::of(|server| rows_as(subject, server).collect()),
        };
        let forms: Vec<Option<Forms>> = known.iter().enumerate().map(forms_of).collect();
        let server = |(known, forms): (&Option<Server>, &Option<Forms>)| {
            known.or(forms.map(|forms| forms.better())).unwrap_or(Server::Concurrent)
        };
        let servers: Vec<Server> = known.iter().zip(&forms).map(server).collect();
        let all = servers.iter().enumerate();
        let mut rows: Vec<Row> = all.flat_map(|(at, server)| rows_as(at, *server)).collect();
        models::simulate(&mut rows, &findings.path, &servers, &run);
        let errors: Vec<f64> = rows.iter().filter_map(Row::off_pct).collect();
        let smallest = sizes.first().copied().unwrap_or(8192);
        Self {
            error_pct_worst: errors.iter().copied().reduce(f64::max).unwrap_or(f64::NAN),
            error_pct_median: median(errors),
            errors: errors_of(&rows),
            choice: Choice::of(&rows, measured),
            rows,
            before: Configuration { subject: 0, call_bytes: smallest, outstanding: 1 },
            after: recommend(run.commit_bytes, findings, sizes, &servers),
            servers,
            forms,
            is_stable_only: findings.stable_only,
        }
    }

    /// Whether it is known how a subject treats its disk: we made it so, or one form fits clearly
    /// better.
    pub(crate) fn knows_form(&self, subject: usize) -> bool {
        let forms = self.forms.get(subject).copied().flatten();
        forms.is_none_or(|forms| forms.differ(self.choice.noise_pct))
    }

    pub(crate) fn row(&self, configuration: Configuration) -> Option<&Row> {
        self.rows.iter().find(|row| row.configuration == configuration)
    }

    /// What the configuration to start from is bound by.
    pub(crate) fn first_sentence(&self) -> Option<String> {
        self.row(self.before).map(|row| sentence(row, self))
    }

    /// Sizes of calls, in order.
    pub(crate) fn sizes(&self) -> Vec<u32> {
        let sizes = self.rows.iter().map(|row| row.configuration.call_bytes);
        sizes.collect::<BTreeSet<u32>>().into_iter().collect()
    }

    /// The rows of one curve, in order of calls outstanding.
    pub(crate) fn curve(&self, subject: usize, call_bytes: u32) -> impl Iterator<Item = &Row> {
        self.rows.iter().filter(move |row| {
            row.configuration.subject == subject && row.configuration.call_bytes == call_bytes
        })
    }
}

/// A run as it is planned: everything that a prediction needs beside the path's parameters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlannedRun {
    pub(crate) commit_bytes: u64,
    pub(crate) time: Nanos,
    pub(crate) drain: Drain,
    /// How long worlds may be run for, all together.
    pub(crate) simulation: Nanos,
}

impl PlannedRun {
    /// As the sweep of a study runs.
    pub(crate) fn of_sweep<S: Subject>(
        study: &Study<'_, S>,
        plan: &Plan,
        simulation: Nanos,
    ) -> Self {
        let (commit_bytes, drain) = (study.commit_bytes(), study.drain());
        Self { commit_bytes, time: plan.run_time, drain, simulation }
    }

    pub(crate) fn transfer(&self, configuration: &Configuration) -> Transfer {
        study::transfer(configuration, self.commit_bytes)
    }

    /// What beginning and end of the run leave of the steady state, by the formula.
    pub(crate) fn ends(&self, path: &Path, server: Server, configuration: &Configuration) -> f64 {
        let steady = path.predict(server, &self.transfer(configuration)).mib_per_s;
        self.predict(path, server, configuration).mib_per_s / steady
    }

    /// The path with which the formula gives what a run showed. A probe makes other calls than a
    /// run: between NULLs processors sleep for another time, and of one call at a time that is
    /// much. No change where there is no run.
    pub(crate) fn held_to(
        &self,
        path: &Path,
        server: Server,
        configuration: &Configuration,
        mib_per_s: f64,
    ) -> Path {
        let case = PathCase::of(*path, server, self.transfer(configuration));
        match mib_per_s / self.ends(path, server, configuration) {
            steady if steady.is_finite() && steady > 0.0 => case.calibrated(steady).path,
            _ => *path,
        }
    }

    /// With calls without end outstanding.
    fn full(&self, path: &Path, server: Server, configuration: &Configuration) -> (f64, Bound) {
        let transfer = Transfer { outstanding: u32::MAX, ..self.transfer(configuration) };
        let full = Path { overhead_us: 0.0, ..*path }.predict(server, &transfer);
        (full.mib_per_s, full.bound)
    }

    /// What the run should show. How many calls and COMMITs it will have follows from the model's
    /// own rate; where the calls outstanding at its end would take longer than the drain to come
    /// back, it will be abandoned and shows the steady state, if anything.
    pub(crate) fn predict(
        &self,
        path: &Path,
        server: Server,
        configuration: &Configuration,
    ) -> Prediction {
        let transfer = self.transfer(configuration);
        let steady = path.predict(server, &transfer);
        let call_mib = f64::from(configuration.call_bytes) / f64::from(1 << 20);
        let calls_per_sec = steady.mib_per_s / call_mib;
        let outstanding = configuration.outstanding as f64;
        let drain = self.drain.of(configuration, self.time);
        if outstanding / calls_per_sec > drain.as_secs_f64() {
            return steady;
        }
        let calls = (calls_per_sec * self.time.as_secs_f64()).ceil() + outstanding - 1.0;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
        let calls = calls as u64;
        let bytes = calls.saturating_mul(u64::from(configuration.call_bytes));
        path.predict_run(server, &transfer, calls, bytes / self.commit_bytes + 1)
    }
}

/// The size and window that the last of the servers should be given: the smallest size that comes
/// within half a percent of what the best size promises.
fn recommend(
    commit_bytes: u64,
    findings: &Findings,
    sizes: &[u32],
    servers: &[Server],
) -> Configuration {
    let subject = servers.len().saturating_sub(1);
    let server = servers.last().copied().unwrap_or(Server::Concurrent);
    let choice = |&call_bytes: &u32| {
        let outstanding = study::best_window(&findings.path, server, call_bytes, commit_bytes);
        Configuration { subject, call_bytes, outstanding }
    };
    let promised = |choice: &Configuration| {
        findings.path.predict(server, &study::transfer(choice, commit_bytes)).mib_per_s
    };
    let choices: Vec<Configuration> = sizes.iter().map(choice).collect();
    let best = choices.iter().map(promised).fold(0.0, f64::max);
    let enough = choices.into_iter().find(|choice| promised(choice) >= ENOUGH * best);
    enough.unwrap_or(Configuration { subject, call_bytes: 1 << 20, outstanding: 16 })
}

/// The smallest size of call that promises this share of the best promise is recommended.
const ENOUGH: f64 = 0.995;

/// A term that is this much of a cycle dominates it.
const DOMINATES_PCT: f64 = 50.0;

/// A measured cycle that is nearer to the model's is not stated beside it.
const NEAR: f64 = 0.1;

/// Names the largest term in a sentence, and whether it dominates.
fn sentence(row: &Row, explanation: &Explanation) -> String {
    let size = bytes(row.configuration.call_bytes);
    let calls = counted(row.configuration.outstanding, "call");
    if let Some(pct) = off_pct(row) {
        return format!(
            "What limits with {size} calls and {calls} outstanding is not known: the model is \
             {pct:+.0} % off what was measured there."
        );
    }
    format!("With {size} calls and {calls} outstanding {}.", why(row, explanation))
}

/// How far off the model is at a row, where that is too much for what it says to be the reason.
fn off_pct(row: &Row) -> Option<f64> {
    let pct = (row.prediction.mib_per_s / row.measured_mib_per_s? - 1.0) * 100.0;
    (pct.abs() > OFF_PCT).then_some(pct)
}

/// A guess: the largest of a cycle's terms may be something that the model does not have.
const OFF_PCT: f64 = 50.0;

fn why(row: &Row, explanation: &Explanation) -> String {
    let why = match explanation.choice.bound(row) {
        Bound::Cycle(term) => {
            let longer = row.measured_mib_per_s.map_or(1.0, |own| row.prediction.mib_per_s / own);
            return largest_term(&row.prediction.cycle, term, longer, explanation.is_stable_only);
        }
        Bound::Capacity => "the path is full: link and processing are busy all the time (T_ser)",
        Bound::Storage => "storage is busy all the time (T_B)",
        Bound::Server if explanation.knows_form(row.configuration.subject) => {
            "the server is the bottleneck: it does one thing at a time, and stops for its disk"
        }
        Bound::Server => {
            "the server is the bottleneck; whether it stops for its disk does not show"
        }
    };
    why.to_owned()
}

/// How much of a cycle its largest term is, where the measured one is so many times as long.
fn largest_term(cycle: &Cycle, term: Term, longer: f64, is_stable_only: bool) -> String {
    let (what, us, is) = match term {
        Term::Prop => ("propagation", cycle.prop_us, "is the network round trip (2 T_prop)"),
        Term::Ser => ("serialization", cycle.ser_us, "is the transmission of the bytes (T_ser)"),
        Term::Op if is_stable_only => ("processing or storage", cycle.op_us, OP_OR_BLOCK),
        Term::Op => ("processing", cycle.op_us, "is spent on the call itself (T_op)"),
        Term::Block => ("storage", cycle.block_us, "is the wait for the disk (T_B)"),
    };
    let then = if term == Term::Prop { ", while link, processor and disk wait" } else { "" };
    let total_us = cycle.total_us();
    let (share, measured_us) = (100.0 * us / total_us, total_us * longer);
    let beside = match (longer - 1.0).abs() > NEAR {
        true => format!(" of the model ({measured_us:.0} us were measured)"),
        false => String::new(),
    };
    let of = format!("{share:.0} % of each cycle of {total_us:.0} us{beside} {is}");
    // What is not explained may be one term more.
    match 100.0 * us / measured_us.max(total_us) >= DOMINATES_PCT {
        true => format!("{what} dominates: {of}{then}"),
        false => format!("no term dominates; the largest is {what}: {of}"),
    }
}

/// Where there are no COMMITs, and no WRITE that is not stable when it is answered.
const OP_OR_BLOCK: &str = "is spent on the call or on the wait for the disk, which cannot be \
                           distinguished (T_op + T_B)";

/// What runs come to in which too little became stable in time, where `left_out` of `all` windows
/// have no throughput.
pub(crate) fn counted_as(left_out: usize, all: usize) -> String {
    match left_out {
        0 => "they count as 0 MiB/s in the median of their repetitions".to_owned(),
        _ => format!("{left_out} of {all} windows, of which that is the median, are left out"),
    }
}

/// Half of an estimate: one way of a round trip.
pub(crate) fn half(estimate: Estimate) -> Estimate {
    let half = |ci: Interval| Interval { lo: ci.lo / 2.0, hi: ci.hi / 2.0 };
    Estimate { value: estimate.value / 2.0, ci95: estimate.ci95.map(half) }
}

/// `8 KiB`, `1 MiB`.
pub(crate) fn bytes(bytes: u32) -> String {
    records::bytes(bytes.into())
}

/// How far off the models are beside what was measured.
fn errors_of(rows: &[Row]) -> Errors {
    let point = |row: &Row| {
        let configuration = row.configuration;
        let curve = (configuration.subject, configuration.call_bytes);
        Some((curve, row.measured_mib_per_s?, row.error_pct()?.abs()))
    };
    Errors::of_curves(rows.iter().filter_map(point))
}

#[cfg(test)]
mod tests {
    use perf::model::transaction::{Capacity, Cycle, Storage};

    use super::*;

    fn row(cycle: Cycle, bound: Bound) -> Row {
        Row {
            configuration: Configuration { subject: 0, call_bytes: 8192, outstanding: 1 },
            prediction: Prediction { cycle, bound, mib_per_s: 10.0 },
            closed_mib_per_s: None,
            simulated_mib_per_s: None,
            full: (100.0, Bound::Capacity),
            measured_mib_per_s: Some(10.0),
        }
    }

    fn explained(row: Row, forms: Option<Forms>) -> Explanation {
        Explanation {
            choice: Choice::of(&[row], &[]),
            rows: vec![row],
            servers: vec![Server::Stall],
            forms: vec![forms],
            error_pct_median: 0.0,
            error_pct_worst: 0.0,
            errors: Errors::default(),
            before: row.configuration,
            after: row.configuration,
            is_stable_only: false,
        }
    }

    #[test]
    fn a_call_that_is_stable_when_it_is_answered_is_not_all_processing() {
        let cycle = Cycle { prop_us: 220.0, ser_us: 20.0, op_us: 12_934.0, block_us: 0.0 };
        let row = row(cycle, Bound::Cycle(Term::Op));
        let of = |is_stable_only| {
            sentence(&row, &Explanation { is_stable_only, ..explained(row, None) })
        };
        let stable = of(true);
        assert!(stable.contains("processing or storage dominates: 98 %"), "{stable}");
        assert!(stable.contains("or on the wait for the disk"), "{stable}");
        assert!(of(false).contains("processing dominates") && !of(false).contains("disk"));
    }

    #[test]
    fn runs_without_an_answer_are_left_out_where_they_are_the_median() {
        assert!(counted_as(0, 14).starts_with("they count as 0 MiB/s in the median"));
        assert!(
            counted_as(4, 14).starts_with("4 of 14 windows")
                && counted_as(4, 14).ends_with("left out")
        );
    }

    #[test]
    fn the_document_has_the_share_of_the_best_promise_that_is_enough() {
        let document = include_str!("../../../docs/models.md");
        let promise =
            format!("within {:.1} %\n  of the best promise of all sizes", 100.0 - 100.0 * ENOUGH);
        assert!(document.contains(&promise), "{promise}");
    }

    #[test]
    fn a_base_is_held_to_its_run_and_what_a_full_link_gives_does_not_change() {
        let run = PlannedRun {
            commit_bytes: 16 << 20,
            time: Nanos::from_secs(2),
            drain: Drain::new(&Plan::FULL, 16 << 20, None),
            simulation: Nanos::ZERO,
        };
        let path = Path {
            round_trip_us: 215.0,
            ser_us_per_kib: 8.85,
            op_us: 1.0,
            overhead_us: 50.0,
            capacity: Capacity { call_us: 1.0, us_per_kib: 8.2 },
            storage: Storage {
                sync_us: 4520.0,
                us_per_kib: 1.0,
                left_us_per_kib: 0.5,
                unhidden_us_per_kib: 0.0,
            },
        };
        let of = |call_bytes, outstanding| Configuration { subject: 0, call_bytes, outstanding };
        let (before, after) = (of(8 << 10, 1), of(1 << 20, 4));
        let predict = |path: &Path, of| run.predict(path, Server::Concurrent, of).mib_per_s;
        let measured = 0.8 * predict(&path, &before);
        let held = run.held_to(&path, Server::Concurrent, &before, measured);
        assert!((predict(&held, &before) / measured - 1.0).abs() < 0.01);
        assert!((predict(&held, &after) / predict(&path, &after) - 1.0).abs() < 0.01);
        assert_eq!(run.held_to(&path, Server::Concurrent, &before, f64::NAN), path);
    }

    #[test]
    fn a_server_stops_for_its_disk_only_where_that_is_known() {
        let cycle = Cycle { prop_us: 10.0, ser_us: 1.0, op_us: 5.0, block_us: 1.0 };
        let row = row(cycle, Bound::Server);
        let sentence_of = |forms| sentence(&row, &explained(row, forms));
        let forms = |stall_pct, concurrent_pct| Some(Forms { stall_pct, concurrent_pct });
        for known in [None, forms(2.2, 30.0)] {
            assert!(sentence_of(known).contains("stops for its disk."), "{}", sentence_of(known));
        }
        let unknown = sentence_of(forms(2.2, 3.0));
        assert!(unknown.contains("whether it stops for its disk does not show"), "{unknown}");
    }

    #[test]
    fn a_term_dominates_when_it_is_half_of_the_cycle() {
        let sentence_of = |prop_us, block_us| {
            let cycle = Cycle { prop_us, ser_us: 20.0, op_us: 20.0, block_us };
            let row = row(cycle, Bound::Cycle(cycle.dominating()));
            sentence(&row, &explained(row, None))
        };
        assert!(
            sentence_of(160.0, 0.0).contains("propagation dominates: 80 % of each cycle of 200 us")
        );
        assert!(sentence_of(0.0, 160.0).contains("storage dominates: 80 %"));
        let cycle = Cycle { prop_us: 160.0, ser_us: 20.0, op_us: 20.0, block_us: 0.0 };
        let row = row(cycle, Bound::Cycle(Term::Prop));
        let off = |measured_mib_per_s| {
            let row = Row { measured_mib_per_s, ..row };
            sentence(&row, &explained(row, None))
        };
        assert!(off(Some(4.0)).contains("is not known: the model is +150 % off"), "{}", off(None));
        assert!(off(Some(8.0)).contains("dominates") && off(None).contains("dominates"));
        // The cycle was 1.4 times as long: what is not known of it is more than processing.
        let cycle = Cycle { prop_us: 20.0, ser_us: 20.0, op_us: 55.0, block_us: 5.0 };
        let prediction = Prediction { cycle, bound: Bound::Cycle(Term::Op), ..row.prediction };
        let most = Row { prediction, measured_mib_per_s: Some(10.0 / 1.4), ..row };
        let text = sentence(&most, &explained(most, None));
        let of = "no term dominates; the largest is processing: 55 % of each cycle of 100 us of \
                  the model (140 us were measured)";
        assert!(text.contains(of), "{text}");
        let even = sentence_of(30.0, 30.0);
        assert!(even.contains("no term dominates; the largest is"), "{even}");
        assert!(!even.contains("wait for the disk,") && !even.contains("while link"), "{even}");
    }

    #[test]
    fn forms_differ_by_more_than_the_noise_and_their_own_error_only() {
        let forms = |stall_pct, concurrent_pct| Forms { stall_pct, concurrent_pct };
        assert_eq!(forms(4.0, 9.0).better(), Server::Stall);
        assert!(forms(4.0, 9.0).differ(Some(3.0)) && !forms(4.0, 9.0).differ(Some(6.0)));
        assert_eq!(forms(9.0, 9.0).better(), Server::Concurrent);
        assert!(!forms(9.0, 9.5).differ(Some(0.0)) && !forms(9.0, 17.0).differ(Some(0.0)));
        // A store in memory on a busy machine, and one repetition, of which the noise is not known.
        assert!(!forms(2.2, 3.0).differ(Some(0.1)) && !forms(0.3, 3.0).differ(None));
        assert!(forms(0.3, 3.0).differ(Some(0.1)) && forms(2.2, 30.0).differ(None));
    }
}
