//! What calls wait for where that is easily taken for something else: a server that answers no
//! more, one that is slow with one call outstanding, what several connections do at once. Each
//! beside the same conversation without the cause.

use trace::verdict::{Certainty, Diagnosis, Doubt, Evidence, Suspect, judge};
use trace::{Cause, Gap};

use crate::frames::{Found, Rpc, analyze, ipv4, pcap_at, tcp_with, udp};

pub(crate) const MS: u64 = 1_000_000;
pub(crate) const SECOND: u64 = 1_000 * MS;
const ACK: u8 = 0x10;
pub(crate) const RST: u8 = 4;

/// Packets of several connections, by the client's port; acknowledged after a tenth of a
/// millisecond.
#[derive(Default)]
pub(crate) struct Tape {
    pub(crate) events: Vec<(u64, u16, bool, u8, u16, Vec<u8>)>,
    pub(crate) xid: u32,
}

impl Tape {
    pub(crate) fn packet(
        &mut self,
        at: u64,
        port: u16,
        of_client: bool,
        window: u16,
        bytes: Vec<u8>,
    ) {
        self.events.push((at, port, of_client, ACK, window, bytes));
    }

    pub(crate) fn says(&mut self, at: u64, port: u16, rpc: &Rpc) {
        self.packet(at, port, rpc.is_call(), 0xffff, rpc.record());
        self.packet(at + MS / 10, port, !rpc.is_call(), 0xffff, Vec::new());
    }

    /// A LOOKUP, without its reply.
    pub(crate) fn called(&mut self, at: u64, port: u16) -> u32 {
        self.xid += 1;
        self.says(at, port, &Rpc::Lookup { xid: self.xid, name: "f".into() });
        self.xid
    }

    /// A call that makes no attributes known, answered after so long.
    pub(crate) fn other(&mut self, at: u64, port: u16, response_ns: u64) {
        self.xid += 1;
        self.says(at, port, &Rpc::Null { xid: self.xid });
        self.says(at + response_ns, port, &Rpc::Nothing { xid: self.xid });
    }

    /// A stable WRITE that is answered after so long.
    pub(crate) fn written(&mut self, at: u64, port: u16, response_ns: u64) {
        self.xid += 1;
        let (xid, bytes) = (self.xid, 32 << 10);
        self.says(at, port, &Rpc::Write { xid, bytes });
        self.says(at + response_ns, port, &Rpc::Written { xid, bytes });
    }

    pub(crate) fn captured(&self) -> Vec<(u64, Vec<u8>)> {
        let mut events = self.events.clone();
        events.sort_by_key(|event| event.0);
        let mut sent = std::collections::HashMap::new();
        let packets = events.into_iter().map(|(at, port, of_client, flags, window, bytes)| {
            let sent: &mut [u32; 2] = sent.entry(port).or_insert([1, 1]);
            let own = usize::from(of_client);
            let mut segment = tcp_with(of_client, sent[own], sent[1 - own], window, &bytes);
            sent[own] += u32::try_from(bytes.len()).unwrap();
            segment[13] = flags;
            let place = if of_client { 0 } else { 2 };
            segment[place..place + 2].copy_from_slice(&port.to_be_bytes());
            (SECOND + at, ipv4(6, of_client, &segment))
        });
        packets.collect()
    }

    pub(crate) fn judged(&self) -> (Diagnosis, Evidence, Found) {
        judged(&self.captured())
    }
}

fn judged(packets: &[(u64, Vec<u8>)]) -> (Diagnosis, Evidence, Found) {
    let found = analyze(pcap_at(packets));
    let evidence = Evidence {
        set_back: found.analyzer.set_back().times,
        ..Evidence::busiest(found.analyzer.flows()).unwrap()
    };
    let diagnosis = judge(&evidence);
    println!("{diagnosis:?}\n{evidence:#?}");
    (diagnosis, evidence, found)
}

pub(crate) fn verdict(diagnosis: &Diagnosis) -> Option<(Suspect, Certainty)> {
    diagnosis.verdict.map(|(found, certainty)| (found.suspect, certainty))
}

