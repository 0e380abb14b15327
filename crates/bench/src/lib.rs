//! Workloads: one folder each, with its arguments, plan, run, record and table; and what the papers
//! measured, done again with them.
//!
//! `workload.rs` says what a workload is. To add one: a folder, and a line of the list below. Load
//! of a kind that there is not yet is made in `load`.

pub mod basic;
pub mod compare;
pub mod curve;
pub mod floors;
pub mod fsx;
mod mix;
pub mod nhfsstone;
pub mod null;
pub mod papers;
pub mod policies;
pub mod seqwrite;
pub mod suite13;
pub mod tasks;
mod workload;

use clap::Subcommand;
use harness::exit::Failure;
use harness::verbosity::Verbosity;

/// The list of workloads: its name, its arguments, and what runs it.
macro_rules! workloads {
    ($($name:ident($args:ty) by $run:path,)*) => {
        #[derive(Debug, Subcommand)]
        pub enum Bench {
            $($name(Box<$args>),)*
        }

        impl Bench {
            /// Runs the workload.
            ///
            /// # Errors
            /// As it ends.
            pub fn run(&self, verbosity: Verbosity) -> Result<(), Failure> {
                match self {
                    $(Self::$name(args) => $run(args.as_ref(), verbosity),)*
                }
            }
        }
    };
}

workloads! {
    Seqwrite(seqwrite::args::Seqwrite) by seqwrite::run,
    Policies(policies::args::Policies) by policies::run,
    Fsx(fsx::args::Fsx) by fsx::run,
    Basic(basic::args::Basic) by basic::run,
    Compare(compare::args::Compare) by compare::run,
    Curve(curve::args::Curve) by curve::run,
    Nhfsstone(nhfsstone::args::Nhfsstone) by workload::run,
    Null(null::Null) by workload::run,
    Stream(floors::args::Stream) by floors::stream,
    Rtt(floors::args::Rtt) by floors::rtt,
    Spray(floors::args::Spray) by workload::run,
    Storage(floors::args::Storage) by workload::run,
    Suite13(suite13::args::Suite13) by workload::run,
    Tasks(tasks::args::Tasks) by workload::run,
}
