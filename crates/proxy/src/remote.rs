//! The store: each of its operations is a call, or some, to the origin.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use bytes::Bytes;
use cache::Cache;
use client::error::Error;
use client::session::Session;
use client::url::Version;
use futures_util::future::try_join;
use net::call::{Counters, ProcedureCounters};
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use server::durable::Durable;
use server::metrics::Reading;
use server::store::{
    Changed, Extent, Linked, ListFrom, Listed, Looked, Medium, Node, Properties, Renamed, Sink,
    Space, Store, Written,
};
use server::types::{
    Access, Attr, Caller, CreateHow, Handle, SetAttr, Special, Stability, Status, Time, Verifier,
};
use wire::nfs3::{FType, Fattr3, FileHandle, access, fsinfo};
use wire::{nfs2, nfs3};

use crate::ahead::Ahead;
use crate::disk::Disk;
use crate::exclusive::Exclusive;
use crate::fate::{self, Kind};
use crate::handles::Handles;
use crate::known::Known;
use crate::neutral;

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

/// What is counted beside the calls.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    reads_ahead: AtomicU64,
    bytes_ahead: AtomicU64,
    away: AtomicU64,
    offline: AtomicU64,
    nonsense: AtomicU64,
}

impl Counts {
    pub(crate) fn read_ahead(&self, bytes: usize) {
        self.reads_ahead.fetch_add(1, Ordering::Relaxed);
        self.bytes_ahead.fetch_add(bytes as u64, Ordering::Relaxed);
    }
}

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

    fn counter_readings(&self) -> Vec<Reading> {
        let Counters { procedures, transport, .. } = self.session.rpc().counters();
        let called = procedures.iter().enumerate().filter(|(_, counted)| counted.ops > 0);
        let calls = called.flat_map(|(number, counted)| calls(self.procedure(number), counted));
        let connects = Reading::new(
            "nfskit_origin_connects_total",
            "Connections to the origin that were made.",
            transport.connects as f64,
        );
        calls.chain([connects]).collect()
    }

    fn procedure(&self, number: usize) -> &'static str {
        let code = u32::try_from(number).unwrap_or(u32::MAX);
        let name = match self.session.version() {
            Version::Two => nfs2::Procedure::from_code(code).map(nfs2::Procedure::name),
            Version::Three => nfs3::Procedure::from_code(code).map(nfs3::Procedure::name),
        };
        name.unwrap_or("other")
    }
}

/// What is counted of a procedure of the origin's.
fn calls(procedure: &'static str, counted: &ProcedureCounters) -> [Reading; 4] {
    let rows = [
        (
            "nfskit_origin_calls_total",
            "Calls to the origin that have ended, well or not.",
            counted.ops as f64,
        ),
        (
            "nfskit_origin_retransmissions_total",
            "Retransmissions of calls to the origin.",
            counted.retransmissions as f64,
        ),
        (
            "nfskit_origin_major_timeouts_total",
            "Times that a call to the origin had no reply for timeo x retrans.",
            counted.major_timeouts as f64,
        ),
        (
            "nfskit_origin_seconds_total",
            "Seconds that calls to the origin took, from asking to the reply.",
            counted.execute.as_secs_f64(),
        ),
    ];
    rows.map(|(name, help, value)| Reading::new(name, help, value).of("procedure", procedure))
}

impl Store for Remote {
    fn root(&self) -> Handle {
        self.handles.seal(&self.root)
    }

    /// As the origin answers for it.
    fn medium(&self) -> Medium {
        Medium::Stable
    }

    /// Replies carry the origin's, which no operation here needs beforehand.
    fn verifier(&self) -> Verifier {
        Verifier([0; 8])
    }

    fn brief(&self, handle: &Handle) -> Option<Handle> {
        self.handles.brief(handle)
    }

    fn full(&self, handle: &Handle) -> Handle {
        self.handles.full(handle)
    }

    /// Calls are retransmitted over each new connection.
    fn doubts(&self) -> u64 {
        let Counters { procedures, transport, .. } = self.session.rpc().counters();
        let again = procedures.iter().map(|counted| counted.retransmissions).sum::<u64>();
        transport.connects + again
    }

    /// They are the origin's.
    fn shares_clock(&self) -> bool {
        false
    }

