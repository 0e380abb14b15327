//! `nfskit study`: probe, measure, explain, predict and apply, report.

pub mod args;
mod logged;
mod outcome;
mod record;
pub(crate) mod report;

use std::fs;
use std::path::Path;

use ::report::StudyReport;
use client::url::Target;
use harness::apart::apart;
use harness::emulated;
use harness::exit::Failure;
use harness::local;
use harness::logged::Pair;
use harness::output::{self, Bars};
use harness::scratch::in_scratch;
use harness::served::{CommitMode, Embedded};
use harness::shell;
use harness::signals::Interrupts;
use harness::target::{self, Reached};
use harness::verbosity::Verbosity;
use load::cpu::Neighbours;
use load::probe::bare_directory::{Ceiling, block_us};
use load::scratch::Scratch;
use load::study::{self as sweep, Measured, Plan, Step, Subject};
use net::clock::Clock;
use net::runtime::block_on;
use net::shape::profile::Profile;
use perf::model::transaction::{Path as NfsPath, Server};
use perf::record::{Durability, Run as Record, Warning};
use perf::stats::{Estimate, Sample};
use perf::units::Nanos;
use perf::words::counted;
use server::store::Medium;
use tempfile::TempDir;

use self::args::Study;
use self::logged::Logged;
use self::outcome::{LocalFindings, ServerStudy, TargetInfo};
use crate::explain::{Explanation, PlannedRun, counted_as};

/// Runs the command.
pub fn run(args: &Study, verbosity: Verbosity) -> Result<(), Failure> {
    if let Some(dir) = &args.dir {
        return crate::directory::run(args, dir, verbosity);
    }
    prepare(args)?;
    let outcome = block_on(measure(args, verbosity)).map_err(Failure::resources)??;
    let record = record::record(&outcome);
    let report = report::report(&outcome, &record);
    written(args, verbosity, &record, &report, &record::calls_csv(&outcome))
}

/// Makes the place of a study's files, before anything is measured.
pub(crate) fn prepare(args: &Study) -> Result<(), Failure> {
    fs::create_dir_all(&args.out).map_err(|cause| output::cannot_write(&args.out, &cause))?;
    let files = FILES.map(|name| Some(args.out.join(name)));
    output::check(files.iter().chain([&args.json]), [])
}

/// What a study leaves in its place.
const FILES: [&str; 3] = ["run.json", "calls.csv", "report.html"];

/// Writes a study's three files, and says or writes what was requested besides. One that cannot be
/// written loses none of the others.
pub(crate) fn written(
    args: &Study,
    verbosity: Verbosity,
    record: &Record,
    report: &StudyReport,
    calls_csv: &str,
) -> Result<(), Failure> {
    let json = record.to_json_pretty();
    let texts = [&json, calls_csv, &::report::html(report)];
    let file = |at: usize| output::write(&args.out.join(FILES[at]), texts[at]);
    let [run, calls, page] = [0, 1, 2].map(file);
    let printed = match output::prints_text(verbosity, [&args.json]) {
        true => {
            let place = args.out.join("report.html");
            let summary = ::report::summary(report, 96);
            output::print(&format!("{summary}{}\n", place.display()))
        }
        false => Ok(()),
    };
    let json = output::write_to(&args.json, || json.clone());
    run.and(calls).and(page).and(printed).and(json)
}

/// Everything but the report: until done, or failed, or interrupted; the scratch directory is gone
/// in any case.
async fn measure(args: &Study, verbosity: Verbosity) -> Result<ServerStudy, Failure> {
    let mut interrupts = Interrupts::catch()?;
    let clock = Clock::real();
    match &args.target {
        Some(target) => existing(&clock, args, target, verbosity, &mut interrupts).await,
        None => embedded(&clock, args, verbosity, &mut interrupts).await,
    }
}