pub(crate) fn share_of(diagnosis: &Diagnosis, suspect: Suspect) -> f64 {
    let all = diagnosis.verdict.map(|(found, _)| found).into_iter().chain(diagnosis.also.clone());
    all.filter(|found| found.suspect == suspect).map(|found| found.share).sum()
}

/// Calls of 3 ms, one each 10 ms, for 5 s; then so many more, which get no reply, and 59 s in which
/// both ends live.
fn hung(calls: u64) -> Tape {
    let mut tape = Tape::default();
    (0..500).for_each(|number| tape.other(number * 10 * MS, 900, 3 * MS));
    (0..calls).for_each(|number| {
        tape.called(5 * SECOND + number * MS, 900);
    });
    for second in 6..65 {
        tape.packet(second * SECOND, 900, true, 0xffff, Vec::new());
        tape.packet(second * SECOND + MS, 900, false, 0xffff, Vec::new());
    }
    tape
}

#[test]
fn a_server_that_answers_no_more_is_the_verdict_and_a_client_that_calls_no_more_is_none() {
    for (calls, certainty) in [(1, Certainty::Sure), (4, Certainty::Sure)] {
        let (diagnosis, evidence, found) = hung(calls).judged();
        assert_eq!(verdict(&diagnosis), Some((Suspect::NoReply, certainty)));
        assert_eq!(evidence.unanswered, calls);
        assert!(evidence.waited.unanswered > 58 * SECOND, "{:?}", evidence.waited);
        let (_, flow) = found.analyzer.flows().iter().next().unwrap();
        let gap: Vec<&Gap> =
            flow.pace.gaps.iter().filter(|gap| gap.cause == Cause::NoReply).collect();
        assert!(matches!(gap[..], [gap] if gap.ns() > 58 * SECOND), "{gap:?}");
    }
    let (diagnosis, evidence, _) = hung(0).judged();
    assert_eq!((evidence.unanswered, evidence.waited.unanswered), (0, 0));
    assert_eq!(verdict(&diagnosis), Some((Suspect::IdleClient, Certainty::Sure)));
}

#[test]
fn a_call_waits_for_a_server_that_answers_no_more_until_the_end_and_for_no_connection_that_ended() {
    let mut tape = hung(1);
    for second in 65..400 {
        tape.packet(second * SECOND, 900, true, 0xffff, Vec::new());
    }
    let (diagnosis, evidence, _) = tape.judged();
    assert_eq!(verdict(&diagnosis), Some((Suspect::NoReply, Certainty::Sure)));
    assert!(evidence.waited.unanswered > 390 * SECOND, "{:?}", evidence.waited);
    tape.events.push((5 * SECOND + 2 * MS, 900, false, RST, 0xffff, Vec::new()));
    assert_eq!(tape.judged().1.waited.unanswered, 0);
}

/// Calls one after the other, each of which takes so long.
fn one_by_one(response_ns: u64) -> Tape {
    let mut tape = Tape::default();
    (0..100).for_each(|number| tape.other(number * (response_ns + MS / 20), 900, response_ns));
    tape
}

#[test]
fn one_call_at_a_time_is_the_servers_where_it_takes_most_of_each_and_the_clients_otherwise() {
    let (diagnosis, ..) = one_by_one(200 * MS).judged();
    let (suspect, _) = verdict(&diagnosis).unwrap();
    assert_eq!(suspect, Suspect::SlowServer);
    assert!(share_of(&diagnosis, Suspect::SlowServer) > 0.95);
    // The same of a server that answers within four round trips.
    let (diagnosis, ..) = one_by_one(MS * 2 / 5).judged();
    assert_eq!(verdict(&diagnosis), Some((Suspect::OneOutstanding, Certainty::Sure)));
}

/// Calls one after the other, of which nine of 20 take so long: a file half of which is in the
/// server's memory. And such WRITEs.
fn two_kinds(long_ns: u64, is_write: bool) -> Tape {
    let (mut tape, mut at) = (Tape::default(), 0);
    for number in 0..400 {
        let response_ns = if number % 20 < 9 { long_ns } else { MS / 5 };
        match is_write {
            true => tape.written(at, 900, response_ns),
            false => tape.other(at, 900, response_ns),
        }
        at += response_ns + MS / 20;
    }
    tape
}

