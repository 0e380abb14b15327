//! Whose rights a thread's system calls have.
//!
//! Linux gives every thread its own credentials. With privilege each operation takes on its
//! caller's: the file system uid and gid and the supplementary groups (setfsuid, setfsgid,
//! setgroups, as raw calls, which change this thread alone). Leaving fsuid 0 takes the file
//! capabilities (CAP_DAC_OVERRIDE, CAP_CHOWN, CAP_FOWNER, CAP_MKNOD, ...) out of the effective
//! set, coming back to it restores them (credentials(7)), so the kernel decides as for a local
//! process of that user, and new files are the caller's.
//!
//! What a thread acts as is remembered, so that a stream of calls of one user costs no system
//! call. It is therefore *not* reset after an operation: each operation says first for whom it
//! acts, and whoever uses these threads for something else says [`Acting::as_server`] or
//! [`act_as_server`].
//!
//! A thread's first switch also gives up CAP_SYS_RESOURCE, because it lifts quotas and gives away
//! the blocks that are reserved for the administrator; it is not among the file capabilities.

use std::cell::RefCell;
use std::thread;

use rustix::io::Errno;
use rustix::process::Gid;
use rustix::thread::{CapabilitySet, CapabilitySets};

use super::sys;
use crate::types::{Caller, Status};

/// Who is tried when the store is opened: nobody in particular.
const SOMEBODY: u32 = 65_534;

/// How the threads of a store take on identities.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Acting {
    /// Each operation runs as its caller.
    Callers,
    /// All run as the process does.
    Process,
}

/// What is known of this thread; `None` is set before it is relied on.
#[derive(Default)]
struct Current {
    uid: Option<u32>,
    gid: Option<u32>,
    gids: Option<Vec<u32>>,
    /// This thread has given up what no caller may have.
    is_bound: bool,
}

thread_local! {
    static CURRENT: RefCell<Current> = RefCell::default();
}

/// Lets this thread act with the server's rights again, after it has run operations of a store.
/// For what else a server does on such threads: reading its configuration, say. Without privilege
/// nothing happens.
pub fn act_as_server() {
    // A thread that never switched has the server's rights, unless one that acted as a caller began
    // it.
    let _ = CURRENT.with_borrow_mut(|current| match current.is_bound || sys::is_somebody_else() {
        true => current.set_uid(0),
        false => Ok(()),
    });
}

impl Acting {
    /// Finds out by trying, on a thread of its own, whether callers can be taken on in full.
    pub(super) fn probe() -> Self {
        let tried = thread::Builder::new().name("nfskit-probe".into()).spawn(tries_somebody);
        match tried.map(thread::JoinHandle::join) {
            Ok(Ok(Ok(true))) => Self::Callers,
            _ => Self::Process,
        }
    }

    /// From here on this thread acts as `caller`.
    ///
    /// # Errors
    /// `Access` for ids that no user has, `Jukebox` when the kernel is short of memory.
    pub(super) fn act_as(self, caller: &Caller) -> Result<(), Status> {
        match self {
            Self::Callers => CURRENT.with_borrow_mut(|current| current.become_caller(caller)),
            Self::Process => Ok(()),
        }
    }

    /// Runs `action` with the server's rights; after it the thread acts as before.
    pub(super) fn as_server<T>(
        self,
        action: impl FnOnce() -> Result<T, Errno>,
    ) -> Result<T, Errno> {
        if self == Self::Process {
            return action();
        }
        let before = CURRENT.with_borrow(|current| current.uid);
        if before == Some(0) {
            return action();
        }
        CURRENT.with_borrow_mut(|current| current.set_uid(0))?;
        let result = action();
        if let Some(uid) = before {
            CURRENT.with_borrow_mut(|current| current.set_uid(uid))?;
        }
        result
    }

