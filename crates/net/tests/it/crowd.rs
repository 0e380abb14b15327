//! Many connections at once over real sockets: all are answered, and memory stays bounded.
//!
//! In a process of its own, because it looks at the memory of the whole process.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use bytes::Bytes;
use net::clock::{Clock, yield_now};
use net::serve::{Host, Limits, Peer};
use net::shape::LinkPair;
use net::transport::RECORD_BYTES_MAX;
use net::transport::tcp::Listener;
use perf::units::Nanos;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use wire::record::{Fragment, Message};
use wire::rpc::{ReplyHeader, peek};
use wire::xdr::Encode;

const PATIENCE: Nanos = Nanos::from_secs(120);
const CONNECTIONS: usize = 1000;
/// Connections that send so many calls each before they read; the others send one.
const BUSY: usize = 64;
const PIPELINED: u32 = 64;
const CALL_BYTES: usize = 32 << 10;

const MIB: usize = 1 << 20;
const IN_FLIGHT_MAX: usize = 32 * MIB;
/// A reply without results, with its mark.
const REPLY_BYTES: usize = 4 + 24;

/// What the server may hold: its bytes in flight; of each busy connection the record that waits
/// and the slab that the next is read into; of every connection its task, and the test's own.
const BOUND: usize = IN_FLIGHT_MAX + BUSY * 2 * (64 << 10) + CONNECTIONS * (16 << 10);
/// The allocator's, and the page tables'.
const MARGIN: usize = 16 * MIB;

/// Raises the limit of descriptors to what two ends of each connection take; false if it cannot.
fn may_open(count: u64) -> bool {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit).is_ok() && limit.maximum.is_none_or(|most| most >= count)
}

fn resident_bytes() -> usize {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    let kib: usize = line.trim().trim_end_matches(" kB").parse().unwrap();
    kib << 10
}

fn call(xid: u32, bytes: usize) -> Vec<u8> {
    let mark = Fragment { last: true, len: u32::try_from(bytes).unwrap() }.to_header();
    let mut call = [mark, xid.to_be_bytes(), [0; 4]].concat();
    call.resize(4 + bytes, 0);
    call
}

/// Sends calls, and reads as many replies.
async fn client(server: SocketAddr, count: u32, bytes: usize) {
    let mut stream = TcpStream::connect(server).await.unwrap();
    let (mut read, mut write) = stream.split();
    let ask = async {
        let mut call = call(0, bytes);
        for xid in 0..count {
            call[4..8].copy_from_slice(&xid.to_be_bytes());
            write.write_all(&call).await.unwrap();
        }
    };
    let take = async {
        let mut answered = vec![false; count as usize];
        let mut reply = [0; REPLY_BYTES];
        for _ in 0..count {
            read.read_exact(&mut reply).await.unwrap();
            let (xid, _) = peek(&reply[4..]).unwrap();
            assert!(!std::mem::replace(&mut answered[xid as usize], true), "{xid} twice");
        }
    };
    tokio::join!(ask, take);
}

/// Set in the process that has the memory to itself.
const ALONE: &str = "NFSKIT_TEST_ALONE";

/// Runs one test of this program again, in a process of its own.
fn run_alone(test: &str) {
    let program = std::env::current_exe().unwrap();
    let arguments = ["--exact", test, "--nocapture"];
    let status = std::process::Command::new(program).args(arguments).env(ALONE, "1").status();
    assert!(status.unwrap().success(), "{test} failed in a process of its own");
}

#[test]
fn a_thousand_connections_are_answered_within_the_bound_of_memory() {
    if std::env::var_os(ALONE).is_none() {
        return run_alone("crowd::a_thousand_connections_are_answered_within_the_bound_of_memory");
    }
    let descriptors = 2 * CONNECTIONS as u64 + 100;
    if !may_open(descriptors) {
        assert!(std::env::var_os("CI").is_none(), "needs {descriptors} descriptors: ulimit -Hn");
        eprintln!("SKIPPED: needs {descriptors} descriptors: ulimit -Hn");
        return;
    }
    let work = async {
        let clock = Clock::real();
        let gate = Arc::new(Semaphore::new(0));
        let held = Arc::clone(&gate);
        let service = move |_: Peer, record: Bytes| {
            let gate = Arc::clone(&held);
            async move {
                let _passed = gate.acquire().await.unwrap();
                let (xid, _) = peek(&record).unwrap();
                Some(Message::new(ReplyHeader::success(xid).to_bytes()))
            }
        };
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
        let server = listener.local_addr().unwrap();
        let limits = Limits { bytes_in_flight_max: IN_FLIGHT_MAX, ..Limits::default() };
        let host = Host::new(&clock, limits);
        let own = host.clone();
        clock.spawn(
            async move { own.listen(listener, LinkPair::default(), service).await.unwrap() },
        );

        let before = resident_bytes();
        let (done, mut finished) = tokio::sync::mpsc::unbounded_channel();
        for number in 0..CONNECTIONS {
            let (count, bytes) = if number < BUSY { (PIPELINED, CALL_BYTES) } else { (1, 72) };
            let done = done.clone();
            clock.spawn(async move {
                client(server, count, bytes).await;
                done.send(()).unwrap();
            });
        }
        drop(done);
        // They are of one host, which leaves half of what is not reserved to others.
        let full = (IN_FLIGHT_MAX / 2) as u64;
        while host.counts().served_now < CONNECTIONS as u64 || host.counts().bytes_in_flight < full
        {
            yield_now().await;
        }
        let grown = resident_bytes() - before;
        assert!(host.counts().bytes_in_flight <= IN_FLIGHT_MAX as u64);
        assert!(grown <= BOUND + MARGIN, "{} MiB of {} MiB", grown / MIB, BOUND / MIB);
        gate.add_permits(256);
        for _ in 0..CONNECTIONS {
            finished.recv().await.unwrap();
        }
        let grown = resident_bytes().saturating_sub(before);
        assert!(grown <= BOUND + MARGIN, "{} MiB of {} MiB", grown / MIB, BOUND / MIB);
        assert_eq!(host.drain(PATIENCE).await, Default::default());
        assert_eq!(host.counts().bytes_in_flight, 0);
        println!("{} MiB of {} MiB", grown / MIB, BOUND / MIB);
    };
    net::runtime::block_on(async { Clock::real().within(PATIENCE, work).await.unwrap() }).unwrap();
}