    /// Version 2 has no ACCESS, and the origin may squash the caller, or know better.
    fn guesses_rights(&self) -> bool {
        self.session.version() == Version::Two
    }

    fn unstored_handles(&self) -> u64 {
        self.handles.unstored() as u64
    }

    async fn tend(&self, _now: Instant) {
        self.ahead.tend();
    }

    fn readings(&self) -> Vec<Reading> {
        let mut readings = self.counter_readings();
        let Counts { reads_ahead, bytes_ahead, away, offline, nonsense } = &self.counts;
        let counted = |of: &AtomicU64| of.load(Ordering::Relaxed) as f64;
        readings.extend([
            Reading::new(
                "nfskit_readahead_hits_total",
                "READs answered from what was read ahead, without a call of their own.",
                counted(reads_ahead),
            ),
            Reading::new(
                "nfskit_readahead_hit_bytes_total",
                "Bytes of these READs.",
                counted(bytes_ahead),
            ),
            Reading::new(
                "nfskit_readahead_bytes",
                "Bytes held, or being fetched, ahead of readers.",
                self.ahead.held_bytes() as f64,
            ),
            Reading::new(
                "nfskit_proxy_handles",
                "Handles of the origin that are in the table, because they do not fit into ours.",
                self.handles.rows() as f64,
            ),
            Reading::new(
                "nfskit_proxy_away_total",
                "Calls of clients that failed because the origin did not answer in time.",
                counted(away),
            ),
            Reading::new(
                "nfskit_proxy_offline_total",
                "Calls answered by what was known while the origin was away (--offline-reads).",
                counted(offline),
            ),
            Reading::new(
                "nfskit_proxy_nonsense_total",
                "Calls of clients that failed because the origin's reply made no sense.",
                counted(nonsense),
            ),
        ]);
        readings.extend(self.disk.iter().flat_map(Disk::readings));
        readings
    }

    async fn attr(&self, caller: &Caller, handle: &Handle) -> Result<Attr, Status> {
        let origin = self.origin_handle(handle)?;
        let (session, begun) = (self.acting(caller), self.clock.now());
        let returned = self.or_cached(session.getattr(origin), |known| known.last(&origin)).await;
        let (returned, was_cached) =
            returned.map_err(|error| self.failed(&error, Kind::Repeatable))?;
        if !was_cached {
            self.learn(&origin, &returned, Some(begun));
        }
        Ok(neutral::attr(&returned))
    }