#[test]
fn where_fewer_than_half_of_the_calls_take_most_of_the_time_it_is_they_that_are_waited_for() {
    let of = |long_ns, is_write| {
        let (diagnosis, ..) = two_kinds(long_ns, is_write).judged();
        let suspect = verdict(&diagnosis).unwrap().0;
        (suspect, share_of(&diagnosis, suspect))
    };
    let (suspect, share) = of(60 * MS, false);
    assert_eq!(suspect, Suspect::SlowServer);
    assert!(share > 0.95, "{share}");
    let (suspect, share) = of(60 * MS, true);
    assert_eq!(suspect, Suspect::SlowStableWrite);
    assert!(share > 0.95, "{share}");
    assert_eq!(of(MS / 5, false).0, Suspect::OneOutstanding);
    assert_eq!(of(MS / 5, true).0, Suspect::OneOutstanding);
}

#[test]
fn a_server_that_stands_still_for_its_only_client_is_named_and_its_time_is_no_ones_else() {
    let with = |longest_ns: u64| {
        let mut tape = Tape::default();
        let mut at = 0;
        for number in 0..1_000 {
            let response_ns = if number == 500 { longest_ns } else { 3 * MS };
            tape.other(at, 900, response_ns);
            at += (response_ns + MS).max(10 * MS);
        }
        tape.judged().0
    };
    let stalled = with(30 * SECOND);
    assert_eq!(verdict(&stalled), Some((Suspect::Stalls, Certainty::Possible)));
    assert!(stalled.doubts.contains(&Doubt::FewEvents), "{stalled:?}");
    assert!(share_of(&stalled, Suspect::SlowServer) < 0.1, "{stalled:?}");
    let even = with(3 * MS);
    assert_eq!(share_of(&even, Suspect::Stalls), 0.0, "{even:?}");
    assert_eq!(verdict(&even), Some((Suspect::IdleClient, Certainty::Sure)));
}

/// Eight connections in step: a call takes 80 ms in the server, then the client's window is zero
/// for so long.
fn stopped(zero_ns: u64) -> Tape {
    let mut tape = Tape::default();
    for port in 700..708_u16 {
        tape.other(0, port, MS);
        for number in 0..60 {
            let at = 10 * MS + number * (100 * MS + zero_ns) + u64::from(port - 700) * MS;
            tape.xid += 1;
            tape.says(at, port, &Rpc::Null { xid: tape.xid });
            let reply = Rpc::Nothing { xid: tape.xid }.record();
            let (begin, end) = reply.split_at(10);
            tape.packet(at + 80 * MS, port, false, 0xffff, begin.to_vec());
            tape.packet(at + 80 * MS + 1_000, port, true, 0, Vec::new());
            tape.packet(at + 80 * MS + zero_ns, port, true, 0xffff, Vec::new());
            tape.packet(at + 80 * MS + zero_ns + 1_000, port, false, 0xffff, end.to_vec());
        }
    }
    tape
}

#[test]
fn windows_of_zero_on_several_connections_at_once_are_no_more_time_than_passes() {
    let (diagnosis, ..) = stopped(20 * MS).judged();
    assert_eq!(verdict(&diagnosis).map(|(suspect, _)| suspect), Some(Suspect::SlowServer));
    let zero = share_of(&diagnosis, Suspect::ZeroWindow);
    assert!((0.15..0.3).contains(&zero), "{diagnosis:?}");
    let (diagnosis, ..) = stopped(400 * MS).judged();
    assert_eq!(verdict(&diagnosis), Some((Suspect::ZeroWindow, Certainty::Sure)));
}

