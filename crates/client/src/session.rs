//! A connection to an NFS server, a credential, and the root of what was mounted.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use net::call::{Answer, Rpc, Target};
use net::clock::Clock;
use perf::units::{Instant, Nanos};
use tokio::sync::oneshot;
use wire::nfs3::{self, FileHandle, NfsStat3, Procedure};
use wire::rpc::{AuthSys, GIDS_MAX, Gids, OpaqueAuth};
use wire::xdr::Encode;

use crate::error::Error;
use crate::url::Version;
use crate::v2::V2;

/// Who calls.
#[derive(Clone, Debug, Eq, Hash, PartialEq)]
pub struct Credential {
    pub machine_name: String,
    pub uid: u32,
    pub gid: u32,
    /// Further groups; AUTH_SYS carries [`wire::rpc::GIDS_MAX`] of them, the first that are not the
    /// caller's own.
    pub gids: Vec<u32>,
}

impl Credential {
    /// The body of AUTH_SYS. Machine names are cut to what fits.
    pub(crate) fn encoded(&self) -> Vec<u8> {
        let name = self.machine_name.as_bytes();
        let mut body = Vec::new();
        // Its own group is sent besides: with it there is room for one more.
        let is_full = self.gids.len() > GIDS_MAX;
        let further = self.gids.iter().filter(|gid| !is_full || **gid != self.gid);
        let gids: Vec<u32> = further.copied().take(GIDS_MAX).collect();
        AuthSys {
            stamp: 0,
            machine_name: &name[..name.len().min(wire::rpc::MACHINE_NAME_LEN_MAX)],
            uid: self.uid,
            gid: self.gid,
            gids: Gids::new(&gids).unwrap_or_default(),
        }
        .encode(&mut body);
        body
    }
}

/// What the server answered it can do (FSINFO).
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Sizes {
    /// Most bytes of a READ.
    pub read_bytes_max: u32,
    /// Most bytes of a WRITE.
    pub write_bytes_max: u32,
}

/// See the module's head; clones share the connection.
#[derive(Clone, Debug)]
pub struct Session {
    rpc: Rpc,
    server: SocketAddr,
    credential: Arc<[u8]>,
    root: FileHandle,
    sizes: Sizes,
    version: Version,
    patience: Option<Patience>,
    complaints: Complaints,
}

/// How a server is treated that asks for a retry later.
#[derive(Clone, Debug)]
struct Patience {
    clock: Clock,
    /// Longer than that it is not waited for.
    limit: Option<Nanos>,
}

/// Takes what servers do that they should not, where whoever called hears only that it failed.
#[derive(Clone, Default)]
pub struct Complaints(Option<Arc<Hear>>);

type Hear = dyn Fn(&Error) + Send + Sync;

impl Complaints {
    pub fn new(hear: impl Fn(&Error) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(hear)))
    }

    fn report(&self, error: &Error) {
        if let Some(hear) = &self.0 {
            hear(error);
        }
    }
}

impl std::fmt::Debug for Complaints {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Complaints").field(&self.0.is_some()).finish()
    }
}

/// Most bytes of a READ or WRITE: what a record takes beside its head.
const TRANSFER_BYTES_MAX: u32 = 1 << 20;

/// Fewest bytes of a READ or WRITE that a server may offer at most: as for `rsize` and `wsize`.
/// With fewer, down to none at all, no file would ever be written.
const TRANSFER_BYTES_MIN: u32 = 512;

/// When to call again after JUKEBOX: as Linux does.
const LATER: Nanos = Nanos::from_secs(5);

/// Whether the results say NFS3ERR_JUKEBOX; they begin with the status, but for NULL's.
fn is_jukebox(procedure: Procedure, results: &[u8]) -> bool {
    let status = results.first_chunk().map(|bytes| u32::from_be_bytes(*bytes));
    procedure != Procedure::Null && status == Some(NfsStat3::Jukebox.code())
}

impl Session {
    pub(crate) fn new(
        rpc: Rpc,
        server: SocketAddr,
        credential: &Credential,
        version: Version,
    ) -> Self {
        let nothing = FileHandle::new(&[]).expect("no bytes are not too many");
        Self {
            rpc,
            server,
            credential: credential.encoded().into(),
            root: nothing,
            sizes: Sizes { read_bytes_max: 8192, write_bytes_max: 8192 },
            version,
            patience: None,
            complaints: Complaints::default(),
        }
    }

