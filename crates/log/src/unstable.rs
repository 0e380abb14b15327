//! What UNSTABLE WRITEs gave a file since it was stable, as long as that is little: a COMMIT of it
//! can be answered from the log, which is then one write for all files instead of a sync of each.
//!
//! The bytes are retained, and not read from the page cache again: where a disk has failed to write
//! a page, a read may return older data than were written, without an error.
//!
//! It is not known what is unstable in a file that was met just now, was changed by others, or had
//! more written to it than is retained. From the beginning of a sync that succeeds it is known
//! again.
//!
//! Nor is a COMMIT answered from here while a recovery would do WRITEs again that are older than
//! that sync: they would come over what the sync has made stable, and the COMMIT speaks for it.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;

use crate::Stamp;

/// What is retained of all files together.
#[derive(Clone, Debug)]
pub struct Budget {
    left: Arc<AtomicUsize>,
}

impl Budget {
    pub fn of(bytes: usize) -> Self {
        Self { left: Arc::new(AtomicUsize::new(bytes)) }
    }

    fn take(&self, bytes: usize) -> bool {
        let less = |left: usize| left.checked_sub(bytes);
        self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    fn give_back(&self, bytes: usize) {
        self.left.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// The WRITEs of one file, in their order.
#[derive(Debug, Default)]
pub struct Unstable {
    /// None: nothing is ever retained.
    budget: Option<Budget>,
    /// None: it is not known.
    writes: Option<Vec<(u64, Bytes)>>,
    bytes: usize,
    is_syncing: bool,
    /// When the file was last changed, as far as is known here: others may have come since.
    changed: Stamp,
    /// Of the records of the file in the log, the newest: of all, when the newest sync began, and
    /// when the newest began that has succeeded.
    logged: u64,
    begun: u64,
    synced: u64,
}

impl Unstable {
    /// More of a file is not retained: a sync of it costs little more than the log then, and does
    /// not write it twice (guess).
    pub const BYTES_MAX: usize = 64 << 10;

    /// Nor are more WRITEs; each takes a record.
    pub const WRITES_MAX: usize = 16;

    pub fn within(budget: Budget) -> Self {
        let mut unstable = Self::default();
        unstable.budget = Some(budget);
        unstable
    }

    /// All of the file is stable now, for a reason that only the caller knows.
    pub fn is_clean(&mut self) {
        if self.budget.is_some() && self.writes.is_none() && !self.is_syncing {
            self.writes = Some(Vec::new());
        }
    }

    /// An UNSTABLE WRITE came, after which the file was changed then.
    pub fn wrote(&mut self, offset: u64, data: &[u8], changed: Stamp) {
        self.changed = changed;
        let Some((budget, writes)) = self.budget.as_ref().zip(self.writes.as_mut()) else { return };
        let fits = self.bytes + data.len() <= Self::BYTES_MAX
            && writes.len() < Self::WRITES_MAX
            && budget.take(data.len());
        if fits {
            self.bytes += data.len();
            writes.push((offset, Bytes::copy_from_slice(data)));
        } else {
            self.spoil();
        }
    }

    /// These bytes became stable by themselves: what is retained of the same place is older.
    pub fn overwrote(&mut self, offset: u64, len: u64, changed: Stamp) {
        self.changed = changed;
        let end = offset.saturating_add(len);
        let is_older =
            |(at, data): &(u64, Bytes)| *at < end && offset < at.saturating_add(data.len() as u64);
        if self.writes.iter().flatten().any(is_older) {
            self.spoil();
        }
    }

    /// Something else of it changed then, and is stable, or will be.
    pub fn touched(&mut self, changed: Stamp) {
        self.changed = changed;
    }

    /// It is not known any more.
    pub fn spoil(&mut self) {
        self.clear();
        self.writes = None;
    }

    /// A sync of the file with its attributes begins: it takes what came before.
    pub fn sync_begins(&mut self) {
        self.clear();
        self.writes = self.budget.is_some().then(Vec::new);
        self.is_syncing = true;
        self.begun = self.logged;
    }

    pub fn sync_ended(&mut self, is_ok: bool) {
        self.is_syncing = false;
        match is_ok {
            true => self.synced = self.begun,
            false => self.spoil(),
        }
    }

    /// The log has a record of the file. To be called before any sync may begin that would not take
    /// what it is of.
    pub fn logged(&mut self, record: u64) {
        self.logged = record;
    }

    /// The newest record of which a sync has brought all that it is of to its place.
    pub fn synced(&self) -> u64 {
        self.synced
    }

    /// How many WRITEs and bytes a COMMIT would take from here, if it can: `changed` is when the
    /// file was last changed by anybody, `records` the oldest and the newest record of the file
    /// that a recovery would do again.
    pub fn committable(
        &self,
        changed: Stamp,
        records: Option<(u64, u64)>,
    ) -> Option<(usize, usize)> {
        let writes = self.writes.as_ref().filter(|writes| !writes.is_empty())?;
        let are_newer = |(oldest, newest)| oldest > self.begun && newest == self.logged;
        let is_known = !self.is_syncing && self.changed == changed;
        (is_known && records.is_none_or(are_newer)).then_some((writes.len(), self.bytes))
    }

    /// They are in the log from here on.
    pub fn take(&mut self) -> Vec<(u64, Bytes)> {
        let writes = self.writes.as_mut().map(std::mem::take).unwrap_or_default();
        self.clear();
        writes
    }

    fn clear(&mut self) {
        if let Some(budget) = &self.budget {
            budget.give_back(std::mem::take(&mut self.bytes));
        }
    }
}

impl Drop for Unstable {
    fn drop(&mut self) {
        self.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(nanos: u32) -> Stamp {
        Stamp { seconds: 1, nanos }
    }

    fn known() -> Unstable {
        let mut unstable = Unstable::within(Budget::of(100 << 10));
        unstable.is_clean();
        unstable
    }

    #[test]
    fn writes_are_given_in_their_order_and_once() {
        let mut unstable = known();
        assert_eq!(unstable.committable(at(0), None), None, "there is nothing");
        unstable.wrote(5, b"first", at(1));
        unstable.wrote(7, b"second", at(2));
        assert_eq!(unstable.committable(at(2), None), Some((2, 11)));
        let writes = unstable.take();
        assert_eq!(writes, [(5, Bytes::from("first")), (7, Bytes::from("second"))]);
        assert_eq!(unstable.committable(at(2), None), None);
        unstable.wrote(0, b"x", at(3));
        assert_eq!(unstable.committable(at(3), None), Some((1, 1)), "it is known what came since");
    }

    #[test]
    fn what_others_changed_since_is_not_known() {
        let mut unstable = known();
        unstable.wrote(5, b"first", at(1));
        assert_eq!(unstable.committable(at(2), None), None);
        unstable.touched(at(2));
        assert!(unstable.committable(at(2), None).is_some());
    }

    #[test]
    fn what_is_older_than_something_stable_is_not_given() {
        for (offset, len, is_over) in [(0, 5, false), (10, 5, false), (4, 2, true), (9, 1, true)] {
            let mut unstable = known();
            unstable.wrote(5, b"first", at(1));
            unstable.overwrote(offset, len, at(2));
            assert_eq!(unstable.committable(at(2), None).is_none(), is_over, "{offset} {len}");
        }
    }

    #[test]
    fn a_sync_takes_what_came_before_it_and_leaves_the_rest() {
        let mut unstable = known();
        unstable.wrote(0, b"before", at(1));
        unstable.sync_begins();
        unstable.wrote(9, b"during", at(2));
        assert_eq!(unstable.committable(at(2), None), None, "it may fail");
        unstable.sync_ended(true);
        assert_eq!(unstable.take(), [(9, Bytes::from("during"))]);

        unstable.wrote(0, b"before", at(3));
        unstable.sync_begins();
        unstable.sync_ended(false);
        unstable.wrote(0, b"after", at(4));
        assert_eq!(unstable.committable(at(4), None), None);
        unstable.sync_begins();
        unstable.spoil();
        unstable.sync_ended(true);
        unstable.wrote(0, b"again", at(5));
        assert_eq!(unstable.committable(at(5), None), None, "something came while it was synced");
    }

    #[test]
    fn only_little_is_retained_of_each_file_and_of_all() {
        let mut unstable = known();
        unstable.wrote(0, &[1; Unstable::BYTES_MAX], at(1));
        assert!(unstable.committable(at(1), None).is_some());
        unstable.wrote(0, b"x", at(2));
        assert_eq!(unstable.committable(at(2), None), None, "too much");

        let mut unstable = known();
        for number in 0..=Unstable::WRITES_MAX {
            assert_eq!(unstable.committable(at(9), None).is_some(), number > 0);
            unstable.wrote(0, b"x", at(9));
        }
        assert_eq!(unstable.committable(at(9), None), None, "too many");

        let budget = Budget::of(10);
        let mut files = [0; 2].map(|_| Unstable::within(budget.clone()));
        files.iter_mut().for_each(|file| {
            file.is_clean();
            file.wrote(0, b"123456", at(1));
        });
        assert!(files[0].committable(at(1), None).is_some());
        assert_eq!(files[1].committable(at(1), None), None, "there is no room for both");
        drop(files);
        assert!(budget.take(10), "all of it is back");
    }

    #[test]
    fn without_a_budget_nothing_is_retained() {
        let mut unstable = Unstable::default();
        unstable.is_clean();
        unstable.wrote(0, b"x", at(1));
        assert_eq!(unstable.committable(at(1), None), None);
    }

    /// A recovery would do the older record again, over what the sync took.
    #[test]
    fn what_a_sync_took_is_not_committed_while_older_records_would_be_done_again() {
        let (mut unstable, now) = (Unstable::within(Budget::of(1 << 20)), at(1));
        unstable.is_clean();
        unstable.logged(7);
        unstable.wrote(0, b"taken by the sync", now);
        unstable.sync_begins();
        unstable.logged(9);
        unstable.wrote(100, b"new", now);
        assert_eq!(unstable.committable(now, Some((9, 9))), None, "the sync goes on");
        unstable.sync_ended(true);
        assert_eq!(unstable.synced(), 7);
        assert_eq!(unstable.committable(now, Some((7, 9))), None);
        assert_eq!(unstable.committable(now, Some((9, 9))), Some((1, 3)));
        assert_eq!(unstable.committable(now, None), Some((1, 3)));
        assert_eq!(unstable.committable(now, Some((8, 10))), None, "records of another");
        unstable.sync_begins();
        unstable.sync_ended(false);
        assert_eq!((unstable.synced(), unstable.committable(now, None)), (7, None));
    }
}
