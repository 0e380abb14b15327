//! One conversation captured at two places: each packet counts once, and what was retransmitted is
//! still reported.

use trace::verdict::{Evidence, Suspect, judge};

use crate::frames::{Found, Rpc, analyze, analyze_all, ipv4, pcap_at, pcap_of, tcp, udp};
use crate::network::{At, Network};
use crate::scopes::moved;

type Packets = Vec<(u64, Vec<u8>)>;

const MS: u64 = 1_000_000;

fn evidence(found: &Found) -> Evidence {
    Evidence::busiest(found.analyzer.flows()).unwrap()
}

fn suspect(found: &Found) -> Option<Suspect> {
    judge(&evidence(found)).verdict.map(|(found, _)| found.suspect)
}

/// Response times, in the order of their replies.
fn latencies(found: &Found) -> Vec<u64> {
    found.transactions.iter().filter_map(|t| t.latency()).map(|ns| ns.as_nanos()).collect()
}

fn both(network: Network) -> [Packets; 2] {
    [At::Client, At::Server].map(|at| network.captured(at))
}

fn in_order(packets: impl IntoIterator<Item = (u64, Vec<u8>)>) -> Packets {
    let mut packets: Packets = packets.into_iter().collect();
    packets.sort_by_key(|(at, _)| *at);
    packets
}

/// Without what would tell copies from retransmissions but for the time.
fn plain(packets: &Packets) -> Packets {
    let mut packets = packets.clone();
    for (_, packet) in &mut packets {
        packet[4..6].fill(0);
        packet[8] = 64;
    }
    packets
}

const LOSSY: Network =
    Network { round_trip_ns: 4 * MS, lost_of: 100, late_of: 0, calls: 300, outstanding: 8 };
const GOOD: Network = Network { lost_of: 0, ..LOSSY };

#[test]
fn captures_of_both_ends_are_read_as_that_of_the_client() {
    for network in [GOOD, LOSSY] {
        let [client, server] = both(network);
        let alone = analyze(pcap_at(&client));
        for files in [[&client, &server], [&server, &client]] {
            let found = analyze_all(files.map(|packets| pcap_at(packets)));
            let (ours, theirs) = (evidence(&found), evidence(&alone));
            assert_eq!(suspect(&found), suspect(&alone), "{network:?} {ours:#?} {theirs:#?}");
            assert_eq!(ours.sides.map(|side| side.again), theirs.sides.map(|side| side.again));
            // Those of the first calls, before both directions were seen at the client, are not.
            assert_eq!(latencies(&found)[8..], latencies(&alone)[8..]);
            let medians = [&ours, &theirs].map(|found| found.server_ack_ns.unwrap().1);
            assert!(medians[0].abs_diff(medians[1]) < medians[1] / 50, "{medians:?}");
            let (count, homes) = found.analyzer.copies();
            assert_eq!(homes.len(), 1);
            assert!(count.abs_diff(server.len() as u64) < 20, "{count} of {}", server.len());
        }
    }
}

/// Eight stable WRITEs of 32 KiB outstanding, one each 1.25 ms: on a link, or at the server, where
/// the rest takes 300 us; as both ends see it.
fn queued(is_link: bool) -> [Packets; 2] {
    let (mut events, mut free, mut ends) = (Vec::new(), 0, Vec::<u64>::new());
    for xid in 0..800_u32 {
        let begin = (xid as usize).checked_sub(8).map_or(0, |before| ends[before]);
        free = free.max(begin) + MS * 5 / 4;
        let (arrives, replies) = match is_link {
            true => (free, free + MS / 5),
            false => (begin + MS / 5, free),
        };
        ends.push(replies + MS / 10);
        let write = Rpc::Write { xid, bytes: 32 << 10 };
        events.push((begin + u64::from(xid), true, [begin + u64::from(xid), arrives], write));
        let written = Rpc::Written { xid, bytes: 32 << 10 };
        events.push((replies, false, [replies + MS / 10, replies], written));
    }
    events.sort_by_key(|(at, ..)| *at);
    let (mut files, mut sent) = ([Packets::new(), Packets::new()], [1_u32, 1]);
    for ((_, is_call, times, rpc), id) in events.into_iter().zip(1_u16..) {
        let (own, record) = (usize::from(!is_call), rpc.record());
        let mut packet = ipv4(6, is_call, &tcp(is_call, sent[own], sent[1 - own], &record));
        packet[4..6].copy_from_slice(&id.to_be_bytes());
        sent[own] += u32::try_from(record.len()).unwrap();
        files.iter_mut().zip(times).for_each(|(file, at)| file.push((at + MS, packet.clone())));
    }
    files.map(in_order)
}

