//! `cargo xtask interop`: the release binary against peers that we did not write.
//!
//! libnfs's tools list and copy from `nfskit serve`, fio reads and writes there with checksums;
//! `nfskit study` measures NFS-Ganesha, and then our own server; `nfskit bench basic` tests both.
//! rpcinfo and showmount ask our portmapper, and rpcbind about us. Ganesha registers with a
//! portmapper, of which a machine has one, so everything runs in namespaces of its own where the
//! system lets us: with its own loopback, its own /run, and its own processes, which all end with
//! the first of them. Where it does not, it runs on the machine's loopback, unless the machine has
//! a portmapper already.
//!
//! No child outlives its deadline. What is made on disk is in one scratch folder, removed at the
//! end; what an interrupted run left is removed by the next.

mod basic;
mod curve;
mod fio;
mod portmap;
mod served;
mod study;

use std::path::Path;

pub(crate) use fio::engine as fio_engine;

use crate::host::report::Report;
use crate::host::{build, is_ci, isolate, scratch};

/// The command by which `run` calls us again inside the namespaces.
pub(crate) const INSIDE: &str = "interop-inside";

/// Builds the binary, makes a place to work in, and runs every check there.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let nfskit = build::release(root, "interop", "nfskit", "nfskit")?;
    let scratch = scratch::make("interop")?;
    fio::provide(root, scratch.path())?;
    if !isolate::is_possible() {
        println!("interop: no namespaces here; this machine's loopback must do");
        return run_others(Report::new("interop"), scratch.path(), &nfskit);
    }
    isolate::run_ourselves("interop", [Path::new(INSIDE), scratch.path(), &nfskit])
}

/// Runs every check in the namespaces, of which we are the first process.
pub(crate) fn run_inside(scratch: &Path, nfskit: &Path) -> Result<(), String> {
    isolate::end_with_caller(scratch);
    let mut report = Report::new("interop");
    portmap::check(&mut report, scratch, nfskit);
    run_others(report, scratch, nfskit)
}

/// The checks that need no port of the machine's.
fn run_others(mut report: Report, scratch: &Path, nfskit: &Path) -> Result<(), String> {
    served::check(&mut report, scratch, nfskit);
    fio::check(&mut report, scratch, nfskit);
    study::check_ganesha(&mut report, scratch, nfskit);
    study::check_own_server(&mut report, scratch, nfskit);
    println!("\n{report}");
    report.verdict(is_ci())
}
