//! Handles: the origin's inside ours.
//!
//! ```text
//!   'O' | seal (8) | the origin's handle (0..39)     it is in there, whatever happens here
//!   'T' | number (16)                                of longer ones: a table has them
//! ```
//!
//! The seal is a keyed hash (SipHash-2-4) of the origin's handle: a client can neither make a
//! handle of a file that it was never given, nor use one of another origin, or of another export of
//! this one. The key is random, lies in the state directory and is mixed with the origin's name.
//!
//! The number of a longer handle is a keyed hash of it as well, of 128 bits. So a file has the same
//! number in every life of the proxy, and a number can never come to mean another file: a row that
//! is lost (in a power failure, or as the oldest of a full table) makes the handle `Stale`, and
//! whoever meets the file again brings it back. Rows are on disk, as far as a kill goes, before a
//! reply has the handle ([`server::store::state`]).
//!
//! Version 2 has room for 26 bytes, and more where many are zero. What does not fit gets a number,
//! too.

mod key;
mod table;

use std::path::Path;

use siphasher::sip::SipHasher24;
use siphasher::sip128;
use wire::nfs3::FileHandle;
use wire::show::Hex;

use server::store::state::StateError;
use server::types::{Handle, Status};

use self::table::Table;
pub(crate) use self::table::unstored;

const SEALED: u8 = b'O';
const NUMBERED: u8 = b'T';

const SEAL_BYTES: usize = 8;

/// The origin's handles that need no table.
const SEALED_BYTES_MAX: usize = Handle::BYTES_MAX - 1 - SEAL_BYTES;

/// Rows of the table: some 150 bytes each.
const ROWS_MAX: usize = 1 << 20;

/// A number in the table.
type Number = [u8; 16];

/// Why handles cannot be stored over a restart.
#[derive(Debug, thiserror::Error)]
pub enum HandlesError {
    #[error("{path}: {error}")]
    Key { path: String, error: std::io::Error },
    #[error(transparent)]
    State(#[from] StateError),
}

/// See the module's head.
#[derive(Debug)]
pub struct Handles {
    seals: [u8; 16],
    numbers: [u8; 16],
    table: Table,
}

impl Handles {
    /// For files of this origin (its address and export). What has to outlive the process lies in
    /// `state`; without it handles are good as long as the process lives.
    ///
    /// # Errors
    /// [`HandlesError`], which names the file.
    pub fn open(origin: &str, state: Option<&Path>) -> Result<Self, HandlesError> {
        Self::with_rows(origin, state, ROWS_MAX)
    }

    fn with_rows(
        origin: &str,
        state: Option<&Path>,
        rows_max: usize,
    ) -> Result<Self, HandlesError> {
        let key = key::find(state)?;
        let of = |purpose: u8| mixed(&key, &[origin.as_bytes(), &[0, purpose]].concat());
        let name = format!("origin-{}", Hex(&of(b'N')[..8]));
        let table = Table::open(state, &name, rows_max)?;
        Ok(Self { seals: of(b'S'), numbers: of(b'H'), table })
    }

    /// What distinguishes the key in a state directory from others, and does not tell it. None:
    /// there is no key.
    ///
    /// # Errors
    /// [`HandlesError`], which names the file.
    pub fn key_id(state: &Path) -> Result<Option<[u8; 16]>, HandlesError> {
        let key = key::stored(state)?;
        Ok(key.map(|key| mixed(&key, b"id of the key")))
    }

    /// Whether a handle is good after a restart.
    pub fn survive_restart(&self) -> bool {
        self.table.is_stored()
    }

    /// Handles in the table.
    pub(crate) fn rows(&self) -> usize {
        self.table.len()
    }

    /// Handles that a restart may forget, after another try to keep them.
    pub(crate) fn unstored(&self) -> usize {
        self.table.unstored()
    }

    /// Ours of the origin's.
    pub(crate) fn seal(&self, origin: &FileHandle) -> Handle {
        let bytes = origin.as_bytes();
        if bytes.len() > SEALED_BYTES_MAX {
            return self.numbered(origin);
        }
        let sealed = [&[SEALED], &self.seal_of(bytes).to_be_bytes()[..], bytes].concat();
        Handle::new(&sealed).expect("1 + 8 + 39 bytes are 48")
    }

    /// A short one of the same file.
    pub(crate) fn brief(&self, ours: &Handle) -> Option<Handle> {
        match ours.as_bytes().first() {
            Some(&SEALED) => self.open_handle(ours).ok().map(|origin| self.numbered(&origin)),
            _ => None,
        }
    }

    /// The one that a short one was made of.
    pub(crate) fn full(&self, ours: &Handle) -> Handle {
        match ours.as_bytes().first() {
            Some(&NUMBERED) => self.open_handle(ours).map_or(*ours, |origin| self.seal(&origin)),
            _ => *ours,
        }
    }

