//! A plan, carried out in a world: production clients and a production server, faults, and the
//! reference beside them.
//!
//! ```text
//!   plan --> clients (client.rs, data.rs, public.rs; access.rs) --links--> machine.rs: the server
//!              |  every outcome                                     ^
//!              v                                                    | fate.rs: faults
//!            reference            history.rs: what went wrong, when-'
//!              ^
//!              '-- walk.rs: a fresh client looks at everything in the end, and after a crash
//! ```
//!
//! Where all compete for the same names and files, `contest` takes the place of the clients and of
//! the walk.
//!
//! The first outcome that the reference does not allow ends the run.

mod access;
mod client;
pub mod contest;
mod data;
mod expected;
mod fate;
pub mod history;
mod machine;
mod public;
pub mod trace;
mod walk;

use std::collections::BTreeMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::str::FromStr;
use std::sync::Arc;

use ::client::files::Mistake;
use cache::medium::Memory;
use cache::{Cache, Geometry, Limits};
use net::clock::Clock;
use net::clock::world::World;
use parking_lot::Mutex;
use perf::units::Nanos;

use self::client::Actor;
use self::history::History;
use self::machine::Machine;
use self::trace::Trace;
use crate::plan::Plan;

/// What a local disk of a client keeps of files and directories: blocks as small as they can be,
/// and few.
fn on_disk(memory: &Memory, planted: Option<Planted>) -> Cache {
    let limits = Limits { bytes_max: 1 << 20, files_max: 8, ..Limits::default() };
    let (memory, geometry) = (memory.clone(), Geometry::of_reads_of(4096));
    match planted {
        Some(Planted::Cache(mistake)) => Cache::mistaken(memory, geometry, limits, mistake),
        _ => Cache::in_memory(memory, geometry, limits),
    }
}

/// Virtual time after the last step in which everything must have ended.
const PATIENCE: Nanos = Nanos::from_secs(24 * 3_600);

/// How long it takes until nothing is under way any more.
const QUIET: Nanos = Nanos::from_secs(120);

/// A loop without end is found, and made smaller, in seconds (guess); a plan's run takes less
/// altogether.
const POLLS_AT_ONCE_MAX: u64 = 2_000_000;

/// A mistake that is made on purpose, to see whether it is noticed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Planted {
    /// The server forgets what it has answered.
    ReplyCacheOff,
    /// The write verifier is the same after a crash.
    VerifierStays,
    /// A COMMIT is answered before the disk has it.
    CommitEarly,
    /// The drive says that it has synced when it has not.
    DriveLies,
    /// Clients make it; noticed where they compete.
    Client(Mistake),
    /// The cache on a client's disk makes it; noticed where clients are killed.
    Cache(cache::Mistake),
    /// A host has the locks of a file for each node by which it knows the file.
    LocksByNode,
}

/// How to carry a plan out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub planted: Option<Planted>,
    /// Keep a line for each thing that happens.
    pub is_verbose: bool,
}

/// What was not as the reference has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// In which way: two failures with the same words are taken to be the same.
    pub way: String,
    /// What was expected and seen, where and when.
    pub what: String,
}

/// What a run was like.
#[derive(Clone, Debug)]
pub struct Report {
    pub failure: Option<Failure>,
    /// The same for the same plan.
    pub digest: u64,
    /// Virtual time that has passed.
    pub span: Nanos,
    pub ops: u64,
    /// Faults that took place, by name.
    pub faults: BTreeMap<&'static str, u64>,
    pub lines: Vec<String>,
}

/// What all who take part know.
#[derive(Clone, Debug)]
pub(crate) struct Stage {
    pub(crate) clock: Clock,
    pub(crate) machine: Machine,
    pub(crate) history: Arc<History>,
    pub(crate) trace: Arc<Mutex<Trace>>,
    /// The public files, by their writers.
    pub(crate) public: Arc<Mutex<Vec<crate::reference::shared::Sessions>>>,
    /// What is done wrong on purpose.
    pub(crate) planted: Option<Planted>,
}

