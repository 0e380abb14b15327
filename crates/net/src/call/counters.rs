//! What a client counts, as Linux does in /proc/self/mountstats: by procedure and by transport.

use perf::units::{Instant, Nanos};

/// Procedures counted by themselves; the last place is shared by those of higher numbers. NFS has
/// no more than 22.
const PROCEDURES_MAX: usize = 32;

/// See the module's head.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Counters {
    /// By procedure number, up to the highest that was called.
    pub procedures: Vec<ProcedureCounters>,
    pub transport: TransportCounters,
}

/// One procedure. Times are sums over `ops`.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct ProcedureCounters {
    /// Calls that have ended, well or not.
    pub ops: u64,
    /// Times that a call was sent; without retransmissions as many as there were calls.
    pub transmissions: u64,
    /// Of these, the second and further ones of a call.
    pub retransmissions: u64,
    /// Times that a call was without reply for `timeo` x `retrans`.
    pub major_timeouts: u64,
    /// Bytes of the messages, their RPC headers included and record marks not.
    pub bytes_sent: u64,
    pub bytes_received: u64,
    /// From the caller's asking to the first transmission.
    pub queue: Nanos,
    /// From the last transmission to the reply.
    pub rtt: Nanos,
    /// From the caller's asking to the end.
    pub execute: Nanos,
    /// Calls that ended without a usable reply. An error status of NFS is a reply.
    pub errors: u64,
}

/// All connections together.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct TransportCounters {
    pub connects: u64,
    /// Connections that broke or were closed by the server.
    pub disconnects: u64,
    /// Attempts to connect that failed.
    pub connect_failures: u64,
    pub sends: u64,
    pub receives: u64,
    /// Replies that no call waited for.
    pub bad_xids: u64,
    /// Sum, over all sends, of the calls under way (`req_u`): by `sends` it is their mean.
    pub in_flight_sum: u64,
    /// Sum, over all sends, of the calls that waited to be sent (`bklog_u`).
    pub backlog_sum: u64,
    /// Calls that are under way now.
    pub in_flight: u64,
}

/// The moments in the life of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Times {
    pub(super) called: Instant,
    pub(super) encoded: Instant,
    /// First given to the transport.
    pub(super) sent: Instant,
    /// Last given to the transport.
    pub(super) sent_last: Instant,
    pub(super) transmissions: u32,
}

impl Times {
    pub(super) const fn new(called: Instant, encoded: Instant) -> Self {
        Self { called, encoded, sent: encoded, sent_last: encoded, transmissions: 0 }
    }

    pub(super) fn transmitted(&mut self, now: Instant) {
        if self.transmissions == 0 {
            self.sent = now;
        }
        self.sent_last = now;
        self.transmissions = self.transmissions.saturating_add(1);
    }
}

impl Counters {
    /// The sum over all procedures.
    pub fn retransmissions(&self) -> u64 {
        self.procedures.iter().map(|procedure| procedure.retransmissions).sum()
    }

    /// A call was given to the transport; `times` counts it already.
    pub(super) fn sent(&mut self, procedure: u32, bytes: usize, times: &Times) {
        let counted = self.procedure(procedure);
        counted.transmissions += 1;
        counted.retransmissions += u64::from(times.transmissions > 1);
        counted.bytes_sent += bytes as u64;
        self.transport.sends += 1;
    }

    /// How many calls were under way and how many waited when one was sent.
    pub(super) fn crowd(&mut self, in_flight: usize, backlog: usize) {
        self.transport.in_flight = in_flight as u64;
        self.transport.in_flight_sum += in_flight as u64;
        self.transport.backlog_sum += backlog as u64;
    }

    /// A call has its reply.
    pub(super) fn answered(&mut self, procedure: u32, bytes: usize, times: &Times, now: Instant) {
        let counted = self.procedure(procedure);
        counted.bytes_received += bytes as u64;
        counted.rtt += now.since(times.sent_last);
        self.transport.receives += 1;
        self.ended(procedure, times, now);
    }

    /// A call has failed without one.
    pub(super) fn failed(&mut self, procedure: u32, times: &Times, now: Instant) {
        self.procedure(procedure).errors += 1;
        self.ended(procedure, times, now);
    }

    fn ended(&mut self, procedure: u32, times: &Times, now: Instant) {
        self.transport.in_flight = self.transport.in_flight.saturating_sub(1);
        let counted = self.procedure(procedure);
        counted.ops += 1;
        counted.queue += times.sent.since(times.called);
        counted.execute += now.since(times.called);
    }

    pub(super) fn procedure(&mut self, procedure: u32) -> &mut ProcedureCounters {
        let index = usize::try_from(procedure).unwrap_or(usize::MAX).min(PROCEDURES_MAX - 1);
        if self.procedures.len() <= index {
            self.procedures.resize(index + 1, ProcedureCounters::default());
        }
        &mut self.procedures[index]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(micros: u64) -> Instant {
        Instant::EPOCH + Nanos::from_micros(micros)
    }

    #[test]
    fn times_are_divided_into_queue_response_and_the_whole() {
        let mut counters = Counters::default();
        let mut times = Times::new(at(10), at(11));
        for sent in [15, 100] {
            times.transmitted(at(sent));
            counters.sent(7, 8192, &times);
        }
        counters.answered(7, 128, &times, at(130));
        let write = counters.procedures[7];
        assert_eq!((write.ops, write.transmissions, write.retransmissions), (1, 2, 1));
        assert_eq!((write.bytes_sent, write.bytes_received), (16_384, 128));
        let spans = [write.queue, write.rtt, write.execute];
        assert_eq!(spans, [5, 30, 120].map(Nanos::from_micros));
        assert_eq!(counters.retransmissions(), 1);
    }

    #[test]
    fn procedures_of_any_number_are_counted_and_the_table_stays_small() {
        let mut counters = Counters::default();
        let times = Times::new(at(0), at(0));
        counters.failed(u32::MAX, &times, at(1));
        counters.failed(1_000, &times, at(1));
        assert_eq!(counters.procedures.len(), PROCEDURES_MAX);
        assert_eq!(counters.procedures[PROCEDURES_MAX - 1].errors, 2);
    }
}
