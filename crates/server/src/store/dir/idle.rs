//! Giving back what nobody asks for: descriptors, and the memory of caches.
//!
//! A descriptor that stays open has effects that others see: a program that is open for writing
//! cannot be run (ETXTBSY), a deleted file keeps its space, a file system cannot be made read-only.
//! So a file that nobody has used is closed:
//!
//! | what                                            | after                                   |
//! |-------------------------------------------------|-----------------------------------------|
//! | a file that was deleted, by whomever            | [`LOOK_AFTER`]                          |
//! | anything else                                   | [`CLOSE_AFTER`]                         |
//! | the same with data that are not stable          | their sync, which begins at that moment |
//! | a file whose mode lets this process not open it | [`HOLD`]                                |
//!
//! **Data that are not stable** are synced first and not only left to the kernel: it tells an error
//! of writing to those who have the file open, and may forget it with the last of them. A failed
//! sync changes the write verifier, as any other does.
//!
//! **The last row** is for servers without privilege: a file made with mode 0444 is written by the
//! descriptor of its CREATE and by no other.
//!
//! An operation notes the second in which it used a file, in memory. A thread looks through
//! the caches once a second ([`Tree::close_idle`]): at most one statx for each file that is idle
//! and not yet closed.

use std::sync::Arc;

use perf::units::{Instant, Nanos};
use rustix::fs::Access as May;
use rustix::io::Errno;

use super::acting::Acting;
use super::objects::Object;
use super::sync::group::Need;
use super::tree::Tree;
use crate::types::FileKind;

/// From here on an idle file is looked at once a second, whether it was deleted.
const LOOK_AFTER: u32 = 1;

/// Guess: long enough that a client's next flush, some seconds later, opens nothing anew.
const CLOSE_AFTER: u32 = 4;

/// Longer than a client holds data back that it has to write (30 s on Linux).
const HOLD: u32 = 60;

/// Listings that nobody asks for stay for so long, and buffers for once or twice that.
const CACHES_AFTER: u32 = 30;

/// What is closed under one lock.
const CLOSED_AT_ONCE: usize = 256;

/// Seconds as objects note them; 0 is before the first.
pub(super) fn second(now: Instant) -> u32 {
    const SECOND: u64 = Nanos::from_secs(1).as_nanos();
    u32::try_from(now.as_nanos() / SECOND + 1).unwrap_or(u32::MAX)
}

/// What an idle object still needs before it may be closed.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Due {
    Nothing,
    Sync,
    Close,
}

/// What is known of an object that nobody has used.
#[derive(Clone, Copy, Debug)]
struct Idle {
    seconds: u32,
    is_deleted: bool,
    is_unsynced: bool,
    /// Closed, it could not be opened as it is now.
    is_unique: bool,
}

impl Idle {
    fn due(self) -> Due {
        let limit = if self.is_unique { HOLD } else { CLOSE_AFTER };
        match self.seconds {
            // Nobody can ask what became of its data.
            LOOK_AFTER.. if self.is_deleted => Due::Close,
            CLOSE_AFTER.. if self.is_unsynced => Due::Sync,
            seconds if seconds >= limit => Due::Close,
            _ => Due::Nothing,
        }
    }
}

impl Tree {
    /// To be called once a second, by one at a time.
    pub(super) fn close_idle(&self, now: Instant) {
        let now = second(now);
        let mut closing = Vec::new();
        for (object, seconds) in self.objects.idle(now, LOOK_AFTER) {
            match self.look_at_idle(&object, seconds).due() {
                Due::Nothing => {}
                Due::Sync => self.syncer.sync_unattended(&object, Need::Data),
                Due::Close => closing.push(object.handle),
            }
        }
        for handles in closing.chunks(CLOSED_AT_ONCE) {
            // Closed outside of the lock.
            drop(self.objects.release(handles, now, LOOK_AFTER));
        }
        self.objects.shrink_to_fit();
        self.listings.forget_idle(now, CACHES_AFTER);
        self.buffers.give_back(now / CACHES_AFTER);
    }

    fn look_at_idle(&self, object: &Arc<Object>, seconds: u32) -> Idle {
        let is_file = object.kind == FileKind::Regular;
        let is_due = seconds >= CLOSE_AFTER;
        Idle {
            seconds,
            is_deleted: is_file && object.is_deleted(),
            is_unsynced: object.is_unsynced(),
            is_unique: is_due
                && is_file
                && self.acting == Acting::Process
                && object.opened().is_some()
                && self.proc.may(object.path(), May::READ_OK | May::WRITE_OK) == Err(Errno::ACCESS),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn due(seconds: u32, is_deleted: bool, is_unsynced: bool, is_unique: bool) -> Due {
        Idle { seconds, is_deleted, is_unsynced, is_unique }.due()
    }

    #[test]
    fn idle_files_are_closed_when_nothing_is_lost_by_it() {
        for is_unsynced in [false, true] {
            for is_unique in [false, true] {
                assert_eq!(due(0, true, is_unsynced, is_unique), Due::Nothing);
                assert_eq!(due(LOOK_AFTER, true, is_unsynced, is_unique), Due::Close);
                assert_eq!(due(CLOSE_AFTER - 1, false, is_unsynced, is_unique), Due::Nothing);
            }
        }
        assert_eq!(due(CLOSE_AFTER, false, false, false), Due::Close);
        assert_eq!(due(CLOSE_AFTER, false, true, false), Due::Sync);
        assert_eq!(due(CLOSE_AFTER, false, true, true), Due::Sync);
        assert_eq!(due(HOLD - 1, false, false, true), Due::Nothing);
        assert_eq!(due(HOLD, false, true, true), Due::Sync);
        assert_eq!(due(HOLD, false, false, true), Due::Close);
    }

    #[test]
    fn seconds_begin_after_zero_and_do_not_wrap() {
        assert_eq!(second(Instant::EPOCH), 1);
        assert_eq!(second(Instant::EPOCH + Nanos::from_secs(5)), 6);
        assert_eq!(second(Instant::NEVER), u32::MAX);
    }
}
