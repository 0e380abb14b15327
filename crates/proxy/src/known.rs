//! What the origin has reported of files lately: whether an answer from the disk is one of now, and
//! with `--offline-reads` what is answered while the origin is away.
//!
//! Replies overtake one another. A reply that tells another state of a file than was known may be
//! older or newer: what is known is unsure then, until a call that was begun later confirms it.
//!
//! Bounded: [`ENTRIES_MAX`] files, rights and names each, and [`PAGES_MAX`] pages of listings; what
//! was used longest ago goes.

use std::num::NonZeroUsize;
use std::sync::Arc;

use cache::{Now, OriginTime, Time, Token};
use client::cache::state::{steady_ns, time_of, token};
use client::ops::DirPage;
use lru::LruCache;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use server::types::Caller;
use wire::nfs3::{Fattr3, FileHandle, NfsTime, access, lookup};

/// As long as a mount by nfs(5) takes a file to be unchanged at least (acregmin).
pub(crate) const GOOD_FOR: Nanos = Nanos::from_secs(3);

/// Some 250 bytes each, and a name.
const ENTRIES_MAX: NonZeroUsize = NonZeroUsize::new(1 << 16).expect("it is not zero");

/// What a caller may is taken to be so for so long, if the file is in the same state: the longest
/// that nfs(5) has for a directory.
const RIGHTS_GOOD_FOR: Nanos = Nanos::from_secs(60);

/// Pages of listings, and their names: some 60 MB.
const PAGES_MAX: NonZeroUsize = NonZeroUsize::new(256).expect("it is not zero");
const PAGE_NAMES_MAX: usize = 1024;

/// What is one page of a listing: the directory, who lists it, from which cookie on with which
/// verifier, and whether with what has the names.
pub(crate) type PageKey = (FileHandle, Caller, u64, [u8; 8], bool);

/// See the module's head; clones are the same.
#[derive(Clone)]
pub(crate) struct Known {
    clock: Clock,
    /// Guards all that is known; held for looks.
    tables: Arc<Mutex<Tables>>,
}

struct Tables {
    files: LruCache<FileHandle, Seen>,
    rights: LruCache<(FileHandle, Caller), Right>,
    names: LruCache<(FileHandle, Box<[u8]>), FileHandle>,
    pages: LruCache<PageKey, DirPage>,
    time: OriginTime,
    /// Since when no file is sure that was reported before.
    doubted: Option<Instant>,
}

struct Seen {
    attributes: Fattr3,
    /// When this state was reported first.
    since: Instant,
    /// When it was reported last.
    at: Instant,
    /// Whether no other state was reported meanwhile.
    is_sure: bool,
}

#[derive(Clone, Copy)]
struct Right {
    granted: u32,
    /// Of the file, when it was reported.
    ctime: NfsTime,
    of: Owned,
    at: Instant,
}

/// What of a file's attributes gives rights.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
struct Owned {
    mode: u32,
    uid: u32,
    gid: u32,
}

impl From<&Fattr3> for Owned {
    fn from(&Fattr3 { mode, uid, gid, .. }: &Fattr3) -> Self {
        Self { mode, uid, gid }
    }
}

/// The state that a file's data are of, when they are requested.
#[derive(Clone, Copy, Debug)]
pub(crate) struct State {
    pub(crate) token: Token,
    /// No other state can look the same.
    pub(crate) is_settled: bool,
}

impl std::fmt::Debug for Known {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Known").field("files", &self.tables.lock().files.len()).finish()
    }
}

impl Known {
    pub(crate) fn new(clock: &Clock) -> Self {
        let tables = Tables {
            files: LruCache::unbounded(),
            rights: LruCache::unbounded(),
            names: LruCache::unbounded(),
            pages: LruCache::new(PAGES_MAX),
            time: OriginTime::default(),
            doubted: None,
        };
        Self { clock: clock.clone(), tables: Arc::new(Mutex::new(tables)) }
    }

    /// A reply to a call that was begun at `begun`, if that is known, has these attributes.
    pub(crate) fn note(&self, file: &FileHandle, returned: &Fattr3, begun: Option<Instant>) {
        let now = self.clock.now();
        let mut tables = self.tables.lock();
        tables.time.observe(time_of(returned.ctime), steady_ns(now));
        let Some(known) = tables.files.get_mut(file) else {
            let seen = Seen { attributes: *returned, since: now, at: now, is_sure: true };
            put(&mut tables.files, *file, seen);
            return;
        };
        if token(&known.attributes) != token(returned) {
            *known = Seen { attributes: *returned, since: now, at: now, is_sure: false };
            return;
        }
        known.attributes = *returned;
        known.is_sure |= begun.is_some_and(|begun| begun >= known.since);
        known.at = now;
    }

    /// A file was changed, and the origin has not reported to what.
    pub(crate) fn forget(&self, file: &FileHandle) {
        self.tables.lock().files.pop(file);
    }

    /// A file may have been changed: what is known of it is to be confirmed.
    pub(crate) fn doubt(&self, file: &FileHandle) {
        let now = self.clock.now();
        if let Some(seen) = self.tables.lock().files.peek_mut(file) {
            (seen.since, seen.is_sure) = (now, false);
        }
    }

