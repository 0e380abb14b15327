//! Calls that are put off, and calls that get no reply, because their connection ends, their client
//! gives them up, or the capture has lost it: they are outstanding no longer than the capture
//! shows.

use std::collections::HashMap;

use trace::verdict::{Certainty, Doubt, Evidence, Suspect, judge};
use trace::{Cause, Waited};

use crate::frames::{Found, Rpc, analyze, ipv4, pcap_at, tcp_with, udp};

const MS: u64 = 1_000_000;
const SECOND: u64 = 1_000 * MS;
/// From a call to its reply.
const REPLY_NS: u64 = MS / 2;

const FIN: u8 = 1;
const SYN: u8 = 2;
const RST: u8 = 4;
const ACK: u8 = 0x10;

/// What a client says from one port and the next, at stated times.
#[derive(Default)]
struct Tape {
    packets: Vec<(u64, Vec<u8>)>,
    now: u64,
    /// Bytes that the server and the client have sent, by the client's port.
    sent: HashMap<u16, [u32; 2]>,
    over_udp: bool,
    port: u16,
    xid: u32,
}

impl Tape {
    fn over_tcp() -> Self {
        Self { port: 900, now: SECOND, ..Self::default() }
    }

    fn over_udp() -> Self {
        Self { over_udp: true, ..Self::over_tcp() }
    }

    fn packet(&mut self, from_client: bool, flags: u8, bytes: &[u8]) {
        let sent = self.sent.entry(self.port).or_insert([1, 1]);
        let own = usize::from(from_client);
        let (protocol, mut segment) = match self.over_udp {
            true => (17, udp(from_client, bytes.get(4..).unwrap_or_default())),
            false => (6, tcp_with(from_client, sent[own], sent[1 - own], 0xffff, bytes)),
        };
        if !self.over_udp {
            segment[13] = flags;
        }
        let port = if from_client { 0 } else { 2 };
        segment[port..port + 2].copy_from_slice(&self.port.to_be_bytes());
        sent[own] += u32::try_from(bytes.len()).unwrap();
        self.packets.push((self.now, ipv4(protocol, from_client, &segment)));
    }

    /// The client connects from its port (again).
    fn connects(&mut self) {
        self.sent.insert(self.port, [0, 0]);
        self.packet(true, SYN, b"");
        self.packet(false, SYN | ACK, b"");
        self.sent.insert(self.port, [1, 1]);
    }

    fn says(&mut self, rpc: &Rpc) {
        self.packet(rpc.is_call(), ACK, &rpc.record());
    }

    fn calls(&mut self) -> u32 {
        self.xid += 1;
        self.says(&Rpc::Lookup { xid: self.xid, name: "f".into() });
        self.xid
    }

    fn replies(&mut self, xid: u32) {
        self.says(&Rpc::Found { xid, handle: 5 });
    }

    /// Calls that are answered soon, so far apart.
    fn ordinary(&mut self, calls: u32, apart_ns: u64) {
        for _ in 0..calls {
            let xid = self.calls();
            self.now += REPLY_NS;
            self.replies(xid);
            self.now += apart_ns - REPLY_NS;
        }
    }

    fn analyzed(&self) -> (Found, Evidence) {
        let found = analyze(pcap_at(&self.packets));
        let evidence = Evidence::busiest(found.analyzer.flows()).unwrap();
        (found, evidence)
    }

    fn suspect(&self) -> Option<(Suspect, Certainty)> {
        let diagnosis = judge(&self.analyzed().1);
        println!("{diagnosis:?}");
        diagnosis.verdict.map(|(found, certainty)| (found.suspect, certainty))
    }
}

fn idle(waited: &Waited) -> f64 {
    #[expect(clippy::cast_precision_loss, reason = "a share")]
    let share = waited.idle as f64 / waited.all() as f64;
    share
}

#[test]
fn a_call_is_outstanding_no_longer_than_its_connection() {
    for (from_client, flags) in [(false, RST), (true, RST), (false, FIN), (true, FIN), (true, SYN)]
    {
        let mut tape = Tape::over_tcp();
        tape.ordinary(20, 100 * MS);
        tape.calls();
        tape.now += MS;
        tape.packet(from_client, flags, b"");
        tape.port += 1;
        tape.ordinary(100, 100 * MS);
        // A tape has no acknowledgements of its own.
        assert_eq!(tape.suspect(), Some((Suspect::IdleClient, Certainty::Likely)), "{flags}");
        let (found, evidence) = tape.analyzed();
        assert!(idle(&evidence.waited) > 0.97, "{:?}", evidence.waited);
        assert_eq!(found.analyzer.totals().unanswered, 1);
    }
}

#[test]
fn a_call_that_the_server_leaves_unanswered_is_outstanding_all_the_while() {
    let mut tape = Tape::over_tcp();
    tape.ordinary(20, 100 * MS);
    let slow = tape.calls();
    tape.now += MS;
    tape.ordinary(100, 100 * MS);
    tape.replies(slow);
    assert_ne!(tape.suspect().map(|(suspect, _)| suspect), Some(Suspect::IdleClient));
    assert!(idle(&tape.analyzed().1.waited) < 0.2);
}

