//! Bytes that wait for room at the origin, and that nobody needs any more: their file has lost its
//! last name, or is to end before them. They are dropped, because what would make room for them is
//! behind them. What is to cut them is stable in the log before: whoever is killed in between has
//! lost nothing. So a part of the log is for such changes alone ([`CUTS_MAX`]).

use log::BLOCK_BYTES;
use server::types::{Handle, Status};

use super::{Op, State};
use crate::write_back::record::Change;
use crate::write_back::touches;

/// Changes that find a place in a log that is full for all others, because they make some; guess.
pub(crate) const CUTS_MAX: usize = 16;

/// The room that they take of the log: a frame each, as nobody writes beside them.
pub(super) const CUTS_BYTES: u64 = CUTS_MAX as u64 * BLOCK_BYTES;

/// Where a WRITE of this file begins.
fn begins(op: &Op, of: &Handle) -> Option<u64> {
    match &op.entry.change {
        Change::Write { file, offset, .. } if file == of => Some(*offset),
        _ => None,
    }
}

/// Whether an operation writes to this file, at its new end or behind it.
fn is_behind(op: &Op, file: &Handle, size: u64) -> bool {
    begins(op, file).is_some_and(|offset| offset >= size)
}

/// The file of which a change sets the size.
fn cut(change: &Change) -> Option<(&Handle, u64)> {
    match change {
        Change::Set { file, set } => set.size.map(|size| (file, size)),
        _ => None,
    }
}

impl Op {
    /// The origin has no room for it.
    fn lacks_room(&self) -> bool {
        matches!(self.trouble, Some(Status::NoSpace | Status::Quota))
    }
}

impl State {
    /// Whether bytes of a file wait for room at the origin, and nothing but bytes of it is on its
    /// way.
    pub(crate) fn lacks_room(&self, file: &Handle) -> bool {
        let waits = |op: &Op| op.lacks_room() && begins(op, file).is_some();
        self.troubled > 0 && !self.changes(file) && self.ops.values().any(waits)
    }

    /// Whether a change is of bytes that nobody needs any more.
    pub(crate) fn is_superfluous(&self, number: u64) -> bool {
        let Some(op) = self.ops.get(&number) else { return false };
        let Change::Write { file, .. } = &op.entry.change else { return false };
        let Some(node) = self.nodes.find(file) else { return false };
        let is_removed = node.attr.links == 0 && !node.is_leaving;
        op.is_given_up || is_removed && op.lacks_room()
    }

    /// Whether a change cuts bytes that wait for room.
    pub(super) fn makes_room(&self, change: &Change) -> bool {
        let Some((file, size)) = cut(change) else { return false };
        let is_behind = |op: &Op| is_behind(op, file, size) && !op.is_given_up;
        self.lacks_room(file) && self.ops.values().any(is_behind)
    }

    /// A change that makes room is stable, or will never be in this log, which loses nothing any
    /// more: what it cuts is not waited for.
    pub(super) fn give_up_before(&mut self, number: u64) {
        let Some(op) = self.ops.get(&number).filter(|op| op.makes_room) else { return };
        let Some((file, size)) = cut(&op.entry.change) else { return };
        let file = *file;
        let earlier = self.ops.iter_mut().filter(|(earlier, _)| **earlier < number);
        let behind = earlier.filter(|(_, op)| is_behind(op, &file, size));
        behind.for_each(|(_, op)| op.is_given_up = true);
    }

    /// A WRITE has found no room. It is not waited for if a change behind it cuts all of it, as in
    /// a log that a killed proxy has left.
    pub(super) fn give_up_if_cut(&mut self, number: u64) {
        let Some(op) = self.ops.get(&number).filter(|op| op.lacks_room()) else { return };
        let file = touches::file(&op.entry.change);
        if !file.is_some_and(|file| self.changes(&file)) {
            return;
        }
        let is_cut = self.ops.iter().any(|(later, cutting)| {
            let cut = cut(&cutting.entry.change).filter(|_| cutting.done.is_none());
            *later > number && cut.is_some_and(|(file, size)| is_behind(op, file, size))
        });
        if let Some(op) = self.ops.get_mut(&number) {
            op.is_given_up |= is_cut;
        }
    }

    /// The log has failed: what it holds stays for the next start, whatever is given up.
    pub(crate) fn give_up_behind(&mut self, file: &Handle, size: u64) {
        if self.journal.is_failed() && self.lacks_room(file) {
            self.give_up(file, size);
        }
    }

    fn give_up(&mut self, file: &Handle, from: u64) {
        let behind = |op: &&mut Op| is_behind(op, file, from);
        self.ops.values_mut().filter(behind).for_each(|op| op.is_given_up = true);
    }

    /// The origin has taken a name from a file, perhaps its last one.
    pub(crate) fn passed_removal(&mut self, file: &Handle) {
        let node = self.nodes.find_mut(file);
        let is_gone =
            node.filter(|node| node.is_pending() && !node.is_unsure).is_some_and(|node| {
                node.attr.links = node.attr.links.saturating_sub(1);
                node.attr.links == 0
            });
        if is_gone {
            self.give_up(file, 0);
        }
        self.forget_file(file);
    }
}