#[test]
fn what_packets_take_between_two_ends_is_the_networks_and_the_rest_the_servers() {
    let both = |is_link, ahead: u64| {
        let mut files = queued(is_link);
        files[1].iter_mut().for_each(|(at, _)| *at += ahead);
        let found = analyze_all(files.map(|packets| pcap_at(&packets)));
        (suspect(&found), evidence(&found).between_ns.unwrap())
    };
    let [client, _] = queued(true);
    assert_eq!(suspect(&analyze(pcap_at(&client))), Some(Suspect::SlowStableWrite));
    for ahead in [0, 40 * MS] {
        let (suspect, (_, mean)) = both(true, ahead);
        assert_eq!(suspect, Some(Suspect::Rate));
        assert!((8 * MS..11 * MS).contains(&mean), "{mean}");
        let (suspect, (least, mean)) = both(false, ahead);
        assert_eq!(suspect, Some(Suspect::SlowStableWrite));
        assert!(least < MS && mean < MS, "{least} {mean}");
    }
}

#[test]
fn all_places_are_named_where_connections_of_the_same_hosts_were_read() {
    let [client, server] = both(GOOD);
    let again = |packets: &Packets| -> Packets {
        let other = |packet: &Vec<u8>| moved(packet.clone(), [1, 2], [901, 2049]);
        packets.iter().map(|(at, packet)| (at + 10_000 * MS, other(packet))).collect()
    };
    let (later, at_server) = (again(&client), in_order([server.clone(), again(&server)].concat()));
    let homes = |files: Vec<&Packets>| {
        let found = analyze_all(files.into_iter().map(|packets| pcap_at(packets)));
        found.analyzer.copies().1.into_iter().map(|place| place.file).collect::<Vec<u16>>()
    };
    assert_eq!(homes(vec![&client, &at_server, &later]), [0, 2]);
    assert_eq!(homes(vec![&client, &at_server]), [0]);
}

#[test]
fn clocks_that_differ_do_not_make_losses() {
    for early in [[0, 50 * MS], [50 * MS, 0]] {
        let mut files = both(GOOD);
        for (packets, early) in files.iter_mut().zip(early) {
            packets.iter_mut().for_each(|(at, _)| *at += early);
        }
        let found = analyze_all(files.map(|packets| pcap_at(&packets)));
        assert_ne!(suspect(&found), Some(Suspect::Loss));
        assert_eq!(evidence(&found).sides.map(|side| side.again), [0, 0]);
        assert_eq!(found.transactions.len(), 300);
    }
}

#[test]
fn a_file_that_does_not_say_where_knows_copies_by_their_number() {
    let [client, server] = both(GOOD);
    let found = analyze(pcap_at(&in_order([client, server].concat())));
    assert_ne!(suspect(&found), Some(Suspect::Loss));
    let sides = evidence(&found).sides;
    assert_eq!(sides.map(|side| (side.again, side.filled)), [(0, 0); 2]);

    let [client, server] = both(LOSSY);
    let alone = evidence(&analyze(pcap_at(&client)));
    let found = analyze(pcap_at(&in_order([client, server].concat())));
    assert_eq!(suspect(&found), Some(Suspect::Loss));
    assert_eq!(evidence(&found).sides[0].again, alone.sides[0].again);
}

#[test]
fn what_comes_twice_with_another_number_was_sent_twice() {
    let client = GOOD.captured(At::Client);
    let again = client.iter().filter(|(_, packet)| packet.len() > 1_400).map(|(at, packet)| {
        let mut packet = packet.clone();
        packet[4] ^= 0x80;
        (at + 2 * MS, packet)
    });
    let again: Packets = again.collect();
    let count = again.len() as u64;
    let found = analyze(pcap_at(&in_order([client, again].concat())));
    assert_eq!(suspect(&found), Some(Suspect::Loss));
    // Who is the client shows with the first call, which has 23 segments.
    let count_again = evidence(&found).sides[0].again;
    assert!((count - 23..=count).contains(&count_again), "{count_again} of {count}");
    assert_eq!(found.analyzer.copies().0, 0);
}

