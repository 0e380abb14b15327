//! What keeps the table over a restart: a database, and a log before it.
//!
//! ```text
//!   change --write(2)--> log, before the reply --4 MiB: a thread--> database (redb), fsync
//!                         |                                          '- logs before it removed
//!                         '- survives the process in the page cache
//! ```
//!
//! A LOOKUP must not wait for a disk, but no handle may be given out that a killed server would
//! not know again. So each change of an entry is appended to a log file by a plain write: the page
//! cache keeps it when the process is killed. What the logs hold is taken over into the database
//! in one transaction each time a log has grown to [`LOG_BYTES_MAX`]; opening replays the logs
//! that are left. A power failure can lose the entries since the last transaction: their handles
//! are found stale.
//!
//! A record or a row is an entry as it is after the change, so that replaying is overwriting.
//!
//! ```text
//!   row     identity (28) -> serial (4) | place...
//!   place   directory: identity (28), serial (4) | length (1) | name
//!   record  length (2) | checksum (8) | identity (28) | the row's value, empty when it is gone
//! ```
//!
//! If the log cannot be written (a full disk), handles go on to work and to be collected for the
//! database; those met meanwhile may be forgotten in a restart. If no new log can be begun, what
//! was collected goes to the database all the same, and the old log grows on.

use std::collections::HashMap;
use std::error::Error;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::mem;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use redb::{Database, ReadableTable, TableDefinition};
use rustix::io::Errno;

use super::table::{Entry, Key, PLACES_MAX, Place};
use crate::siphash::siphash;
use crate::store::dir::acting::Acting;
use crate::store::dir::stat::Identity;
use crate::store::dir::sync::pool::Pool;

/// Guess: some 40,000 new files; replaying that many takes 20 ms.
const LOG_BYTES_MAX: usize = 4 << 20;

const IDENTITY_BYTES: usize = Identity::BYTES;
const HEAD_BYTES: usize = 10;
const FILES: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("files");

/// Against torn records, not against anybody: whoever may write here may do anything.
const CHECKSUM_KEY: [u8; 16] = [0; 16];

/// Entries by file; an empty value is of one that is gone.
type Rows = HashMap<Identity, Vec<u8>>;

/// What the database says, whose errors are large and of many types.
type Unusable = Box<dyn Error + Send + Sync>;

/// Why the table's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Database { path: PathBuf, error: Unusable },
}

/// The table's state on disk. Changes come in the order in which the table makes them.
pub(super) struct Kept {
    base: PathBuf,
    acting: Acting,
    log: File,
    number: u64,
    log_bytes: usize,
    /// What was written since rows last went to the database.
    waiting_bytes: usize,
    /// Changed since the last log was begun.
    changed: Rows,
    /// `None` when the table has gone: the logs stay then.
    database: Arc<Mutex<Option<Database>>>,
    /// Rows that a failed transaction left; they go with the next.
    failed: Arc<Mutex<Rows>>,
    is_committing: Arc<AtomicBool>,
    thread: Pool,
}

