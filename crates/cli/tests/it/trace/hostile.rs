//! Captures that are none, or mean harm.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::program::{Finished, Program, nfskit, run};

/// A file of pcap (little-endian, raw IP) with these packets.
fn pcap(packets: impl IntoIterator<Item = Vec<u8>>) -> Vec<u8> {
    let mut file = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 4, 0];
    file.extend(101_u32.to_le_bytes());
    for (at, packet) in (0_u32..).zip(packets) {
        let len = u32::try_from(packet.len()).unwrap();
        for word in [1_000 + at / 1_000_000, at % 1_000_000, len, len] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// A packet of IPv4 from a client of this number.
fn packet(protocol: u8, client: u32, carried: &[u8]) -> Vec<u8> {
    let total = u16::try_from(20 + carried.len()).unwrap().to_be_bytes();
    let head = [0x45, 0, total[0], total[1], 0, 0, 0, 0, 64, protocol, 0, 0];
    [&head[..], &client.to_be_bytes(), &[10, 0, 0, 2], carried].concat()
}

fn tcp(seq: u32, payload: &[u8]) -> Vec<u8> {
    let head = [&[3, 132, 8, 1][..], &seq.to_be_bytes(), &[0; 4], &[0x50, 0x10, 1, 1, 0, 0, 0, 0]];
    [&head.concat(), payload].concat()
}

/// A NULL call of this number with its mark.
fn call(xid: u32) -> Vec<u8> {
    let words = [0x8000_0028, xid, 0, 2, 100_003, 3, 0, 0, 0, 0, 0];
    words.iter().flat_map(|word: &u32| word.to_be_bytes()).collect()
}

fn with(folder: &Path, name: &str, bytes: &[u8]) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).unwrap();
    path
}

/// Runs it with no more than this memory.
fn within(mebibytes: u64, file: &Path) -> Finished {
    let mut command = Command::new("prlimit");
    command.arg(format!("--as={}", mebibytes << 20));
    command.arg(env!("CARGO_BIN_EXE_nfskit")).arg("trace").arg(file);
    Program::start(&mut command).finish()
}

#[test]
fn a_length_of_four_gigabytes_is_damage_in_a_file_and_no_record_in_a_stream() {
    let folder = tempfile::tempdir().unwrap();
    let good = [packet(6, 7, &tcp(1, &call(1))), packet(6, 7, &tcp(45, &call(2)))];
    let mut file = pcap(good);
    file.extend([1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 2, 3]);
    let finished = within(300, &with(folder.path(), "file", &file));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    for part in ["is damaged at byte", "a packet of more than 16 MiB", "2 packets were read"] {
        assert!(finished.stderr.contains(part), "no {part:?} in {finished:?}");
    }
    assert!(finished.stdout.contains("calls       2 in"), "{finished:?}");

    // The same in the mark of a record, and in an opaque of its head.
    let mut huge = call(1);
    huge[..4].copy_from_slice(&[0xff; 4]);
    let mut opaque = call(2);
    opaque[32..36].copy_from_slice(&[0xff; 4]);
    let stream = [
        packet(6, 7, &tcp(1, &huge)),
        packet(6, 7, &tcp(45, &opaque)),
        packet(6, 7, &tcp(89, &call(3))),
    ];
    let finished = within(300, &with(folder.path(), "stream", &pcap(stream)));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("calls       2 in"), "{finished:?}");
}

#[test]
fn a_hundred_thousand_connections_that_are_half_open_take_bounded_memory() {
    let folder = tempfile::tempdir().unwrap();
    // A record of 2,000 bytes of which 60 come.
    let mut half = call(1);
    half[..4].copy_from_slice(&0x8000_07d0_u32.to_be_bytes());
    half.extend([0; 20]);
    let half = tcp(1, &half);
    let file = pcap((0..100_000).map(|client| packet(6, 0x0b00_0000 + client, &half)));
    let finished = within(300, &with(folder.path(), "half-open", &file));
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("no NFS found"), "{finished:?}");
}

#[test]
fn other_protocols_are_counted_by_sort() {
    let folder = tempfile::tempdir().unwrap();
    let datagram = [&[0, 53, 0, 53, 0, 16, 0, 0][..], b"question"].concat();
    let packets = [
        packet(6, 7, &tcp(1, b"GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")),
        packet(17, 7, &datagram),
        packet(17, 7, &datagram),
        packet(1, 7, &[8, 0, 0, 0, 0, 0, 0, 0]),
    ];
    let finished = run([Path::new("trace"), &with(folder.path(), "others", &pcap(packets))]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    let found =
        "no NFS found: 1 packet of ICMP, 2 packets of UDP without RPC, 1 connection without RPC";
    assert!(finished.stdout.contains(found), "{finished:?}");
}

#[test]
fn standard_input_that_is_closed_or_empty_is_reported() {
    let mut command = nfskit(["trace", "-"]);
    Program::start(&mut command).finish().complains(3, &["standard input is empty"]);
    // Closed, not merely at its end.
    let mut command = Command::new("sh");
    command.args(["-c", "exec \"$0\" trace - <&-", env!("CARGO_BIN_EXE_nfskit")]);
    command.stdin(Stdio::null());
    let finished = Program::start(&mut command).finish();
    finished.complains(3, &["standard input", "pcap"]);
}
