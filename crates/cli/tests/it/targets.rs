//! Targets that are not there, not NFS servers, or go wrong on the way: exit code 3, one message
//! that names the step, the address and what to try, and no waiting beyond the stated limits.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use rustix::process::Signal;
use wire::Procedure;

use crate::peer::{Nobody, Peer};
use crate::program::{Program, nfskit, scratch_appears};
use crate::served::{Served, url};

const MNT: Procedure = Procedure::Mount(wire::mount::Procedure::Mnt);
const FSINFO: Procedure = Procedure::Nfs3(wire::nfs3::Procedure::Fsinfo);
const MKDIR: Procedure = Procedure::Nfs3(wire::nfs3::Procedure::Mkdir);
const CREATE: Procedure = Procedure::Nfs3(wire::nfs3::Procedure::Create);

/// A study and a benchmark of a target, each with a folder for what it would write.
fn commands(url: &str) -> [(Command, tempfile::TempDir); 2] {
    let folder = || tempfile::tempdir().unwrap();
    let (study, bench) = (folder(), folder());
    let mut first = nfskit(["study", "--quick", "--target", url, "--reply-limit", "700ms"]);
    first.arg("--out").arg(study.path());
    let second = nfskit([
        "bench",
        "seqwrite",
        "--wire",
        "--size",
        "8M",
        "--target",
        url,
        "--reply-limit",
        "700ms",
    ]);
    [(first, study), (second, bench)]
}

/// Asserts that both commands fail with a message that has all of `parts`.
#[track_caller]
fn fails(url: &str, parts: &[&str]) {
    for (mut command, folder) in commands(url) {
        let finished = Program::start(&mut command).finish();
        finished.complains(3, parts);
        let left: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
        assert!(left.is_empty(), "a failed study writes no report: {left:?}");
    }
}

#[test]
fn a_host_that_does_not_resolve() {
    fails("nfs://nosuchhost.invalid/x", &["cannot resolve", "nosuchhost.invalid"]);
    let with_ports = "nfs://nosuchhost.invalid/x?nfsport=2049&mountport=2049";
    fails(with_ports, &["cannot resolve", "nosuchhost.invalid", "address instead of its name"]);
}

/// Addresses of the loopback that no other test has: where a portmapper of this host listens at
/// all of them, it knows nothing of what is served here.
const SERVED: &str = "127.77.1.1:2049";
const DESERTED: &str = "127.77.1.2";

/// A portmapper of this host may know of another MOUNT.
fn knows_no_mount() -> bool {
    let portmapper = TcpStream::connect((Ipv4Addr::LOCALHOST, wire::portmap::PORT));
    if portmapper.is_ok() {
        eprintln!("SKIPPED in part: a portmapper runs on this host");
    }
    portmapper.is_err()
}

#[test]
fn a_server_without_a_portmapper_is_found_by_the_port_of_nfs() {
    let mut serve = nfskit(["serve", "mem:", "--export", "/=no_root_squash,insecure"]);
    serve.arg("--udp");
    let served = Served::start(serve, SERVED);
    for target in
        ["127.77.1.1:/", "nfs://127.77.1.1/", "127.77.1.1:/?proto=udp", "127.77.1.1:/?version=2"]
    {
        let basic = ["bench", "basic", "-f", "--test", "1", "--target", target];
        let finished = Program::start(&mut nfskit(basic)).finish();
        assert_eq!(finished.code, Some(0), "{target}: {finished:?}");
    }
    served.stop();
    // NFS on another port, which the URL names: MOUNT is looked for there.
    let served = Served::memory(&[]);
    let target = format!("nfs://127.0.0.1:{}/", served.port());
    let basic = ["bench", "basic", "-f", "--test", "1", "--target", &target];
    if knows_no_mount() {
        let finished = Program::start(&mut nfskit(basic)).finish();
        assert_eq!(finished.code, Some(0), "{finished:?}");
    }
    served.stop();
}

#[test]
fn a_host_without_any_service_is_reported_with_all_that_was_tried() {
    for target in [format!("{DESERTED}:/export"), format!("nfs://{DESERTED}/export")] {
        let parts = [
            "cannot find the NFS service of 127.77.1.2",
            "portmapper",
            "127.77.1.2:2049 refused the connection",
            "start the server (nfskit serve DIR",
            "?nfsport=2049&mountport=20048",
        ];
        fails(&target, &parts);
    }
    if knows_no_mount() {
        let echo = Peer::echo();
        let url = format!("nfs://{}/x", echo.address());
        fails(&url, &["cannot find the MOUNT service", &echo.address(), "20048", "nfskit serve"]);
    }
}

#[test]
fn a_port_on_which_nobody_listens() {
    let nobody = Nobody::there();
    let refused = [&nobody.address.to_string(), "refused the connection", "nfsport="];
    let port = nobody.address.port();
    fails(&url(port, "/x"), &[&refused[..], &["MOUNT service"]].concat());
    // The one found out only after the other has answered.
    let served = Served::memory(&[]);
    let ports = format!("nfs://127.0.0.1/?nfsport={port}&mountport={}", served.port());
    fails(&ports, &[&refused[..], &["NFS service"]].concat());
    served.stop();
}

