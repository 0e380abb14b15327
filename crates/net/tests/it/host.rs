//! How connections end, over real sockets of the loopback.

use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};

use bytes::Bytes;
use net::clock::{Clock, yield_now};
use net::serve::{Drained, Host, Limits, Peer, Reply, Service};
use net::shape::LinkPair;
use net::transport::RECORD_BYTES_MAX;
use net::transport::tcp::Listener;
use perf::units::{Instant, Nanos};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::Semaphore;
use wire::record::{Fragment, Message};

const PATIENCE: Nanos = Nanos::from_secs(60);

/// Of connections that are refused.
const HELD_OF_HOST_MAX: usize = 16;

fn in_time<T>(work: impl Future<Output = T>) -> T {
    net::runtime::block_on(async { Clock::real().within(PATIENCE, work).await.unwrap() }).unwrap()
}

/// A server that answers each call with itself, once it may.
fn serve(limits: Limits, may: &Arc<Semaphore>) -> (Host, SocketAddr) {
    serve_counting(limits, may, &Arc::default())
}

/// The same, which counts the calls that it has begun.
fn serve_counting(
    limits: Limits,
    may: &Arc<Semaphore>,
    begun: &Arc<AtomicU32>,
) -> (Host, SocketAddr) {
    let clock = Clock::real();
    let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
    let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
    let address = listener.local_addr().unwrap();
    let host = Host::new(&clock, limits);
    let (own, may, begun) = (host.clone(), Arc::clone(may), Arc::clone(begun));
    let service = move |peer: Peer, record: Bytes| {
        assert_eq!(peer.local, Some(address));
        begun.fetch_add(1, Ordering::Relaxed);
        let may = Arc::clone(&may);
        async move {
            may.acquire().await.unwrap().forget();
            Some(Message { head: Vec::new(), payload: record })
        }
    };
    clock.spawn(async move { own.listen(listener, LinkPair::default(), service).await.unwrap() });
    (host, address)
}

fn record(bytes: usize) -> Vec<u8> {
    let len = u32::try_from(bytes).unwrap();
    let mut record = Fragment { last: true, len }.to_header().to_vec();
    record.resize(4 + bytes, 5);
    record
}

/// A service for nobody, or for everybody.
#[derive(Clone)]
struct Closed(Arc<AtomicBool>);

impl Service for Closed {
    fn call(
        &self,
        _: Peer,
        record: Bytes,
        _: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let message = Message { head: Vec::new(), payload: record };
        async move { Some(message.into()) }
    }

    fn is_for(&self, _: IpAddr) -> bool {
        !self.0.load(Ordering::Relaxed)
    }
}

#[test]
fn who_is_named_nowhere_is_closed_also_when_that_changes() {
    in_time(async {
        let (clock, is_closed) = (Clock::real(), Arc::new(AtomicBool::new(false)));
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
        let server = listener.local_addr().unwrap();
        let (host, service) = (Host::new(&clock, Limits::default()), Closed(is_closed.clone()));
        let (own, served) = (host.clone(), service.clone());
        clock
            .spawn(async move { own.listen(listener, LinkPair::default(), served).await.unwrap() });
        let record = record(100);
        let mut early = TcpStream::connect(server).await.unwrap();
        early.write_all(&record).await.unwrap();
        let mut echo = vec![0; record.len()];
        early.read_exact(&mut echo).await.unwrap();
        is_closed.store(true, Ordering::Relaxed);
        assert_eq!(host.deny(&service), 1);
        assert_eq!(early.read(&mut echo).await.unwrap_or(0), 0);
        // Few are held, so that a client does not come again at once; one more is closed.
        let mut held = Vec::new();
        for _ in 0..HELD_OF_HOST_MAX {
            let mut one = TcpStream::connect(server).await.unwrap();
            one.write_all(&record).await.unwrap();
            held.push(one);
        }
        let mut late = TcpStream::connect(server).await.unwrap();
        late.write_all(&record).await.ok();
        assert_eq!(late.read(&mut echo).await.unwrap_or(0), 0);
        for one in &held {
            let nothing = one.try_read(&mut echo).map_err(|error| error.kind());
            assert_eq!(nothing, Err(ErrorKind::WouldBlock), "open, and not answered");
        }
        let counts = host.counts();
        assert_eq!((counts.connections_accepted, counts.connections_denied), (1, 18));
    });
}

/// A service for nobody, whose refusals are the beginning of what came.
#[derive(Clone)]
struct Refusing;

