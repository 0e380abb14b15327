//! What network and storage do without NFS: two processes on the loopback, and a directory.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::{Arc, Mutex};

use rustix::process::Signal;
use serde_json::Value;

use crate::peer::Peer;
use crate::program::{Finished, Program, appears, names, nfskit, run};
use crate::served::Served;

/// A far end in a process of its own.
struct Far {
    program: Program,
    address: SocketAddr,
}

impl Far {
    fn start() -> Self {
        let listen = ["bench", "stream", "--server", "--listen", "127.0.0.1:0"];
        let program = Program::start(&mut nfskit(listen));
        let address = program.wait_for(|banner| {
            let (address, _) = banner.strip_prefix("far end")?.split_once(',')?;
            banner.contains("bench spray").then(|| address.trim().parse().unwrap())
        });
        Self { program, address }
    }

    fn bench(&self, arguments: &[&str]) -> Finished {
        bench(self.address, arguments)
    }

    fn stop(self) {
        self.program.signal(Signal::TERM);
        let finished = self.program.finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    }
}

fn bench(to: SocketAddr, arguments: &[&str]) -> Finished {
    let to = to.to_string();
    run([&["bench"], arguments, &["--to", &to]].concat())
}

fn record(finished: &Finished) -> Value {
    assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    serde_json::from_str(&finished.stdout).unwrap()
}

fn metric(record: &Value, name: &str) -> f64 {
    let value = record["metrics"][name]["value"].as_f64();
    value.unwrap_or_else(|| panic!("no {name} in {record}"))
}

#[test]
fn a_stream_tells_both_ends_rates_and_what_the_kernel_dropped() {
    let far = Far::start();
    let quick = ["stream", "--time", "50ms", "--repeats", "2", "--size", "1000"];
    let records = record(&far.bench(&[&quick[..], &["--json", "-"]].concat()));
    let [tcp, udp] = &records.as_array().unwrap()[..] else { panic!("{records}") };
    assert_eq!((&tcp["target"]["proto"], &udp["target"]["proto"]), (&"tcp".into(), &"udp".into()));
    for one in [tcp, udp] {
        assert!(metric(one, "sent_mib_per_s") > 0.0 && metric(one, "received_mib_per_s") > 0.0);
        assert_eq!(one["metrics"]["sent_mib_per_s"]["n"], 2);
        // A busy machine adds others.
        let warnings = one["warnings"].as_array().unwrap();
        assert!(warnings.iter().any(|warning| warning["code"] == "loopback"), "{one}");
    }
    assert!(metric(udp, "received") <= metric(udp, "sent"));
    let slow = ["stream", "--proto", "udp", "--rate", "1M", "--time", "100ms", "--repeats", "1"];
    let shown = far.bench(&[&slow[..], &["--size", "1472"]].concat());
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["udp   1472 B", "left over 100 us late", "generator", "loopback"] {
        assert!(shown.stdout.contains(part), "no {part:?} in {shown:?}");
    }
    far.stop();
}

#[test]
fn response_times_of_udp_tcp_and_null_and_two_transfers_are_recorded() {
    let (far, served) = (Far::start(), Served::memory(&["--udp"]));
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("times.csv");
    let url = served.url();
    let rtt = ["rtt", "--trials", "40", "--size", "40,1472", "--transfer", "64K", "--repeats", "2"];
    let nfs = ["--target", &url, "--json", "-", "--latencies", csv.to_str().unwrap()];
    let record = record(&far.bench(&[&rtt[..], &nfs].concat()));
    for row in ["udp_40", "tcp_1472", "rpc_udp_40", "nfs_tcp_40", "nfs_tcp_1472"] {
        assert!(metric(&record, &format!("{row}_min_us")) > 0.0);
        let [median, max] =
            ["median", "max"].map(|what| metric(&record, &format!("{row}_{what}_us")));
        assert!(median <= max);
        assert_eq!(metric(&record, &format!("{row}_lost")), 0.0);
        // Of 40 messages.
        let times = &record["histograms"][row];
        assert!(times["p90"].as_u64().is_some() && times["p99"].is_null(), "{times}");
    }
    assert_eq!(metric(&record, "transfer_tcp_65536_incomplete"), 0.0);
    assert!(metric(&record, "transfer_udp_65536_mib_per_s") > 0.0);
    let csv = std::fs::read_to_string(csv).unwrap();
    assert_eq!(csv.lines().count(), 1 + 8 * 40);
    let paced = ["rtt", "--trials", "20", "--size", "40", "--rate", "2000", "--no-transfer"];
    let shown = run([&["bench"], &paced[..], &["--target", &format!("{url}&proto=udp")]].concat());
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["nfs udp", "since each was due", "began over 100 us late"] {
        assert!(shown.stdout.contains(part), "no {part:?} in {shown:?}");
    }
    served.stop();
    far.stop();
}