#[test]
fn a_reply_that_follows_the_end_of_one_direction_counts_until_it_comes() {
    let mut tape = Tape::over_tcp();
    tape.ordinary(20, 10 * MS);
    let slow = tape.calls();
    tape.packet(true, FIN, b"");
    tape.now += SECOND;
    tape.replies(slow);
    let (found, evidence) = tape.analyzed();
    assert!(idle(&evidence.waited) < 0.2, "{:?}", evidence.waited);
    assert_eq!(found.transactions.last().unwrap().latency().unwrap().as_nanos(), SECOND);
}

/// Twenty calls, one more that waits, and as many as that; all a twentieth of a second apart.
fn with_one_more(is_captured: bool) -> Tape {
    let mut tape = Tape::over_tcp();
    tape.ordinary(80, 50 * MS);
    let lost = tape.calls();
    tape.now += REPLY_NS;
    tape.replies(lost);
    if !is_captured {
        tape.packets.pop();
    }
    tape.now += 50 * MS - REPLY_NS;
    tape.ordinary(80, 50 * MS);
    tape
}

#[test]
fn one_reply_that_the_capture_lost_does_not_turn_the_verdict() {
    for is_captured in [true, false] {
        let tape = with_one_more(is_captured);
        let suspect = tape.suspect().map(|(suspect, _)| suspect);
        assert_eq!(suspect, Some(Suspect::IdleClient), "{is_captured}");
        let (found, evidence) = tape.analyzed();
        assert_eq!(found.analyzer.totals().unanswered, u64::from(!is_captured));
        assert_eq!(evidence.waited.unknown > 0, !is_captured, "{:?}", evidence.waited);
        assert!(idle(&evidence.waited) > 0.96, "{:?}", evidence.waited);
        let (_, flow) = found.analyzer.flows().iter().next().unwrap();
        assert!(flow.pace.outstanding_max <= if is_captured { 1 } else { 2 });
    }
}

#[test]
fn a_gap_in_which_the_capture_lost_messages_has_no_cause_that_is_known() {
    for is_captured in [true, false] {
        let mut tape = Tape::over_tcp();
        tape.ordinary(80, MS);
        tape.now += 200 * MS;
        let lost = tape.calls();
        tape.now += REPLY_NS;
        tape.replies(lost);
        if !is_captured {
            tape.packets.pop();
        }
        tape.now += 200 * MS;
        tape.ordinary(80, MS);
        let (found, _) = tape.analyzed();
        let (_, flow) = found.analyzer.flows().iter().next().unwrap();
        let causes: Vec<Cause> = flow.pace.gaps.iter().map(|gap| gap.cause).collect();
        let known = [Cause::SilentClient; 2];
        assert_eq!(causes, if is_captured { &known[..] } else { &[Cause::NotCaptured] });
    }
}

#[test]
fn where_most_of_the_time_messages_were_lost_nothing_is_found() {
    let mut tape = Tape::over_tcp();
    for _ in 0..40 {
        tape.ordinary(4, 50 * MS);
        let lost = tape.calls();
        tape.replies(lost);
        tape.packets.pop();
        tape.now += 400 * MS;
    }
    tape.ordinary(1, MS);
    let diagnosis = judge(&tape.analyzed().1);
    assert_eq!(diagnosis.verdict, None, "{diagnosis:?}");
    assert_eq!(diagnosis.doubts, [Doubt::CaptureLost]);
}

#[test]
fn over_udp_a_call_is_outstanding_until_its_client_gives_it_up() {
    let mut tape = Tape::over_udp();
    tape.ordinary(20, 500 * MS);
    tape.calls();
    tape.now += MS;
    tape.ordinary(100, 500 * MS);
    assert_eq!(tape.suspect().map(|(suspect, _)| suspect), Some(Suspect::IdleClient));

    let mut tape = Tape::over_udp();
    tape.ordinary(20, 10 * MS);
    let lost = tape.calls();
    for wait in [1, 2, 4, 8] {
        tape.now += wait * SECOND;
        tape.says(&Rpc::Lookup { xid: lost, name: "f".into() });
    }
    tape.now += 16 * SECOND;
    tape.replies(lost);
    assert_eq!(tape.suspect().map(|(suspect, _)| suspect), Some(Suspect::Retransmission));
}

/// A connection that ends with a call outstanding, which the client repeats from a port.
fn repeated_from(port: u16) -> Tape {
    let mut tape = Tape::over_tcp();
    tape.ordinary(20, 10 * MS);
    let again = tape.calls();
    tape.packet(false, RST, b"");
    tape.now += SECOND;
    tape.port = port;
    tape.connects();
    tape.says(&Rpc::Lookup { xid: again, name: "f".into() });
    tape.now += REPLY_NS;
    tape.replies(again);
    tape.now += MS;
    tape.ordinary(20, 10 * MS);
    tape
}

