//! Records over real sockets of the loopback, and the emulated link in front of them.

use std::future::{Future, poll_fn};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;

use bytes::Bytes;
use futures_util::stream::{FuturesUnordered, StreamExt};
use net::call::{Options, Rpc, Target};
use net::clock::{Clock, yield_now};
use net::error::TransportError;
use net::relay::{self, Callers, Relay};
use net::serve::{Host, Limits, Peer, REPLY_BYTES_MAX, Reply, Service};
use net::shape::{LinkPair, Shaped};
use net::transport::buffer::Pool;
use net::transport::tcp::{self, Listener, Tcp};
use net::transport::{RECORD_BYTES_MAX, Transport};
use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use wire::record::{Fragment, Message, RecordError};
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;

const ANY_PORT: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);
const PATIENCE: Nanos = Nanos::from_secs(60);

/// Runs a test, which has to end in time.
fn in_time<T>(work: impl Future<Output = T>) -> T {
    net::runtime::block_on(async { Clock::real().within(PATIENCE, work).await.unwrap() }).unwrap()
}

/// Numbers without a pattern, the same for the same seed (xorshift64, Marsaglia 2003).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(end).unwrap()).unwrap()
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next().to_le_bytes()).flatten().take(count).collect()
    }

    /// Small, around the sizes of a slab, and large.
    fn record(&mut self) -> Vec<u8> {
        let count = match self.below(8) {
            0 => self.below(4),
            1..4 => 4 * self.below(100),
            4 => self.below(20_000),
            5 => 65_000 + self.below(1_000),
            6 => RECORD_BYTES_MAX - self.below(300),
            _ => self.below(RECORD_BYTES_MAX),
        };
        self.bytes(count)
    }
}

fn fragment(bytes: &[u8], last: bool) -> Vec<u8> {
    let len = u32::try_from(bytes.len()).unwrap();
    [&Fragment { last, len }.to_header()[..], bytes].concat()
}

/// A raw stream, and the transport at its other end.
async fn pair() -> (TcpStream, Tcp) {
    let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
    let address = listener.local_addr().unwrap();
    let (stream, accepted) = tokio::join!(TcpStream::connect(address), listener.accept());
    let stream = stream.unwrap();
    stream.set_nodelay(true).unwrap();
    (stream, accepted.unwrap())
}

async fn receive(tcp: &mut impl Transport) -> Result<Option<Bytes>, TransportError> {
    poll_fn(|cx| tcp.poll_receive(cx)).await
}

/// Writes a stream in pieces, with others at work in between.
async fn dribble(stream: &mut TcpStream, bytes: &[u8], random: &mut Random) -> io::Result<()> {
    let mut rest = bytes;
    while !rest.is_empty() {
        let most = [8, 2_000, 300_000][random.below(3)];
        let (piece, after) = rest.split_at((1 + random.below(most)).min(rest.len()));
        stream.write_all(piece).await?;
        rest = after;
        yield_now().await;
    }
    Ok(())
}

#[test]
fn records_of_any_size_arrive_in_order_however_the_stream_is_cut() {
    for seed in 1..=8 {
        let mut random = Random(seed);
        let records: Vec<Vec<u8>> = (0..40).map(|_| random.record()).collect();
        let mut bytes = Vec::new();
        for record in &records {
            let mut rest = record.as_slice();
            for _ in 0..random.below(4) {
                let (piece, after) = rest.split_at(random.below(1 + rest.len()));
                bytes.extend(fragment(piece, false));
                rest = after;
            }
            bytes.extend(fragment(rest, true));
        }
        in_time(async {
            let (mut stream, mut tcp) = pair().await;
            let write = async {
                dribble(&mut stream, &bytes, &mut random).await.unwrap();
                stream.shutdown().await.unwrap();
            };
            let read = async {
                for (at, record) in records.iter().enumerate() {
                    let received = receive(&mut tcp).await.unwrap().unwrap();
                    assert!(received == record[..], "seed {seed}, record {at}");
                }
                assert!(receive(&mut tcp).await.unwrap().is_none());
            };
            tokio::join!(write, read);
        });
    }
}

