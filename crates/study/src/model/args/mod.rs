//! The arguments of `nfskit model`.

pub mod cycle;
pub mod estimate;
pub mod simulate;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub enum ModelCommand {
    Cycle(cycle::Cycle),
    Fit(estimate::Fit),
    Infer(estimate::Infer),
    Interim(cycle::Interim),
    Network(cycle::Network),
    Predict(estimate::Predict),
    Sensitivity(cycle::Sensitivity),
    Simulate(simulate::Simulate),
    Whatif(estimate::WhatIf),
}