/// The embedded server, once stalling and once not, on one directory.
async fn embedded(
    clock: &Clock,
    args: &Study,
    verbosity: Verbosity,
    interrupts: &mut Interrupts,
) -> Result<ServerStudy, Failure> {
    let made;
    let dir = match &args.store {
        Some(dir) => dir.as_path(),
        None => {
            made = temporary()?;
            made.path()
        }
    };
    let usual = || Profile::named(DEFAULT_LINK).unwrap_or_default();
    let link = args.link.clone().unwrap_or_else(usual);
    let stall = Embedded::start(dir, CommitMode::Stall, 1)?;
    let concurrent = Embedded::start(dir, CommitMode::Concurrent, 256)?;
    let subject = |server, embedded: &Embedded| {
        let (target, options) = embedded.reach(args.reply_limit, link.clone().into());
        Reached::new(clock, Some(server), &target, options)
    };
    let subjects = [subject(Server::Stall, &stall), subject(Server::Concurrent, &concurrent)];
    let info = TargetInfo {
        path: Some(dir.display().to_string()),
        durability: durability(concurrent.medium),
        ..TargetInfo::new("embedded", &link, &["stall, 1 thread", "concurrent"])
    };
    let attempt = Attempt { clock, args, link, subjects: &subjects, dir: Some(dir) };
    attempt.in_scratch(info, verbosity, interrupts).await
}

fn temporary() -> Result<TempDir, Failure> {
    local::private(None, "TMPDIR=DIR, or --store DIR")
}

fn durability(medium: Medium) -> Durability {
    match medium {
        Medium::Memory => Durability::Memory,
        Medium::Stable => Durability::Stable,
    }
}

const DEFAULT_LINK: &str = "lan-1g";

/// Somebody's server.
async fn existing(
    clock: &Clock,
    args: &Study,
    target: &Target,
    verbosity: Verbosity,
    interrupts: &mut Interrupts,
) -> Result<ServerStudy, Failure> {
    let link = args.link.clone().unwrap_or_default();
    let options = target::options(target, args.reply_limit, link.clone().into());
    let subjects = [Reached::new(clock, None, target, options)];
    let info = TargetInfo {
        url: Some(target.to_string()),
        // It runs on our processors: it is no neighbour.
        is_on_this_host: target::is_loopback(&target.host),
        ..TargetInfo::new("server", &link, &["server"])
    };
    let attempt = Attempt { clock, args, link, subjects: &subjects, dir: None };
    attempt.in_scratch(info, verbosity, interrupts).await
}

struct Attempt<'a> {
    clock: &'a Clock,
    args: &'a Study,
    link: Profile,
    subjects: &'a [Reached],
    dir: Option<&'a Path>,
}

impl Attempt<'_> {
    /// Studies in a scratch directory of the last subject's.
    async fn in_scratch(
        &self,
        info: TargetInfo,
        verbosity: Verbosity,
        interrupts: &mut Interrupts,
    ) -> Result<ServerStudy, Failure> {
        let plain = self.subjects[self.subjects.len() - 1].without_link();
        let mut bars = Bars::new(verbosity);
        let outcome = in_scratch(&plain, interrupts, async |scratch: &Scratch| {
            self.study(info, scratch, &mut bars).await
        })
        .await;
        bars.clear();
        outcome
    }

    async fn study(
        &self,
        mut info: TargetInfo,
        scratch: &Scratch,
        bars: &mut Bars,
    ) -> Result<ServerStudy, Failure> {
        let plan = if self.args.quick { Plan::QUICK } else { Plan::FULL };
        let started = load::environment::rfc3339(self.clock);
        let neighbours = Neighbours::watch(self.clock.now());
        let mut progress = |step: Step, share: f64| bars.show(step_name(step), share);
        progress(Step::Probe, 0.0);
        let emulator = emulated::calibrate(self.clock, &self.link).await?;
        // Before anything else is written: a device that is still busy with hundreds of MiB syncs
        // slowly.
        let block_us = self.dir.map(|dir| block_us(self.clock, dir, LOCAL_TRIALS)).transpose()?;
        // A log that cannot be made costs nobody the time of a study.
        let pair = self.pair()?;
        let mut study = sweep::Study::begin(self.clock, plan, self.subjects, scratch).await?;
        let file_bytes = study.file_bytes();
        let ceiling = self.dir.map(|dir| Ceiling::prepare(dir, file_bytes)).transpose()?;
        study.warm_up().await?;
        let commit_bytes = study.commit_bytes();
        study.probe(&mut progress).await?;
        let measured = study.sweep(&mut progress).await?;
        let findings = study.findings()?;
        let known: Vec<Option<Server>> = self.subjects.iter().map(Subject::server).collect();
        let sizes = study.call_bytes();
        let simulation = if self.args.quick { SIMULATION_QUICK } else { SIMULATION };
        let planned = PlannedRun::of_sweep(&study, &plan, simulation);
        let (explanation, findings, measured) = apart(move || {
            let found = Explanation::new(planned, &findings, &known, &sizes, &measured);
            (found, findings, measured)
        })
        .await?;
        let (applied, ceilings) =
            self.applied(&mut study, &explanation, ceiling.as_ref(), &mut progress).await?;
        let logged = self.logged(pair, &findings.path).await?;
        (info.read_bytes_max, info.write_bytes_max) = study.transfer_bytes_max();
        let mut outcome = ServerStudy {
            plan,
            started,
            command: shell::own(),
            target: info,
            findings,
            local: block_us.and_then(|block_us| LocalFindings::of(block_us, ceilings)),
            measured,
            explanation,
            applied,
            logged,
            file_bytes,
            commit_bytes,
            drain: planned.drain,
            emulator,
            neighbours_share: neighbours.share(self.clock.now()),
            warnings: Vec::new(),
        };
        if outcome.local.is_none() && outcome.commits_cost_nothing() {
            outcome.target.durability = Durability::Memory;
        }
        outcome.warnings = warnings(&outcome);
        Ok(outcome)
    }
}

