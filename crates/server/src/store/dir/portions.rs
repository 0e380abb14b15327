//! Listings in portions, of which all but the first are looked at by threads that give way.
//!
//! An entry with its node costs some system calls, and a reply of 1 MiB has thousands: as one piece
//! of work, some clients that walk through a large directory would keep every other one waiting.
//! So the thread that serves the call looks at a few entries, enough for most directories. The rest
//! is looked at, some entries at a time, by threads behind those that serve: one fewer than there
//! are processors, portions of all listings in the order of coming. So is all of a listing that has
//! to read a large directory to its end before it has its first entry.
//!
//! The attributes of the directory are those of the first portion: what changes meanwhile shows as
//! a change after the reply.

use std::sync::Arc;

use tokio::sync::oneshot;

use super::listing::State;
use super::tree::Tree;
use crate::store::{Entry, ListFrom, Listed, Looked, Node, Sink};
use crate::types::{Caller, Handle, Status};

/// Entries with nodes on the thread that serves: some 100 us.
const SERVED_NODES: usize = 32;

/// Entries with nodes that are looked at before other listings have their turn. The reply may have
/// no room for all of them, so not many more.
const NODES: usize = 64;

const NAMES: usize = 1_024;

/// Bytes of a directory that are read to their end on the thread that serves: some 1,000 names.
const SERVED_BYTES: u64 = 64 << 10;

/// How a portion ended.
struct Portion {
    looked: Looked<Listed>,
    /// Where to go on, unless it is over.
    next: Option<u64>,
}

/// Entries that were looked at on another thread.
#[derive(Default)]
struct Gathered {
    names: Vec<u8>,
    entries: Vec<Line>,
}

struct Line {
    fileid: u64,
    cookie: u64,
    node: Option<Node>,
    /// Of the name, in all names.
    end: usize,
}

impl Tree {
    pub(super) async fn list_in_portions(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &Handle,
        mut from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        // Where cookies do not last, each portion reads the whole directory, unless it is cached.
        let reads_much = self.reads_much(dir, &from);
        let is_cheap = self.file_system.has_lasting_cookies() || !reads_much;
        let (served, most) = match from.with_nodes && is_cheap {
            true => (SERVED_NODES, NODES),
            false => (NAMES, NAMES),
        };
        let first = match reads_much {
            true => self.portion_aside(caller, dir, from, most, sink).await,
            false => self.portion(caller, dir, &from, served, sink),
        };
        let Portion { looked: first, mut next } = first;
        let Looked { attr, mut result } = first;
        while let Some(cookie) = next {
            from.cookie = cookie;
            let (portion, gathered) = self.gather_aside(caller, dir, from, most).await;
            if !gathered.pour(sink) {
                // The reply is full: `result` says that there is more.
                break;
            }
            // An error is left for the next call to meet: the reply has what there is.
            let Ok(listed) = portion.looked.result else { break };
            result = Ok(listed);
            next = portion.next;
        }
        Looked { attr, result }
    }

    /// Whether a directory that may be large has to be read to its end before anything of it is
    /// listed.
    fn reads_much(&self, dir: &Handle, from: &ListFrom) -> bool {
        let Ok(stat) = self.object(dir).and_then(|dir| dir.stat()) else { return false };
        let is_lasting = self.file_system.has_lasting_cookies();
        match self.listings.find(dir, State::of(&stat)) {
            Some(cached) => cached.is_too_long() && !is_lasting,
            // The size of a directory that others lie below says nothing of them.
            None => !is_lasting || (from.cookie == 0 && stat.attr().size > SERVED_BYTES),
        }
    }

    /// The first portion, looked at by another thread.
    async fn portion_aside(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        most: usize,
        sink: Sink<'_>,
    ) -> Portion {
        let (mut portion, gathered) = self.gather_aside(caller, dir, from, most).await;
        if !gathered.pour(sink) {
            portion.next = None;
            if let Ok(listed) = &mut portion.looked.result {
                listed.eof = false;
            }
        }
        portion
    }

    async fn gather_aside(
        self: &Arc<Self>,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        most: usize,
    ) -> (Portion, Gathered) {
        let (done, outcome) = oneshot::channel();
        let (tree, caller, dir) = (Arc::clone(self), caller.clone(), *dir);
        // At most one for each call that is being served, and those are bounded.
        self.listers.run_next(Box::new(move || {
            let mut gathered = Gathered::default();
            let mut gather = |entry: Entry<'_>| gathered.add(&entry);
            let portion = tree.portion(&caller, &dir, &from, most, &mut gather);
            // The caller may have gone away.
            let _ = done.send((portion, gathered));
        }));
        let failed = || {
            let looked = Looked { attr: None, result: Err(Status::ServerFault) };
            (Portion { looked, next: None }, Gathered::default())
        };
        outcome.await.unwrap_or_else(|_| failed())
    }

    fn portion(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: &ListFrom,
        most: usize,
        sink: Sink<'_>,
    ) -> Portion {
        let (mut left, mut last, mut is_full) = (most, from.cookie, false);
        let mut some = |entry: Entry<'_>| {
            if left == 0 {
                return false;
            }
            left -= 1;
            let cookie = entry.cookie;
            is_full = !sink(entry);
            if !is_full {
                last = cookie;
            }
            !is_full
        };
        let looked = self.look(dir, |dir, stat| self.list(caller, dir, stat, from, &mut some));
        let is_over =
            is_full || left > 0 || looked.result.as_ref().map_or(true, |listed| listed.eof);
        Portion { looked, next: (!is_over).then_some(last) }
    }
}

impl Gathered {
    fn add(&mut self, entry: &Entry<'_>) -> bool {
        self.names.extend_from_slice(entry.name);
        let (fileid, cookie, node) = (entry.fileid, entry.cookie, entry.node);
        self.entries.push(Line { fileid, cookie, node, end: self.names.len() });
        true
    }

    /// Whether all were taken.
    fn pour(&self, sink: Sink<'_>) -> bool {
        let mut begin = 0;
        self.entries.iter().all(|&Line { fileid, cookie, node, end }| {
            let name = &self.names[begin..end];
            begin = end;
            sink(Entry { fileid, name, cookie, node })
        })
    }
}
