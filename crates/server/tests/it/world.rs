//! An engine, a clock that moves when a test moves it, and typed calls.

use std::fmt::Debug;
use std::fs::{self, Permissions};
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

use bytes::Bytes;
use server::store::Store;
use server::store::dir::{DirOptions, DirStore, HandleChoice, MetadataSync};
use server::store::mem::{MemOptions, MemStore};
use server::types::Time;
use server::{Engine, EngineConfig, Export, Exports, Peer, Rule, Transport};
use wire::Procedure;
use wire::nfs3::{
    self, DirOp, Fattr3, FileHandle, NfsStat3, Procedure as P, Sattr3, StableHow, WccAttr, WccData,
};
use wire::record::Message;
use wire::rpc::{AuthSys, CallHeader, Gids, OpaqueAuth, ReplyHeader};
use wire::xdr::{Decode, Encode, from_bytes};

pub(crate) const XID: u32 = 0x1a2b_3c4d;

pub(crate) const PEER: Peer =
    Peer::at(SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 7)), 700), Transport::Stream);

/// Where the clock begins, in seconds since 1970.
pub(crate) const START_SECS: u32 = 1_700_000_000;

pub(crate) struct World<S = MemStore> {
    pub(crate) engine: Engine<S>,
    pub(crate) seconds: Arc<AtomicI64>,
    /// Credential of the calls: uid and gid.
    pub(crate) ids: (u32, u32),
    pub(crate) gids: Vec<u32>,
    /// Whether a call may wait for another thread; on a memory store none does.
    waits: bool,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(MemOptions::default(), EngineConfig::default())
    }

    /// An empty memory store under a rule.
    pub(crate) fn ruled(rule: Rule) -> Self {
        Self::exporting(Export::ruled(rule), EngineConfig::default(), |store| store)
    }

    pub(crate) fn with(options: MemOptions, config: EngineConfig) -> Self {
        Self::wrapped(options, config, |store| store)
    }

    /// The books of the store balance.
    #[track_caller]
    pub(crate) fn audit(&self) {
        assert_eq!(self.engine.store().audit(), Ok(()));
    }
}

/// Wakes the thread that waits for a reply.
struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

impl World<DirStore> {
    /// A world over a directory, whose clock is the machine's.
    pub(crate) fn over(path: &Path, config: EngineConfig) -> Self {
        Self::with_handles(path, HandleChoice::Best, config)
    }

    pub(crate) fn with_handles(path: &Path, handles: HandleChoice, config: EngineConfig) -> Self {
        let options = DirOptions {
            handles,
            metadata_sync: MetadataSync::Never, // a test needs no protection from power loss
            ..DirOptions::default()
        };
        // Callers are not who runs the test, where the process may act as them.
        fs::set_permissions(path, Permissions::from_mode(0o777)).unwrap();
        let store = DirStore::open(path, &options).unwrap();
        Self {
            engine: Engine::new(Exports::one(Export::default(), store), config),
            seconds: Arc::default(),
            ids: (1000, 100),
            gids: Vec::new(),
            waits: true,
        }
    }
}

impl<S: Store> World<S> {
    /// A world whose memory store is wrapped.
    pub(crate) fn wrapped(
        options: MemOptions,
        config: EngineConfig,
        wrap: impl FnOnce(MemStore) -> S,
    ) -> Self {
        Self::over_memory(options, Export::default(), config, wrap)
    }

    /// A world whose memory store is exported in a way of its own.
    pub(crate) fn exporting(
        export: Export,
        config: EngineConfig,
        wrap: impl FnOnce(MemStore) -> S,
    ) -> Self {
        Self::over_memory(MemOptions::default(), export, config, wrap)
    }

    fn over_memory(
        options: MemOptions,
        export: Export,
        config: EngineConfig,
        wrap: impl FnOnce(MemStore) -> S,
    ) -> Self {
        let seconds = Arc::new(AtomicI64::new(i64::from(START_SECS)));
        let clock = Arc::clone(&seconds);
        let time = move || Time { secs: clock.load(Ordering::Relaxed), nanos: 0 };
        let store = wrap(MemStore::new(options, Arc::new(time)));
        Self {
            engine: Engine::new(Exports::one(export, store), config),
            seconds,
            ids: (1000, 100),
            gids: Vec::new(),
            waits: false,
        }
    }

