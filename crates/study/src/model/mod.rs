//! `nfskit model`: simulations and analytical models.

pub mod args;
mod cycle;
mod fit;
mod infer;
mod interim;
mod known;
mod network;
mod page;
mod predict;
mod sensitivity;
mod simulate;
mod source;
mod whatif;
mod worlds;

use harness::exit::Failure;
use harness::verbosity::Verbosity;

use self::args::ModelCommand;
pub(crate) use self::page::or_dash;

/// Runs the command.
pub fn run(model: &ModelCommand, verbosity: Verbosity) -> Result<(), Failure> {
    let (page, json) = match model {
        ModelCommand::Cycle(args) => (cycle::page(args)?, &args.json),
        ModelCommand::Fit(args) => (fit::page(args)?, &args.json),
        ModelCommand::Infer(args) => (infer::page(args)?, &args.json),
        ModelCommand::Interim(args) => (interim::page(args)?, &args.json),
        ModelCommand::Network(args) => (network::page(args)?, &args.json),
        ModelCommand::Predict(args) => (predict::page(args)?, &args.json),
        ModelCommand::Sensitivity(args) => (sensitivity::page(args)?, &args.json),
        ModelCommand::Simulate(args) => return simulate::run(args, verbosity),
        ModelCommand::Whatif(args) => (whatif::page(args)?, &args.json),
    };
    page.show(json, verbosity)
}
