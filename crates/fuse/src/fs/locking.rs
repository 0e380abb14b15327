//! Locks of programs: see [`client::locks`], which decides who has one.
//!
//! Whoever has a lock expects to see what was written under it before. Of a file that is two nodes
//! the kernel keeps data twice, and writes back each by itself: so a lock that is taken or given up
//! through one of them makes the kernel write back and forget what it has of that one.

use client::locks::{Kind, Owner, Refused};
use rustix::io::Errno;
use wire::nfs3::FType;

use super::FileSystem;
use super::names::done;
use crate::abi::answer;
use crate::abi::request::LockRequest;
use crate::inflight::Reply;

impl FileSystem {
    /// Which lock is in the way, if any.
    pub(super) fn getlk(&self, (node, uid): (u64, u32), lock: &LockRequest, reply: Reply) {
        let Ok(file) = self.file(node) else {
            return reply.error(Errno::STALE);
        };
        let wanted = lock.kind.map(|kind| lock.lock(kind, uid));
        let held = wanted.and_then(|wanted| self.locks.conflict(&file, &wanted));
        reply.body(&answer::lock(held.as_ref()));
    }

    pub(super) async fn setlk(
        &self,
        (node, uid): (u64, u32),
        lock: LockRequest,
        may_wait: bool,
        reply: Reply,
    ) {
        let file = match self.file(node) {
            Ok(file) => file,
            Err(errno) => return reply.error(errno),
        };
        let Some(kind) = lock.kind else {
            self.is_to_see_others(node, lock.open).await;
            let unlocked = self.locks.unlock(&file, &lock.lock(Kind::Shared, uid));
            return done(unlocked.map_err(errno_of), reply);
        };
        match self.locks.lock(file, lock.lock(kind, uid), may_wait).await {
            Ok(granted) => {
                self.is_to_see_others(node, lock.open).await;
                if reply.done() {
                    granted.keep();
                }
            }
            Err(refused) => reply.error(errno_of(refused)),
        }
    }

    /// A process has closed a file: its locks of it go, whichever descriptor it took them through
    /// (fcntl(2)).
    pub(super) async fn unlock_at_close(&self, node: u64, owner: u64, open: u64) {
        let Ok(file) = self.file(node) else { return };
        let owner = Owner { number: owner, is_flock: false };
        if self.locks.holds(&file, owner) {
            self.is_to_see_others(node, open).await;
            self.locks.release(&file, owner);
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

fn errno_of(refused: Refused) -> Errno {
    match refused {
        Refused::Held => Errno::AGAIN,
        Refused::Deadlock => Errno::DEADLK,
        Refused::Full => Errno::NOLCK,
    }
}
