//! Locks of a host's programs: of production code, or of the kernel above a folder.

use std::sync::Arc;

use client::locks::{self, Locks, Owner, Range};

use super::tables::Locking;
use super::{Descriptor, Host, Kind, Opened};
use crate::sim::contest::folder;
use crate::sim::contest::locker::number_at;
use crate::sim::contest::refused::{Refused, Way};

impl Host {
    /// Whether programs can take locks.
    pub(in crate::sim::contest) fn has_locks(&self, way: Locking) -> bool {
        match &self.kind {
            Kind::Calls { .. } => false,
            Kind::Files { .. } => true,
            Kind::Folder(folder) => way == Locking::Flock || folder.locker.is_some(),
        }
    }

    /// Opens a file for its locks.
    pub(in crate::sim::contest) async fn open_to_lock(
        &self,
        name: &str,
        way: Locking,
    ) -> Result<Opened, Refused> {
        match &self.kind {
            Kind::Folder(folder) if way == Locking::Fcntl => {
                let (file, locker) = folder.locker(name)?;
                Ok(Opened { file, open: Descriptor::Locker(locker) })
            }
            _ => self.open(name, Way::Write).await,
        }
    }

    /// Waits until no other program of this host has the file's lock.
    pub(in crate::sim::contest) async fn lock(
        &self,
        of: &Opened,
        program: usize,
        way: Locking,
    ) -> Result<(), Refused> {
        match &of.open {
            Descriptor::File(file) => folder::lock(file)?,
            Descriptor::Locker(locker) => locker.lock()?,
            Descriptor::Open { number, .. } => {
                let Some(locks) = self.locks(of) else { return Ok(()) };
                let granted = locks.lock(of.file, whole(program, *number, way), true).await;
                granted.map_err(|why| Refused::new(None, format!("{why:?}")))?.keep();
            }
            Descriptor::Calls(_) => {}
        }
        Ok(())
    }

    pub(in crate::sim::contest) fn unlock(
        &self,
        of: &Opened,
        program: usize,
        way: Locking,
    ) -> Result<(), Refused> {
        match &of.open {
            Descriptor::File(file) => folder::unlock(file)?,
            Descriptor::Locker(locker) => locker.unlock()?,
            Descriptor::Open { number, .. } => {
                let Some(locks) = self.locks(of) else { return Ok(()) };
                let unlocked = locks.unlock(&of.file, &whole(program, *number, way));
                unlocked.map_err(|why| Refused::new(None, format!("{why:?}")))?;
            }
            Descriptor::Calls(_) => {}
        }
        Ok(())
    }

    /// Where the locks are stored that are taken through a descriptor.
    pub(super) fn locks(&self, of: &Opened) -> Option<Arc<Locks>> {
        let Kind::Files { locking, .. } = &self.kind else { return None };
        let Descriptor::Open { version, .. } = &of.open else { return None };
        Some(match &locking.of_nodes {
            None => Arc::clone(&locking.of_all),
            Some(nodes) => Arc::clone(nodes.lock().entry(*version).or_default()),
        })
    }

    /// A number at a place of an open file, 0 where nothing was written. Nobody reads the file
    /// otherwise, so that the kernel has no pages of it.
    pub(in crate::sim::contest) async fn number_at(
        &self,
        of: &Opened,
        at: u64,
    ) -> Result<u64, Refused> {
        Ok(match &of.open {
            Descriptor::File(file) => number_at(file, at)?,
            Descriptor::Locker(locker) => locker.number_at(at)?,
            Descriptor::Open { open, .. } => {
                let bytes = open.read(at, 8).await?;
                bytes[..].try_into().map_or(0, u64::from_le_bytes)
            }
            Descriptor::Calls(_) => 0,
        })
    }
}

/// An exclusive lock of a whole file.
fn whole(program: usize, descriptor: u64, way: Locking) -> locks::Lock {
    let owner = match way {
        Locking::Flock => Owner { number: descriptor, is_flock: true },
        Locking::Fcntl => Owner { number: program as u64, is_flock: false },
    };
    let range = Range { first: 0, last: u64::MAX };
    locks::Lock { owner, kind: locks::Kind::Exclusive, range, open: descriptor, pid: 0, uid: 0 }
}
