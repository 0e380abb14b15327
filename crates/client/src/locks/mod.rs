//! Locks between the programs of one host: flock(2), and fcntl(2) for ranges of bytes.
//!
//! They are stored by file, not by what a kernel takes for one: a file that another client has
//! changed is two inodes for as long as somebody has the older one open, and a kernel that keeps
//! locks by itself would grant through both what excludes each other. flock(2) and fcntl(2) do not
//! see each other, as on Linux. No other host hears of a lock.
//!
//! `table` decides who has which; here is who waits.

mod table;

use parking_lot::Mutex;
use tokio::sync::Notify;
use wire::nfs3::FileHandle;

use self::table::{Obstacle, Table};

pub use self::table::{Kind, Lock, Owner, Range};

/// Why a lock is not granted.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Refused {
    /// Somebody has one with which it cannot be, and who asks does not wait.
    Held,
    /// Those it would wait for wait for it.
    Deadlock,
    /// There are too many.
    Full,
}

/// See the module's head.
#[derive(Debug, Default)]
pub struct Locks {
    /// Guards the table; never held across a wait.
    table: Mutex<Table>,
    /// One was given up.
    freed: Notify,
}

/// A lock that was granted: dropped, it is taken back, and what it replaced is as it was.
#[derive(Debug)]
pub struct Granted<'l> {
    locks: &'l Locks,
    file: FileHandle,
    lock: Lock,
    replaced: Vec<Lock>,
    is_retained: bool,
}

impl Granted<'_> {
    /// The caller has heard of it, and has it until it is given up.
    pub fn keep(mut self) {
        self.is_retained = true;
    }
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        if !self.is_retained {
            self.locks.table.lock().undo(&self.file, &self.lock, &self.replaced);
            self.locks.freed.notify_waiters();
        }
    }
}

/// Somebody waits.
struct Waiting<'l>(&'l Locks, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.table.lock().has_waited(self.1);
    }
}

impl Locks {
    /// Takes a lock; waits for those who are in the way, if it may.
    ///
    /// # Errors
    /// See [`Refused`].
    pub async fn lock(
        &self,
        file: FileHandle,
        lock: Lock,
        may_wait: bool,
    ) -> Result<Granted<'_>, Refused> {
        // What was held is given up first (flock(2)): two who share it and both want it for
        // themselves would wait for each other.
        if lock.owner.is_flock && self.table.lock().release_other(&file, &lock) {
            self.freed.notify_waiters();
        }
        loop {
            let freed = self.freed.notified();
            let waiting = {
                let mut table = self.table.lock();
                match table.lock(&file, lock) {
                    Ok(replaced) => {
                        let is_retained = false;
                        return Ok(Granted { locks: self, file, lock, replaced, is_retained });
                    }
                    Err(Obstacle::Full) => return Err(Refused::Full),
                    Err(Obstacle::Held(_)) if !may_wait => return Err(Refused::Held),
                    Err(Obstacle::Held(_)) => table.waits(&file, lock),
                }
            };
            let _waiting = Waiting(self, waiting.ok_or(Refused::Deadlock)?);
            freed.await;
        }
    }

    /// A lock that somebody else holds, and with which this one cannot be.
    pub fn conflict(&self, file: &FileHandle, wanted: &Lock) -> Option<Lock> {
        self.table.lock().conflict(file, wanted)
    }

    /// The bytes of a lock are free of its owner's locks.
    ///
    /// # Errors
    /// There is no room for the parts of the lock that it splits.
    pub fn unlock(&self, file: &FileHandle, lock: &Lock) -> Result<(), Refused> {
        let unlocked = self.table.lock().unlock(file, lock.owner, lock.range);
        unlocked.map_err(|_| Refused::Full)?;
        self.freed.notify_waiters();
        Ok(())
    }

    pub fn holds(&self, file: &FileHandle, owner: Owner) -> bool {
        self.table.lock().holds(file, owner)
    }

    /// A process has closed a file: its locks of it go, whichever descriptor it took them through
    /// (fcntl(2)).
    pub fn release(&self, file: &FileHandle, owner: Owner) {
        if self.table.lock().release(file, owner) {
            self.freed.notify_waiters();
        }
    }

    /// Nobody has this open file any more: whatever was locked through it goes.
    pub fn release_open(&self, file: &FileHandle, open: u64) {
        if self.table.lock().release_open(file, open) {
            self.freed.notify_waiters();
        }
    }
}
