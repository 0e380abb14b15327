//! Which program a call is for, and what it has to know.

use std::pin::pin;

use bytes::Bytes;
use wire::Procedure;
use wire::record::Message;
use wire::rpc::{AcceptStatus, AuthStat, ReplyHeader};
use wire::xdr::{self, Decode, Encode, Reader};
use wire::{mount, nfs2, nfs3};

use super::{Accepted, Engine, Refusal};
use crate::handle;
use crate::handle2;
use crate::metrics;
use crate::mountd;
use crate::nlm;
use crate::peer::{Peer, Transport};
use crate::portmap;
use crate::proc2;
use crate::proc3;
use crate::replies::{Claim, Recording};
use crate::rpcbind;
use crate::store::Store;

/// Room for the head of every reply but a long READLINK, MOUNT's lists and portmap's: RPC header
/// (24 bytes) and RENAME's or MKDIR's results (at most 276).
const HEAD_LEN: usize = 320;

/// Most bytes of data in a datagram: 32 KiB as the Linux server has it, well below the 64 KiB of
/// a datagram.
const DATAGRAM_TRANSFER_BYTES_MAX: u32 = 32 * 1024;

/// What a reply has beside the data of a READ or a listing.
const REPLY_HEAD_BYTES: usize = 160;

/// The method that serves one version of NFS. What the versions have alike stands here: the export
/// of the first handle, who calls, and what becomes of a call that may have been executed before.
macro_rules! serve_nfs {
    (
        $serve:ident: $version:ident, $of_all:ident, $nfs:ident::$first:ident, $unwrap:path,
        without_handle: $without_handle:pat,
        with_data: $with_data:pat,
        own: { $($own:ident)* }
    ) => {
        async fn $serve(
            &self,
            procedure: $nfs::Procedure,
            call: &Accepted<'_>,
            record: &Bytes,
            claim: Option<&Claim<'_>>,
            head: &mut Vec<u8>,
        ) -> Result<Bytes, Refusal> {
            let args = call.args.rest();
            if matches!(procedure, $without_handle) {
                xdr::from_bytes::<$nfs::null::Args>(args)?;
                return Ok(Bytes::new());
            }
            let first = $nfs::$first::decode(&mut Reader::new(args))?;
            let exports = self.exports.load_full();
            let place = $unwrap(&first).and_then(|(export, _)| exports.place(export, call.peer));
            let place = match place {
                Ok(place) => place,
                Err(status) => {
                    $version::refuse(procedure, args, status, head)?;
                    return Ok(Bytes::new());
                }
            };
            call.check_strength(&place)?;
            let caller = match procedure {
                $nfs::Procedure::Getattr => call.credential.caller_without_groups(place.rule),
                _ => call.credential.caller(place.rule),
            };
            let cx = $version::Context {
                store: &*place.exported.store,
                exports: &exports,
                export: place.exported.export.id,
                read_only: place.rule.read_only,
                caller: &caller,
                record,
                transfer_bytes_max: match procedure {
                    $with_data => self.data_bytes_max(call),
                    _ => self.transfer_bytes_max(call.peer),
                },
                $($own: &self.$own,)*
            };
            let doubt = claim.and_then(Claim::doubt);
            if let Some(doubt) = doubt {
                // Boxed, here and below: seldom needed, and large.
                let before = $version::in_doubt::success_of_create(&cx, procedure, args, doubt);
                if let Some(success) = Box::pin(before).await {
                    head.extend_from_slice(&success);
                    return Ok(Bytes::new());
                }
            }
            let results_at = head.len();
            let claim = claim.filter(|_| cx.store.keeps_replies());
            let procedure_of_all = wire::Procedure::$of_all(procedure);
            let recording = claim.map(|claim| claim.recording(procedure_of_all, cx.export));
            let payload = {
                let serving = pin!($version::serve(&cx, procedure, args, head));
                let serving = pin!(Recording::during(recording, serving));
                metrics::procedure(call.watch, serving).await?
            };
            if let Some(doubt) = doubt
                && $version::in_doubt::may_be_done(&head[results_at..])
                && let Some(success) =
                    Box::pin($version::in_doubt::success(&cx, procedure, args, doubt)).await
            {
                head.truncate(results_at);
                head.extend_from_slice(&success);
            }
            Ok(payload)
        }
    };
}

impl<S: Store> Engine<S> {
    /// The reply to a call, or why there is none.
    pub(super) async fn serve(
        &self,
        procedure: Procedure,
        call: &Accepted<'_>,
        record: &Bytes,
        claim: Option<&Claim<'_>>,
    ) -> Result<Message, Refusal> {
        let mut head = Vec::with_capacity(HEAD_LEN);
        ReplyHeader::success(call.header.xid).encode(&mut head);
        let args = call.args.rest();
        let payload = match procedure {
            Procedure::Nfs3(procedure) => {
                pin!(self.serve_nfs3(procedure, call, record, claim, &mut head)).await?
            }
            Procedure::Mount(procedure) => {
                pin!(self.serve_mount(mountd::Version::Three, procedure, call, &mut head)).await?;
                Bytes::new()
            }
            Procedure::Mount1(procedure) => {
                pin!(self.serve_mount(mountd::Version::One, procedure, call, &mut head)).await?;
                Bytes::new()
            }
            Procedure::Nfs2(procedure) => {
                pin!(self.serve_nfs2(procedure, call, record, claim, &mut head)).await?
            }
            Procedure::Portmap(procedure) => {
                let served = portmap::serve(&self.portmap(call.peer), procedure, args, &mut head)?;
                is_served(served)?
            }
            Procedure::Rpcbind3(procedure) | Procedure::Rpcbind4(procedure) => {
                let served = rpcbind::serve(&self.portmap(call.peer), procedure, args, &mut head)?;
                is_served(served)?
            }
            Procedure::Nlm1(procedure)
            | Procedure::Nlm3(procedure)
            | Procedure::Nlm4(procedure) => is_served(nlm::serve(procedure, args, &mut head)?)?,
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

    serve_nfs! {
        serve_nfs3: proc3, Nfs3, nfs3::FileHandle, handle::unwrap,
        without_handle: nfs3::Procedure::Null,
        with_data: nfs3::Procedure::Read | nfs3::Procedure::Readdir | nfs3::Procedure::Readdirplus,
        own: {}
    }

    serve_nfs! {
        serve_nfs2: proc2, Nfs2, nfs2::FHandle, handle2::unwrap2,
        without_handle: nfs2::Procedure::Null | nfs2::Procedure::Root | nfs2::Procedure::Writecache,
        with_data: nfs2::Procedure::Read | nfs2::Procedure::Readdir,
        own: { cookies }
    }

    pub(super) fn portmap(&self, peer: &Peer) -> portmap::Context<'_> {
        portmap::Context {
            versions: self.config.versions,
            endpoints: &self.config.endpoints,
            portmap_endpoints: &self.config.portmap_endpoints,
            transport: peer.transport,
            client: peer.address,
            local: peer.local.map(|local| local.ip()),
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

/// The results of the portmapper and of the lock manager have no payload.
pub(super) fn is_served(served: bool) -> Result<Bytes, Refusal> {
    match served {
        true => Ok(Bytes::new()),
        false => Err(Refusal::Accepted(AcceptStatus::ProcUnavail)),
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::{
        Failure, Fattr3, NewObject, NfsStat3, NfsTime, WccAttr, WccData, mkdir, rename,
    };

    use super::*;
    use crate::types::Handle;

    const ATTR: Fattr3 = Fattr3::of_file(0, NfsTime { seconds: 0, nseconds: 0 });

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
}
