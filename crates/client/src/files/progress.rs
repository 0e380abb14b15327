//! How far a listing has come, and where it goes on when the server no longer knows its cookies.
//!
//! A server may give up cookies when a directory changes (NFS3ERR_BAD_COOKIE), and so does a proxy
//! that was restarted. Then the directory is read from its beginning, and names that the reader has
//! got are passed by: the others may be anywhere. Where the reader has got too many for that, it
//! goes on behind the entry that has the cookie now.

use std::collections::HashSet;
use std::hash::{BuildHasher, RandomState};

use crate::ops::DirPage;
use crate::walk::Walk;

/// Names of a listing that are remembered, by 8 bytes each (guess).
const NAMES_MAX: usize = 1 << 16;

/// See the module's head.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) verifier: [u8; 8],
    walk: Walk,
    /// Hashes of the names that the reader has got; none where those are too many. A page that is
    /// the only one has none to remember.
    got: Option<HashSet<u64>>,
    hashes: RandomState,
    place: Place,
}

/// What of the next page the reader has got.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Place {
    #[default]
    Nothing,
    /// What has the names.
    Names,
    /// All up to the entry of this cookie.
    UpTo(u64),
}

impl Progress {
    pub(super) fn new() -> Self {
        Self { got: Some(HashSet::new()), ..Self::default() }
    }

    /// The server does not know the cookie behind which the reader goes on.
    pub(super) fn begins_again(&mut self, cookie: u64) {
        self.place = if self.got.is_some() { Place::Names } else { Place::UpTo(cookie) };
    }

    /// The page behind `cookie` has come: what of it the reader has not got. None at the end of a
    /// directory that has no such place.
    ///
    /// # Errors
    /// In words, how the listing does not get anywhere.
    pub(super) fn came(
        &mut self,
        cookie: u64,
        mut page: DirPage,
    ) -> Result<Option<DirPage>, &'static str> {
        self.walk.page(cookie, &page)?;
        self.verifier = page.cookieverf;
        match (self.place, &self.got) {
            (Place::Names, Some(got)) => {
                page.entries.retain(|entry| !got.contains(&self.hashes.hash_one(&entry.name)));
            }
            (Place::UpTo(last), _) => {
                match page.entries.iter().position(|entry| entry.cookie == last) {
                    Some(at) => {
                        page.entries.drain(..=at);
                        self.place = Place::Nothing;
                    }
                    None if page.eof => return Ok(None),
                    None => page.entries.clear(),
                }
            }
            _ => {}
        }
        self.gets(&page);
        Ok(Some(page))
    }

    fn gets(&mut self, page: &DirPage) {
        let Some(got) = self.got.as_mut().filter(|_| !page.eof) else { return };
        got.extend(page.entries.iter().map(|entry| self.hashes.hash_one(&entry.name)));
        if got.len() > NAMES_MAX {
            self.got = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::DirEntry;

    fn page(cookies: impl Iterator<Item = u64>, shift: u64, eof: bool) -> DirPage {
        let entry = |number: u64| DirEntry {
            fileid: number,
            name: number.to_string().into_bytes(),
            cookie: number + shift,
            attributes: None,
            handle: None,
        };
        let entries = cookies.map(entry).collect();
        DirPage { entries, cookieverf: [0; 8], eof, dir_attributes: None }
    }

    fn fileids(page: Option<DirPage>) -> Vec<u64> {
        page.unwrap().entries.iter().map(|entry| entry.fileid).collect()
    }

    #[test]
    fn what_begins_again_has_each_name_once_in_whatever_order() {
        let mut progress = Progress::new();
        progress.came(0, page(1..4, 0, false)).unwrap();
        progress.begins_again(3);
        assert_eq!(fileids(progress.came(0, page(3..5, 100, false)).unwrap()), [4]);
        let next = progress.came(104, page([1, 5, 2].into_iter(), 110, true)).unwrap();
        assert_eq!(fileids(next), [5]);
    }

    #[test]
    fn of_a_large_directory_it_goes_on_behind_the_same_cookie_or_nowhere() {
        let many = NAMES_MAX as u64 + 2;
        let begun = || {
            let mut progress = Progress::new();
            progress.came(0, page(1..many, 0, false)).unwrap();
            progress.begins_again(many - 1);
            progress
        };
        let mut progress = begun();
        assert!(fileids(progress.came(0, page(1..9, 0, false)).unwrap()).is_empty());
        let next = progress.came(8, page(many - 2..many + 2, 0, false)).unwrap();
        assert_eq!(fileids(next), [many, many + 1]);
        let next = progress.came(many + 1, page(many + 2..many + 3, 0, true)).unwrap();
        assert_eq!(fileids(next), [many + 2]);
        assert_eq!(begun().came(0, page(1..9, 0, true)), Ok(None));
    }
}
