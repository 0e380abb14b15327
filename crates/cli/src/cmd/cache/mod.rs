//! `nfskit cache`: what mounts keep of files on a local disk. Everything but `warm` works on the
//! directory itself: whether a mount has it or not is found out, and what is to be changed is left
//! to that mount as an order.

mod below;
mod change;
mod exports;
mod origin;
mod pins;
mod status;
mod verify;
mod warm;
mod why;

use harness::exit::Failure;
use harness::verbosity::Verbosity;

use crate::args::cache::Cache;

/// Runs the command.
pub(crate) fn run(command: &Cache, verbosity: Verbosity) -> Result<(), Failure> {
    match command {
        Cache::Status(args) => status::run(args),
        Cache::Why(args) => why::run(args),
        Cache::Warm(args) => warm::run(&args.paths, verbosity),
        Cache::Pin(args) => pins::pin(args),
        Cache::Unpin(args) => pins::unpin(args),
        Cache::Invalidate(args) => change::invalidate(args),
        Cache::Clean(args) => change::clean(args),
        Cache::Verify(args) => verify::run(&args.dir),
    }
}
