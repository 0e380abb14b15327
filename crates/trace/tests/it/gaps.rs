//! Times without a reply, and what they came from.

use trace::{Cause, Gap};

use crate::frames::{Rpc, analyze, ipv4, pcap_at, tcp_with};

const MS: u64 = 1_000_000;
/// As long as each gap is.
const GAP_MS: u64 = 300;

/// A conversation over one connection, at stated times.
struct Tape {
    packets: Vec<(u64, Vec<u8>)>,
    now: u64,
    /// Bytes that the server and the client have sent.
    sent: [u32; 2],
    xid: u32,
}

impl Tape {
    /// Calls that are answered in half a millisecond, one a millisecond.
    fn begin() -> Self {
        let mut tape = Self { packets: Vec::new(), now: 0, sent: [1, 1], xid: 0 };
        tape.ordinary(40);
        tape
    }

    fn ordinary(&mut self, calls: u32) {
        for _ in 0..calls {
            self.xid += 1;
            self.says(&Rpc::Lookup { xid: self.xid, name: "f".into() });
            self.waits(MS / 2);
            self.says(&Rpc::Found { xid: self.xid, handle: 5 });
            self.waits(MS / 2);
        }
    }

    fn waits(&mut self, ns: u64) {
        self.now += ns;
    }

    fn says(&mut self, rpc: &Rpc) {
        let record = rpc.record();
        self.segment(rpc.is_call(), &record, 0);
        self.sent[usize::from(rpc.is_call())] += u32::try_from(record.len()).unwrap();
    }

    /// Bytes that begin so far behind what was sent; what was sent is as it was.
    fn segment(&mut self, from_client: bool, bytes: &[u8], behind: u32) {
        let seq = self.sent[usize::from(from_client)].wrapping_add(behind);
        self.packet(from_client, seq, 0xffff, bytes);
    }

    fn packet(&mut self, from_client: bool, seq: u32, window: u16, bytes: &[u8]) {
        let ack = self.sent[usize::from(!from_client)];
        let segment = tcp_with(from_client, seq, ack, window, bytes);
        self.packets.push((self.now, ipv4(6, from_client, &segment)));
    }

    /// An acknowledgement with this window.
    fn window(&mut self, from_client: bool, window: u16) {
        self.packet(from_client, self.sent[usize::from(from_client)], window, &[]);
    }

    /// The only gap, once it has gone on as before.
    fn gap(mut self) -> Gap {
        self.waits(MS);
        self.ordinary(20);
        let found = analyze(pcap_at(&self.packets));
        let flows: Vec<_> = found.analyzer.flows().iter().map(|(_, flow)| flow).collect();
        let [flow] = flows[..] else { panic!("{} flows", flows.len()) };
        let [gap] = flow.pace.gaps[..] else { panic!("{:?}", flow.pace.gaps) };
        assert!(gap.ns().abs_diff(GAP_MS * MS) < 3 * MS, "{gap:?}");
        let counted = flow.pace.by_cause.iter().map(|(count, _)| count).sum::<u64>();
        assert_eq!(counted, 1);
        gap
    }
}

#[test]
fn a_window_of_zero_is_the_cause_whatever_else_is_outstanding() {
    let mut tape = Tape::begin();
    tape.says(&Rpc::Write { xid: 500, bytes: 8_000 });
    tape.window(false, 0);
    tape.waits(GAP_MS * MS);
    tape.window(false, 500);
    tape.says(&Rpc::Written { xid: 500, bytes: 8_000 });
    assert_eq!(tape.gap().cause, Cause::ZeroWindow);
}

#[test]
fn a_client_whose_window_is_zero_counts_as_well_but_not_its_reset() {
    let mut tape = Tape::begin();
    tape.says(&Rpc::Lookup { xid: 500, name: "g".into() });
    tape.window(true, 0);
    tape.waits(GAP_MS * MS);
    tape.says(&Rpc::Found { xid: 500, handle: 6 });
    assert_eq!(tape.gap().cause, Cause::ZeroWindow);
}

#[test]
fn bytes_that_tcp_sent_again_are_loss_recovery_seen_from_the_sender() {
    let mut tape = Tape::begin();
    let call = Rpc::Write { xid: 500, bytes: 1_000 };
    tape.segment(true, &call.record(), 0);
    tape.waits(GAP_MS / 3 * MS);
    // Seen twice on its way, lost behind the capture.
    tape.segment(true, &call.record(), 0);
    tape.waits(GAP_MS / 3 * MS);
    tape.says(&call);
    tape.waits(GAP_MS / 3 * MS);
    tape.says(&Rpc::Written { xid: 500, bytes: 1_000 });
    let gap = tape.gap();
    assert_eq!((gap.cause, gap.retransmissions), (Cause::TcpRecovery, 0));
}

#[test]
fn a_hole_that_is_filled_late_is_loss_recovery_seen_from_the_receiver() {
    let mut tape = Tape::begin();
    let call = Rpc::Write { xid: 500, bytes: 8_000 }.record();
    // The first part was lost before it was captured.
    tape.segment(true, &call[1_400..], 1_400);
    tape.waits((GAP_MS - 1) * MS);
    tape.segment(true, &call[..1_400], 0);
    tape.sent[1] += u32::try_from(call.len()).unwrap();
    tape.waits(MS);
    tape.says(&Rpc::Written { xid: 500, bytes: 8_000 });
    assert_eq!(tape.gap().cause, Cause::TcpRecovery);
}

#[test]
fn a_call_that_was_sent_again_is_a_timeout_of_rpc() {
    let mut tape = Tape::begin();
    for _ in 0..3 {
        tape.says(&Rpc::Write { xid: 500, bytes: 1_000 });
        tape.waits(GAP_MS / 3 * MS);
    }
    tape.says(&Rpc::Written { xid: 500, bytes: 1_000 });
    let gap = tape.gap();
    assert_eq!((gap.cause, gap.retransmissions), (Cause::Retransmission, 2));
}

#[test]
fn what_the_server_has_in_hand_is_the_cause_where_nothing_was_lost() {
    let cases = [
        (Rpc::Commit { xid: 500 }, Rpc::Committed { xid: 500 }, Cause::Commit),
        (
            Rpc::Write { xid: 500, bytes: 100 },
            Rpc::Written { xid: 500, bytes: 100 },
            Cause::StableWrite,
        ),
        (
            Rpc::Lookup { xid: 500, name: "g".into() },
            Rpc::Found { xid: 500, handle: 6 },
            Cause::SilentServer,
        ),
    ];
    for (call, reply, cause) in cases {
        let mut tape = Tape::begin();
        tape.says(&call);
        tape.waits(GAP_MS * MS);
        tape.says(&reply);
        assert_eq!(tape.gap().cause, cause);
    }
}

#[test]
fn a_client_that_asks_for_nothing_is_silent() {
    let mut tape = Tape::begin();
    tape.waits(GAP_MS * MS);
    assert_eq!(tape.gap().cause, Cause::SilentClient);
}