#[test]
fn a_spray_counts_what_the_spray_program_and_what_null_got() {
    let far = Far::start();
    let shown = far.bench(&["spray", "-l", "2048", "-c", "100", "-d", "2"]);
    assert_eq!(shown.code, Some(0), "{shown:?}");
    for part in ["sending 100 packets of lnth 2048 to 127.0.0.1 ...", "elapsed time,", "dropped by"]
    {
        assert!(shown.stdout.contains(part), "no {part:?} in {shown:?}");
    }
    far.stop();
    let served = Served::memory(&["--udp"]);
    for proto in ["tcp", "udp"] {
        let url = format!("{}&proto={proto}", served.url());
        let spray =
            ["bench", "spray", "-c", "50", "--rate", "5000", "--json", "-", "--target", &url];
        let record = record(&run(spray));
        assert_eq!((metric(&record, "sent"), metric(&record, "received")), (250.0, 250.0));
        assert_eq!((metric(&record, "refused"), &record["target"]["proto"]), (0.0, &proto.into()));
        assert!(record["histograms"]["response_time"]["p50"].as_u64() > Some(0));
        // Of a call that takes less than a tick no more than all of a processor is used, either.
        let one = ["bench", "spray", "-c", "1", "--json", "-", "--target", &url];
        assert!(metric(&self::record(&run(one)), "generator_cpu_share") <= 1.0);
    }
    served.stop();
}

#[test]
fn a_far_end_that_is_none_is_distinguished_from_one_that_is_not_there() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = free.local_addr().unwrap();
    drop(free);
    let at = |peer: &Peer| -> SocketAddr { peer.address().parse().unwrap() };
    let (other, newer) =
        (Peer::saying(b"SSH-2.0-OpenSSH_9.2"), Peer::saying(b"nfskit-stream 9\nx"));
    for bench_name in ["stream", "rtt"] {
        let to = |address| bench(address, &[bench_name]);
        to(nobody).complains(3, &["no server listens", "bench stream --server"]);
        to(at(&other)).complains(3, &["no far end of ours", "SSH-2.0"]);
        to(at(&newer)).complains(3, &["version 9", "and this program 1", "both hosts"]);
        to(at(&Peer::closing())).complains(3, &["127.0.0.1"]);
    }
    let served = Served::memory(&[]);
    bench(served.address, &["rtt"]).complains(3, &["says nothing within 5.00 s"]);
    let url = format!("{}&proto=udp", served.url());
    run(["bench", "rtt", "--target", &url]).complains(3, &["nothing listens at UDP port"]);
    run(["bench", "spray", "--target", &url]).complains(3, &["nothing listens at UDP port"]);
    bench(nobody, &["spray"]).complains(3, &["nothing listens at UDP port"]);
    served.stop();
    // A server is no far end: what is tried is its port.
    let of = |name: &str, port| run(["bench", name, "--target", &crate::served::url(port, "/")]);
    for bench_name in ["rtt", "spray"] {
        of(bench_name, nobody.port()).complains(3, &["no server listens", "nfsport="]);
    }
    of("rtt", at(&other).port()).complains(3, &["does not speak ONC RPC"]);
    // It answers calls, but of no program of NFS.
    let far = Far::start();
    let url = crate::served::url(far.address.port(), "/");
    let finished = run(["bench", "rtt", "--target", &format!("{url}&proto=udp")]);
    finished.complains(3, &["that program is not served there"]);
    far.stop();
}

/// Carries connections to a far end, and after so many none.
fn relay(to: SocketAddr, connections: usize) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let carry = |mut from: TcpStream, mut to: TcpStream| {
        std::thread::spawn(move || {
            std::io::copy(&mut from, &mut to).ok();
            to.shutdown(Shutdown::Write).ok();
        });
    };
    std::thread::spawn(move || {
        for near in listener.incoming().map_while(Result::ok).take(connections) {
            let far = TcpStream::connect(to).unwrap();
            carry(near.try_clone().unwrap(), far.try_clone().unwrap());
            carry(far, near);
        }
    });
    address
}

