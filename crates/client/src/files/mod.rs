//! One mounted file system, as its users see it: files by handle and name, with caches.
//!
//! What the Linux client promises is promised here: close-to-open consistency (what was written
//! and closed on one client is seen by whoever opens the file afterwards on another), attributes
//! that are good for a while ([`crate::cache::attributes`]), files that stay readable while they
//! are open although their name is gone (silly rename).
//!
//! - [`names`]: lookups; [`naming`]: everything that changes a directory.
//! - [`open`]: files that are open: reading, writing, flushing.
//! - [`listing`]: directories, a page at a time; `progress`: how far one has come.
//! - `read`: reading, with what was fetched ahead.
//! - [`first`]: small files that are opened by reading them.
//! - `absent`: names that cannot be there.
//! - `disk`: what a local disk keeps of files.
//! - `busy`: which files are open, and what is to be removed when they no longer are; `hiding`:
//!   names that are taken from them.
//! - `catalogs`: what is known of directories, and `recall`: what a local disk keeps of that.
//! - `own` and `drafts`: what we write ourselves, for that.
//! - `making`: what is set of files before they are closed for the first time.
//! - `searching`: who is given what is known of names.
//! - `joint`: what several ask for at the same time.
//! - `ahead`: a directory and a file of it that are requested together.

mod absent;
mod ahead;
mod attributes;
mod busy;
mod catalogs;
mod disk;
mod drafts;
pub mod first;
mod hiding;
mod joint;
pub mod listing;
mod making;
pub mod names;
pub mod naming;
pub mod open;
mod options;
mod own;
mod progress;
mod read;
mod recall;
mod searching;

use std::collections::HashMap;
use std::sync::{Arc, Weak};

use bytes::Bytes;
use lru::LruCache;
use net::clock::Clock;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use tokio::sync::Notify;
use wire::nfs3::{Fattr3, FileHandle, PostOpAttr, WccData};

use self::drafts::Drafts;
pub use self::hiding::Opening;
pub use self::options::{Mistake, Options};
use crate::cache::attributes::{Attributes, ReplyContext, Version, at_least_one};
use crate::cache::moved::Moved;
use crate::cache::names::Names;
use crate::cache::rights::{CallerId, Rights};
use crate::cache::searchers::Searchers;
use crate::cache::singly::Singly;
use crate::cache::state::At;
use crate::error::Error;
use crate::read_ahead::budget::Budget;
use crate::read_ahead::holders::{Holder, Holders};
use crate::session::{Credential, Session};
use crate::write_behind::{self, Observer, WriteBehind};
use busy::Busy;
use catalogs::Catalogs;
use joint::Joint;
use making::Making;

/// Callers whose sessions are cached.
const CALLERS_MAX: usize = 1024;

/// A file that was found by its name, or made.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Found {
    pub handle: FileHandle,
    pub attributes: Fattr3,
    /// Which data the attributes are of.
    pub version: Version,
}

/// A file of which data was taken from a writer and could not be written.
#[derive(Clone, Debug)]
pub struct Loss {
    pub file: FileHandle,
    pub error: Error,
}

/// See the module's head; clones are the same file system.
#[derive(Clone, Debug)]
pub struct Files {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    clock: Clock,
    session: Session,
    options: Options,
    /// What a local disk keeps of files.
    disk: Option<cache::Cache>,
    state: Arc<Mutex<State>>,
    read_budget: Budget,
    /// Guards for whom something is held ahead.
    holders: Mutex<Holders<Weak<dyn Holder>>>,
    write_behind: WriteBehind,
    /// A change of a file that was announced has been answered.
    settled: Notify,
    /// A call that takes a name from a file has ended.
    removed: Notify,
    joint: Joint,
}

/// What is remembered; never locked across a call.
#[derive(Debug)]
struct State {
    attributes: Attributes,
    names: Names,
    rights: Rights,
    searchers: Searchers,
    singly: Singly,
    moved: Moved,
    callers: LruCache<Credential, (CallerId, Session)>,
    callers_seen: u64,
    busy: Busy,
    making: Making,
    drafts: Drafts,
    catalogs: Catalogs,
    /// By file system (fsid): whether names of other bytes are other names.
    exact_names: HashMap<u64, bool>,
    /// Counts our own changes of names, so that a reply that was overtaken is not remembered.
    renames: u64,
}

