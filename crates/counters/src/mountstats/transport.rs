//! Connections of a mount and their queues: lines `xprt:`.

use crate::fields::Line;
use crate::problem::{Problem, Wrong};
use crate::rpc::NUMBERS_MAX;

/// One connection, or one UDP socket.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Transport {
    /// `tcp`, `udp`, `local`, `rdma`, or what comes.
    pub kind: String,
    pub port: Option<u64>,
    pub binds: Option<u64>,
    /// Connections that were made; over 1, they broke.
    pub connects: Option<u64>,
    /// In ticks of the kernel's clock.
    pub connect_ticks: Option<u64>,
    pub idle_s: Option<u64>,
    pub sends: Option<u64>,
    pub receives: Option<u64>,
    /// Replies that nobody waited for.
    pub bad_xids: Option<u64>,
    /// Sums, over all sends, of calls outstanding, and of calls that waited for a slot.
    pub outstanding_sum: Option<u64>,
    pub backlog_sum: Option<u64>,
    /// Since `statvers=1.1`.
    pub slots_max: Option<u64>,
    pub sending_sum: Option<u64>,
    pub pending_sum: Option<u64>,
    /// What other kinds and later kernels have behind these; the order of RDMA's differs between
    /// kernels.
    pub others: Vec<u64>,
}

impl Transport {
    /// The line behind its tag.
    pub(super) fn read(line: &mut Line<'_>) -> Result<Self, Problem> {
        let kind = line.word();
        if kind.text.is_empty() {
            return Err(kind.unexpected("a transport"));
        }
        let numbers = line.numbers("xprt", 0, NUMBERS_MAX)?;
        let has_connections = kind.text != "udp";
        let expected = if has_connections { 10 } else { 7 };
        let is_known = matches!(kind.text, "tcp" | "udp" | "local" | "rdma");
        if numbers.len() < expected && is_known {
            let (what, found) = (format!("xprt: {}", kind.text), numbers.len());
            return Err(kind.wrong(Wrong::TooFew { what, expected, found }));
        }
        let mut left = numbers.into_iter();
        let mut transport = Self { kind: kind.text.to_owned(), ..Self::default() };
        if is_known {
            transport.port = left.next();
            transport.binds = left.next();
            if has_connections {
                transport.connects = left.next();
                transport.connect_ticks = left.next();
                transport.idle_s = left.next();
            }
            transport.sends = left.next();
            transport.receives = left.next();
            transport.bad_xids = left.next();
            transport.outstanding_sum = left.next();
            transport.backlog_sum = left.next();
        }
        if matches!(kind.text, "tcp" | "udp" | "local") {
            transport.slots_max = left.next();
            transport.sending_sum = left.next();
            transport.pending_sum = left.next();
        }
        transport.others = left.collect();
        Ok(transport)
    }

    /// Calls that waited for a slot, on average, when one was sent.
    pub fn backlog_mean(&self) -> Option<f64> {
        let sends = self.sends.filter(|sends| *sends > 0)?;
        Some(self.backlog_sum? as f64 / sends as f64)
    }
}
