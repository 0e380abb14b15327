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
use wire::{mount, nfs2, nfs3};

use crate::auth::Credential;
use crate::export::Rule;
use crate::exports::{Exports, Place};
use crate::handle;
use crate::handle2;
use crate::metrics::{self, Metrics, Page, Watch};
use crate::mountd::{self, Mount, Mounts};
use crate::peer::{Peer, Transport};
use crate::portmap::{self, Endpoint};
use crate::proc2;
use crate::proc3;
use crate::programs::Versions;
use crate::replies::{Claim, Claimed, Doubt, Identity, Replies, Retention, retention};
use crate::rpcbind;
use crate::service::{CommitMode, Service};
use crate::service_cost::ServiceCost;
use crate::store::Store;

/// Room for the head of every reply but a long READLINK, MOUNT's lists and portmap's: RPC header
/// (24 bytes) and RENAME's or MKDIR's results (at most 276).
const HEAD_LEN: usize = 320;

/// Most bytes of data in a datagram: 32 KiB as the Linux server has it, well below the 64 KiB of
/// a datagram.
const DATAGRAM_TRANSFER_BYTES_MAX: u32 = 32 * 1024;

/// Whose address is not proven gets at most so many times what came in its name, or it could be
/// flooded by us at little cost to somebody else (QUIC has the same bound: RFC 9000 section 8.1).
const UNPROVEN_TIMES_MAX: usize = 3;

