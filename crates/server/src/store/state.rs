//! Rows that outlive a killed process: a database, and a log before it.
//!
//! ```text
//!   change --write(2)--> log, before the reply --4 MiB: a thread--> database (redb), fsync
//!                         |                                          '- logs before it removed
//!                         '- survives the process in the page cache
//! ```
//!
//! A LOOKUP must not wait for a disk, but no handle may be given out that a killed server would
//! not know again. So each change of a row is appended to a log file by a plain write: the page
//! cache keeps it when the process is killed. What the logs hold is taken over into the database
//! in one transaction each time a log has grown to `LOG_BYTES_MAX`; opening replays the logs
//! that are left. A power failure can lose the rows since the last transaction.
//!
//! A record or a row is as it is after the change, so that replaying is overwriting.
//!
//! ```text
//!   row     key -> value
//!   record  length (2) | checksum (8) | key | value, empty when the row is gone
//! ```
//!
//! If the log cannot be written (a full disk), rows are collected for the database all the same,
//! and written to the log when there is room again ([`StateRows::retry`]); a restart before that
//! may forget them, so their number is reported. If no new log can be begun, what was collected
//! goes to the database, and the old log grows on.
//!
//! If the database takes nothing, what was collected waits for it, up to `ROWS_MAX` rows. More are
//! left to the logs, which stay then until the next start has replayed them.

use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fmt;
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use redb::{Database, ReadableTable, TableDefinition};

use super::pool::Pool;
use crate::siphash::siphash;

/// Guess: some 40,000 new files; replaying that many takes 20 ms.
pub(crate) const LOG_BYTES_MAX: usize = 4 << 20;

/// Rows that wait for room in the log. What is noted beyond that is for the database alone.
const UNLOGGED_MAX: usize = 1 << 20;

/// Rows that wait for the database: twice those that may wait for a log, too.
const ROWS_MAX: usize = 2 * UNLOGGED_MAX;

const HEAD_BYTES: usize = 10;
const ROWS: TableDefinition<'_, &[u8], &[u8]> = TableDefinition::new("files");

/// Against torn records, not against anybody: whoever may write here may do anything.
const CHECKSUM_KEY: [u8; 16] = [0; 16];

/// Rows by key; an empty value is of one that is gone.
type Rows = HashMap<Vec<u8>, Vec<u8>>;

/// A row: key and value.
pub type Row = (Vec<u8>, Vec<u8>);

/// Opens a log for appending, with the rights of whoever owns the state: threads that note rows may
/// act as others. [`new_log`] does it with those of the thread.
pub type NewLog = Box<dyn Fn(&Path) -> io::Result<File> + Send + Sync>;

/// What the database says, whose errors are large and of many types.
type Unusable = Box<dyn Error + Send + Sync>;

/// Why stored rows cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    #[error("{}: {error}", path.display())]
    File { path: PathBuf, error: io::Error },
    #[error("{}: {error}", path.display())]
    Database { path: PathBuf, error: Unusable },
}

/// Rows on disk. Changes come in the order in which their owner makes them.
pub struct StateRows {
    base: PathBuf,
    new_log: NewLog,
    log: File,
    /// The log before this one, whose rows may still be on their way to the database.
    previous: Option<File>,
    number: u64,
    log_bytes: usize,
    /// What was written since rows last went to the database.
    waiting_bytes: usize,
    /// Changed since the last log was begun.
    changed: Rows,
    /// Of these, those that could not be written to a log.
    unlogged: BTreeMap<Vec<u8>, Vec<u8>>,
    /// `None` when the owner has gone: the logs stay then.
    database: Arc<Mutex<Option<Database>>>,
    /// Rows that a failed transaction left; they go with the next.
    failed: Arc<Mutex<Rows>>,
    is_committing: Arc<AtomicBool>,
    rows_max: usize,
    /// They have rows that are nowhere else.
    logs_stay: bool,
    thread: Pool,
}

impl fmt::Debug for StateRows {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StateRows").field("base", &self.base).finish_non_exhaustive()
    }
}

