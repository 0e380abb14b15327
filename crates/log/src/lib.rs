//! The stable write log: stable WRITEs are answered from a sequential file or several, and brought
//! to their place later. Everything here is pure: bytes in and out through [`Medium`], decisions
//! without threads, clocks or files. `docs/formats/write-log.md` has the bytes.
//!
//! ```text
//!   submit --> queue --begin--> one frame --written, synced--> finish --> all whom it covers
//!                                  |
//!                                 ring: identity | frame | frame | ...        (frame)
//!                                 ring: identity | frame | ...    (another log, if there are more)
//!                                                   ^ tail: the oldest that is needed
//! ```
//!
//! - [`identity`]: whose log it is, in the first block.
//! - [`draft`]: a frame whose bytes are still to be made, without a lock.
//! - [`frame`]: what is written at once, under one checksum; the records in it.
//! - [`ring`]: where the next frame goes, and what must not be overwritten.
//! - [`journal`]: who shares a frame, and which files have records that are still needed.
//! - [`pace`]: how fast WRITEs come into a log that fills.
//! - [`scan`]: what a log holds after a crash; a torn end is not damage in the middle.
//! - [`replay`]: what of it is to be done again.
//! - [`unstable`]: what a COMMIT of a little can be answered with.
//! - [`reply`]: the answer to a call, for when it comes again; [`replies`]: which stay.
//!
//! **The rules** that whoever uses it keeps, and that `tests/it/power_cuts.rs` tries:
//!
//! 1. Data are in the page cache before their record is submitted, in the same order.
//! 2. A file whose own existence may not survive a crash is not written to the log.
//! 3. What is made stable without the log (a COMMIT, a truncation) while the file has records is
//!    answered after a [`Op::Past`] record is stable: else replay would put older bytes over newer.
//! 4. A file whose sync has failed is not past anything until the log was replayed.
//! 5. A file that is truncated has no records: a crash could keep what was cut off, and a replay
//!    put older WRITEs behind the new end. What comes after may have some.
//! 6. A call is answered after the record of its reply is stable; what it did outside of the log is
//!    acknowledged as stable when it is ([`Journal::decide`]), and not before.

pub mod draft;
pub mod frame;
pub mod fuzzing;
pub mod identity;
pub mod journal;
pub mod key;
pub mod medium;
pub mod pace;
pub mod replay;
pub mod replies;
pub mod reply;
pub mod ring;
pub mod scan;
pub mod unstable;

pub use self::frame::{Attributes, Op, Record, Stamp};
pub use self::identity::{Identity, Purpose, Set};
pub use self::journal::{Journal, Limits};
pub use self::key::Key;
pub use self::medium::Medium;
pub use self::pace::{Load, Pace};
pub use self::replies::EncodedReply;
pub use self::reply::Reply;

/// Everything begins at a multiple of this: what O_DIRECT wants, and a sector of any disk fits in.
pub const BLOCK: usize = 4096;

/// The same, for places in a log.
pub const BLOCK_BYTES: u64 = BLOCK as u64;

/// The smallest log: a quarter of it is for what must always find room (see [`ring`]).
pub const SIZE_MIN: u64 = 16 << 20;

/// The largest: what a recovery reads in seconds. Of each of its frames, 262,143 at most, that
/// keeps some 120 bytes while it looks for the newest.
pub const SIZE_MAX: u64 = 1 << 30;
