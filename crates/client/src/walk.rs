//! Whether a listing gets anywhere: decisions about the pages that a server gives of a directory.
//!
//! Each entry has a cookie, behind which reading goes on. A server whose cookies repeat would be
//! called without end, and whoever lists would hold ever more names. Within a page every cookie is
//! looked at; over a whole listing one page is remembered, the first, then the second, the
//! fourth, the eighth (Brent 1980): so a circle of any length is noticed within three times that
//! length, by what one page takes.
//!
//! A server that makes up new cookies, and tells the same names behind them, is noticed by the name
//! that the remembered page began with: a name may come again because the file was removed and made
//! meanwhile, but not `AGAIN_MAX` times. What cannot be distinguished from a large directory are
//! names without end of which none comes twice.

use std::collections::HashSet;

use crate::ops::{DirEntry, DirPage};

/// How often the name that a remembered page began with may come again.
const AGAIN_MAX: u32 = 8;

/// One reading of a directory, from its beginning.
#[derive(Debug, Default)]
pub struct Walk {
    cookies: Remembered<u64>,
    names: Recurring,
    /// Where the last page ended.
    next: Option<u64>,
}

/// Names that come again and again, in one reading of a directory or in many: those of a directory
/// that is being emptied should not come even once.
#[derive(Debug, Default)]
pub struct Recurring {
    first: Remembered<Vec<u8>>,
    again: u32,
}

/// One of many things: the first, then the second, the fourth, the eighth.
#[derive(Debug)]
struct Remembered<T> {
    thing: Option<T>,
    number: u64,
    keep_after: u64,
}

impl<T> Default for Remembered<T> {
    fn default() -> Self {
        Self { thing: None, number: 0, keep_after: 0 }
    }
}

impl<T> Remembered<T> {
    /// Whether the next one is to be remembered.
    fn turn(&mut self) -> bool {
        let is_remembered = self.number >= self.keep_after;
        if is_remembered {
            self.keep_after = 2 * self.number.max(1);
        }
        self.number += 1;
        is_remembered
    }
}

impl Walk {
    /// The page behind `cookie` has come. Whoever goes on somewhere else than where the last page
    /// ended begins anew.
    ///
    /// # Errors
    /// In words, how the listing goes round in a circle.
    pub fn page(&mut self, cookie: u64, page: &DirPage) -> Result<(), &'static str> {
        if self.next != Some(cookie) {
            *self = Self::default();
        }
        if self.cookies.thing == Some(cookie) {
            return Err("the cookies repeat: the listing goes round in a circle");
        }
        if self.cookies.turn() {
            self.cookies.thing = Some(cookie);
        }
        if self.names.page(&page.entries) {
            return Err("the same names come again and again: the listing does not end");
        }
        self.next = page.entries.last().map(|last| last.cookie);
        Ok(())
    }
}

impl Recurring {
    /// Whether a name has come again too often, with these entries.
    pub fn page(&mut self, entries: &[DirEntry]) -> bool {
        let Some(first) = entries.first() else { return false };
        if let Some(name) = &self.first.thing {
            let again = entries.iter().filter(|entry| entry.name == *name).count();
            self.again = self.again.saturating_add(u32::try_from(again).unwrap_or(u32::MAX));
        }
        if self.again > AGAIN_MAX {
            return true;
        }
        if self.first.turn() {
            self.first.thing = Some(first.name.clone());
            self.again = 0;
        }
        false
    }
}

/// What is wrong with a page that was requested behind `cookie`, if anything is.
pub(crate) fn fault(cookie: u64, page: &DirPage) -> Option<&'static str> {
    if page.entries.is_empty() && !page.eof {
        return Some("a page without entries that is not the last");
    }
    let cookies = std::iter::once(cookie).chain(page.entries.iter().map(|entry| entry.cookie));
    if cookies.is_sorted_by(|one, next| one < next) {
        return None;
    }
    // 0 is where a listing begins.
    let mut seen = HashSet::from([0, cookie]);
    let is_new = page.entries.iter().all(|entry| seen.insert(entry.cookie));
    (!is_new).then_some("the cookies of a page repeat, or lead back to where it began")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(cookies: &[u64], name: impl Fn(u64) -> String, eof: bool) -> DirPage {
        let entry = |&cookie: &u64| DirEntry {
            fileid: cookie,
            name: name(cookie).into_bytes(),
            cookie,
            attributes: None,
            handle: None,
        };
        let entries = cookies.iter().map(entry).collect();
        DirPage { entries, cookieverf: [0; 8], eof, dir_attributes: None }
    }

    /// Lists until the walk objects; gives after how many pages, and why.
    fn listed(next: impl Fn(u64) -> u64, name: impl Fn(u64) -> String) -> (usize, &'static str) {
        let (mut walk, mut cookie) = (Walk::default(), 0);
        for pages in 1..10_000 {
            let at = next(cookie);
            if let Err(why) = walk.page(cookie, &page(&[at], &name, false)) {
                return (pages, why);
            }
            cookie = at;
        }
        (usize::MAX, "")
    }

    #[test]
    fn a_circle_of_cookies_is_noticed_whatever_its_length() {
        for length in [1, 2, 3, 7, 100, 1000] {
            for before in [0, 1, 5, 300] {
                let next = |cookie| if cookie == before + length { before + 1 } else { cookie + 1 };
                let unique = |cookie: u64| cookie.to_string();
                let (pages, why) = listed(next, unique);
                let expected = 3 * usize::try_from(length.max(before)).unwrap() + 4;
                assert!(pages <= expected, "{length} behind {before}: {pages} pages");
                assert!(why.contains("circle"), "{why}");
            }
        }
    }

    #[test]
    fn the_same_names_behind_ever_new_cookies_are_noticed() {
        for length in [1, 3, 50] {
            let (pages, why) = listed(|cookie| cookie + 1, |cookie| (cookie % length).to_string());
            assert!(pages < 50 * usize::try_from(length).unwrap(), "{pages} pages");
            assert!(why.contains("same names"), "{why}");
        }
    }

    #[test]
    fn a_large_directory_in_which_a_file_is_made_anew_is_listed() {
        let name = |cookie: u64| {
            if cookie.is_multiple_of(1500) { "lock".to_owned() } else { cookie.to_string() }
        };
        assert_eq!(listed(|cookie| cookie + 1, name), (usize::MAX, ""));
    }

    #[test]
    fn whoever_begins_again_or_goes_back_is_not_suspected() {
        let mut walk = Walk::default();
        for _ in 0..100 {
            for cookie in 0..10 {
                walk.page(cookie, &page(&[cookie + 1], |cookie| cookie.to_string(), false))
                    .unwrap();
            }
        }
    }

    #[test]
    fn the_cookies_of_a_page_lead_on() {
        let page = |cookies: &[u64], eof| page(cookies, |cookie| cookie.to_string(), eof);
        assert_eq!(fault(0, &page(&[1, 2, 3], false)), None);
        assert_eq!(fault(3, &page(&[2, 1], true)), None, "they need not grow");
        assert_eq!(fault(3, &page(&[], true)), None);
        assert!(fault(3, &page(&[], false)).unwrap().contains("not the last"));
        for (cookie, cookies) in [(0, &[5, 5][..]), (5, &[6, 5]), (5, &[0]), (0, &[1, 2, 1])] {
            assert!(fault(cookie, &page(cookies, true)).unwrap().contains("repeat"));
        }
    }
}
