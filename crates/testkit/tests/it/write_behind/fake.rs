//! A server that answers WRITE and COMMIT as it likes, within the protocol.

use std::collections::BTreeMap;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use client::session::{Credential, Session};
use net::call::Rpc;
use net::clock::Clock;
use net::serve::{Host, Limits, Peer, Reply, Service};
use net::shape::{LinkPair, Shaped};
use net::transport::memory;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use testkit::REPLY_LIMIT;
use wire::nfs3::{
    Failure, FileHandle, NfsStat3, NfsTime, Procedure, StableHow, WccData, commit, fsinfo, write,
};
use wire::record::Message;
use wire::rpc::{CallHeader, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader};

use super::Random;

/// How often, in a thousand, the server does something else than what was requested.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Whims {
    pub(super) short: u64,
    pub(super) stable: u64,
    pub(super) jukebox: u64,
    pub(super) restart: u64,
    pub(super) fail: u64,
    /// A call takes up to so long.
    pub(super) busy_max: Nanos,
    /// Keep the bytes.
    pub(super) keeps: bool,
}

#[derive(Clone)]
pub(super) struct Fake {
    clock: Clock,
    state: Arc<Mutex<State>>,
}

struct State {
    whims: Whims,
    random: Random,
    boot: u8,
    cache: BTreeMap<Vec<u8>, Vec<u8>>,
    disk: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Bytes of WRITEs that were refused for good.
    refused_bytes: u64,
}

impl Fake {
    pub(super) fn new(clock: &Clock, whims: Whims, seed: u64) -> Self {
        let state = State {
            whims,
            random: Random(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) | 1),
            boot: 1,
            cache: BTreeMap::new(),
            disk: BTreeMap::new(),
            refused_bytes: 0,
        };
        Self { clock: clock.clone(), state: Arc::new(Mutex::new(state)) }
    }

    pub(super) async fn session(&self, links: LinkPair) -> Session {
        let (ours, theirs) = memory::pair(1);
        let host = Host::new(&self.clock, Limits::default());
        let service = self.clone();
        self.clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
        let shaped = Shaped::new(ours, links, &self.clock).unwrap();
        let rpc = Rpc::start(shaped, &self.clock, REPLY_LIMIT, 1);
        let credential =
            Credential { machine_name: "world".to_owned(), uid: 0, gid: 0, gids: Vec::new() };
        let server = SocketAddr::from((Ipv4Addr::LOCALHOST, 2049));
        Session::open(rpc, server, &credential, handle("root")).await.unwrap()
    }

    pub(super) fn on_disk(&self, file: FileHandle) -> Vec<u8> {
        self.state.lock().disk.get(file.as_bytes()).cloned().unwrap_or_default()
    }

    pub(super) fn refused_bytes(&self) -> u64 {
        self.state.lock().refused_bytes
    }

    /// From now on it serves.
    pub(super) fn behave(&self) {
        self.state.lock().whims = Whims { keeps: true, ..Whims::default() };
    }
}

pub(super) fn handle(name: &str) -> FileHandle {
    FileHandle::new(name.as_bytes()).unwrap()
}

impl Service for Fake {
    fn call(
        &self,
        _: Peer,
        record: Bytes,
        _: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let (clock, state) = (self.clock.clone(), Arc::clone(&self.state));
        async move {
            let (head, busy) = {
                let mut state = state.lock();
                let busy_max = state.whims.busy_max.as_nanos();
                let busy = if busy_max == 0 { 0 } else { state.random.below(busy_max) };
                (state.answer(&record), busy)
            };
            if busy > 0 {
                clock.sleep(Nanos::from_nanos(busy)).await;
            }
            Some(Message { head, payload: Bytes::new() }.into())
        }
    }
}

impl State {
    fn happens(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.random.below(1_000) < per_mille
    }

    fn answer(&mut self, record: &[u8]) -> Vec<u8> {
        let mut reader = Reader::new(record);
        let call = CallHeader::decode(&mut reader).unwrap();
        let mut out = ReplyHeader::success(call.xid).to_bytes();
        match call.procedure {
            code if code == Procedure::Write.code() => {
                let args = write::Args::decode(&mut reader).unwrap();
                self.write(&args).encode(&mut out);
            }
            code if code == Procedure::Commit.code() => {
                let args = commit::Args::decode(&mut reader).unwrap();
                self.commit(args.file).encode(&mut out);
            }
            _ => fsinfo(&mut out),
        }
        out
    }

    fn write(&mut self, args: &write::Args<'_>) -> write::Reply {
        if self.happens(self.whims.restart) {
            self.restart();
        }
        let nothing = WccData { before: None, after: None };
        if self.happens(self.whims.jukebox) {
            return Err(Failure { status: NfsStat3::Jukebox, detail: nothing });
        }
        if self.happens(self.whims.fail) {
            self.refused_bytes += args.data.len() as u64;
            return Err(Failure { status: NfsStat3::NoSpc, detail: nothing });
        }
        let mut count = args.count;
        if self.happens(self.whims.short) {
            count = 1 + u32::try_from(self.random.below(u64::from(count))).unwrap();
        }
        let is_stable = args.stable != StableHow::Unstable || self.happens(self.whims.stable);
        if self.whims.keeps {
            let data = &args.data[..count as usize];
            put(&mut self.cache, args.file, args.offset, data);
            if is_stable {
                put(&mut self.disk, args.file, args.offset, data);
            }
        }
        let committed = if is_stable { StableHow::FileSync } else { StableHow::Unstable };
        Ok(write::ReplyOk { file_wcc: nothing, count, committed, verf: [self.boot; 8] })
    }

    fn commit(&mut self, file: FileHandle) -> commit::Reply {
        let nothing = WccData { before: None, after: None };
        if self.happens(self.whims.restart) {
            self.restart();
        }
        if self.happens(self.whims.jukebox) {
            return Err(Failure { status: NfsStat3::Jukebox, detail: nothing });
        }
        if let Some(data) = self.cache.get(file.as_bytes()) {
            self.disk.insert(file.as_bytes().to_vec(), data.clone());
        }
        Ok(commit::ReplyOk { file_wcc: nothing, verf: [self.boot; 8] })
    }

    fn restart(&mut self) {
        self.boot = self.boot.wrapping_add(1);
        self.cache.clone_from(&self.disk);
    }
}

fn put(files: &mut BTreeMap<Vec<u8>, Vec<u8>>, file: FileHandle, offset: u64, data: &[u8]) {
    let bytes = files.entry(file.as_bytes().to_vec()).or_default();
    let offset = usize::try_from(offset).unwrap();
    bytes.resize(bytes.len().max(offset + data.len()), 0);
    bytes[offset..offset + data.len()].copy_from_slice(data);
}

fn fsinfo(out: &mut Vec<u8>) {
    let reply: fsinfo::Reply = Ok(fsinfo::ReplyOk {
        obj_attributes: None,
        rtmax: 1 << 20,
        rtpref: 1 << 20,
        rtmult: 1,
        wtmax: 1 << 20,
        wtpref: 1 << 20,
        wtmult: 1,
        dtpref: 1 << 16,
        maxfilesize: i64::MAX as u64,
        time_delta: NfsTime { seconds: 0, nseconds: 1 },
        properties: 0,
    });
    reply.encode(out);
}
