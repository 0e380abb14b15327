//! What stands before TCP and UDP.

use trace::Cut;
use trace::verdict::{Doubt, Evidence, judge};

use crate::frames::{RAW, Rpc, WHOLE, analyze, fragment4, ipv4, pcap, pcap_at, tcp, udp};

/// A call and its reply, as packets of IPv4 over UDP.
fn pair() -> [Vec<u8>; 2] {
    let call = Rpc::Null { xid: 5 }.message();
    let reply = Rpc::Nothing { xid: 5 }.message();
    [ipv4(17, true, &udp(true, &call)), ipv4(17, false, &udp(false, &reply))]
}

fn behind(head: &[u8]) -> Vec<Vec<u8>> {
    pair().map(|packet| [head, &packet].concat()).into()
}

fn is_found(link: u32, packets: &[Vec<u8>]) {
    let found = analyze(pcap(link, packets, WHOLE));
    assert_eq!(found.transactions.len(), 1, "link type {link}");
}

#[test]
fn every_link_layer_is_read() {
    let ethernet = |kinds: &[u8]| [&[1; 12][..], kinds].concat();
    is_found(1, &behind(&ethernet(&[8, 0])));
    is_found(1, &behind(&ethernet(&[0x81, 0, 0, 7, 8, 0])));
    is_found(1, &behind(&ethernet(&[0x88, 0xa8, 0, 7, 0x81, 0, 0, 9, 8, 0])));
    is_found(113, &behind(&[&[0; 14][..], &[8, 0]].concat()));
    is_found(276, &behind(&[&[8, 0][..], &[0; 18]].concat()));
    is_found(0, &behind(&[2, 0, 0, 0]));
    is_found(108, &behind(&[0, 0, 0, 2]));
    is_found(RAW, &behind(&[]));
    is_found(228, &behind(&[]));
    // The length of the frame check sequence, which the file has, and its flag.
    is_found(0x2400_0001, &behind(&ethernet(&[8, 0])));
}

#[test]
fn padding_and_check_sequences_behind_the_datagram_are_no_payload() {
    let packets: Vec<Vec<u8>> =
        pair().into_iter().map(|packet| [&packet[..], &[0xee; 9]].concat()).collect();
    is_found(RAW, &packets);
}

#[test]
fn fragments_come_together_in_any_order_and_cut_off() {
    let call = udp(true, &Rpc::Write { xid: 5, bytes: 5_000 }.message());
    let reply = udp(false, &Rpc::Written { xid: 5, bytes: 5_000 }.message());
    let (one, two) = (&call[..1480], &call[1480..2960]);
    let fragments = [
        fragment4(17, true, &call[2960..], 2960, false),
        fragment4(17, true, two, 1480, true),
        fragment4(17, true, one, 0, true),
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0], [1, 0, 2]] {
        let mut packets: Vec<Vec<u8>> = order.map(|at| fragments[at].clone()).into();
        packets.push(ipv4(17, false, &reply));
        for snap in [WHOLE, 300] {
            let found = analyze(pcap(RAW, &packets, snap));
            assert_eq!(found.transactions.len(), 1, "{order:?} {snap}");
            assert_eq!(found.transactions[0].bytes, 5_000);
        }
    }
}

/// IPv6 with these extension headers, of which `first` is the first.
fn ipv6(from_client: bool, first: u8, carried: &[u8]) -> Vec<u8> {
    let mut ip = vec![0x60, 0, 0, 0];
    ip.extend(u16::try_from(carried.len()).unwrap().to_be_bytes());
    ip.extend([first, 64]);
    let (own, peer) = if from_client { (1, 2) } else { (2, 1) };
    ip.extend([&[0xfd; 15][..], &[own], &[0xfd; 15], &[peer]].concat());
    ip.extend(carried);
    ip
}

