//! `nfskit bench seqwrite`: one sequential write, repeated, each time to a fresh file.

mod files;
mod record;
mod summary;
mod wire;

use harness::exit::Failure;
use harness::verbosity::Verbosity;

use crate::args::bench::Seqwrite;

/// Runs the command.
pub(crate) fn run(args: &Seqwrite, verbosity: Verbosity) -> Result<(), Failure> {
    if args.wire { wire::run(args, verbosity) } else { files::run(args, verbosity) }
}