    pub(crate) fn pass(&self, seconds: i64) {
        self.seconds.fetch_add(seconds, Ordering::Relaxed);
    }

    pub(crate) fn with_user(mut self, uid: u32, gid: u32) -> Self {
        self.ids = (uid, gid);
        self
    }

    pub(crate) fn root(&self) -> FileHandle {
        self.engine.root()
    }

    /// The bytes of a call with the world's credential.
    pub(crate) fn record(&self, procedure: Procedure, args: &impl Encode) -> Bytes {
        let body = credential(self.ids, &self.gids);
        let mut record = CallHeader::new(XID, procedure, OpaqueAuth::sys(&body)).to_bytes();
        args.encode(&mut record);
        Bytes::from(record)
    }

    /// The reply to a record.
    pub(crate) fn send(&self, record: Bytes) -> Option<Message> {
        let mut call = pin!(self.engine.call(PEER, record));
        let waker = Waker::from(Arc::new(Unpark(thread::current())));
        let mut cx = Context::from_waker(&waker);
        loop {
            if let Poll::Ready(reply) = call.as_mut().poll(&mut cx) {
                return reply.reply();
            }
            assert!(self.waits, "there is nothing to wait for");
            thread::park();
        }
    }

    pub(crate) fn call<R>(&self, procedure: Procedure, args: &impl Encode) -> R
    where
        R: Decode<'static> + Debug,
    {
        let reply = self.send(self.record(procedure, args));
        results(&reply.expect("a call is answered"))
    }

    pub(crate) fn nfs<R>(&self, procedure: P, args: &impl Encode) -> R
    where
        R: Decode<'static> + Debug,
    {
        self.call(Procedure::Nfs3(procedure), args)
    }

    pub(crate) fn getattr(&self, object: FileHandle) -> Fattr3 {
        let reply: nfs3::getattr::Reply = self.nfs(P::Getattr, &nfs3::getattr::Args { object });
        reply.unwrap().obj_attributes
    }

    pub(crate) fn getattr_status(&self, object: FileHandle) -> Result<(), NfsStat3> {
        let reply: nfs3::getattr::Reply = self.nfs(P::Getattr, &nfs3::getattr::Args { object });
        reply.map(drop).map_err(|failure| failure.status)
    }

    pub(crate) fn setattr(
        &self,
        object: FileHandle,
        new_attributes: Sattr3,
    ) -> nfs3::setattr::Reply {
        let args = nfs3::setattr::Args { object, new_attributes, guard: None };
        self.nfs(P::Setattr, &args)
    }

    pub(crate) fn lookup(&self, dir: FileHandle, name: &[u8]) -> nfs3::lookup::Reply {
        let what = DirOp { dir, name };
        self.nfs(P::Lookup, &nfs3::lookup::Args { what })
    }

    pub(crate) fn create(&self, dir: FileHandle, name: &[u8]) -> FileHandle {
        let how = nfs3::create::CreateHow::Guarded(mode(0o644));
        let reply = self.create_how(dir, name, how);
        reply.unwrap().obj.unwrap()
    }

    pub(crate) fn create_how(
        &self,
        dir: FileHandle,
        name: &[u8],
        how: nfs3::create::CreateHow,
    ) -> nfs3::create::Reply {
        let where_ = DirOp { dir, name };
        self.nfs(P::Create, &nfs3::create::Args { where_, how })
    }

    pub(crate) fn mkdir(&self, dir: FileHandle, name: &[u8]) -> FileHandle {
        self.mkdir_reply(dir, name).unwrap().obj.unwrap()
    }

    pub(crate) fn mkdir_reply(&self, dir: FileHandle, name: &[u8]) -> nfs3::mkdir::Reply {
        let where_ = DirOp { dir, name };
        let attributes = mode(0o755);
        self.nfs(P::Mkdir, &nfs3::mkdir::Args { where_, attributes })
    }

