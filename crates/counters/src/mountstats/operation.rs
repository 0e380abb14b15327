//! One procedure of a mount: a line below `per-op statistics`.

use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::NUMBERS_MAX;

/// Sums over all calls since the mount. Times are printed in whole milliseconds, cut off.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Operation {
    /// As the text has it: `GETATTR`.
    pub name: String,
    pub calls: u64,
    /// With retransmissions.
    pub transmissions: u64,
    /// Calls that gave up, or reported that, after all their tries.
    pub major_timeouts: u64,
    /// With the headers of RPC.
    pub sent_bytes: u64,
    pub received_bytes: u64,
    /// Before it was sent; from there to its reply; from its making to its end.
    pub queue_ms: u64,
    pub rtt_ms: u64,
    pub execute_ms: u64,
    /// Answered with an error; since Linux 5.3.
    pub errors: Option<u64>,
}

impl Operation {
    pub(super) fn read(name: &str, line: &mut Line<'_>) -> Result<Self, Problem> {
        let (numbers, found) = line.first::<9>(name, 8, NUMBERS_MAX)?;
        let [
            calls,
            transmissions,
            major_timeouts,
            sent_bytes,
            received_bytes,
            queue_ms,
            rtt_ms,
            execute_ms,
            errors,
        ] = numbers;
        Ok(Self {
            name: name.to_owned(),
            calls,
            transmissions,
            major_timeouts,
            sent_bytes,
            received_bytes,
            queue_ms,
            rtt_ms,
            execute_ms,
            errors: (found > 8).then_some(errors),
        })
    }

    /// Retransmitted: calls are counted when they end, so that those under way are no more than
    /// noise.
    pub fn retransmissions(&self) -> u64 {
        self.transmissions.saturating_sub(self.calls)
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let errors = self.errors.map(|now| difference(now, before.errors.unwrap_or(0)));
        Self {
            name: self.name.clone(),
            calls: difference(self.calls, before.calls),
            transmissions: difference(self.transmissions, before.transmissions),
            major_timeouts: difference(self.major_timeouts, before.major_timeouts),
            sent_bytes: difference(self.sent_bytes, before.sent_bytes),
            received_bytes: difference(self.received_bytes, before.received_bytes),
            queue_ms: difference(self.queue_ms, before.queue_ms),
            rtt_ms: difference(self.rtt_ms, before.rtt_ms),
            execute_ms: difference(self.execute_ms, before.execute_ms),
            errors,
        }
    }
}
