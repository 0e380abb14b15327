//! One step, and how chance picks it.

use std::fmt;

use fastrand::Rng;

use super::options::Options;
use crate::weighted::weighted;

/// A step. Offsets and lengths lie within the options' bounds; what is read or mapped lies within
/// the file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Operation {
    Read {
        offset: u64,
        len: u32,
    },
    MapRead {
        offset: u64,
        len: u32,
    },
    /// May begin beyond the end, which leaves zeros between.
    Write {
        offset: u64,
        len: u32,
    },
    MapWrite {
        offset: u64,
        len: u32,
        synced: bool,
    },
    /// Through a descriptor of its own that only appends; the offset is the end, as it should be.
    Append {
        offset: u64,
        len: u32,
    },
    Truncate {
        size: u64,
    },
    Fsync,
    Reopen,
    Rename,
    /// The whole file.
    Verify,
}

/// How often each sort of step comes, in [`choose`]'s order.
const WEIGHTS: [u32; 10] = [20, 8, 26, 10, 6, 10, 4, 8, 4, 4];

/// Where the interesting offsets are.
const PAGE: u64 = 4096;

/// The next step for a file of `size`.
pub(super) fn choose(rng: &mut Rng, size: u64, options: &Options) -> Operation {
    let sort = weighted(rng, WEIGHTS.into_iter()).unwrap_or(WEIGHTS.len());
    let room = options.file_bytes_max;
    match sort {
        0 | 1 | 3 if size == 0 => write(rng, options),
        1 | 3 if !options.mapped => write(rng, options),
        0 | 1 | 3 => {
            let offset = place(rng, size - 1);
            let len = length(rng, size - offset, options);
            match sort {
                0 => Operation::Read { offset, len },
                1 => Operation::MapRead { offset, len },
                _ => Operation::MapWrite { offset, len, synced: rng.bool() },
            }
        }
        2 => write(rng, options),
        4 if size < room => {
            Operation::Append { offset: size, len: length(rng, room - size, options) }
        }
        4 => Operation::Truncate { size: place(rng, size) },
        // Down to nothing now and then, up as often as down.
        5 if rng.u8(..) < 16 => Operation::Truncate { size: 0 },
        5 if rng.bool() => Operation::Truncate { size: place(rng, size) },
        5 => Operation::Truncate { size: (size + place(rng, room - size)).min(room) },
        6 => Operation::Fsync,
        7 => Operation::Reopen,
        8 => Operation::Rename,
        _ => Operation::Verify,
    }
}

fn write(rng: &mut Rng, options: &Options) -> Operation {
    let offset = place(rng, options.file_bytes_max - 1);
    Operation::Write { offset, len: length(rng, options.file_bytes_max - offset, options) }
}

/// From 0 to `max`; often at the edge of a page, or one beside it.
fn place(rng: &mut Rng, max: u64) -> u64 {
    let any = rng.u64(..=max);
    let edge = any / PAGE * PAGE;
    match rng.u8(..4) {
        0 => edge,
        1 => (edge + rng.u64(..=2)).saturating_sub(1).min(max),
        _ => any,
    }
}

/// From 1 to `room` or the options' limit.
fn length(rng: &mut Rng, room: u64, options: &Options) -> u32 {
    let max = u32::try_from(room).unwrap_or(u32::MAX).min(options.call_bytes_max).max(1);
    match rng.u8(..4) {
        0 => max,
        1 => rng.u32(1..=max.min(64)),
        _ => rng.u32(1..=max),
    }
}

impl Operation {
    /// The bytes of the file whose content it decides.
    pub(super) fn writes_at(&self, offset_of: u64) -> bool {
        match self {
            Self::Write { offset, len }
            | Self::MapWrite { offset, len, .. }
            | Self::Append { offset, len } => {
                (*offset..offset + u64::from(*len)).contains(&offset_of)
            }
            Self::Truncate { size } => offset_of >= *size,
            _ => false,
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let span = |f: &mut fmt::Formatter<'_>, what, offset: &u64, len: &u32| {
            write!(f, "{what} {offset}..{} ({len} bytes)", offset + u64::from(*len))
        };
        match self {
            Self::Read { offset, len } => span(f, "read", offset, len),
            Self::MapRead { offset, len } => span(f, "mapped read", offset, len),
            Self::Write { offset, len } => span(f, "write", offset, len),
            Self::MapWrite { offset, len, synced: true } => {
                span(f, "mapped write with msync", offset, len)
            }
            Self::MapWrite { offset, len, synced: false } => span(f, "mapped write", offset, len),
            Self::Append { offset, len } => span(f, "append", offset, len),
            Self::Truncate { size } => write!(f, "truncate to {size}"),
            Self::Fsync => f.write_str("fsync"),
            Self::Reopen => f.write_str("close and open"),
            Self::Rename => f.write_str("rename"),
            Self::Verify => f.write_str("verify all"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_stays_within_the_file_and_the_limits() {
        let mut rng = Rng::with_seed(1);
        for (file_bytes_max, call_bytes_max) in [(1, 1), (1, 4096), (5000, 64 << 10), (1 << 20, 3)]
        {
            let options = Options {
                seed: 1,
                operations_max: 0,
                until: None,
                file_bytes_max,
                call_bytes_max,
                mapped: true,
            };
            for _ in 0..20_000 {
                let size = rng.u64(..=file_bytes_max);
                match choose(&mut rng, size, &options) {
                    Operation::Read { offset, len }
                    | Operation::MapRead { offset, len }
                    | Operation::MapWrite { offset, len, .. } => {
                        assert!((1..=call_bytes_max).contains(&len));
                        assert!(offset + u64::from(len) <= size);
                    }
                    Operation::Write { offset, len } => {
                        assert!((1..=call_bytes_max).contains(&len));
                        assert!(offset + u64::from(len) <= file_bytes_max);
                    }
                    Operation::Append { offset, len } => {
                        assert_eq!(offset, size);
                        assert!(size + u64::from(len) <= file_bytes_max);
                    }
                    Operation::Truncate { size } => assert!(size <= file_bytes_max),
                    _ => {}
                }
            }
        }
    }
}
