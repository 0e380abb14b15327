//! What the origin grants a caller. One of version 2 has no ACCESS, and what the store says then is
//! a guess by the mode. That counts for callers whom the origin takes for themselves. Others may
//! read what the origin reads for them; what they change is for the origin.

use server::store::{ListFrom, Looked, Store};
use server::types::{Access, Caller, FileKind, Handle, Status};

use super::{Inner, lease};

/// All rights there are.
const ALL: Access = Access(0x3f);

impl<S: Store> Inner<S> {
    /// Whether what the store grants this caller is a guess that does not count.
    pub(super) fn guesses_rights(&self, caller: &Caller) -> bool {
        self.store.guesses_rights() && !self.is_known(caller)
    }

    /// What the origin grants a caller, or has shown that it does.
    pub(super) async fn granted_there(&self, caller: &Caller, origin: &Handle) -> Looked<Access> {
        let Looked { attr, result } = self.store.access(caller, origin, ALL).await;
        let kind = attr.filter(|_| result.is_ok() && self.guesses_rights(caller));
        let shown = match kind.map(|attr| attr.kind) {
            Some(FileKind::Directory) => self.shown_of_dir(caller, origin).await,
            Some(FileKind::Regular) => {
                let read = self.store.read(caller, origin, 0, 1).await.result;
                shown(Access::READ, read.map(drop))
            }
            Some(_) => Ok(0),
            None => return Looked { attr, result },
        };
        Looked { attr, result: shown.map(Access) }
    }

    async fn shown_of_dir(&self, caller: &Caller, origin: &Handle) -> Result<u32, Status> {
        // Whatever name it is.
        let found = match self.store.lookup(caller, origin, lease::NAME).await.result {
            Ok(_) | Err(Status::NoEntry) => Ok(()),
            Err(status) => Err(status),
        };
        let from = ListFrom { cookie: 0, verifier: [0; 8], with_nodes: false, bytes: 512 };
        let listed = self.store.list(caller, origin, from, &mut |_| false).await.result;
        Ok(shown(Access::LOOKUP, found)? | shown(Access::READ, listed.map(drop))?)
    }
}

/// The right that a call has shown, if the origin has not refused it.
fn shown(right: u32, done: Result<(), Status>) -> Result<u32, Status> {
    match done {
        Ok(()) => Ok(right),
        Err(Status::Access | Status::NotOwner) => Ok(0),
        Err(status) => Err(status),
    }
}
