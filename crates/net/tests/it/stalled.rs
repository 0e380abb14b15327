//! Calls in system calls that do not return, over real sockets of the loopback.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use bytes::Bytes;
use net::clock::Clock;
use net::http::{self, Found};
use net::serve::{Drained, Host, Limits, Peer};
use net::shape::LinkPair;
use net::transport::RECORD_BYTES_MAX;
use net::transport::tcp::Listener;
use parking_lot::RwLock;
use perf::units::Nanos;
use tokio::sync::oneshot;
use wire::record::{Fragment, Message};

const PATIENCE: Duration = Duration::from_secs(20);

/// Of the record of a call that goes through the gate.
const GATED: u8 = 1;

/// A server whose gated calls keep the thread that polls them while the gate is shut.
struct Server {
    address: SocketAddr,
    /// Where it tells that it is well.
    health: SocketAddr,
    /// Gets a word of each gated call when it has begun.
    begun: Receiver<()>,
    end: oneshot::Sender<()>,
    ended: JoinHandle<Drained>,
}

impl Server {
    fn start(gate: &Arc<RwLock<()>>, calls_max: usize, limits: Limits) -> Self {
        let (begins, begun) = mpsc::channel();
        let (end, ends) = oneshot::channel();
        let (answer, addresses) = mpsc::channel();
        let gate = Arc::clone(gate);
        let run = async move {
            let host = listen(&gate, limits, &begins, &answer);
            answer.send(tells_health()).unwrap();
            ends.await.unwrap();
            host.drain(Nanos::ZERO).await
        };
        let run = move || net::runtime::serve_on_threads(2, calls_max, run).unwrap();
        let ended = thread::spawn(run);
        let address = || addresses.recv().unwrap();
        Self { address: address(), health: address(), begun, end, ended }
    }

    fn begins(&self, tag: u8, bytes: usize) -> TcpStream {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        calls(&mut stream, tag, bytes);
        stream
    }

    /// A connection whose call was answered. There is no place for it until one before it is idle,
    /// which that is a moment after its reply.
    fn finds_place(&self, bytes: usize) -> TcpStream {
        let mut found = (0..10_000).filter_map(|_| {
            let mut stream = TcpStream::connect(self.address).ok()?;
            stream.set_read_timeout(Some(PATIENCE)).ok()?;
            stream.write_all(&record(0, bytes)).ok()?;
            stream.read_exact(&mut vec![0; 4 + bytes]).ok()?;
            Some(stream)
        });
        found.next().expect("there is a place")
    }

    fn answers(&self, bytes: usize) {
        is_answered(&mut self.begins(0, bytes), bytes);
    }
}

fn listen(
    gate: &Arc<RwLock<()>>,
    limits: Limits,
    begins: &Sender<()>,
    answer: &Sender<SocketAddr>,
) -> Host {
    let clock = Clock::real();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
    answer.send(listener.local_addr().unwrap()).unwrap();
    let host = Host::new(&clock, limits);
    let (own, gate, begins) = (host.clone(), Arc::clone(gate), begins.clone());
    let service = move |_: Peer, record: Bytes| {
        let (gate, begins) = (Arc::clone(&gate), begins.clone());
        async move {
            if record[0] == GATED {
                begins.send(()).unwrap();
                drop(gate.read());
            }
            Some(Message { head: Vec::new(), payload: record })
        }
    };
    clock.spawn(async move { own.listen(listener, LinkPair::default(), service).await.unwrap() });
    host
}

fn tells_health() -> SocketAddr {
    let listener = http::Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
    let address = listener.local_addr().unwrap();
    let clock = Clock::real();
    let pages = |_: &str| Some(Found::text("well"));
    clock.spawn(listener.serve(clock.clone(), pages));
    address
}

fn is_well(server: &Server) {
    let mut stream = TcpStream::connect(server.health).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("the server tells how it is");
    assert!(answer.ends_with("well"), "{answer}");
}

fn calls(stream: &mut TcpStream, tag: u8, bytes: usize) {
    stream.write_all(&record(tag, bytes)).unwrap();
}

fn record(tag: u8, bytes: usize) -> Vec<u8> {
    let len = u32::try_from(bytes).unwrap();
    [&Fragment { last: true, len }.to_header()[..], &vec![tag; bytes]].concat()
}

fn is_answered(stream: &mut TcpStream, bytes: usize) {
    stream.read_exact(&mut vec![0; 4 + bytes]).expect("the call is answered");
}

#[test]
fn however_many_calls_do_not_return_others_are_answered_and_the_end_comes() {
    let gate = Arc::new(RwLock::new(()));
    let shut = gate.write();
    let server = Server::start(&gate, 64, Limits::default());
    server.answers(100);
    // The large ones have tasks of their own, and turns.
    let stuck: Vec<_> = [300 << 10, 100].repeat(20);
    let mut stuck: Vec<_> =
        stuck.into_iter().map(|bytes| (server.begins(GATED, bytes), bytes)).collect();
    for _ in &stuck {
        server.begun.recv_timeout(PATIENCE).expect("each begins, whatever the others wait for");
        server.answers(100);
        server.answers(300 << 10);
        is_well(&server);
    }
    drop(shut);
    stuck.iter_mut().for_each(|(stream, bytes)| is_answered(stream, *bytes));
    drop(stuck);

    let _shut = gate.write();
    let _stuck: Vec<_> = (0..5).map(|_| server.begins(GATED, 100)).collect();
    (0..5).for_each(|_| server.begun.recv_timeout(PATIENCE).unwrap());
    server.end.send(()).unwrap();
    let Drained { calls_abandoned, connections_abandoned } = server.ended.join().unwrap();
    assert_eq!((calls_abandoned, connections_abandoned >= 5), (5, true));
}

#[test]
fn a_connection_whose_call_does_not_return_keeps_its_place() {
    let gate = Arc::new(RwLock::new(()));
    let shut = gate.write();
    let limits = Limits { connections_per_host_max: 2, ..Limits::default() };
    let server = Server::start(&gate, 64, limits);
    let mut stuck = server.begins(GATED, 100);
    server.begun.recv_timeout(PATIENCE).unwrap();
    let others: Vec<_> = (0..3).map(|_| server.finds_place(100)).collect();
    drop(shut);
    is_answered(&mut stuck, 100);
    calls(&mut stuck, 0, 100);
    is_answered(&mut stuck, 100);
    drop(others);
}
