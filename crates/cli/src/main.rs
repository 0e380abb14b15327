//! `nfskit`: finds what slows NFS down, explains it with a model that predicts, and removes it.

// They panic where nobody reads; `harness::output` does not.
#![warn(clippy::print_stderr, clippy::print_stdout)]

mod args;
mod cmd;
mod samples;

use std::process::ExitCode;

use harness::exit::Failure;
use harness::{busy, footprint};

fn main() -> ExitCode {
    let outcome = harness::signals::watch().and_then(|()| {
        if let Some(outcome) = cmd::mount::helper::run_if_called() {
            return outcome;
        }
        match args::help::parse() {
            Ok(args) => run(&args),
            Err(error) => Failure::of_arguments(&error),
        }
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}

fn run(args: &args::Args) -> Result<(), Failure> {
    footprint::shown(args.verbosity(), || command(args))
}

fn command(args: &args::Args) -> Result<(), Failure> {
    match &args.command {
        args::Command::Doctor(doctor) => cmd::doctor::run(doctor, args.verbosity()),
        args::Command::Study(study) => {
            busy::watched(args.verbosity(), || study::server_study::run(study, args.verbosity()))
        }
        args::Command::Probe(probe) => {
            busy::watched(args.verbosity(), || study::probe::run(probe, args.verbosity()))
        }
        args::Command::Serve(serve) => cmd::serve::run(serve, args.verbosity()),
        args::Command::Link(link) => cmd::link::run(link, args.verbosity()),
        args::Command::Mounted(mounted) => cmd::mount::inside::run(mounted),
        args::Command::Mount(mount) => cmd::mount::run(mount, args.verbosity()),
        args::Command::Trace(trace) => inspect::run(trace, args.verbosity()),
        args::Command::Bench(bench) => bench.run(args.verbosity()),
        args::Command::CrashTest(test) => bench::crash_test::run(test, args.verbosity()),
        args::Command::Papers(papers) => papers.run(args.verbosity()),
        args::Command::Model(model) => study::model::run(model, args.verbosity()),
        args::Command::Stat(stat) => cmd::stat::run(stat, args.verbosity()),
        args::Command::Top(top) => cmd::top::run(top),
        args::Command::Log(log) => cmd::log::run(log, args.verbosity()),
        args::Command::Cache(cache) => cmd::cache::run(cache, args.verbosity()),
        args::Command::Man(man) => cmd::generated::man(man),
        args::Command::Completions(completions) => cmd::generated::completions(completions),
    }
}
