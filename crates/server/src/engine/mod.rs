//! One RPC call in, one reply out.
//!
//! ```text
//!   record --Call--> credential --> program, version, procedure --> Service --> procedure
//!      |                |                     |                                    |
//!      '- dropped       '- AUTH_ERROR         '- PROG_/PROC_ errors                '- GARBAGE_ARGS
//! ```
//!
//! The head of a reply is one allocation, in which everything is encoded as it is found; a READ's
//! or READDIR's payload stays where it is. Arguments are decoded in place from the record, and the
//! payload of a WRITE is a slice of it.

mod programs;
mod strangers;

use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use arc_swap::ArcSwap;
use bytes::Bytes;
use futures_util::FutureExt;
use futures_util::future::join_all;
use perf::units::{Instant, Nanos};
use wire::Procedure;
use wire::record::Message;
use wire::rpc::{AcceptStatus, Answer, AuthStat, Call, CallHeader, ReplyHeader};
use wire::xdr::{self, Decode, DecodeError, DecodeErrorKind, Encode, Reader};
use wire::{nfs2, nfs3};

use crate::auth::Credential;
use crate::export::Rule;
use crate::exports::{Exports, Place};
use crate::handle;
use crate::handle2;
use crate::metrics::{self, Metrics, Page, Watch};
use crate::mountd::{Mount, Mounts};
use crate::peer::{Peer, Transport};
use crate::portmap::Endpoint;
use crate::proc2;
use crate::proc3;
use crate::programs::Versions;
use crate::replies::{Claimed, Identity, Replies, Retention, retention};
use crate::service::{CommitMode, Service};
use crate::service_cost::ServiceCost;
use crate::store::Store;

/// Whose address is not proven gets at most so many times what came in its name, or it could be
/// flooded by us at little cost to somebody else (QUIC has the same bound: RFC 9000 section 8.1).
const UNPROVEN_TIMES_MAX: usize = 3;

/// How an engine serves.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    pub commit_mode: CommitMode,
    /// Calls in service at once; 0 is taken as 1.
    pub threads: usize,
    /// Most bytes of data in one READ, WRITE or READDIR (rtmax, wtmax).
    pub transfer_bytes_max: u32,
    /// Where the calls come in, for the portmapper to tell.
    pub endpoints: Vec<Endpoint>,
    /// Where those to the portmapper itself come in.
    pub portmap_endpoints: Vec<Endpoint>,
    /// What is served beside the portmapper.
    pub versions: Versions,
}

impl Default for EngineConfig {
    /// 64 calls at once, 1 MiB transfers.
    fn default() -> Self {
        Self {
            commit_mode: CommitMode::default(),
            threads: 64,
            transfer_bytes_max: 1 << 20,
            endpoints: Vec::new(),
            portmap_endpoints: Vec::new(),
            versions: Versions::default(),
        }
    }
}

/// Serves exports to any number of peers. It keeps no state of a call beyond the future that
/// [`Engine::call`] returns, which may be dropped at any time.
#[derive(Debug)]
pub struct Engine<S> {
    exports: ArcSwap<Exports<S>>,
    config: EngineConfig,
    service: Service,
    mounts: Mounts,
    replies: Option<Replies>,
    cost: Option<Arc<dyn ServiceCost>>,
    cookies: proc2::Cookies,
    metrics: Option<Metrics>,
}

/// A call whose header is understood.
struct Accepted<'r> {
    peer: &'r Peer,
    header: &'r CallHeader<'r>,
    credential: Credential,
    args: Reader<'r>,
    /// Where its sender may not be who it says: most bytes of a reply.
    reply_bytes_max: Option<usize>,
    watch: Option<&'r Watch<'r>>,
}

impl Accepted<'_> {
    /// Refuses nobody where everyone has to say who he is.
    fn check_strength<S>(&self, place: &Place<'_, S>) -> Result<(), Refusal> {
        match self.credential.is_weak_for(place.rule) {
            true => Err(Refusal::Auth(AuthStat::TooWeak)),
            false => Ok(()),
        }
    }
}

/// Why results do not follow.
enum Refusal {
    Accepted(AcceptStatus),
    Auth(AuthStat),
}

impl Refusal {
    fn message(self, xid: u32) -> Message {
        message(match self {
            Self::Accepted(status) => ReplyHeader::accepted(xid, status),
            Self::Auth(why) => ReplyHeader::auth_error(xid, why),
        })
    }
}

impl From<DecodeError> for Refusal {
    fn from(_: DecodeError) -> Self {
        Self::Accepted(AcceptStatus::GarbageArgs)
    }
}