/// The database's file, which is its owner's alone, whatever the umask: a server has none.
fn private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(libc::O_NOFOLLOW).open(path)?;
    file.set_permissions(Permissions::from_mode(0o600))?;
    Ok(file)
}

impl StateRows {
    /// Opens or makes the rows of this name in `dir`, and gives what was known. Keys have
    /// `key_bytes` each. One process at a time: the database is locked.
    ///
    /// # Errors
    /// [`StateError`], which names the file.
    pub fn open(
        dir: &Path,
        name: &str,
        key_bytes: usize,
        new_log: NewLog,
    ) -> Result<(Self, Vec<Row>), StateError> {
        let broken = |path: &Path| {
            let path = path.to_owned();
            move |error| StateError::File { path, error }
        };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(dir).map_err(broken(dir))?;
        let base = dir.join(name);
        let path = base.with_extension("redb");
        let unusable = |error: Unusable| {
            let path = path.clone();
            StateError::Database { path, error }
        };
        let file = private(&path).map_err(broken(&path))?;
        let database = Database::builder().create_file(file);
        let database = database.map_err(|error| unusable(error.into()))?;
        let logs = logs(dir, &base).map_err(broken(dir))?;
        let mut replayed = Rows::new();
        for (_, log) in &logs {
            replay(&fs::read(log).map_err(broken(log))?, key_bytes, &mut replayed);
        }
        commit(&database, &replayed).map_err(unusable)?;
        for (_, log) in &logs {
            fs::remove_file(log).map_err(broken(log))?;
        }
        let rows = rows(&database).map_err(unusable)?;
        let number = logs.last().map_or(0, |(number, _)| number + 1);
        let path = log_path(&base, number);
        let log = new_log(&path).map_err(broken(&path))?;
        let thread = Pool::start("nfskit-handles", 1, 1).map_err(broken(dir))?;
        let stored = Self {
            base,
            new_log,
            log,
            previous: None,
            number,
            log_bytes: 0,
            waiting_bytes: 0,
            changed: Rows::new(),
            unlogged: BTreeMap::new(),
            database: Arc::new(Mutex::new(Some(database))),
            failed: Arc::default(),
            is_committing: Arc::default(),
            rows_max: ROWS_MAX,
            logs_stay: false,
            thread,
        };
        Ok((stored, rows))
    }

    /// The row of `key` is now this, or gone where `value` is empty. In the log when this returns,
    /// or among [`Self::unlogged`].
    pub fn note(&mut self, key: &[u8], value: Vec<u8>) {
        // An older one of the same key must not come after it.
        self.unlogged.remove(key);
        match self.append(key, &value) {
            true => self.retry(),
            false if self.unlogged.len() >= UNLOGGED_MAX => {}
            false => drop(self.unlogged.insert(key.to_vec(), value.clone())),
        }
        self.waiting_bytes += HEAD_BYTES + key.len() + value.len();
        self.changed.insert(key.to_vec(), value);
        let changed = mem::take(&mut self.changed);
        self.changed = self.bounded(changed);
        let waits = self.waiting_bytes >= LOG_BYTES_MAX || self.changed.len() >= LOG_BYTES_MAX / 64;
        if waits && !self.is_committing.swap(true, Ordering::AcqRel) {
            self.hand_over();
        }
    }

    /// Rows that are in no log, and that a restart may forget.
    pub fn unlogged(&self) -> usize {
        self.unlogged.len()
    }

    /// Writes those to the log, if there is room again. To be called now and then.
    pub fn retry(&mut self) {
        while let Some((key, value)) = self.unlogged.pop_first() {
            if !self.append(&key, &value) {
                self.unlogged.insert(key, value);
                return;
            }
        }
    }

    /// Whether the log has it.
    fn append(&mut self, key: &[u8], value: &[u8]) -> bool {
        let mut record = vec![0; HEAD_BYTES];
        record.extend_from_slice(key);
        record.extend_from_slice(value);
        seal(&mut record);
        let is_written = self.log.write_all(&record).is_ok();
        match is_written {
            true => self.log_bytes += record.len(),
            // A torn record would hide those behind it.
            false => drop(self.log.set_len(self.log_bytes as u64)),
        }
        is_written
    }

