//! What the kernel has open, by the numbers that it was given: files and directories.

use std::collections::HashMap;
use std::sync::Arc;

use client::files::listing::Listing;
use client::files::open::Open;
use client::ops::DirPage;
use client::session::Credential;
use parking_lot::Mutex;

/// Users who stand in for one who may not write back what the kernel has cached of a file.
const WRITERS_MAX: usize = 16;

/// An open file.
#[derive(Clone, Debug)]
pub(crate) struct OpenFile {
    pub(crate) open: Open,
    /// Who opened it: on whose behalf everything is called that is done with it.
    pub(crate) who: Credential,
    pub(crate) node: u64,
    pub(crate) can_write: bool,
    /// Everything goes to the end (O_APPEND).
    pub(crate) appends: bool,
    /// Its appends come one after the other: each finds its end behind the one before.
    pub(crate) appending: Arc<tokio::sync::Mutex<()>>,
}

impl OpenFile {
    /// What may not be written is not appended to.
    pub(crate) fn new(
        open: Open,
        who: Credential,
        node: u64,
        can_write: bool,
        is_for_appends: bool,
    ) -> Self {
        let appends = can_write && is_for_appends;
        Self { open, who, node, can_write, appends, appending: Arc::default() }
    }
}

/// An open directory, and the page of it that was read last.
#[derive(Debug)]
pub(crate) struct OpenDir {
    pub(crate) listing: Listing,
    /// One reader at a time: the page, and the cookie that it follows.
    pub(crate) page: tokio::sync::Mutex<Option<(u64, DirPage)>>,
}

/// See the module's head. Bounded by the kernel's limits of open files.
#[derive(Debug, Default)]
pub(crate) struct Opens {
    /// Guards both tables and the last number given.
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    last: u64,
    files: HashMap<u64, OpenFile>,
    dirs: HashMap<u64, Arc<OpenDir>>,
}

impl Opens {
    pub(crate) fn add_file(&self, file: OpenFile) -> u64 {
        let mut table = self.table.lock();
        table.last += 1;
        let number = table.last;
        table.files.insert(number, file);
        number
    }

    pub(crate) fn file(&self, number: u64) -> Option<OpenFile> {
        self.table.lock().files.get(&number).cloned()
    }

    pub(crate) fn take_file(&self, number: u64) -> Option<OpenFile> {
        self.table.lock().files.remove(&number)
    }

    /// Users other than `who` who have this node open for writing, [`WRITERS_MAX`] at most.
    pub(crate) fn other_writers(&self, node: u64, who: &Credential) -> Vec<Credential> {
        let table = self.table.lock();
        let is_other = |file: &&OpenFile| file.node == node && file.can_write && file.who != *who;
        let mut writers: Vec<Credential> = Vec::new();
        for file in table.files.values().filter(is_other) {
            if writers.len() < WRITERS_MAX && !writers.contains(&file.who) {
                writers.push(file.who.clone());
            }
        }
        writers
    }

    pub(crate) fn add_dir(&self, dir: OpenDir) -> u64 {
        let mut table = self.table.lock();
        table.last += 1;
        let number = table.last;
        table.dirs.insert(number, Arc::new(dir));
        number
    }

    pub(crate) fn dir(&self, number: u64) -> Option<Arc<OpenDir>> {
        self.table.lock().dirs.get(&number).cloned()
    }

    pub(crate) fn take_dir(&self, number: u64) -> Option<Arc<OpenDir>> {
        self.table.lock().dirs.remove(&number)
    }

    /// Open files.
    pub(crate) fn files(&self) -> usize {
        self.table.lock().files.len()
    }
}
