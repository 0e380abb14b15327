//! The origin's long handles by their numbers: a bounded table, and its rows on disk.

use std::path::Path;

use lru::LruCache;
use parking_lot::Mutex;
use server::store::state::{Row, StateError, StateRows, new_log};
use wire::nfs3::FileHandle;

use super::Number;

pub(super) struct Table {
    /// Guards the rows, and what keeps them; held for a look and perhaps a write(2).
    rows: Mutex<Rows>,
}

struct Rows {
    /// Bounded by `max`: a bounded one would take all of its memory at once.
    by_number: LruCache<Number, FileHandle>,
    max: usize,
    stored: Option<StateRows>,
}

impl std::fmt::Debug for Table {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Table").field("rows", &self.len()).finish()
    }
}

impl Table {
    /// At most `rows_max` rows, those of this name in `state` if there is one.
    pub(super) fn open(
        state: Option<&Path>,
        name: &str,
        rows_max: usize,
    ) -> Result<Self, StateError> {
        let mut by_number = LruCache::unbounded();
        let mut stored = None;
        if let Some(dir) = state {
            let (own, rows) = StateRows::open(dir, name, size_of::<Number>(), Box::new(new_log))?;
            for (number, origin) in rows.into_iter().filter_map(row) {
                by_number.put(number, origin);
            }
            stored = Some(own);
        }
        Ok(Self { rows: Mutex::new(Rows { by_number, max: rows_max.max(1), stored }) })
    }

    pub(super) fn is_stored(&self) -> bool {
        self.rows.lock().stored.is_some()
    }

    pub(super) fn len(&self) -> usize {
        self.rows.lock().by_number.len()
    }

    /// Rows that a restart may forget, after another try to write them.
    pub(super) fn unstored(&self) -> usize {
        unstored(&mut self.rows.lock().stored)
    }

    pub(super) fn find(&self, number: &Number) -> Option<FileHandle> {
        self.rows.lock().by_number.get(number).copied()
    }

    /// The number is of this handle. Where rows are stored, it is in their log when this returns.
    pub(super) fn note(&self, number: Number, origin: &FileHandle) {
        let mut rows = self.rows.lock();
        let Rows { by_number, max, stored } = &mut *rows;
        if by_number.get(&number).is_some() {
            return;
        }
        let gone = (by_number.len() >= *max).then(|| by_number.pop_lru()).flatten();
        by_number.put(number, *origin);
        if let Some(stored) = stored {
            stored.note(&number, origin.as_bytes().to_vec());
            if let Some((gone, _)) = gone {
                stored.note(&gone, Vec::new());
            }
        }
    }
}

/// Rows that a restart may forget, after another try to write them.
pub(crate) fn unstored(stored: &mut Option<StateRows>) -> usize {
    let Some(stored) = stored else { return 0 };
    stored.retry();
    stored.unlogged()
}

/// What this program wrote; others are passed over.
fn row((key, value): Row) -> Option<(Number, FileHandle)> {
    Some((Number::try_from(key.as_slice()).ok()?, FileHandle::new(&value)?))
}