impl Attempt<'_> {
    /// Before and after the change, where there are two servers; and the passes over the
    /// directory's own file in between.
    async fn applied(
        &self,
        study: &mut sweep::Study<'_, Reached>,
        explanation: &Explanation,
        ceiling: Option<&Ceiling>,
        progress: sweep::Progress<'_>,
    ) -> Result<(Option<(Measured, Measured)>, Vec<f64>), Failure> {
        let mut passes = Vec::new();
        let [_, _, ..] = self.subjects else { return Ok((None, passes)) };
        let commit_bytes = study.commit_bytes();
        let between = || {
            let pass = ceiling.map(|ceiling| ceiling.measure(self.clock, commit_bytes));
            passes.extend(pass.transpose()?);
            Ok(())
        };
        let Explanation { before, after, .. } = *explanation;
        let applied = study.apply(before, after, between, progress).await?;
        Ok((Some(applied), passes))
    }

    /// Stable WRITEs without a write log and with one, if that is requested.
    async fn logged(&self, pair: Option<Pair>, path: &NfsPath) -> Result<Option<Logged>, Failure> {
        let Some(pair) = pair else { return Ok(None) };
        let time = if self.args.quick { logged::TIME_QUICK } else { logged::TIME };
        let times = (self.args.reply_limit, time);
        logged::measure(self.clock, &pair, &self.link, times, path).await.map(Some)
    }

    /// Servers for that.
    fn pair(&self) -> Result<Option<Pair>, Failure> {
        let (Some(log), Some(dir)) = (&self.args.write_log, self.dir) else { return Ok(None) };
        Pair::start(dir, log, &local::tag(self.clock)).map(Some)
    }
}

impl LocalFindings {
    fn of(block_us: Estimate, ceilings: Vec<f64>) -> Option<Self> {
        let passes = Sample::new(ceilings).ok()?;
        let (ceiling, ceilings) = (passes.median_estimate(), passes.n());
        Some(Self { block_us, ceiling, trials: LOCAL_TRIALS, ceilings })
    }
}

const LOCAL_TRIALS: usize = 60;

/// How long worlds are run for beside what was measured.
const SIMULATION: Nanos = Nanos::from_secs(10);
const SIMULATION_QUICK: Nanos = Nanos::from_millis(1_500);

fn step_name(step: Step) -> &'static str {
    match step {
        Step::Probe => "1 probe the parts",
        Step::Measure => "2 measure sequential writes",
        Step::Apply => "4 apply the change",
    }
}

/// What is to be known of a study's numbers.
fn warnings(outcome: &ServerStudy) -> Vec<Warning> {
    let of_runs = [no_durability, few_repeats, unanswered_runs, busy_machine];
    let of_the_model = [model_error, log_error, late_timers, below_limit];
    of_runs.into_iter().chain(of_the_model).filter_map(|warning| warning(outcome)).collect()
}