impl Planted {
    pub const ALL: [Self; 16] = [
        Self::ReplyCacheOff,
        Self::VerifierStays,
        Self::CommitEarly,
        Self::DriveLies,
        Self::Client(Mistake::OldAttributes),
        Self::Client(Mistake::ForgottenExcuses),
        Self::Client(Mistake::UncheckedEnds),
        Self::Client(Mistake::LateNames),
        Self::Client(Mistake::ErrorsReportedOnce),
        Self::Client(Mistake::CommitMakesState),
        Self::Client(Mistake::UnheardErrors),
        Self::Client(Mistake::OldBlocks),
        Self::Client(Mistake::OthersBlocks),
        Self::Client(Mistake::OldNames),
        Self::Cache(cache::Mistake::UncheckedBlocks),
        Self::LocksByNode,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ReplyCacheOff => "reply-cache-off",
            Self::VerifierStays => "verifier-kept",
            Self::CommitEarly => "commit-early",
            Self::DriveLies => "drive-lies",
            Self::Client(Mistake::OldAttributes) => "old-attributes",
            Self::Client(Mistake::ForgottenExcuses) => "forgotten-excuses",
            Self::Client(Mistake::UncheckedEnds) => "unasked-ends",
            Self::Client(Mistake::LateNames) => "late-names",
            Self::Client(Mistake::ErrorsReportedOnce) => "errors-told-once",
            Self::Client(Mistake::CommitMakesState) => "commit-makes-state",
            Self::Client(Mistake::UnheardErrors) => "unheard-errors",
            Self::Client(Mistake::OldBlocks) => "old-blocks",
            Self::Client(Mistake::OthersBlocks) => "others-blocks",
            Self::Client(Mistake::OldNames) => "old-names",
            Self::Cache(cache::Mistake::UncheckedBlocks) => "unchecked-blocks",
            Self::LocksByNode => "locks-by-node",
        }
    }

    /// The mistake of a client, if it is one.
    fn mistake(self) -> Option<Mistake> {
        match self {
            Self::Client(mistake) => Some(mistake),
            _ => None,
        }
    }

    /// Whether it shows where clients compete.
    pub fn is_of_contests(self) -> bool {
        matches!(self, Self::Client(_) | Self::LocksByNode)
    }

    /// Whether it shows where clients are killed.
    pub fn is_of_kills(self) -> bool {
        matches!(self, Self::Cache(_))
    }
}

impl FromStr for Planted {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|planted| planted.name() == name);
        found.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            format!("{name:?} is none of {names}")
        })
    }
}

impl Failure {
    pub(crate) fn new(way: impl Into<String>, what: impl Into<String>) -> Self {
        Self { way: way.into(), what: what.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.way, self.what)
    }
}

/// Carries a plan out.
pub fn run(plan: &Plan, options: Options) -> Report {
    let mut world = World::new();
    world.limit_polls_at_once(POLLS_AT_ONCE_MAX);
    let clock = world.clock();
    let trace = Arc::new(Mutex::new(Trace::new(options.is_verbose)));
    let history = Arc::new(History::default());
    let stage_of = || Stage {
        clock: clock.clone(),
        machine: Machine::new(&clock, plan, options.planted, &history),
        history: Arc::clone(&history),
        trace: Arc::clone(&trace),
        public: Arc::new(Mutex::new(vec![Default::default(); plan.clients.len()])),
        planted: options.planted,
    };
    let ended = catch_unwind(AssertUnwindSafe(|| {
        let stage = stage_of();
        let plan = plan.clone();
        world.run(async move { play(stage, plan).await })
    }));
    let failure = match ended {
        Ok(Ok(Ok(()))) => None,
        Ok(Ok(Err(failure))) => Some(failure),
        Ok(Err(stuck)) => Some(Failure::new("stuck", stuck.to_string())),
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
            Some(Failure::new("panic", text.unwrap_or("without words")))
        }
    };
    let span = clock.now().since(perf::units::Instant::EPOCH);
    let mut trace = trace.lock();
    trace.add(clock.now(), || format!("end: {failure:?}"));
    Report {
        failure,
        digest: trace.digest(),
        span,
        ops: trace.ops(),
        faults: history.counts(),
        lines: trace.take_lines(),
    }
}

async fn play(stage: Stage, plan: Plan) -> Result<(), Failure> {
    let limit = plan.span() + PATIENCE;
    let clock = stage.clock.clone();
    let played = async {
        match plan.is_contest() {
            true => contest::play(stage, plan).await,
            false => play_to_the_end(stage, plan).await,
        }
    };
    clock
        .within(limit, played)
        .await
        .unwrap_or_else(|elapsed| Err(Failure::new("endless", elapsed.to_string())))
}

async fn play_to_the_end(stage: Stage, plan: Plan) -> Result<(), Failure> {
    let mut actors = Vec::new();
    for number in 0..plan.clients.len() {
        actors.push(Actor::enter(&stage, &plan, number).await?);
    }
    let begun = stage.clock.now();
    let wires: Vec<_> = actors.iter().map(Actor::wires).collect();
    let acting = actors.iter_mut().map(|actor| actor.act(&plan, begun));
    let acting = futures_util::future::try_join_all(acting);
    let fate = fate::run(&stage, &plan, &wires, begun);
    let (acted, ()) = futures_util::future::join(acting, fate).await;
    acted?;
    let leaving = actors.iter_mut().map(Actor::leave);
    futures_util::future::try_join_all(leaving).await?;
    stage.machine.calm_down();
    stage.clock.sleep(QUIET).await;
    walk::compare(&stage, &plan, &mut actors, "the end").await?;
    stage.machine.lose_power().await;
    walk::compare(&stage, &plan, &mut actors, "the loss of power").await?;
    stage.machine.audit()
}
