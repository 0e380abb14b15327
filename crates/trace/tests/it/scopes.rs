//! What counts once, what a filter leaves out, and where in a file it is.

use std::io::Cursor;

use trace::capture::Capture;
use trace::{Analyzer, Cause, Filter, RttOf};

use crate::frames::{Rpc, analyze, ipv4, pcap_at, tcp, tcp_with};

const MS: u64 = 1_000_000;

/// The same packet between two other ends: addresses end in `hosts`, ports are `ports`.
pub(crate) fn moved(mut packet: Vec<u8>, hosts: [u8; 2], ports: [u16; 2]) -> Vec<u8> {
    let is_call = packet[15] == 1;
    let (from, to) = if is_call { (0, 1) } else { (1, 0) };
    (packet[15], packet[19]) = (hosts[from], hosts[to]);
    packet[20..22].copy_from_slice(&ports[from].to_be_bytes());
    packet[22..24].copy_from_slice(&ports[to].to_be_bytes());
    packet
}

/// WRITEs and LOOKUPs in turn, each answered after a millisecond.
fn conversation(calls: u32) -> Vec<(u64, Vec<u8>)> {
    numbered(0, calls)
}

/// The same with numbers from there on.
fn numbered(from: u32, calls: u32) -> Vec<(u64, Vec<u8>)> {
    let (mut packets, mut sent) = (Vec::new(), [1_u32, 1]);
    for turn in 1..=calls {
        let xid = from + turn;
        let exchange = match xid % 2 {
            0 => [Rpc::Write { xid, bytes: 900 }, Rpc::Written { xid, bytes: 900 }],
            _ => [Rpc::Lookup { xid, name: "f".into() }, Rpc::Found { xid, handle: 5 }],
        };
        for (side, rpc) in exchange.into_iter().enumerate() {
            let record = rpc.record();
            let segment = tcp(side == 0, sent[side], sent[1 - side], &record);
            let at = u64::from(turn) * 2 * MS + side as u64 * MS;
            packets.push((at, ipv4(6, side == 0, &segment)));
            sent[side] += u32::try_from(record.len()).unwrap();
        }
    }
    packets
}

fn filtered(packets: &[(u64, Vec<u8>)], filter: Filter) -> Analyzer {
    let mut capture = Capture::open("a file", Box::new(Cursor::new(pcap_at(packets)))).unwrap();
    let mut analyzer = Analyzer::new(filter);
    while capture.advance().unwrap() {
        analyzer.packet(&capture.packet().unwrap(), &mut |_, _, _| {});
    }
    analyzer.end();
    analyzer
}

/// Calls, those without reply, and replies without call.
fn counts(analyzer: &Analyzer) -> (u64, u64, u64) {
    let unsolicited = analyzer.flows().iter().map(|(_, flow)| flow.unsolicited_replies).sum();
    (analyzer.totals().calls(), analyzer.totals().unanswered, unsolicited)
}

#[test]
fn a_filter_makes_no_lost_calls_of_what_it_leaves_out() {
    let mut packets = conversation(20);
    let other = numbered(1_000, 20).into_iter();
    packets.extend(other.map(|(at, packet)| (at + 10, moved(packet, [1, 3], [901, 2049]))));
    packets.sort_by_key(|(at, _)| *at);
    let operations = Filter { operations: vec!["WRITE".into()], ..Filter::default() };
    let server = |text: &str| Filter { servers: vec![text.parse().unwrap()], ..Filter::default() };
    // In the middle of a call.
    let until = Filter { until_ns: Some(20 * MS + MS / 2), ..Filter::default() };
    let file = Filter { file: Some("00000001".into()), ..Filter::default() };
    for (filter, calls) in [
        (Filter::default(), 40),
        (operations, 20),
        (server("10.0.0.3"), 20),
        (server("10.0.0.3:2049"), 20),
        (server("[::ffff:10.0.0.2]:2049"), 20),
        (server("10.0.0.3:900"), 0),
        (until, 22),
        (file, 20),
    ] {
        let text = format!("{filter:?}");
        assert_eq!(counts(&filtered(&packets, filter)), (calls, 0, 0), "{text}");
    }
    // What is lost indeed is reported, of the operation that was requested.
    packets.retain(|(at, packet)| !(*at > 30 * MS && packet[15] == 3));
    let lost = |operation: &str| {
        let filter = Filter { operations: vec![operation.into()], ..server("10.0.0.3") };
        counts(&filtered(&packets, filter))
    };
    assert_eq!((lost("WRITE"), lost("LOOKUP")), ((10, 3, 0), (10, 3, 0)));
}

