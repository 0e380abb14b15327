//! What of a log is to be done again: each WRITE and SETATTR that its file is not past, in order.
//! To do it twice leaves the same.

use std::collections::BTreeMap;

use crate::frame::{Op, Record, Stamp};
use crate::scan::{Found, ScanError, walk};
use crate::{Key, Medium, Set};

/// What a file is to get.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Needed {
    pub records: u64,
    pub bytes: u64,
    /// The times after its last record; the access time only if one has set it.
    pub modified: Stamp,
    pub changed: Stamp,
    pub accessed: Option<Stamp>,
    /// Some record has set attributes.
    pub has_attributes: bool,
}

impl Needed {
    fn add(&mut self, op: &Op<'_>) {
        match op {
            Op::Data { modified, changed, data, .. } => {
                self.bytes += data.len() as u64;
                (self.modified, self.changed) = (*modified, *changed);
            }
            Op::Attributes { modified, changed, set } => {
                (self.modified, self.changed) = (*modified, *changed);
                self.accessed = set.accessed.or(self.accessed);
                self.has_attributes = true;
            }
            Op::Past { .. } => return,
        }
        self.records += 1;
    }
}

#[derive(Clone, Debug, Default)]
pub struct Plan {
    past: BTreeMap<Key, u64>,
    /// The files that get anything.
    pub files: BTreeMap<Key, Needed>,
}

impl Plan {
    /// Reads the log twice: what files are past may stand behind all of their records. Memory is
    /// 150 bytes for each file in it.
    pub fn of<M: Medium + ?Sized>(medium: &M, set: &Set, found: &Found) -> Result<Self, ScanError> {
        let mut plan = Self::default();
        walk(medium, set, found, |frame| {
            for record in frame.records().flatten() {
                if let Op::Past { through } = record.op {
                    let past = plan.past.entry(record.key).or_default();
                    *past = through.max(*past);
                }
            }
            Ok::<_, ScanError>(())
        })?;
        let mut files = BTreeMap::<_, Needed>::new();
        plan.run(medium, set, found, |record| {
            files.entry(record.key).or_default().add(&record.op);
            Ok::<_, ScanError>(())
        })?;
        plan.files = files;
        Ok(plan)
    }

    /// Whether this record is to be done again.
    pub fn needs(&self, record: &Record<'_>) -> bool {
        !matches!(record.op, Op::Past { .. })
            && self.past.get(&record.key).is_none_or(|&past| record.sequence > past)
    }

    /// Gives each record that is needed to `each`, in order.
    pub fn run<M: Medium + ?Sized, E: From<ScanError>>(
        &self,
        medium: &M,
        set: &Set,
        found: &Found,
        mut each: impl FnMut(&Record<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        walk(medium, set, found, |frame| {
            let mut records = frame.records().flatten().filter(|record| self.needs(record));
            records.try_for_each(|record| each(&record))
        })
    }
}
