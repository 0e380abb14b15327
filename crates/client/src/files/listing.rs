//! Directories, a page at a time.
//!
//! READDIRPLUS is called while the server has it, because attributes and handles of a directory's
//! files are mostly wanted next; what it tells is remembered.

use std::sync::atomic::{AtomicBool, Ordering};

use cache::catalog::ENTRIES_MAX;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use wire::nfs3::{FileHandle, NfsStat3};

use super::absent::is_listed;
use super::joint::Question;
use super::names::NamesThen;
use super::options::Mistake;
use super::progress::Progress;
use super::{Files, Found};
use crate::cache::names::Target;
use crate::error::Error;
use crate::ops::{DirEntry, DirPage};
use crate::session::Credential;

/// Bytes of names and cookies, and of everything, requested with each call.
pub(super) const DIR_COUNT: u32 = 32 << 10;
pub(super) const MAX_COUNT: u32 = 256 << 10;

/// A directory of more bytes is not listed for the sake of a few names: some hundred entries.
pub(super) const LISTED_BYTES_MAX: u64 = 16 << 10;

/// Whoever opens a directory to list it reads the first page at once (guess). One who comes later
/// may have called rewinddir(3), and gets what is there then.
const READS_WITHIN: Nanos = Nanos::from_secs(1);

/// How often a directory is read from its beginning for one page, of a server that gives up cookies
/// while it is (guess).
const AGAIN_MAX: u32 = 8;

/// Reads a directory; see the module's head.
#[derive(Debug)]
pub struct Listing {
    files: Files,
    who: Credential,
    dir: FileHandle,
    has_plus: AtomicBool,
    /// Guards how far it has come.
    progress: Mutex<Progress>,
    /// Guards what was listed from the beginning on, for the local disk.
    heard: Mutex<Option<Heard>>,
    /// Guards the first page, which came with the open.
    first: Mutex<Option<First>>,
}

/// A page that waits for its reader; `renames` counts our own changes of names.
#[derive(Debug)]
struct First {
    page: DirPage,
    renames: u64,
    at: Instant,
}

/// Pages that have followed each other while nobody has changed the directory.
#[derive(Debug)]
struct Heard {
    since: NamesThen,
    verifier: [u8; 8],
    entries: Vec<DirEntry>,
}

impl Files {
    /// Begins to read a directory. Asks nothing yet.
    pub fn listing(&self, who: &Credential, dir: FileHandle) -> Listing {
        Listing {
            files: self.clone(),
            who: who.clone(),
            dir,
            has_plus: AtomicBool::new(true),
            progress: Mutex::new(Progress::new()),
            heard: Mutex::default(),
            first: Mutex::default(),
        }
    }

    /// A name that would have to be looked up, by a listing in place of its LOOKUP, if it is not
    /// the first of its directory. None where that did not tell.
    pub(super) async fn find_by_listing(
        &self,
        who: &Credential,
        dir: FileHandle,
        name: &[u8],
    ) -> Option<Found> {
        if !is_listed(name) {
            return None;
        }
        let known_name = || match self.find(&dir, name)? {
            Target::File(file) => self.found(&file),
            Target::Nothing => None,
        };
        if self.inner.joint.answered(Question::Names, dir).await {
            let may = self.may_search(&self.acting(who), dir).await;
            return known_name().filter(|_| may.unwrap_or(false));
        }
        let version = {
            let mut state = self.inner.state.lock();
            let version = state.attributes.sure_version(&dir)?;
            let is_small = state.attributes.last(&dir)?.size <= LISTED_BYTES_MAX;
            (is_small && state.singly.lists(&dir, version)).then_some(version)?
        };
        let _asking = self.inner.joint.begin(Question::Names, dir).await?;
        let listing = self.listing(who, dir);
        let page = listing.ask(0, [0; 8]).await;
        let found = page.ok().and_then(|_| known_name());
        if found.is_none() {
            self.inner.state.lock().singly.in_vain(&dir, version);
        }
        found
    }

    /// The file of an entry, as far as is known without asking. The page that has it may be older
    /// than that.
    pub fn listed(&self, entry: &DirEntry) -> Option<Found> {
        let handle = entry.handle?;
        if self.makes(Mistake::OldAttributes) {
            let (attributes, version) = (entry.attributes?, self.version(&handle)?);
            return Some(Found { handle, attributes, version });
        }
        self.found(&handle)
    }
}

impl Listing {
    pub fn dir(&self) -> FileHandle {
        self.dir
    }

    /// A program opens the directory. The server is called, so that one which another client has
    /// removed is a stale handle here, and not when it is read: only an open looks the name up
    /// again. For whoever `lists` it that call is the first page.
    ///
    /// # Errors
    /// As the server says.
    pub async fn open(&self, lists: bool) -> Result<(), Error> {
        if lists {
            let renames = self.files.names_now(&self.dir).renames;
            let page = self.ask_page(0).await?;
            *self.first.lock() = Some(First { page, renames, at: self.files.now() });
        } else if self.files.inner.options.close_to_open {
            self.files.ask_attributes(&self.who, self.dir).await?;
        }
        Ok(())
    }

