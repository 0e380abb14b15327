//! `nfskit bench seqwrite`: one sequential write, repeated, each time to a fresh file.

pub mod args;
mod files;
mod record;
mod summary;
mod wire;

use harness::exit::Failure;
use harness::verbosity::Verbosity;

use crate::seqwrite::args::Seqwrite;

/// Runs the command.
pub fn run(args: &Seqwrite, verbosity: Verbosity) -> Result<(), Failure> {
    if args.wire { wire::run(args, verbosity) } else { files::run(args, verbosity) }
}
