//! Targets that are not there, not NFS servers, or go wrong on the way: exit code 3, one message
//! that names the step, the address and what to try, and no waiting beyond the stated limits.

use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::process::Command;

use rustix::process::Signal;
use wire::Procedure;

use crate::peer::Peer;
use crate::program::{Finished, Program, nfskit};
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
    let second =
        nfskit(["bench", "seqwrite", "--size", "8M", "--target", url, "--reply-limit", "700ms"]);
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
    fails("nfs://nosuchhost.invalid/x", &["portmapper", "cannot resolve", "nosuchhost.invalid"]);
    let with_ports = "nfs://nosuchhost.invalid/x?nfsport=2049&mountport=2049";
    fails(with_ports, &["cannot resolve", "nosuchhost.invalid", "address instead of its name"]);
}

#[test]
fn a_port_on_which_nobody_listens() {
    // Tests that run beside this one take ports of 127.0.0.1 only.
    const HOST: &str = "127.0.111.1";
    let address = TcpListener::bind((HOST, 0)).unwrap().local_addr().unwrap();
    let refused = [&address.to_string(), "refused the connection", "nfsport="];
    let port = address.port();
    let ports = format!("nfs://{HOST}/x?nfsport={port}&mountport={port}");
    fails(&ports, &[&refused[..], &["MOUNT service"]].concat());
    // The one found out only after the other has answered.
    let served = Served::start(nfskit(["serve", "mem:"]), &format!("{HOST}:0"));
    let ports = format!("nfs://{HOST}/?nfsport={port}&mountport={}", served.address.port());
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
    let finished = Program::start(&mut nfskit(["study", "-q", "--target", &url])).finish();
    finished.complains(3, &["MOUNT service", &address.to_string(), "within 5.00 s", "firewalls"]);
}

#[test]
fn an_export_that_is_refused() {
    let served = Served::memory(&["--export", "/data"]);
    let elsewhere = url(served.port(), "/other");
    fails(&elsewhere, &["\"/other\"", "127.0.0.1", "MNT3ERR_NOENT", "showmount -e 127.0.0.1"]);
    let below = url(served.port(), "/data/nothing/here");
    fails(&below, &["NOENT", "127.0.0.1"]);
    served.stop();
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

#[test]
fn a_server_that_dies_half_way() {
    for (at, file) in ["sweep", "run-0"].into_iter().enumerate() {
        let served = Served::folder(&[]);
        let (mut command, _folder) = {
            let mut both = commands(&served.url());
            both[1].0.args(["--repeats", "1000"]);
            both.into_iter().nth(at).unwrap()
        };
        let running = Program::start(&mut command);
        served.is_written_to(file);
        served.program.signal(Signal::KILL);
        let finished: Finished = running.finish();
        let server = served.address.to_string();
        finished.complains(3, &[&server, ".nfskit-scratch-", "could not be removed"]);
    }
}
