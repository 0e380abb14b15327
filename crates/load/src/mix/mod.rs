//! A mix of operations at the wire, as the SFS benchmarks have it: the generator.
//!
//! - [`table`]: the named mixes, and how sure we are of them.
//! - [`listing`]: mixes that are written in files.
//! - [`step`]: which operation comes next, and on which file.
//! - [`arrivals`]: when it is meant to start.
//! - `perform`: the call itself, through the production client.
//! - `generator`: starts them, and counts.
//! - [`outcome`]: what came of it, of one generator or of several together; [`effort`]: what that
//!   cost the generator.
//!
//! An open loop starts operations by a schedule, whatever the server does, and counts from when one
//! was meant to start. A closed loop keeps a number of them outstanding, in all or at each session,
//! and finds what a server can do. Both run in real time and in worlds.
//!
//! Every operation is one call, on one of the sessions. A status that was not expected
//! counts as failed; a call without an answer ends the run, and what came before stays.

pub mod arrivals;
pub mod effort;
mod generator;
pub mod listing;
pub mod operation;
pub mod outcome;
mod perform;
pub mod step;
pub mod table;
mod text;

use client::error::Error as ClientError;
use client::session::Session;
use net::clock::Clock;
use perf::units::Nanos;

pub use arrivals::Arrivals;
pub use operation::Operation;
pub use outcome::Outcome;
pub use table::Mix;

use self::generator::Generator;
use crate::error::Error;
use crate::fileset::FileSet;

/// When operations start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Load {
    /// By a schedule. Over `outstanding_max`, which bounds what a server that does not keep up can
    /// cost us, an operation waits, and starts late. What could not start until as long after the
    /// end as the run was, is given up. The schedule begins later by `phase` of its mean distance:
    /// so those who share a load take turns.
    Open { arrivals: Arrivals, per_s: f64, phase: f64, outstanding_max: usize },
    /// One as soon as another is answered, on the sessions in turn: they are connections of one
    /// caller.
    Closed { outstanding: usize },
    /// A closed loop at each session, whatever the others wait for: sessions are callers of their
    /// own.
    ClosedEach { outstanding: usize },
}

/// A run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Plan {
    pub mix: Mix,
    pub load: Load,
    /// Runs before anything counts.
    pub warm_up: Nanos,
    pub time: Nanos,
    pub seed: u64,
}

/// Operations of a closed loop, which are as many as the server answers: a guess, so long that what
/// is drawn is as good as independent.
const CLOSED_OPERATIONS: usize = 1 << 16;

impl Plan {
    /// About how many operations the run has, with its warm-up.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "saturates")]
    fn operations(&self) -> usize {
        match self.load {
            Load::Open { per_s, .. } => {
                ((self.warm_up + self.time).as_secs_f64() * per_s).ceil() as usize
            }
            Load::Closed { .. } | Load::ClosedEach { .. } => CLOSED_OPERATIONS,
        }
    }
}

/// A run that may have ended before its end.
#[derive(Clone, Debug)]
pub struct Ran {
    /// What came until then; its span is that of what was measured.
    pub outcome: Outcome,
    /// The call without an answer that ended it.
    pub broken: Option<ClientError>,
}

/// Runs the mix over these sessions, which are on the same server, with these files.
///
/// # Errors
/// A call without an answer, no sessions, or a mix without operations.
pub async fn run(
    clock: &Clock,
    sessions: &[Session],
    files: &mut FileSet,
    plan: &Plan,
) -> Result<Outcome, Error> {
    let ran = run_partly(clock, sessions, files, plan).await?;
    match ran.broken {
        None => Ok(ran.outcome),
        Some(error) => Err(error.into()),
    }
}

/// As [`run`], and keeps what came before a call had no answer.
///
/// # Errors
/// No sessions, no timer, or a mix without operations.
pub async fn run_partly(
    clock: &Clock,
    sessions: &[Session],
    files: &mut FileSet,
    plan: &Plan,
) -> Result<Ran, Error> {
    Generator::new(clock, sessions, files, plan)?.run(plan.load).await
}
