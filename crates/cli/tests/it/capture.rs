//! `nfskit link --pcap`: what other programs find in the file.

use std::collections::HashMap;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};

use etherparse::{NetHeaders, PacketHeaders, TransportHeader};
use pcap_file::TsResolution;
use pcap_file::pcap::PcapReader;

use crate::link::Linked;
use crate::program::Program;
use crate::rpc::{Connection, NULL, call};
use crate::served::Served;

/// A packet that was read back.
#[derive(Debug)]
struct Read {
    at_nanos: u128,
    from: SocketAddr,
    to: SocketAddr,
    transport: TransportHeader,
    data: Vec<u8>,
}

/// The packets of a file, each with the checksum that it should have.
fn packets(path: &std::path::Path) -> Vec<Read> {
    let mut reader = PcapReader::new(File::open(path).unwrap()).unwrap();
    assert_eq!(reader.header().ts_resolution, TsResolution::NanoSecond);
    let mut packets = Vec::new();
    while let Some(packet) = reader.next_packet() {
        let packet = packet.unwrap();
        let headers = PacketHeaders::from_ethernet_slice(&packet.data).unwrap();
        let transport = headers.transport.unwrap();
        let data = headers.payload.slice().to_vec();
        let Some(NetHeaders::Ipv4(ip, _)) = headers.net else { panic!("no IPv4") };
        assert_eq!(ip.header_checksum, ip.calc_header_checksum());
        let ports = match &transport {
            TransportHeader::Tcp(tcp) => {
                assert_eq!(tcp.checksum, tcp.calc_checksum_ipv4(&ip, &data).unwrap());
                (tcp.source_port, tcp.destination_port)
            }
            TransportHeader::Udp(udp) => {
                assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, &data).unwrap());
                (udp.source_port, udp.destination_port)
            }
            other => panic!("{other:?}"),
        };
        packets.push(Read {
            at_nanos: packet.timestamp.as_nanos(),
            from: (IpAddr::from(ip.source), ports.0).into(),
            to: (IpAddr::from(ip.destination), ports.1).into(),
            transport,
            data,
        });
    }
    packets
}

fn captured(udp: bool, exchange: impl FnOnce(&Linked)) -> (Vec<Read>, SocketAddr, SocketAddr) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("link.pcap");
    let served = Served::memory(if udp { &["--udp"] } else { &[] });
    let mut arguments = vec!["--pcap", file.to_str().unwrap(), "3ms/1g"];
    arguments.extend(udp.then_some("--udp"));
    let linked = Linked::to(served.address, &arguments);
    exchange(&linked);
    let (server, relay) = (served.address, linked.address);
    let summary = linked.stop();
    assert!(summary.contains("frames captured; 0 messages missed"), "{summary}");
    served.stop();
    (packets(&file), relay, server)
}

#[test]
fn a_connection_is_two_conversations_without_holes() {
    let (packets, relay, server) = captured(false, |linked| {
        let mut connection = Connection::at(linked.address);
        connection.is_served();
        // Longer than a packet can be.
        connection.call(NULL, &vec![0; 200_000]);
    });
    let mut next: HashMap<(SocketAddr, SocketAddr), u32> = HashMap::new();
    let mut bytes: HashMap<SocketAddr, usize> = HashMap::new();
    for packet in &packets {
        let TransportHeader::Tcp(tcp) = &packet.transport else { panic!("no TCP") };
        let expected = next.entry((packet.from, packet.to)).or_insert(tcp.sequence_number);
        assert_eq!(tcp.sequence_number, *expected, "{packet:?}");
        *expected += u32::try_from(packet.data.len()).unwrap() + u32::from(tcp.syn | tcp.fin);
        if let Some(&acknowledged) = next.get(&(packet.to, packet.from)).filter(|_| tcp.ack) {
            assert_eq!(tcp.acknowledgment_number, acknowledged, "{packet:?}");
        }
        *bytes.entry(packet.to).or_default() += packet.data.len();
    }
    assert_eq!(next.len(), 4, "two conversations of two directions");
    assert_eq!(bytes[&relay], bytes[&server], "what came has left");
    let called = |to| packets.iter().find(|packet| packet.to == to && !packet.data.is_empty());
    let (came, left) = (called(relay).unwrap(), called(server).unwrap());
    assert_eq!(came.data, left.data);
    assert!(left.at_nanos - came.at_nanos >= 3_000_000, "{}", left.at_nanos - came.at_nanos);
}

#[test]
fn datagrams_are_captured_with_the_addresses_of_both_ends() {
    let (packets, relay, server) = captured(true, |linked| {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
        socket.connect(linked.address).unwrap();
        socket.send(&call(7, NULL, &[])).unwrap();
        socket.set_read_timeout(Some(std::time::Duration::from_secs(60))).unwrap();
        socket.recv(&mut [0; 100]).unwrap();
    });
    let [call, passed, reply, answered] = &packets[..] else { panic!("{packets:?}") };
    assert_eq!((call.to, passed.to), (relay, server));
    assert_eq!((reply.to, reply.from), (passed.from, server));
    assert_eq!((answered.to, answered.from), (call.from, relay));
    assert_eq!((&call.data, &reply.data), (&passed.data, &answered.data));
}

#[test]
fn a_full_disk_ends_the_capture_and_not_the_relay() {
    let served = Served::memory(&[]);
    let linked = Linked::to(served.address, &["--pcap", "/dev/full"]);
    let wait_for_end = |program: &Program| {
        program.wait_for_error(|text| text.contains("capture_ended").then_some(()));
    };
    let mut connection = Connection::at(linked.address);
    connection.is_served();
    wait_for_end(&linked.program);
    connection.is_served();
    Connection::at(linked.address).is_served();
    linked.stop_with(3);
    let server = served.address.to_string();
    let finished = crate::program::run(["link", "--to", &server, "--pcap", "/no/such/folder/file"]);
    finished.complains(3, &["cannot write /no/such/folder/file", "a directory that exists"]);
    served.stop();
}
