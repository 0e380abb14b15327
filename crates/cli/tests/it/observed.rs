//! What a server reports while it runs, and which commands it takes.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use wire::nfs2;
use wire::rpc::{AcceptStatus, CallHeader, OpaqueAuth, ReplyBody, ReplyHeader};
use wire::xdr::{Decode, Encode, Reader};

use crate::program::run;
use crate::rpc::Connection;
use crate::served::Served;

/// How long we wait for an answer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) fn metrics_address(served: &Served) -> SocketAddr {
    served.program.wait_for(|banner| {
        let (_, rest) = banner.split_once("http://")?;
        rest.split_once("/metrics")?.0.parse().ok()
    })
}

pub(crate) fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").unwrap();
    let mut page = String::new();
    stream.read_to_string(&mut page).unwrap();
    page
}

#[test]
fn calls_are_counted_where_prometheus_asks() {
    let served = Served::memory(&["--metrics", "127.0.0.1:0"]);
    let mut connection = Connection::to(&served);
    connection.creates(b"f");
    let address = metrics_address(&served);
    let page = get(address, "/metrics");
    assert!(page.starts_with("HTTP/1.1 200"), "{page}");
    let create = page.lines().any(|line| {
        line.starts_with("nfskit_calls_total{") && line.contains("CREATE") && line.ends_with(" 1")
    });
    assert!(create && page.contains("nfskit_connections "), "{page}");
    assert!(get(address, "/healthz").ends_with("ok\n"));
    assert!(get(address, "/nothing").starts_with("HTTP/1.1 404"));
    served.stop();
}

#[test]
fn a_port_that_is_taken_for_metrics() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = run(["serve", "mem:", "--listen", "127.0.0.1:0", "--metrics", &address]);
    finished.complains(3, &["cannot serve metrics", &address, "in use"]);
}

#[test]
fn slow_calls_are_logged_as_json() {
    let served = Served::memory(&["--slow-log", "1us", "--log-format", "json"]);
    Connection::to(&served).creates(b"f");
    let line = served.program.wait_for_error(|text| {
        let line = text.lines().find(|line| line.contains("\"CREATE\""))?;
        line.ends_with('}').then(|| line.to_owned())
    });
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    assert_eq!((&event["event"], &event["client"]), (&"slow_call".into(), &"127.0.0.1".into()));
    assert!(event["total_ms"].is_number() && event["time"].is_string(), "{event}");
}

fn null(version: u32) -> Vec<u8> {
    let header = CallHeader::new(9, wire::Procedure::Nfs2(nfs2::Procedure::Null), OpaqueAuth::NONE);
    CallHeader { version, ..header }.to_bytes()
}

#[test]
fn both_versions_are_served_over_udp_and_only_those_requested() {
    for (options, low) in [(&["--udp"][..], 2), (&["--udp", "--versions", "3"], 3)] {
        let served = Served::memory(options);
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect(served.address).unwrap();
        let answer = |version| {
            socket.send(&null(version)).unwrap();
            let mut reply = [0; 100];
            let len = socket.recv(&mut reply).unwrap();
            match ReplyHeader::decode(&mut Reader::new(&reply[..len])).unwrap().body {
                ReplyBody::Accepted { status, .. } => status,
                ReplyBody::Denied(why) => panic!("{why:?}"),
            }
        };
        assert_eq!(answer(3), AcceptStatus::Success);
        let mismatch = AcceptStatus::ProgMismatch { low, high: 3 };
        assert_eq!(answer(2), if low == 2 { AcceptStatus::Success } else { mismatch });
        assert_eq!(answer(4), mismatch);
        served.stop();
    }
}

#[test]
fn an_idle_connection_is_closed() {
    let served = Served::memory(&["--idle", "200ms"]);
    let mut connection = Connection::to(&served);
    connection.is_served();
    assert!(connection.hear().is_none(), "it is closed");
    Connection::to(&served).is_served();
    served.stop();
}