impl<S: Store> Engine<S> {
    pub fn new(exports: Exports<S>, config: EngineConfig) -> Self {
        let service = Service::new(config.threads, config.commit_mode);
        Self {
            exports: ArcSwap::from_pointee(exports),
            config,
            service,
            mounts: Mounts::default(),
            replies: None,
            cost: None,
            metrics: None,
            cookies: proc2::Cookies::default(),
        }
    }

    /// An engine that knows retransmissions.
    #[must_use]
    pub fn remembering(self, replies: Replies) -> Self {
        for exported in self.exports.load().iter() {
            replies.restore(exported.store.recorded());
        }
        Self { replies: Some(replies), ..self }
    }

    /// An engine whose work costs something; see [`ServiceCost`].
    #[must_use]
    pub fn with_cost(self, cost: Arc<dyn ServiceCost>) -> Self {
        Self { cost: Some(cost), ..self }
    }

    /// An engine that counts what it does.
    #[must_use]
    pub fn measured(self, metrics: Metrics) -> Self {
        Self { metrics: Some(metrics), ..self }
    }

    /// Whether it is of use to know when a record arrived.
    pub fn is_measured(&self) -> bool {
        self.metrics.is_some()
    }

    /// The last byte of a reply with this tag was given to the system; see [`Metrics::sent`].
    pub fn sent(&self, tag: u32, since_reply: Nanos) {
        if let Some(metrics) = &self.metrics {
            metrics.sent(tag, since_reply);
        }
    }

    /// What is exported now.
    pub fn exports(&self) -> Arc<Exports<S>> {
        self.exports.load_full()
    }

    /// Exports something else from the next call on; calls in service end as they began.
    pub fn export(&self, exports: Exports<S>) {
        self.exports.store(Arc::new(exports));
    }

    /// The first export's store.
    pub fn store(&self) -> Arc<S> {
        Arc::clone(&self.exports.load().first().store)
    }

    /// The first export's root, as MNT gives it.
    pub fn root(&self) -> nfs3::FileHandle {
        self.exports.load().first().root()
    }

    pub fn config(&self) -> &EngineConfig {
        &self.config
    }

    /// Who has mounted what, as far as it is remembered.
    pub fn mounts(&self) -> Vec<Mount> {
        self.mounts.to_vec()
    }

    /// Syncs of all stores that failed.
    pub fn sync_failures(&self) -> u64 {
        self.exports.load().iter().map(|exported| exported.store.sync_failures()).sum()
    }

    /// Whether a restart would forget the replies that are given now, since the state directory
    /// cannot be written.
    pub fn forgets_replies(&self) -> bool {
        self.replies.as_ref().is_some_and(Replies::is_failing)
    }

    /// To be called about once a second; see [`Store::tend`].
    pub async fn tend(&self, now: Instant) {
        let exports = self.exports();
        join_all(exports.iter().map(|exported| exported.store.tend(now))).await;
    }

    /// Writes what the engine, its reply cache and its stores have to tell; for them, each export
    /// for itself.
    pub fn write_metrics(&self, page: &mut Page) {
        if let Some(metrics) = &self.metrics {
            metrics.write(page);
        }
        let mut readings = self.replies.as_ref().map_or_else(Vec::new, Replies::readings);
        for exported in self.exports.load().iter() {
            let unstored = metrics::Reading::new(
                "nfskit_store_unwritten_handles",
                "Handles that a restart would forget, since the state directory cannot be written.",
                exported.store.unstored_handles() as f64,
            );
            let of_store = exported.store.readings().into_iter().chain([unstored]);
            readings.extend(of_store.map(|reading| reading.of("export", &exported.export.name)));
        }
        page.readings(&readings);
    }

    /// Writes what was counted of each file; `false` where they are not distinguished.
    pub fn write_files(&self, page: &mut Page) -> bool {
        self.metrics.as_ref().is_some_and(|metrics| metrics.write_files(page))
    }

    /// Serves one call.
    ///
    /// What changes names or attributes should run to its end although its client is gone: it may
    /// have done its work, and the client will ask again.
    pub fn call(&self, peer: Peer, record: Bytes) -> impl Future<Output = Answer> + Send {
        self.call_arrived(peer, record, None).map(|(answer, _)| answer)
    }

    // Futures are pinned where they are made, here and in what they await: to move one costs as
    // much as to answer a small call.

    /// [`Self::call`] for one who knows when the record was read, by the clock of the metrics, and
    /// who tells [`Self::sent`] the tag that comes with the answer. It is 0 without metrics.
    pub async fn call_arrived(
        &self,
        peer: Peer,
        record: Bytes,
        arrived: Option<Instant>,
    ) -> (Answer, u32) {
        let watch = self.metrics.as_ref().map(|metrics| metrics.begin(arrived));
        let answer = match read_header(&record) {
            Err(refused) => refused,
            Ok((header, args)) => {
                let xid = header.xid;
                match pin!(self.accept(&peer, &header, args, &record, watch.as_ref())).await {
                    Ok(answer) => answer,
                    Err(refusal) => Answer::Reply(refusal.message(xid)),
                }
            }
        };
        let tag = watch.map_or(0, |watch| watch.end(peer, &record, &answer));
        (answer, tag)
    }