    /// What to sync (fdatasync) so that all rows that were noted survive power loss. The files are
    /// others than these, so that nobody has to wait meanwhile.
    ///
    /// # Errors
    /// Some are in no log, or there is no descriptor for it.
    pub fn unsynced(&mut self) -> io::Result<Vec<File>> {
        self.retry();
        if self.unlogged() > 0 {
            return Err(ErrorKind::StorageFull.into());
        }
        let mut older = Vec::new();
        if self.logs_stay || !self.failed.lock().is_empty() {
            let dir = self.base.parent().unwrap_or_else(|| Path::new("."));
            older = logs(dir, &self.base)?;
        }
        let older = older.iter().map(|(_, path)| File::open(path));
        let newest = self.previous.iter().chain([&self.log]).map(File::try_clone);
        // With the directory, which has the logs' names.
        older.chain(newest).chain(self.base.parent().map(File::open)).collect()
    }

    /// These, or if they are too many those of them that no log has and that wait for one.
    fn bounded(&mut self, mut rows: Rows) -> Rows {
        if rows.len() > self.rows_max {
            rows.retain(|key, _| self.unlogged.contains_key(key));
            rows.shrink_to_fit();
            self.logs_stay = true;
        }
        rows
    }

    /// Begins a new log, and lets a thread put what the others hold into the database.
    fn hand_over(&mut self) {
        let next = self.number + 1;
        if let Ok(log) = (self.new_log)(&log_path(&self.base, next)) {
            self.previous = Some(mem::replace(&mut self.log, log));
            (self.number, self.log_bytes) = (next, 0);
        }
        self.waiting_bytes = 0;
        let written_to = self.number;
        let mut rows = mem::take(&mut *self.failed.lock());
        rows.extend(mem::take(&mut self.changed));
        let (rows, logs_stay) = (self.bounded(rows), self.logs_stay);
        let (database, failed) = (Arc::clone(&self.database), Arc::clone(&self.failed));
        let (base, committing) = (self.base.clone(), Arc::clone(&self.is_committing));
        self.thread.run(Box::new(move || {
            match database.lock().as_ref().map(|database| commit(database, &rows)) {
                Some(Ok(())) if logs_stay => {}
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
impl Drop for StateRows {
    fn drop(&mut self) {
        drop(self.database.lock().take());
    }
}

fn log_path(base: &Path, number: u64) -> PathBuf {
    base.with_extension(format!("log.{number:08}"))
}

/// A log of this name, for appending; only its owner may read it.
///
/// # Errors
/// As the system says.
pub fn new_log(path: &Path) -> io::Result<File> {
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
        let mut table = transaction.open_table(ROWS)?;
        for (key, value) in rows {
            match value.is_empty() {
                true => drop(table.remove(key.as_slice())?),
                false => drop(table.insert(key.as_slice(), value.as_slice())?),
            }
        }
    }
    transaction.commit()?;
    Ok(())
}

fn rows(database: &Database) -> Result<Vec<Row>, Unusable> {
    let mut found = Vec::new();
    let transaction = database.begin_read()?;
    let table = match transaction.open_table(ROWS) {
        Ok(table) => table,
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(found),
        Err(error) => return Err(error.into()),
    };
    for row in table.iter()? {
        let (key, value) = row?;
        found.push((key.value().to_vec(), value.value().to_vec()));
    }
    Ok(found)
}

/// Reads records up to the first that is not whole.
fn replay(mut log: &[u8], key_bytes: usize, rows: &mut Rows) {
    while let Some((record, rest)) = next_record(log) {
        let Some((key, value)) = record.split_at_checked(key_bytes) else { return };
        rows.insert(key.to_vec(), value.to_vec());
        log = rest;
    }
}

fn next_record(log: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = log.split_first_chunk::<2>()?;
    let (checksum, rest) = rest.split_first_chunk::<8>()?;
    let (record, rest) = rest.split_at_checked(usize::from(u16::from_le_bytes(*len)))?;
    let whole = siphash(&CHECKSUM_KEY, record) == u64::from_le_bytes(*checksum);
    whole.then_some((record, rest))
}

/// Fills in the head. Rows are far from 64 KiB: eight names of 255 bytes at most.
fn seal(record: &mut [u8]) {
    if let Some((head, body)) = record.split_first_chunk_mut::<HEAD_BYTES>() {
        let len = u16::try_from(body.len()).unwrap_or(0);
        head[..2].copy_from_slice(&len.to_le_bytes());
        head[2..].copy_from_slice(&siphash(&CHECKSUM_KEY, body).to_le_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY_BYTES: usize = 4;
    const VALUE: [u8; 250] = [7; 250];

    fn opened(dir: &Path) -> (StateRows, Vec<(u32, usize)>) {
        let (stored, rows) = StateRows::open(dir, "rows", KEY_BYTES, Box::new(new_log)).unwrap();
        let parts = |(key, value): Row| (u32::from_be_bytes(key.try_into().unwrap()), value.len());
        let mut known: Vec<_> = rows.into_iter().map(parts).collect();
        known.sort_unstable();
        (stored, known)
    }

    fn note(stored: &mut StateRows, key: u32, value: &[u8]) {
        stored.note(&key.to_be_bytes(), value.to_vec());
    }

    /// A server has no umask.
    #[test]
    fn what_is_stored_is_its_owners_alone() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rows.redb");
        fs::write(&path, "").unwrap();
        // As an earlier version made it.
        fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
        let (_stored, _) = opened(dir.path());
        for file in fs::read_dir(dir.path()).unwrap().flatten() {
            assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{file:?}");
        }
    }

    #[test]
    fn what_was_noted_is_known_when_the_process_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut stored, known) = opened(dir.path());
        assert_eq!(known, []);
        note(&mut stored, 3, b"a");
        note(&mut stored, 4, b"bc");
        note(&mut stored, 3, b"");
        // Nothing is written at the end.
        drop(stored);
        let (mut stored, known) = opened(dir.path());
        assert_eq!(known, [(4, 2)]);
        note(&mut stored, 5, b"d");
        drop(stored);
        assert_eq!(opened(dir.path()).1, [(4, 2), (5, 1)]);
    }

    #[test]
    fn a_torn_record_ends_the_log_and_nothing_else() {
        let mut log = Vec::new();
        for key in 3..6_u32 {
            let mut record = vec![0; HEAD_BYTES];
            record.extend_from_slice(&key.to_be_bytes());
            record.extend_from_slice(b"value");
            seal(&mut record);
            log.extend_from_slice(&record);
        }
        for len in 0..log.len() {
            let mut rows = Rows::new();
            replay(&log[..len], KEY_BYTES, &mut rows);
            assert_eq!(rows.len(), len * 3 / log.len());
            let mut spoilt = log.clone();
            spoilt[len] ^= 0x10;
            replay(&spoilt, KEY_BYTES, &mut rows);
            assert!(rows.values().all(|value| value == b"value"));
        }
    }

    #[test]
    fn logs_are_taken_over_and_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut stored, _) = opened(dir.path());
        let count = u32::try_from(LOG_BYTES_MAX / VALUE.len()).unwrap();
        (0..count).for_each(|key| note(&mut stored, key, &VALUE));
        assert!(stored.number > 0);
        drop(stored);
        assert_eq!(opened(dir.path()).1.len(), count as usize);
        assert_eq!(logs(dir.path(), &dir.path().join("rows")).unwrap().len(), 1);
    }

    /// The state is gone from under the server: nothing grows without end.
    #[test]
    fn where_no_log_can_be_begun_rows_go_to_the_database_all_the_same() {
        let dir = tempfile::tempdir().unwrap();
        let (mut stored, _) = opened(dir.path());
        // No file can be made in what is none.
        stored.base = PathBuf::from("/dev/null/rows");
        let count = u32::try_from(LOG_BYTES_MAX / VALUE.len()).unwrap();
        for key in 0..count {
            note(&mut stored, key, &VALUE);
            while stored.is_committing.load(Ordering::Acquire) {
                std::thread::yield_now();
            }
        }
        assert_eq!(stored.number, 0);
        assert!(stored.changed.len() < 20_000, "some 16,000 fill a log");
        drop(stored);
        assert_eq!(opened(dir.path()).1.len(), count as usize);
    }

    #[test]
    fn what_finds_no_room_in_the_log_is_counted_and_written_when_there_is_some() {
        let dir = tempfile::tempdir().unwrap();
        let (mut stored, _) = opened(dir.path());
        note(&mut stored, 3, b"old");
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let log = mem::replace(&mut stored.log, full);
        for (key, value) in [(3, &b"a"[..]), (4, b"bc"), (5, b"d"), (5, b"")] {
            note(&mut stored, key, value);
        }
        assert_eq!(stored.unlogged(), 3);
        assert!(stored.unsynced().is_err(), "not all that was noted would survive");
        stored.log = log;
        note(&mut stored, 4, b"newer");
        assert_eq!(stored.unlogged(), 0, "the next one takes them along");
        stored.log = OpenOptions::new().write(true).open("/dev/full").unwrap();
        note(&mut stored, 6, b"last");
        stored.log = new_log(&log_path(&stored.base, stored.number)).unwrap();
        stored.retry();
        assert_eq!((stored.unlogged(), stored.unsynced().is_ok()), (0, true));
        drop(stored);
        assert_eq!(opened(dir.path()).1, [(3, 1), (4, 5), (6, 4)]);
    }

    /// A database whose disk fails.
    #[derive(Debug)]
    struct Failing(redb::backends::InMemoryBackend, Arc<AtomicBool>);

    impl redb::StorageBackend for Failing {
        fn len(&self) -> io::Result<u64> {
            self.0.len()
        }

        fn read(&self, offset: u64, len: usize) -> io::Result<Vec<u8>> {
            self.0.read(offset, len)
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.set_len(len)
        }

        fn sync_data(&self, eventual: bool) -> io::Result<()> {
            match self.1.load(Ordering::Relaxed) {
                true => Err(ErrorKind::StorageFull.into()),
                false => self.0.sync_data(eventual),
            }
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.0.write(offset, data)
        }
    }

    #[test]
    fn what_a_database_that_fails_does_not_take_is_in_the_logs_and_bounded_in_memory() {
        let dir = tempfile::tempdir().unwrap();
        let (mut stored, _) = opened(dir.path());
        stored.rows_max = 100;
        let fails = Arc::new(AtomicBool::new(false));
        let backend = Failing(redb::backends::InMemoryBackend::new(), Arc::clone(&fails));
        let database = Database::builder().create_with_backend(backend).unwrap();
        *stored.database.lock() = Some(database);
        fails.store(true, Ordering::Relaxed);
        for key in 0..1000 {
            note(&mut stored, key, b"row");
            if key % 60 == 0 {
                stored.is_committing.store(true, Ordering::Release);
                stored.hand_over();
                while stored.is_committing.load(Ordering::Acquire) {
                    std::thread::yield_now();
                }
            }
            assert!(stored.failed.lock().len() + stored.changed.len() <= 200);
        }
        let logs = usize::try_from(stored.number).unwrap() + 1;
        assert!(stored.unsynced().unwrap().len() > logs, "all are to be synced, and the directory");
        drop(stored);
        assert_eq!(opened(dir.path()).1.len(), 1000);
    }

    #[test]
    fn two_processes_do_not_share_the_rows() {
        let dir = tempfile::tempdir().unwrap();
        let (_stored, _) = opened(dir.path());
        let open = |name| StateRows::open(dir.path(), name, KEY_BYTES, Box::new(new_log));
        assert!(matches!(open("rows"), Err(StateError::Database { .. })));
        assert!(open("others").is_ok(), "those of another name are others");
    }
}
