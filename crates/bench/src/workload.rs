//! What a workload is: arguments, of which it makes a plan; a run; and its outputs.
//! In what order these come, where each output goes, and how a command ends is the same for all.

use std::path::PathBuf;

use harness::apart::apart;
use harness::busy;
use harness::exit::Failure;
use harness::output;
use harness::records;
use harness::served::worker_threads;
use harness::signals::Interrupts;
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use net::clock::Clock;
use perf::record::Run as Record;
use perf::units::{Instant, Nanos};
use serde_json::Value;

/// The arguments of a workload, with all that it does.
pub(crate) trait Workload {
    /// What the arguments ask for, and they go together.
    type Plan;
    /// What was measured.
    type Measured;
    /// # Errors
    /// Arguments that do not go together.
    fn plan(&self) -> Result<Self::Plan, Failure>;

    /// Where its outputs go.
    fn outputs(&self) -> Outputs<'_>;

    /// Files that it reads, or words that may name one.
    fn inputs(&self) -> Vec<PathBuf> {
        Vec::new()
    }

    /// Whether it wants all processors, where a client of ours sends from other threads than those
    /// that work; else one thread does everything.
    fn is_on_all_processors(&self) -> bool {
        false
    }

    /// Whether it checks, or reads what others have measured, and takes no times of its own.
    fn is_untimed(&self) -> bool {
        false
    }

    /// Whether another process reports what this one measures: then it ends without a word.
    fn is_reported_elsewhere(&self) -> bool {
        false
    }

    /// Measures. What it made elsewhere is gone afterwards, also when it fails or is interrupted.
    ///
    /// # Errors
    /// Nothing was measured.
    fn run(
        &self,
        plan: &Self::Plan,
        conditions: Conditions,
    ) -> impl Future<Output = Result<Outcome<Self::Measured>, Failure>>;

    /// For a terminal. Lines that have to be there while it runs are printed by `run`.
    fn table(&self, plan: &Self::Plan, measured: &Self::Measured, verbosity: Verbosity) -> String;

    /// One record or more.
    fn record(&self, _plan: &Self::Plan, _measured: &Self::Measured) -> Vec<Record> {
        Vec::new()
    }

    /// What `--json` has in place of records, where nothing was measured by this run.
    fn document(&self, _plan: &Self::Plan, _measured: &Self::Measured) -> Option<Value> {
        None
    }

    /// Every single observation, for `--csv`.
    fn csv(&self, _plan: &Self::Plan, _measured: &Self::Measured) -> String {
        String::new()
    }

    /// A report with figures, for `--html`.
    fn figure(&self, _plan: &Self::Plan, _measured: &Self::Measured) -> String {
        String::new()
    }

    /// # Errors
    /// A check or a goal failed, by what was measured.
    fn verdict(&self, _measured: Self::Measured) -> Result<(), Failure> {
        Ok(())
    }
}

/// What a workload runs with.
#[derive(Debug)]
pub(crate) struct Conditions {
    pub(crate) clock: Clock,
    /// Caught from before there is anything to clean up.
    pub(crate) interrupts: Interrupts,
    pub(crate) verbosity: Verbosity,
}

impl Conditions {
    /// Reads files, which may be pipes that nobody writes to, until an interrupt.
    ///
    /// # Errors
    /// As `work`, or interrupted.
    pub(crate) async fn read<T: Send + 'static>(
        mut self,
        work: impl FnOnce() -> Result<T, Failure> + Send + 'static,
    ) -> Result<T, Failure> {
        self.interrupts.or(async { apart(work).await? }).await
    }
}

/// What came of a run.
#[derive(Debug)]
pub(crate) struct Outcome<M> {
    /// Some of it, where it ended before its end; none, where there is nothing to report, which
    /// fails unless another process reports it.
    pub(crate) measured: Option<M>,
    /// What ended it before its end.
    pub(crate) failed: Option<Failure>,
}

impl<M> Outcome<M> {
    /// Everything was measured.
    pub(crate) fn whole(measured: M) -> Self {
        Self { measured: Some(measured), failed: None }
    }

    pub(crate) fn map<N>(self, of: impl FnOnce(M) -> N) -> Outcome<N> {
        Outcome { measured: self.measured.map(of), failed: self.failed }
    }

    /// What was measured until the run `ended`, if anything was. A run puts it where it stays when
    /// an interrupt drops the run.
    pub(crate) fn until(measured: Option<M>, ended: Result<(), Failure>) -> Self {
        Self { measured, failed: ended.err() }
    }
}

