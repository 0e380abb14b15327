//! What a log held when it was opened: the changes that are still to come to the origin, in their
//! order, and what came of those before them.

use std::collections::{BTreeMap, HashMap};

use bytes::Bytes;
use log::frame::Op;
use log::replay::Plan;
use log::scan::{Found, ScanError, scan, walk};
use log::{Medium, Set};
use server::types::{Before, Handle};

use super::killed::Lives;
use super::record::{Change, Entry, Outcome};
use super::touches::{OF_LIFE, number_of};

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Held {
    pub(super) found: Found,
    /// By their numbers, which is their order.
    pub(super) entries: BTreeMap<u64, HeldEntry>,
    /// How the origin's files were left by changes that came there.
    pub(super) left: HashMap<Handle, Before>,
    /// When proxies before this one may have changed files there.
    pub(super) lives: Lives,
}

#[derive(Clone, Debug)]
pub(super) struct HeldEntry {
    pub(super) entry: Entry,
    /// Of its record.
    pub(super) bytes: usize,
    /// Each record that has it, and the frame of that.
    pub(super) records: Vec<(u64, u64)>,
}

/// Why a log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum HeldError {
    #[error(transparent)]
    Scan(#[from] ScanError),
    #[error("record {number} is whole and says what cannot be: {cause}")]
    Record { number: u64, cause: wire::xdr::DecodeError },
    #[error("record {number} is none of a proxy's")]
    Foreign { number: u64 },
}

impl Held {
    /// Reads all that is needed.
    ///
    /// # Errors
    /// [`HeldError`]: what was stable is not there, or makes no sense.
    pub fn read<M: Medium + ?Sized>(medium: &M, set: &Set) -> Result<Self, HeldError> {
        let found = scan(medium, set)?;
        let plan = Plan::of(medium, set, &found)?;
        let (mut entries, mut left) = (BTreeMap::<_, HeldEntry>::new(), HashMap::new());
        let mut lives = Lives::default();
        walk(medium, set, &found, |frame| {
            for record in frame.records().flatten() {
                let number = record.sequence;
                match record.op {
                    Op::Change { data } if plan.needs(&record) => {
                        let entry = Entry::decode(&Bytes::copy_from_slice(data))
                            .map_err(|cause| HeldError::Record { number, cause })?;
                        let first = number_of(&record.key).ok_or(HeldError::Foreign { number })?;
                        let mut records: Vec<_> =
                            entries.remove(&first).map_or_else(Vec::new, |held| held.records);
                        records.push((number, frame.header.sequence));
                        // The last record knows best how its file was left.
                        let bytes = data.len();
                        entries.insert(first, HeldEntry { entry, bytes, records });
                    }
                    Op::Change { .. } => {}
                    Op::Done { data, .. } => {
                        let outcome = Outcome::decode(data)
                            .map_err(|cause| HeldError::Record { number, cause })?;
                        match number_of(&record.key) {
                            Some(OF_LIFE) => lives.note(&outcome),
                            _ => left.extend(outcome.file.zip(outcome.after)),
                        }
                    }
                    _ => return Err(HeldError::Foreign { number }),
                }
            }
            Ok(())
        })?;
        Ok(Self { found, entries, left, lives })
    }

    /// Changes that are still to come to the origin.
    pub fn changes(&self) -> usize {
        self.entries.len()
    }

    /// Bytes of data in them.
    pub fn bytes(&self) -> u64 {
        let bytes = |held: &HeldEntry| match &held.entry.change {
            Change::Write { data, .. } => data.len() as u64,
            _ => 0,
        };
        self.entries.values().map(bytes).sum()
    }

    /// When the oldest was made, in seconds since 1970.
    pub fn oldest_seconds(&self) -> Option<i64> {
        self.entries.values().next().map(|held| held.entry.at.secs)
    }

    /// What each kind of change is called, and how many there are.
    pub fn kinds(&self) -> [(&'static str, usize); 5] {
        let count = |is: fn(&Change) -> bool| {
            self.entries.values().filter(|held| is(&held.entry.change)).count()
        };
        [
            ("WRITE", count(|change| matches!(change, Change::Write { .. }))),
            ("SETATTR", count(|change| matches!(change, Change::Set { .. }))),
            ("CREATE, MKDIR, SYMLINK", count(|change| matches!(change, Change::Make { .. }))),
            ("REMOVE, RMDIR", count(|change| matches!(change, Change::Remove { .. }))),
            ("RENAME", count(|change| matches!(change, Change::Rename { .. }))),
        ]
    }
}
