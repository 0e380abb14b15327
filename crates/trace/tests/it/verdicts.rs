//! Verdicts on what only segments show: losses at either end of them, losses of the capture itself,
//! a receiver that does not read. Those on messages: `crates/world/tests/it/verdicts.rs`.

use trace::verdict::{Certainty, Diagnosis, Doubt, Evidence, Suspect, judge};

use crate::frames::{Found, Rpc, analyze, ipv4, pcap_at, tcp, tcp_with};
use crate::network::{At, Network};
use crate::scopes::moved;

const MS: u64 = 1_000_000;

fn diagnosed(packets: &[(u64, Vec<u8>)]) -> (Diagnosis, Evidence, Found) {
    let found = analyze(pcap_at(packets));
    let evidence = Evidence::busiest(found.analyzer.flows()).unwrap();
    let diagnosis = judge(&evidence);
    println!("{diagnosis:?}\n{evidence:#?}");
    (diagnosis, evidence, found)
}

fn suspect(diagnosis: &Diagnosis) -> Option<Suspect> {
    diagnosis.verdict.map(|(found, _)| found.suspect)
}

#[test]
fn losses_are_the_verdict_at_either_end_and_it_says_on_which_side_of_the_capture_they_were() {
    let lossy = Network { lost_of: 100, ..Network::default() };
    for (at, is_behind) in [(At::Client, true), (At::Server, false)] {
        let (diagnosis, evidence, _) = diagnosed(&lossy.captured(at));
        assert_eq!(suspect(&diagnosis), Some(Suspect::Loss), "{at:?}: {diagnosis:?}");
        assert!(diagnosis.verdict.unwrap().1 >= Certainty::Likely, "{diagnosis:?}");
        let [client, server] = evidence.sides;
        assert_eq!((server.again, server.filled), (0, 0));
        assert_eq!((client.again > 0, client.filled > 0), (is_behind, !is_behind), "{client:?}");
        assert!((0.006..0.014).contains(&evidence.loss(0)), "{}", evidence.loss(0));
    }
}

#[test]
fn without_losses_there_is_none_and_segments_that_overtake_each_other_are_none() {
    for network in [Network::default(), Network { late_of: 50, ..Network::default() }] {
        for at in [At::Client, At::Server] {
            let (diagnosis, evidence, _) = diagnosed(&network.captured(at));
            assert_ne!(suspect(&diagnosis), Some(Suspect::Loss), "{network:?} {diagnosis:?}");
            assert_eq!(evidence.loss(0), 0.0, "{network:?} {at:?}");
        }
    }
}

#[test]
fn what_the_capture_lost_the_network_did_not_and_no_call_took_no_time() {
    let mut packets = Network { calls: 600, ..Network::default() }.captured(At::Client);
    let all = analyze(pcap_at(&packets));
    let mut number = 0_u32;
    packets.retain(|_| {
        number += 1;
        !number.is_multiple_of(50)
    });
    let (diagnosis, evidence, found) = diagnosed(&packets);
    assert_ne!(suspect(&diagnosis), Some(Suspect::Loss), "{diagnosis:?}");
    assert_eq!(evidence.loss(0), 0.0);
    assert!(diagnosis.doubts.contains(&Doubt::CaptureLost), "{diagnosis:?}");
    // Calls whose last segment is missing have no time, and those that have one have a true one.
    assert!(evidence.untimed > 5, "{evidence:?}");
    let least =
        |found: &Found| found.transactions.iter().filter_map(|t| t.latency()).min().unwrap();
    assert!(least(&found).as_nanos() >= least(&all).as_nanos(), "{:?}", least(&found));
    let totals = found.analyzer.totals();
    let (_, writes) = totals.operations().next().unwrap();
    assert_eq!(writes.latency.count(), writes.replies - writes.untimed);
    assert_eq!(writes.untimed, evidence.untimed);
}