    async fn set_attr(
        &self,
        caller: &Caller,
        handle: &Handle,
        changes: SetAttr,
        guard: Option<Time>,
    ) -> Changed<()> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Changed::failed(status),
        };
        // With a guard it is another call the second time.
        let kind = if guard.is_some() { Kind::Once } else { Kind::Repeatable };
        let (changes, guard) = (neutral::sattr(&changes), guard.map(neutral::nfstime));
        match self.acting(caller).setattr(origin, changes, guard).await {
            Ok(wcc) => {
                self.changed(&origin, wcc.after.as_ref());
                Changed { wcc: neutral::wcc(&wcc), result: Ok(()) }
            }
            Err(error) => self.changed_in_vain(&error, kind),
        }
    }

    async fn lookup(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Looked<Node> {
        self.look_up(caller, dir, name).await
    }

    async fn climb(&self, caller: &Caller, dir: &Handle) -> Looked<Node> {
        match self.origin_handle(dir) {
            Ok(origin) => self.above_any(&self.acting(caller), origin).await,
            Err(status) => Looked::failed(status),
        }
    }

    async fn access(&self, caller: &Caller, handle: &Handle, requested: Access) -> Looked<Access> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        match self.ask_access(&self.acting(caller), caller, origin, requested.0).await {
            Ok((reply, _)) => {
                let granted = Access(reply.access & requested.0);
                Looked { attr: neutral::post_op(reply.obj_attributes), result: Ok(granted) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    async fn read_link(&self, caller: &Caller, handle: &Handle) -> Looked<Bytes> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        match self.acting(caller).readlink(origin).await {
            Ok((target, attributes)) => {
                Looked { attr: neutral::post_op(attributes), result: Ok(Bytes::from(target)) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    async fn read(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Looked<Extent> {
        self.read_bytes(caller, handle, offset, count).await
    }

    async fn write(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        data: Bytes,
        stability: Stability,
    ) -> Changed<Written> {
        self.write_bytes(caller, handle, offset, data, stability).await
    }

    async fn commit(
        &self,
        caller: &Caller,
        handle: &Handle,
        offset: u64,
        count: u32,
    ) -> Changed<Durable> {
        self.commit_bytes(caller, handle, offset, count).await
    }

    async fn create(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        how: CreateHow,
    ) -> Changed<Node> {
        match self.session.version() {
            Version::Two => self.create_alone(caller, dir, name, how).await,
            Version::Three => self.create_file(caller, dir, name, how).await,
        }
    }

    async fn make_dir(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let attrs = neutral::sattr(&attrs);
        let make = async |session: Session, dir| session.mkdir(dir, name, attrs).await;
        self.make(caller, dir, name, make).await
    }

    async fn symlink(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        target: &[u8],
        attrs: SetAttr,
    ) -> Changed<Node> {
        let attrs = neutral::sattr(&attrs);
        let make = async |session: Session, dir| session.symlink(dir, name, attrs, target).await;
        self.make(caller, dir, name, make).await
    }

    async fn make_node(
        &self,
        caller: &Caller,
        dir: &Handle,
        name: &[u8],
        what: Special,
        attrs: SetAttr,
    ) -> Changed<Node> {
        let what = neutral::special(what, &attrs);
        let make = async |session: Session, dir| session.mknod(dir, name, what).await;
        self.make(caller, dir, name, make).await
    }

    async fn remove(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let remove = async |session: Session, dir| session.remove(dir, name).await;
        self.unmake(caller, dir, name, remove).await
    }

    async fn remove_dir(&self, caller: &Caller, dir: &Handle, name: &[u8]) -> Changed<()> {
        let remove = async |session: Session, dir| session.rmdir(dir, name).await;
        self.unmake(caller, dir, name, remove).await
    }

    async fn rename(
        &self,
        caller: &Caller,
        from_dir: &Handle,
        from_name: &[u8],
        to_dir: &Handle,
        to_name: &[u8],
    ) -> Renamed {
        self.move_name(caller, (from_dir, from_name), (to_dir, to_name)).await
    }

    async fn link(&self, caller: &Caller, handle: &Handle, dir: &Handle, name: &[u8]) -> Linked {
        self.link_name(caller, handle, dir, name).await
    }

    async fn list(
        &self,
        caller: &Caller,
        dir: &Handle,
        from: ListFrom,
        sink: Sink<'_>,
    ) -> Looked<Listed> {
        self.list_page(caller, dir, from, sink).await
    }

    async fn space(&self, caller: &Caller, handle: &Handle) -> Looked<Space> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        match self.acting(caller).fsstat(origin).await {
            Ok(returned) => {
                let space = Space {
                    bytes_total: returned.tbytes,
                    bytes_free: returned.fbytes,
                    bytes_available: returned.abytes,
                    files_total: returned.tfiles,
                    files_free: returned.ffiles,
                    files_available: returned.afiles,
                };
                Looked { attr: neutral::post_op(returned.obj_attributes), result: Ok(space) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }

    async fn properties(&self, caller: &Caller, handle: &Handle) -> Looked<Properties> {
        let origin = match self.origin_handle(handle) {
            Ok(origin) => origin,
            Err(status) => return Looked::failed(status),
        };
        let session = self.acting(caller);
        let returned = try_join(session.fsinfo(origin), session.pathconf(origin)).await;
        match returned {
            Ok((info, paths)) => {
                let properties = Properties {
                    file_size_max: info.maxfilesize,
                    time_resolution: neutral::time(info.time_delta),
                    hard_links: info.properties & fsinfo::FSF_LINK != 0,
                    symlinks: info.properties & fsinfo::FSF_SYMLINK != 0,
                    links_max: paths.linkmax,
                    name_bytes_max: paths.name_max,
                    chown_restricted: paths.chown_restricted,
                };
                Looked { attr: neutral::post_op(info.obj_attributes), result: Ok(properties) }
            }
            Err(error) => self.looked_in_vain(&error),
        }
    }
}