    /// Over a connection that was made elsewhere (a world's), with the root known. Asks FSINFO.
    ///
    /// # Errors
    /// FSINFO failed.
    pub async fn open(
        rpc: Rpc,
        server: SocketAddr,
        credential: &Credential,
        root: FileHandle,
    ) -> Result<Self, Error> {
        Self::open_version(rpc, server, credential, root, Version::Three).await
    }

    /// As [`Session::open`], in this version of the protocol.
    ///
    /// # Errors
    /// FSINFO failed; in version 2 GETATTR. [`Error::Nonsense`] if the server offers transfers of
    /// nearly nothing.
    pub async fn open_version(
        rpc: Rpc,
        server: SocketAddr,
        credential: &Credential,
        root: FileHandle,
        version: Version,
    ) -> Result<Self, Error> {
        let mut session = Self { root, ..Self::new(rpc, server, credential, version) };
        let info = session.fsinfo(root).await?;
        for (most, what) in [
            (info.rtmax, "it offers READs of fewer than 512 bytes (rtmax)"),
            (info.wtmax, "it offers WRITEs of fewer than 512 bytes (wtmax)"),
        ] {
            if most < TRANSFER_BYTES_MIN {
                return Err(session.nonsense(Procedure::Fsinfo.name(), what));
            }
        }
        // Some servers offer more than a record of ours takes.
        let ours = |theirs: u32| theirs.min(TRANSFER_BYTES_MAX);
        session.sizes =
            Sizes { read_bytes_max: ours(info.rtmax), write_bytes_max: ours(info.wtmax) };
        Ok(session)
    }

    /// The same server, credential and root over another connection.
    #[must_use]
    pub fn over(&self, rpc: Rpc) -> Self {
        Self { rpc, ..self.clone() }
    }

    pub fn root(&self) -> FileHandle {
        self.root
    }

    /// The same, waiting when the server asks for a retry later (NFS3ERR_JUKEBOX) instead of
    /// failing with it: up to `limit`, or as long as it takes.
    #[must_use]
    pub fn patient(&self, clock: &Clock, limit: Option<Nanos>) -> Self {
        Self { patience: Some(Patience { clock: clock.clone(), limit }), ..self.clone() }
    }

    /// The same; what the server should not do is reported there, too.
    #[must_use]
    pub fn complaining(self, complaints: Complaints) -> Self {
        Self { complaints, ..self }
    }

    /// A reply that makes no sense.
    pub fn nonsense(&self, procedure: &'static str, what: &'static str) -> Error {
        let error = Error::Nonsense { procedure, server: self.server, what };
        self.complaints.report(&error);
        error
    }

    /// The server has answered JUKEBOX again.
    pub(crate) fn is_put_off(&self, procedure: &'static str) {
        let (server, status) = (self.server, NfsStat3::Jukebox);
        self.complaints.report(&Error::Status {
            procedure,
            server,
            status,
            detail: Box::default(),
        });
    }

    /// The same, failing with NFS3ERR_JUKEBOX.
    #[must_use]
    pub fn impatient(self) -> Self {
        Self { patience: None, ..self }
    }

    /// The same connection and root for another caller.
    #[must_use]
    pub fn acting_as(&self, credential: &Credential) -> Self {
        Self { credential: credential.encoded().into(), ..self.clone() }
    }

    /// Do both act as the same caller at the same server?
    pub(crate) fn is_same_caller(&self, other: &Self) -> bool {
        self.credential == other.credential && self.server == other.server
    }

    /// This session with another directory as its root.
    #[must_use]
    pub fn with_root(&self, root: FileHandle) -> Self {
        Self { root, ..self.clone() }
    }

    /// This session with transfers of at most so many bytes (`rsize`, `wsize`).
    #[must_use]
    pub fn limited(mut self, read_bytes_max: u32, write_bytes_max: u32) -> Self {
        let Sizes { read_bytes_max: read, write_bytes_max: write } = self.sizes;
        self.sizes = Sizes {
            read_bytes_max: read.min(read_bytes_max.max(1)),
            write_bytes_max: write.min(write_bytes_max.max(1)),
        };
        self
    }

