//! What a host hears that no export names: where the programs are, which versions there are, and
//! that it may not mount. All else is AUTH_TOOWEAK. Without an answer a mount would wait for its
//! own limit, which is minutes.
//!
//! Its NFS calls get no answer, but for NULL: they are of a mount of when it was named. Exports may
//! have been changed by mistake, and an error would cost its programs what they have written.
//!
//! A reply is made from the head of the call, at once: no store, no table of replies and no metrics
//! see it. It has three times the bytes of the call at most, as datagrams have forged addresses.

use wire::Procedure;
use wire::mount::{self, MntReply, MountStat3};
use wire::record::Message;
use wire::rpc::{Answer, AuthStat, CallHeader, ReplyHeader};
use wire::xdr::{Encode, Reader};
use wire::{portmap as pmap, rpcbind as rpcb};

use super::programs::is_served;
use super::{Engine, Refusal, UNPROVEN_TIMES_MAX, known_procedure, read_header};
use crate::peer::Peer;
use crate::portmap;
use crate::rpcbind;
use crate::store::Store;

impl<S: Store> Engine<S> {
    /// The answer to a call of a host that there is nothing for ([`Engine::is_for`]). `record` may
    /// be cut off behind the arguments of an MNT.
    pub fn refuse(&self, peer: &Peer, record: &[u8]) -> Answer {
        let (header, args) = match read_header(record) {
            Ok(call) => call,
            Err(refused) => return refused,
        };
        let reply = match self.serve_stranger(peer, &header, &args) {
            Ok(Some(head)) => Message::new(head),
            Ok(None) => return Answer::Nothing,
            Err(refusal) => refusal.message(header.xid),
        };
        match reply.wire_len() <= UNPROVEN_TIMES_MAX * record.len() {
            true => Answer::Reply(reply),
            false => Answer::Nothing,
        }
    }

    /// None: it gets no answer.
    fn serve_stranger(
        &self,
        peer: &Peer,
        header: &CallHeader<'_>,
        args: &Reader<'_>,
    ) -> Result<Option<Vec<u8>>, Refusal> {
        let procedure = known_procedure(header, self.config.versions).map_err(Refusal::Accepted)?;
        let mut head = ReplyHeader::success(header.xid).to_bytes();
        match procedure {
            // NULL of all programs.
            _ if header.procedure == 0 => {}
            Procedure::Nfs2(_) | Procedure::Nfs3(_) => return Ok(None),
            // It does not learn whether there is such an export.
            Procedure::Mount(mount::Procedure::Mnt) | Procedure::Mount1(mount::Procedure::Mnt) => {
                MntReply::Err(MountStat3::Acces).encode(&mut head);
            }
            // It may have been named before, and goes now.
            Procedure::Mount(mount::Procedure::Umnt | mount::Procedure::Umntall)
            | Procedure::Mount1(mount::Procedure::Umnt | mount::Procedure::Umntall) => {}
            Procedure::Portmap(procedure @ pmap::Procedure::Getport) => {
                let cx = self.portmap(peer);
                is_served(portmap::serve(&cx, procedure, args.rest(), &mut head)?)?;
            }
            Procedure::Rpcbind3(procedure @ rpcb::Procedure::Getaddr)
            | Procedure::Rpcbind4(
                procedure @ (rpcb::Procedure::Getaddr | rpcb::Procedure::Getversaddr),
            ) => {
                let cx = self.portmap(peer);
                is_served(rpcbind::serve(&cx, procedure, args.rest(), &mut head)?)?;
            }
            _ => return Err(Refusal::Auth(AuthStat::TooWeak)),
        }
        Ok(Some(head))
    }
}