#[test]
fn the_pace_is_of_all_operations_whatever_is_requested() {
    let packets = conversation(60);
    let all = filtered(&packets, Filter::default());
    let writes = Filter { operations: vec!["WRITE".into()], ..Filter::default() };
    let writes = filtered(&packets, writes);
    let think = |analyzer: &Analyzer| {
        let (_, flow) = analyzer.flows().iter().next().unwrap();
        (flow.pace.think.count(), flow.pace.think.quantile(0.5))
    };
    assert_eq!(think(&all), think(&writes));
}

#[test]
fn what_happens_before_the_selected_time_begins_nothing_and_is_no_round_trip() {
    let bare = |ns, window| (ns, ipv4(6, false, &tcp_with(false, 1, 1, window, &[])));
    let waited = |packets: &[(u64, Vec<u8>)], from_ns| {
        let analyzer = filtered(packets, Filter { from_ns, ..Filter::default() });
        let (pair, _) = analyzer.flows().pairs().next().unwrap();
        (pair.pace.waited.all(), pair.rtt.times(RttOf::Server).count())
    };
    let plain = conversation(60);
    let mut stopped = plain.clone();
    // The first call is acknowledged, with a window of zero, and then another one.
    let end = 1 + u32::try_from(plain[0].1.len() - 40).unwrap();
    let ack = tcp_with(false, 1, end, 0, &[]);
    stopped.extend([(2 * MS + MS / 2, ipv4(6, false, &ack)), bare(2 * MS + MS / 2 + 1, 9)]);
    stopped.sort_by_key(|(at, _)| *at);
    let from = Some(60 * MS);
    assert_eq!(waited(&stopped, from), waited(&plain, from));
    // In the time that is selected it is one.
    assert_eq!((waited(&stopped, None).1, waited(&plain, None).1), (1, 0));
}

#[test]
fn both_sides_of_a_relay_are_one_conversation_and_two_clients_are_not() {
    let outer = conversation(30);
    // The relay passes a call on after 100 us, and has the reply 100 us before its client.
    let inner = outer.iter().map(|(at, packet)| {
        let at = if packet[15] == 1 { at + MS / 10 } else { at - MS / 10 };
        (at, moved(packet.clone(), [2, 9], [50_000, 2049]))
    });
    let mut packets: Vec<_> = outer.iter().cloned().chain(inner).collect();
    packets.sort_by_key(|(at, _)| *at);
    let analyzer = filtered(&packets, Filter::default());
    assert_eq!(counts(&analyzer), (30, 0, 0));
    assert_eq!(analyzer.totals().passed_on, 30);
    let (pair, _) = analyzer.flows().pairs().find(|(pair, _)| pair.relay.whole_ns > 0).unwrap();
    assert_eq!(pair.relay.added.quantile(0.5).as_nanos(), MS / 5);
    assert_eq!(pair.hosts.unwrap().client().to_string(), "10.0.0.1");
    // Another client that says the same with other numbers is another client.
    let other = numbered(1_000, 30).into_iter();
    let mut packets = outer;
    packets.extend(other.map(|(at, packet)| (at, moved(packet, [7, 9], [800, 2049]))));
    packets.sort_by_key(|(at, _)| *at);
    let analyzer = filtered(&packets, Filter::default());
    assert_eq!(counts(&analyzer).0, 60);
    assert_eq!(analyzer.totals().passed_on, 0);
}

#[test]
fn what_a_relay_passes_on_belongs_to_the_time_at_which_its_client_made_the_call() {
    let outer = conversation(30);
    // The relay passes a call on so late that a selection may begin meanwhile.
    let inner = outer.iter().map(|(at, packet)| {
        let at = if packet[15] == 1 { at + MS / 2 } else { at - MS / 10 };
        (at, moved(packet.clone(), [2, 9], [50_000, 2049]))
    });
    let mut packets: Vec<_> = outer.iter().cloned().chain(inner).collect();
    packets.sort_by_key(|(at, _)| *at);
    let between = |from_ns, until_ns| {
        let analyzer = filtered(&packets, Filter { from_ns, until_ns, ..Filter::default() });
        (counts(&analyzer), analyzer.totals().passed_on)
    };
    // The first call is made at 0, and the sixteenth at 30 ms.
    let middle = Some(30 * MS + MS / 4);
    assert_eq!(between(None, middle), ((16, 0, 0), 16));
    assert_eq!(between(middle, None), ((14, 0, 0), 14));
}

