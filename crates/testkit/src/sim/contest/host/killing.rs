//! A host with a disk is killed, whatever its programs are at: its process, or with its machine,
//! whose disk then has only some of what was written lately. Another process goes on with what is
//! left.

use std::sync::atomic::Ordering;

use net::clock::Group;

use super::kernel::Kernel;
use super::{Host, Kind};
use crate::sim::client::unless_killed;

/// How a process ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(in crate::sim::contest) enum Ends {
    Alone,
    WithPower,
}

impl Host {
    /// Gives whether it was: not while others wait for one of its programs.
    pub(in crate::sim::contest) fn kill(&self, ends: Ends) -> bool {
        let Kind::Files { files, kernel, .. } = &self.kind else { return false };
        let is_killed = files.awaited.load(Ordering::Relaxed) == 0 && files.kill(ends);
        if is_killed {
            *kernel.lock() = Kernel::default();
        }
        is_killed
    }

    /// What comes of `act`, unless the host is killed before.
    pub(in crate::sim::contest) async fn unless_killed<T>(
        &self,
        act: impl Future<Output = T>,
    ) -> Option<T> {
        match self.group() {
            Some(group) => unless_killed(&group, act).await,
            None => Some(act.await),
        }
    }

    fn group(&self) -> Option<Group> {
        match &self.kind {
            Kind::Files { files, .. } => files.group(),
            _ => None,
        }
    }

    /// How often it was killed: what was open before is not any more.
    pub(in crate::sim::contest) fn lives(&self) -> usize {
        match &self.kind {
            Kind::Files { files, .. } => files.lives(),
            _ => 0,
        }
    }

    /// Reads that were served by what the disk had from lives before.
    pub(in crate::sim::contest) fn hits_after_kills(&self) -> u64 {
        match &self.kind {
            Kind::Files { files, .. } => files.hits_after_kills(),
            _ => 0,
        }
    }
}