    /// Whether any export names this host; else [`Self::refuse`] answers it.
    pub fn is_for(&self, host: IpAddr) -> bool {
        self.exports.load().name(host)
    }

    /// Most bytes of data in the reply to a call: what READ and the listings ask for, as far as
    /// they get it. Whoever sends the replies bounds by it what waits to be sent.
    pub fn reply_bytes_max(&self, record: &[u8]) -> usize {
        let mut args = Reader::new(record);
        let Ok(Call::Version2(header)) = Call::decode(&mut args) else { return 0 };
        let args = args.rest();
        let requested = match header.procedure() {
            Procedure::Nfs2(nfs2::Procedure::Read | nfs2::Procedure::Readdir) => nfs2::MAXDATA,
            Procedure::Nfs3(nfs3::Procedure::Read) => {
                xdr::from_bytes(args).map_or(0, |args: nfs3::read::Args| args.count)
            }
            Procedure::Nfs3(nfs3::Procedure::Readdir) => {
                xdr::from_bytes(args).map_or(0, |args: nfs3::readdir::Args| args.count)
            }
            Procedure::Nfs3(nfs3::Procedure::Readdirplus) => {
                xdr::from_bytes(args).map_or(0, |args: nfs3::readdirplus::Args| args.maxcount)
            }
            _ => 0,
        };
        requested.min(self.config.transfer_bytes_max) as usize
    }

    async fn accept(
        &self,
        peer: &Peer,
        header: &CallHeader<'_>,
        args: Reader<'_>,
        record: &Bytes,
        watch: Option<&Watch<'_>>,
    ) -> Result<Answer, Refusal> {
        let credential = Credential::of(&header.credential).map_err(Refusal::Auth)?;
        let versions = self.config.versions;
        let procedure = known_procedure(header, versions).map_err(Refusal::Accepted)?;
        let reply_bytes_max =
            unproven_bytes_max(peer, record).filter(|_| !self.names(procedure, peer, &args));
        let call = Accepted { peer, header, credential, args, reply_bytes_max, watch };
        let commits = || match procedure {
            Procedure::Nfs2(procedure) => proc2::commits(procedure),
            procedure => proc3::commits(procedure, &call.args),
        };
        let host = peer.address.ip();
        let _pass = metrics::queue(watch, pin!(self.service.enter(host, commits))).await;
        let claim = match self.claim(procedure, &call) {
            None => None,
            Some(Claimed::Execute(claim)) => Some(claim),
            Some(Claimed::Drop) => return Ok(Answer::Nothing),
            Some(Claimed::Replay(reply)) => return Ok(Answer::Reply(reply)),
        };
        if let Some(work) = self.cost.as_ref().and_then(|all| all.call(procedure, record.len())) {
            work.await;
        }
        let served = pin!(self.serve(procedure, &call, record, claim.as_ref())).await;
        if let (Some(all), Ok(reply)) = (&self.cost, &served)
            && let Some(work) = all.reply(procedure, reply.wire_len())
        {
            work.await;
        }
        match (claim, &served) {
            (Some(claim), Ok(reply)) => claim.answered(reply),
            // It could not be read, and was not executed.
            (Some(claim), Err(_)) => claim.refused(),
            (None, _) => return served.map(Answer::Reply),
        }
        if let Some(watch) = watch {
            watch.lap();
        }
        served.map(Answer::Reply)
    }