    pub(crate) fn symlink(
        &self,
        dir: FileHandle,
        name: &[u8],
        symlink_data: &[u8],
    ) -> nfs3::symlink::Reply {
        let args = nfs3::symlink::Args {
            where_: DirOp { dir, name },
            symlink_attributes: Sattr3::default(),
            symlink_data,
        };
        self.nfs(P::Symlink, &args)
    }

    pub(crate) fn remove(&self, dir: FileHandle, name: &[u8]) -> nfs3::remove::Reply {
        let object = DirOp { dir, name };
        self.nfs(P::Remove, &nfs3::remove::Args { object })
    }

    pub(crate) fn rmdir(&self, dir: FileHandle, name: &[u8]) -> nfs3::rmdir::Reply {
        let object = DirOp { dir, name };
        self.nfs(P::Rmdir, &nfs3::rmdir::Args { object })
    }

    pub(crate) fn rename(
        &self,
        from: (FileHandle, &[u8]),
        to: (FileHandle, &[u8]),
    ) -> nfs3::rename::Reply {
        let spot = |(dir, name)| DirOp { dir, name };
        let (from, to) = (spot(from), spot(to));
        self.nfs(P::Rename, &nfs3::rename::Args { from, to })
    }

    pub(crate) fn link(&self, file: FileHandle, dir: FileHandle, name: &[u8]) -> nfs3::link::Reply {
        let link = DirOp { dir, name };
        self.nfs(P::Link, &nfs3::link::Args { file, link })
    }

    pub(crate) fn write(&self, file: FileHandle, offset: u64, data: &[u8]) -> nfs3::write::Reply {
        self.nfs(P::Write, &write_args(file, offset, data, StableHow::Unstable))
    }

    pub(crate) fn read(
        &self,
        file: FileHandle,
        offset: u64,
        count: u32,
    ) -> nfs3::read::Reply<'static> {
        let args = nfs3::read::Args { file, offset, count };
        self.nfs(P::Read, &args)
    }

    /// Runs a change and checks that what it says about `object` before and after is true.
    #[track_caller]
    pub(crate) fn watched<R>(
        &self,
        object: FileHandle,
        change: impl FnOnce() -> R,
        wcc: impl FnOnce(&R) -> WccData,
    ) -> R {
        let before = self.getattr(object);
        self.pass(1);
        let reply = change();
        let wcc = wcc(&reply);
        assert_eq!(wcc.before, Some(WccAttr::from(&before)));
        assert_eq!(wcc.after, Some(self.getattr(object)));
        reply
    }
}

/// The body of an AUTH_SYS credential.
pub(crate) fn credential((uid, gid): (u32, u32), gids: &[u32]) -> Vec<u8> {
    AuthSys { stamp: 1, machine_name: b"client", uid, gid, gids: Gids::new(gids).unwrap() }
        .to_bytes()
}

/// The results of a successful call. Leaked, so that they may borrow.
#[track_caller]
pub(crate) fn results<R>(reply: &Message) -> R
where
    R: Decode<'static> + Debug,
{
    let (header, rest) = split(reply);
    assert_eq!(header, ReplyHeader::success(XID));
    from_bytes(rest).unwrap()
}

/// The header of a reply, and what follows it.
pub(crate) fn split(reply: &Message) -> (ReplyHeader<'static>, &'static [u8]) {
    let bytes: &'static [u8] = reply.to_vec().leak();
    assert_eq!(bytes.len(), reply.wire_len());
    let mut r = wire::xdr::Reader::new(bytes);
    let header = ReplyHeader::decode(&mut r).unwrap();
    (header, r.rest())
}

pub(crate) fn mode(mode: u32) -> Sattr3 {
    Sattr3::of_mode(mode)
}

pub(crate) fn size(size: u64) -> Sattr3 {
    Sattr3 { size: Some(size), ..Sattr3::default() }
}

pub(crate) fn write_args(
    file: FileHandle,
    offset: u64,
    data: &[u8],
    stable: StableHow,
) -> nfs3::write::Args<'_> {
    nfs3::write::Args { file, offset, count: u32::try_from(data.len()).unwrap(), stable, data }
}

/// The status of a reply, without the rest.
pub(crate) fn status<T, D>(reply: Result<T, nfs3::Failure<D>>) -> Result<(), NfsStat3> {
    reply.map(drop).map_err(|failure| failure.status)
}
