//! Where on the disk a file's bytes lie.
//!
//! A file gets its place in pieces of 1 MiB, when it first needs them, one after the other over the
//! disk and round again: so a file that is written in one go lies in one piece, and files that grow
//! side by side are mixed. Before the data is the journal.

use std::collections::BTreeMap;

/// A piece of a file.
const PIECE_BYTES: u64 = 1 << 20;

/// The journal goes round in this.
const JOURNAL_BYTES: u64 = 1 << 30;

/// A part of a file that lies in one piece on the disk.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Run {
    pub(super) address: u64,
    pub(super) bytes: u64,
}

/// As many entries as there are pieces of files, at most.
#[derive(Debug)]
pub(super) struct Blocks {
    pieces: BTreeMap<(u64, u64), u64>,
    next: u64,
    journal: u64,
    capacity_bytes: u64,
}

impl Blocks {
    pub(super) fn new(capacity_bytes: u64) -> Self {
        let capacity_bytes = capacity_bytes.max(JOURNAL_BYTES + PIECE_BYTES);
        Self { pieces: BTreeMap::new(), next: JOURNAL_BYTES, journal: 0, capacity_bytes }
    }

    /// Where these bytes go, which get a place if they have none.
    pub(super) fn place(&mut self, file: u64, offset: u64, bytes: u64) -> Vec<Run> {
        let mut runs = Vec::new();
        for (piece, from, bytes) in pieces(offset, bytes) {
            let (next, capacity) = (&mut self.next, self.capacity_bytes);
            let address = *self.pieces.entry((file, piece)).or_insert_with(|| {
                let address = *next;
                *next += PIECE_BYTES;
                if *next + PIECE_BYTES > capacity {
                    *next = JOURNAL_BYTES;
                }
                address
            });
            push(&mut runs, Run { address: address + from, bytes });
        }
        runs
    }

    /// Where these bytes are; what never had a place is a hole and not there.
    pub(super) fn find(&self, file: u64, offset: u64, bytes: u64) -> Vec<Run> {
        let mut runs = Vec::new();
        for (piece, from, bytes) in pieces(offset, bytes) {
            if let Some(address) = self.pieces.get(&(file, piece)) {
                push(&mut runs, Run { address: address + from, bytes });
            }
        }
        runs
    }

    /// The next part of the journal.
    pub(super) fn journal(&mut self, bytes: u64) -> Run {
        let bytes = bytes.min(JOURNAL_BYTES);
        if self.journal + bytes > JOURNAL_BYTES {
            self.journal = 0;
        }
        let address = self.journal;
        self.journal += bytes;
        Run { address, bytes }
    }

    pub(super) fn forget(&mut self, file: u64) {
        let pieces: Vec<_> =
            self.pieces.range((file, 0)..=(file, u64::MAX)).map(|(key, _)| *key).collect();
        for key in pieces {
            self.pieces.remove(&key);
        }
    }
}

/// The pieces that a range lies in: number, where in it, how many bytes.
fn pieces(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, u64, u64)> {
    let end = offset.saturating_add(bytes);
    let mut at = offset;
    std::iter::from_fn(move || {
        if at >= end {
            return None;
        }
        let (piece, from) = (at / PIECE_BYTES, at % PIECE_BYTES);
        let bytes = (PIECE_BYTES - from).min(end - at);
        at += bytes;
        Some((piece, from, bytes))
    })
}

/// Adds a run, to the one before if it goes on there.
fn push(runs: &mut Vec<Run>, run: Run) {
    match runs.last_mut() {
        Some(last) if last.address + last.bytes == run.address => last.bytes += run.bytes,
        _ => runs.push(run),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    #[test]
    fn a_file_written_in_one_go_lies_in_one_piece_and_two_at_once_are_mixed() {
        let mut blocks = Blocks::new(1 << 40);
        assert_eq!(
            blocks.place(7, MIB / 2, 3 * MIB),
            [Run { address: JOURNAL_BYTES + MIB / 2, bytes: 3 * MIB }]
        );
        blocks.place(8, 0, 1);
        blocks.place(7, 4 * MIB, 1);
        assert_eq!(blocks.find(7, 4 * MIB - 10, 20).len(), 2);
        assert_eq!(blocks.find(7, 6 * MIB, MIB), []);
        blocks.forget(7);
        assert_eq!(blocks.find(7, 0, MIB), []);
        assert_eq!(blocks.find(8, 0, 1).len(), 1);
    }

    #[test]
    fn the_end_of_the_disk_is_followed_by_its_beginning() {
        let mut blocks = Blocks::new(JOURNAL_BYTES + 2 * MIB);
        let addresses: Vec<_> = (0..3).map(|n| blocks.place(1, n * MIB, 1)[0].address).collect();
        assert_eq!(addresses, [JOURNAL_BYTES, JOURNAL_BYTES + MIB, JOURNAL_BYTES]);
        assert_eq!(blocks.journal(JOURNAL_BYTES - 1).address, 0);
        assert_eq!(blocks.journal(2).address, 0);
        assert_eq!(blocks.place(1, u64::MAX - 5, 10).len(), 1);
    }
}
