//! Workloads: one folder each, with its arguments, plan, run, record and table; and what the papers
//! measured, done again with them.
//!
//! `workload.rs` says what a workload is. To add one: a folder, and a line of the list below. Load
//! of a kind that there is not yet is made in `load`.

pub mod basic;
pub mod compare;
pub mod crash_test;
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
mod through_client;
mod workload;

use workload::workloads;

workloads! {
    Bench {
        Seqwrite(seqwrite::args::Seqwrite),
        Policies(policies::args::Policies),
        Fsx(fsx::args::Fsx),
        Basic(basic::args::Basic),
        Compare(compare::args::Compare),
        Curve(curve::args::Curve),
        Nhfsstone(nhfsstone::args::Nhfsstone),
        Null(null::Null),
        Stream(floors::args::Stream),
        Rtt(floors::args::Rtt),
        Spray(floors::args::Spray),
        Storage(floors::args::Storage),
        Suite13(suite13::args::Suite13),
        Tasks(tasks::args::Tasks),
    }
}
