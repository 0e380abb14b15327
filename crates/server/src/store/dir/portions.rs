//! Listings in portions, between which others have the thread.
//!
//! An entry with its node costs some system calls, and a reply of 1 MiB has thousands: as one piece
//! of work, some clients that walk through a large directory would keep every other one waiting.
//! So a listing looks at some entries, lets others go first, and goes on behind them. One
//! processor is left for others: as many listings as there are more go on at the same time, and the
//! rest wait in line, in the order of coming.
//!
//! The attributes of the directory are those of the first portion: what changes meanwhile shows as
//! a change after the reply.

use tokio::sync::Semaphore;

use super::sync::yield_once;
use super::tree::Tree;
use crate::store::{Entry, ListFrom, Listed, Looked, Sink};
use crate::types::{Caller, Handle};

/// With nodes: some 100 us.
const NODES: usize = 16;

const NAMES: usize = 1_024;

/// Who may go on.
pub(super) struct Portions(Semaphore);

impl Default for Portions {
    fn default() -> Self {
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        Self(Semaphore::new((processors - 1).max(1)))
    }
}

/// How a portion ended.
struct Portion {
    looked: Looked<Listed>,
    /// Where to go on, unless it is over.
    next: Option<u64>,
}

impl Tree {
    pub(super) async fn list_in_portions(
        &self,
        caller: &Caller,
        dir: &Handle,
        mut from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        // Where cookies do not last, each portion would read the whole directory.
        let most = match from.with_nodes && self.file_system.has_lasting_cookies() {
            true => NODES,
            false => NAMES,
        };
        let mut portion = self.portion(caller, dir, &from, most, sink);
        let attr = portion.looked.attr;
        while let Some(next) = portion.next {
            from.cookie = next;
            // It is never closed.
            let turn = self.portions.0.acquire().await;
            yield_once().await;
            let more = self.portion(caller, dir, &from, most, sink);
            drop(turn);
            if more.looked.result.is_err() {
                // The reply has what there is; the next call meets the error.
                return Looked { attr, ..portion.looked };
            }
            portion = more;
        }
        Looked { attr, ..portion.looked }
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