#[test]
fn messages_of_any_size_arrive_at_a_slow_receiver() {
    let mut random = Random(0x510);
    let messages: Vec<(Vec<u8>, Vec<u8>)> = (0..60)
        .map(|_| {
            let head = 4 * random.below(100);
            let payload = random.record();
            let payload = payload[..payload.len().min(RECORD_BYTES_MAX - 500)].to_vec();
            (random.bytes(head), payload)
        })
        .collect();
    in_time(async {
        let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
        let (clock, pool) = (Clock::real(), Pool::new(RECORD_BYTES_MAX));
        let address = listener.local_addr().unwrap();
        let connect = tcp::connect(&clock, address, PATIENCE, &pool, RECORD_BYTES_MAX);
        let (sender, receiver) = tokio::join!(connect, listener.accept());
        let (mut sender, mut receiver) = (sender.unwrap(), receiver.unwrap());
        let send = async {
            for (head, payload) in &messages {
                poll_fn(|cx| sender.poll_ready(cx)).await.unwrap();
                sender.send(Message { head: head.clone(), payload: payload.clone().into() });
            }
            poll_fn(|cx| sender.poll_flush(cx)).await.unwrap();
        };
        let take = async {
            for (head, payload) in &messages {
                let expected = Message { head: head.clone(), payload: payload.clone().into() };
                let received = receive(&mut receiver).await.unwrap().unwrap();
                assert!(received == expected.to_vec()[..]);
                for _ in 0..20 {
                    yield_now().await;
                }
            }
        };
        tokio::join!(send, take);
    });
}

/// What a receiver says after these bytes and the end of the stream.
fn after(bytes: &[u8]) -> Result<Option<Bytes>, TransportError> {
    in_time(async {
        let (mut stream, mut tcp) = pair().await;
        let write = async {
            stream.write_all(bytes).await.ok();
            stream.shutdown().await.ok();
        };
        tokio::join!(write, receive(&mut tcp)).1
    })
}

#[test]
fn a_stream_that_ends_within_a_record_is_distinguished_from_one_that_ends_behind_it() {
    let record = fragment(&[7; 40], true);
    for length in 1..record.len() {
        assert!(matches!(after(&record[..length]), Err(TransportError::Truncated)), "{length}");
    }
    assert!(matches!(after(&[]), Ok(None)));
    assert!(matches!(after(&record), Ok(Some(bytes)) if bytes == [7; 40][..]));
    // Behind a fragment that is not the last, too.
    assert!(matches!(after(&fragment(&[7; 40], false)), Err(TransportError::Truncated)));
    let large = fragment(&vec![7; 1 << 20], true);
    assert!(matches!(after(&large[..1 << 19]), Err(TransportError::Truncated)));
}

#[test]
fn what_is_too_long_is_refused_when_it_is_announced() {
    let too_long = |bytes: &[u8], announced| {
        let error = after(bytes).unwrap_err();
        let TransportError::Record(RecordError::TooLong { max, got }) = error else {
            panic!("{error}");
        };
        assert_eq!((max, got), (RECORD_BYTES_MAX, announced));
    };
    too_long(&[0xff; 4], 0x7fff_ffff);
    let first = fragment(&[0; 1000], false);
    too_long(&[&first[..], &[0xff; 4]].concat(), 1000 + 0x7fff_ffff);
    let empty_fragments = [0; 4 * 5000];
    assert!(matches!(after(&empty_fragments), Err(TransportError::TooManyFragments { .. })));
}

/// The peer may take its time to close, and what it has sent of a record is of no use.
#[test]
fn what_is_closed_holds_no_memory_for_a_record_that_will_not_be_whole() {
    in_time(async {
        let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
        let address = listener.local_addr().unwrap();
        let (stream, tcp) = tokio::join!(TcpStream::connect(address), listener.accept());
        let (mut stream, mut tcp) = (stream.unwrap(), tcp.unwrap());
        let half = Fragment { last: true, len: 1 << 20 }.to_header();
        stream.write_all(&[&half[..], &vec![0; 1 << 19]].concat()).await.unwrap();
        while listener.pool().taken_bytes() < 1 << 20 {
            let received = poll_fn(|cx| Poll::Ready(tcp.poll_receive(cx))).await;
            assert!(received.is_pending());
            yield_now().await;
        }
        let closed = poll_fn(|cx| Poll::Ready(tcp.poll_close(cx))).await;
        assert!(closed.is_pending(), "the peer goes on");
        assert_eq!(listener.pool().taken_bytes(), 0);
    });
}

