//! `nfskit study`: probe, measure, explain, predict and apply, report.

pub(crate) mod explain;
pub(crate) mod models;
mod outcome;
mod record;
mod report;
pub(crate) mod verdict;

use std::fs;
use std::path::Path;

use client::mount::{self, Mounted};
use client::session::{Credential, Session};
use client::url::Target;
use load::cpu::Neighbours;
use load::probe::local::{self, Ceiling};
use load::scratch::Scratch;
use load::study::{self as sweep, Plan, Step, Subject};
use net::clock::Clock;
use net::shape::Shape;
use net::shape::profile::Profile;
use perf::model::transaction::Server;
use perf::record::{Durability, Warning};
use perf::stats::Sample;
use perf::units::Nanos;
use server::store::Medium;

use self::explain::{Explanation, PlannedRun};
use self::outcome::{LocalFindings, Outcome, TargetInfo};
use crate::apart::apart;
use crate::args::{self, CommitMode, Verbosity};
use crate::emulated;
use crate::exit::Failure;
use crate::output::{self, Bars};
use crate::served::{Embedded, Interrupts};
use crate::shell;

/// Runs the command.
pub(crate) fn run(args: &args::Study, verbosity: Verbosity) -> Result<(), Failure> {
    fs::create_dir_all(&args.out).map_err(|cause| output::cannot_write(&args.out, &cause))?;
    output::check([&args.json])?;
    let outcome = net::runtime::block_on(measure(args, verbosity))
        .map_err(|cause| Failure::environment(cause, "raise the limit of open files"))??;
    let record = record::record(&outcome);
    let report = report::report(&outcome, &record);
    let file = |name: &str, text: &str| output::write(&args.out.join(name), text);
    file("run.json", &record.to_json_pretty())?;
    file("calls.csv", &record::calls_csv(&outcome))?;
    file("report.html", &::report::html(&report))?;
    if output::prints_text(verbosity, [&args.json]) {
        let place = args.out.join("report.html");
        let summary = ::report::summary(&report, 96);
        output::print(&format!("{summary}{}\n", place.display()))?;
    }
    match &args.json {
        Some(json) => output::write(json, &record.to_json_pretty()),
        None => Ok(()),
    }
}

/// Everything but the report: until done, or failed, or interrupted; the scratch directory is gone
/// in any case.
async fn measure(args: &args::Study, verbosity: Verbosity) -> Result<Outcome, Failure> {
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
    args: &args::Study,
    verbosity: Verbosity,
    interrupts: &mut Interrupts,
) -> Result<Outcome, Failure> {
    let (_temporary, dir) = match &args.store {
        Some(dir) => (None, dir.clone()),
        None => {
            let made = tempfile::Builder::new().prefix("nfskit-").tempdir().map_err(|cause| {
                Failure::environment(
                    format!("cannot make a temporary directory: {cause}"),
                    "TMPDIR=DIR, or --store DIR",
                )
            })?;
            let dir = made.path().to_owned();
            (Some(made), dir)
        }
    };
    let usual = || Profile::named(DEFAULT_LINK).unwrap_or_default();
    let link = args.link.clone().unwrap_or_else(usual);
    let stall = Embedded::start(&dir, CommitMode::Stall, 1)?;
    let concurrent = Embedded::start(&dir, CommitMode::Concurrent, 256)?;
    let subject = |server, embedded: &Embedded| {
        let (target, options) = embedded.reach(args.reply_limit, link.clone().into());
        Reached::new(clock, Some(server), &target, options)
    };
    let subjects = [subject(Server::Stall, &stall), subject(Server::Concurrent, &concurrent)];
    let info = TargetInfo {
        kind: "embedded",
        url: None,
        path: Some(dir.display().to_string()),
        link: link.to_string(),
        link_mib_per_s: link.mib_per_s(),
        durability: durability(concurrent.medium),
        is_on_this_host: false,
        read_bytes_max: 0,
        write_bytes_max: 0,
        subjects: vec!["stall, 1 thread", "concurrent"],
    };
    let attempt = Attempt { clock, args, link, subjects: &subjects, dir: Some(&dir) };
    attempt.in_scratch(info, verbosity, interrupts).await
}

