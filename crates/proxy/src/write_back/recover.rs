//! What a log held when it was opened: the changes that are still to come to the origin, in their
//! order, and what came of those before them.

use std::collections::HashMap;

use bytes::Bytes;
use log::frame::Op;
use log::replay::Plan;
use log::scan::{Found, ScanError, scan, walk};
use log::{Medium, Set};
use server::types::{Before, Handle};

use super::record::{Change, Entry, Outcome};

/// See the module's head.
#[derive(Clone, Debug)]
pub struct Held {
    pub(super) found: Found,
    pub(super) entries: Vec<HeldEntry>,
    /// How the origin's files were left by changes that came there.
    pub(super) left: HashMap<Handle, Before>,
}

#[derive(Clone, Debug)]
pub(super) struct HeldEntry {
    pub(super) number: u64,
    pub(super) frame: u64,
    pub(super) entry: Entry,
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
        let (mut entries, mut left) = (Vec::new(), HashMap::new());
        walk(medium, set, &found, |frame| {
            for record in frame.records().flatten() {
                let number = record.sequence;
                match record.op {
                    Op::Change { data } if plan.needs(&record) => {
                        let entry = Entry::decode(&Bytes::copy_from_slice(data))
                            .map_err(|cause| HeldError::Record { number, cause })?;
                        entries.push(HeldEntry { number, frame: frame.header.sequence, entry });
                    }
                    Op::Change { .. } => {}
                    Op::Done { data, .. } => {
                        let outcome = Outcome::decode(data)
                            .map_err(|cause| HeldError::Record { number, cause })?;
                        left.extend(outcome.file.zip(outcome.after));
                    }
                    _ => return Err(HeldError::Foreign { number }),
                }
            }
            Ok(())
        })?;
        Ok(Self { found, entries, left })
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
        self.entries.iter().map(bytes).sum()
    }

    /// When the oldest was made, in seconds since 1970.
    pub fn oldest_seconds(&self) -> Option<i64> {
        self.entries.first().map(|held| held.entry.at.secs)
    }

    /// What each kind of change is called, and how many there are.
    pub fn kinds(&self) -> [(&'static str, usize); 5] {
        let count = |is: fn(&Change) -> bool| {
            self.entries.iter().filter(|held| is(&held.entry.change)).count()
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