#[test]
fn a_connection_that_is_reset_is_lost() {
    in_time(async {
        let (stream, mut tcp) = pair().await;
        socket2::SockRef::from(&stream).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(stream);
        assert!(matches!(receive(&mut tcp).await, Err(TransportError::Io(_))));
    });
}

/// Answers every call without results.
async fn void(_: Peer, record: Bytes) -> Option<Message> {
    let (xid, _) = peek(&record).unwrap();
    Some(Message::new(ReplyHeader::success(xid).to_bytes()))
}

/// A server of voids, behind a link if there is one.
fn serve_voids(clock: &Clock, limits: Limits, links: LinkPair) -> SocketAddr {
    let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
    let address = listener.local_addr().unwrap();
    let host = Host::new(clock, limits);
    clock.spawn(async move {
        host.listen(listener, links, void).await.unwrap();
    });
    address
}

/// Response times of calls with a payload, one at a time.
async fn times(clock: &Clock, transport: impl Transport + 'static, payload: usize) -> Vec<Nanos> {
    let rpc = Rpc::start(transport, clock, PATIENCE, 0);
    let null = Target { program: 100_003, version: 3, procedure: 0 };
    let payload = Bytes::from(vec![0; payload]);
    let mut times = Vec::new();
    for _ in 0..20 {
        let answer = rpc.call(null, OpaqueAuth::NONE, |_| {}, payload.clone()).await.unwrap();
        times.push(answer.response_time());
    }
    times
}

/// Asserts that no exchange was faster than `least`, and that the fastest was not much slower:
/// the machine may be busy, but hardly for every one of them.
fn all_take(least: Nanos, times: &[Nanos]) {
    let fastest = times.iter().min().unwrap();
    assert!(*fastest >= least, "{fastest} is faster than the link, {least}");
    assert!(*fastest <= least + Nanos::from_millis(50), "{fastest} for {least}");
}

const FAR: Link = Link { latency: Nanos::from_millis(3), gap: Nanos::ZERO, gap_per_byte_ps: 8_000 };

#[test]
fn an_emulated_link_delays_an_exchange_by_its_latency_there_and_back() {
    let links = LinkPair::symmetric(FAR);
    in_time(async {
        let clock = Clock::real();
        let pool = Pool::new(RECORD_BYTES_MAX);
        let there_and_back = FAR.latency + FAR.latency;
        // At the client's end.
        let plain = serve_voids(&clock, Limits::default(), LinkPair::default());
        let tcp = tcp::connect(&clock, plain, PATIENCE, &pool, RECORD_BYTES_MAX).await.unwrap();
        let shaped = Shaped::new(tcp, links, &clock).unwrap();
        all_take(there_and_back, &times(&clock, shaped, 0).await);
        // At the server's end.
        let far = serve_voids(&clock, Limits::default(), links);
        let tcp = tcp::connect(&clock, far, PATIENCE, &pool, RECORD_BYTES_MAX).await.unwrap();
        all_take(there_and_back, &times(&clock, tcp, 0).await);
    });
}

#[test]
fn an_emulated_link_takes_its_time_for_every_byte() {
    in_time(async {
        let clock = Clock::real();
        let pool = Pool::new(RECORD_BYTES_MAX);
        let server = serve_voids(&clock, Limits::default(), LinkPair::default());
        let tcp = tcp::connect(&clock, server, PATIENCE, &pool, RECORD_BYTES_MAX).await.unwrap();
        let shaped = Shaped::new(tcp, LinkPair::symmetric(FAR), &clock).unwrap();
        // 1 MiB at 8 ns per byte.
        let least = FAR.latency + FAR.latency + Nanos::from_nanos(8 << 20);
        all_take(least, &times(&clock, shaped, 1 << 20).await);
    });
}