/// A server there runs on our processors: it is no neighbour.
fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
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
    args: &args::Study,
    target: &Target,
    verbosity: Verbosity,
    interrupts: &mut Interrupts,
) -> Result<Outcome, Failure> {
    let link = args.link.clone().unwrap_or_default();
    let subjects =
        [Reached::new(clock, None, target, options(target, args.reply_limit, link.clone().into()))];
    let info = TargetInfo {
        kind: "server",
        url: Some(target.to_string()),
        path: None,
        link: link.to_string(),
        link_mib_per_s: link.mib_per_s(),
        // As the server answers; looked at again when it is known what a COMMIT costs.
        durability: Durability::Stable,
        is_on_this_host: is_loopback(&target.host),
        read_bytes_max: 0,
        write_bytes_max: 0,
        subjects: vec!["server"],
    };
    let attempt = Attempt { clock, args, link, subjects: &subjects, dir: None };
    attempt.in_scratch(info, verbosity, interrupts).await
}

/// Makes a scratch directory on a server, works in it, and removes it, however the work ends:
/// done, failed, or interrupted. `plain` is the server without an emulated link.
pub(crate) async fn in_scratch<T>(
    plain: &Reached,
    interrupts: &mut Interrupts,
    work: impl AsyncFnOnce(&Scratch) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let held = Held::make(plain, interrupts).await?;
    let outcome = tokio::select! {
        biased;
        () = interrupts.next() => Err(Failure::interrupted()),
        outcome = work(&held.scratch) => outcome,
    };
    held.clear(plain, REMOVE_LIMIT, outcome).await
}

/// A scratch directory, and the connection that is kept aside for its removal.
#[derive(Debug)]
pub(crate) struct Held {
    session: Session,
    pub(crate) scratch: Scratch,
}

impl Held {
    /// Makes a directory of a name that nobody else has.
    pub(crate) async fn make(
        plain: &Reached,
        interrupts: &mut Interrupts,
    ) -> Result<Self, Failure> {
        let session = tokio::select! {
            biased;
            () = interrupts.next() => return Err(Failure::interrupted()),
            session = plain.connect() => session?,
        };
        // An interrupt must not lose the directory between its making and our knowing of it.
        let tag = format!("{:x}-{}", plain.clock.since_1970().as_nanos(), std::process::id());
        let name = Scratch::name_for(&tag);
        match Scratch::create(&session, &name).await {
            Ok(scratch) => Ok(Self { session, scratch }),
            Err(error) => Err(not_made(plain, &name, error).await),
        }
    }

    /// Removes it within this time. What was to be told is told, and what is left behind.
    pub(crate) async fn clear<T>(
        self,
        plain: &Reached,
        limit: Nanos,
        outcome: Result<T, Failure>,
    ) -> Result<T, Failure> {
        let Self { session, scratch } = self;
        let removed = plain.clock.within(limit, remove(&session, plain, &scratch)).await;
        match (outcome, removed) {
            (outcome, Ok(Ok(()))) => outcome,
            (Ok(_), Ok(Err(failure))) => Err(failure.and(left_behind(scratch.name()))),
            (Ok(_), Err(elapsed)) => {
                let failure = Failure::environment(elapsed, "the server's log");
                Err(failure.and(left_behind(scratch.name())))
            }
            (Err(failure), _) => Err(failure.and(left_behind(scratch.name()))),
        }
    }
}

/// The failure of a MKDIR. If the server did not say that it failed, it may have succeeded: then
/// the directory is looked for and removed over a new connection.
async fn not_made(plain: &Reached, name: &str, error: client::error::Error) -> Failure {
    let refused = error.status().is_some();
    let failure = Failure::from(error);
    if refused {
        return failure;
    }
    let look = async {
        let session = plain.connect().await?;
        match Scratch::find(&session, name).await? {
            Some(scratch) => scratch.remove(&session).await,
            None => Ok(()),
        }
    };
    match plain.clock.within(REMOVE_LIMIT, look).await {
        Ok(Ok(())) => failure,
        _ => failure.and(left_behind(name)),
    }
}

