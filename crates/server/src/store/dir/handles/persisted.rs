//! What keeps the table over a restart: its entries as rows ([`crate::store::state`]). A power
//! failure can lose the entries since the last transaction: their handles are found stale.
//!
//! ```text
//!   row     identity (28) -> serial (4) | place...
//!   place   directory: identity (28), serial (4) | length (1) | name
//! ```

use std::path::Path;

use rustix::io::Errno;

use super::known::{Entry, Key, PLACES_MAX, Place};
use crate::store::dir::acting::Acting;
use crate::store::dir::stat::Identity;
use crate::store::state::{self, StateError, StateRows};

const IDENTITY_BYTES: usize = Identity::BYTES;

/// The table's state on disk. Changes come in the order in which the table makes them.
pub(super) struct Persisted(StateRows);

impl Persisted {
    /// Opens or makes the state of the export whose root is this inode of this file system, in
    /// `dir`, and gives what was known. One process at a time: the database is locked. Threads that
    /// call it later may act as others than the server: logs are begun with the rights of `acting`.
    pub(super) fn open(
        dir: &Path,
        (file_system, root): (u64, u64),
        acting: Acting,
    ) -> Result<(Self, Vec<(Identity, Entry)>), StateError> {
        let name = format!("handles-{file_system:x}-{root:x}");
        let new_log = move |path: &Path| {
            let begun = acting.as_server(|| {
                state::new_log(path)
                    .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
            });
            Ok(begun?)
        };
        let (stored, rows) = StateRows::open(dir, &name, IDENTITY_BYTES, Box::new(new_log))?;
        let entry = |(key, value): state::Row| Identity::from_bytes(&key).zip(decode(&value));
        Ok((Self(stored), rows.into_iter().filter_map(entry).collect()))
    }

    /// The entry of `file` is now this, or gone. In the log when this returns.
    pub(super) fn note(&mut self, file: Identity, entry: Option<&Entry>) {
        self.0.note(&file.to_bytes(), entry.map_or_else(Vec::new, encode));
    }

    /// Entries that a restart may forget, after another try to write them.
    pub(super) fn unstored(&mut self) -> usize {
        self.0.retry();
        self.0.unlogged()
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
    use std::io::{self, Write};

    use super::*;
    use crate::store::dir::acting::act_as_server;
    use crate::store::state::LOG_BYTES_MAX;
    use crate::types::Caller;

    fn file(inode: u64) -> Identity {
        Identity { device: 1, inode, born_secs: -5, born_nanos: 7 }
    }

    fn entry(serial: u32, names: &[&str]) -> Entry {
        let dir = Key { identity: file(2), serial: 0 };
        let place = |name: &&str| Place { dir, name: name.as_bytes().into() };
        Entry { serial, places: names.iter().map(place).collect(), children: 0 }
    }

    fn opened(dir: &Path) -> (Persisted, Vec<(u64, u32, usize)>) {
        let (stored, entries) = Persisted::open(dir, (1, 2), Acting::Process).unwrap();
        let parts =
            |(file, entry): (Identity, Entry)| (file.inode, entry.serial, entry.places.len());
        let mut known: Vec<_> = entries.into_iter().map(parts).collect();
        known.sort_unstable();
        (stored, known)
    }

    #[test]
    fn entries_are_known_when_the_process_was_killed() {
        let dir = tempfile::tempdir().unwrap();
        let (mut stored, known) = opened(dir.path());
        assert_eq!(known, []);
        stored.note(file(3), Some(&entry(1, &["a"])));
        stored.note(file(4), Some(&entry(2, &["b", "c"])));
        stored.note(file(3), None);
        drop(stored);
        assert_eq!(opened(dir.path()).1, [(4, 2, 2)]);
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
        let (mut stored, _) = Persisted::open(dir.path(), (1, 2), acting).unwrap();
        let caller = Caller { uid: 4711, gid: 4711, gids: Vec::new() };
        acting.act_as(&caller).unwrap();
        let name = "n".repeat(250);
        for inode in 0..LOG_BYTES_MAX as u64 / 250 {
            stored.note(file(10 + inode), Some(&entry(1, &[&name])));
        }
        act_as_server();
        drop(stored);
        let second = dir.path().join("handles-1-2.log.00000001");
        assert!(second.exists(), "the first log was full");
    }

    #[test]
    fn another_export_has_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let (_stored, _) = opened(dir.path());
        assert!(matches!(
            Persisted::open(dir.path(), (1, 2), Acting::Process),
            Err(StateError::Database { .. })
        ));
        assert!(Persisted::open(dir.path(), (1, 3), Acting::Process).is_ok());
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
