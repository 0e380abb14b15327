//! Files by their handles, with the names that calls have shown.
//!
//! At most [`FILES_MAX`] files are distinguished; what comes on top counts as "other files".

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::quality::RandomState;
use perf::stats::shows_quantile;
use perf::units::Nanos;
use wire::show::Hex;

use super::ids::FileId;
use super::operation::Kind;
use super::series::{ROWS, row, row_begins_us};
use super::transaction::Transaction;
use super::work::Work;

/// Files that are distinguished.
pub const FILES_MAX: usize = 1 << 17;
/// Names that a path is made of.
const DEPTH_MAX: usize = 32;

/// The table of files. A handle is known by 64 bits of a hash with a random seed, so that finding
/// it touches one place in memory: among all files that there can be, two have the same hash once
/// in two thousand million captures.
#[derive(Debug)]
pub struct Files {
    by_hash: HashMap<u64, FileId, foldhash::fast::RandomState>,
    seed: RandomState,
    files: Vec<File>,
    usages: Vec<Usage>,
    /// Handles that found no place.
    pub refused: u64,
}

/// What is known of a file.
#[derive(Clone, Debug, Default)]
struct File {
    handle: Box<[u8]>,
    name: Option<Box<[u8]>>,
    parent: FileId,
}

/// What was done with a file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Usage {
    pub calls: u64,
    pub errors: u64,
    pub read_bytes: u64,
    pub written_bytes: u64,
    /// Calls whose times are known.
    pub timed: u64,
    pub latency_ns_sum: u64,
    pub latency_ns_max: u64,
    /// Bytes that were written since the last of them were made stable.
    pub(super) unsynced_bytes: u64,
    /// Calls by the row of their latency; all are halved when one is full.
    rows: [u16; ROWS],
}

impl Default for Usage {
    fn default() -> Self {
        Self {
            calls: 0,
            errors: 0,
            read_bytes: 0,
            written_bytes: 0,
            timed: 0,
            latency_ns_sum: 0,
            latency_ns_max: 0,
            unsynced_bytes: 0,
            rows: [0; ROWS],
        }
    }
}

impl Usage {
    pub(super) fn count(&mut self, transaction: &Transaction) {
        self.calls += 1;
        self.errors += u64::from(transaction.is_error());
        match transaction.operation.kind() {
            Kind::Write => self.written_bytes += u64::from(transaction.bytes),
            _ => self.read_bytes += u64::from(transaction.bytes),
        }
        let Some(latency) = transaction.latency() else { return };
        let ns = latency.as_nanos();
        self.timed += 1;
        self.latency_ns_sum = self.latency_ns_sum.saturating_add(ns);
        self.latency_ns_max = self.latency_ns_max.max(ns);
        let row = row(ns);
        if self.rows[row] == u16::MAX {
            self.rows.iter_mut().for_each(|count| *count /= 2);
        }
        self.rows[row] += 1;
    }

    /// The latency that a share `q` (0 to 1) of the calls does not exceed, within a fifth. `None`
    /// where too few calls show it.
    pub fn latency_at(&self, q: f64) -> Option<Nanos> {
        shows_quantile(self.timed, q).then(|| self.quantile(q))
    }

    fn quantile(&self, q: f64) -> Nanos {
        let most = Nanos::from_nanos(self.latency_ns_max);
        let all: u32 = self.rows.iter().map(|count| u32::from(*count)).sum();
        let mut seen = 0;
        for (row, count) in self.rows.iter().enumerate() {
            seen += u32::from(*count);
            if seen > 0 && f64::from(seen) >= q * f64::from(all) {
                return Nanos::from_micros_f64(row_begins_us(row) * 1.19).min(most);
            }
        }
        most
    }
}

impl Default for Files {
    fn default() -> Self {
        Self {
            by_hash: HashMap::default(),
            seed: RandomState::default(),
            files: vec![File::default()],
            usages: vec![Usage::default()],
            refused: 0,
        }
    }
}