#[test]
fn what_was_measured_before_a_far_end_goes_is_recorded_and_marked() {
    let far = Far::start();
    let folder = tempfile::tempdir().unwrap();
    let json = folder.path().join("record.json");
    // One run does not count. Some may be refused while the one before ends.
    let address = relay(far.address, 12);
    let stream = ["stream", "--proto", "tcp", "--size", "4K", "--time", "10ms", "--repeats", "50"];
    let finished = bench(address, &[&stream[..], &["--json", json.to_str().unwrap()]].concat());
    assert_eq!(finished.code, Some(3), "{finished:?}");
    assert!(finished.stdout.contains("medians of "), "{finished:?}");
    assert!(finished.stdout.contains("PARTIAL"), "{finished:?}");
    assert!(finished.stderr.contains("what was measured before is recorded"), "{finished:?}");
    let record: Value = serde_json::from_str(&std::fs::read_to_string(json).unwrap()).unwrap();
    let warnings = record["warnings"].as_array().unwrap();
    assert!(warnings.iter().any(|warning| warning["code"] == "partial"), "{record}");
    far.stop();
}

/// The same for datagrams on the same port, of which it loses every fifth towards the far end.
fn lossy_relay(to: SocketAddr) -> SocketAddr {
    let (address, near) = std::iter::repeat_with(|| relay(to, 1_000))
        .find_map(|address| Some((address, UdpSocket::bind(address).ok()?)))
        .unwrap();
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.connect(to).unwrap();
    let client = Arc::new(Mutex::new(None));
    let (near_back, far_back) = (near.try_clone().unwrap(), far.try_clone().unwrap());
    let client_back = Arc::clone(&client);
    std::thread::spawn(move || {
        let mut datagram = [0; 1 << 16];
        for number in 1_u64.. {
            let (count, from) = near.recv_from(&mut datagram).unwrap();
            *client.lock().unwrap() = Some(from);
            if number % 5 > 0 {
                far.send(&datagram[..count]).ok();
            }
        }
    });
    std::thread::spawn(move || {
        let mut datagram = [0; 1 << 16];
        while let Ok(count) = far_back.recv(&mut datagram) {
            let to = client_back.lock().unwrap();
            near_back.send_to(&datagram[..count], to.unwrap()).ok();
        }
    });
    address
}

#[test]
fn losses_on_the_way_are_found_and_are_not_the_kernels() {
    let far = Far::start();
    let address = lossy_relay(far.address);
    // The relay takes a fifth. What a busy machine loses besides has no upper bound but where all
    // that is sent fits into the socket's buffer.
    let a_fifth = |loss: f64| assert!(loss >= 0.19, "a fifth is lost, and {loss}");
    let stream =
        ["stream", "--proto", "udp", "--size", "1000", "--rate", "300K", "--time", "250ms"];
    let stream =
        record(&bench(address, &[&stream[..], &["--repeats", "1", "--json", "-"]].concat()));
    a_fifth(metric(&stream, "loss"));
    assert!(metric(&stream, "loss") < 0.25, "{stream}");
    assert!(metric(&stream, "far_socket_drops") < 10.0, "{stream}");
    let spray = ["spray", "-c", "1000", "--rate", "10000", "--repeats", "1", "--json", "-"];
    a_fifth(metric(&record(&bench(address, &spray)), "loss"));
    let rtt = ["rtt", "--trials", "40", "--size", "64", "--reply-limit", "50ms", "--json", "-"];
    let transfer = ["--transfer", "64K", "--repeats", "1"];
    let rtt = record(&bench(address, &[&rtt[..], &transfer].concat()));
    for row in ["udp_64", "rpc_udp_64"] {
        let lost = metric(&rtt, &format!("{row}_lost"));
        assert!(lost >= 4.0, "{lost} of 40 lost");
    }
    assert_eq!(metric(&rtt, "tcp_64_lost"), 0.0);
    assert_eq!(metric(&rtt, "transfer_udp_65536_incomplete"), 1.0);
    assert_eq!(metric(&rtt, "transfer_tcp_65536_incomplete"), 0.0);
    far.stop();
}

#[test]
fn a_far_end_survives_noise_crowds_and_peers_that_vanish() {
    let far = Far::start();
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    for noise in [&b""[..], b"GET / HTTP/1.0\r\n\r\n", b"nfskit-stream 1\n", &[0xff; 5_000]] {
        socket.send_to(noise, far.address).unwrap();
        let mut stream = TcpStream::connect(far.address).unwrap();
        stream.write_all(noise).ok();
        // Until it is closed it has a place, which would be free for the last of the crowd.
        stream.shutdown(Shutdown::Write).ok();
        stream.read_to_end(&mut Vec::new()).ok();
    }
    // More than may be at once; the last are closed, and these end.
    let crowd: Vec<_> = (0..30).map(|_| TcpStream::connect(far.address).unwrap()).collect();
    let closed = crowd.last().unwrap().read(&mut [0; 64]);
    assert!(matches!(closed, Ok(0) | Err(_)), "{closed:?}");
    drop(crowd);
    // Interrupted in the middle of a run, whose place is free at once.
    for bench_name in [&["stream", "--time", "60s"][..], &["rtt", "--trials", "100000"]] {
        let to = far.address.to_string();
        let mut command = nfskit([&["bench"], bench_name, &["--to", &to]].concat());
        let running = Program::start(&mut command);
        connected_to(far.address, running.pid());
        running.signal(Signal::INT);
        running.finish().was_interrupted();
    }
    let finished = far.bench(&["rtt", "--trials", "10", "--no-transfer", "--size", "64"]);
    assert_eq!(finished.code, Some(0), "{finished:?}");
    far.stop();
}