/// A caller's session.
struct Acting {
    id: CallerId,
    session: Session,
}

impl Files {
    pub fn new(clock: &Clock, session: Session, options: Options) -> Self {
        Self::on_disk(clock, session, options, None)
    }

    /// As [`Files::new`], with what a local disk keeps of the files of this server and export.
    pub fn on_disk(
        clock: &Clock,
        session: Session,
        options: Options,
        disk: Option<cache::Cache>,
    ) -> Self {
        let state = State {
            attributes: Attributes::new(options.times, options.files_max),
            names: Names::new(options.names_max),
            rights: Rights::new(options.rights_max),
            searchers: Searchers::new(options.names_max),
            singly: Singly::default(),
            moved: Moved::default(),
            callers: LruCache::new(at_least_one(CALLERS_MAX)),
            callers_seen: 0,
            busy: Busy::new(clock),
            making: Making::default(),
            drafts: Drafts::new(options.mistake),
            catalogs: Catalogs::new(options.mistake),
            exact_names: HashMap::new(),
            renames: 0,
        };
        let state = Arc::new(Mutex::new(state));
        let session = session.patient(clock, options.put_off_max);
        let wsize = options.write.wsize.min(session.sizes().write_bytes_max).max(1);
        let write =
            write_behind::Options { wsize, put_off_max: options.put_off_max, ..options.write };
        let mistake = options.mistake;
        let (clock_of, state_of) = (clock.clone(), Arc::clone(&state));
        let observer = Written { clock: clock_of, state: state_of, disk: disk.clone(), mistake };
        let inner = Inner {
            clock: clock.clone(),
            session,
            options,
            disk,
            state,
            read_budget: Budget::new(options.read_ahead_bytes_max),
            holders: Mutex::default(),
            write_behind: WriteBehind::new(clock, write, Arc::new(observer)),
            settled: Notify::new(),
            removed: Notify::new(),
            joint: Joint::default(),
        };
        Self { inner: Arc::new(inner) }
    }

    /// The directory that was mounted.
    pub fn root(&self) -> FileHandle {
        self.inner.session.root()
    }

    /// Whether every write waits for stable storage.
    pub fn is_sync(&self) -> bool {
        self.inner.options.sync
    }

    pub fn session(&self) -> &Session {
        &self.inner.session
    }

    /// Which data the file has, as far as is known; another one after somebody else has changed
    /// it. None when nothing is known of the file.
    pub fn version(&self, file: &FileHandle) -> Option<Version> {
        self.inner.state.lock().attributes.version(file)
    }

    /// Whether the name by which the file was found may lead to another by now, as its open has
    /// shown: looked up once more, it is requested.
    pub fn may_have_moved(&self, file: &FileHandle) -> bool {
        self.inner.state.lock().moved.contains(file)
    }

    /// The attributes that were last returned for the file, good or not.
    pub fn last(&self, file: &FileHandle) -> Option<Fattr3> {
        self.inner.state.lock().attributes.last(file)
    }

    /// The size that programs here see of the file, by those attributes; nothing where there are
    /// none.
    pub fn size(&self, file: &FileHandle) -> u64 {
        self.last(file).map_or(0, |last| self.with_own_data(file, last).size)
    }

    /// How long what is known of the file's attributes is still good; zero when it is not.
    pub fn validity(&self, file: &FileHandle) -> Nanos {
        let now = self.now();
        let mut state = self.inner.state.lock();
        state.attributes.good_for(file, now).map_or(Nanos::ZERO, |(_, left)| left)
    }

    /// What is written behind: counters and stages.
    pub fn write_behind(&self) -> &WriteBehind {
        &self.inner.write_behind
    }

    /// Bytes that are held for readers that have not come yet.
    pub fn read_ahead_bytes(&self) -> u64 {
        self.inner.read_budget.held_bytes()
    }

    /// Ends the use of the file system: what was written is made stable, and hidden names of files
    /// that are still open go. Gives the files of which data could not be written, and why.
    pub async fn shut_down(&self) -> Vec<Loss> {
        self.finish_all_making().await;
        let lost = self.inner.write_behind.drain().await;
        let hidden = self.inner.state.lock().busy.take_hidden();
        self.unhide(hidden).await;
        self.write_catalogs();
        lost.into_iter().map(|(file, error)| Loss { file, error }).collect()
    }

