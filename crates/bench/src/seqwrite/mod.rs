//! `nfskit bench seqwrite`: one sequential write, repeated, each time to a fresh file.

pub mod args;
mod files;
mod record;
mod summary;
mod wire;

use harness::exit::Failure;
use harness::verbosity::Verbosity;
use load::seqwrite_files::Workload as OfFiles;
use perf::record::Run as Record;

use crate::seqwrite::args::Seqwrite;
use crate::workload::{Conditions, Outcome, Outputs, Workload};

/// What is to be written.
#[derive(Debug)]
pub(crate) enum Plan {
    /// Files of these lengths, through file systems.
    Files(Vec<OfFiles>),
    /// One, by calls of the protocol.
    Wire(wire::Plan),
}

/// What came of it.
#[derive(Debug)]
pub(crate) enum Measured {
    Files(Vec<files::Measured>),
    Wire(Box<Record>),
}

impl Workload for Seqwrite {
    type Plan = Plan;
    type Measured = Measured;

    fn plan(&self) -> Result<Plan, Failure> {
        match self.wire {
            true => wire::plan(self).map(Plan::Wire),
            false => files::workloads(self).map(Plan::Files),
        }
    }

    fn outputs(&self) -> Outputs<'_> {
        Outputs { csv: &self.csv, ..Outputs::json(&self.json) }
    }

    /// Our client sends from other threads than the one that writes.
    fn is_on_all_processors(&self) -> bool {
        !self.wire
    }

    async fn run(&self, plan: &Plan, conditions: Conditions) -> Result<Outcome<Measured>, Failure> {
        Ok(match plan {
            Plan::Files(workloads) => {
                files::measure(self, workloads, conditions).await?.map(Measured::Files)
            }
            Plan::Wire(plan) => wire::measure(self, plan, conditions)
                .await?
                .map(|record| Measured::Wire(Box::new(record))),
        })
    }

    fn table(&self, _: &Plan, measured: &Measured, _: Verbosity) -> String {
        match measured {
            Measured::Files(measured) => summary::text(measured, self),
            Measured::Wire(record) => wire::summary(record),
        }
    }

    fn record(&self, _: &Plan, measured: &Measured) -> Vec<Record> {
        match measured {
            Measured::Files(measured) => record::records(measured, self),
            Measured::Wire(record) => vec![Record::clone(record)],
        }
    }

    fn csv(&self, _: &Plan, measured: &Measured) -> String {
        match measured {
            Measured::Files(measured) => files::csv(measured),
            Measured::Wire(_) => String::new(),
        }
    }
}