impl Service for Refusing {
    fn call(
        &self,
        _: Peer,
        _: Bytes,
        _: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        std::future::pending()
    }

    fn is_for(&self, _: IpAddr) -> bool {
        false
    }

    fn refuse(&self, peer: &Peer, record: &[u8]) -> Option<Message> {
        assert!(record.len() <= 2048 && peer.local.is_some());
        Some(Message::new(record[..4].to_vec()))
    }
}

#[test]
fn who_is_named_nowhere_gets_refusals_at_once_and_not_without_number() {
    in_time(async {
        let (clock, any) = (Clock::real(), SocketAddr::from((Ipv4Addr::LOCALHOST, 0)));
        let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
        let (server, host) = (listener.local_addr().unwrap(), Host::new(&clock, Limits::default()));
        let own = host.clone();
        clock.spawn(
            async move { own.listen(listener, LinkPair::default(), Refusing).await.unwrap() },
        );
        let mut stranger = TcpStream::connect(server).await.unwrap();
        let mut refusal = [0; 8];
        // Of a long call nothing but its head is wanted, and the next one is found behind it.
        for bytes in std::iter::repeat_n([100, 1 << 20], 2).flatten() {
            stranger.write_all(&record(bytes)).await.unwrap();
            stranger.read_exact(&mut refusal).await.unwrap();
            assert_eq!(refusal, [0x80, 0, 0, 4, 5, 5, 5, 5]);
        }
        for _ in 4..64 {
            stranger.write_all(&record(100)).await.unwrap();
            stranger.read_exact(&mut refusal).await.unwrap();
        }
        stranger.write_all(&record(100)).await.unwrap();
        let more = stranger.read_exact(&mut refusal);
        assert!(clock.within(Nanos::from_millis(200), more).await.is_err());
        assert_eq!(host.counts().bytes_in_flight, 0);
    });
}

#[test]
fn records_that_are_never_finished_take_no_more_memory_than_there_is_for_all() {
    const RECORDS: usize = 64;
    const MIB: usize = 1 << 20;
    in_time(async {
        let clock = Clock::real();
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let listener = Listener::bind(any, RECORD_BYTES_MAX).unwrap();
        let (server, pool) = (listener.local_addr().unwrap(), listener.pool().clone());
        let limits = Limits { bytes_in_flight_max: 8 * MIB, ..Limits::default() };
        let (host, open) = (Host::new(&clock, limits), Closed(Arc::default()));
        let own = host.clone();
        clock.spawn(async move { own.listen(listener, LinkPair::default(), open).await.unwrap() });
        let large = record(MIB);
        let mut partial = Vec::new();
        for _ in 0..RECORDS {
            let mut stream = TcpStream::connect(server).await.unwrap();
            // All but the last byte, as far as anybody takes it.
            let mut at = 0;
            while let Ok(Ok(sent)) =
                clock.within(Nanos::from_millis(5), stream.write(&large[at..large.len() - 1])).await
                && at + 1 < large.len()
            {
                at += sent;
            }
            partial.push((stream, at));
        }
        // Seven eighths of it are for large records, and a quarter of those is denied to a host
        // that has the rest.
        let small_bytes = RECORDS * (64 << 10);
        let slabs = pool.costs().slabs_allocated;
        assert!(
            slabs <= 7 + RECORDS as u64 + 1,
            "{slabs} slabs, {small_bytes} bytes in small ones"
        );
        assert!(host.counts().bytes_in_flight <= 7 * MIB as u64);
        let mut healthy = TcpStream::connect(server).await.unwrap();
        let small = record(100);
        for _ in 0..10 {
            let mut echo = vec![0; small.len()];
            healthy.write_all(&small).await.unwrap();
            healthy.read_exact(&mut echo).await.unwrap();
            assert_eq!(echo, small);
        }
        // One that finishes gets its answer; those that had to wait go on when others leave.
        let (mut last, at) = partial.pop().unwrap();
        partial.clear();
        last.write_all(&large[at..]).await.unwrap();
        let mut echo = vec![0; large.len()];
        last.read_exact(&mut echo).await.unwrap();
        assert_eq!(echo, large);
    });
}