    /// The origin's of ours.
    ///
    /// # Errors
    /// `Stale`: of another life whose key or row is lost, of another origin, or forged; `BadHandle`
    /// for what never was a handle of ours.
    pub(crate) fn open_handle(&self, ours: &Handle) -> Result<FileHandle, Status> {
        match ours.as_bytes().split_first() {
            Some((&SEALED, rest)) => {
                let (seal, origin) =
                    rest.split_first_chunk::<SEAL_BYTES>().ok_or(Status::BadHandle)?;
                match u64::from_be_bytes(*seal) == self.seal_of(origin) {
                    true => FileHandle::new(origin).ok_or(Status::BadHandle),
                    false => Err(Status::Stale),
                }
            }
            Some((&NUMBERED, number)) => {
                let number = Number::try_from(number).map_err(|_| Status::BadHandle)?;
                self.table.find(&number).ok_or(Status::Stale)
            }
            _ => Err(Status::BadHandle),
        }
    }

    fn seal_of(&self, origin: &[u8]) -> u64 {
        SipHasher24::new_with_key(&self.seals).hash(origin)
    }

    fn numbered(&self, origin: &FileHandle) -> Handle {
        let number = mixed(&self.numbers, origin.as_bytes());
        self.table.note(number, origin);
        Handle::new(&[&[NUMBERED][..], &number].concat()).expect("17 bytes are fewer than 48")
    }
}

/// 128 bits of `message` under `key`.
fn mixed(key: &[u8; 16], message: &[u8]) -> [u8; 16] {
    sip128::SipHasher24::new_with_key(key).hash(message).as_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ORIGIN: &str = "origin:2049/export";

    fn of_len(len: usize, fill: u8) -> FileHandle {
        FileHandle::new(&vec![fill; len]).unwrap()
    }

    #[test]
    fn handles_of_every_length_come_back_and_fit_version_2_by_a_short_name() {
        let handles = Handles::open(ORIGIN, None).unwrap();
        for len in 0..=64 {
            let origin = of_len(len, 7);
            let ours = handles.seal(&origin);
            assert_eq!(handles.open_handle(&ours), Ok(origin), "{len} bytes");
            assert_eq!(ours, handles.seal(&origin), "a file has one handle");
            let is_long = len > SEALED_BYTES_MAX;
            assert_eq!(ours.as_bytes().len(), if is_long { 17 } else { 9 + len });
            let brief = handles.brief(&ours);
            assert_eq!(brief.is_none(), is_long, "it is short already");
            if let Some(brief) = brief {
                assert_eq!(handles.open_handle(&brief), Ok(origin));
                assert_eq!(brief.as_bytes().len(), 17);
            }
        }
    }

    #[test]
    fn a_handle_with_any_bit_changed_is_refused() {
        let handles = Handles::open(ORIGIN, None).unwrap();
        for len in [0, 28, 39, 40, 64] {
            let ours = handles.seal(&of_len(len, 1));
            for bit in 0..8 * ours.as_bytes().len() {
                let mut bytes = ours.as_bytes().to_vec();
                bytes[bit / 8] ^= 1 << (bit % 8);
                let opened = handles.open_handle(&Handle::new(&bytes).unwrap());
                assert!(matches!(opened, Err(Status::Stale | Status::BadHandle)), "{len} {bit}");
            }
        }
        for foreign in [&b""[..], b"O", b"O1234567", b"T", b"T123456789012345", b"K", &[0; 48]] {
            let opened = handles.open_handle(&Handle::new(foreign).unwrap());
            assert_eq!(opened, Err(Status::BadHandle));
        }
    }

    #[test]
    fn handles_are_good_in_the_next_life_and_at_their_own_origin_only() {
        let dir = tempfile::tempdir().unwrap();
        let state = Some(dir.path());
        let origins = [of_len(28, 3), of_len(64, 4)];
        let first = Handles::open(ORIGIN, state).unwrap();
        assert!(first.survive_restart());
        let ours = origins.map(|origin| first.seal(&origin));
        drop(first);
        let id = Handles::key_id(dir.path()).unwrap();
        let next = Handles::open(ORIGIN, state).unwrap();
        assert!(id.is_some() && Handles::key_id(dir.path()).unwrap() == id);
        for (ours, origin) in ours.iter().zip(origins) {
            assert_eq!(next.open_handle(ours), Ok(origin));
        }
        let other = Handles::open("origin:2049/secret", state).unwrap();
        for ours in &ours {
            assert_eq!(other.open_handle(ours), Err(Status::Stale));
        }
        drop((next, other));
        let elsewhere = tempfile::tempdir().unwrap();
        assert_eq!(Handles::key_id(elsewhere.path()).unwrap(), None);
        let without = Handles::open(ORIGIN, Some(elsewhere.path())).unwrap();
        assert_ne!(Handles::key_id(elsewhere.path()).unwrap(), id);
        for ours in &ours {
            assert_eq!(without.open_handle(ours), Err(Status::Stale), "the key is another");
        }
    }

    #[test]
    fn a_row_that_is_lost_is_stale_until_the_file_is_met_again() {
        let handles = Handles::with_rows(ORIGIN, None, 2).unwrap();
        let origins = [of_len(50, 1), of_len(50, 2), of_len(50, 3)];
        let ours = origins.map(|origin| handles.seal(&origin));
        assert_eq!(handles.rows(), 2);
        assert_eq!(handles.open_handle(&ours[0]), Err(Status::Stale));
        assert_eq!(handles.seal(&origins[0]), ours[0], "it has the handle that it had");
        assert_eq!(handles.open_handle(&ours[0]), Ok(origins[0]));
    }
}
