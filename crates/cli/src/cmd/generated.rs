//! What packages take from the arguments: manual pages and completions.

use std::fs;

use clap::CommandFactory;

use crate::args::{Args, Completions, Man};
use crate::exit::Failure;
use crate::output;

/// `nfskit man DIR`
pub(crate) fn man(args: &Man) -> Result<(), Failure> {
    let written = fs::create_dir_all(&args.out)
        .and_then(|()| clap_mangen::generate_to(Args::command(), &args.out));
    written.map_err(|cause| output::cannot_write(&args.out, &cause))
}

/// `nfskit completions SHELL`
pub(crate) fn completions(args: &Completions) -> Result<(), Failure> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Args::command(), "nfskit", &mut script);
    output::print(&String::from_utf8_lossy(&script))
}
