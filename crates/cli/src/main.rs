//! `nfskit`: finds what slows NFS down, explains it with a model that predicts, and removes it.

mod args;
mod busy;
mod cmd;
mod exports;
mod log;
mod metrics;
mod ranks;
mod state;

use std::process::ExitCode;

use harness::exit::Failure;

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
    let watch = busy::Watch::begin(&args.command, args.verbosity());
    command(args)?;
    watch.end();
    Ok(())
}

fn command(args: &args::Args) -> Result<(), Failure> {
    match &args.command {
        args::Command::Doctor(doctor) => cmd::doctor::run(doctor, args.verbosity()),
        args::Command::Study(study) => cmd::study::run(study, args.verbosity()),
        args::Command::Probe(probe) => cmd::probe::run(probe, args.verbosity()),
        args::Command::Serve(serve) => cmd::serve::run(serve, args.verbosity()),
        args::Command::Link(link) => cmd::link::run(link, args.verbosity()),
        args::Command::Mounted(mounted) => cmd::mount::inside::run(mounted),
        args::Command::Mount(mount) => cmd::mount::run(mount, args.verbosity()),
        args::Command::Trace(trace) => cmd::trace::run(trace, args.verbosity()),
        args::Command::Man(man) => cmd::generated::man(man),
        args::Command::Completions(completions) => cmd::generated::completions(completions),
        args::Command::Bench(args::Bench::Seqwrite(seqwrite)) => {
            cmd::seqwrite::run(seqwrite, args.verbosity())
        }
        args::Command::Bench(args::Bench::Policies(policies)) => {
            cmd::policies::run(policies, args.verbosity())
        }
        args::Command::Bench(args::Bench::Fsx(fsx)) => cmd::fsx::run(fsx, args.verbosity()),
        args::Command::Model(model) => cmd::model::run(model, args.verbosity()),
        args::Command::Papers(args::Papers::Loggp(loggp)) => {
            cmd::papers::loggp::run(loggp, args.verbosity())
        }
        args::Command::Papers(args::Papers::Predict(predict)) => {
            cmd::papers::predict::run(predict, args.verbosity())
        }
        args::Command::Papers(args::Papers::Sensitivity(sensitivity)) => {
            cmd::papers::sensitivity::run(sensitivity, args.verbosity())
        }
        args::Command::Papers(args::Papers::Whatif(whatif)) => {
            cmd::papers::whatif::run(whatif, args.verbosity())
        }
        args::Command::Bench(args::Bench::Compare(compare)) => {
            cmd::compare::run(compare, args.verbosity())
        }
        args::Command::Bench(args::Bench::Basic(basic)) => cmd::basic::run(basic, args.verbosity()),
        args::Command::Bench(args::Bench::Nhfsstone(nhfsstone)) => {
            cmd::nhfsstone::run(nhfsstone, args.verbosity())
        }
        args::Command::Bench(args::Bench::Curve(curve)) => cmd::curve::run(curve, args.verbosity()),
        args::Command::Bench(args::Bench::Stream(stream)) => {
            cmd::floors::stream(stream, args.verbosity())
        }
        args::Command::Bench(args::Bench::Rtt(rtt)) => cmd::floors::rtt(rtt, args.verbosity()),
        args::Command::Bench(args::Bench::Spray(spray)) => {
            cmd::floors::spray(spray, args.verbosity())
        }
        args::Command::Bench(args::Bench::Storage(storage)) => {
            cmd::floors::storage(storage, args.verbosity())
        }
        args::Command::Bench(args::Bench::Suite13(suite13)) => {
            cmd::suite13::run(suite13, args.verbosity())
        }
        args::Command::Bench(args::Bench::Tasks(tasks)) => cmd::tasks::run(tasks, args.verbosity()),
    }
}