    /// The same of any file.
    pub(crate) fn doubt_all(&self) {
        self.tables.lock().doubted = Some(self.clock.now());
    }

    pub(crate) fn note_rights(
        &self,
        file: &FileHandle,
        caller: &Caller,
        granted: u32,
        of: &Fattr3,
    ) {
        let at = self.clock.now();
        let right = Right { granted, ctime: of.ctime, of: of.into(), at };
        put(&mut self.tables.lock().rights, (*file, caller.clone()), right);
    }

    /// The origin has found a name for a caller in a directory with these attributes, or has listed
    /// what has which name: he may pass through it.
    pub(crate) fn note_search(&self, dir: &FileHandle, caller: &Caller, of: &Fattr3) {
        let known = self.last_rights(dir, caller).map_or(0, |known| known.access);
        self.note_rights(dir, caller, known | access::LOOKUP, of);
    }

    pub(crate) fn note_name(&self, dir: &FileHandle, name: &[u8], file: &FileHandle) {
        put(&mut self.tables.lock().names, (*dir, name.into()), *file);
    }

    pub(crate) fn forget_name(&self, dir: &FileHandle, name: &[u8]) {
        self.tables.lock().names.pop(&(*dir, name.into()));
    }

    /// The origin has returned this page of a listing to a caller.
    pub(crate) fn note_page(&self, key: PageKey, page: &DirPage) {
        let Some(returned) = &page.dir_attributes else { return };
        self.note(&key.0, returned, None);
        if page.entries.len() <= PAGE_NAMES_MAX {
            self.tables.lock().pages.put(key, page.clone());
        }
    }

    /// The attributes, if the file is known to have them still, and the caller to be allowed to
    /// read.
    pub(crate) fn readable(&self, file: &FileHandle, caller: &Caller) -> Option<Fattr3> {
        let now = self.clock.now();
        let mut tables = self.tables.lock();
        let right = *tables.rights.get(&(*file, caller.clone()))?;
        let doubted = tables.doubted;
        let seen = tables.files.get(file)?;
        let is_doubted = doubted.is_some_and(|doubted| seen.at <= doubted);
        let is_good = seen.is_sure && !is_doubted && now.since(seen.at) <= GOOD_FOR;
        let may = right.granted & access::READ != 0
            && right.ctime == seen.attributes.ctime
            && now.since(right.at) <= RIGHTS_GOOD_FOR;
        (is_good && may).then_some(seen.attributes)
    }

    /// The state that data requested now are of, if the reply has the same one.
    pub(crate) fn state(&self, file: &FileHandle) -> Option<State> {
        let now = self.clock.now();
        let mut tables = self.tables.lock();
        let Seen { attributes, since, .. } = tables.files.get(file)?;
        let (token, since) = (token(attributes), *since);
        let known_for_ns = now.since(since).as_nanos();
        let wall = Time::since_1970(self.clock.since_1970());
        let now = Now { steady_ns: steady_ns(now), wall };
        let is_settled = tables.time.is_settled(token.ctime, known_for_ns, now);
        Some(State { token, is_settled })
    }

    /// What was reported of a file last, however long ago.
    pub(crate) fn last(&self, file: &FileHandle) -> Option<Fattr3> {
        self.tables.lock().files.get(file).map(|seen| seen.attributes)
    }

    /// The same of a caller's rights, unless the file was given others since.
    pub(crate) fn last_rights(
        &self,
        file: &FileHandle,
        caller: &Caller,
    ) -> Option<access::ReplyOk> {
        let mut tables = self.tables.lock();
        let right = *tables.rights.get(&(*file, caller.clone()))?;
        let seen = tables.files.get(file)?.attributes;
        let obj_attributes = Some(seen);
        (right.of == Owned::from(&seen))
            .then_some(access::ReplyOk { obj_attributes, access: right.granted })
    }

    /// The same of a name, for who may pass through its directory.
    pub(crate) fn last_name(
        &self,
        dir: &FileHandle,
        name: &[u8],
        caller: &Caller,
    ) -> Option<lookup::ReplyOk> {
        self.last_rights(dir, caller).filter(|known| known.access & access::LOOKUP != 0)?;
        let mut tables = self.tables.lock();
        let object = *tables.names.get(&(*dir, name.into()))?;
        let obj_attributes = Some(tables.files.get(&object)?.attributes);
        let dir_attributes = tables.files.get(dir).map(|seen| seen.attributes);
        Some(lookup::ReplyOk { object, obj_attributes, dir_attributes })
    }

    /// The same of a page of a listing, as long as the directory is known to be as it was.
    pub(crate) fn last_page(&self, key: &PageKey) -> Option<DirPage> {
        let mut tables = self.tables.lock();
        let now = tables.files.get(&key.0)?.attributes;
        let page = tables.pages.get(key)?;
        let is_same = page.dir_attributes.is_some_and(|then| token(&then) == token(&now));
        is_same.then(|| page.clone())
    }
}

fn put<K: std::hash::Hash + Eq, V>(into: &mut LruCache<K, V>, key: K, value: V) {
    into.put(key, value);
    if into.len() > ENTRIES_MAX.get() {
        into.pop_lru();
    }
}
