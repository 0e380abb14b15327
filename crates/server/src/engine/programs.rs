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
use crate::peer::{Peer, Transport};
use crate::portmap;
use crate::proc2;
use crate::proc3;
use crate::replies::Doubt;
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

impl<S: Store> Engine<S> {
    /// The reply to a call, or why there is none.
    pub(super) async fn serve(
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

/// The results of the portmapper have no payload.
fn is_served(served: bool) -> Result<Bytes, Refusal> {
    match served {
        true => Ok(Bytes::new()),
        false => Err(Refusal::Accepted(AcceptStatus::ProcUnavail)),
    }
}

#[cfg(test)]
mod tests {
    use wire::nfs3::{
        FType, Failure, Fattr3, NewObject, NfsStat3, NfsTime, Specdata, WccAttr, WccData, mkdir,
        rename,
    };

    use super::*;
    use crate::types::Handle;

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
}
