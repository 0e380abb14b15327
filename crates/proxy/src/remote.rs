//! The store: what it holds of the origin, and what it does while the origin is away.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use cache::Cache;
use client::error::Error;
use client::session::Session;
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use server::store::{Changed, Looked, Store};
use server::types::{Caller, Handle, Status};
use wire::nfs3::{FType, Fattr3, FileHandle, access};

use crate::ahead::Ahead;
use crate::disk::Disk;
use crate::exclusive::Exclusive;
use crate::fate::{self, Kind};
use crate::handles::Handles;
use crate::known::Known;
use crate::named::Names;
use crate::neutral;
use crate::readings::Counts;

/// How a store calls its origin.
#[derive(Clone, Debug)]
pub struct Options {
    /// What AUTH_SYS calls this host.
    pub machine_name: String,
    /// All callers act as this one, if not as themselves.
    pub everyone: Option<Caller>,
    /// Bytes that are read ahead of clients, at most; 0 reads nothing ahead.
    pub read_ahead_bytes_max: u64,
    /// Keeps blocks of files.
    pub cache: Option<Cache>,
    /// While the origin is away, the last replies are repeated.
    pub offline_reads: bool,
}

impl Default for Options {
    /// 64 MiB: the window of one reader at 10 Gbit/s and 50 ms.
    fn default() -> Self {
        Self {
            machine_name: "nfskit".to_owned(),
            everyone: None,
            read_ahead_bytes_max: 64 << 20,
            cache: None,
            offline_reads: false,
        }
    }
}

/// See the crate's head.
#[derive(Debug)]
pub struct Remote {
    session: Session,
    pub(crate) handles: Handles,
    /// The origin's handle of what is exported, and its file system and number.
    pub(crate) root: FileHandle,
    pub(crate) root_identity: (u64, u64),
    pub(crate) ahead: Ahead,
    pub(crate) names: Names,
    pub(crate) exclusive: Exclusive,
    pub(crate) counts: Counts,
    pub(crate) disk: Option<Disk>,
    pub(crate) clock: Clock,
    away: Arc<Away>,
    options: Options,
}

/// Whether the origin is.
#[derive(Debug, Default)]
struct Away {
    /// The last call that could be answered from what is known was not answered in time.
    is_away: AtomicBool,
    /// One waits until the origin answers.
    is_awaited: AtomicBool,
}

/// How long the origin is waited for, with `offline_reads`, before what is known is the reply.
const PATIENCE: Nanos = Nanos::from_secs(2);

/// The same until it has answered again. It may take longer for any reply: one call waits for that.
const AWAY_PATIENCE: Nanos = Nanos::from_millis(50);

/// When it is called again, if that one has failed.
const AGAIN: Nanos = Nanos::from_secs(1);

impl Remote {
    /// The files below the session's root. Asks for its attributes.
    ///
    /// # Errors
    /// That GETATTR failed.
    pub async fn open(
        clock: &Clock,
        session: Session,
        handles: Handles,
        options: Options,
    ) -> Result<Self, Error> {
        let root = session.root();
        let attributes = session.getattr(root).await?;
        let read_bytes_max = session.sizes().read_bytes_max;
        let disk = options.cache.clone();
        let disk = disk.map(|cache| Disk { cache, known: Known::new(clock) });
        let bytes_max = options.read_ahead_bytes_max;
        Ok(Self {
            ahead: Ahead::new(clock, bytes_max, read_bytes_max, disk.clone()),
            names: Names::default(),
            exclusive: Exclusive::default(),
            disk,
            clock: clock.clone(),
            away: Arc::default(),
            session,
            handles,
            root,
            root_identity: (attributes.fsid, attributes.fileid),
            counts: Counts::default(),
            options,
        })
    }

    /// The connection to the origin.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// fsid and fileid of what is exported.
    pub fn root_identity(&self) -> (u64, u64) {
        self.root_identity
    }

    pub fn handles(&self) -> &Handles {
        &self.handles
    }

    /// As its caller.
    pub(crate) fn acting(&self, caller: &Caller) -> Session {
        let caller = self.options.everyone.as_ref().unwrap_or(caller);
        self.session.acting_as(&neutral::credential(caller, &self.options.machine_name))
    }

    pub(crate) fn origin_handle(&self, ours: &Handle) -> Result<FileHandle, Status> {
        self.handles.open_handle(ours)
    }

    pub(crate) fn origin_handles(&self, [a, b]: [&Handle; 2]) -> Result<[FileHandle; 2], Status> {
        Ok([self.origin_handle(a)?, self.origin_handle(b)?])
    }

    /// The reply to a client after a failure, which is counted.
    pub(crate) fn failed(&self, error: &Error, kind: Kind) -> Status {
        match error {
            error if fate::is_away(error) => self.counts.away.fetch_add(1, Ordering::Relaxed),
            Error::Status { .. } => 0,
            _ => self.counts.nonsense.fetch_add(1, Ordering::Relaxed),
        };
        fate::status(error, kind)
    }

    pub(crate) fn looked_in_vain<T>(&self, error: &Error) -> Looked<T> {
        let status = self.failed(error, Kind::Repeatable);
        Looked { attr: fate::attr(error), result: Err(status) }
    }