    /// The entries that follow `cookie`, which is that of an entry or 0.
    ///
    /// # Errors
    /// As the server says; [`Error::Nonsense`] when the listing does not get anywhere.
    pub async fn page(&self, cookie: u64) -> Result<DirPage, Error> {
        match self.first_page().filter(|_| cookie == 0) {
            Some(page) => Ok(page),
            None => self.ask_page(cookie).await,
        }
    }

    /// The page that came with the open, once, if names of ours were not changed since.
    fn first_page(&self) -> Option<DirPage> {
        let First { page, renames, at } = self.first.lock().take()?;
        let is_new = self.files.now().since(at) < READS_WITHIN
            && self.files.names_now(&self.dir).renames == renames;
        is_new.then_some(page)
    }

    /// Behind a cookie that the server no longer knows it begins again, for what is not returned
    /// yet.
    async fn ask_page(&self, cookie: u64) -> Result<DirPage, Error> {
        if cookie == 0 {
            *self.progress.lock() = Progress::new();
        }
        let (mut follows, mut beginnings) = (cookie, 0);
        loop {
            let page = match self.page_behind(follows).await {
                Err(error) if follows != 0 && is_unknown(&error) && beginnings < AGAIN_MAX => {
                    beginnings += 1;
                    follows = 0;
                    self.progress.lock().begins_again(cookie);
                    continue;
                }
                page => page?,
            };
            let last = page.entries.last().map(|entry| entry.cookie);
            let rest = self.progress.lock().came(follows, page);
            let rest = rest.map_err(|what| self.files.session().nonsense("READDIR", what))?;
            match (rest, last) {
                (None, _) => {
                    return Err(self.files.known_status("READDIR", NfsStat3::BadCookie));
                }
                // All of it was returned before.
                (Some(rest), Some(last)) if rest.entries.is_empty() && !rest.eof => follows = last,
                (Some(rest), _) => return Ok(rest),
            }
        }
    }

    async fn page_behind(&self, cookie: u64) -> Result<DirPage, Error> {
        let verifier = if cookie == 0 { [0; 8] } else { self.progress.lock().verifier };
        match self.files.known_page(&self.who, &self.dir, cookie).await {
            Some(known) => Ok(known),
            None => self.ask(cookie, verifier).await,
        }
    }

    async fn ask(&self, cookie: u64, verifier: [u8; 8]) -> Result<DirPage, Error> {
        let files = &self.files;
        let acting = files.acting(&self.who);
        let sent = files.now();
        let before = files.names_now(&self.dir);
        let session = &acting.session;
        let page = if self.has_plus.load(Ordering::Relaxed) {
            let page = session.readdirplus(self.dir, cookie, verifier, DIR_COUNT, MAX_COUNT).await;
            match page {
                Err(error) if error.is_unsupported() => {
                    self.has_plus.store(false, Ordering::Relaxed);
                    session.readdir(self.dir, cookie, verifier, DIR_COUNT).await
                }
                page => page,
            }
        } else {
            session.readdir(self.dir, cookie, verifier, DIR_COUNT).await
        };
        let page = files.heard((&self.dir, sent), page);
        let page = files.more_granted(&acting, self.dir, page).await?;
        files.note(&self.dir, page.dir_attributes, sent);
        files.has_searched(&acting, &self.dir);
        for entry in &page.entries {
            if let (Some(handle), Some(_)) = (&entry.handle, &entry.attributes) {
                files.note(handle, entry.attributes, sent);
                if entry.name != b"." && entry.name != b".." {
                    files.remember(&self.dir, &entry.name, Target::File(*handle), before);
                }
            }
        }
        self.keep(cookie, before, &page);
        Ok(page)
    }

    /// Keeps the entries of a page, until the listing is complete.
    fn keep(&self, cookie: u64, before: NamesThen, page: &DirPage) {
        if self.files.disk().is_none() {
            return;
        }
        let mut heard = self.heard.lock();
        if cookie == 0 {
            let (verifier, entries) = (page.cookieverf, Vec::new());
            *heard = Some(Heard { since: before, verifier, entries });
        }
        let follows = |heard: &mut Heard| {
            let last = heard.entries.last().map_or(0, |entry| entry.cookie);
            let is_same = heard.verifier == page.cookieverf
                && heard.since.version == before.version
                && heard.since.renames == before.renames;
            let has_room = heard.entries.len() + page.entries.len() <= ENTRIES_MAX;
            last == cookie && is_same && has_room
        };
        let Some(mut whole) = heard.take_if(|heard| follows(heard)) else { return *heard = None };
        whole.entries.extend(page.entries.iter().cloned());
        match page.eof {
            true => {
                let Heard { since, verifier, entries } = whole;
                drop(heard);
                self.files.learn_listing(&self.dir, since, verifier, &entries);
            }
            false => *heard = Some(whole),
        }
    }
}

/// Whether the server does not know a cookie any more.
fn is_unknown(error: &Error) -> bool {
    error.status() == Some(NfsStat3::BadCookie)
}
