//! File handles: which file a client means. Two kinds behind one face, chosen when the store is
//! opened: [`kernel`] where the process may open the kernel's own handles and they last, [`table`]
//! elsewhere.
//! Each handle begins with its kind's marker.

mod identity;
mod kernel;
mod known;
mod persisted;
mod search;
mod table;

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::io::Errno;

use self::identity::Identities;
use self::kernel::Kernel;
pub(super) use self::kernel::{KEY_ATTRIBUTE, kernel_handle, unsealed};
use self::table::{Moving, Table};
use super::acting::Acting;
use super::beneath::{Beneath, Component};
use super::file_system::FileSystem;
use super::stat::Stat;
use super::{DirOptions, HandleChoice, HandlesInUse, OpenError};
use crate::types::{Handle, Status};

/// What a handle has led to.
pub(super) enum Opened {
    Found(OwnedFd),
    /// To nothing, where the file was last seen; another process may have moved it.
    Lost,
}

pub(super) enum Handles {
    Kernel(Kernel),
    Table(Box<Table>),
}

impl Handles {
    pub(super) fn choose(
        root: &OwnedFd,
        beneath: Beneath,
        acting: Acting,
        options: &DirOptions,
        file_system: &FileSystem,
    ) -> Result<Self, OpenError> {
        let lasting = file_system.has_lasting_identities();
        let state_dir = options.state_dir.as_deref();
        let kernel =
            || Kernel::probe(root, options.handle_key, state_dir, file_system).map(Self::Kernel);
        let table = || {
            let identities = Identities::of(root, file_system).map_err(OpenError::Stat)?;
            let identities = identities.ok_or(OpenError::Indistinct)?;
            let state = state_dir.filter(|_| lasting).map(|dir| (dir, acting));
            let max = options.table_handles_max;
            Ok(Self::Table(Box::new(Table::open(root, identities, beneath, max, state)?)))
        };
        match options.handles {
            HandleChoice::Kernel => kernel().map_err(OpenError::KernelHandles),
            HandleChoice::Best if lasting => kernel().or_else(|_: Errno| table()),
            HandleChoice::Best | HandleChoice::Table => table(),
        }
    }

    pub(super) fn in_use(&self) -> HandlesInUse {
        match self {
            Self::Kernel(kernel) => {
                HandlesInUse::Kernel { survive_restart: kernel.survives_restart() }
            }
            Self::Table(table) => HandlesInUse::Table { survive_restart: table.survives_restart() },
        }
    }

    /// Whether they are the kernel's and mean the same after a restart.
    pub(super) fn are_lasting(&self) -> bool {
        matches!(self.in_use(), HandlesInUse::Kernel { survive_restart: true })
    }

    /// Those that were given out and that a restart may forget, after another try to keep them.
    pub(super) fn unstored(&self) -> usize {
        match self {
            Self::Kernel(_) => 0,
            Self::Table(table) => table.unstored(),
        }
    }

    pub(super) fn root(&self, root: BorrowedFd<'_>) -> Result<Handle, Status> {
        match self {
            Self::Kernel(kernel) => kernel.name(root),
            Self::Table(table) => Ok(table.root()),
        }
    }

    /// The handle of a file met as `name` in `dir`, open at `fd`.
    pub(super) fn name(
        &self,
        dir: &Handle,
        name: Component<'_>,
        fd: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<Handle, Status> {
        match self {
            Self::Kernel(kernel) => kernel.name(fd),
            Self::Table(table) => table.name(dir, name, table.identify(fd, stat)?),
        }
    }

    /// The handle of what is called `name` in `dir`, and its inode, without opening it; where that
    /// can be.
    pub(super) fn name_in(
        &self,
        dir: BorrowedFd<'_>,
        name: Component<'_>,
    ) -> Result<Option<(Handle, u64)>, Status> {
        match self {
            Self::Kernel(kernel) => kernel.name_in(dir, name),
            Self::Table(_) => Ok(None),
        }
    }

    /// The same of a file whose handle was `known` when it was met before.
    pub(super) fn name_again(
        &self,
        dir: &Handle,
        name: Component<'_>,
        known: Handle,
    ) -> Result<Handle, Status> {
        match self {
            Self::Kernel(_) => Ok(known),
            Self::Table(table) => table.name_again(dir, name, &known),
        }
    }

    /// The handle of a file that has just been made.
    pub(super) fn name_new(
        &self,
        dir: &Handle,
        name: Component<'_>,
        fd: BorrowedFd<'_>,
        stat: &Stat,
    ) -> Result<Handle, Status> {
        match self {
            Self::Kernel(kernel) => kernel.name(fd),
            Self::Table(table) => table.name_new(dir, name, table.identify(fd, stat)?),
        }
    }

    /// Whether removals must be reported: the table knows files by their names.
    pub(super) fn follow_names(&self) -> bool {
        matches!(self, Self::Table(_))
    }

    /// Held from a rename or removal until the handles know of it: opening by handle waits
    /// meanwhile.
    pub(super) fn moving(&self) -> Option<Moving<'_>> {
        match self {
            Self::Kernel(_) => None,
            Self::Table(table) => Some(table.moving()),
        }
    }

    /// The handle of a directory met from below, which is inside the export.
    pub(super) fn of_parent(&self, fd: BorrowedFd<'_>, stat: &Stat) -> Result<Handle, Status> {
        match self {
            Self::Kernel(kernel) => kernel.name(fd),
            Self::Table(table) => table.known(table.identify(fd, stat)?),
        }
    }

    /// Opens what `handle` names, as O_PATH, with the server's rights: a handle needs no way
    /// to it that its bearer may go.
    pub(super) fn open(
        &self,
        acting: Acting,
        root: BorrowedFd<'_>,
        handle: &Handle,
    ) -> Result<Opened, Status> {
        match (self, handle.as_bytes().first()) {
            (Self::Kernel(kernel), Some(&kernel::MARKER)) => {
                acting.serving(|| kernel.open(root, handle)).map(Opened::Found)
            }
            (Self::Table(table), Some(&known::MARKER)) => {
                acting.serving(|| table.open_known(root.as_fd(), handle))
            }
            // Of the other kind: from another run of the server, with other privileges.
            (_, Some(&kernel::MARKER | &known::MARKER)) => Err(Status::Stale),
            _ => Err(Status::BadHandle),
        }
    }

    /// Looks for what [`Self::open`] found [`Opened::Lost`], which takes its time.
    pub(super) fn search(
        &self,
        acting: Acting,
        root: BorrowedFd<'_>,
        handle: &Handle,
    ) -> Result<OwnedFd, Status> {
        match self {
            Self::Kernel(_) => Err(Status::Stale),
            Self::Table(table) => acting.serving(|| table.search(root, handle)),
        }
    }

    /// `name` in `dir` does not name the file any more; with `deleted`, nothing does.
    pub(super) fn unlinked(&self, dir: &Handle, name: Component<'_>, file: &Handle, deleted: bool) {
        match self {
            Self::Kernel(_) => {}
            Self::Table(table) => table.unlinked(dir, name, file, deleted),
        }
    }
}
