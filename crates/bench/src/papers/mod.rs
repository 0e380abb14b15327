//! `nfskit papers`: what the papers measured, done again: paper, model and measurement side by
//! side.

pub mod args;
mod badros;
mod loggp;
mod predict;
mod sensitivity;
mod sun;
mod whatif;
mod writes;

use harness::exit::Failure;

use crate::workload::workloads;

workloads! {
    Papers {
        Badros(args::Badros),
        Loggp(args::Loggp),
        Predict(args::Predict),
        Sensitivity(args::Sensitivity),
        Sun(args::Sun),
        Whatif(args::WhatIf),
    }
}

impl args::Common {
    /// # Errors
    /// With `--check`, where the aims are not met.
    fn verdict(&self, is_met: bool, summary: impl FnOnce() -> String) -> Result<(), Failure> {
        match self.check && !is_met {
            true => Err(Failure::check(summary(), "again on a quiet machine, without --quick")),
            false => Ok(()),
        }
    }
}