    pub(crate) fn changed_in_vain<T>(&self, error: &Error, kind: Kind) -> Changed<T> {
        let status = self.failed(error, kind);
        Changed { wcc: fate::wcc(error), result: Err(status) }
    }

    /// The origin has returned these attributes, in reply to a call begun at `begun` if that is
    /// known.
    pub(crate) fn learn(&self, file: &FileHandle, returned: &Fattr3, begun: Option<Instant>) {
        self.ahead.note(file, Some(returned));
        if let Some(disk) = &self.disk {
            disk.known.note(file, returned, begun);
        }
    }

    /// A file was changed; these are the origin's attributes of it.
    pub(crate) fn changed(&self, file: &FileHandle, returned: Option<&Fattr3>) {
        self.ahead.changed(file, returned);
        match (returned, &self.disk) {
            (Some(returned), Some(disk)) => disk.known.note(file, returned, None),
            (None, Some(disk)) => disk.known.forget(file),
            (_, None) => {}
        }
    }

    /// A file may be another by now, as far as its links and times go.
    pub(crate) fn doubt(&self, file: &FileHandle) {
        self.ahead.changed(file, None);
        if let Some(disk) = &self.disk {
            disk.known.doubt(file);
        }
    }

    /// The same of any file.
    pub(crate) fn doubt_all(&self) {
        self.ahead.all_changed();
        if let Some(disk) = &self.disk {
            disk.known.doubt_all();
        }
    }

    /// What is known for while the origin is away, if that is to be replied.
    pub(crate) fn known_offline(&self) -> Option<&Known> {
        self.disk.as_ref().filter(|_| self.options.offline_reads).map(|disk| &disk.known)
    }

    /// What the call says; while the origin is away and there is `cached`, that, and `true`.
    pub(crate) async fn or_cached<T>(
        &self,
        call: impl Future<Output = Result<T, Error>>,
        cached: impl Fn(&Known) -> Option<T>,
    ) -> Result<(T, bool), Error> {
        let Some(known) = self.known_offline() else {
            return call.await.map(|returned| (returned, false));
        };
        let cached = || self.while_away(cached(known));
        let is_away = self.away.is_away.load(Ordering::Relaxed);
        let patience = if is_away { AWAY_PATIENCE } else { PATIENCE };
        let mut call = pin!(call);
        let returned = match self.clock.within(patience, call.as_mut()).await {
            Ok(returned) => returned,
            Err(_elapsed) => match cached() {
                Some(cached) => return Ok(cached),
                None => call.await,
            },
        };
        match returned {
            Err(error) if fate::is_away(&error) => cached().ok_or(error),
            returned => {
                self.away.is_away.store(false, Ordering::Relaxed);
                returned.map(|returned| (returned, false))
            }
        }
    }

    /// The origin is away, and this was known of what it was to say.
    fn while_away<T>(&self, cached: Option<T>) -> Option<(T, bool)> {
        self.away.is_away.store(true, Ordering::Relaxed);
        if !self.away.is_awaited.swap(true, Ordering::Relaxed) {
            self.clock.spawn(self.returned());
        }
        self.counts.offline.fetch_add(u64::from(cached.is_some()), Ordering::Relaxed);
        cached.map(|cached| (cached, true))
    }

    /// Waits until the origin answers, however long that takes.
    fn returned(&self) -> impl Future<Output = ()> + Send + 'static {
        let (session, root) = (self.session.clone(), self.root);
        let (away, clock) = (Arc::clone(&self.away), self.clock.clone());
        async move {
            while session.getattr(root).await.is_err_and(|error| fate::is_away(&error)) {
                clock.sleep(AGAIN).await;
            }
            away.is_awaited.store(false, Ordering::Relaxed);
            away.is_away.store(false, Ordering::Relaxed);
        }
    }

    /// ACCESS, or what was known of it while the origin is away, and `true`.
    pub(crate) async fn ask_access(
        &self,
        session: &Session,
        caller: &Caller,
        file: FileHandle,
        requested: u32,
    ) -> Result<(access::ReplyOk, bool), Error> {
        let begun = self.clock.now();
        let call = session.access(file, requested);
        let (reply, was_cached) =
            self.or_cached(call, |known| known.last_rights(&file, caller)).await?;
        if !was_cached && let Some(returned) = &reply.obj_attributes {
            self.learn(&file, returned, Some(begun));
            if self.guesses_rights() {
                return Ok((reply, was_cached));
            }
            // Only what was requested is known.
            let needed = match returned.ftype {
                FType::Dir => access::LOOKUP,
                _ => access::READ,
            };
            if let Some(disk) = self.disk.as_ref().filter(|_| requested & needed != 0) {
                disk.known.note_rights(&file, caller, reply.access & requested, returned);
            }
        }
        Ok((reply, was_cached))
    }

    /// The origin has read a file in this state for a caller.
    pub(crate) fn has_read(&self, caller: &Caller, file: &FileHandle, returned: Option<&Fattr3>) {
        let Some((disk, returned)) = self.disk.as_ref().zip(returned) else { return };
        if self.guesses_rights() {
            disk.known.note_rights(file, caller, access::READ, returned);
        }
    }
}