fn no_durability(outcome: &ServerStudy) -> Option<Warning> {
    let is_memory = outcome.target.durability == Durability::Memory;
    let warning = || match outcome.local {
        Some(_) => Warning::new(
            "memory",
            "the directory lies in memory: nothing that was measured survives a crash",
            "--store DIR on a disk",
        ),
        None => Warning::new(
            "free_commits",
            "making data stable costs this server nothing: it keeps them in memory, or its storage \
             has a stable cache; durability is recorded as memory",
            "the server's export options (async) and where its files lie",
        ),
    };
    is_memory.then(warning)
}

fn few_repeats(outcome: &ServerStudy) -> Option<Warning> {
    let repeats = outcome.repeats();
    let times = counted(repeats as u64, "time");
    let text = format!("each configuration ran {times}: there is little spread to see");
    (repeats < 3).then(|| Warning::new("few_repeats", &text, "without --quick"))
}

fn unanswered_runs(outcome: &ServerStudy) -> Option<Warning> {
    let unanswered: usize = outcome.measured.iter().map(Measured::unanswered).sum();
    let runs: usize = outcome.measured.iter().map(|measured| measured.mib_per_s.len()).sum();
    let left_out = outcome.measured.iter().filter(|one| one.median().is_none()).count();
    let text = format!(
        "in {unanswered} of {runs} runs too little became stable in time: {}",
        counted_as(left_out, outcome.measured.len())
    );
    let advice = "without --quick; look for what the server's disk is busy with";
    (unanswered > 0).then(|| Warning::new("unanswered_runs", &text, advice))
}

fn busy_machine(outcome: &ServerStudy) -> Option<Warning> {
    let is_alone = !outcome.target.is_on_this_host;
    let busy = |share: &f64| *share > harness::records::NEIGHBOURS_SHARE_MAX && is_alone;
    let percent = 100.0 * outcome.neighbours_share.filter(busy)?;
    let text = format!("others used {percent:.0} % of the processors during the run");
    Some(Warning::new("busy_machine", &text, "again when the machine is quiet"))
}

fn model_error(outcome: &ServerStudy) -> Option<Warning> {
    let (gain, errors) = (outcome.gain(), &outcome.explanation.errors);
    let below = harness::records::median(errors.below.clone());
    let text = format!(
        "the gain predicted is {}, and the model {}: something is not in it, or changed during the \
         run",
        gain.sentence(),
        errors.sentence()
    );
    let advice = "again on a quieter machine; look for the windows that are off in the report";
    let is_off = gain.verdict() == "missed" || below > 10.0;
    is_off.then(|| Warning::new("model_error", &text, advice))
}

fn log_error(outcome: &ServerStudy) -> Option<Warning> {
    let text = outcome.logged.as_ref()?.missed()?;
    let advice = "again on a quieter machine, and without --quick: longer runs";
    Some(Warning::new("log_error", &text, advice))
}

fn late_timers(outcome: &ServerStudy) -> Option<Warning> {
    let emulator = outcome.emulator.filter(|emulator| !emulator.is_good())?;
    let text = format!("the emulated link's {emulator}");
    Some(Warning::new("late_timers", &text, "a quieter machine, or one with more processors"))
}

fn below_limit(outcome: &ServerStudy) -> Option<Warning> {
    let efficiency = outcome.efficiency_of_limit();
    let text = format!("the best window reached {:.0} % of the limit", 100.0 * efficiency);
    let advice = "the parameters in the report: which stage is full before the limit is reached";
    (efficiency < 0.9).then(|| Warning::new("below_limit", &text, advice))
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use harness::records;

    use super::*;

    #[test]
    fn a_file_that_cannot_be_written_loses_none_of_the_others() {
        let folder = tempfile::tempdir().unwrap();
        let (out, json) = (folder.path().join("out"), folder.path().join("json"));
        fs::create_dir_all(out.join("run.json")).unwrap();
        let args = ["study".as_ref(), "--out".as_ref(), out.as_os_str()];
        let args = args.into_iter().chain(["--json".as_ref(), json.as_os_str()]);
        let (args, record) = (Study::parse_from(args), records::computed(records::now()));
        let ended = written(&args, Verbosity::Quiet, &record, &StudyReport::default(), "calls\n");
        assert!(ended.unwrap_err().what().contains("run.json"));
        assert_eq!(fs::read_to_string(out.join("calls.csv")).unwrap(), "calls\n");
        for written in [out.join("report.html"), json] {
            assert!(!fs::read_to_string(&written).unwrap().is_empty(), "{}", written.display());
        }
    }
}
