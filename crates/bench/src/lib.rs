//! Workloads: one folder each, with its arguments, plan, run, record and table; and what the papers
//! measured, done again with them.

pub mod basic;
pub mod compare;
pub mod curve;
pub mod floors;
pub mod fsx;
mod mix;
pub mod nhfsstone;
pub mod papers;
pub mod policies;
pub mod seqwrite;
pub mod suite13;
pub mod tasks;

use clap::Subcommand;
use harness::exit::Failure;
use harness::verbosity::Verbosity;

#[derive(Debug, Subcommand)]
pub enum Bench {
    Seqwrite(seqwrite::args::Seqwrite),
    Policies(policies::args::Policies),
    Fsx(fsx::args::Fsx),
    Basic(basic::args::Basic),
    Compare(compare::args::Compare),
    Curve(Box<curve::args::Curve>),
    Nhfsstone(Box<nhfsstone::args::Nhfsstone>),
    Stream(floors::args::Stream),
    Rtt(floors::args::Rtt),
    Spray(floors::args::Spray),
    Storage(floors::args::Storage),
    Suite13(suite13::args::Suite13),
    Tasks(tasks::args::Tasks),
}

impl Bench {
    /// Runs the workload.
    pub fn run(&self, verbosity: Verbosity) -> Result<(), Failure> {
        match self {
            Self::Seqwrite(args) => seqwrite::run(args, verbosity),
            Self::Policies(args) => policies::run(args, verbosity),
            Self::Fsx(args) => fsx::run(args, verbosity),
            Self::Basic(args) => basic::run(args, verbosity),
            Self::Compare(args) => compare::run(args, verbosity),
            Self::Curve(args) => curve::run(args, verbosity),
            Self::Nhfsstone(args) => nhfsstone::run(args, verbosity),
            Self::Stream(args) => floors::stream(args, verbosity),
            Self::Rtt(args) => floors::rtt(args, verbosity),
            Self::Spray(args) => floors::spray(args, verbosity),
            Self::Storage(args) => floors::storage(args, verbosity),
            Self::Suite13(args) => suite13::run(args, verbosity),
            Self::Tasks(args) => tasks::run(args, verbosity),
        }
    }
}