#[test]
fn a_window_of_zero_ends_with_its_connection() {
    let of = |is_reset: bool| {
        let mut tape = Tape::default();
        for port in 700..704 {
            tape.called(0, port);
            tape.packet(MS, port, true, 0, Vec::new());
            if is_reset {
                tape.events.push((50 * MS, port, true, RST, 0, Vec::new()));
            }
        }
        (0..200).for_each(|number| tape.other(60 * MS + number * 20 * MS, 800, 15 * MS));
        tape.judged().1.sides[0]
    };
    let (ended, lasting) = (of(true), of(false));
    assert_eq!((ended.zero_windows, lasting.zero_windows), (4, 4));
    assert!(ended.zero_window_ns <= 50 * MS, "{ended:?}");
    assert!(lasting.zero_window_ns > 4 * SECOND, "{lasting:?}");
}

/// Connections on which each WRITE, of half a megabyte, passes within 20 of 100 ms, or all the
/// time; and the server takes the rest.
fn trickling(ports: u16, passes_ns: u64) -> Evidence {
    let mut tape = Tape::default();
    for port in 0..ports {
        let mut at = u64::from(port) * 12 * MS;
        for _ in 0..40 {
            tape.xid += 1;
            let record = Rpc::Write { xid: tape.xid, bytes: 64 << 10 }.record();
            for (place, part) in (0..).zip(record.chunks(4 << 10)) {
                tape.packet(at + place * passes_ns / 16, 700 + port, true, 0xffff, part.to_vec());
            }
            tape.says(at + 100 * MS, 700 + port, &Rpc::Written { xid: tape.xid, bytes: 64 << 10 });
            at += 100 * MS;
        }
    }
    tape.judged().1
}

#[test]
fn messages_on_several_connections_are_on_their_way_for_no_more_than_those_of_one() {
    let share = |evidence: &Evidence| {
        let [client, _] = evidence.sides;
        client.stretch_ns_max * 100 / evidence.waited.all()
    };
    let (one, eight, full) = (trickling(1, 20 * MS), trickling(8, 20 * MS), trickling(8, 95 * MS));
    assert!((15..25).contains(&share(&one)) && (15..25).contains(&share(&eight)));
    assert_ne!(verdict(&judge(&eight)).map(|(suspect, _)| suspect), Some(Suspect::Rate));
    assert_eq!(verdict(&judge(&full)).map(|(suspect, _)| suspect), Some(Suspect::Rate));
}

/// READs over UDP that are retransmitted after 700 ms; the server had got them, or had not.
fn datagrams(is_late: bool) -> Diagnosis {
    let (mut packets, mut at) = (Vec::new(), SECOND);
    for xid in 1..=40 {
        let (call, reply) = (Rpc::Null { xid }, Rpc::Nothing { xid });
        let mut says = |at: u64, rpc: &Rpc| {
            let mut packet = ipv4(17, rpc.is_call(), &udp(rpc.is_call(), &rpc.message()));
            // What is retransmitted is no copy.
            packet[4..6].copy_from_slice(&u16::try_from(packets.len()).unwrap().to_be_bytes());
            packets.push((at, packet));
        };
        says(at, &call);
        says(at + 700 * MS, &call);
        let reply_ns = if is_late { 1_200 * MS } else { 702 * MS };
        says(at + reply_ns, &reply);
        if is_late {
            says(at + 1_300 * MS, &reply);
        }
        at += 1_350 * MS;
    }
    judged(&packets).0
}

#[test]
fn a_server_that_is_slower_than_the_timer_is_slow_and_lost_calls_wait_for_the_timer() {
    let of = |is_late| verdict(&datagrams(is_late)).map(|(suspect, _)| suspect);
    assert_eq!(of(true), Some(Suspect::SlowServer));
    assert_eq!(share_of(&datagrams(true), Suspect::Retransmission), 0.0);
    assert_eq!(of(false), Some(Suspect::Retransmission));
}

