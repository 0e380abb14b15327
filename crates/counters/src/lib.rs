//! Counters of kernels, read from the text in which they give them.
//!
//! - [`server`]: `/proc/net/rpc/nfsd`, what a server has served since it booted.
//! - [`client`]: `/proc/net/rpc/nfs`, what all mounts of a host have called.
//! - [`mountstats`]: `/proc/self/mountstats`, each mount by itself, with times.
//! - [`nfsstat`]: what the program of that name prints, in the layouts of 35 years.
//! - [`mod@procedures`]: calls by procedure, and the names of procedures.
//! - [`rpc`]: what files of servers and clients have in common.
//!
//! [`fuzzing`] has what fuzz targets run.
//!
//! Pure: text goes in, numbers come out, and what is wrong has its line and column. Lines that
//! nobody knows yet are passed over where kernels have added some before; a known line that is
//! broken is a [`Problem`], since half a table would be believed.
//!
//! Counters are 64 bits that wrap, or 32 in old kernels, and begin anew when a mount or a machine
//! does: differences are [`difference`]s.

pub mod client;
mod fields;
pub mod fuzzing;
pub mod mountstats;
pub mod nfsstat;
pub mod problem;
pub mod procedures;
pub mod rpc;
pub mod server;

pub use problem::{Problem, Wrong};
pub use procedures::{Procedures, Version};

/// Lines of one text, at most: a host with a thousand mounts has a tenth of that.
pub const LINES_MAX: usize = 1 << 20;

/// By how much a counter that wraps has grown. What seems to be more than half of its range is a
/// counter that has begun anew, and then all it says is what came since.
pub fn difference(now: u64, before: u64) -> u64 {
    let grown = now.wrapping_sub(before);
    if grown > u64::MAX / 2 { now } else { grown }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_may_wrap_or_begin_anew() {
        assert_eq!(difference(7, 3), 4);
        assert_eq!(difference(2, u64::MAX - 1), 4);
        assert_eq!(difference(5, 1_000), 5);
    }
}