#[test]
fn where_too_much_was_cut_off_nothing_is_reported_and_where_little_was_it_is() {
    let lossy = Network { lost_of: 100, ..Network::default() };
    let (whole, mut evidence, _) = diagnosed(&lossy.captured(At::Client));
    let replies: u64 = evidence.works.iter().map(|work| work.calls).sum();
    evidence.sides[0].cut = replies / 20;
    let little = judge(&evidence);
    assert_eq!(suspect(&little), suspect(&whole));
    assert!(little.doubts.contains(&Doubt::CaptureCut), "{little:?}");
    evidence.sides[1].cut = replies / 10;
    let much = judge(&evidence);
    let nothing = Diagnosis { verdict: None, doubts: vec![Doubt::CaptureCut], also: vec![] };
    assert_eq!(much, nothing);
}

/// WRITEs of 32 KiB in one packet each, as a card cuts them: of 50 one is retransmitted 3 ms later,
/// and the server has had it before or not.
fn joined(is_had: bool) -> Vec<(u64, Vec<u8>)> {
    let (mut packets, mut sent) = (Vec::new(), [1_u32, 1]);
    for xid in 1..=400_u32 {
        let now = u64::from(xid) * 5 * MS;
        let (call, reply) = (Rpc::Write { xid, bytes: 32 << 10 }, Rpc::Written { xid, bytes: 9 });
        let call = tcp(true, sent[0], sent[1], &call.record());
        sent[0] += u32::try_from(call.len()).unwrap() - 20;
        packets.push((now, ipv4(6, true, &call)));
        let mut ack = tcp(false, sent[1], sent[0], &[]);
        if xid.is_multiple_of(50) {
            packets.push((now + 3 * MS, ipv4(6, true, &call)));
            if is_had {
                // Two that do nothing, and one block.
                ack[12] = 0x80;
                ack.extend([1, 1, 5, 10]);
                let begin = sent[0] - (u32::try_from(call.len()).unwrap() - 20);
                ack.extend([begin, sent[0]].iter().flat_map(|number| number.to_be_bytes()));
            }
        }
        packets.push((now + 3 * MS + MS / 10, ipv4(6, false, &ack)));
        let reply = reply.record();
        let segment = tcp(false, sent[1], sent[0], &reply);
        packets.push((now + 3 * MS + MS / 5, ipv4(6, false, &segment)));
        sent[1] += u32::try_from(reply.len()).unwrap();
    }
    for ((_, packet), id) in packets.iter_mut().zip(1_u16..) {
        packet[4..6].copy_from_slice(&id.to_be_bytes());
    }
    packets
}

#[test]
fn a_packet_that_a_card_cuts_is_as_many_lost_segments_and_one_that_had_come_is_none() {
    let of = |is_had| {
        let (_, evidence, _) = diagnosed(&joined(is_had));
        let side = evidence.sides[0];
        (evidence.loss(0), side.again > 0, side.had > 0)
    };
    let (lost, again, had) = of(false);
    assert!((0.018..0.021).contains(&lost), "{lost}");
    assert_eq!((again, had), (true, false));
    assert_eq!(of(true), (0.0, false, true));
}

/// A server that needs 40 ms for one call of six, and announces a window of zero meanwhile or not.
fn stopped(is_zero: bool) -> Vec<(u64, Vec<u8>)> {
    let (mut packets, mut now, mut sent, mut xid) = (Vec::new(), 0, [1_u32, 1], 0);
    let mut says = |now: u64, rpc: &Rpc, window: u16| {
        let (own, record) = (usize::from(!rpc.is_call()), rpc.record());
        let segment = tcp_with(own == 0, sent[own], sent[1 - own], window, &record);
        packets.push((now, ipv4(6, own == 0, &segment)));
        sent[own] += u32::try_from(record.len()).unwrap();
        let (own, other) = (sent[1 - own], sent[own]);
        let is_call = rpc.is_call();
        // The other end acknowledges.
        let window = if is_call && is_zero && record.len() > 30_000 { 0 } else { 0xffff };
        let ack = tcp_with(!is_call, own, other, window, &[]);
        packets.push((now + MS / 10, ipv4(6, !is_call, &ack)));
    };
    for _ in 0..40 {
        for _ in 0..5 {
            xid += 1;
            says(now, &Rpc::Lookup { xid, name: "f".into() }, 0xffff);
            says(now + MS / 2, &Rpc::Found { xid, handle: 5 }, 0xffff);
            now += MS;
        }
        xid += 1;
        says(now, &Rpc::Write { xid, bytes: 32_000 }, 0xffff);
        now += 40 * MS;
        says(now, &Rpc::Written { xid, bytes: 32_000 }, 0xffff);
        now += MS;
    }
    packets.sort_by_key(|(at, _)| *at);
    packets
}

