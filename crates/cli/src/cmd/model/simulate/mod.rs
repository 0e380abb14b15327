//! `nfskit model simulate`: production code in a world of stated times.

mod record;
mod screen;

use std::fs;
use std::path::Path;

use net::clock::Clock;
use perf::units::Nanos;
use world::simulate::{self, Outcome, SimulateError, Topology};

use crate::args::Verbosity;
use crate::args::model::Simulate;
use crate::exit::Failure;
use crate::output;

/// A run, and what it cost this machine.
struct Simulated {
    topology: Topology,
    outcome: Outcome,
    started: String,
    /// Real time.
    took: Nanos,
    memory_bytes_max: Option<u64>,
}

/// Runs the command.
pub(crate) fn run(args: &Simulate, verbosity: Verbosity) -> Result<(), Failure> {
    let topology = read(&args.topology, args.seed)?;
    let clock = Clock::real();
    let started = load::environment::rfc3339(&clock);
    let begun = clock.now();
    let outcome = simulate::run(&topology).map_err(failure)?;
    let took = clock.now().since(begun);
    let memory_bytes_max = memory_bytes_max();
    let simulated = Simulated { topology, outcome, started, took, memory_bytes_max };
    if verbosity > Verbosity::Quiet && args.json.as_deref() != Some(Path::new("-")) {
        output::print(&screen::text(&simulated))?;
    }
    match &args.json {
        Some(json) => output::write(json, &record::json(&simulated)),
        None => Ok(()),
    }
}

fn read(path: &Path, seed: Option<u64>) -> Result<Topology, Failure> {
    let about = |cause: &dyn std::fmt::Display| {
        let advice = "nfskit model simulate --help shows a topology";
        Failure::usage(format!("{}: {cause}", path.display()), advice)
    };
    let text = fs::read_to_string(path).map_err(|cause| about(&cause))?;
    let topology = Topology::parse(&text).map_err(|cause| about(&cause))?;
    Ok(Topology { seed: seed.unwrap_or(topology.seed), ..topology })
}

fn failure(error: SimulateError) -> Failure {
    match error {
        SimulateError::Load(load::error::Error::Client(error)) => Failure::check(
            format!("in the world: {error}"),
            "a topology whose files fit its memory, and whose faults end",
        ),
        other => {
            Failure::check(format!("in the world: {other}"), "the same seed again, and report")
        }
    }
}

/// The most memory that this process ever had, where the system says it.
fn memory_bytes_max() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}
