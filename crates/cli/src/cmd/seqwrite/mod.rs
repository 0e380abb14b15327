//! `nfskit bench seqwrite`: one sequential write, repeated, each time to a fresh file.

mod files;
mod record;
mod summary;
mod wire;

pub(crate) use self::files::failure;
use crate::args::Verbosity;
use crate::args::bench::Seqwrite;
use crate::exit::Failure;

/// Runs the command.
pub(crate) fn run(args: &Seqwrite, verbosity: Verbosity) -> Result<(), Failure> {
    if args.wire { wire::run(args, verbosity) } else { files::run(args, verbosity) }
}