    /// The reply to FSINFO.
    pub fn sizes(&self) -> Sizes {
        self.sizes
    }

    /// The same, or less where large datagrams are being lost: to be requested each call.
    pub fn sizes_now(&self) -> Sizes {
        Sizes {
            read_bytes_max: self.sizes.read_bytes_max.min(self.rpc.read_bytes_max()),
            write_bytes_max: self.sizes.write_bytes_max.min(self.rpc.write_bytes_max()),
        }
    }

    pub fn version(&self) -> Version {
        self.version
    }

    /// The body of AUTH_SYS.
    pub(crate) fn credential(&self) -> &[u8] {
        &self.credential
    }

    /// What to ask instead, when the server speaks version 2.
    pub(crate) fn v2(&self) -> Option<V2<'_>> {
        (self.version == Version::Two).then_some(V2(self))
    }

    pub fn server(&self) -> SocketAddr {
        self.server
    }

    pub fn rpc(&self) -> &Rpc {
        &self.rpc
    }

    /// Calls an NFS v3 procedure.
    pub(crate) async fn call(
        &self,
        procedure: Procedure,
        encode: impl Fn(&mut Vec<u8>),
        payload: Bytes,
    ) -> Result<Answer, Error> {
        self.call_sent(procedure, encode, payload, None).await
    }

    /// As [`Session::call`]; `handed` resolves when the call was passed to the socket. A patient
    /// session calls again, as a new call, while the server asks for it.
    pub(crate) async fn call_sent(
        &self,
        procedure: Procedure,
        encode: impl Fn(&mut Vec<u8>),
        payload: Bytes,
        mut handed: Option<oneshot::Sender<Instant>>,
    ) -> Result<Answer, Error> {
        let target =
            Target { program: nfs3::PROGRAM, version: nfs3::VERSION, procedure: procedure.code() };
        let mut waited = Nanos::ZERO;
        loop {
            let (payload, handed) = (payload.clone(), handed.take());
            let answer = self.call_at(target, procedure.name(), &encode, payload, handed).await?;
            match &self.patience {
                Some(Patience { clock, limit })
                    if is_jukebox(procedure, &answer.results())
                        && limit.is_none_or(|limit| waited < limit) =>
                {
                    // Once is how a server waits for a tape.
                    if waited > Nanos::ZERO {
                        self.is_put_off(procedure.name());
                    }
                    let span = limit.map_or(LATER, |limit| LATER.min(limit - waited));
                    clock.sleep(span).await;
                    waited += span;
                }
                _ => return Ok(answer),
            }
        }
    }

    /// Calls any procedure, as this session's caller.
    pub(crate) async fn call_at(
        &self,
        target: Target,
        procedure: &'static str,
        encode: impl FnOnce(&mut Vec<u8>),
        payload: Bytes,
        handed: Option<oneshot::Sender<Instant>>,
    ) -> Result<Answer, Error> {
        let credential = OpaqueAuth::sys(&self.credential);
        let answer = self.rpc.call_sent(target, credential, encode, payload, handed).await;
        answer.map_err(|cause| Error::Call { procedure, server: self.server, cause })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_more_groups_than_fit_the_callers_own_is_the_first_that_is_left_out() {
        let further = |gid, gids: &[u32]| {
            let gids = gids.to_vec();
            let who = Credential { machine_name: "a".to_owned(), uid: 7, gid, gids };
            let body = who.encoded();
            // After stamp, name, uid and gid.
            let words = body[20..].chunks_exact(4);
            words.map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect::<Vec<_>>()
        };
        let all: Vec<u32> = (100..118).collect();
        let sent = |gids: &[u32]| [&[u32::try_from(gids.len()).unwrap()], gids].concat();
        assert_eq!(further(100, &all[..17]), sent(&all[1..17]));
        assert_eq!(further(5, &all[..17]), sent(&all[..16]));
        assert_eq!(further(100, &all[..16]), sent(&all[..16]));
    }
}
