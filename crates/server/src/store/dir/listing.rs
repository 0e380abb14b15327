//! Listings cached in memory, so that a directory that is listed again, or in several replies, is
//! not read again: names, numbers, cookies, and the handles met.
//!
//! A listing holds as long as the directory's change and modification times are those from when
//! it was read, and it is only cached if they were old then: with a change of this moment a second
//! one could come within the same tick of the file system's clock and not show. It holds no
//! attributes: each entry of a reply is looked at anew, so that they are never older than the
//! reply. A name means the same file as long as the directory has not changed, so its handle can
//! be cached.
//!
//! At most [`LISTINGS_MAX`] directories of [`ENTRIES_MAX`] entries, some 70 MiB if all are full;
//! those not listed lately go for others, and after half a minute for nothing
//! ([`super::idle`]). Larger directories are read for each reply.

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};

use parking_lot::RwLock;

use super::bounded::Bounded;
use super::stat::{Identity, Stat};
use crate::types::{Handle, Time};

const LISTINGS_MAX: usize = 32;
pub(super) const ENTRIES_MAX: usize = 16 << 10;

/// The state of a directory: change and modification time.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) struct State {
    changed: Time,
    modified: Time,
}

impl State {
    pub(super) fn of(stat: &Stat) -> Self {
        let attr = stat.attr();
        Self { changed: attr.changed, modified: attr.modified }
    }

    /// The later of the two.
    pub(super) fn latest(self) -> Time {
        self.changed.max(self.modified)
    }
}

/// A directory as it was read.
pub(super) struct Listing {
    state: State,
    /// Of each entry where to go on after it.
    cookies: Vec<u64>,
    lines: Vec<Line>,
    /// All names behind one another.
    names: Vec<u8>,
    /// There are more entries than are cached, and none here.
    is_too_long: bool,
    /// Each cookie is above the one before, so that one is found without a look at all.
    is_ascending: bool,
    /// Cookies are of names ([`super::sorted`]): also one that is not here, because its entry is
    /// gone, has its place.
    is_by_name: bool,
    /// The second of the last use ([`super::idle::second`]); 0 if none had begun.
    used: AtomicU32,
}

/// One entry.
pub(super) struct Line {
    pub(super) inode: u64,
    /// Where its name ends; it begins where the one before ends.
    end: usize,
    /// Who it is, once it was looked at.
    pub(super) met: OnceLock<Box<(Identity, Handle)>>,
}

impl Listing {
    pub(super) fn new(state: State) -> Self {
        Self {
            state,
            cookies: Vec::new(),
            lines: Vec::new(),
            names: Vec::new(),
            is_too_long: false,
            is_ascending: true,
            is_by_name: false,
            used: AtomicU32::new(0),
        }
    }

    /// Of a directory whose cookies do not last: its entries come in the order of those that were
    /// made from their names.
    pub(super) fn by_name(state: State) -> Self {
        Self { is_by_name: true, ..Self::new(state) }
    }

    pub(super) fn push(&mut self, inode: u64, cookie: u64, name: &[u8]) {
        if self.lines.len() == ENTRIES_MAX {
            *self = Self { is_too_long: true, ..Self::new(self.state) };
        }
        if !self.is_too_long {
            self.is_ascending &= self.cookies.last().is_none_or(|&before| before < cookie);
            self.cookies.push(cookie);
            self.names.extend_from_slice(name);
            self.lines.push(Line { inode, end: self.names.len(), met: OnceLock::new() });
        }
    }

    pub(super) fn is_too_long(&self) -> bool {
        self.is_too_long
    }

    /// The entries behind a cookie, each with its name and its own cookie. `None`: this listing
    /// has no such cookie, an older one may have had it.
    pub(super) fn after(&self, cookie: u64) -> Option<impl Iterator<Item = (&Line, &[u8], u64)>> {
        let start = match cookie {
            0 => 0,
            _ if self.is_by_name && i64::try_from(cookie).is_ok() => {
                self.cookies.partition_point(|&known| known <= cookie)
            }
            _ if self.is_ascending => self.cookies.binary_search(&cookie).ok()? + 1,
            _ => self.cookies.iter().position(|&known| known == cookie)? + 1,
        };
        let mut begin = start.checked_sub(1).map_or(0, |before| self.lines[before].end);
        let lines = self.lines[start..].iter().zip(&self.cookies[start..]);
        Some(lines.map(move |(line, cookie)| {
            let name = &self.names[begin..line.end];
            begin = line.end;
            (line, name, *cookie)
        }))
    }
}

/// The listings that are cached.
pub(super) struct Listings {
    /// Guards which are cached.
    cached: RwLock<Bounded<Handle, Arc<Listing>>>,
    /// The second it is, as far as anybody has noted; 0 until then.
    now: AtomicU32,
}

impl Default for Listings {
    fn default() -> Self {
        Self { cached: RwLock::new(Bounded::new(LISTINGS_MAX)), now: AtomicU32::new(0) }
    }
}

