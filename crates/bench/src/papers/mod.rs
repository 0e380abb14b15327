//! `nfskit papers`: what the papers measured, done again: paper, model and measurement side by
//! side.

pub mod args;
pub(crate) mod loggp;
pub(crate) mod predict;
pub(crate) mod sensitivity;
pub(crate) mod whatif;
mod writes;

use clap::Subcommand;
use harness::exit::Failure;
use harness::verbosity::Verbosity;

#[derive(Debug, Subcommand)]
pub enum Papers {
    Loggp(args::Loggp),
    Predict(args::Predict),
    Sensitivity(args::Sensitivity),
    Whatif(args::WhatIf),
}

impl Papers {
    /// Runs the command.
    pub fn run(&self, verbosity: Verbosity) -> Result<(), Failure> {
        match self {
            Self::Loggp(args) => loggp::run(args, verbosity),
            Self::Predict(args) => predict::run(args, verbosity),
            Self::Sensitivity(args) => sensitivity::run(args, verbosity),
            Self::Whatif(args) => whatif::run(args, verbosity),
        }
    }
}