/// Answers with a MiB when it is let to, and says beforehand that it will.
#[derive(Clone)]
struct Mebibytes {
    begun: Arc<AtomicUsize>,
    let_go: Arc<Semaphore>,
}

const MIB: usize = 1 << 20;

impl Service for Mebibytes {
    fn call(
        &self,
        peer: Peer,
        record: Bytes,
        _arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        self.begun.fetch_add(1, Ordering::Relaxed);
        let let_go = Arc::clone(&self.let_go);
        async move {
            let_go.acquire().await.unwrap().forget();
            let head = void(peer, record).await?.head;
            Some(Message { head, payload: vec![0; MIB].into() }.into())
        }
    }

    fn reply_bytes_max(&self, _record: &[u8]) -> usize {
        MIB
    }
}

#[test]
fn no_more_is_begun_than_there_is_room_for_the_replies() {
    const AT_ONCE: usize = REPLY_BYTES_MAX / MIB;
    const CALLS: usize = 3 * AT_ONCE;
    in_time(async {
        let clock = Clock::real();
        let pool = Pool::new(2 * MIB);
        let service = Mebibytes { begun: Arc::default(), let_go: Arc::new(Semaphore::new(0)) };
        let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
        let address = listener.local_addr().unwrap();
        let (host, served) = (Host::new(&clock, Limits::default()), service.clone());
        clock.spawn(async move {
            host.listen(listener, LinkPair::default(), served).await.unwrap();
        });
        let tcp = tcp::connect(&clock, address, PATIENCE, &pool, 2 * MIB).await.unwrap();
        let rpc = Rpc::start(tcp, &clock, PATIENCE, 0);
        let null = Target { program: 100_003, version: 3, procedure: 0 };
        let call = || rpc.call(null, OpaqueAuth::NONE, |_| {}, Bytes::new());
        let mut calls: FuturesUnordered<_> = (0..CALLS).map(|_| call()).collect();
        let quiet = clock.within(Nanos::from_millis(200), calls.next()).await;
        assert!(quiet.is_err(), "nothing was let go");
        assert_eq!(service.begun.load(Ordering::Relaxed), AT_ONCE);
        // Each reply makes room for one more call.
        service.let_go.add_permits(1);
        calls.next().await.unwrap().unwrap();
        while service.begun.load(Ordering::Relaxed) <= AT_ONCE {
            yield_now().await;
        }
        service.let_go.add_permits(CALLS - 1);
        while let Some(answer) = calls.next().await {
            answer.unwrap();
        }
        assert_eq!(service.begun.load(Ordering::Relaxed), CALLS);
    });
}

/// Two connections find a place at `address`; a third takes that of the idlest.
async fn two_have_a_place(clock: &Clock, address: SocketAddr) {
    let pool = Pool::new(RECORD_BYTES_MAX);
    let connect = async || {
        let tcp = tcp::connect(clock, address, PATIENCE, &pool, RECORD_BYTES_MAX).await;
        Rpc::start(tcp.unwrap(), clock, PATIENCE, 0)
    };
    let is_served = async |rpc: &Rpc| {
        let null = Target { program: 100_003, version: 3, procedure: 0 };
        rpc.call(null, OpaqueAuth::NONE, |_| {}, Bytes::new()).await.is_ok()
    };
    let (first, second) = (connect().await, connect().await);
    assert!(is_served(&first).await && is_served(&second).await);
    let third = connect().await;
    assert!(is_served(&third).await);
    assert!(!is_served(&first).await);
    assert!(is_served(&second).await && is_served(&third).await);
    // One that ends makes room.
    drop(second);
    while !is_served(&connect().await).await {
        yield_now().await;
    }
}

#[test]
fn a_connection_too_many_takes_the_seat_of_the_idlest() {
    in_time(async {
        let clock = Clock::real();
        let limits = Limits { connections_max: 2, ..Limits::default() };
        let server = serve_voids(&clock, limits, LinkPair::default());
        two_have_a_place(&clock, server).await;
    });
}

