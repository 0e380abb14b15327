//! Captures that mean harm: bounded memory, and an end.

use proptest::prelude::*;
use trace::CONNECTIONS_MAX;

use crate::frames::{RAW, Rpc, WHOLE, analyze, ipv4, pcap, tcp};

#[test]
fn a_record_of_two_gigabytes_is_no_record() {
    let mut call = Rpc::Null { xid: 1 }.record();
    call[..4].copy_from_slice(&[0xff; 4]);
    let good = Rpc::Null { xid: 2 }.record();
    let behind = 1 + u32::try_from(call.len()).unwrap();
    let frames = [
        ipv4(6, true, &tcp(true, 1, 1, &call)),
        ipv4(6, true, &tcp(true, behind, 1, &good)),
        ipv4(6, false, &tcp(false, 1, 1, &Rpc::Nothing { xid: 2 }.record())),
    ];
    assert_eq!(analyze(pcap(RAW, &frames, WHOLE)).transactions.len(), 1);
}

#[test]
fn a_hundred_thousand_connections_that_are_half_open_are_forgotten_in_turn() {
    let half = &Rpc::Write { xid: 1, bytes: 4000 }.record()[..3000];
    let frames: Vec<Vec<u8>> = (0..100_000_u32)
        .map(|number| {
            let mut packet = ipv4(6, true, &tcp(true, 1, 1, half));
            packet[12..16].copy_from_slice(&(0x0b00_0000 + number).to_be_bytes());
            packet
        })
        .collect();
    let found = analyze(pcap(RAW, &frames, 200));
    let (followed, forgotten) = found.analyzer.connections();
    assert!(followed <= CONNECTIONS_MAX, "{followed}");
    assert!(forgotten > 0);
    assert!(found.transactions.is_empty());
}

#[test]
fn other_protocols_are_counted_by_sort() {
    let http = ipv4(6, true, &tcp(true, 1, 1, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n"));
    let dns = ipv4(17, true, &crate::frames::udp(true, &[7; 40]));
    let found = analyze(pcap(RAW, &[http, dns.clone(), dns, ipv4(1, true, &[0; 8])], WHOLE));
    let others: Vec<_> = found.analyzer.others().collect();
    assert_eq!(others, [("ICMP", 1), ("UDP without RPC", 2)]);
    assert_eq!(found.analyzer.totals().calls(), 0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn any_bytes_in_any_packets_are_survived(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 0..20),
        link in prop_oneof![Just(0), Just(1), Just(101), Just(113), Just(276)],
    ) {
        analyze(pcap(link, &packets, WHOLE));
    }

    #[test]
    fn any_bytes_behind_the_head_of_a_file_are_survived(
        bytes in prop::collection::vec(any::<u8>(), 0..600),
        is_pcapng in any::<bool>(),
    ) {
        let mut file = match is_pcapng {
            false => pcap(1, &[], WHOLE),
            true => vec![0x0a, 0x0d, 0x0d, 0x0a, 28, 0, 0, 0, 0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0,
                0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 28, 0, 0, 0],
        };
        file.extend(bytes);
        analyze(file);
    }

    #[test]
    fn messages_with_any_bytes_changed_are_survived(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..40),
    ) {
        let records = [
            Rpc::Lookup { xid: 1, name: "name".into() }.record(),
            Rpc::Write { xid: 2, bytes: 500 }.record(),
            Rpc::Found { xid: 1, handle: 7 }.record(),
            Rpc::Written { xid: 2, bytes: 500 }.record(),
        ];
        let calls = [&records[0][..], &records[1]].concat();
        let replies = [&records[2][..], &records[3]].concat();
        let mut frames = vec![
            ipv4(6, true, &tcp(true, 1, 1, &calls)),
            ipv4(6, false, &tcp(false, 1, 1, &replies)),
        ];
        for (index, byte) in changes {
            let frame = usize::from(byte % 2);
            let at = 20 + index.index(frames[frame].len() - 20);
            frames[frame][at] = byte;
        }
        analyze(pcap(RAW, &frames, WHOLE));
    }
}
