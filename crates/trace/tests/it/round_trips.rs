//! The round trip, by acknowledgements and by replies.

use trace::{Jump, RttOf};

use crate::frames::{RAW, Rpc, WHOLE, analyze, ipv4, pcap, pcap_at, tcp, udp};

const US: u64 = 1_000;

/// WRITEs of two segments each over a round trip of `way_us`, captured at the client; the
/// server needs 700 us for each. The way changes after each part.
fn over_tcp(parts: &[(u32, u64)]) -> Vec<(u64, Vec<u8>)> {
    let (mut packets, mut now, mut sent) = (Vec::new(), 0, [1_u32, 1]);
    let mut xid = 0;
    for &(calls, way_us) in parts {
        for _ in 0..calls {
            xid += 1;
            let call = Rpc::Write { xid, bytes: 2_000 }.record();
            for part in call.chunks(1_448) {
                packets.push((now, ipv4(6, true, &tcp(true, sent[0], sent[1], part))));
                sent[0] += u32::try_from(part.len()).unwrap();
            }
            // The server's kernel acknowledges at once, the reply comes later.
            let acknowledged = now + way_us * US;
            packets.push((acknowledged, ipv4(6, false, &tcp(false, sent[1], sent[0], &[]))));
            let reply = Rpc::Written { xid, bytes: 2_000 }.record();
            let replied = acknowledged + 700 * US;
            packets.push((replied, ipv4(6, false, &tcp(false, sent[1], sent[0], &reply))));
            sent[1] += u32::try_from(reply.len()).unwrap();
            // The client acknowledges with its next call, or, being there, at once.
            packets.push((replied + 5 * US, ipv4(6, true, &tcp(true, sent[0], sent[1], &[]))));
            now = replied + 100 * US;
        }
    }
    packets
}

fn jumps(packets: &[(u64, Vec<u8>)]) -> (Vec<Jump>, [u64; 3]) {
    let found = analyze(pcap_at(packets));
    let (_, rtt) = found.analyzer.flows().round_trips().next().unwrap();
    (rtt.jumps(), RttOf::ALL.map(|of| rtt.times(of).min().as_nanos()))
}

#[test]
fn a_way_that_becomes_longer_is_seen_in_what_the_server_acknowledges() {
    let packets = over_tcp(&[(300, 250), (300, 1_250), (300, 250)]);
    let (jumps, least) = jumps(&packets);
    assert_eq!(least[..2], [250 * US, 5 * US]);
    let [up, down] = jumps[..] else { panic!("{jumps:?}") };
    assert_eq!((up.of, up.before_ns, up.after_ns), (RttOf::Server, 250 * US, 1_250 * US));
    assert_eq!((down.before_ns, down.after_ns), (1_250 * US, 250 * US));
    let begun = 1_000_000_000_000 + 300 * 1_050 * US;
    assert!(up.at_ns.abs_diff(begun) < 80_000 * US, "{up:?}");
}

#[test]
fn a_way_that_stays_has_no_jumps_and_what_was_sent_again_no_time() {
    let mut packets = over_tcp(&[(500, 250)]);
    // Every call once more, 100 us behind: its acknowledgement is of either.
    let mut again = packets.clone();
    again.retain(|(_, packet)| packet.len() > 1_400);
    again.iter_mut().for_each(|(at, _)| *at += 100 * US);
    packets.append(&mut again);
    packets.sort_by_key(|(at, _)| *at);
    let found = analyze(pcap_at(&packets));
    let (_, rtt) = found.analyzer.flows().round_trips().next().unwrap();
    assert_eq!(rtt.jumps(), []);
    assert_eq!(rtt.times(RttOf::Server).count(), 0);
}

#[test]
fn over_udp_the_replies_to_light_calls_tell_a_jump() {
    let mut packets = Vec::new();
    let mut now = 0;
    for xid in 0..600 {
        let us = if xid < 300 { 400 } else { 3_400 };
        let call = Rpc::Lookup { xid, name: "f".into() }.message();
        let reply = Rpc::Found { xid, handle: 4 }.message();
        packets.push((now, ipv4(17, true, &udp(true, &call))));
        packets.push((now + us * US, ipv4(17, false, &udp(false, &reply))));
        now += (us + 50) * US;
    }
    let (jumps, _) = jumps(&packets);
    let [jump] = jumps[..] else { panic!("{jumps:?}") };
    assert_eq!((jump.of, jump.before_ns, jump.after_ns), (RttOf::Replies, 400 * US, 3_400 * US));
}

#[test]
fn the_handshake_is_a_round_trip_too() {
    let segment = |from_client, seq, ack, flags: u8, payload: &[u8]| {
        let mut segment = tcp(from_client, seq, ack, payload);
        segment[13] = flags;
        ipv4(6, from_client, &segment)
    };
    let call = Rpc::Null { xid: 1 }.record();
    let reply = Rpc::Nothing { xid: 1 }.record();
    let behind = 101 + u32::try_from(call.len()).unwrap();
    // A microsecond apart each.
    let packets = [
        segment(true, 100, 0, 0x02, &[]),
        segment(false, 900, 101, 0x12, &[]),
        segment(true, 101, 901, 0x10, &[]),
        segment(true, 101, 901, 0x18, &call),
        segment(false, 901, behind, 0x18, &reply),
    ];
    let found = analyze(pcap(RAW, &packets, WHOLE));
    let (_, rtt) = found.analyzer.flows().round_trips().next().unwrap();
    assert_eq!(rtt.times(RttOf::Server).count(), 1);
    assert_eq!(rtt.times(RttOf::Client).min().as_nanos(), 1_000);
}

#[test]
fn a_jump_between_two_connections_is_one_of_their_hosts() {
    let port = |(at, mut packet): (u64, Vec<u8>), behind: u64| {
        // The client's port, in the header behind the 20 bytes of IP.
        let at_client = if packet[15] == 1 { 20 } else { 22 };
        packet[at_client..at_client + 2].copy_from_slice(&[3, 200]);
        (at + behind, packet)
    };
    let mut packets = over_tcp(&[(300, 250)]);
    let behind = packets.last().unwrap().0 + 5_000 * US;
    packets.extend(over_tcp(&[(300, 2_250)]).into_iter().map(|one| port(one, behind)));
    let found = analyze(pcap_at(&packets));
    assert_eq!(found.analyzer.flows().iter().count(), 2);
    let all: Vec<_> = found.analyzer.flows().round_trips().collect();
    let [(name, rtt)] = &all[..] else { panic!("{} pairs", all.len()) };
    assert_eq!(name, "10.0.0.1 -> 10.0.0.2:2049");
    let jumps = rtt.jumps();
    let [jump] = jumps[..] else { panic!("{jumps:?}") };
    assert_eq!((jump.before_ns, jump.after_ns), (250 * US, 2_250 * US));
}
