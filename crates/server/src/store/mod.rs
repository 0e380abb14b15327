//! Where files are stored. One trait; the stores are siblings: [`dir`] (a directory of this
//! machine), [`mem`] (memory), [`sim`] (memory behind an emulated disk, for worlds). One that
//! stands on another is a [`layer`]. Another is built on this crate: the files of another server
//! (`proxy`).
//!
//! A store knows nothing of protocols, sockets or clocks. Its methods are async: what hits memory
//! or the page cache completes at once and inline, what may block on a disk (a sync) runs on the
//! store's own threads so that other operations go on.
//!
//! Every method gives attributes beside its result, in failure too where they can be had, because
//! the protocol's replies carry them and clients live by them.

pub mod dir;
pub mod layer;
mod logged;
pub mod mem;
mod pool;
pub mod sim;
pub mod state;

use std::future::Future;

use bytes::Bytes;
use perf::units::Instant;

use crate::durable::{Committed, Durable};
use crate::metrics::Reading;
use crate::replies::answered::Recorded;
use crate::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
    Wcc,
};

/// Result of an operation that changes one object or one directory.
#[derive(Debug)]
pub struct Changed<T> {
    pub wcc: Wcc,
    pub result: Result<T, Status>,
}

/// Result of an operation that only looks at an object; `attr` is that object's (for LOOKUP the
/// directory's).
#[derive(Debug)]
pub struct Looked<T> {
    pub attr: Option<Attr>,
    pub result: Result<T, Status>,
}

impl<T> Changed<T> {
    /// Nothing was done, and nothing is known of the object.
    pub fn failed(status: Status) -> Self {
        Self { wcc: Wcc::default(), result: Err(status) }
    }
}

impl<T> Looked<T> {
    /// Nothing is known of the object.
    pub fn failed(status: Status) -> Self {
        Self { attr: None, result: Err(status) }
    }
}

/// A file found or made.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    pub handle: Handle,
    pub attr: Attr,
}

/// Bytes read; fewer than requested only at the end of the file.
#[derive(Debug)]
pub struct Extent {
    pub data: Bytes,
    pub eof: bool,
}

#[derive(Clone, Copy, Debug)]
pub struct Written {
    pub count: u32,
    pub committed: Committed,
}

/// Result of RENAME.
#[derive(Debug)]
pub struct Renamed {
    pub from: Wcc,
    pub to: Wcc,
    pub result: Result<(), Status>,
}

impl Renamed {
    /// Nothing was done, and nothing is known of the directories.
    pub fn failed(status: Status) -> Self {
        Self { from: Wcc::default(), to: Wcc::default(), result: Err(status) }
    }
}

/// Result of LINK.
#[derive(Debug)]
pub struct Linked {
    pub attr: Option<Attr>,
    pub dir: Wcc,
    pub result: Result<(), Status>,
}

impl Linked {
    /// Nothing was done, and nothing is known of the file and the directory.
    pub fn failed(status: Status) -> Self {
        Self { attr: None, dir: Wcc::default(), result: Err(status) }
    }
}

/// One directory entry as offered to a [`Sink`].
#[derive(Debug)]
pub struct Entry<'a> {
    pub fileid: u64,
    pub name: &'a [u8],
    /// Resume after this entry with this cookie.
    pub cookie: u64,
    /// With READDIRPLUS, where they could be had.
    pub node: Option<Node>,
}