impl Kept {
    /// Opens or makes the state of the export whose root is this inode of this file system, in
    /// `dir`, and gives what was known. One process at a time: the database is locked. Threads that
    /// call it later may act as others than the server: logs are begun with the rights of `acting`.
    pub(super) fn open(
        dir: &Path,
        (file_system, root): (u64, u64),
        acting: Acting,
    ) -> Result<(Self, Vec<(Identity, Entry)>), StateError> {
        let broken = |path: &Path| {
            let path = path.to_owned();
            move |error| StateError::File { path, error }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(broken(dir))?;
        let base = dir.join(format!("handles-{file_system:x}-{root:x}"));
        let path = base.with_extension("redb");
        let unusable = |error: Unusable| {
            let path = path.clone();
            StateError::Database { path, error }
        };
        let database = Database::create(&path).map_err(|error| unusable(error.into()))?;
        let logs = logs(dir, &base).map_err(broken(dir))?;
        let mut replayed = Rows::new();
        for (_, log) in &logs {
            replay(&fs::read(log).map_err(broken(log))?, &mut replayed);
        }
        commit(&database, &replayed).map_err(unusable)?;
        for (_, log) in &logs {
            fs::remove_file(log).map_err(broken(log))?;
        }
        let entries = entries(&database).map_err(unusable)?;
        let number = logs.last().map_or(0, |(number, _)| number + 1);
        let path = log_path(&base, number);
        let log = new_log(&path).map_err(broken(&path))?;
        let thread = Pool::start("nfskit-handles", 1, 1).map_err(broken(dir))?;
        let kept = Self {
            base,
            acting,
            log,
            number,
            log_bytes: 0,
            waiting_bytes: 0,
            changed: Rows::new(),
            database: Arc::new(Mutex::new(Some(database))),
            failed: Arc::default(),
            is_committing: Arc::default(),
            thread,
        };
        Ok((kept, entries))
    }

    /// The entry of `file` is now this, or gone. In the log when this returns.
    pub(super) fn note(&mut self, file: Identity, entry: Option<&Entry>) {
        let value = entry.map_or_else(Vec::new, encode);
        let mut record = vec![0; HEAD_BYTES];
        record.extend_from_slice(&file.to_bytes());
        record.extend_from_slice(&value);
        seal(&mut record);
        // A torn record would hide those behind it.
        if self.log.write_all(&record).is_err() {
            let _ = self.log.set_len(self.log_bytes as u64);
        } else {
            self.log_bytes += record.len();
        }
        self.waiting_bytes += record.len();
        self.changed.insert(file, value);
        let waits = self.waiting_bytes >= LOG_BYTES_MAX || self.changed.len() >= LOG_BYTES_MAX / 64;
        if waits && !self.is_committing.swap(true, Ordering::AcqRel) {
            self.hand_over();
        }
    }

    /// Begins a new log, and lets a thread put what the others hold into the database.
    fn hand_over(&mut self) {
        let next = self.number + 1;
        let path = log_path(&self.base, next);
        let begun = self.acting.as_server(|| {
            new_log(&path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
        });
        if let Ok(log) = begun {
            (self.log, self.number, self.log_bytes) = (log, next, 0);
        }
        self.waiting_bytes = 0;
        let written_to = self.number;
        let mut rows = mem::take(&mut *self.failed.lock());
        rows.extend(mem::take(&mut self.changed));
        let (database, failed) = (Arc::clone(&self.database), Arc::clone(&self.failed));
        let (base, committing) = (self.base.clone(), Arc::clone(&self.is_committing));
        self.thread.run(Box::new(move || {
            match database.lock().as_ref().map(|database| commit(database, &rows)) {
                Some(Ok(())) => remove_logs_before(&base, written_to),
                Some(Err(_)) => *failed.lock() = rows,
                None => {}
            }
            committing.store(false, Ordering::Release);
        }));
    }
}

/// Closes the database, after the transaction that may be under way, so that it can be opened
/// again at once.
impl Drop for Kept {
    fn drop(&mut self) {
        drop(self.database.lock().take());
    }
}

fn log_path(base: &Path, number: u64) -> PathBuf {
    base.with_extension(format!("log.{number:08}"))
}

fn new_log(path: &Path) -> io::Result<File> {
    OpenOptions::new().append(true).create(true).truncate(false).mode(0o600).open(path)
}

/// The logs there are, in the order in which they were written.
fn logs(dir: &Path, base: &Path) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    let prefix = base.with_extension("log.");
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let number = path.to_str().zip(prefix.to_str());
        let number = number.and_then(|(path, prefix)| path.strip_prefix(prefix)?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort();
    Ok(found)
}

/// Those that stay are replayed once more by the next start, to the same effect.
fn remove_logs_before(base: &Path, number: u64) {
    let found = base.parent().and_then(|dir| logs(dir, base).ok()).unwrap_or_default();
    for (_, path) in found.into_iter().filter(|(older, _)| *older < number) {
        let _ = fs::remove_file(path);
    }
}

fn commit(database: &Database, rows: &Rows) -> Result<(), Unusable> {
    if rows.is_empty() {
        return Ok(());
    }
    let transaction = database.begin_write()?;
    {
        let mut table = transaction.open_table(FILES)?;
        for (file, value) in rows {
            let key = file.to_bytes();
            match value.is_empty() {
                true => drop(table.remove(key.as_slice())?),
                false => drop(table.insert(key.as_slice(), value.as_slice())?),
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

fn entries(database: &Database) -> Result<Vec<(Identity, Entry)>, Unusable> {
    let mut found = Vec::new();
    let transaction = database.begin_read()?;
    let table = match transaction.open_table(FILES) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(found),
        Err(error) => return Err(error.into()),
    };
    for row in table.iter()? {
        let (key, value) = row?;
        let file = Identity::from_bytes(key.value());
        found.extend(file.zip(decode(value.value())));
    }
    Ok(found)
}

/// Reads records up to the first that is not whole.
fn replay(mut log: &[u8], rows: &mut Rows) {
    while let Some((record, rest)) = next_record(log) {
        let (file, value) = record.split_at(IDENTITY_BYTES);
        if let Some(file) = Identity::from_bytes(file) {
            rows.insert(file, value.to_vec());
        }
        log = rest;
    }
}

fn next_record(log: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = log.split_first_chunk::<2>()?;
    let (checksum, rest) = rest.split_first_chunk::<8>()?;
    let (record, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    let whole = siphash(&CHECKSUM_KEY, record) == u64::from_le_bytes(*checksum);
    (whole && record.len() >= IDENTITY_BYTES).then_some((record, rest))
}

/// Fills in the head. Eight names of 255 bytes are far from 64 KiB.
fn seal(record: &mut [u8]) {
    if let Some((head, body)) = record.split_first_chunk_mut::<HEAD_BYTES>() {
        let len = u16::try_from(body.len()).unwrap_or(0);
        head[..2].copy_from_slice(&len.to_le_bytes());
        head[2..].copy_from_slice(&siphash(&CHECKSUM_KEY, body).to_le_bytes());
    }
}

fn encode(entry: &Entry) -> Vec<u8> {
    let mut value = entry.serial.to_le_bytes().to_vec();
    for Place { dir, name } in &entry.places {
        value.extend_from_slice(&dir.identity.to_bytes());
        value.extend_from_slice(&dir.serial.to_le_bytes());
        value.push(u8::try_from(name.len()).unwrap_or(0));
        value.extend_from_slice(name);
    }
    value
}

/// `None` for what this program did not write.
fn decode(value: &[u8]) -> Option<Entry> {
    let (serial, mut rest) = value.split_first_chunk::<4>()?;
    let mut places = Vec::new();
    while !rest.is_empty() && places.len() < PLACES_MAX {
        let (dir, more) = rest.split_at_checked(IDENTITY_BYTES)?;
        let (dir_serial, more) = more.split_first_chunk::<4>()?;
        let (len, more) = more.split_first()?;
        let (name, more) = more.split_at_checked(usize::from(*len))?;
        let dir =
            Key { identity: Identity::from_bytes(dir)?, serial: u32::from_le_bytes(*dir_serial) };
        places.push(Place { dir, name: name.into() });
        rest = more;
    }
    let serial = u32::from_le_bytes(*serial);
    (!places.is_empty()).then_some(Entry { serial, places, children: 0 })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::dir::acting::act_as_server;
    use crate::types::Caller;

    fn file(inode: u64) -> Identity {
        Identity { device: 1, inode, born_secs: -5, born_nanos: 7 }
    }

    fn entry(serial: u32, names: &[&str]) -> Entry {
        let dir = Key { identity: file(2), serial: 0 };
        let place = |name: &&str| Place { dir, name: name.as_bytes().into() };
        Entry { serial, places: names.iter().map(place).collect(), children: 0 }
    }

    fn opened(dir: &Path) -> (Kept, Vec<(u64, u32, usize)>) {
        let (kept, entries) = Kept::open(dir, (1, 2), Acting::Process).unwrap();
        let said =
            |(file, entry): (Identity, Entry)| (file.inode, entry.serial, entry.places.len());
        let mut known: Vec<_> = entries.into_iter().map(said).collect();
        known.sort_unstable();
        (kept, known)
    }

    #[test]
    fn what_was_noted_is_known_when_the_process_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut kept, known) = opened(dir.path());
        assert_eq!(known, []);
        kept.note(file(3), Some(&entry(1, &["a"])));
        kept.note(file(4), Some(&entry(2, &["b", "c"])));
        kept.note(file(3), None);
        // Nothing is written at the end.
        drop(kept);
        let (mut kept, known) = opened(dir.path());
        assert_eq!(known, [(4, 2, 2)]);
        kept.note(file(5), Some(&entry(3, &["d"])));
        drop(kept);
        assert_eq!(opened(dir.path()).1, [(4, 2, 2), (5, 3, 1)]);
    }

    #[test]
    fn a_torn_record_ends_the_log_and_nothing_else() {
        let mut log = Vec::new();
        for inode in 3..6 {
            let mut record = vec![0; HEAD_BYTES];
            record.extend_from_slice(&file(inode).to_bytes());
            record.extend_from_slice(&encode(&entry(1, &["name"])));
            seal(&mut record);
            log.extend_from_slice(&record);
        }
        for len in 0..log.len() {
            let mut rows = Rows::new();
            replay(&log[..len], &mut rows);
            assert_eq!(rows.len(), len * 3 / log.len());
            let mut spoilt = log.clone();
            spoilt[len] ^= 0x10;
            replay(&spoilt, &mut rows);
        }
    }

    #[test]
    fn logs_are_taken_over_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut kept, _) = opened(dir.path());
        let name = "n".repeat(250);
        let count = LOG_BYTES_MAX as u64 / 250;
        for inode in 0..count {
            kept.note(file(10 + inode), Some(&entry(1, &[&name])));
        }
        assert!(kept.number > 0);
        drop(kept);
        assert_eq!(opened(dir.path()).1.len() as u64, count);
        assert_eq!(logs(dir.path(), &dir.path().join("handles-1-2")).unwrap().len(), 1);
    }

    /// Operations run as their callers, who may not write where the state is.
    #[test]
    fn a_log_is_begun_with_the_servers_rights_whoever_calls() {
        let acting = Acting::probe();
        if acting == Acting::Process {
            let _ = writeln!(io::stderr(), "NOT TESTED: acting as callers: this process may not");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let (mut kept, _) = Kept::open(dir.path(), (1, 2), acting).unwrap();
        let caller = Caller { uid: 4711, gid: 4711, gids: Vec::new() };
        acting.act_as(&caller).unwrap();
        let name = "n".repeat(250);
        for inode in 0..LOG_BYTES_MAX as u64 / 250 {
            kept.note(file(10 + inode), Some(&entry(1, &[&name])));
        }
        act_as_server();
        assert!(kept.number > 0, "the first log was full");
    }

    /// The state is gone from under the server: nothing grows without end.
    #[test]
    fn where_no_log_can_be_begun_rows_go_to_the_database_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (mut kept, _) = opened(dir.path());
        // No file can be made in what is none.
        kept.base = PathBuf::from("/dev/null/handles");
        let name = "n".repeat(250);
        let count = LOG_BYTES_MAX as u64 / 250;
        for inode in 0..count {
            kept.note(file(10 + inode), Some(&entry(1, &[&name])));
            while kept.is_committing.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        assert_eq!(kept.number, 0);
        assert!(kept.changed.len() < 20_000, "some 13,000 fill a log");
        drop(kept);
        assert_eq!(opened(dir.path()).1.len() as u64, count);
    }

    #[test]
    fn two_processes_do_not_share_the_state() {
        let dir = tempfile::tempdir().unwrap();
        let (_kept, _) = opened(dir.path());
        assert!(matches!(
            Kept::open(dir.path(), (1, 2), Acting::Process),
            Err(StateError::Database { .. })
        ));
        assert!(
            Kept::open(dir.path(), (1, 3), Acting::Process).is_ok(),
            "another export has its own"
        );
    }

    #[test]
    fn rows_that_nobody_wrote_are_passed_over() {
        let whole = encode(&entry(1, &["name", "x"]));
        assert_eq!(decode(&whole).unwrap().places.len(), 2);
        for len in 0..whole.len() {
            assert!(decode(&whole[..len]).is_none_or(|entry| entry.places.len() == 1));
        }
    }
}
