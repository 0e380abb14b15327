//! The phases of a mount one by one against a server: how each went, how long it took, and where
//! one fails the likely causes (`doctor::reach`).
//!
//! - `walk.rs`: the phases in their order.
//! - `files.rs`: what is tried of files: attributes, a read, a write.
//! - `fault.rs`: what an error means.
//! - `text.rs`, `page.rs`: what was found, on a terminal and in HTML.
//!
//! Every step has a limit ([`Options::limit`]), and so has the whole ([`TOTAL_MAX`]): a server that
//! hangs is reported as one, and delays nothing.

mod fault;
mod files;
mod page;
mod text;
mod walk;

use doctor::Layer;
use doctor::reach::{Answering, Cause, Phase};
use perf::units::Nanos;
use serde::Serialize;

pub use self::page::page;
pub use self::text::text;
pub use self::walk::walk;

/// The time for all phases: those that are left are skipped.
pub const TOTAL_MAX: Nanos = Nanos::from_secs(60);

/// Why a phase was skipped that comes after one that failed.
pub(crate) const AFTER_A_FAILURE: &str = "a phase before it failed";

/// Clocks that differ by more are to be looked at. A guess: files have the time of the kernel's
/// last tick, which may be 10 ms ago, and what goes by it goes by far more.
const CLOCK_MS_MIN: f64 = 100.0;

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
    /// The largest that was answered in full.
    pub passed_bytes: Option<u32>,
    /// The server's clock less ours; none if nothing was written, by which it would be known.
    pub clock: Option<Difference>,
    /// Other versions and transports of NFS that were tried.
    pub others: Vec<Other>,
    /// What to look at first; none where all is well.
    pub first: Option<First>,
    pub seconds: f64,
}

/// What a walk comes to.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct First {
    #[serde(serialize_with = "layer")]
    pub layer: Layer,
    /// The phase that failed, `slow server` or `clock`.
    pub cause: &'static str,
    pub what: String,
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
    /// Of a target of which nothing is known yet.
    fn of(target: String) -> Self {
        Self {
            target,
            steps: Vec::new(),
            connect_ms: None,
            null_ms: None,
            answering: Answering::Unknown,
            mtu_bytes: None,
            passed_bytes: None,
            clock: None,
            others: Vec::new(),
            first: None,
            seconds: 0.0,
        }
    }

    /// The first phase that failed and that a mount cannot do without.
    pub fn failed(&self) -> Option<(Phase, &Failed)> {
        self.steps.iter().find_map(|step| match &step.outcome {
            Outcome::Failed(failed) if !failed.is_optional => Some((step.phase, failed)),
            _ => None,
        })
    }

    /// The likeliest cause of the phase that failed; else of one that a mount can do without, if
    /// it is in the network; else a server that is slow; else clocks that differ.
    fn to_look_at(&self) -> Option<First> {
        let needed = self.failures().find(|(_, _, failed)| !failed.is_optional);
        let in_network = || self.failures().find(|(_, cause, _)| cause.layer == Layer::Network);
        let failure = needed.or_else(in_network);
        failure.map(First::of).or_else(|| self.slow_server()).or_else(|| self.odd_clock())
    }

    /// The phases that failed, each with its likeliest cause.
    fn failures(&self) -> impl Iterator<Item = (Phase, &Cause, &Failed)> {
        self.steps.iter().filter_map(|step| match &step.outcome {
            Outcome::Failed(failed) => Some((step.phase, failed.causes.first()?, failed)),
            _ => None,
        })
    }

    fn slow_server(&self) -> Option<First> {
        let what = "the server takes its time for a call that does nothing";
        let is_slow = self.answering == Answering::SlowServer;
        is_slow.then(|| First::of_server("slow server", what.to_owned()))
    }

    fn odd_clock(&self) -> Option<First> {
        let is_much = |clock: &Difference| clock.ahead_ms.abs() > CLOCK_MS_MIN + clock.error_ms;
        let seen = self.clock.filter(is_much)?;
        let what = format!("the server's clock is ahead by {:.0} ms", seen.ahead_ms);
        Some(First::of_server("clock", what))
    }
}

impl First {
    fn of((phase, cause, _): (Phase, &Cause, &Failed)) -> Self {
        Self { layer: cause.layer, cause: phase.name(), what: cause.what.clone() }
    }

    fn of_server(cause: &'static str, what: String) -> Self {
        Self { layer: Layer::Server, cause, what }
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

fn layer<S: serde::Serializer>(layer: &Layer, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(layer.name())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checked(outcome: Outcome) -> Checked {
        let steps = vec![Step { phase: Phase::Portmapper, ms: None, outcome }];
        Checked { steps, ..Checked::of("h:/e".to_owned()) }
    }

    fn failed(layer: Layer, is_optional: bool) -> Outcome {
        let cause = Cause { what: "what".to_owned(), check: "check".to_owned(), layer };
        Outcome::Failed(Failed { what: String::new(), causes: vec![cause], is_optional })
    }

    #[test]
    fn what_failed_comes_before_what_is_only_odd() {
        let odd = Some(Difference { ahead_ms: -190.0, error_ms: 10.0 });
        let little = Some(Difference { ahead_ms: -14.0, error_ms: 1.0 });
        let first = |outcome, clock| {
            let checked = Checked { clock, ..checked(outcome) };
            checked.to_look_at().map(|first| (first.layer, first.cause))
        };
        let well = || Outcome::Done(String::new());
        assert_eq!(first(well(), None), None);
        assert_eq!(first(well(), little), None, "a tick");
        assert_eq!(first(well(), odd), Some((Layer::Server, "clock")));
        let needed = Some((Layer::Storage, "portmapper"));
        assert_eq!(first(failed(Layer::Storage, false), odd), needed);
        let filtered = Some((Layer::Network, "portmapper"));
        assert_eq!(first(failed(Layer::Network, true), odd), filtered);
        let done_without = first(failed(Layer::Server, true), odd);
        assert_eq!(done_without, Some((Layer::Server, "clock")), "no portmapper is no fault");
    }
}
