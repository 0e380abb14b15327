//! Bytes that wait for room at the origin, and that nobody needs any more: their file has lost its
//! last name, or is to end before them. They are dropped, because what would make room for them is
//! behind them.

use server::types::{Handle, Status};

use super::{Op, State};
use crate::write_back::record::Change;

/// Where a WRITE of this file begins.
fn begins(op: &Op, of: &Handle) -> Option<u64> {
    match &op.entry.change {
        Change::Write { file, offset, .. } if file == of => Some(*offset),
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

    /// A file that lacks room is to end here. What it has behind that would be cut at once.
    pub(crate) fn give_up_behind(&mut self, file: &Handle, size: u64) {
        if self.lacks_room(file) {
            self.give_up(file, size);
        }
    }

    fn give_up(&mut self, file: &Handle, from: u64) {
        let behind = |op: &&mut Op| begins(op, file).is_some_and(|offset| offset >= from);
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