    /// None when the call can as well be executed again.
    fn claim(&self, procedure: Procedure, call: &Accepted<'_>) -> Option<Claimed<'_>> {
        let replies = self.replies.as_ref()?;
        let retention = retention(procedure);
        // Who is refused anyway must not take the place of others.
        if retention == Retention::None || !self.is_admitted(procedure, call) {
            return None;
        }
        let identity = Identity {
            client: call.peer.address.ip(),
            xid: call.header.xid,
            program: call.header.program,
            version: call.header.version,
            procedure: call.header.procedure,
            uid: call.credential.stated_uid(),
            args: call.args.rest(),
        };
        Some(replies.claim(&identity, retention))
    }

    /// Whether a call's first handle is of an export that its client may use.
    fn is_admitted(&self, procedure: Procedure, call: &Accepted<'_>) -> bool {
        let is_strong = |rule: &Rule| !call.credential.is_weak_for(rule);
        self.is_under(procedure, call.peer, &call.args, is_strong)
    }

    /// Whether a call's first handle is of an export that names its client. Nobody else is ever
    /// given one, and they cannot be guessed: what gets an answer from the store comes from a
    /// client.
    ///
    /// Nor does anybody have the loopback's addresses but this host: what comes from outside with
    /// one the system drops. But a program here may carry calls of others (a relay), whose handles
    /// alone show that they know somebody who was let in.
    fn names(&self, procedure: Procedure, peer: &Peer, args: &Reader<'_>) -> bool {
        let is_here = peer.address.ip().to_canonical().is_loopback();
        self.is_under(procedure, peer, args, |rule| is_here || rule.names_clients())
    }

    fn is_under(
        &self,
        procedure: Procedure,
        peer: &Peer,
        args: &Reader<'_>,
        is_so: impl FnOnce(&Rule) -> bool,
    ) -> bool {
        let mut args = Reader::new(args.rest());
        let export = match procedure {
            Procedure::Nfs2(_) => nfs2::FHandle::decode(&mut args)
                .ok()
                .and_then(|first| handle2::unwrap2(&first).ok()),
            Procedure::Nfs3(_) => nfs3::FileHandle::decode(&mut args)
                .ok()
                .and_then(|first| handle::unwrap(&first).ok()),
            _ => None,
        };
        let exports = self.exports.load();
        export
            .and_then(|(export, _)| exports.place(export, peer).ok())
            .is_some_and(|place| is_so(place.rule))
    }
}

/// How many bytes a sender may get who may not be who it says.
fn unproven_bytes_max(peer: &Peer, record: &Bytes) -> Option<usize> {
    let is_unproven = peer.transport == Transport::Datagram && !peer.is_proven;
    is_unproven.then(|| UNPROVEN_TIMES_MAX * record.len())
}

fn message(header: ReplyHeader<'_>) -> Message {
    Message::new(header.to_bytes())
}

/// The header of a call and what follows it, or the answer to what has none.
fn read_header(record: &[u8]) -> Result<(CallHeader<'_>, Reader<'_>), Answer> {
    let mut args = Reader::new(record);
    match Call::decode(&mut args) {
        Ok(Call::Version2(header)) => Ok((header, args)),
        Ok(Call::OtherVersion { xid, .. }) => {
            Err(Answer::Reply(message(ReplyHeader::rpc_mismatch(xid))))
        }
        Err(error) => {
            let refused = refused_header(record, error).map(message);
            Err(refused.map_or(Answer::NotACall, Answer::Reply))
        }
    }
}

/// The answer to a header that cannot be decoded: nothing, unless it is the size of its
/// credential or verifier (RFC 5531 section 8.2) that is wrong.
fn refused_header(record: &[u8], error: DecodeError) -> Option<ReplyHeader<'static>> {
    /// xid, direction, RPC version, program, version, procedure, flavor.
    const CREDENTIAL_BODY_AT: usize = 7 * 4;
    let (xid, _) = wire::rpc::peek(record).ok()?;
    match (error.kind, error.at) {
        (DecodeErrorKind::TooLong { .. }, CREDENTIAL_BODY_AT) => {
            Some(ReplyHeader::auth_error(xid, AuthStat::BadCred))
        }
        (DecodeErrorKind::TooLong { .. }, _) => {
            Some(ReplyHeader::auth_error(xid, AuthStat::BadVerf))
        }
        _ => None,
    }
}

/// The procedure a call names, if it is served.
fn known_procedure(header: &CallHeader<'_>, versions: Versions) -> Result<Procedure, AcceptStatus> {
    let &CallHeader { program, version, .. } = header;
    let (low, high) = versions.range_of(program).ok_or(AcceptStatus::ProgUnavail)?;
    match header.procedure() {
        _ if !versions.serves(program, version) => Err(AcceptStatus::ProgMismatch { low, high }),
        Procedure::Unknown { .. } => Err(AcceptStatus::ProcUnavail),
        procedure => Ok(procedure),
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, SocketAddr};
    use std::sync::Arc;

    use super::*;
    use crate::export::Export;
    use crate::store::mem::{MemOptions, MemStore};
    use crate::types::Time;

    /// A call in service is a future of this size; thousands of them are.
    #[test]
    fn a_call_takes_little_memory() {
        let store = MemStore::new(MemOptions::default(), Arc::new(Time::default));
        let engine = Engine::new(Exports::one(Export::default(), store), EngineConfig::default());
        let peer = Peer::at(SocketAddr::from((Ipv4Addr::LOCALHOST, 1)), Transport::Stream);
        let size = size_of_val(&engine.call(peer, Bytes::new()));
        assert!(size <= 2560, "{size} bytes");
    }
}
