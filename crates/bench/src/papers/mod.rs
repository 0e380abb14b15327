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
use harness::records;
use perf::record::{Run as Record, Target};

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

/// The record of a paper, measured on a server of our own, or on the one at `url`.
fn begun(paper: &str, started: &str, url: Option<&String>) -> Record {
    let mut record = records::begin(started.to_owned());
    let kind = if url.is_some() { "server" } else { "embedded" };
    record.target = Target {
        kind: kind.to_owned(),
        url: url.cloned(),
        version: Some(3),
        proto: Some("tcp".to_owned()),
        ..Target::default()
    };
    record.workload.name = paper.to_owned();
    record
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
