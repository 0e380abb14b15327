//! `nfskit link`: what passes it, how it begins, and how it ends.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use rustix::process::Signal;
use wire::record::Fragment;

use crate::peer::Nobody;
use crate::program::{Program, nfskit, run};
use crate::rpc::{Connection, mark};
use crate::served::Served;

const PATIENCE: Duration = Duration::from_secs(60);

/// A relay to a server.
#[derive(Debug)]
pub(crate) struct Linked {
    pub(crate) program: Program,
    pub(crate) address: SocketAddr,
}

impl Linked {
    pub(crate) fn to(server: SocketAddr, arguments: &[&str]) -> Self {
        let server = server.to_string();
        let mut command = nfskit(["link", "--to", &server]);
        let program = Program::start(command.args(arguments));
        let address = program.wait_for(relayed);
        Self { program, address }
    }

    fn stream(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream
    }

    /// Asks it to end, which it does in good order; gives its summary.
    pub(crate) fn stop(self) -> String {
        self.stop_with(0)
    }

    /// The same, where it has something to complain of.
    pub(crate) fn stop_with(self, code: i32) -> String {
        self.program.signal(Signal::TERM);
        let finished = self.program.finish();
        assert_eq!(finished.code, Some(code), "{finished:?}");
        finished.stdout
    }
}

/// Where the banner says that the first port is relayed.
fn relayed(banner: &str) -> Option<SocketAddr> {
    let (_, rest) = banner.split_once("relays      ")?;
    let (address, rest) = rest.split_once(" -> ")?;
    rest.contains("Linux").then(|| address.parse().unwrap())
}

/// Reads a connection to its end.
fn all(mut stream: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    // A reset is an end, too.
    stream.read_to_end(&mut bytes).ok();
    bytes
}

#[test]
fn a_client_finds_the_server_behind_it() {
    let served = Served::memory(&[]);
    let linked = Linked::to(served.address, &["2ms/1g"]);
    let mut connection = Connection::at(linked.address);
    connection.is_served();
    connection.creates(b"f");
    drop(connection);
    let summary = linked.stop();
    for part in ["there", "back", "0 lost", "1 connections", "handed on"] {
        assert!(summary.contains(part), "no {part:?} in {summary}");
    }
    served.stop();
}

#[test]
fn datagrams_pass_and_replies_find_their_client() {
    let served = Served::memory(&["--udp"]);
    let linked = Linked::to(served.address, &["--udp", "1ms/1g"]);
    let clients: Vec<UdpSocket> = (0..5)
        .map(|_| {
            let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
            socket.set_read_timeout(Some(PATIENCE)).unwrap();
            socket.connect(linked.address).unwrap();
            socket
        })
        .collect();
    for (xid, socket) in (100..).zip(&clients) {
        socket.send(&crate::rpc::call(xid, crate::rpc::NULL, &[])).unwrap();
    }
    for (xid, socket) in (100_u32..).zip(&clients) {
        let mut reply = [0; 100];
        let len = socket.recv(&mut reply).unwrap();
        assert_eq!((len, &reply[..4]), (24, &xid.to_be_bytes()[..]));
    }
    linked.stop();
    served.stop();
}

#[test]
fn fragments_of_a_record_come_out_as_one_record_and_what_is_none_ends_the_connection() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let linked = Linked::to(listener.local_addr().unwrap(), &[]);
    // That it looked whether the server is there.
    drop(listener.accept().unwrap());
    let mut client = linked.stream();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let first = Fragment { last: false, len: 3 }.to_header();
    client.write_all(&[&first[..], b"abc"].concat()).unwrap();
    client.write_all(&[&mark(5)[..], b"defgh"].concat()).unwrap();
    let mut record = [0; 12];
    server.read_exact(&mut record).unwrap();
    assert_eq!(record[..], [&mark(8)[..], b"abcdefgh"].concat());
    client.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    let complaint = linked.program.wait_for_error(|text| {
        text.lines().find(|line| line.contains("connection_broken")).map(str::to_owned)
    });
    assert!(complaint.contains("by=client") && complaint.contains("no RPC record"), "{complaint}");
    assert_eq!(all(client), b"");
    assert_eq!(all(server), b"");
    assert!(linked.stop().contains("1 broke (1 malformed RPC records"));
}