impl Files {
    /// The file of a handle.
    pub(super) fn of(&mut self, handle: &[u8]) -> FileId {
        if handle.is_empty() {
            return FileId::OTHER;
        }
        let hash = self.seed.hash_one(handle);
        if let Some(&id) = self.by_hash.get(&hash) {
            return id;
        }
        let Some(id) =
            u32::try_from(self.files.len()).ok().filter(|_| self.files.len() < FILES_MAX)
        else {
            self.refused += 1;
            return FileId::OTHER;
        };
        let id = FileId(id);
        self.by_hash.insert(hash, id);
        self.usages.push(Usage::default());
        self.files.push(File { handle: handle.into(), ..File::default() });
        id
    }

    /// A call has shown that this handle is `name` in `parent`.
    pub(super) fn learn(&mut self, parent: FileId, name: &[u8], handle: &[u8]) {
        if name.is_empty() || handle.is_empty() || matches!(name, b"." | b"..") {
            return;
        }
        let id = self.of(handle);
        if id == FileId::OTHER || id == parent {
            return;
        }
        let Some(file) = self.files.get_mut(id.0 as usize) else { return };
        if file.parent != parent || file.name.as_deref() != Some(name) {
            file.name = Some(name.into());
            file.parent = parent;
        }
    }

    /// The bytes of a file's handle.
    pub fn handle(&self, id: FileId) -> &[u8] {
        self.files.get(id.0 as usize).map_or(&[], |file| &file.handle)
    }

    /// The path as far as it is known: `src/main.c`, `../main.c`, or the handle's first bytes.
    pub fn path(&self, id: FileId) -> String {
        let mut names: Vec<String> = Vec::new();
        let mut at = id;
        while let Some(file) = self.files.get(at.0 as usize).filter(|_| at != FileId::OTHER) {
            let Some(name) = file.name.as_deref() else { break };
            if names.len() == DEPTH_MAX {
                names.push("..".to_owned());
                break;
            }
            names.push(String::from_utf8_lossy(name).escape_debug().to_string());
            at = file.parent;
        }
        if names.is_empty() {
            return match self.handle(id) {
                [] => "other files".to_owned(),
                handle => short_hex(handle),
            };
        }
        names.reverse();
        names.join("/")
    }

    /// A WRITE or a COMMIT of a file was answered; how many bytes it made stable, if it did that.
    pub(super) fn synced(&mut self, id: FileId, work: Work, bytes: u32) -> Option<u64> {
        let unsynced = &mut self.usages.get_mut(id.0 as usize)?.unsynced_bytes;
        match work {
            Work::Write => {
                *unsynced += u64::from(bytes);
                None
            }
            Work::StableWrite => Some(u64::from(bytes)),
            // What belongs to which of the files that are not distinguished is not known.
            Work::Commit if id == FileId::OTHER => None,
            // Without a WRITE before it, that was not captured.
            Work::Commit => Some(std::mem::take(unsynced)).filter(|bytes| *bytes > 0),
            _ => None,
        }
    }

    pub(super) fn usage(&mut self, id: FileId) -> Option<&mut Usage> {
        self.usages.get_mut(id.0 as usize)
    }

    /// The files that had calls, with the most bytes first, then the most calls.
    pub fn busiest(&self, most: usize) -> Vec<(FileId, Usage)> {
        let all = self.usages.iter().enumerate().filter_map(|(index, usage)| {
            let id = FileId(u32::try_from(index).ok()?);
            (usage.calls > 0).then_some((id, *usage))
        });
        let mut all: Vec<(FileId, Usage)> = all.collect();
        all.sort_by_key(|(id, usage)| {
            (std::cmp::Reverse((usage.read_bytes + usage.written_bytes, usage.calls)), *id)
        });
        all.truncate(most);
        all
    }

    /// Files that were distinguished.
    pub fn count(&self) -> usize {
        self.files.len() - 1
    }
}

/// Handles differ at their ends, if they differ little.
fn short_hex(handle: &[u8]) -> String {
    match handle.len() {
        0..=16 => format!("handle {}", Hex(handle)),
        len => format!("handle {}..{}", Hex(&handle[..6]), Hex(&handle[len - 8..])),
    }
}
