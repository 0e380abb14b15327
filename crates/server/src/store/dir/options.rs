//! How a directory is served, and why it cannot be.

use std::io;
use std::path::PathBuf;
use std::thread;

use rustix::io::Errno;

use super::write_log::{LogError, WriteLog};
use crate::store::state::StateError;
use crate::types::Status;

/// How a directory is to be served.
#[derive(Clone, Debug)]
pub struct DirOptions {
    pub identity: Identity,
    pub handles: HandleChoice,
    /// Seals kernel handles. `None`: a key that is stored in an extended attribute of the root
    /// (`trusted.nfskit.handle_key`), or else in `state_dir`, so that handles survive a restart.
    pub handle_key: Option<[u8; 16]>,
    /// Most files that handles of the table kind are known for; those longest not used
    /// are forgotten, their handles become stale. Some 200 bytes each.
    pub table_handles_max: usize,
    /// Where handles of the table kind are stored over a restart: a database and its log for each
    /// export, private to the process, best not below the directory that is served. `None`: they
    /// end with the process.
    pub state_dir: Option<PathBuf>,
    /// Most open descriptors; the least recently used are closed. `None`: half of
    /// RLIMIT_NOFILE, at most 16,384.
    pub open_files_max: Option<usize>,
    /// Starts writing a file's dirty pages each 2 MiB of a stream, so that its COMMIT finds
    /// little left.
    pub early_writeback: bool,
    pub metadata_sync: MetadataSync,
    /// Syncs of different files that run at the same time; at least 1.
    pub sync_threads: usize,
    /// Cold reads that wait for the disk at the same time; at least 1.
    pub read_threads: usize,
    /// Threads that read and sort large directories: of the processors all but one, which is left
    /// to those that serve.
    pub list_threads: usize,
    /// Where stable WRITEs are noted, to be answered from there. For kernel handles and
    /// [`MetadataSync::Always`] only.
    pub write_log: Option<WriteLog>,
}

impl Default for DirOptions {
    fn default() -> Self {
        Self {
            identity: Identity::Process,
            handles: HandleChoice::Best,
            handle_key: None,
            table_handles_max: 1 << 20,
            state_dir: None,
            open_files_max: None,
            early_writeback: true,
            metadata_sync: MetadataSync::Always,
            sync_threads: 16,
            read_threads: 4,
            list_threads: thread::available_parallelism().map_or(1, usize::from).saturating_sub(1),
            write_log: None,
        }
    }
}

/// With whose rights operations run.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Identity {
    /// Their callers' where the process may take them on, else the process's.
    Best,
    /// Their callers' (CAP_SETUID, CAP_SETGID, CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH), or an
    /// error.
    Callers,
    /// The process's, whoever calls.
    #[default]
    Process,
}

/// Which kind of handles to use.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum HandleChoice {
    /// The kernel's where the process may, else the table.
    #[default]
    Best,
    /// The kernel's (CAP_DAC_READ_SEARCH and a file system that has them), or an error.
    Kernel,
    /// A table, which every process can have.
    Table,
}

/// Which handles a store uses, for banners.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum HandlesInUse {
    /// The kernel's: they survive renames by anyone, and a restart unless the key could not be
    /// stored.
    Kernel { survive_restart: bool },
    /// A table: they survive renames by this store, and a restart if the table is stored.
    Table { survive_restart: bool },
}

/// Whether changes of names and attributes are stable when they are answered.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum MetadataSync {
    /// As RFC 1813 section 4.8 wants it.
    #[default]
    Always,
    /// Whenever the file system gets to it. A crash can undo what was answered.
    Never,
}

/// Why a directory cannot be served.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    #[error("cannot open directory {}: {errno}", path.display())]
    Root { path: PathBuf, errno: Errno },
    #[error("cannot examine the directory (statx): {0}")]
    Stat(Errno),
    #[error("/proc is needed but cannot be used: {0}")]
    Proc(Errno),
    #[error("kernel file handles cannot be used here: {0}")]
    KernelHandles(Errno),
    #[error("this process may not act as the users who call it")]
    Identity,
    #[error(
        "its file system tells neither when a file was made nor which generation it is, so that a \
         handle could come to mean another file"
    )]
    Indistinct,
    #[error(
        "it is an overlay whose layers lie on different file systems, so that its files change \
         their numbers while they are in use: mount it with xino=on"
    )]
    Layers,
    #[error("the state of handles cannot be used: {0}")]
    State(#[from] StateError),
    #[error("the directory cannot be given a handle: {0:?}")]
    RootHandle(Status),
    #[error("{0}")]
    Log(#[from] LogError),
    #[error("no random numbers: {0}")]
    Random(Errno),
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
}