/// The two SYNs, 4 ms apart, without a number: so Linux answers one.
fn handshake() -> Packets {
    let syns = [(0, true), (4 * MS, false)].into_iter().map(|(at, is_call)| {
        let mut syn = tcp(is_call, 0, u32::from(!is_call), &[]);
        syn[13] = if is_call { 2 } else { 0x12 };
        let mut packet = ipv4(6, is_call, &syn);
        packet[4..6].fill(0);
        (at, packet)
    });
    syns.collect()
}

#[test]
fn a_handshake_without_numbers_does_not_take_those_of_what_follows_away() {
    let mut client = GOOD.captured(At::Client);
    client.iter_mut().for_each(|(at, _)| *at += 10 * MS);
    let client = in_order(client.into_iter().chain(handshake()));
    let again = |flip: u8, later_ns: u64| {
        let again = client.iter().filter(|(_, packet)| packet.len() > 40).map(|(at, packet)| {
            let mut packet = packet.clone();
            packet[4] ^= flip;
            (at + later_ns, packet)
        });
        let found = analyze(pcap_at(&in_order(client.iter().cloned().chain(again))));
        (evidence(&found).sides.map(|side| side.again > 200), found.analyzer.copies().0 > 200)
    };
    // A mirror's queue is longer than a round trip; what TCP repeats may be sooner.
    assert_eq!(again(0, 9 * MS), ([false; 2], true));
    assert_eq!(again(0x80, MS), ([true; 2], false));
}

#[test]
fn without_numbers_what_comes_within_a_round_trip_is_a_copy() {
    let mut client = plain(&GOOD.captured(At::Client));
    client.iter_mut().for_each(|(at, _)| *at += 10 * MS);
    client.extend(handshake());
    let client = plain(&in_order(client));
    let with = |later_ns: u64| {
        let again = client.iter().filter(|(_, packet)| packet.len() > 40);
        let again = again.map(|(at, packet)| (at + later_ns, packet.clone()));
        let found = analyze(pcap_at(&in_order(client.iter().cloned().chain(again))));
        evidence(&found).sides[0].again
    };
    let data = client.iter().filter(|(_, packet)| packet.len() > 1_400).count() as u64;
    assert_eq!(with(MS), 0);
    assert!(with(9 * MS) > data - 23, "{} of {data}", with(9 * MS));
}

/// Of Linux cooked v1: what came in to a bridge, and what it passed on 30 us later.
fn bridged(packets: &Packets) -> Packets {
    let twice = packets.iter().flat_map(|(at, packet)| {
        [(0, 0_u8), (30_000, 4)].map(|(later_ns, kind)| {
            let head = [&[0, kind][..], &[0; 12], &[8, 0]].concat();
            (at + later_ns, [&head[..], packet].concat())
        })
    });
    in_order(twice)
}

#[test]
fn what_a_bridge_passes_on_is_a_copy_also_without_numbers_and_interfaces() {
    for lost_of in [0, 100] {
        let near = Network { round_trip_ns: 20_000, lost_of, ..LOSSY };
        let client = plain(&near.captured(At::Client));
        let of = |file| evidence(&analyze(file)).sides.map(|side| side.again);
        let alone = of(pcap_at(&client));
        assert_eq!(of(pcap_of(113, &bridged(&client))), alone);
        assert_eq!(alone[0] > 0, lost_of > 0);
    }
}

#[test]
fn a_datagram_that_was_captured_twice_is_no_retransmission() {
    let found = |numbers: [u8; 2]| {
        let mut packets = Packets::new();
        for xid in 0..50_u32 {
            let at = u64::from(xid) * 10 * MS;
            let packet = |ns, is_call, number: u8, rpc: &Rpc| {
                let mut packet = ipv4(17, is_call, &udp(is_call, &rpc.message()));
                packet[4..6].copy_from_slice(&[u8::try_from(xid).unwrap() + 1, number]);
                (at + ns, packet)
            };
            let (call, reply) = (Rpc::Null { xid }, Rpc::Nothing { xid });
            for (ns, number) in [(0, numbers[0]), (2 * MS, numbers[1])] {
                packets.push(packet(ns, true, number, &call));
                packets.push(packet(ns + 3 * MS, false, number, &reply));
            }
        }
        let found = analyze(pcap_at(&in_order(packets)));
        let (_, flow) = found.analyzer.flows().admitted().next().unwrap();
        (found.transactions.len(), flow.retransmissions, flow.duplicate_replies)
    };
    assert_eq!(found([1, 1]), (50, 0, 0));
    assert_eq!(found([1, 2]), (50, 50, 50));
}