/// How long a directory of a few files may take to be removed.
pub(crate) const REMOVE_LIMIT: Nanos = Nanos::from_secs(20);

/// Over the connection that was kept aside, or a new one if that broke.
async fn remove(session: &Session, subject: &Reached, scratch: &Scratch) -> Result<(), Failure> {
    if scratch.remove(session).await.is_ok() {
        return Ok(());
    }
    let session = subject.connect().await?;
    Ok(scratch.remove(&session).await?)
}

fn left_behind(name: &str) -> String {
    format!("the scratch directory {name} could not be removed")
}

struct Attempt<'a> {
    clock: &'a Clock,
    args: &'a args::Study,
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
    ) -> Result<Outcome, Failure> {
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
    ) -> Result<Outcome, Failure> {
        let plan = if self.args.quick { Plan::QUICK } else { Plan::FULL };
        let started = load::environment::rfc3339(self.clock);
        let neighbours = Neighbours::watch(self.clock.now());
        let mut progress = |step: Step, share: f64| bars.show(step_name(step), share);
        progress(Step::Probe, 0.0);
        let emulator = emulated::calibrate(self.clock, &self.link).await?;
        // Before anything else is written: a device that is still busy with hundreds of MiB syncs
        // slowly.
        let block_us = match self.dir {
            Some(dir) => Some(local::block_us(self.clock, dir, LOCAL_TRIALS)?),
            None => None,
        };
        let mut study = sweep::Study::begin(self.clock, plan, self.subjects, scratch).await?;
        let file_bytes = study.file_bytes();
        let local = match self.dir {
            Some(dir) => Some(Ceiling::prepare(dir, file_bytes)?),
            None => None,
        };
        let mut ceilings = Vec::new();
        study.warm_up().await?;
        let commit_bytes = study.commit_bytes();
        study.probe(&mut progress).await?;
        let measured = study.sweep(&mut progress).await?;
        let findings = study.findings()?;
        let known: Vec<Option<Server>> = self.subjects.iter().map(Subject::server).collect();
        let sizes = study.call_bytes();
        let planned = PlannedRun {
            commit_bytes,
            time: plan.run_time,
            drain: study.drain(),
            simulation: if self.args.quick { SIMULATION_QUICK } else { SIMULATION },
        };
        let (explanation, findings, measured) = apart(move || {
            let found = Explanation::new(planned, &findings, &known, &sizes, &measured);
            (found, findings, measured)
        })
        .await?;
        let applied = if self.subjects.len() > 1 {
            let (before, after) = (explanation.before, explanation.after);
            let ceiling =
                || measure_ceiling(self.clock, local.as_ref(), commit_bytes, &mut ceilings);
            Some(study.apply(before, after, ceiling, &mut progress).await?)
        } else {
            None
        };
        let local = match (block_us, Sample::new(ceilings)) {
            (Some(block_us), Ok(sample)) => Some(LocalFindings {
                block_us,
                ceiling: sample.median_estimate(),
                trials: LOCAL_TRIALS,
                ceilings: sample.n(),
            }),
            _ => None,
        };
        (info.read_bytes_max, info.write_bytes_max) = study.transfer_bytes_max();
        let mut outcome = Outcome {
            plan,
            started,
            command: shell::own(),
            target: info,
            findings,
            local,
            measured,
            explanation,
            applied,
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

/// One pass over the directory's own file.
fn measure_ceiling(
    clock: &Clock,
    local: Option<&Ceiling>,
    commit_bytes: u64,
    ceilings: &mut Vec<f64>,
) -> Result<(), load::error::Error> {
    if let Some(ceiling) = local {
        ceilings.push(ceiling.measure(clock, commit_bytes)?);
    }
    Ok(())
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

/// A server, and how to connect to it.
#[derive(Clone, Debug)]
pub(crate) struct Reached {
    clock: Clock,
    server: Option<Server>,
    target: Target,
    options: mount::Options,
}

impl Reached {
    pub(crate) fn new(
        clock: &Clock,
        server: Option<Server>,
        target: &Target,
        options: mount::Options,
    ) -> Self {
        Self { clock: clock.clone(), server, target: target.clone(), options }
    }

    /// The same server, with nothing emulated on the way.
    fn without_link(&self) -> Self {
        let options = mount::Options { links: Shape::default(), ..self.options.clone() };
        Self { options, ..self.clone() }
    }
}

impl Subject for Reached {
    fn server(&self) -> Option<Server> {
        self.server
    }

    async fn connect(&self) -> Result<Session, client::error::Error> {
        let Mounted { session, .. } =
            mount::mount(&self.clock, &self.target, &self.options).await?;
        Ok(session)
    }
}

/// Who we are, how long we wait, and the link.
pub(crate) fn options(target: &Target, reply_limit: Nanos, links: Shape) -> mount::Options {
    let uid = target.uid.unwrap_or_else(|| rustix::process::getuid().as_raw());
    let gid = target.gid.unwrap_or_else(|| rustix::process::getgid().as_raw());
    let machine_name = rustix::system::uname().nodename().to_string_lossy().into_owned();
    mount::Options {
        credential: Credential { machine_name, uid, gid, gids: Vec::new() },
        connect_limit: mount::Options::CONNECT_LIMIT,
        reply_limit,
        links,
        persistence: None,
        private: None,
    }
}

fn warnings(outcome: &Outcome) -> Vec<Warning> {
    let mut warnings = Vec::new();
    let mut warn = |code: &str, text: String, try_: &str| {
        warnings.push(Warning::new(code, &text, try_));
    };
    if outcome.target.durability == Durability::Memory {
        match outcome.local {
            Some(_) => warn(
                "memory",
                "the directory lies in memory: nothing that was measured survives a crash"
                    .to_owned(),
                "--store DIR on a disk",
            ),
            None => warn(
                "free_commits",
                "making data stable costs this server nothing: it keeps them in memory, or its \
                 storage has a stable cache; durability is recorded as memory"
                    .to_owned(),
                "the server's export options (async) and where its files lie",
            ),
        }
    }
    let repeats = outcome.repeats();
    if repeats < 3 {
        warn(
            "few_repeats",
            format!("each configuration ran {repeats} time(s): there is little spread to see"),
            "without --quick",
        );
    }
    if let Some(share) = outcome.neighbours_share
        && share > crate::records::NEIGHBOURS_SHARE_MAX
        && !outcome.target.is_on_this_host
    {
        warn(
            "busy_machine",
            format!("others used {:.0} % of the processors during the run", 100.0 * share),
            "again when the machine is quiet",
        );
    }
    let (gain, errors) = (outcome.gain(), &outcome.explanation.errors);
    let below = explain::median(errors.below.clone());
    if gain.verdict() == "missed" || below > 10.0 {
        warn(
            "model_error",
            format!(
                "the gain predicted is {}, and the model {}: something is not in it, or changed \
                 during the run",
                gain.sentence(),
                errors.sentence()
            ),
            "again on a quieter machine; look for the windows that are off in the report",
        );
    }
    if let Some(emulator) = outcome.emulator
        && !emulator.is_good()
    {
        warn(
            "late_timers",
            format!("the emulated link's {emulator}"),
            "a quieter machine, or one with more processors",
        );
    }
    let efficiency = outcome.efficiency_of_limit();
    if efficiency < 0.9 {
        warn(
            "below_limit",
            format!("the best window reached {:.0} % of the limit", 100.0 * efficiency),
            "the parameters in the report: which stage is full before the limit is reached",
        );
    }
    warnings
}
