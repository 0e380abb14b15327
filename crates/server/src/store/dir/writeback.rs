//! When to start writing dirty pages early, so that a COMMIT finds little left to do. Pure.
//!
//! Writes of one file that go forward are added up; each time [`STEP_BYTES`] have come, the range
//! they span is due. They may come somewhat out of order, as a client's parallel writes do. A jump
//! further than [`STEP_BYTES`] starts anew: random writes gain nothing from it.

/// Guess: long enough for a disk to stream (some 4 ms at 500 MB/s), short enough that the last
/// piece, which the COMMIT waits for, is short. To be replaced by a measurement.
const STEP_BYTES: u64 = 2 << 20;

#[derive(Debug, Default)]
pub(super) struct Writeback {
    start: u64,
    end: u64,
    /// Written into start..end since it was last due.
    bytes: u64,
}

/// A range whose writing should start.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct Due {
    pub(super) offset: u64,
    pub(super) len: u64,
}

impl Writeback {
    /// `len` bytes were written at `offset`.
    pub(super) fn wrote(&mut self, offset: u64, len: u64) -> Option<Due> {
        let end = offset.saturating_add(len);
        let far = offset > self.end.saturating_add(STEP_BYTES)
            || end.saturating_add(STEP_BYTES) < self.start;
        if far || self.bytes == 0 && offset < self.start {
            (self.start, self.end, self.bytes) = (offset, end, 0);
        }
        self.start = self.start.min(offset);
        self.end = self.end.max(end);
        self.bytes = self.bytes.saturating_add(len);
        if self.bytes < STEP_BYTES {
            return None;
        }
        debug_assert!(self.start <= self.end);
        let due = Due { offset: self.start, len: self.end - self.start };
        (self.start, self.bytes) = (self.end, 0);
        Some(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BLOCK: u64 = 8192;

    fn due(blocks: impl IntoIterator<Item = u64>) -> Vec<Due> {
        let mut writeback = Writeback::default();
        blocks.into_iter().filter_map(|block| writeback.wrote(block * BLOCK, BLOCK)).collect()
    }

    #[test]
    fn a_stream_is_due_every_2_mib_without_gap_or_overlap() {
        let ranges = due(0..600);
        let expected = |index| Due { offset: index * STEP_BYTES, len: STEP_BYTES };
        assert_eq!(ranges, [expected(0), expected(1)]);
    }

    #[test]
    fn a_stream_out_of_order_is_due_as_well() {
        let ranges = due((0..600).map(|block| block ^ 7));
        assert_eq!(ranges.len(), 2);
        assert!(ranges.iter().all(|due| due.len <= STEP_BYTES + 8 * BLOCK));
    }

    #[test]
    fn scattered_writes_are_never_due() {
        assert_eq!(due((0..600).map(|block| block * 7919 % 5_000_000 * 3)), []);
    }
}
