//! The policies by name, and what each decides.
//!
//! Four are those of Lever and Honeyman, "Linux NFS Client Write Performance" (2002), sections 3.3
//! to 3.5; each of them removes one thing that held the writer back. The fifth is ours.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

use super::extents::Extents;
use super::index::Index;
use super::pages::{Find, Pages};
use super::window::Window;

/// Requests of one file beyond which the writer flushes them all and waits (section 3.3).
const MAX_REQUEST_SOFT: usize = 192;

/// Requests of the mount at which every writer sleeps (section 3.3).
const MAX_REQUEST_HARD: usize = 256;

/// Calls that 2.4.4's RPC layer keeps outstanding on a UDP socket (RPC_MAXREQS).
const SLOTS: u32 = 16;

perf::named! {
    /// Which policy.
    #[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
    pub enum PolicyName {
        /// The client of Linux 2.4.4 (section 3.3, figure 2).
        Linux244 => "linux-2.4.4",
        /// The same without its limits of requests (figure 3).
        NoFlush => "no-flush",
        /// And with a hash table beside the list (section 3.4, figure 4).
        Hashed => "hashed",
        /// And with the lock released around the send (section 3.5, figure 6).
        Unlocked => "unlocked",
        /// Ours.
        #[default]
        Adaptive => "adaptive",
    }
}

impl fmt::Display for PolicyName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// No policy has this name.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("unknown write policy {0:?}; known are linux-2.4.4, no-flush, hashed, unlocked, adaptive")]
pub struct UnknownPolicy(pub String);

impl FromStr for PolicyName {
    type Err = UnknownPolicy;

    fn from_str(name: &str) -> Result<Self, UnknownPolicy> {
        let known = Self::ALL.into_iter().find(|policy| policy.name() == name);
        known.ok_or_else(|| UnknownPolicy(name.to_owned()))
    }
}

/// What is done with the mount's lock while a WRITE is sent.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Lock {
    /// There is none.
    None,
    /// It is released before.
    Released,
    /// It is held until the system has taken the message.
    Held,
}

/// What a policy decides. The rest (order, stability, errors) is the same for all.
pub(super) trait Policy: fmt::Debug + Send + Sync {
    /// Where the bytes of one file are held until they are stable.
    fn index(&self, wsize: u32) -> Box<dyn Index>;

    /// How many calls are outstanding.
    fn window(&self, outstanding_max: u32) -> Window;

    /// Most bytes that are put into an index at once.
    fn piece_bytes_max(&self) -> u64 {
        u64::MAX
    }

    fn lock(&self) -> Lock {
        Lock::None
    }

    /// Whether a file is committed while it is written, and not only when it is quiet, somebody
    /// asks, or memory runs short.
    fn commits_early(&self) -> bool {
        true
    }

    /// Whether a file of which everything fits into one WRITE is made stable by that WRITE, without
    /// a COMMIT.
    fn writes_stably(&self) -> bool {
        true
    }

    /// Requests of a file beyond which its writer flushes it and waits.
    fn file_requests_max(&self) -> Option<usize> {
        None
    }

    /// Requests of the mount at which writers sleep.
    fn mount_requests_max(&self) -> Option<usize> {
        None
    }
}

/// Ours: extents, a window that follows the path, no lock, a bound of bytes.
#[derive(Debug)]
struct Adaptive;

impl Policy for Adaptive {
    fn index(&self, wsize: u32) -> Box<dyn Index> {
        Box::new(Extents::new(wsize))
    }

    fn window(&self, outstanding_max: u32) -> Window {
        Window::searching(outstanding_max)
    }
}

/// Those of the paper, which differ in three things.
#[derive(Debug)]
struct Paged {
    limits: bool,
    find: Find,
    lock: Lock,
}

impl Policy for Paged {
    fn index(&self, wsize: u32) -> Box<dyn Index> {
        Box::new(Pages::new(wsize, self.find))
    }

    fn window(&self, _: u32) -> Window {
        Window::fixed(SLOTS)
    }

    /// The VFS passes on one page at a time (section 3.4).
    fn piece_bytes_max(&self) -> u64 {
        super::pages::PAGE_BYTES
    }

    fn lock(&self) -> Lock {
        self.lock
    }

    /// 2.4.4 commits on request, or after seconds.
    fn commits_early(&self) -> bool {
        false
    }

    /// The paper's calls are those of WRITEs that a COMMIT follows.
    fn writes_stably(&self) -> bool {
        false
    }

    fn file_requests_max(&self) -> Option<usize> {
        self.limits.then_some(MAX_REQUEST_SOFT)
    }

    fn mount_requests_max(&self) -> Option<usize> {
        self.limits.then_some(MAX_REQUEST_HARD)
    }
}

impl PolicyName {
    pub(super) fn policy(self) -> Box<dyn Policy> {
        let (limits, find, lock) = match self {
            Self::Linux244 => (true, Find::Scan, Lock::Held),
            Self::NoFlush => (false, Find::Scan, Lock::Held),
            Self::Hashed => (false, Find::Hash, Lock::Held),
            Self::Unlocked => (false, Find::Hash, Lock::Released),
            Self::Adaptive => return Box::new(Adaptive),
        };
        Box::new(Paged { limits, find, lock })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for policy in PolicyName::ALL {
            assert_eq!(policy.to_string().parse(), Ok(policy));
        }
        assert_eq!("linux".parse::<PolicyName>(), Err(UnknownPolicy("linux".to_owned())));
        assert_eq!(PolicyName::default().name(), "adaptive");
    }
}