#[test]
fn half_of_a_connection_may_end_before_the_other() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let linked = Linked::to(listener.local_addr().unwrap(), &["1ms/1g"]);
    drop(listener.accept().unwrap());
    let mut client = linked.stream();
    let (mut server, _) = listener.accept().unwrap();
    server.set_read_timeout(Some(PATIENCE)).unwrap();
    let call = [&mark(4)[..], b"call"].concat();
    client.write_all(&call).unwrap();
    client.shutdown(std::net::Shutdown::Write).unwrap();
    let mut heard = Vec::new();
    server.read_to_end(&mut heard).unwrap();
    assert_eq!(heard, call);
    let reply = [&mark(8)[..], b"reply..."].concat();
    server.write_all(&reply).unwrap();
    drop(server);
    assert_eq!(all(client), reply);
    assert!(linked.stop().contains("0 broke"));
}

#[test]
fn many_connections_at_once() {
    let served = Served::memory(&[]);
    let linked = Linked::to(served.address, &["1ms/1g"]);
    let mut connections: Vec<_> = (0..200).map(|_| Connection::at(linked.address)).collect();
    for connection in &mut connections {
        connection.is_served();
    }
    for connection in connections.iter_mut().rev() {
        connection.is_served();
    }
    drop(connections);
    assert!(linked.stop().contains("200 connections"));
    served.stop();
}

#[test]
fn a_server_that_has_gone_is_reported_and_counted() {
    let served = Served::memory(&[]);
    let server = served.address.to_string();
    let arguments = ["link", "--to", &server, "--json", "-"];
    let program = Program::start(&mut nfskit(arguments));
    // Standard output is for the record.
    let address = program.wait_for_error(relayed);
    let linked = Linked { program, address };
    Connection::at(linked.address).is_served();
    served.stop();
    assert_eq!(all(linked.stream()), b"");
    linked.program.wait_for_error(|text| {
        text.contains("server_unreachable").then_some(())?;
        text.contains("refused the connection").then_some(())
    });
    let record: serde_json::Value = serde_json::from_str(&linked.stop()).unwrap();
    assert_eq!(record["metrics"]["connections_unreachable"]["value"], 1.0);
    assert_eq!(record["workload"]["name"], "link");
}

#[test]
fn another_users_connection_is_not_counted_as_one_without_a_place() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("SKIPPED: to connect as another user needs root");
        return;
    }
    let served = Served::memory(&[]);
    let linked = Linked::to(served.address, &[]);
    let connect = || {
        let uid = rustix::process::Uid::from_raw(4001);
        rustix::thread::set_thread_res_uid(uid, uid, uid).unwrap();
        all(linked.stream())
    };
    let received = std::thread::scope(|scope| scope.spawn(connect).join().unwrap());
    assert_eq!(received, b"");
    let summary = linked.stop();
    let parts = ["0 refused (connection limit)", "1 refused (another user's)"];
    assert!(parts.iter().all(|part| summary.contains(part)), "{summary}");
    served.stop();
}

#[test]
fn a_second_signal_ends_at_once() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let linked = Linked::to(listener.local_addr().unwrap(), &["9s/1m", "--stats"]);
    drop(listener.accept().unwrap());
    let mut client = linked.stream();
    client.write_all(&[&mark(4)[..], b"call"].concat()).unwrap();
    linked.program.wait_for_error(|text| text.contains("1 on their way").then_some(()));
    // Two of one kind might be reported as one.
    linked.program.signal(Signal::INT);
    linked.program.signal(Signal::TERM);
    assert_eq!(linked.program.finish().code, Some(130));
}