#[test]
fn a_record_that_is_never_finished_ends_its_connection() {
    in_time(async {
        let limits = Limits { stall_max: Nanos::from_millis(100), ..Limits::default() };
        let (host, server) = serve(limits, &Arc::new(Semaphore::new(8)));
        let mut stream = TcpStream::connect(server).await.unwrap();
        // A whole one, and half of the next.
        let record = record(100);
        stream.write_all(&[&record[..], &record[..50]].concat()).await.unwrap();
        let mut taken = Vec::new();
        stream.read_to_end(&mut taken).await.ok();
        assert_eq!(taken, record);
        assert_eq!(host.counts().connections_stalled, 1);
    });
}

#[test]
fn a_peer_that_takes_none_of_its_replies_is_given_up() {
    in_time(async {
        let limits = Limits { stall_max: Nanos::from_millis(100), ..Limits::default() };
        let (host, server) = serve(limits, &Arc::new(Semaphore::new(1 << 20)));
        let mut stream = TcpStream::connect(server).await.unwrap();
        let record = record(1 << 20);
        // More than the sockets of both ends hold.
        let mut at = 0;
        while host.counts().connections_stalled == 0 {
            let send = stream.write(&record[at..]);
            if let Ok(Ok(sent)) = Clock::real().within(Nanos::from_millis(20), send).await {
                at = (at + sent) % record.len();
            }
        }
        while host.counts().served_now > 0 {
            yield_now().await;
        }
        assert_eq!(host.counts().bytes_in_flight, 0);
    });
}

#[test]
fn replies_reach_a_client_that_goes_on_sending_while_the_host_drains() {
    in_time(async {
        let may = Arc::new(Semaphore::new(0));
        let (host, server) = serve(Limits::default(), &may);
        let mut stream = TcpStream::connect(server).await.unwrap();
        let record = record(60_000);
        stream.write_all(&record.repeat(4)).await.unwrap();
        while host.counts().bytes_in_flight < 4 * 60_000 {
            yield_now().await;
        }
        let drain = async {
            let drain = host.drain(PATIENCE);
            let let_go = async {
                yield_now().await;
                may.add_permits(100);
            };
            tokio::join!(drain, let_go).0
        };
        let client = async {
            let (mut read, mut write) = stream.split();
            let send = async {
                // Nobody reads them, but what they do must not cost us the replies.
                while write.write_all(&record).await.is_ok() {
                    yield_now().await;
                }
            };
            let take = async {
                let mut taken = Vec::new();
                read.read_to_end(&mut taken).await.ok();
                taken
            };
            let taken = tokio::select! { taken = take => taken, () = send => Vec::new() };
            drop(stream);
            taken
        };
        let (drained, taken) = tokio::join!(drain, client);
        assert_eq!(drained, Drained::default());
        assert_eq!(taken.len(), 4 * record.len());
        assert!(TcpStream::connect(server).await.is_err(), "nobody listens any more");
    });
}

#[test]
fn calls_that_never_end_are_abandoned_after_the_grace_period() {
    in_time(async {
        let begun = Arc::default();
        let (host, server) =
            serve_counting(Limits::default(), &Arc::new(Semaphore::new(0)), &begun);
        let mut stream = TcpStream::connect(server).await.unwrap();
        // One is small, one has a task of its own.
        stream.write_all(&[record(100), record(200_000)].concat()).await.unwrap();
        while begun.load(Ordering::Relaxed) < 2 {
            yield_now().await;
        }
        stream.shutdown().await.unwrap();
        let drained = host.drain(Nanos::from_millis(50)).await;
        assert_eq!(drained, Drained { calls_abandoned: 2, connections_abandoned: 1 });
    });
}

#[test]
fn calls_that_were_not_read_are_not_begun_when_their_client_has_reset_the_connection() {
    in_time(async {
        let limits = Limits { calls_per_connection_max: 1, ..Limits::default() };
        let (may, begun) = (Arc::new(Semaphore::new(0)), Arc::new(AtomicU32::new(0)));
        let (host, address) = serve_counting(limits, &may, &begun);
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(&record(100).repeat(5)).await.unwrap();
        while begun.load(Ordering::Relaxed) == 0 {
            yield_now().await;
        }
        socket2::SockRef::from(&client).set_linger(Some(std::time::Duration::ZERO)).unwrap();
        drop(client);
        // The reset is there; the runtime sees it with what else has happened.
        for _ in 0..1000 {
            yield_now().await;
        }
        may.add_permits(5);
        while host.counts().served_now > 0 {
            yield_now().await;
        }
        assert_eq!(begun.load(Ordering::Relaxed), 1);
    });
}