/// Options that name files, as every workload has them or not.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Outputs<'a> {
    pub(crate) json: &'a Option<PathBuf>,
    pub(crate) csv: &'a Option<PathBuf>,
    pub(crate) html: &'a Option<PathBuf>,
}

impl<'a> Outputs<'a> {
    /// The record alone.
    pub(crate) fn json(json: &'a Option<PathBuf>) -> Self {
        Self { json, csv: &None, html: &None }
    }
}

/// Runs the command.
///
/// # Errors
/// As it ends.
pub(crate) fn run<W: Workload>(work: &W, verbosity: Verbosity) -> Result<(), Failure> {
    match work.is_untimed() {
        true => planned(work, verbosity),
        false => busy::watched(verbosity, || planned(work, verbosity)),
    }
}

fn planned<W: Workload>(work: &W, verbosity: Verbosity) -> Result<(), Failure> {
    let plan = work.plan()?;
    let Outputs { json, csv, html } = work.outputs();
    output::check([json, csv, html], &work.inputs())?;
    let measuring = async {
        let (clock, interrupts) = (Clock::real(), Interrupts::catch()?);
        work.run(&plan, Conditions { clock, interrupts, verbosity }).await
    };
    let beginning = Beginning::now();
    let outcome = match work.is_on_all_processors() {
        true => net::runtime::block_on_threads(worker_threads().max(2), measuring),
        false => net::runtime::block_on(measuring),
    };
    let Outcome { measured, failed } = outcome.map_err(Failure::resources)??;
    let Some(measured) = measured else {
        return match failed {
            Some(failure) => Err(failure),
            None if work.is_reported_elsewhere() => Ok(()),
            None => Err(nothing()),
        };
    };
    let share = beginning.neighbours_share();
    let of = || beginning.begin(work.record(&plan, &measured), share);
    written(work, &plan, &measured, verbosity, (of, failed))?;
    work.verdict(measured)
}

/// What is known before a run, and stands in each of its records.
struct Beginning {
    clock: Clock,
    began: Instant,
    started: String,
    load_average: Option<[f64; 3]>,
    neighbours: Neighbours,
}

/// In less the system's ticks of 10 ms tell nothing of others.
const MEASURED_MIN: Nanos = Nanos::from_millis(200);

impl Beginning {
    fn now() -> Self {
        let clock = Clock::real();
        let began = clock.now();
        let load_average = load::environment::describe().load_average;
        let neighbours = Neighbours::watch(began);
        Self { clock, began, started: records::now(), load_average, neighbours }
    }

    /// Of the processors, what others have used since.
    fn neighbours_share(&self) -> Option<f64> {
        let now = self.clock.now();
        self.neighbours.share(now).filter(|_| now.since(self.began) >= MEASURED_MIN)
    }

    /// Records are made when the run is over, and begin when it began.
    fn begin(&self, mut records: Vec<Record>, share: Option<f64>) -> Vec<Record> {
        for record in &mut records {
            record.started.clone_from(&self.started);
            // What was computed and not measured has none.
            if record.environment.load_average.is_some() {
                record.environment.load_average = self.load_average;
                let is_known = record.metrics().contains_key("neighbours_share");
                records::neighbours(record, share.filter(|_| !is_known));
            }
        }
        records
    }
}

/// Writes all outputs of what was `measured` before the run was over, or `failed`. One that cannot
/// be written loses none of the others.
fn written<W: Workload>(
    work: &W,
    plan: &W::Plan,
    measured: &W::Measured,
    verbosity: Verbosity,
    (of, failed): (impl FnOnce() -> Vec<Record>, Option<Failure>),
) -> Result<(), Failure> {
    let Outputs { json, csv, html } = work.outputs();
    let csv_written = output::write_to(csv, || work.csv(plan, measured));
    let html_written = output::write_to(html, || match &failed {
        None => work.figure(plan, measured),
        Some(failure) => report::partial(&work.figure(plan, measured), failure.what()),
    });
    let document = json.as_ref().and_then(|_| work.document(plan, measured));
    let of_records = json.as_deref().filter(|_| document.is_none());
    let document_written = match document {
        Some(document) => output::write_to(json, || format!("{document:#}\n")),
        None => Ok(()),
    };
    let delivered = records::deliver(
        || work.table(plan, measured, verbosity),
        of,
        of_records,
        output::prints_text(verbosity, [json, csv, html]),
        failed,
    );
    delivered.and(csv_written).and(html_written).and(document_written)
}

/// What no output could show.
fn nothing() -> Failure {
    let what = "nothing was measured: the run was over before its first result";
    Failure::environment(what, "a longer run")
}