#[test]
fn a_call_that_is_repeated_over_a_new_connection_waited_since_it_was_sent_first() {
    for port in [900, 901] {
        let (found, evidence) = repeated_from(port).analyzed();
        let totals = found.analyzer.totals();
        assert_eq!((totals.calls(), totals.unanswered, totals.passed_on), (41, 0, 0), "{port}");
        let slowest = found.transactions.iter().max_by_key(|t| t.latency()).unwrap();
        assert_eq!(slowest.latency().unwrap().as_nanos(), SECOND + REPLY_NS);
        assert_eq!(slowest.retransmissions, 1);
        assert!(evidence.waited.retransmission >= SECOND, "{:?}", evidence.waited);
        let retransmissions: u64 =
            found.analyzer.flows().iter().map(|(_, flow)| flow.retransmissions).sum();
        assert_eq!(retransmissions, 1);
    }
}

#[test]
fn numbers_that_a_client_uses_again_behind_its_last_connection_are_other_calls() {
    let counted = |is_acknowledged: bool| {
        let mut tape = Tape::over_tcp();
        tape.ordinary(20, 10 * MS);
        if is_acknowledged {
            tape.packet(true, FIN | ACK, b"");
        }
        tape.now += 5 * MS;
        (tape.xid, tape.port) = (0, 900);
        tape.connects();
        tape.ordinary(20, 10 * MS);
        let (found, evidence) = tape.analyzed();
        let flows = found.analyzer.flows().iter();
        let retransmissions: u64 = flows.map(|(_, flow)| flow.retransmissions).sum();
        let is_seen = evidence.waited.retransmission > 0;
        (found.analyzer.totals().calls(), retransmissions, is_seen)
    };
    assert_eq!(counted(true), (40, 0, false));
    // A reply that the client may not have is requested again.
    let (calls, retransmissions, _) = counted(false);
    assert!(calls < 40 && retransmissions > 0, "{calls} {retransmissions}");
}

#[test]
fn two_programs_of_one_host_that_make_the_same_call_make_two() {
    let mut tape = Tape::over_tcp();
    tape.ordinary(20, 10 * MS);
    tape.calls();
    (tape.port, tape.xid) = (901, tape.xid - 1);
    let same = tape.calls();
    tape.now += REPLY_NS;
    tape.replies(same);
    tape.port = 900;
    tape.replies(same);
    let (found, _) = tape.analyzed();
    let totals = found.analyzer.totals();
    assert_eq!((totals.calls(), totals.replies(), totals.passed_on), (22, 22, 0));
}

/// Sixty WRITEs, each of which gets this status and is made again a tenth of a second later.
fn answered_with(status: u32) -> Tape {
    let mut tape = Tape::over_tcp();
    for _ in 0..60 {
        for status in [status, 0] {
            tape.xid += 1;
            tape.says(&Rpc::Write { xid: tape.xid, bytes: 512 });
            tape.now += REPLY_NS;
            match status {
                0 => tape.says(&Rpc::Written { xid: tape.xid, bytes: 512 }),
                _ => tape.says(&Rpc::NotWritten { xid: tape.xid, status }),
            }
            tape.now += if status == 0 { MS } else { 100 * MS };
        }
    }
    tape
}

#[test]
fn a_client_that_waits_for_what_the_server_put_off_is_not_idle() {
    const NOSPC: u32 = 28;
    const JUKEBOX: u32 = 10_008;
    let suspect = |status| answered_with(status).suspect();
    assert_eq!(suspect(JUKEBOX), Some((Suspect::Postponed, Certainty::Sure)));
    assert_eq!(suspect(NOSPC), Some((Suspect::IdleClient, Certainty::Likely)));
    let (_, evidence) = answered_with(JUKEBOX).analyzed();
    assert_eq!((evidence.postponed, evidence.called_again), (60, 60));
}

#[test]
fn a_gap_behind_a_call_that_was_put_off_is_no_silence_of_the_client() {
    for (status, cause) in [(10_008, Cause::Postponed), (28, Cause::SilentClient)] {
        let mut tape = Tape::over_tcp();
        tape.ordinary(40, MS);
        tape.xid += 1;
        tape.says(&Rpc::Write { xid: tape.xid, bytes: 512 });
        tape.now += REPLY_NS;
        tape.says(&Rpc::NotWritten { xid: tape.xid, status });
        tape.now += 300 * MS;
        tape.ordinary(20, MS);
        let (found, _) = tape.analyzed();
        let (_, flow) = found.analyzer.flows().iter().next().unwrap();
        let [gap] = flow.pace.gaps[..] else { panic!("{:?}", flow.pace.gaps) };
        assert_eq!(gap.cause, cause);
    }
}

#[test]
fn a_client_that_does_not_call_again_for_what_was_put_off_is_idle_after_a_while() {
    let mut tape = Tape::over_tcp();
    tape.ordinary(20, MS);
    tape.xid += 1;
    tape.says(&Rpc::Write { xid: tape.xid, bytes: 512 });
    tape.says(&Rpc::NotWritten { xid: tape.xid, status: 10_008 });
    tape.now += 3_000 * SECOND;
    tape.ordinary(20, MS);
    assert!(idle(&tape.analyzed().1.waited) > 0.98);
}
