//! The log is free only behind its oldest record that is needed. A change that waits for long, as
//! one that the origin refuses, would keep all that came after it, and clients would wait for room
//! though little is on its way. So what keeps the log's oldest frame is written again, as its
//! newest, when more than half of the log is taken and less than half of that is needed.
//!
//! A change keeps its number, which says its order and what it makes is called, whichever record it
//! is in. The old record is needed until the new one is stable.

use bytes::Bytes;
use log::journal::cost;

use super::record::Entry;
use super::state::State;
use super::state::notes::Waiter;
use super::touches::{has_base_of, key, number_of};

impl State {
    /// Writes again what keeps the log's oldest frame, if that makes room. Each time at most a
    /// frame: its end is the next occasion.
    pub(crate) fn carry_forward(&mut self, above: Option<u64>) {
        let (used, all) = self.journal.fill();
        // What was written again and its last frame are no more than twice that: so this ends.
        if used <= above.unwrap_or(all / 2) || used <= 2 * self.cost {
            return;
        }
        let oldest = self.journal.oldest_frame().filter(|frame| *frame > self.carried);
        let Some(frame) = oldest else { return };
        let numbers = self.journal.needing(frame).filter_map(number_of);
        // What has come to the origin is about to be past.
        let ops = numbers.filter_map(|number| Some((number, self.ops.get(&number)?)));
        let mut again: Vec<(u64, Bytes)> =
            ops.map(|(number, op)| (number, self.again(&op.entry))).collect();
        again.sort_unstable_by_key(|(number, _)| *number);
        if !self.journal.admits_again(again.iter().map(|(_, data)| cost(data.len())).sum()) {
            return;
        }
        self.carried = frame;
        for (number, data) in again {
            self.journal.carry_change(key(number), data, Waiter::Carried);
        }
    }

    /// As it is written again: the notes of how its file was left meanwhile may be in the frames
    /// that become free.
    fn again(&self, entry: &Entry) -> Bytes {
        let file = has_base_of(&entry.change);
        let base = file.and_then(|file| self.nodes.find(&file)?.base);
        Entry { base: base.or(entry.base), ..entry.clone() }.encode()
    }
}
