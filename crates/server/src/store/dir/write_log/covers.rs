//! Of which files changes go through the log, and whether SETATTRs and COMMITs do.

use std::os::fd::OwnedFd;
use std::sync::atomic::Ordering;

use log::Stamp;
use log::unstable::Budget;
use parking_lot::Mutex;

use super::times::{now, stamp};
use crate::store::dir::objects::Object;
use crate::store::dir::stat::Stat;
use crate::types::Attr;

/// What is retained of UNSTABLE WRITEs of all files together.
const UNSTABLE_BYTES_MAX: usize = 16 << 20;

/// More than is cut off of a time that has fractions of a second.
const FINE_NS: i128 = 1_000_000;

/// As much as is cut off of one in whole seconds; FAT's are two.
const WHOLE_SECONDS_NS: i128 = 2_000_000_000;

pub(super) struct Covers {
    /// SETATTRs and COMMITs are answered sooner from the log.
    pub(super) is_faster: bool,
    pub(super) budget: Budget,
    since: Mutex<Since>, // guards itself
}

/// What was not changed since then was stable then.
struct Since {
    /// None: that is not known of anything.
    synced: Option<Stamp>,
    /// The newest time that was seen: who sets the clock back makes changes look old.
    newest: Stamp,
}

impl Covers {
    /// Syncs all of the file system, so that files are known to be stable that nobody changes.
    pub(super) fn from_now(root: &OwnedFd, is_faster: bool) -> Self {
        let began = now();
        let is_synced = rustix::fs::syncfs(root).is_ok();
        let since = Since { synced: is_synced.then_some(began), newest: began };
        Self { is_faster, budget: Budget::of(UNSTABLE_BYTES_MAX), since: Mutex::new(since) }
    }

    /// To be called about once a second.
    pub(super) fn tend(&self) {
        let (mut since, now) = (self.since.lock(), now());
        if now < since.newest {
            since.synced = None;
        }
        since.newest = now;
    }

    /// A change has the time of the kernel's coarse clock, as `synced` has, but cut off to the unit
    /// of the file system: to whole seconds, or to something below a millisecond.
    pub(super) fn is_older(&self, attr: &Attr) -> bool {
        let changed = stamp(attr.changed);
        let cut_ns = if changed.nanos == 0 { WHOLE_SECONDS_NS } else { FINE_NS };
        let ns = |of: Stamp| i128::from(of.seconds) * 1_000_000_000 + i128::from(of.nanos);
        self.since.lock().synced.is_some_and(|synced| ns(changed) + cut_ns < ns(synced))
    }
}

/// Whether a replay would find the file as it was when it was changed from `before` to `after`: its
/// inode will be there, and the times of its changes tell their order.
pub(super) fn may(object: &Object, before: &Stat, after: &Attr) -> bool {
    object.is_rooted.load(Ordering::Acquire)
        && !object.has_failed.load(Ordering::Acquire)
        && before.attr().changed <= after.changed
}