    /// The same for what has a status already.
    pub(super) fn serving<T>(
        self,
        action: impl FnOnce() -> Result<T, Status>,
    ) -> Result<T, Status> {
        self.as_server(|| Ok(action())).map_err(|_: Errno| Status::Jukebox)?
    }
}

impl Current {
    fn become_caller(&mut self, caller: &Caller) -> Result<(), Status> {
        let refusal = |errno| match errno {
            Errno::NOMEM => Status::Jukebox,
            _ => Status::Access,
        };
        if !self.gids.as_deref().is_some_and(|gids| are_same(gids, &caller.gids)) {
            self.set_groups(&caller.gids).map_err(refusal)?;
        }
        if self.gid != Some(caller.gid) {
            self.set_gid(caller.gid).map_err(refusal)?;
        }
        if self.uid != Some(caller.uid) {
            self.set_uid(caller.uid).map_err(refusal)?;
        }
        Ok(())
    }

    /// Only a step away from 0 takes capabilities, so a thread's first steps lead over 0: a
    /// server may have privilege and another uid.
    fn set_uid(&mut self, uid: u32) -> Result<(), Errno> {
        self.bind()?;
        if self.uid.take().is_none() {
            sys::set_fs_uid(0)?;
        }
        sys::set_fs_uid(uid)?;
        self.uid = Some(uid);
        Ok(())
    }

    fn set_gid(&mut self, gid: u32) -> Result<(), Errno> {
        self.gid = None;
        sys::set_fs_gid(gid)?;
        self.gid = Some(gid);
        Ok(())
    }

    fn set_groups(&mut self, gids: &[u32]) -> Result<(), Errno> {
        self.gids = None;
        // -1 is no group; the kernel would take it here and nowhere else.
        if gids.contains(&u32::MAX) {
            return Err(Errno::INVAL);
        }
        let groups: Vec<_> = gids.iter().map(|&gid| Gid::from_raw(gid)).collect();
        rustix::thread::set_thread_groups(&groups)?;
        self.gids = Some(gids.to_vec());
        Ok(())
    }

    fn bind(&mut self) -> Result<(), Errno> {
        if !self.is_bound {
            let mut sets = rustix::thread::capabilities(None)?;
            sets.effective.remove(CapabilitySet::SYS_RESOURCE);
            rustix::thread::set_capabilities(None, sets)?;
            self.is_bound = true;
        }
        Ok(())
    }
}

/// Whether two callers are the same in all respects.
pub(super) fn is_same(one: &Caller, other: &Caller) -> bool {
    (one.uid, one.gid) == (other.uid, other.gid) && are_same(&one.gids, &other.gids)
}

/// Most callers have no further groups, and empty slices are not compared byte by byte: their
/// addresses lead nowhere, and glibc's memcmp with AVX-512 loads from them under an empty mask,
/// which the processor takes 0.4 us to find harmless.
fn are_same(gids: &[u32], others: &[u32]) -> bool {
    gids.len() == others.len() && (gids.is_empty() || gids == others)
}

/// Whether this thread can become somebody without the rights of root, and come back.
fn tries_somebody() -> Result<bool, Errno> {
    let somebody = Caller { uid: SOMEBODY, gid: SOMEBODY, gids: vec![SOMEBODY] };
    if Acting::Callers.act_as(&somebody).is_err() {
        return Ok(false);
    }
    let files = CapabilitySet::CHOWN
        | CapabilitySet::DAC_OVERRIDE
        | CapabilitySet::DAC_READ_SEARCH
        | CapabilitySet::FOWNER
        | CapabilitySet::FSETID
        | CapabilitySet::MKNOD;
    let effective = |sets: CapabilitySets| sets.effective;
    let bare = !effective(rustix::thread::capabilities(None)?).intersects(files);
    let back = Acting::Callers.as_server(|| rustix::thread::capabilities(None).map(effective))?;
    let able = back.contains(CapabilitySet::DAC_OVERRIDE | CapabilitySet::DAC_READ_SEARCH);
    Ok(bare && able)
}