impl Listings {
    /// What is known of a directory in this state.
    pub(super) fn find(&self, dir: &Handle, state: State) -> Option<Arc<Listing>> {
        let cached = self.cached.read();
        let listing = cached.find(dir).filter(|listing| listing.state == state)?;
        listing.used.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        Some(Arc::clone(listing))
    }

    /// Whether any is cached of a directory, maybe of an older state.
    #[cfg(test)]
    pub(super) fn has(&self, dir: &Handle) -> bool {
        self.cached.read().peek(dir).is_some()
    }

    pub(super) fn keep(&self, dir: Handle, listing: Listing) -> Arc<Listing> {
        listing.used.store(self.now.load(Ordering::Relaxed), Ordering::Relaxed);
        let listing = Arc::new(listing);
        let gone = self.cached.write().insert(dir, Arc::clone(&listing), |_| true);
        // Freed outside of the lock.
        drop(gone);
        listing
    }

    /// Forgets those that nobody has used in the last `seconds`.
    pub(super) fn forget_idle(&self, now: u32, seconds: u32) {
        self.now.store(now, Ordering::Relaxed);
        let is_idle = |listing: &Arc<Listing>| {
            let used = listing.used.load(Ordering::Relaxed);
            now.saturating_sub(used) >= seconds
        };
        if self.cached.read().values().any(is_idle) {
            let mut cached = self.cached.write();
            let idle = cached.take_if(is_idle);
            drop(cached);
            drop(idle);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(count: u64) -> Listing {
        let state = State { changed: Time::default(), modified: Time::default() };
        let mut listing = Listing::new(state);
        (0..count).for_each(|index| listing.push(index, index + 10, index.to_string().as_bytes()));
        listing
    }

    fn names(listing: &Listing, cookie: u64) -> Option<Vec<String>> {
        let text = |name: &[u8]| String::from_utf8(name.to_vec()).unwrap();
        Some(listing.after(cookie)?.map(|(_, name, _)| text(name)).collect())
    }

    #[test]
    fn a_listing_goes_on_behind_each_of_its_cookies() {
        let listing = listing(13);
        assert_eq!(names(&listing, 0).unwrap().len(), 13);
        assert_eq!(names(&listing, 20).unwrap(), ["11", "12"]);
        assert_eq!(names(&listing, 22).unwrap(), [""; 0]);
        assert_eq!(names(&listing, 23), None);
    }

    #[test]
    fn cookies_in_any_order_are_found() {
        let mut listing = listing(0);
        [(7, "a"), (3, "b"), (9, "c")]
            .into_iter()
            .for_each(|(cookie, name)| listing.push(1, cookie, name.as_bytes()));
        assert_eq!(names(&listing, 3).unwrap(), ["c"]);
        assert_eq!(names(&listing, 7).unwrap(), ["b", "c"]);
        assert_eq!(names(&listing, 8), None);
    }

    #[test]
    fn a_listing_by_name_goes_on_behind_what_is_gone() {
        let state = listing(0).state;
        let mut listing = Listing::by_name(state);
        [(3, "a"), (7, "b"), (9, "c")]
            .into_iter()
            .for_each(|(cookie, name)| listing.push(1, cookie, name.as_bytes()));
        assert_eq!(names(&listing, 5).unwrap(), ["b", "c"]);
        assert_eq!(names(&listing, 7).unwrap(), ["c"]);
        assert_eq!(names(&listing, 10).unwrap(), [""; 0]);
    }

    #[test]
    fn a_directory_with_one_entry_too_many_is_not_cached() {
        let max = ENTRIES_MAX as u64;
        assert!(!listing(max).is_too_long());
        let longer = listing(max + 1);
        assert!(longer.is_too_long() && longer.lines.is_empty());
    }

    #[test]
    fn a_listing_that_nobody_asks_for_is_forgotten() {
        let listings = Listings::default();
        let [used, idle] = [b"used", b"idle"].map(|name| Handle::new(name).unwrap());
        let state = listing(0).state;
        listings.forget_idle(10, 30);
        listings.keep(used, listing(5));
        listings.keep(idle, listing(5));
        listings.forget_idle(39, 30);
        assert!(listings.find(&used, state).is_some());
        listings.forget_idle(40, 30);
        assert!(listings.find(&used, state).is_some());
        assert!(listings.find(&idle, state).is_none());
    }

    #[test]
    fn a_directory_in_another_state_has_no_listing() {
        let (listings, dir) = (Listings::default(), Handle::new(b"dir").unwrap());
        let old = State { changed: Time::default(), modified: Time::default() };
        listings.keep(dir, Listing::new(old));
        assert!(listings.find(&dir, old).is_some());
        let new = State { changed: Time { secs: 0, nanos: 1 }, ..old };
        assert!(listings.find(&dir, new).is_none());
    }
}