#[test]
fn a_host_that_accepts_and_never_replies() {
    let peer = Peer::silent();
    fails(&peer.url(), &["MNT", &peer.address(), "no reply within 700 ms", "alive"]);
}

#[test]
fn a_host_that_does_not_even_accept() {
    // A listener whose queue is full: the kernel then drops what asks for a connection.
    let socket = rustix::net::socket(
        rustix::net::AddressFamily::INET,
        rustix::net::SocketType::STREAM,
        None,
    )
    .unwrap();
    rustix::net::bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    rustix::net::listen(&socket, 0).unwrap();
    let listener = TcpListener::from(socket);
    let address = listener.local_addr().unwrap();
    let _in_the_queue = TcpStream::connect(address).unwrap();
    let url = url(address.port(), "/x");
    let folder = tempfile::tempdir().unwrap();
    let mut study = nfskit(["study", "-q", "--target", &url, "--out"]);
    let finished = Program::start(study.arg(folder.path())).finish();
    finished.complains(3, &["MOUNT service", &address.to_string(), "within 5.00 s", "firewalls"]);
}

#[test]
fn an_export_that_is_refused() {
    let served = Served::memory(&["--export", "/data"]);
    let elsewhere = url(served.port(), "/other");
    fails(&elsewhere, &["\"/other\"", "127.0.0.1", "MNT3ERR_NOENT", "nfskit doctor"]);
    let below = url(served.port(), "/data/nothing/here");
    fails(&below, &["NOENT", "127.0.0.1"]);
    served.stop();
}

#[test]
fn an_export_that_is_not_for_us() {
    let peer = Peer::refusing();
    fails(&peer.url(), &["\"/export\"", &peer.address(), "MNT3ERR_ACCES", "administrator"]);
}

#[test]
fn a_path_that_is_a_file() {
    let served = Served::folder(&[]);
    std::fs::write(served.path().join("file"), "x").unwrap();
    fails(&url(served.port(), "/file"), &["NOTDIR", "127.0.0.1"]);
    served.stop();
}

#[test]
fn an_echo() {
    let peer = Peer::echo();
    fails(&peer.url(), &["MNT", &peer.address(), "no RPC server", "another port"]);
}

#[test]
fn a_server_that_speaks_text() {
    let web = Peer::saying(b"HTTP/1.0 400 Bad Request\r\n\r\n");
    fails(&web.url(), &["MNT", &web.address(), "no RPC record", "another port"]);
    let ssh = Peer::saying(b"SSH-2.0-OpenSSH_9.9\r\n");
    fails(&ssh.url(), &["MNT", &ssh.address(), "no RPC record", "another port"]);
}

#[test]
fn noise() {
    for seed in [1, 2, 3] {
        let peer = Peer::noise(seed);
        fails(&peer.url(), &["MNT", &peer.address()]);
    }
}

#[test]
fn a_server_that_closes_at_once() {
    let peer = Peer::closing();
    fails(&peer.url(), &["MNT", &peer.address(), "the server's log"]);
}

#[test]
fn a_server_whose_results_are_garbage() {
    let peer = Peer::lying(&[]);
    fails(&peer.url(), &["MNT", &peer.address(), "malformed"]);
    let peer = Peer::lying(&[MNT]);
    fails(&peer.url(), &["FSINFO", &peer.address(), "malformed"]);
    let peer = Peer::lying(&[MNT, FSINFO]);
    fails(&peer.url(), &["MKDIR", &peer.address(), "malformed"]);
}

#[test]
fn a_server_whose_results_become_garbage_half_way() {
    let peer = Peer::lying(&[MNT, FSINFO, MKDIR, CREATE]);
    let parts = ["WRITE", &peer.address(), "malformed", ".nfskit-scratch-", "not be removed"];
    fails(&peer.url(), &parts);
}

/// What a study and a benchmark say when that is done to the server while they write.
fn stopped_half_way(signal: Signal, parts: &[&str]) -> [Served; 2] {
    [(0, "sweep"), (1, "run-")].map(|(at, file)| {
        let served = Served::folder(&[]);
        let (mut command, _folder) = {
            let mut both = commands(&served.url());
            both[1].0.args(["--repeats", "1000"]);
            both.into_iter().nth(at).unwrap()
        };
        let running = Program::start(&mut command);
        served.is_written_to(file);
        served.program.signal(signal);
        let finished = running.finish();
        let left_behind = scratch_appears(served.path());
        let name = left_behind.file_name().unwrap().to_str().unwrap();
        let server = served.address.to_string();
        finished.complains(3, &[&[&server, name, "could not be removed"], parts].concat());
        served
    })
}

#[test]
fn a_server_that_dies_half_way() {
    stopped_half_way(Signal::KILL, &[]);
}

#[test]
fn a_server_that_freezes_half_way() {
    stopped_half_way(Signal::STOP, &["no reply within 700 ms", "alive"]);
}

#[test]
fn a_server_that_is_ended_half_way() {
    for served in stopped_half_way(Signal::TERM, &[]) {
        let finished = served.program.finish();
        assert_eq!((finished.code, finished.stderr.as_str()), (Some(0), ""), "{finished:?}");
    }
}
