//! Files that were made in the log have a handle and a number before the origin has given them its
//! own. They keep them: a client that gets another number takes it for another file. So once the
//! origin has made such a file, a row says which of its files it is, on disk before anything is
//! known of it, and in every reply from then on the file has the name that it was given first.
//!
//! Bounded: [`ROWS_MAX`] rows; the one not used for longest goes. Its handle is `Stale` then, and
//! whoever looks the file up gets the origin's.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::path::Path;

use lru::LruCache;
use parking_lot::Mutex;
use server::store::state::{Row, StateError, StateRows, new_log};
use server::types::{Handle, Verifier};

use crate::handles::unstored;

/// Some 400 bytes each.
const ROWS_MAX: usize = 1 << 18;

/// How a handle begins that was given out before the origin had given one.
const OURS: u8 = b'W';

/// A handle of ours: a hash of its record's number.
const HANDLE_BYTES: usize = 17;

/// One of the origin's files, and what clients call it.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) struct Alias {
    pub(crate) origin: Handle,
    pub(crate) fileid: u64,
    pub(crate) origin_fileid: u64,
}

/// See the module's head.
pub struct Aliases {
    /// Guards the rows, and what keeps them; held for a look and perhaps a write(2).
    rows: Mutex<Rows>,
}

struct Rows {
    by_ours: LruCache<Handle, Alias>,
    by_origin: HashMap<Handle, Handle>,
    by_fileid: HashMap<u64, u64>,
    max: usize,
    stored: Option<StateRows>,
}

impl std::fmt::Debug for Aliases {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Aliases").field("rows", &self.len()).finish()
    }
}

/// Whether a handle is one that this proxy has made up.
pub(crate) fn is_ours(handle: &Handle) -> bool {
    handle.as_bytes().len() == HANDLE_BYTES && handle.as_bytes().first() == Some(&OURS)
}

impl Aliases {
    /// The rows that are stored in this directory.
    ///
    /// # Errors
    /// [`StateError`], which names the file.
    pub fn open(state: &Path) -> Result<Self, StateError> {
        let (stored, rows) = StateRows::open(state, "write-back", HANDLE_BYTES, Box::new(new_log))?;
        let aliases = Self::with_rows_max(ROWS_MAX);
        {
            let mut own = aliases.rows.lock();
            for (ours, alias) in rows.into_iter().filter_map(row) {
                own.put(ours, alias);
            }
            own.stored = Some(stored);
        }
        Ok(aliases)
    }

    /// Rows that are gone with this process.
    pub fn in_memory() -> Self {
        Self::with_rows_max(ROWS_MAX)
    }

    fn with_rows_max(max: usize) -> Self {
        let rows = Rows {
            by_ours: LruCache::unbounded(),
            by_origin: HashMap::new(),
            by_fileid: HashMap::new(),
            max,
            stored: None,
        };
        Self { rows: Mutex::new(rows) }
    }

    pub(crate) fn len(&self) -> usize {
        self.rows.lock().by_ours.len()
    }

    pub(crate) fn find(&self, ours: &Handle) -> Option<Alias> {
        self.rows.lock().by_ours.get(ours).copied()
    }

    /// What clients call this file of the origin's, if not as the origin does.
    pub(crate) fn of_origin(&self, origin: &Handle) -> Option<(Handle, u64)> {
        let mut rows = self.rows.lock();
        let ours = *rows.by_origin.get(origin)?;
        rows.by_ours.get(&ours).map(|alias| (ours, alias.fileid))
    }

    /// The number that clients know for a file that the origin gives this one. By its name: the
    /// origin may have given the number to another file since.
    pub(crate) fn fileid_of(&self, id: &Handle, origin: u64) -> u64 {
        let alias = if is_ours(id) { self.find(id) } else { None };
        alias.map_or(origin, |alias| alias.fileid)
    }

    /// The number that clients know for this one of the origin's.
    pub(crate) fn fileid(&self, origin: u64) -> u64 {
        self.rows.lock().by_fileid.get(&origin).copied().unwrap_or(origin)
    }

