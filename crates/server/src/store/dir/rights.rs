//! Who may read, write and run an object, from the kernel and remembered for a while.
//!
//! Descriptors stay open and serve all callers, so that one may read or write is decided
//! apart from them: by faccessat2 with the caller's ids, which knows ACLs and what else the file
//! system has. Answers are remembered beside the object, by caller and change time: what changes
//! permissions changes that time. An object that was changed a moment ago is checked again each
//! time, because a second change within one tick of the file system's clock would not show: some
//! keep whole seconds only. So is one of a file system whose times may be of another machine's
//! clock.
//!
//! Two more than the bits say are let through, as all servers do (RFC 1813 section 4.4), because
//! the client has checked when the file was opened: its owner always, and for reading those who
//! may execute it.

use rustix::fs::Access as May;
use rustix::io::Errno;
use rustix::time::ClockId;

use super::acting::Acting;
use super::errno::status;
use super::objects::Object;
use super::stat::Stat;
use super::sys;
use super::tree::Tree;
use crate::types::{Caller, Status, Time};

/// How long after a change answers are not cached: ten ticks of the slowest kernel clock (100 Hz).
const SETTLED_NANOS: i128 = 100_000_000;

/// The same where times may be of whole seconds: ext4 with small inodes has one second, FAT two.
const COARSE_SETTLED_NANOS: i128 = 2_000_000_000 + SETTLED_NANOS;

impl Tree {
    /// Whether `caller` has all of `wanted`. This thread acts as the caller already; `stat` was
    /// taken before.
    ///
    /// # Errors
    /// The kernel's answer does not depend on the caller (a file system that is read-only, no
    /// memory, a disk that fails), and may be another one soon, whatever the change time.
    pub(super) fn may(
        &self,
        caller: &Caller,
        object: &Object,
        stat: &Stat,
        wanted: May,
    ) -> Result<bool, Status> {
        let changed = stat.attr().changed;
        if let Some(known) = object.rights.lock().known(caller, changed, wanted) {
            return Ok(known);
        }
        let answer = match sys::may_access(object.path(), wanted) {
            Err(Errno::NOSYS | Errno::INVAL) => self.proc.may(object.path(), wanted),
            answer => answer,
        };
        let granted = match answer {
            Ok(()) => true,
            Err(Errno::ACCESS | Errno::PERM) => false,
            Err(errno) => return Err(status(errno)),
        };
        // That several are not granted says nothing of each.
        let single = wanted.bits().count_ones() == 1;
        if (granted || single) && self.file_system.is_local() && is_settled(changed) {
            object.rights.lock().learn(caller, changed, wanted, granted);
        }
        Ok(granted)
    }

    /// For READ.
    pub(super) fn check_read(
        &self,
        caller: &Caller,
        object: &Object,
        stat: &Stat,
    ) -> Result<(), Status> {
        let may = self.acts_freely(caller, stat)
            || self.ask(caller, object, stat, May::READ_OK)?
            || self.ask(caller, object, stat, May::EXEC_OK)?;
        may.then_some(()).ok_or(Status::Access)
    }

    /// For WRITE and a change of size. A descriptor that is open already would get by what was made
    /// immutable or append-only since.
    pub(super) fn check_change(
        &self,
        caller: &Caller,
        object: &Object,
        stat: &Stat,
    ) -> Result<(), Status> {
        if stat.is_guarded() {
            return Err(Status::NotOwner);
        }
        self.check_write(caller, object, stat)
    }

    /// For COMMIT, too.
    pub(super) fn check_write(
        &self,
        caller: &Caller,
        object: &Object,
        stat: &Stat,
    ) -> Result<(), Status> {
        let may =
            self.acts_freely(caller, stat) || self.ask(caller, object, stat, May::WRITE_OK)?;
        may.then_some(()).ok_or(Status::Access)
    }

    fn ask(
        &self,
        caller: &Caller,
        object: &Object,
        stat: &Stat,
        wanted: May,
    ) -> Result<bool, Status> {
        let known = object.rights.lock().known(caller, stat.attr().changed, wanted);
        if let Some(known) = known {
            return Ok(known);
        }
        self.acting.act_as(caller)?;
        self.may(caller, object, stat, wanted)
    }

    /// Root and the owner read and write without a check. A process that cannot be others
    /// does not ask at all: what it could open it may use.
    fn acts_freely(&self, caller: &Caller, stat: &Stat) -> bool {
        self.acting == Acting::Process || caller.uid == 0 || caller.uid == stat.uid()
    }
}

/// Whether a change at `changed` is so long ago that another one would have another time.
pub(super) fn is_settled(changed: Time) -> bool {
    let now = rustix::time::clock_gettime(ClockId::RealtimeCoarse);
    let nanos = u32::try_from(now.tv_nsec).unwrap_or(0);
    is_settled_at(changed, Time { secs: now.tv_sec, nanos })
}

/// A whole second is what a file system writes that keeps nothing finer. Of others it is one time
/// in millions, which then takes two seconds more.
fn is_settled_at(changed: Time, now: Time) -> bool {
    let since_1970 = |time: Time| i128::from(time.secs) * 1_000_000_000 + i128::from(time.nanos);
    let limit = if changed.nanos == 0 { COARSE_SETTLED_NANOS } else { SETTLED_NANOS };
    since_1970(now) - since_1970(changed) > limit
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: i64) -> Time {
        Time { secs, nanos: 0 }
    }

    #[test]
    fn a_change_of_this_moment_is_not_settled() {
        let settled =
            |changed, now: (i64, u32)| is_settled_at(changed, Time { secs: now.0, nanos: now.1 });
        let fine = Time { secs: 10, nanos: 5 };
        assert!(!settled(fine, (10, 100_000_005)));
        assert!(settled(fine, (10, 100_000_006)));
        assert!(!settled(fine, (9, 0)), "of a clock that is ahead");
        let now = rustix::time::clock_gettime(ClockId::Realtime);
        assert!(is_settled(at(now.tv_sec - 10)));
        assert!(!is_settled(at(now.tv_sec + 10)));
    }

    /// A second change within the same second would not show.
    #[test]
    fn a_time_of_whole_seconds_is_settled_when_no_coarse_clock_can_show_it_again() {
        let settled = |now: (i64, u32)| is_settled_at(at(10), Time { secs: now.0, nanos: now.1 });
        assert!(!settled((10, 999_999_999)));
        assert!(!settled((11, 999_999_999)));
        assert!(!settled((12, 100_000_000)));
        assert!(settled((12, 100_000_001)));
    }
}
