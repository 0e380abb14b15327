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
mod failure;
mod fate;
pub mod history;
mod machine;
mod planted;
mod public;
mod stage;
pub mod trace;
mod walk;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use net::clock::world::World;
use parking_lot::Mutex;
use perf::units::Nanos;

use self::client::Actor;
pub use self::failure::Failure;
use self::history::History;
use self::machine::Machine;
pub use self::planted::Planted;
use self::stage::{QUIET, Stage};
use self::trace::Trace;
use crate::plan::Plan;

/// Virtual time after the last step in which everything must have ended.
const PATIENCE: Nanos = Nanos::from_secs(24 * 3_600);

/// A loop without end is found, and made smaller, in seconds (guess); a plan's run takes less
/// altogether.
const POLLS_AT_ONCE_MAX: u64 = 2_000_000;

/// How to carry a plan out.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    pub planted: Option<Planted>,
    /// Keep a line for each thing that happens.
    pub is_verbose: bool,
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