    /// The origin has made it. Survives the process when this returns.
    pub(crate) fn note(&self, ours: Handle, alias: Alias) {
        let mut rows = self.rows.lock();
        let gone = rows.put(ours, alias);
        if let Some(stored) = &mut rows.stored {
            stored.note(ours.as_bytes(), value(&alias));
            gone.iter().for_each(|gone| stored.note(gone.as_bytes(), Vec::new()));
        }
    }

    /// The file is gone.
    pub(crate) fn forget(&self, ours: &Handle) {
        let mut rows = self.rows.lock();
        if rows.remove(ours)
            && let Some(stored) = &mut rows.stored
        {
            stored.note(ours.as_bytes(), Vec::new());
        }
    }

    /// Rows that a restart may forget, after another try to write them.
    pub(crate) fn unstored(&self) -> usize {
        unstored(&mut self.rows.lock().stored)
    }

    /// The files that are to be synced so that all that was noted survives power loss, too.
    pub(crate) fn unsynced(&self) -> io::Result<Vec<File>> {
        match &mut self.rows.lock().stored {
            Some(stored) => stored.unsynced(),
            None => Ok(Vec::new()),
        }
    }
}

impl Rows {
    /// Gives back the rows that had to go.
    fn put(&mut self, ours: Handle, alias: Alias) -> Vec<Handle> {
        self.remove(&ours);
        // A number that the origin has given to another file since, or one that is made again.
        let mut gone: Vec<_> = self.by_origin.get(&alias.origin).copied().into_iter().collect();
        if gone.is_empty() && self.by_ours.len() >= self.max {
            gone.extend(self.by_ours.peek_lru().map(|(ours, _)| *ours));
        }
        for gone in &gone {
            self.remove(gone);
        }
        self.by_ours.put(ours, alias);
        self.by_origin.insert(alias.origin, ours);
        self.by_fileid.insert(alias.origin_fileid, alias.fileid);
        gone
    }

    fn remove(&mut self, ours: &Handle) -> bool {
        let Some(alias) = self.by_ours.pop(ours) else { return false };
        self.by_origin.remove(&alias.origin);
        if self.by_fileid.get(&alias.origin_fileid) == Some(&alias.fileid) {
            self.by_fileid.remove(&alias.origin_fileid);
        }
        true
    }
}

fn value(alias: &Alias) -> Vec<u8> {
    let mut value = Vec::with_capacity(16 + Handle::BYTES_MAX);
    value.extend(alias.fileid.to_be_bytes());
    value.extend(alias.origin_fileid.to_be_bytes());
    value.extend_from_slice(alias.origin.as_bytes());
    value
}

/// What this program wrote; others are passed over.
fn row((key, value): Row) -> Option<(Handle, Alias)> {
    let ours = Handle::new(&key).filter(is_ours)?;
    let (fileid, rest) = value.split_first_chunk()?;
    let (origin_fileid, origin) = rest.split_first_chunk()?;
    let number = |bytes: &[u8; 8]| u64::from_be_bytes(*bytes);
    let (fileid, origin_fileid) = (number(fileid), number(origin_fileid));
    Some((ours, Alias { origin: Handle::new(origin)?, fileid, origin_fileid }))
}

/// The handle and the number of a file that this record makes. Nobody can make one up who does not
/// know the log's id.
pub(crate) fn identity(log: &[u8; 16], record: u64) -> (Handle, u64) {
    let hash = siphasher::sip128::SipHasher24::new_with_key(log).hash(&record.to_be_bytes());
    let hash = hash.as_bytes();
    let handle = Handle::new(&[&[OURS], &hash[..]].concat()).expect("17 bytes are fewer than 48");
    let number = u64::from_be_bytes(std::array::from_fn(|i| hash[i]));
    // Few file systems number their files so high.
    (handle, number >> 2 | 1 << 63)
}

