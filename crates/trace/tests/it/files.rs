//! Formats of files.

use std::io::{Cursor, Write};

use flate2::Compression;
use flate2::write::GzEncoder;
use trace::capture::{Capture, CaptureError, Merged, Note};

use crate::frames::{RAW, Rpc, WHOLE, analyze, ipv4, pcap, udp};

fn pair(xid: u32) -> Vec<Vec<u8>> {
    let call = Rpc::Null { xid }.message();
    let reply = Rpc::Nothing { xid }.message();
    vec![ipv4(17, true, &udp(true, &call)), ipv4(17, false, &udp(false, &reply))]
}

/// A pcapng file; the words in one order of bytes or the other. Its second interface has time
/// stamps in 2^-10 s, counted from another second. The last packet has no time.
fn pcapng(is_big: bool, offset_s: i64) -> Vec<u8> {
    let word = |n: u32| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let half = |n: u16| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let block = |kind: u32, body: &[u8]| {
        let len = word(u32::try_from(12 + body.len()).unwrap());
        [&word(kind)[..], &len, body, &len].concat()
    };
    let long = |n: i64| if is_big { n.to_be_bytes() } else { n.to_le_bytes() };
    let section = [&word(0x1a2b_3c4d)[..], &half(1), &half(0), &[0xff; 8]].concat();
    let plain = [&half(101)[..], &half(0), &word(0)].concat();
    let options = [
        &half(9)[..],
        &half(1),
        &[0x8a, 0, 0, 0],
        &half(14),
        &half(8),
        &long(offset_s),
        &half(0),
        &half(0),
    ]
    .concat();
    let other = [&plain[..], &options].concat();
    let packet = |interface: u32, units: u32, data: &[u8]| {
        let len = u32::try_from(data.len()).unwrap();
        let mut body =
            [&word(interface)[..], &word(0), &word(units), &word(len), &word(len), data].concat();
        body.resize(body.len().next_multiple_of(4), 0);
        block(6, &body)
    };
    let packets = pair(3);
    [
        block(0x0a0d_0d0a, &section),
        block(1, &plain),
        block(1, &other),
        block(0x0bad, &[0; 4]),
        packet(0, 2_000_000, &packets[0]),
        // 12.5 s
        packet(1, 12_800, &packets[1]),
        block(3, &[&word(28)[..], &packets[0][..28]].concat()),
    ]
    .concat()
}

#[test]
fn pcapng_is_read_in_both_orders_with_the_resolution_of_each_interface() {
    for is_big in [false, true] {
        for (offset_s, reply_ns) in [(5, 17_500_000_000), (-5, 7_500_000_000)] {
            let found = analyze(pcapng(is_big, offset_s));
            assert_eq!(found.transactions.len(), 1, "{is_big} {offset_s}");
            assert_eq!(found.transactions[0].call_ns, 2_000_000_000);
            assert_eq!(found.transactions[0].reply_ns, reply_ns);
            assert_eq!(found.notes, [Note::Timeless { name: "a file".to_owned(), packets: 1 }]);
        }
    }
}

#[test]
fn packed_files_are_unpacked() {
    let file = pcap(RAW, &pair(1), WHOLE);
    let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
    gzip.write_all(&file).unwrap();
    assert_eq!(analyze(gzip.finish().unwrap()).transactions.len(), 1);
    let level = ruzstd::encoding::CompressionLevel::Fastest;
    let (first, second) = file.split_at(60);
    let frames = [first, second].map(|part| ruzstd::encoding::compress_to_vec(part, level));
    assert_eq!(analyze(frames.concat()).transactions.len(), 1);
}

#[test]
fn several_files_are_one_in_the_order_of_time() {
    let of = |packet: Vec<u8>, before: usize| {
        // Empty packets, so that the times differ.
        let mut packets = vec![Vec::new(); before];
        packets.push(packet);
        pcap(RAW, &packets, WHOLE)
    };
    let packets = pair(1);
    let files = [of(packets[1].clone(), 9), of(packets[0].clone(), 3)];
    let captures = files.map(|file| Capture::open("f", Box::new(Cursor::new(file))).unwrap());
    let mut merged = Merged::new(captures.into()).unwrap();
    let mut times = Vec::new();
    while let Some(packet) = merged.next_packet().unwrap() {
        times.push(packet.at_ns);
    }
    assert_eq!(times.len(), 14);
    assert!(times.is_sorted());
}

#[test]
fn a_file_that_ends_early_is_read_up_to_there() {
    let whole = pcap(RAW, &pair(1), WHOLE);
    for len in 24..whole.len() {
        let found = analyze(whole[..len].to_vec());
        let is_whole_packet = found.notes.is_empty();
        assert!(is_whole_packet || matches!(found.notes[0], Note::Truncated { .. }), "{len}");
        assert!(found.transactions.is_empty());
    }
    assert_eq!(analyze(whole).notes, []);
}

#[test]
fn what_is_no_capture_is_reported() {
    let open = |bytes: &[u8]| Capture::open("f", Box::new(Cursor::new(bytes.to_vec())));
    assert!(matches!(open(b"").unwrap_err(), CaptureError::Empty { .. }));
    assert!(matches!(open(b"no").unwrap_err(), CaptureError::NotACapture { .. }));
    assert!(matches!(open(&[0; 100]).unwrap_err(), CaptureError::NotACapture { .. }));
    let wireless = pcap(105, &[], WHOLE);
    assert!(matches!(open(&wireless).unwrap_err(), CaptureError::Link { number: 105, .. }));
}