/// What a reply has beside the data of a READ or a listing.
const REPLY_HEAD_BYTES: usize = 160;

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
            let of_store = exported.store.readings().into_iter();
            readings.extend(of_store.map(|reading| reading.of("export", &exported.export.name)));
        }
        page.readings(&readings);
    }

    /// Serves one call.
    ///
    /// What changes names or attributes should run to its end although its client is gone: it may
    /// have done its work, and the client will ask again.
    pub fn call(&self, peer: Peer, record: Bytes) -> impl Future<Output = Answer> + Send {
        self.call_arrived(peer, record, None).map(|(answer, _)| answer)
    }

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
                match self.accept(&peer, &header, args, &record, watch.as_ref()).await {
                    Ok(answer) => answer,
                    Err(Refusal::Accepted(status)) => {
                        Answer::Reply(message(ReplyHeader::accepted(xid, status)))
                    }
                    Err(Refusal::Auth(why)) => {
                        Answer::Reply(message(ReplyHeader::auth_error(xid, why)))
                    }
                }
            }
        };
        let tag = watch.map_or(0, |watch| watch.end(peer, &record, &answer));
        (answer, tag)
    }

    /// Whether any export names this host, so that it is worth listening to.
    pub fn is_for(&self, host: IpAddr) -> bool {
        self.exports.load().name(host)
    }

    /// Most bytes of data in the reply to a call: what READ and the listings ask for, as far as
    /// they get it. Whoever sends the replies bounds by it what waits to be sent.
    pub fn reply_bytes_max(&self, record: &[u8]) -> usize {
        let mut args = Reader::new(record);
        let Ok(Call::Version2(header)) = Call::decode(&mut args) else { return 0 };
        let args = args.rest();
        let asked = match header.procedure() {
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
        asked.min(self.config.transfer_bytes_max) as usize
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
        let doubt = claim.as_ref().and_then(Claim::doubt);
        if let Some(work) = self.cost.as_ref().and_then(|all| all.call(procedure, record.len())) {
            work.await;
        }
        let served = self.serve(procedure, &call, record, doubt).await;
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

    async fn serve(
        &self,
        procedure: Procedure,
        call: &Accepted<'_>,
        record: &Bytes,
        doubt: Option<Doubt>,
    ) -> Result<Message, Refusal> {
        let mut head = Vec::with_capacity(HEAD_LEN);
        ReplyHeader::success(call.header.xid).encode(&mut head);
        let args = call.args.rest();
        let payload = match procedure {
            Procedure::Nfs3(procedure) => {
                self.serve_nfs3(procedure, call, record, doubt, &mut head).await?
            }
            Procedure::Mount(procedure) => {
                self.serve_mount(mountd::Version::Three, procedure, call, &mut head).await?;
                Bytes::new()
            }
            Procedure::Mount1(procedure) => {
                self.serve_mount(mountd::Version::One, procedure, call, &mut head).await?;
                Bytes::new()
            }
            Procedure::Nfs2(procedure) => {
                self.serve_nfs2(procedure, call, record, doubt, &mut head).await?
            }
            Procedure::Portmap(procedure) => {
                let served = portmap::serve(&self.portmap(call), procedure, args, &mut head)?;
                is_served(served)?
            }
            Procedure::Rpcbind3(procedure) | Procedure::Rpcbind4(procedure) => {
                let served = rpcbind::serve(&self.portmap(call), procedure, args, &mut head)?;
                is_served(served)?
            }
            Procedure::Unknown { .. } => {
                return Err(Refusal::Accepted(AcceptStatus::ProcUnavail));
            }
        };
        let message = Message { head, payload };
        match call.reply_bytes_max {
            Some(max) if message.wire_len() > max => Err(Refusal::Auth(AuthStat::TooWeak)),
            _ => Ok(message),
        }
    }

    async fn serve_nfs3(
        &self,
        procedure: nfs3::Procedure,
        call: &Accepted<'_>,
        record: &Bytes,
        doubt: Option<Doubt>,
        head: &mut Vec<u8>,
    ) -> Result<Bytes, Refusal> {
        let args = call.args.rest();
        if procedure == nfs3::Procedure::Null {
            xdr::from_bytes::<nfs3::null::Args>(args)?;
            return Ok(Bytes::new());
        }
        // All other procedures begin with a file handle.
        let first = nfs3::FileHandle::decode(&mut Reader::new(args))?;
        let exports = self.exports.load_full();
        let place = handle::unwrap(&first).and_then(|(export, _)| exports.place(export, call.peer));
        let place = match place {
            Ok(place) => place,
            Err(status) => {
                proc3::refuse(procedure, args, status, head)?;
                return Ok(Bytes::new());
            }
        };
        call.check_strength(&place)?;
        let caller = match procedure {
            nfs3::Procedure::Getattr => call.credential.caller_without_groups(place.rule),
            _ => call.credential.caller(place.rule),
        };
        let cx = proc3::Context {
            store: &*place.exported.store,
            exports: &exports,
            export: place.exported.export.id,
            read_only: place.rule.read_only,
            caller: &caller,
            record,
            transfer_bytes_max: match procedure {
                nfs3::Procedure::Read | nfs3::Procedure::Readdir | nfs3::Procedure::Readdirplus => {
                    self.data_bytes_max(call)
                }
                _ => self.transfer_bytes_max(call.peer),
            },
        };
        if let Some(doubt) = doubt
            && let Some(success) =
                // Boxed: seldom needed, and large.
                Box::pin(proc3::in_doubt::success_of_create(&cx, procedure, args, doubt))
                        .await
        {
            head.extend_from_slice(&success);
            return Ok(Bytes::new());
        }
        let results_at = head.len();
        let payload =
            metrics::procedure(call.watch, pin!(proc3::serve(&cx, procedure, args, head))).await?;
        if let Some(doubt) = doubt
            && proc3::in_doubt::may_be_done(&head[results_at..])
            && let Some(success) =
                Box::pin(proc3::in_doubt::success(&cx, procedure, args, doubt)).await
        {
            head.truncate(results_at);
            head.extend_from_slice(&success);
        }
        Ok(payload)
    }

    async fn serve_nfs2(
        &self,
        procedure: nfs2::Procedure,
        call: &Accepted<'_>,
        record: &Bytes,
        doubt: Option<Doubt>,
        head: &mut Vec<u8>,
    ) -> Result<Bytes, Refusal> {
        let args = call.args.rest();
        if !proc2::has_handle(procedure) {
            xdr::from_bytes::<nfs2::null::Args>(args)?;
            return Ok(Bytes::new());
        }
        let first = nfs2::FHandle::decode(&mut Reader::new(args))?;
        let exports = self.exports.load_full();
        let place =
            handle2::unwrap2(&first).and_then(|(export, _)| exports.place(export, call.peer));
        let place = match place {
            Ok(place) => place,
            Err(status) => {
                proc2::refuse(procedure, args, status, head)?;
                return Ok(Bytes::new());
            }
        };
        call.check_strength(&place)?;
        let caller = match procedure {
            nfs2::Procedure::Getattr => call.credential.caller_without_groups(place.rule),
            _ => call.credential.caller(place.rule),
        };
        let cx = proc2::Context {
            store: &*place.exported.store,
            exports: &exports,
            export: place.exported.export.id,
            read_only: place.rule.read_only,
            caller: &caller,
            record,
            transfer_bytes_max: match procedure {
                nfs2::Procedure::Read | nfs2::Procedure::Readdir => self.data_bytes_max(call),
                _ => self.transfer_bytes_max(call.peer),
            },
            cookies: &self.cookies,
        };
        if let Some(doubt) = doubt
            && let Some(success) =
                // Boxed: seldom needed, and large.
                Box::pin(proc2::in_doubt::success_of_create(&cx, procedure, args, doubt))
                        .await
        {
            head.extend_from_slice(&success);
            return Ok(Bytes::new());
        }
        let results_at = head.len();
        let payload =
            metrics::procedure(call.watch, pin!(proc2::serve(&cx, procedure, args, head))).await?;
        if let Some(doubt) = doubt
            && proc2::in_doubt::may_be_done(&head[results_at..])
            && let Some(success) =
                Box::pin(proc2::in_doubt::success(&cx, procedure, args, doubt)).await
        {
            head.truncate(results_at);
            head.extend_from_slice(&success);
        }
        Ok(payload)
    }

    fn portmap(&self, call: &Accepted<'_>) -> portmap::Context<'_> {
        portmap::Context {
            versions: self.config.versions,
            endpoints: &self.config.endpoints,
            portmap_endpoints: &self.config.portmap_endpoints,
            transport: call.peer.transport,
            client: call.peer.address,
            local: call.peer.local.map(|local| local.ip()),
            seconds: None,
        }
    }

    async fn serve_mount(
        &self,
        version: mountd::Version,
        procedure: mount::Procedure,
        call: &Accepted<'_>,
        head: &mut Vec<u8>,
    ) -> Result<(), Refusal> {
        let cx = mountd::Context {
            exports: &self.exports.load_full(),
            mounts: &self.mounts,
            credential: call.credential,
            peer: call.peer,
            list_bytes_max: match (call.peer.transport, call.reply_bytes_max) {
                (_, Some(max)) => {
                    max.saturating_sub(REPLY_HEAD_BYTES).min(mountd::LIST_DATAGRAM_BYTES_MAX)
                }
                (Transport::Datagram, None) => mountd::LIST_DATAGRAM_BYTES_MAX,
                (Transport::Stream, None) => usize::MAX,
            },
        };
        let args = call.args.rest();
        let serving = pin!(mountd::serve(&cx, version, procedure, args, head));
        match metrics::procedure(call.watch, serving).await? {
            mountd::Outcome::Served => Ok(()),
            mountd::Outcome::TooWeak => Err(Refusal::Auth(AuthStat::TooWeak)),
        }
    }

    /// Most bytes of data in the reply to this call.
    fn data_bytes_max(&self, call: &Accepted<'_>) -> u32 {
        let transfer_bytes_max = self.transfer_bytes_max(call.peer);
        call.reply_bytes_max.map_or(transfer_bytes_max, |max| {
            let room = max.saturating_sub(REPLY_HEAD_BYTES);
            u32::try_from(room).map_or(transfer_bytes_max, |room| room.min(transfer_bytes_max))
        })
    }

    fn transfer_bytes_max(&self, peer: &Peer) -> u32 {
        match peer.transport {
            Transport::Stream => self.config.transfer_bytes_max,
            Transport::Datagram => self.config.transfer_bytes_max.min(DATAGRAM_TRANSFER_BYTES_MAX),
        }
    }
}

/// How many bytes a sender may get who may not be who it says.
fn unproven_bytes_max(peer: &Peer, record: &Bytes) -> Option<usize> {
    let is_unproven = peer.transport == Transport::Datagram && !peer.is_proven;
    is_unproven.then(|| UNPROVEN_TIMES_MAX * record.len())
}

/// The results of the portmapper have no payload.
fn is_served(served: bool) -> Result<Bytes, Refusal> {
    match served {
        true => Ok(Bytes::new()),
        false => Err(Refusal::Accepted(AcceptStatus::ProcUnavail)),
    }
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

/// What is to be said to a header that cannot be decoded: nothing, unless it is the size of its
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

    use wire::nfs3::{
        FType, Failure, Fattr3, NewObject, NfsStat3, NfsTime, Specdata, WccAttr, WccData, mkdir,
        rename,
    };

    use super::*;
    use crate::export::Export;
    use crate::store::mem::{MemOptions, MemStore};
    use crate::types::{Handle, Time};

    const ATTR: Fattr3 = Fattr3 {
        ftype: FType::Reg,
        mode: 0,
        nlink: 0,
        uid: 0,
        gid: 0,
        size: 0,
        used: 0,
        rdev: Specdata { specdata1: 0, specdata2: 0 },
        fsid: 0,
        fileid: 0,
        atime: NfsTime { seconds: 0, nseconds: 0 },
        mtime: NfsTime { seconds: 0, nseconds: 0 },
        ctime: NfsTime { seconds: 0, nseconds: 0 },
    };

    #[test]
    fn the_largest_heads_need_one_allocation() {
        let header = ReplyHeader::success(1).to_bytes().len();
        let wcc = WccData { before: Some(WccAttr::from(&ATTR)), after: Some(ATTR) };
        let handle = Handle::new(&[0; Handle::BYTES_MAX]).unwrap();
        let made: mkdir::Reply = Ok(NewObject {
            obj: Some(handle::wrap(0, &handle)),
            obj_attributes: Some(ATTR),
            dir_wcc: wcc,
        });
        assert!(header + made.to_bytes().len() <= HEAD_LEN);
        let detail = rename::ReplyOk { fromdir_wcc: wcc, todir_wcc: wcc };
        let status = NfsStat3::Io;
        let renamed: rename::Reply = Err(Failure { status, detail });
        assert!(header + renamed.to_bytes().len() <= HEAD_LEN);
    }

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