#[test]
fn a_window_of_zero_is_the_verdict_and_the_same_wait_without_one_is_the_disks() {
    let (diagnosis, evidence, _) = diagnosed(&stopped(true));
    assert_eq!(suspect(&diagnosis), Some(Suspect::ZeroWindow), "{diagnosis:?}");
    assert_eq!(diagnosis.verdict.unwrap().1, Certainty::Sure);
    let [client, server] = evidence.sides;
    assert_eq!((client.zero_windows, server.zero_windows), (0, 40));
    let (diagnosis, ..) = diagnosed(&stopped(false));
    assert_eq!(suspect(&diagnosis), Some(Suspect::SlowStableWrite), "{diagnosis:?}");
}

/// Eight WRITEs of 16 KiB outstanding behind a relay, which acknowledges at once: what a call waits
/// for takes it 1.4 ms, one after the other. That is the link behind the relay with a round trip of
/// 1 ms, or a server to which there is none. Packets of both sides, or of the client's alone.
fn relayed(is_link: bool, sees_both: bool) -> Vec<(u64, Vec<u8>)> {
    const BYTES: u32 = 16 << 10;
    let (mut packets, mut sent, mut done) = (Vec::new(), [1_u32, 1], Vec::<u64>::new());
    let mut says = |now: u64, rpc: &Rpc, inner: u64| {
        let (own, record) = (usize::from(!rpc.is_call()), rpc.record());
        let segment = ipv4(6, own == 0, &tcp(own == 0, sent[own], sent[1 - own], &record));
        sent[own] += u32::try_from(record.len()).unwrap();
        if sees_both {
            packets.push((inner, moved(segment.clone(), [2, 9], [50_000, 2049])));
        }
        packets.push((now, segment));
        let ack = tcp(own == 1, sent[1 - own], sent[own], &[]);
        packets.push((now + MS / 50, ipv4(6, own == 1, &ack)));
    };
    let mut events = Vec::new();
    for xid in 0..400_u32 {
        let begin = (xid as usize).checked_sub(8).map_or(0, |before| done[before]);
        let free = done.last().copied().unwrap_or(0);
        let end = (begin + if is_link { MS } else { 0 }).max(free) + MS * 7 / 5;
        done.push(end);
        let (passed, back) = if is_link { (end - MS / 2, end - MS / 4) } else { (begin, end) };
        let exchange = (Rpc::Write { xid, bytes: BYTES }, Rpc::Written { xid, bytes: BYTES });
        events.push((begin + u64::from(xid) * 10, exchange.0, passed.max(begin + 5_000)));
        events.push((end, exchange.1, back - 5_000));
    }
    events.sort_by_key(|(at, ..)| *at);
    events.iter().for_each(|(at, rpc, inner)| says(MS + at, rpc, MS + inner));
    packets.sort_by_key(|(at, _)| *at);
    packets
}

#[test]
fn a_full_link_behind_a_relay_is_not_the_servers_and_a_slow_server_behind_one_is() {
    let (diagnosis, evidence, _) = diagnosed(&relayed(true, true));
    // One in a few hundred finds its place among those that are remembered taken.
    assert!(evidence.relayed > 380, "{}", evidence.relayed);
    let (found, certainty) = diagnosis.verdict.unwrap();
    assert_eq!((found.suspect, certainty >= Certainty::Likely), (Suspect::Rate, true));
    let is_servers = |suspect| matches!(suspect, Suspect::SlowServer | Suspect::SlowStableWrite);
    assert!(!diagnosis.also.iter().any(|one| is_servers(one.suspect)), "{diagnosis:?}");
    let (diagnosis, ..) = diagnosed(&relayed(false, true));
    assert_eq!(suspect(&diagnosis), Some(Suspect::SmallSyncs), "{diagnosis:?}");
}