/// A list of workloads as a subcommand: the name and the arguments of each.
macro_rules! workloads {
    ($list:ident { $($name:ident($args:ty),)* }) => {
        #[derive(Debug, clap::Subcommand)]
        pub enum $list {
            $($name(Box<$args>),)*
        }

        impl $list {
            /// Runs the workload.
            ///
            /// # Errors
            /// As it ends.
            pub fn run(
                &self,
                verbosity: harness::verbosity::Verbosity,
            ) -> Result<(), harness::exit::Failure> {
                match self {
                    $(Self::$name(args) => $crate::workload::run(args.as_ref(), verbosity),)*
                }
            }
        }
    };
}
pub(crate) use workloads;

#[cfg(test)]
mod tests {
    use super::*;

    /// Measures nothing, and nothing fails.
    struct Hollow {
        is_reported_elsewhere: bool,
    }

    impl Workload for Hollow {
        type Plan = ();
        type Measured = ();

        fn plan(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn outputs(&self) -> Outputs<'_> {
            Outputs::json(&None)
        }

        fn is_reported_elsewhere(&self) -> bool {
            self.is_reported_elsewhere
        }

        async fn run(&self, (): &(), _: Conditions) -> Result<Outcome<()>, Failure> {
            Ok(Outcome { measured: None, failed: None })
        }

        fn table(&self, (): &(), (): &(), _: Verbosity) -> String {
            String::new()
        }
    }

    #[test]
    fn a_run_that_measured_nothing_does_not_end_as_if_it_had() {
        let ended =
            |is_reported_elsewhere| run(&Hollow { is_reported_elsewhere }, Verbosity::Normal);
        assert!(ended(false).unwrap_err().what().contains("nothing was measured"));
        assert!(ended(true).is_ok());
    }

    fn record(load_average: Option<[f64; 3]>) -> Record {
        let mut record = Record::new(perf::record::Tool::default(), "9999-12-31T00:00:00Z");
        record.environment.load_average = load_average;
        record
    }

    #[test]
    fn a_record_begins_when_its_run_did() {
        let beginning = Beginning::now();
        let begun = beginning.begin(vec![record(Some([9e9; 3])), record(None)], None);
        for record in &begun {
            assert_eq!(record.started, beginning.started);
        }
        let averages = |at: usize| begun[at].environment.load_average;
        assert_eq!((averages(0), averages(1)), (beginning.load_average, None));
    }

    #[test]
    fn a_busy_machine_is_in_every_record_of_what_was_measured() {
        let mut known = record(Some([0.0; 3]));
        known.metric("neighbours_share", 0.1, "");
        let records = vec![record(Some([0.0; 3])), known, record(None)];
        let begun = Beginning::now().begin(records, Some(0.8));
        let codes = begun.iter().map(|record| record.warnings.first().map(|one| &*one.code));
        assert_eq!(codes.collect::<Vec<_>>(), [Some("busy_machine"), None, None]);
        let shares = begun.iter().map(|record| record.value("neighbours_share"));
        assert_eq!(shares.collect::<Vec<_>>(), [Some(0.8), Some(0.1), None]);
    }

    /// Is interrupted when one of two runs is done.
    struct Interrupted {
        json: Option<PathBuf>,
    }

    impl Workload for Interrupted {
        type Plan = ();
        type Measured = u32;

        fn plan(&self) -> Result<(), Failure> {
            Ok(())
        }

        fn outputs(&self) -> Outputs<'_> {
            Outputs::json(&self.json)
        }

        async fn run(&self, (): &(), _: Conditions) -> Result<Outcome<u32>, Failure> {
            Ok(Outcome::until(Some(1), Err(Failure::interrupted())))
        }

        fn table(&self, (): &(), _: &u32, _: Verbosity) -> String {
            String::new()
        }

        fn record(&self, (): &(), runs: &u32) -> Vec<Record> {
            let mut record = record(None);
            record.metric("runs", f64::from(*runs), "");
            vec![record]
        }
    }

    #[test]
    fn what_was_measured_before_an_interrupt_is_recorded_as_partial() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("r.json");
        let ended = run(&Interrupted { json: Some(path.clone()) }, Verbosity::Quiet).unwrap_err();
        assert!(ended.is_interrupted() && ended.what().contains("is recorded"), "{ended:?}");
        let record = Record::from_json(&std::fs::read_to_string(path).unwrap()).unwrap();
        assert_eq!((record.value("runs"), &*record.warnings[0].code), (Some(1.0), "partial"));
    }
}