/// The write verifier: nothing that was answered is ever lost, so that it stays with the log. It
/// shows nothing of the log's id.
pub(crate) fn verifier(log: &[u8; 16]) -> Verifier {
    let hash = siphasher::sip128::SipHasher24::new_with_key(log).hash(b"write verifier");
    Verifier(std::array::from_fn(|i| hash.as_bytes()[i]))
}

/// What names at the origin have that this log has made up: those of other logs are others, and
/// nobody knows it before he sees one.
pub(crate) fn mark(log: &[u8; 16]) -> u32 {
    let hash = siphasher::sip128::SipHasher24::new_with_key(log).hash(b"names of copies");
    u32::from_be_bytes(std::array::from_fn(|i| hash.as_bytes()[i]))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn alias(number: u8) -> (Handle, Alias) {
        let (ours, fileid) = identity(&[7; 16], number.into());
        let origin = Handle::new(&[b'O', number]).unwrap();
        (ours, Alias { origin, fileid, origin_fileid: number.into() })
    }

    #[test]
    fn a_file_keeps_its_name_over_a_restart() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, one) = alias(1);
        let (other, two) = alias(2);
        let aliases = Aliases::open(dir.path()).unwrap();
        aliases.note(ours, one);
        aliases.note(other, two);
        aliases.forget(&other);
        assert_eq!(aliases.unsynced().unwrap().len(), 2, "the log and its directory");
        drop(aliases);
        let aliases = Aliases::open(dir.path()).unwrap();
        assert_eq!(aliases.find(&ours), Some(one));
        assert_eq!(aliases.of_origin(&one.origin), Some((ours, one.fileid)));
        assert_eq!(aliases.fileid(1), one.fileid);
        assert_eq!((aliases.find(&other), aliases.fileid(2)), (None, 2));
    }

    #[test]
    fn the_row_not_used_for_longest_goes() {
        let aliases = Aliases::with_rows_max(2);
        let rows: Vec<_> = (1..=3).map(alias).collect();
        aliases.note(rows[0].0, rows[0].1);
        aliases.note(rows[1].0, rows[1].1);
        assert!(aliases.find(&rows[0].0).is_some());
        aliases.note(rows[2].0, rows[2].1);
        assert_eq!(aliases.len(), 2);
        assert_eq!(aliases.find(&rows[1].0), None);
        assert_eq!((aliases.fileid(2), aliases.of_origin(&rows[1].1.origin)), (2, None));
        assert!(aliases.find(&rows[2].0).is_some());
    }

    #[test]
    fn a_directory_that_is_made_where_it_is_has_its_newest_name_after_a_restart() {
        for number in 0..20 {
            let dir = tempfile::tempdir().unwrap();
            let ((ours, one), (newer, two)) = (alias(number), alias(number + 100));
            let two = Alias { origin: one.origin, ..two };
            let aliases = Aliases::open(dir.path()).unwrap();
            aliases.note(ours, one);
            aliases.note(newer, two);
            drop(aliases);
            let aliases = Aliases::open(dir.path()).unwrap();
            assert_eq!((aliases.find(&ours), aliases.find(&newer)), (None, Some(two)));
            assert_eq!(aliases.of_origin(&one.origin), Some((newer, two.fileid)));
        }
    }

    #[test]
    fn a_number_that_is_given_again_is_of_the_newer_file() {
        let aliases = Aliases::in_memory();
        let ((ours, one), (other, two)) = (alias(1), alias(2));
        aliases.note(ours, one);
        aliases.note(other, Alias { origin_fileid: 1, ..two });
        assert_eq!(aliases.fileid(1), two.fileid);
        aliases.forget(&ours);
        assert_eq!(aliases.fileid(1), two.fileid);
    }

    #[test]
    fn identities_differ_by_log_and_record() {
        let one = identity(&[1; 16], 1);
        assert!(is_ours(&one.0) && one.1 >> 63 == 1);
        assert_ne!(one, identity(&[1; 16], 2));
        assert_ne!(one, identity(&[2; 16], 1));
        assert_ne!(mark(&[1; 16]), mark(&[2; 16]), "so are the names of copies");
        assert!(!is_ours(&Handle::new(b"W").unwrap()));
    }
}