    fn now(&self) -> Instant {
        self.inner.clock.now()
    }

    fn acting(&self, who: &Credential) -> Acting {
        let mut state = self.inner.state.lock();
        if let Some((id, session)) = state.callers.get(who) {
            return Acting { id: *id, session: session.clone() };
        }
        state.callers_seen += 1;
        let id = CallerId(state.callers_seen);
        let session = self.inner.session.acting_as(who);
        state.callers.put(who.clone(), (id, session.clone()));
        Acting { id, session }
    }

    fn reply_context(&self, file: &FileHandle, sent: Instant) -> ReplyContext {
        ReplyContext { sent, now: self.now(), is_dirty: self.is_dirty(file), is_open: false }
    }

    /// A reply returned attributes of a file that the call did not change. Gives what is known of
    /// the file then, which is newer if the reply was overtaken by another.
    fn note(&self, file: &FileHandle, attributes: PostOpAttr, sent: Instant) -> Option<Found> {
        self.note_reply(file, &attributes?, self.reply_context(file, sent))
    }

    fn note_reply(
        &self,
        file: &FileHandle,
        attributes: &Fattr3,
        reply: ReplyContext,
    ) -> Option<Found> {
        let mut state = self.inner.state.lock();
        state.attributes.observe(file, attributes, reply);
        let (known, version) = (state.attributes.last(file)?, state.attributes.version(file)?);
        drop(state);
        let attributes = if self.makes(Mistake::OldAttributes) { *attributes } else { known };
        Some(Found { handle: *file, attributes: self.with_own_data(file, attributes), version })
    }

    /// Waits until what we have written to these bytes is on the server.
    async fn arrive(&self, file: &FileHandle, offset: u64, bytes: u64) {
        let range = offset..offset.saturating_add(bytes);
        if self.inner.write_behind.overlaps(*file, range.clone()) {
            self.inner.write_behind.arrive(*file, Some(range)).await;
        }
    }

    fn makes(&self, mistake: Mistake) -> bool {
        self.inner.options.mistake == Some(mistake)
    }

    /// Whether data of ours is on its way to the file.
    fn is_dirty(&self, file: &FileHandle) -> bool {
        self.inner.write_behind.is_dirty(*file)
    }
}

/// Takes in what the replies to WRITEs and COMMITs tell of files.
struct Written {
    clock: Clock,
    state: Arc<Mutex<State>>,
    disk: Option<cache::Cache>,
    mistake: Option<Mistake>,
}

impl Written {
    fn at(&self) -> At {
        let wall = cache::Time::since_1970(self.clock.since_1970());
        At { now: self.clock.now(), wall }
    }

    /// More may be under way: whose changes they were is judged when none is.
    fn reply_context(&self, sent: Instant) -> ReplyContext {
        ReplyContext { sent, now: self.clock.now(), is_dirty: true, is_open: false }
    }
}

impl Observer for Written {
    fn wrote(&self, file: &FileHandle, wcc: &WccData, sent: Instant) {
        let mut state = self.state.lock();
        if self.disk.is_some() {
            state.draft_begins(file, wcc, self.at());
        }
        state.attributes.wrote(file, wcc, self.reply_context(sent));
    }

    fn committed(&self, file: &FileHandle, wcc: &WccData, sent: Instant) {
        if self.mistake == Some(Mistake::CommitMakesState) {
            return self.wrote(file, wcc, sent);
        }
        self.state.lock().attributes.committed(file, wcc, self.reply_context(sent));
    }

    fn written(&self, file: &FileHandle, offset: u64, data: Bytes) {
        if let Some(disk) = &self.disk {
            self.state.lock().draft_written(disk, file, offset, data);
        }
    }

    fn failed(&self, file: &FileHandle) {
        self.state.lock().draft_spoilt(file);
    }

    fn is_clean(&self, file: &FileHandle) {
        if let Some(disk) = &self.disk {
            self.state.lock().draft_is_clean(disk, file, self.at());
        }
    }
}