#[test]
fn a_relay_is_changed_while_it_runs() {
    let served = Served::memory(&[]);
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("socket");
    let socket = socket.to_str().unwrap();
    let linked = Linked::to(served.address, &["--control", socket, "1ms/1g"]);
    let mut connection = Connection::at(linked.address);
    connection.is_served();
    let set = |words: &[&str]| run([&["link", "--set", socket], words].concat());
    let finished = set(&["L=50ms", "there.g=1us", "show"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    assert!(finished.stdout.contains("1ms/1g,L=50ms,there.g=1us\n"), "{finished:?}");
    let clock = net::clock::Clock::real();
    let began = clock.now();
    assert!(connection.is_taken());
    let took = clock.now().since(began);
    assert!(took >= perf::units::Nanos::from_millis(100), "{took}");
    set(&["lan-2g"]).complains(2, &["lan-2g", "known are"]);
    set(&["L=99h"]).complains(2, &["L=99h"]);
    set(&["o=5us"]).complains(2, &["overhead", "nfskit serve --link"]);
    let finished = set(&["show"]);
    assert!(finished.stdout.starts_with("1ms/1g,L=50ms,"), "nothing has changed: {finished:?}");
    linked.stop();
    set(&["show"]).complains(3, &["cannot ask the relay", socket]);
    served.stop();
}

/// A pipe has no end before its writer's, and the relay waits for nobody.
#[test]
fn a_pipe_is_no_profile_and_no_place_for_a_capture_without_a_reader() {
    let served = Served::memory(&[]);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let (socket, pipe) = (at("socket"), at("pipe.toml"));
    let mode = rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR;
    rustix::fs::mknodat(rustix::fs::CWD, &pipe, rustix::fs::FileType::Fifo, mode, 0).unwrap();
    let linked = Linked::to(served.address, &["--control", &socket, "none"]);
    run(["link", "--set", &socket, &pipe]).complains(2, &["pipe.toml", "pipe or socket"]);
    Connection::at(linked.address).is_served();
    linked.stop();
    let server = served.address.to_string();
    run(["link", "--to", &server, &pipe]).complains(2, &["pipe or socket"]);
    run(["link", "--to", &server, "--pcap", &pipe, "none"]).complains(3, &["nobody reads"]);
    served.stop();
}

#[test]
fn a_server_with_a_port_for_each_service_is_relayed_whole() {
    let (nfs, mount) = (Served::memory(&[]), Served::memory(&[]));
    let to = format!("nfs://127.0.0.1/data?nfsport={}&mountport={}", nfs.port(), mount.port());
    let command = &mut nfskit(["link", "--to", &to]);
    let program = Program::start(command);
    let banner = program.wait_for(|text| text.contains("Linux").then(|| text.to_owned()));
    let relays = banner.lines().filter_map(|line| line.trim().strip_prefix("relays"));
    let legs: Vec<(SocketAddr, &str)> = relays
        .map(|relay| {
            let (listen, server) = relay.split_once(" -> ").unwrap();
            (listen.trim().parse().unwrap(), server)
        })
        .collect();
    let expected = |served: &Served, name| format!("{} ({name})", served.address);
    let servers: Vec<_> = legs.iter().map(|(_, server)| *server).collect();
    assert_eq!(servers, [expected(&nfs, "NFS"), expected(&mount, "MOUNT")]);
    for (listen, _) in &legs {
        Connection::at(*listen).is_served();
    }
    let ports = (legs[0].0.port(), legs[1].0.port());
    let line = format!("port={},mountport={},", ports.0, ports.1);
    assert!(banner.contains(&line) && banner.contains("127.0.0.1:/data /mnt"), "{banner}");
    drop(program);
    nfs.stop();
    mount.stop();
}

#[test]
fn a_server_that_is_not_there() {
    let nobody = Nobody::there();
    let address = nobody.address.to_string();
    let finished = run(["link", "--to", &address, "lan-1g"]);
    finished.complains(3, &["cannot relay to the server", &address, "refused", "start the server"]);
    let finished = run(["link", "--to", "no.such.host.invalid:2049"]);
    finished.complains(3, &["cannot relay to the server", "no.such.host.invalid"]);
}

#[test]
fn a_relay_to_itself_is_refused_under_whatever_name() {
    // Keeps the port from others, and not from who listens there.
    let nobody = Nobody::there();
    let port = nobody.address.port().to_string();
    for (listen, to) in [
        ("127.0.0.1", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.1"),
        ("0.0.0.0", "127.0.0.2"),
        ("0.0.0.0", "localhost"),
        ("127.0.0.1", "0.0.0.0"),
        ("[::]", "127.0.0.1"),
    ] {
        let (listen, to) = (format!("{listen}:{port}"), format!("{to}:{port}"));
        let finished = run(["link", "--listen", &listen, "--to", &to, "lan-1g"]);
        finished.complains(3, &["cannot relay to the relay", "itself", &port]);
    }
}

#[test]
fn an_address_that_is_taken() {
    let taken = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let finished = run(["link", "--listen", &address, "--to", "127.0.0.1:1"]);
    finished.complains(3, &["cannot listen", &address, "in use"]);
    let served = Served::memory(&[]);
    let server = served.address.to_string();
    let finished = run(["link", "--to", &server, "--metrics", &address]);
    finished.complains(3, &["cannot serve metrics", &address]);
    served.stop();
}

#[test]
fn a_relay_that_every_host_reaches_says_so_and_its_banner_has_the_version() {
    let served = Served::memory(&["--versions", "2"]);
    let port = served.port();
    let to = format!("nfs://127.0.0.1/?version=2&nfsport={port}&mountport={port}");
    for (listen, is_open) in [("0.0.0.0:0", true), ("127.0.0.1:0", false)] {
        let arguments = ["link", "--to", &to, "--listen", listen, "--uncalibrated"];
        let program = Program::start(&mut nfskit(arguments));
        let banner = program.wait_for(|text| text.contains("/mnt\n").then(|| text.to_owned()));
        assert!(banner.contains("-o vers=2,"), "{banner}");
        let line = banner.lines().find_map(|line| line.trim().strip_prefix("url")).unwrap();
        let target: client::url::Target = line.trim().parse().unwrap();
        assert_eq!(target.version, client::url::Version::Two);
        program.signal(Signal::TERM);
        let finished = program.finish();
        let warning = "open to every host that reaches 0.0.0.0:";
        assert_eq!(finished.stderr.contains(warning), is_open, "{finished:?}");
    }
    served.stop();
}

#[test]
fn a_hangup_reads_the_file_of_the_link_again() {
    let served = Served::memory(&[]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("far.toml");
    std::fs::write(&file, "L = \"1ms\"\n").unwrap();
    let linked = Linked::to(served.address, &[file.to_str().unwrap()]);
    for (text, part) in [("L = \"7ms\"\n", "7.00 ms"), ("L = \"7 miles\"\n", "ERROR")] {
        std::fs::write(&file, text).unwrap();
        linked.program.signal(Signal::HUP);
        linked.program.wait_for_error(|text| {
            text.lines().find(|line| line.contains("reload") && line.contains(part)).map(drop)
        });
    }
    Connection::at(linked.address).is_served();
    linked.stop();
    served.stop();
}

#[test]
fn losses_of_datagrams_are_counted_by_cause() {
    let served = Served::memory(&["--udp"]);
    let linked = Linked::to(served.address, &["--udp", "--stats", "none,there.loss=100%"]);
    let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    for xid in 0..5 {
        socket.send_to(&crate::rpc::call(xid, crate::rpc::NULL, &[]), linked.address).unwrap();
    }
    linked.program.wait_for_error(|text| text.contains("5 lost (5 chance)").then_some(()));
    let summary = linked.stop();
    assert!(summary.contains("5 messages") && summary.contains("5 lost (5 chance)"), "{summary}");
    served.stop();
}

#[test]
fn what_a_link_cannot_be_is_refused_with_what_it_can() {
    for (words, parts) in [
        ("o=50us", &["overhead o", "nfskit serve --link", "nfskit bench --link"][..]),
        ("lan-1g,o.send=1us", &["overhead o", "nfskit bench --link"]),
        ("L=99s", &["L", "at most"]),
        ("loss=101%", &["loss", "100"]),
        ("mtu=20", &["mtu", "68"]),
        ("colour=red", &["colour", "known are"]),
        ("no-such.toml", &["no-such.toml", "cannot be read"]),
    ] {
        run(["link", "--to", "127.0.0.1:1", words]).complains(2, parts);
    }
}

#[test]
fn an_unknown_link_is_refused_with_the_known_ones() {
    for (words, part) in [
        (&["lan-2g"][..], "wan-80ms"),
        (&[""], "wan-80ms"),
        (&["-1ms/1g"], "LATENCY/RATE"),
        (&["lan-1g", "nonsense"], "KEY=VALUE"),
    ] {
        let mut arguments = vec!["link", "--to", "127.0.0.1:1", "--"];
        arguments.extend(words);
        run(&arguments).complains(2, &["link", part]);
    }
}

#[test]
fn a_link_with_more_under_way_than_may_be_held_is_refused() {
    let relay = ["link", "--to", "127.0.0.1:1", "--held"];
    let refused = run([&relay[..], &["64M", "100ms/10g"]].concat());
    refused.complains(2, &["119.2 MiB under way", "hold 32.0 MiB", "--held 239M", "shorter L"]);
    // What may be held is enough, so that it is the server that is not there.
    let nobody = Nobody::there();
    let to = nobody.address.to_string();
    for words in [["239M", "100ms/10g"], ["1G", "100ms/10g"]] {
        run([&["link", "--to", &to, "--held"], &words[..]].concat())
            .complains(3, &["cannot relay to the server"]);
    }
    let beyond = run([&relay[..], &["1G", "200ms/10g"]].concat());
    beyond.complains(2, &["L x rate", "128 MiB"]);
}

#[test]
fn a_link_is_not_tried_out_where_that_is_not_wanted() {
    let served = Served::memory(&[]);
    let server = served.address.to_string();
    let mut command = nfskit(["link", "--uncalibrated", "--to", &server, "1ms/1g"]);
    let program = Program::start(command.env_remove("NFSKIT_UNCALIBRATED"));
    let address = program.wait_for(relayed);
    assert!(!Linked { program, address }.stop().contains("emulator"));
    served.stop();
}