/// Calls of 3 ms, one each 10 ms, of which the packets of one end, or both, are there until a time.
fn halved(of_client: Option<bool>, from_ns: u64) -> Vec<(u64, Vec<u8>)> {
    let mut tape = Tape::default();
    for number in 0..1_000 {
        tape.other(number * 10 * MS, 900, 3 * MS);
        // What the server's data are acknowledged by.
        tape.packet(number * 10 * MS + 4 * MS, 900, true, 0xffff, Vec::new());
    }
    let mut packets = tape.captured();
    packets.retain(|(at, packet)| {
        let is_clients = packet[15] == 1;
        *at < SECOND + from_ns || of_client.is_none_or(|of_client| of_client == is_clients)
    });
    packets
}

#[test]
fn where_the_servers_packets_are_missing_it_is_not_idle_nor_slow_but_not_known() {
    let (diagnosis, evidence, _) = judged(&halved(Some(true), 5 * SECOND));
    assert!(diagnosis.doubts.contains(&Doubt::CaptureLost), "{diagnosis:?}");
    assert_eq!(diagnosis.verdict, None, "{diagnosis:?}");
    assert!(evidence.waited.unknown > 4 * SECOND && evidence.sides[1].missing_bytes > 10_000);
    let (diagnosis, evidence, _) = judged(&halved(None, 0));
    assert_eq!(verdict(&diagnosis), Some((Suspect::IdleClient, Certainty::Sure)));
    assert_eq!(evidence.sides[1].missing_bytes, 0);
}

#[test]
fn a_capture_of_one_direction_is_recognized() {
    let one_way = |of_client| {
        let found = analyze(pcap_at(&halved(of_client, 0)));
        (found.analyzer.one_way(), found.analyzer.totals().replies())
    };
    assert_eq!(one_way(Some(true)), ([1, 0], 0));
    assert_eq!(one_way(Some(false)), ([0, 1], 0));
    assert_eq!(one_way(None), ([0, 0], 1_000));
}

#[test]
fn a_clock_that_is_set_back_loses_no_time_and_is_a_doubt() {
    let mut packets = one_by_one(10 * MS).captured();
    let whole = judged(&packets);
    let half = packets.len() / 2;
    packets[half..].iter_mut().for_each(|(at, _)| *at -= 900 * MS);
    let (diagnosis, evidence, found) = judged(&packets);
    let set_back = found.analyzer.set_back();
    assert_eq!((set_back.times, set_back.frame), (1, half as u64 + 1));
    assert!(evidence.waited.all() + 20 * MS > whole.1.waited.all(), "{:?}", evidence.waited);
    assert!(diagnosis.doubts.contains(&Doubt::SetBack), "{diagnosis:?}");
    assert_eq!(whole.2.analyzer.set_back().times, 0);
    assert!(!whole.0.doubts.contains(&Doubt::SetBack), "{:?}", whole.0);
}

#[test]
fn one_long_pause_is_one_event_and_many_short_ones_are_many() {
    let with = |pause_ns: u64, of: u64| {
        let mut tape = Tape::default();
        let mut at = 0;
        for number in 0..200 {
            tape.other(at, 900, MS / 5);
            at += MS / 2 + if number % of == of - 1 { pause_ns } else { 0 };
        }
        verdict(&tape.judged().0)
    };
    assert_eq!(with(3_600 * SECOND, 150), Some((Suspect::IdleClient, Certainty::Possible)));
    assert_eq!(with(SECOND, 10), Some((Suspect::IdleClient, Certainty::Sure)));
}

#[test]
fn calls_that_fail_speak_against_a_cause_and_names_that_do_not_exist_do_not() {
    let doubts = |status: u32| {
        let mut tape = Tape::default();
        for number in 0..100 {
            tape.xid += 1;
            tape.says(number * 10 * MS, 900, &Rpc::Write { xid: tape.xid, bytes: 8 << 10 });
            let failed = Rpc::NotWritten { xid: tape.xid, status };
            tape.says(number * 10 * MS + 9 * MS, 900, &failed);
        }
        let (diagnosis, evidence, _) = tape.judged();
        (diagnosis.doubts.contains(&Doubt::Failed), evidence.failed, evidence.failure)
    };
    assert_eq!(doubts(70), (true, 100, Some((70, 100))));
    assert_eq!(doubts(2), (false, 0, None));
}
