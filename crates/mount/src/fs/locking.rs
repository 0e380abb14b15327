//! Locks of programs: see `locks`, which decides who has one. Here is who waits.
//!
//! Whoever has a lock expects to see what was written under it before. Of a file that is two nodes
//! the kernel keeps data twice, and writes back each by itself: so a lock that is taken or given up
//! through one of them makes the kernel write back and forget what it has of that one.

use parking_lot::Mutex;
use rustix::io::Errno;
use tokio::sync::Notify;
use wire::nfs3::{FType, FileHandle};

use super::FileSystem;
use super::names::done;
use crate::abi::answer;
use crate::abi::request::LockAsked;
use crate::inflight::Reply;
use crate::locks::{Kind, Lock, Locks, Owner, Refused};

/// The locks, and those who wait for one.
#[derive(Debug, Default)]
pub(super) struct Locking {
    /// Guards the table; never held across a wait.
    table: Mutex<Locks>,
    /// One was given up.
    freed: Notify,
}

/// A lock that was granted: taken back unless whoever asked has heard of it.
struct Granted<'l> {
    locking: &'l Locking,
    file: FileHandle,
    lock: Lock,
    replaced: Vec<Lock>,
    is_heard: bool,
}

impl Drop for Granted<'_> {
    fn drop(&mut self) {
        if !self.is_heard {
            let replaced = std::mem::take(&mut self.replaced);
            self.locking.table.lock().undo(&self.file, &self.lock, replaced);
            self.locking.freed.notify_waiters();
        }
    }
}

/// Somebody waits.
struct Waiting<'l>(&'l Locking, u64);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.table.lock().has_waited(self.1);
    }
}

impl Locking {
    async fn lock(
        &self,
        file: FileHandle,
        lock: Lock,
        may_wait: bool,
    ) -> Result<Granted<'_>, Errno> {
        loop {
            let freed = self.freed.notified();
            let waiting = {
                let mut table = self.table.lock();
                match table.lock(&file, lock) {
                    Ok(replaced) => {
                        let is_heard = false;
                        return Ok(Granted { locking: self, file, lock, replaced, is_heard });
                    }
                    Err(Refused::Full) => return Err(Errno::NOLCK),
                    Err(Refused::Held(_)) if !may_wait => return Err(Errno::AGAIN),
                    Err(Refused::Held(_)) => table.waits(&file, lock),
                }
            };
            let _waiting = Waiting(self, waiting.ok_or(Errno::DEADLK)?);
            freed.await;
        }
    }

    fn unlock(&self, file: &FileHandle, lock: &Lock) -> Result<(), Errno> {
        self.table.lock().unlock(file, lock.owner, lock.range).map_err(|_| Errno::NOLCK)?;
        self.freed.notify_waiters();
        Ok(())
    }
}

impl FileSystem {
    /// Which lock is in the way, if any.
    pub(super) fn getlk(&self, node: u64, asked: &LockAsked, reply: Reply) {
        let Ok(file) = self.file(node) else {
            return reply.error(Errno::STALE);
        };
        let wanted = asked.kind.map(|kind| asked.lock(kind));
        let held = wanted.and_then(|wanted| self.locking.table.lock().conflict(&file, &wanted));
        reply.body(&answer::lock(held.as_ref()));
    }

    pub(super) async fn setlk(&self, node: u64, asked: LockAsked, may_wait: bool, reply: Reply) {
        let file = match self.file(node) {
            Ok(file) => file,
            Err(errno) => return reply.error(errno),
        };
        let Some(kind) = asked.kind else {
            self.is_to_see_others(node, asked.open).await;
            return done(self.locking.unlock(&file, &asked.lock(Kind::Shared)), reply);
        };
        let lock = asked.lock(kind);
        if lock.owner.is_flock {
            // What was held is given up first (flock(2)): two who share it and both want it for
            // themselves would wait for each other.
            if self.locking.table.lock().release_other(&file, &lock) {
                self.locking.freed.notify_waiters();
            }
        }
        match self.locking.lock(file, lock, may_wait).await {
            Ok(mut granted) => {
                self.is_to_see_others(node, asked.open).await;
                granted.is_heard = reply.done();
            }
            Err(errno) => reply.error(errno),
        }
    }

    /// A process has closed a file: its locks of it go, whichever descriptor it took them through
    /// (fcntl(2)).
    pub(super) async fn unlock_at_close(&self, node: u64, owner: u64, open: u64) {
        let Ok(file) = self.file(node) else { return };
        let owner = Owner { number: owner, is_flock: false };
        let holds = self.locking.table.lock().holds(&file, owner);
        if holds {
            self.is_to_see_others(node, open).await;
            self.locking.table.lock().release(&file, owner);
            self.locking.freed.notify_waiters();
        }
    }

    /// Nobody has this open file any more.
    pub(super) fn unlock_open(&self, file: &FileHandle, open: u64) {
        if self.locking.table.lock().release_open(file, open) {
            self.locking.freed.notify_waiters();
        }
    }

    /// The kernel forgets what it has of a node whose file it has by another one, too.
    async fn is_to_see_others(&self, node: u64, open: u64) {
        if !self.writes_back || !self.nodes.lock().has_others(node) {
            return;
        }
        self.write_back(node).await;
        if let Some(open) = self.opens.file(open)
            && let Ok(attributes) = self.files.getattr(&open.who, open.open.file()).await
            && attributes.ftype == FType::Reg
        {
            self.follow(&open.who, node, &attributes).await;
        }
    }
}