#[test]
fn a_relay_bounds_the_connections_of_a_host_and_lets_the_idlest_go() {
    in_time(async {
        let clock = Clock::real();
        let server = serve_voids(&clock, Limits::default(), LinkPair::default());
        let defaults = relay::Limits::default();
        let limits =
            relay::Limits { connections_per_host_max: 2, active_for: Nanos::ZERO, ..defaults };
        let relay = Relay::new(&clock, LinkPair::default().into(), limits, Arc::new(|_| {}), None);
        let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
        let (address, own) = (listener.local_addr().unwrap(), relay.clone());
        clock.spawn(async move { own.listen(listener, server, Callers::Everybody).await });
        two_have_a_place(&clock, address).await;
        let counts = relay.counts();
        assert!(counts.evicted > 0 && counts.refused == 0, "{counts:?}");
    });
}

/// How a connection ends.
#[derive(Clone, Copy, Debug)]
enum End {
    Closed,
    Reset,
    /// The server takes calls and says nothing, until the client gives the connection up.
    Silence,
}

/// A free port that is given only to who names it. Another test's connection would take an
/// ephemeral one in the moment between the end of a connection and the beginning of the next.
fn port_of_nobody_else() -> u16 {
    let from = 20_000 + u16::try_from(std::process::id() % 10_000).unwrap();
    let free = |port: &u16| std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, *port)).is_ok();
    (from..from + 1_000).find(free).expect("of a thousand ports one is free")
}

#[test]
fn a_connection_is_made_again_from_the_port_of_the_one_before() {
    in_time(async {
        let clock = Clock::real();
        let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
        let address = listener.local_addr().unwrap();
        let (own, pool) = (clock.clone(), Pool::new(RECORD_BYTES_MAX));
        let first = port_of_nobody_else();
        let connect = move |before: Option<SocketAddr>| {
            let (clock, pool) = (own.clone(), pool.clone());
            let port = before.map_or(first, |before| before.port());
            async move {
                tcp::connect_from(&clock, port, address, PATIENCE, &pool, RECORD_BYTES_MAX).await
            }
        };
        let options = Options { timeo: Nanos::from_millis(50), ..Options::stream() };
        let rpc = Rpc::persistent(connect, &clock, options).await.unwrap();
        let null = Target { program: 100_003, version: 3, procedure: 0 };
        let (mut ports, mut silent) = (Vec::new(), Vec::new());
        for end in [End::Closed, End::Reset, End::Silence, End::Closed, End::Silence] {
            let serve = async {
                let mut served = listener.accept().await.unwrap();
                ports.push(served.peer().port());
                let record = receive(&mut served).await.unwrap().unwrap();
                served
                    .send(Message::new(ReplyHeader::success(peek(&record).unwrap().0).to_bytes()));
                poll_fn(|cx| served.poll_flush(cx)).await.unwrap();
                served
            };
            let call = rpc.call(null, OpaqueAuth::NONE, |_| {}, Bytes::new());
            let (answer, mut served) = tokio::join!(call, serve);
            answer.unwrap();
            match end {
                End::Closed => drop(served),
                End::Reset => served.abort(),
                End::Silence => silent.push(served),
            }
        }
        assert!(ports.iter().all(|port| *port == first), "{first}: {ports:?}");
    });
}

#[test]
fn a_connection_whose_port_somebody_else_has_is_made_from_another() {
    in_time(async {
        let clock = Clock::real();
        let listener = Listener::bind(ANY_PORT, RECORD_BYTES_MAX).unwrap();
        let (address, pool) = (listener.local_addr().unwrap(), Pool::new(RECORD_BYTES_MAX));
        let taken = std::net::TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let port = taken.local_addr().unwrap().port();
        let made =
            tcp::connect_from(&clock, port, address, PATIENCE, &pool, RECORD_BYTES_MAX).await;
        let made = made.unwrap().local().unwrap().port();
        assert_ne!(made, port);
    });
}