/// Takes entries until it has enough: `false` means that this entry was not taken and none after
/// it will be.
pub type Sink<'s> = &'s mut (dyn FnMut(Entry<'_>) -> bool + Send);

/// Where a directory listing begins, and what it should contain.
#[derive(Clone, Copy, Debug)]
pub struct ListFrom {
    /// 0 for the beginning, else a cookie that an entry carried.
    pub cookie: u64,
    /// What the earlier part of this listing returned; all zero with cookie 0.
    pub verifier: [u8; 8],
    /// Whether `Entry::node` is wanted.
    pub with_nodes: bool,
    /// Bytes of entries that the sink takes, about: more need not be had.
    pub bytes: u32,
}

#[derive(Clone, Copy, Debug)]
pub struct Listed {
    pub verifier: [u8; 8],
    /// The last entry of the directory was taken by the sink.
    pub eof: bool,
}

/// Dynamic state of a file system (FSSTAT).
#[derive(Clone, Copy, Debug)]
pub struct Space {
    pub bytes_total: u64,
    pub bytes_free: u64,
    pub bytes_available: u64,
    pub files_total: u64,
    pub files_free: u64,
    pub files_available: u64,
}

/// Static properties (FSINFO, PATHCONF).
#[derive(Clone, Copy, Debug)]
pub struct Properties {
    pub file_size_max: u64,
    pub time_resolution: Time,
    pub hard_links: bool,
    pub symlinks: bool,
    pub links_max: u32,
    pub name_bytes_max: u32,
    pub chown_restricted: bool,
}

/// What survives a crash of the server's machine, for banners and run records.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Medium {
    /// Nothing survives the process.
    Memory,
    /// Synced data survives power loss.
    Stable,
}

/// A place for files.
///
/// Names are single components; the engine has already refused empty names, names over 255 bytes,
/// and those with `/` or NUL. `.` and `..` reach only `lookup` (where `..` of the root is the
/// root); the others never see them.
pub trait Store: Send + Sync + 'static {
    fn root(&self) -> Handle;
    fn medium(&self) -> Medium;
    /// The write verifier now in force.
    fn verifier(&self) -> Verifier;

    /// Another name for the same file that is short enough for every version of the protocol, if
    /// `handle` is too long for one of them.
    fn brief(&self, _handle: &Handle) -> Option<Handle> {
        None
    }

    /// The name that [`Self::brief`] has made this one of; itself, if it has not.
    fn full(&self, handle: &Handle) -> Handle {
        *handle
    }

    /// Whether times of files are those of this host's clock, by which it is seen when they were
    /// made.
    fn shares_clock(&self) -> bool {
        true
    }

    /// Whether what [`Self::access`] grants is a guess by the mode. What was done for a caller then
    /// shows that he may.
    fn guesses_rights(&self) -> bool {
        false
    }

    /// Grows whenever calls that were under way to where the files are may have been carried out
    /// without an answer, and were made again.
    fn doubts(&self) -> u64 {
        0
    }

    /// Syncs that failed, each of which changed the verifier.
    fn sync_failures(&self) -> u64 {
        0
    }

    /// Handles that were given out and that a restart would forget, since the state directory
    /// cannot be written: it is tried again about once a second.
    fn unstored_handles(&self) -> u64 {
        0
    }

    /// To be called about once a second by whoever serves the store, one call after the other:
    /// closes and gives back what nobody has used lately.
    fn tend(&self, _now: Instant) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }

    /// What the store reports of itself, for metrics: cheap, and read a few times a minute.
    fn readings(&self) -> Vec<Reading> {
        Vec::new()
    }

    /// Whether the root is known to be removed, so that its handle is good for nothing.
    fn is_root_gone(&self) -> bool {
        false
    }

    /// Whether it keeps the replies to calls beside what they did.
    fn keeps_replies(&self) -> bool {
        false
    }

    /// The replies that it has recorded of calls before this process began; once.
    fn recorded(&self) -> Vec<Recorded> {
        Vec::new()
    }

    fn attr(
        &self,
        caller: &Caller,
        handle: &Handle,
    ) -> impl Future<Output = Result<Attr, Status>> + Send;

    /// With `guard`, only if the file's change time is exactly that.
    fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> impl Future<Output = Changed<()>> + Send;

    fn lookup(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> impl Future<Output = Looked<Node>> + Send;

    /// What `..` of a directory is where the files are: that of the root may be outside of what is
    /// exported, and is not for clients.
    fn climb(&self, caller: &Caller, dir: &Handle) -> impl Future<Output = Looked<Node>> + Send {
        self.lookup(caller, dir, b"..")
    }

    /// The subset of `wanted` that the caller has.
    fn access(
        &self,
        caller: &Caller,
        handle: &Handle,
        wanted: Access,
    ) -> impl Future<Output = Looked<Access>> + Send;

    fn read_link(
        &self,
        caller: &Caller,
        handle: &Handle,
    ) -> impl Future<Output = Looked<Bytes>> + Send;

    fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> impl Future<Output = Looked<Extent>> + Send;

    /// Writes all of `data` at `offset`, or fails. `data` is written from where it lies.
    fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> impl Future<Output = Changed<Written>> + Send;

    /// Makes earlier writes to the range durable; `count` 0 means to the end of the file.
    fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> impl Future<Output = Changed<Durable>> + Send;

    fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> impl Future<Output = Changed<Node>> + Send;

    fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> impl Future<Output = Changed<Node>> + Send;

    fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> impl Future<Output = Changed<Node>> + Send;

    fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> impl Future<Output = Changed<Node>> + Send;

    fn remove(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> impl Future<Output = Changed<()>> + Send;

    fn remove_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
    ) -> impl Future<Output = Changed<()>> + Send;

    fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> impl Future<Output = Renamed> + Send;

    fn link(
        &self,
        caller: &Caller,
        handle: &Handle,
        dir: &Handle,
        name: &[u8],
    ) -> impl Future<Output = Linked> + Send;

    fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> impl Future<Output = Looked<Listed>> + Send;

    /// Makes stable what operations on names and attributes did to an object before a crash
    /// prevented it.
    fn settle(&self, _handle: &Handle) -> impl Future<Output = Result<(), Status>> + Send {
        std::future::ready(Ok(()))
    }

    fn space(&self, caller: &Caller, handle: &Handle)
    -> impl Future<Output = Looked<Space>> + Send;

    fn properties(
        &self,
        caller: &Caller,
        handle: &Handle,
    ) -> impl Future<Output = Looked<Properties>> + Send;
}
