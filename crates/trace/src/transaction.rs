//! A call and its reply.

use perf::units::Nanos;

use super::ids::{FileId, FlowId};
use super::message::RpcVerdict;
use super::operation::{Kind, Operation};
use super::work::Work;

/// A call with its reply. Times are nanoseconds since 1970.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Transaction {
    pub flow: FlowId,
    pub xid: u32,
    pub operation: Operation,
    /// Of its program: 3 of NFS version 3.
    pub version: u32,
    /// The first byte of the call, the first time it was sent.
    pub call_first_ns: u64,
    /// Its last byte.
    pub call_ns: u64,
    pub reply_first_ns: u64,
    /// The last byte of the first reply.
    pub reply_ns: u64,
    /// When the call was sent for the last time; as `call_ns` where it was sent once.
    pub repeated_ns: u64,
    /// The last bytes of both were captured: otherwise `call_ns` or `reply_ns` is only when they
    /// were given up.
    pub is_timed: bool,
    /// The packets with their last bytes, as Wireshark counts them.
    pub call_frame: u64,
    pub reply_frame: u64,
    pub verdict: RpcVerdict,
    /// `nfsstat` of any version; none without one.
    pub status: Option<u32>,
    pub file: FileId,
    pub offset: u64,
    /// Bytes that were requested to be read or written.
    pub count: u32,
    /// Bytes that were.
    pub bytes: u32,
    /// `stable_how` of a WRITE.
    pub stable: u8,
    /// Whether `offset`, `count` and `stable` were captured; 0 otherwise.
    pub is_sized: bool,
    pub call_len: u32,
    pub reply_len: u32,
    /// Times that the call was retransmitted.
    pub retransmissions: u16,
    /// Calls of the connection without a reply when this one was made, with it.
    pub outstanding: u32,
}

impl Transaction {
    /// From the last byte of the call to the last byte of the reply, as tshark counts it; none
    /// where the capture has lost either.
    pub fn latency(&self) -> Option<Nanos> {
        self.is_timed.then(|| Nanos::from_nanos(self.reply_ns.saturating_sub(self.call_ns)))
    }

    /// From the first to the last byte of the call, and of the reply; nothing where that is not
    /// known, or the call was retransmitted meanwhile.
    pub(super) fn stretches(&self) -> [u64; 2] {
        let call_ns = self.call_ns.saturating_sub(self.call_first_ns);
        let reply_ns = self.reply_ns.saturating_sub(self.reply_first_ns);
        let is_known = self.is_timed && self.retransmissions == 0;
        if is_known { [call_ns, reply_ns] } else { [0; 2] }
    }

    pub(super) fn work(&self) -> Work {
        Work::of(self.operation.kind(), self.is_sized.then_some(self.stable > 0))
    }

    /// The server refused it, or it failed there.
    pub fn is_error(&self) -> bool {
        self.is_refused() || self.status.is_some_and(|status| status != 0)
    }

    /// RPC refused it.
    pub(super) const fn is_refused(&self) -> bool {
        matches!(self.verdict, RpcVerdict::Refused(_) | RpcVerdict::Denied(_))
    }

    /// It had to wait for no other call, and for no disk, mostly.
    pub(super) fn is_light(&self) -> bool {
        self.outstanding == 1
            && self.retransmissions == 0
            && match self.operation.kind() {
                Kind::Attributes => true,
                Kind::Write => self.is_sized && self.stable == 0,
                _ => self.operation.name() == "NULL",
            }
    }
}
