//! Counters of kernels, read from the text in which they give them.
//!
//! - [`server`]: `/proc/net/rpc/nfsd`, what a server has served since it booted.
//! - [`client`]: `/proc/net/rpc/nfs`, what all mounts of a host have called.
//! - [`mountstats`]: `/proc/self/mountstats`, each mount by itself, with times.
//! - [`mounted`]: lists of mounts with their options.
//! - [`nfsiostat`]: what the program of that name prints.
//! - [`nfsstat`]: what the program of that name prints, in the layouts of 35 years.
//! - [`exposition`]: pages of metrics in Prometheus's text format, as our own programs give them.
//! - [`mod@procedures`]: calls by procedure, and the names of procedures.
//! - [`pools`]: `/proc/fs/nfsd/pool_stats`, how a server's threads are found.
//! - [`rpc`]: what files of servers and clients have in common.
//! - [`rates`]: what came between two samples of these, per second, per call and as shares.
//! - [`mod@host`]: network, memory, processors and disks below it.
//! - [`socket`]: what `ss -tino` prints.
//! - [`mod@partial`]: what can be read of a damaged text.
//!
//! [`fuzzing`] has what fuzz targets run.
//!
//! Pure: text goes in, numbers come out, and what is wrong has its line and column. Lines that
//! nobody knows yet are passed over where kernels have added some before; a known line that is
//! broken is a [`Problem`], since half a table would be believed.
//!
//! Counters are 64 or 32 bits that wrap, and begin anew when a mount or a machine does:
//! differences are [`difference`]s.

pub mod client;
pub mod exposition;
mod fields;
pub mod fuzzing;
pub mod host;
pub mod mounted;
pub mod mountstats;
pub mod nfsiostat;
pub mod nfsstat;
pub mod partial;
pub mod pools;
pub mod problem;
pub mod procedures;
pub mod rates;
pub mod rpc;
pub mod server;
pub mod socket;

pub use partial::{Partial, partial};
pub use problem::{Problem, Wrong};
pub use procedures::{Procedures, Version};

/// Lines of one text, at most: a host with a thousand mounts has a tenth of that.
pub const LINES_MAX: usize = 1 << 20;

/// By how much a counter that wraps has grown. One that has begun anew says only what came since.
pub fn difference(now: u64, before: u64) -> u64 {
    grown(now, before).unwrap_or(now)
}

/// By how much a counter has grown that wraps at 2^64, or at 2^32 while it has never been larger.
/// `None` where that would be more than half of its range: it has begun anew, or was turned back.
pub fn grown(now: u64, before: u64) -> Option<u64> {
    let wide = now.wrapping_sub(before);
    if wide <= u64::MAX / 2 {
        return Some(wide);
    }
    let narrow = u32::try_from(now).ok()?.wrapping_sub(u32::try_from(before).ok()?);
    (narrow <= u32::MAX / 2).then_some(u64::from(narrow))
}

/// What counters come to together; no more than one can hold.
pub fn sum(counters: impl IntoIterator<Item = u64>) -> u64 {
    counters.into_iter().fold(0, u64::saturating_add)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_counter_may_wrap_or_begin_anew() {
        assert_eq!(difference(7, 3), 4);
        assert_eq!(difference(2, u64::MAX - 1), 4);
        assert_eq!(difference(5, 1_000), 5);
        assert_eq!(difference(10, u64::from(u32::MAX) - 5), 16, "32 bits");
        assert_eq!(grown(10, u64::from(u32::MAX) + 1), None, "it had more than 32 bits");
        assert_eq!(grown(999, 1_000), None, "turned back");
    }
}
