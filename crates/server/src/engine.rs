//! One call in, one reply out.
//!
//! The engine decodes a call where it lies, finds its program and procedure, lets it wait for its
//! turn, and encodes the reply. It knows no sockets and no clock: the caller feeds it records and
//! sends what comes back, in whatever order calls finish.
//!
//! Turns: `threads` calls are in service at once, like nfsd's threads; the rest wait in order.
//! In [`CommitMode::Stall`] a call that commits data also has the server to itself, which is how
//! the server of the 2002 thesis lost its concurrency (Boumenot 2002, chapters 10 to 12).

use std::net::SocketAddr;

use bytes::Bytes;
use tokio::sync::{RwLock, RwLockReadGuard, RwLockWriteGuard, Semaphore, SemaphorePermit};
use wire::nfs3::{self, Procedure, StableHow};
use wire::record::Message;
use wire::rpc::{
    AUTH_NONE, AUTH_SYS, AcceptStatus, AuthStat, Call, CallHeader, OpaqueAuth, ReplyHeader,
};
use wire::xdr::{Decode, DecodeError, Encode, Reader};
use wire::{mount, portmap};

use crate::export::{Export, Squash};
use crate::mountd::Mounts;
use crate::proc3::{self, Context};
use crate::store::Store;
use crate::types::Caller;

/// Whether other calls are served while data is committed.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum CommitMode {
    #[default]
    Concurrent,
    Stall,
}

/// How the engine serves.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct EngineConfig {
    pub export: Export,
    pub commit_mode: CommitMode,
    /// Calls in service at once.
    pub threads: usize,
    /// Most bytes of a READ or WRITE.
    pub transfer_bytes_max: u32,
    /// The port that the portmapper answers with; 0 while it is not known.
    pub port: u16,
}

/// See the module's head.
#[derive(Debug)]
pub struct Engine<S> {
    store: S,
    config: EngineConfig,
    turns: Semaphore,
    /// Held shared by every call, alone by one that commits in stall mode.
    stall: RwLock<()>,
    mounts: Mounts,
}

/// What a call holds while it is in service.
struct Turn<'e> {
    _place: Option<SemaphorePermit<'e>>,
    _alone: Option<RwLockWriteGuard<'e, ()>>,
    _shared: Option<RwLockReadGuard<'e, ()>>,
}

/// Room for the heads of nearly all replies.
const HEAD_BYTES: usize = 256;

impl<S: Store> Engine<S> {
    pub fn new(store: S, config: EngineConfig) -> Self {
        let threads = config.threads.clamp(1, Semaphore::MAX_PERMITS);
        Self {
            store,
            config,
            turns: Semaphore::new(threads),
            stall: RwLock::new(()),
            mounts: Mounts::default(),
        }
    }

    pub fn store(&self) -> &S {
        &self.store
    }

    /// The handle that MOUNT gives for the export's root.
    pub fn root(&self) -> Option<nfs3::FileHandle> {
        self.config.export.wrap(&self.store.root())
    }

    /// Answers the call in `record`. `None` where no answer is due: what is no call gets none.
    pub async fn call(&self, peer: SocketAddr, record: Bytes) -> Option<Message> {
        let mut reader = Reader::new(&record);
        let header = match Call::decode(&mut reader).ok()? {
            Call::Version2(header) => header,
            Call::OtherVersion { xid, .. } => return Some(reply(&ReplyHeader::rpc_mismatch(xid))),
        };
        let xid = header.xid;
        let caller = match self.caller(&header.credential) {
            Ok(caller) => caller,
            Err(status) => return Some(reply(&ReplyHeader::auth_error(xid, status))),
        };
        let outcome = self.dispatch(peer, &header, caller, reader, record.clone()).await;
        Some(outcome.unwrap_or_else(|status| reply(&ReplyHeader::accepted(xid, status))))
    }

    /// Who calls, after squashing.
    fn caller(&self, credential: &OpaqueAuth<'_>) -> Result<Caller, AuthStat> {
        let auth = match (credential.flavor, credential.auth_sys()) {
            (AUTH_NONE, _) => None,
            (AUTH_SYS, Some(Ok(auth))) => Some(auth),
            _ => return Err(AuthStat::BadCred),
        };
        Ok(match (&self.config.export.squash, auth) {
            (Squash::All(user), _) | (Squash::None(user), None) => user.clone(),
            (Squash::None(_), Some(auth)) => {
                Caller { uid: auth.uid, gid: auth.gid, gids: auth.gids.as_slice().to_vec() }
            }
        })
    }

    async fn dispatch(
        &self,
        peer: SocketAddr,
        header: &CallHeader<'_>,
        caller: Caller,
        reader: Reader<'_>,
        record: Bytes,
    ) -> Result<Message, AcceptStatus> {
        let mut head = Vec::with_capacity(HEAD_BYTES);
        ReplyHeader::success(header.xid).encode(&mut head);
        let only = |version: u32| match header.version == version {
            true => Ok(()),
            false => Err(AcceptStatus::ProgMismatch { low: version, high: version }),
        };
        match header.program {
            nfs3::PROGRAM => {
                only(nfs3::VERSION)?;
                let procedure =
                    Procedure::from_code(header.procedure).ok_or(AcceptStatus::ProcUnavail)?;
                let _turn = self.turn(procedure, reader.clone()).await;
                let context = Context {
                    store: &self.store,
                    export: &self.config.export,
                    caller,
                    transfer_bytes_max: self.config.transfer_bytes_max,
                    record,
                };
                proc3::call(&context, procedure, reader, head).await.map_err(garbage)
            }
            mount::PROGRAM => {
                only(mount::VERSION)?;
                let (store, export) = (&self.store, &self.config.export);
                self.mounts.call(store, export, peer, &caller, header.procedure, reader, head).await
            }
            portmap::PROGRAM => {
                only(portmap::VERSION)?;
                crate::portmap::call(self.config.port, header.procedure, reader, head)
            }
            _ => Err(AcceptStatus::ProgUnavail),
        }
    }

    async fn turn(&self, procedure: Procedure, arguments: Reader<'_>) -> Turn<'_> {
        let stalls =
            self.config.commit_mode == CommitMode::Stall && commits(procedure, arguments);
        // The semaphore is never closed.
        let place = match self.turns.try_acquire() {
            Ok(place) => Some(place),
            Err(_) => self.turns.acquire().await.ok(),
        };
        match (self.config.commit_mode, stalls) {
            (CommitMode::Concurrent, _) => Turn { _place: place, _alone: None, _shared: None },
            (CommitMode::Stall, true) => {
                Turn { _place: place, _alone: Some(self.stall.write().await), _shared: None }
            }
            (CommitMode::Stall, false) => {
                Turn { _place: place, _alone: None, _shared: Some(self.stall.read().await) }
            }
        }
    }
}

/// Whether a call commits data before its reply.
fn commits(procedure: Procedure, arguments: Reader<'_>) -> bool {
    match procedure {
        Procedure::Commit => true,
        Procedure::Write => proc3::arguments::<nfs3::write::Args<'_>>(arguments)
            .is_ok_and(|args| args.stable != StableHow::Unstable),
        _ => false,
    }
}

pub(crate) fn garbage(_: DecodeError) -> AcceptStatus {
    AcceptStatus::GarbageArgs
}

fn reply(header: &ReplyHeader<'_>) -> Message {
    Message::new(header.to_bytes())
}