/// Waits until a process has a TCP socket, which it makes when it can be interrupted.
fn connected_to(far: SocketAddr, pid: u32) {
    let port = format!(":{:04X} 01 ", far.port());
    let deadline = crate::program::Deadline::after(perf::units::Nanos::from_secs(60));
    while !deadline.left().is_zero() {
        let table = std::fs::read_to_string(format!("/proc/{pid}/net/tcp")).unwrap();
        if table.contains(&port) {
            return;
        }
        std::thread::yield_now();
    }
    panic!("no connection to {far}");
}

#[test]
fn storage_is_measured_with_what_it_survives_and_where_it_was_read_from() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let storage =
        ["bench", "storage", "--size", "1M", "--call", "64K", "--repeats", "2", "--dir", path];
    let finished = run([&storage[..], &["--appends", "20", "--json", "-"]].concat());
    let record = record(&finished);
    assert!(metric(&record, "written_mib_per_s") >= metric(&record, "flushed_mib_per_s"));
    for name in ["read_mib_per_s", "reread_mib_per_s", "appends_per_s", "generator_cpu_share"] {
        assert!(metric(&record, name) > 0.0);
    }
    assert_eq!(record["histograms"]["append"]["unit"], "ns");
    assert!(record["target"]["file_system"].is_string());
    let shown = run([&storage[..], &["--appends", "20"]].concat());
    for part in ["written, synced", "in memory before", "fdatasync", "p99.9", "surviv"] {
        assert!(shown.stdout.contains(part), "no {part:?} in {shown:?}");
    }
    assert_eq!(names(dir.path()), [] as [String; 0]);
    let running = Program::start(&mut nfskit([&storage[..7], &["1000", "--dir", path]].concat()));
    appears(dir.path(), |name| name.starts_with(".nfskit-scratch-"));
    running.signal(Signal::INT);
    running.finish().was_interrupted();
    assert_eq!(names(dir.path()), [] as [String; 0]);
}

#[test]
fn storage_that_cannot_be_measured_is_reported_before() {
    let dir = tempfile::tempdir().unwrap();
    let at = |path: &std::path::Path, more: &[&str]| {
        run([&["bench", "storage", "--dir", path.to_str().unwrap()], more].concat())
    };
    at(&dir.path().join("absent"), &[]).complains(3, &["absent", "a directory that exists"]);
    let file = dir.path().join("file");
    std::fs::write(&file, "data").unwrap();
    at(&file, &[]).complains(3, &["is not a directory"]);
    let full = at(dir.path(), &["--size", "4000T"]);
    full.complains(3, &["4398046512152576 bytes are needed there", "are free"]);
    at(dir.path(), &["--call", "2G"]).complains(2, &["--call is above 1G"]);
    at(dir.path(), &["--appends", "1000000", "--repeats", "100"]).complains(2, &["are recorded"]);
}

#[test]
fn sizes_and_counts_out_of_range_are_usage() {
    let to = ["--to", "127.0.0.1:9"];
    let usage = |arguments: &[&str], parts: &[&str]| {
        run([&["bench"], arguments, &to].concat()).complains(2, parts);
    };
    usage(&["stream", "--size", "39"], &["39 bytes", "40 to"]);
    usage(&["stream", "--proto", "udp", "--size", "65508"], &["40 to 65507"]);
    usage(&["stream", "--bytes", "1K"], &["--bytes"]);
    usage(&["stream", "--time", "4000s"], &["--time is above"]);
    usage(&["rtt", "--size", "64K"], &["40 to 65507"]);
    usage(&["rtt", "--packet", "10"], &["10 bytes"]);
    usage(&["rtt", "--transfer", "2G"], &["at most 1G"]);
    usage(&["rtt", "--trials", "10000000"], &["are recorded"]);
    usage(&["spray", "-l", "20"], &["86 to 8931"]);
    usage(&["spray", "-l", "9000"], &["86 to 8931"]);
    usage(&["rtt", "--row-time", "4000s"], &["--row-time is above"]);
    usage(&["spray", "-c", "10000", "-d", "1s"], &["10000 calls take longer"]);
    let target = ["bench", "spray", "--target", "nfs://h/x", "-c", "10000000", "--repeats", "100"];
    run(target).complains(2, &["are recorded"]);
}