#[test]
fn extension_headers_and_fragments_of_version_6_are_read() {
    let call = udp(true, &Rpc::Write { xid: 5, bytes: 3_000 }.message());
    let reply = udp(false, &Rpc::Written { xid: 5, bytes: 3_000 }.message());
    let fragment = |data: &[u8], offset: u16, more: bool| {
        // hop-by-hop, then a fragment header, then UDP
        let hops = [44, 0, 1, 4, 0, 0, 0, 0];
        let [a, b] = (offset | u16::from(more)).to_be_bytes();
        ipv6(true, 0, &[&hops[..], &[17, 0, a, b, 0, 0, 0, 9], data].concat())
    };
    let packets = [
        fragment(&call[1440..], 1440, false),
        fragment(&call[..1440], 0, true),
        ipv6(false, 17, &reply),
    ];
    let found = analyze(pcap(RAW, &packets, WHOLE));
    assert_eq!(found.transactions.len(), 1);
    assert_eq!(found.transactions[0].bytes, 3_000);
}

#[test]
fn segments_that_the_card_is_to_cut_have_no_length_in_the_header() {
    let record = Rpc::Write { xid: 5, bytes: 60_000 }.record();
    let mut call = ipv4(6, true, &tcp(true, 1, 1, &record));
    call[2..4].copy_from_slice(&[0, 0]);
    let reply = Rpc::Written { xid: 5, bytes: 60_000 }.record();
    is_found(RAW, &[call, ipv4(6, false, &tcp(false, 1, 1, &reply))]);
}

#[test]
fn packets_cut_off_by_a_snap_length_still_have_their_heads_and_times() {
    let exchanges: Vec<(Rpc, Rpc)> = (0..50)
        .map(|xid| (Rpc::Write { xid, bytes: 8192 }, Rpc::Written { xid, bytes: 8192 }))
        .collect();
    let (mut sent, mut packets) = ([1_u32, 1], Vec::new());
    for (call, reply) in &exchanges {
        for (direction, message) in [call, reply].into_iter().enumerate() {
            let record = message.record();
            for segment in record.chunks(1448) {
                let segment = tcp(direction == 0, sent[direction], 0, segment);
                packets.push(ipv4(6, direction == 0, &segment));
                sent[direction] += u32::try_from(segment.len() - 20).unwrap();
            }
        }
    }
    let found = analyze(pcap(RAW, &packets, 192));
    assert_eq!(found.transactions.len(), 50);
    assert!(
        found
            .transactions
            .iter()
            .all(|t| t.bytes == 8192 && t.latency().unwrap().as_nanos() == 1000)
    );
    let sync = |snap| analyze(pcap(RAW, &packets, snap)).analyzer.totals().sync;
    assert_eq!((sync(192).writes, sync(192).unknown), ([0, 0, 50], 0));
    // In the middle of the arguments: neither their sizes nor what they want is known.
    assert_eq!((sync(118).writes, sync(118).unknown), ([0; 3], 50));
    assert_eq!((sync(118).small_writes, sync(118).written_bytes), (0, 0));
}

#[test]
fn packets_that_end_in_their_headers_are_cut_off_and_not_damaged() {
    let packets = [ipv4(6, true, &tcp(true, 1, 1, &[0; 100])), ipv4(6, false, &[0; 10])];
    let found = analyze(pcap(RAW, &packets, 36));
    let others: Vec<_> = found.analyzer.others().collect();
    assert_eq!(others, [("cut off", 1), ("damaged", 1)]);
    assert_eq!(found.analyzer.cut(), Cut { packets: 1, captured_max: 36 });
}

