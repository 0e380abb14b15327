//! `nfskit model simulate`: production code in a world of stated times.

mod page;
mod record;
mod saved;
mod screen;
mod simulated;

use harness::exit::Failure;
use harness::unused;
use harness::verbosity::Verbosity;
use harness::{footprint, output};
use net::clock::Clock;
use world::simulate::{self, SimulateError, Topology};

use self::simulated::{LoadPoint, Simulated};
use super::source;
use crate::model::args::simulate::Simulate;

/// Load points, in percent of what the topology does by itself.
const PERCENTS: [f64; 10] = [10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0];

/// Runs the command.
pub(crate) fn run(args: &Simulate, verbosity: Verbosity) -> Result<(), Failure> {
    output::check([&args.json, &args.html], [&args.topology])?;
    let (topology, formula_mib_per_s) = read(args)?;
    let clock = Clock::real();
    let started = load::environment::rfc3339(&clock);
    let begun = clock.now();
    if args.curve && topology.workload.write.is_some() {
        let what = "a sequential write has no rate, and so no curve of response time";
        return Err(Failure::usage(what, "without --curve; nfskit model whatif outstanding=N"));
    }
    let outcome = simulate::run(&topology).map_err(failure)?;
    let took = clock.now().since(begun);
    if outcome.is_empty() {
        let time = topology.workload.time.nanos();
        let what = format!("nothing was measured: no operation ended in {time} after the warm-up");
        return Err(Failure::environment(what, "a longer workload.time, or a higher rate"));
    }
    let curve = if args.curve { curve(&topology, outcome.per_s)? } else { Vec::new() };
    let memory_bytes_max = footprint::memory_bytes_max();
    let simulated =
        Simulated { topology, formula_mib_per_s, outcome, started, took, memory_bytes_max, curve };
    let page = output::write_to(&args.html, || page::html(&simulated));
    output::print_text(verbosity, [&args.json, &args.html], || screen::text(&simulated))?;
    output::write_to(&args.json, || record::json(&simulated)).and(page)
}

/// What is simulated, and what a formula has for it.
fn read(args: &Simulate) -> Result<(Topology, Option<f64>), Failure> {
    let path = &args.topology;
    let text =
        source::text(path).map_err(|cause| super::page::unreadable(path, "simulate", &cause))?;
    let is_record = source::is_json(&text);
    unused::refuse([(args.of.is_some() && !is_record, "--of")], "a record")?;
    let (topology, formula_mib_per_s) = match is_record {
        true => saved::topology(path, args.of.as_deref())?,
        false => {
            let topology = Topology::parse(&text).map_err(|cause| {
                let advice = "nfskit model simulate --help shows a topology";
                Failure::environment(format!("{}: {cause}", path.display()), advice)
            })?;
            (topology, None)
        }
    };
    let seed = args.seed.unwrap_or(topology.seed);
    Ok((Topology { seed, ..topology }, formula_mib_per_s))
}

/// The same world at rates up to what it does when nobody waits.
fn curve(topology: &Topology, most_per_s: f64) -> Result<Vec<LoadPoint>, Failure> {
    let point = |percent: f64| {
        let offered_per_s = most_per_s * percent / 100.0;
        let mut topology = topology.clone();
        topology.workload.rate = Some(offered_per_s);
        Ok(LoadPoint::of(offered_per_s, &simulate::run(&topology).map_err(failure)?))
    };
    PERCENTS.into_iter().filter(|_| most_per_s > 0.0).map(point).collect()
}

fn failure(error: SimulateError) -> Failure {
    let advice = match error {
        SimulateError::Load(load::error::Error::Client(_)) => {
            "a topology whose files fit its memory, and whose faults end"
        }
        _ => "the same seed again, and report",
    };
    Failure::check(format!("in the world: {error}"), advice)
}
