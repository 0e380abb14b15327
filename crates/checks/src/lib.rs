//! The phases of a mount one by one against a server: how each went, how long it took, and where
//! one fails the likely causes (`doctor::reach`).
//!
//! - `walk.rs`: the phases in their order.
//! - `files.rs`: what is tried of files: attributes, a read, a write.
//! - `fault.rs`: what an error means.
//!
//! Every step has a limit ([`Options::limit`]), and so has the whole ([`TOTAL_MAX`]): a server that
//! hangs is told as one, and holds nobody up.

mod fault;
mod files;
mod walk;

use doctor::reach::{Answering, Cause, Phase};
use perf::units::Nanos;
use serde::Serialize;

pub use self::walk::walk;

/// The time for all phases: those that are left are skipped.
pub const TOTAL_MAX: Nanos = Nanos::from_secs(60);

/// Why a phase was skipped that comes after one that failed.
pub const AFTER_A_FAILURE: &str = "a phase before it failed";

/// How to walk.
#[derive(Clone, Debug)]
pub struct Options {
    /// Who calls, and how long each step may take.
    pub mount: client::mount::Options,
    pub limit: Nanos,
    /// Makes a scratch directory on the server, and writes there.
    pub writes: bool,
    /// Calls come from ports that only root has.
    pub is_privileged: bool,
    /// There is an export to ask for; otherwise the walk ends with their list.
    pub has_path: bool,
}

/// What was found.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    pub target: String,
    pub steps: Vec<Step>,
    /// Medians of the time to connect, and of NULL over a connection.
    pub connect_ms: Option<f64>,
    pub null_ms: Option<f64>,
    #[serde(serialize_with = "answering")]
    pub answering: Answering,
    /// The largest packet of the way, as this host's kernel knows it.
    pub mtu_bytes: Option<u32>,
    /// The server's clock less ours; none if nothing was written, by which it would be known.
    pub clock: Option<Difference>,
    /// Other versions and transports of NFS that were tried.
    pub others: Vec<Other>,
    pub seconds: f64,
}

/// One phase.
#[derive(Clone, Debug, Serialize)]
pub struct Step {
    #[serde(serialize_with = "phase")]
    pub phase: Phase,
    pub ms: Option<f64>,
    pub outcome: Outcome,
}

/// How it went.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With what was learned.
    Done(String),
    Failed(Failed),
    /// And why.
    Skipped(String),
}

/// What was wrong, and what it may be, the likeliest first.
#[derive(Clone, Debug, Serialize)]
pub struct Failed {
    pub what: String,
    #[serde(serialize_with = "causes")]
    pub causes: Vec<Cause>,
    /// A mount does without this phase.
    pub is_optional: bool,
}

/// A difference of clocks, with what it may be wrong by.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Difference {
    pub ahead_ms: f64,
    pub error_ms: f64,
}

/// Another way to the same server.
#[derive(Clone, Debug, Serialize)]
pub struct Other {
    pub what: String,
    pub answers: bool,
    pub why: Option<String>,
}

impl Checked {
    /// The first phase that failed and that a mount cannot do without.
    pub fn failed(&self) -> Option<(Phase, &Failed)> {
        self.steps.iter().find_map(|step| match &step.outcome {
            Outcome::Failed(failed) if !failed.is_optional => Some((step.phase, failed)),
            _ => None,
        })
    }
}

impl Difference {
    /// Whether the clocks differ by more than the measurement.
    pub fn is_seen(&self) -> bool {
        self.ahead_ms.abs() > self.error_ms
    }
}

fn phase<S: serde::Serializer>(phase: &Phase, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(phase.name())
}

fn answering<S: serde::Serializer>(of: &Answering, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(match of {
        Answering::AsFastAsTcp => "as_fast_as_tcp",
        Answering::SlowServer => "slow_server",
        Answering::Unknown => "unknown",
    })
}

fn causes<S: serde::Serializer>(causes: &[Cause], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(causes.iter().map(|one| [&one.what, &one.check]))
}