#[test]
fn messages_that_begin_where_a_packet_was_cut_off_are_reported() {
    let exchange = |xid| (Rpc::Write { xid, bytes: 8192 }, Rpc::Written { xid, bytes: 8192 });
    let (calls, replies): (Vec<Rpc>, Vec<Rpc>) = (0..4).map(exchange).unzip();
    let records = |rpcs: &[Rpc]| rpcs.iter().flat_map(Rpc::record).collect::<Vec<u8>>();
    // As on a loopback: four calls in one segment, and their replies in another.
    let call = ipv4(6, true, &tcp(true, 1, 1, &records(&calls)));
    let reply = ipv4(6, false, &tcp(false, 1, 1, &records(&replies)));
    let cut = |snap| {
        let found = analyze(pcap(RAW, &[call.clone(), reply.clone()], snap));
        let flow = found.analyzer.flows().iter().next().unwrap().1;
        (found.transactions.len(), flow.streams.cut)
    };
    assert_eq!(cut(WHOLE), (4, 0));
    assert_eq!(cut(256), (1, 1), "three calls, in one place; replies are short");
}

/// Each second a WRITE of 5,000 bytes in four fragments, that is answered 1 ms later; what `keeps`
/// of their numbers.
fn fragmented(keeps: impl Fn(usize) -> bool) -> Evidence {
    let mut packets = Vec::new();
    for xid in 0..40_u32 {
        let at = u64::from(xid) * 1_000_000_000;
        let call = udp(true, &Rpc::Write { xid, bytes: 5_000 }.message());
        for (number, piece) in call.chunks(1480).enumerate().filter(|(number, _)| keeps(*number)) {
            let mut packet = {
                let at = u16::try_from(1480 * number).unwrap();
                fragment4(17, true, piece, at, number < 3)
            };
            packet[5] = u8::try_from(xid).unwrap();
            packets.push((at, packet));
        }
        let replies = [Rpc::Written { xid, bytes: 5_000 }, Rpc::Nothing { xid: 1_000 + xid }];
        let null = udp(true, &Rpc::Null { xid: 1_000 + xid }.message());
        packets.push((at + 500_000, ipv4(17, true, &null)));
        let reply = |rpc: Rpc| (at + 1_000_000, ipv4(17, false, &udp(false, &rpc.message())));
        packets.extend(replies.map(reply));
    }
    let found = analyze(pcap_at(&packets));
    Evidence::busiest(found.analyzer.flows()).unwrap()
}

#[test]
fn a_filter_that_lets_first_fragments_through_alone_is_known_and_no_verdict_is_based_on_it() {
    let whole = fragmented(|_| true);
    assert_eq!((whole.replies(), whole.unseen_datagrams()), (80, 0));
    assert!(judge(&whole).verdict.is_some());
    let first = fragmented(|number| number == 0);
    assert_eq!((first.replies(), first.unseen_datagrams()), (40, 40));
    let found = judge(&first);
    assert_eq!((found.verdict, found.doubts), (None, vec![Doubt::Fragments]));
    // A network loses some fragments, and not all but the first.
    assert_eq!(fragmented(|number| number != 2).unseen_datagrams(), 0);
}

#[test]
fn fragments_of_version_6_have_no_ports_and_their_calls_are_missed_by_their_replies() {
    let evidence = |has_calls: bool| {
        let packets = (0..40_u32).flat_map(|xid| {
            let at = u64::from(xid) * 1_000_000_000;
            let [null, write] = [Rpc::Null { xid: 1_000 + xid }, Rpc::Write { xid, bytes: 900 }];
            let [nothing, written] =
                [Rpc::Nothing { xid: 1_000 + xid }, Rpc::Written { xid, bytes: 900 }];
            let of = |is_call, rpc: &Rpc| ipv6(is_call, 17, &udp(is_call, &rpc.message()));
            let call = has_calls.then(|| (at, of(true, &write)));
            let rest = [(at, of(true, &null)), (at + 1, of(false, &nothing))];
            call.into_iter().chain(rest).chain([(at + 2, of(false, &written))])
        });
        let found = analyze(pcap_at(&packets.collect::<Vec<_>>()));
        Evidence::busiest(found.analyzer.flows()).unwrap().unseen_datagrams()
    };
    assert_eq!((evidence(true), evidence(false)), (0, 40));
}