#[test]
fn a_call_a_reply_and_a_gap_say_in_which_packets_they_are() {
    let mut packets = conversation(40);
    packets[60..].iter_mut().for_each(|(at, _)| *at += 500 * MS);
    let found = analyze(pcap_at(&packets));
    for (number, transaction) in (0..).zip(&found.transactions) {
        let frames = (transaction.call_frame, transaction.reply_frame);
        assert_eq!(frames, (2 * number + 1, 2 * number + 2));
        assert_eq!(transaction.version, 3);
    }
    let (_, flow) = found.analyzer.flows().iter().next().unwrap();
    let [gap] = flow.pace.gaps[..] else { panic!("{:?}", flow.pace.gaps) };
    assert_eq!((gap.begin_frame, gap.end_frame), (60, 62));
}

#[test]
fn a_hole_that_is_filled_is_recovery_while_others_stay_open() {
    let mut packets = conversation(40);
    let end = packets.last().unwrap().0;
    let seqs = packets.iter().filter(|(_, packet)| packet[15] == 1);
    let begin: usize = 1 + seqs.map(|(_, packet)| packet.len() - 40).sum::<usize>();
    let reply: usize = 1 + packets
        .iter()
        .filter(|(_, packet)| packet[15] == 2)
        .map(|(_, packet)| packet.len() - 40)
        .sum::<usize>();
    let call = Rpc::Write { xid: 500, bytes: 9_000 }.record();
    let number = |at: usize| u32::try_from(at).unwrap();
    let part = |from: usize, to: usize| {
        ipv4(6, true, &tcp(true, number(begin + from), number(reply), &call[from..to]))
    };
    // Of six parts the first, the third and the fifth are missing; the server requests the first.
    let parts: Vec<usize> = (0..=6).map(|part| call.len() * part / 6).collect();
    for at in [1, 3, 5] {
        packets.push((end + MS, part(parts[at], parts[at + 1])));
        let asks = tcp(false, number(reply), number(begin), &[]);
        packets.push((end + MS + 50, ipv4(6, false, &asks)));
    }
    // The first comes again after 200 ms, and in the same gap nothing else.
    packets.push((end + 200 * MS, part(parts[0], parts[1])));
    packets.push((end + 210 * MS, part(parts[2], parts[3])));
    packets.push((end + 220 * MS, part(parts[4], parts[5])));
    let written = Rpc::Written { xid: 500, bytes: 9_000 }.record();
    let segment = tcp(false, number(reply), number(begin + call.len()), &written);
    packets.push((end + 221 * MS, ipv4(6, false, &segment)));
    let found = analyze(pcap_at(&packets));
    let (_, flow) = found.analyzer.flows().iter().next().unwrap();
    assert_eq!((flow.streams.filled, flow.streams.again), (3, 0));
    let [gap] = flow.pace.gaps[..] else { panic!("{:?}", flow.pace.gaps) };
    assert_eq!(gap.cause, Cause::TcpRecovery);
}

#[test]
fn what_is_rare_has_its_points_among_what_is_frequent() {
    let mut packets = conversation(2);
    let mut sent = [5_000_u32, 5_000];
    for xid in 10..30_000_u32 {
        let exchange = match xid {
            15_000 => [Rpc::Commit { xid }, Rpc::Committed { xid }],
            _ => [Rpc::Null { xid }, Rpc::Nothing { xid }],
        };
        for (side, rpc) in exchange.into_iter().enumerate() {
            let record = rpc.record();
            let segment = tcp(side == 0, sent[side], sent[1 - side], &record);
            packets.push((u64::from(xid) * MS + side as u64, ipv4(6, side == 0, &segment)));
            sent[side] += u32::try_from(record.len()).unwrap();
        }
    }
    packets.retain(|(at, _)| *at > 9 * MS);
    let found = analyze(pcap_at(&packets));
    let totals = found.analyzer.totals();
    for (operation, total) in totals.operations() {
        let points = found.analyzer.series().points_of(operation).len() as u64;
        assert!(points > 0 && points >= total.replies.min(1_000), "{operation}: {points}");
    }
}
