//! What a host allows its connections, and how it ends: in worlds.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use net::call::{Rpc, Target};
use net::clock::Clock;
use net::error::{CallError, TransportError};
use net::serve::{Drained, Host, Limits, Peer, Reply, Service};
use net::transport::datagram::{Datagrams, Route};
use net::transport::lossy::{self, Impairments};
use net::transport::{Transport, memory};
use perf::units::{Instant, Nanos};
use testkit::in_world;
use wire::record::Message;
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;

const NULL: Target = Target { program: 100_003, version: 3, procedure: 0 };
const MS: Nanos = Nanos::from_millis(1);

fn void_reply(record: &[u8]) -> Message {
    let (xid, _) = peek(record).unwrap();
    Message::new(ReplyHeader::success(xid).to_bytes())
}

/// Answers each call after `span`.
fn after(
    clock: &Clock,
    span: Nanos,
) -> impl Fn(Peer, Bytes) -> std::pin::Pin<Box<dyn Future<Output = Option<Message>> + Send>>
+ Clone
+ Send
+ Sync
+ 'static {
    let clock = clock.clone();
    move |_, record| {
        let clock = clock.clone();
        Box::pin(async move {
            clock.sleep(span).await;
            Some(void_reply(&record))
        })
    }
}

/// A connection to a host, of the client with this number.
fn connect(clock: &Clock, host: &Host, number: u16, service: impl Service) -> Rpc {
    let (ours, theirs) = pair_of(number);
    let host = host.clone();
    clock.spawn(async move {
        host.connection(theirs, service).await.ok();
    });
    Rpc::start(ours, clock, Nanos::from_secs(1000), 0)
}

/// The two ends of a connection of the client with this number.
fn pair_of(number: u16) -> (memory::Memory, memory::Memory) {
    let client = Ipv4Addr::from_bits(0x0a00_0000 + u32::from(number));
    memory::pair_between((client, 700).into(), (Ipv4Addr::LOCALHOST, 2049).into())
}

async fn call(rpc: &Rpc, payload: usize) -> Result<Nanos, CallError> {
    let payload = Bytes::from(vec![0; payload]);
    rpc.call(NULL, OpaqueAuth::NONE, |_| {}, payload).await.map(|answer| answer.response_time())
}

/// Calls at once, all of the same payload; those that were answered.
async fn calls(rpc: &Rpc, count: usize, payload: usize) -> Vec<Result<Nanos, CallError>> {
    futures_util::future::join_all((0..count).map(|_| call(rpc, payload))).await
}

#[test]
fn a_greedy_connection_leaves_room_for_others() {
    let (greedy, modest) = in_world(async move |clock| {
        let limits = Limits { bytes_in_flight_max: 1 << 20, ..Limits::default() };
        let host = Host::new(&clock, limits);
        let slow = after(&clock, MS * 10);
        let greedy = connect(&clock, &host, 1, slow.clone());
        let modest = connect(&clock, &host, 2, slow);
        // 512 KiB are 8 calls of 63 KiB and their headers.
        let late = async {
            clock.sleep(MS).await;
            calls(&modest, 4, 63 << 10).await
        };
        tokio::join!(calls(&greedy, 32, 63 << 10), late)
    });
    assert!(modest.iter().all(|time| *time.as_ref().unwrap() == MS * 10), "{modest:?}");
    let first = greedy.iter().filter(|time| *time.as_ref().unwrap() == MS * 10).count();
    assert_eq!(first, 8);
    assert!(greedy.iter().all(|time| *time.as_ref().unwrap() <= MS * 70), "{greedy:?}");
}

#[test]
fn a_connection_that_asks_for_nothing_is_closed_and_one_that_waits_is_not() {
    let (waited, late, counts) = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let rpc = connect(&clock, &host, 1, after(&clock, Nanos::from_secs(900)));
        let waited = call(&rpc, 0).await;
        let begun = clock.now();
        // Reads, and requests nothing.
        while host.counts().served_now > 0 {
            clock.sleep(MS * 1000).await;
        }
        let late = clock.now().since(begun);
        assert!(call(&rpc, 0).await.is_err());
        (waited, late, host.counts())
    });
    assert_eq!(waited.unwrap(), Nanos::from_secs(900));
    let (least, most) = (Nanos::from_secs(360), Nanos::from_secs(377));
    assert!((least..most).contains(&late), "{late}");
    assert_eq!((counts.connections_idle, counts.connections_stalled), (1, 0));
}

#[test]
fn who_takes_no_replies_is_given_up_and_its_bytes_come_back() {
    let (error, elapsed, counts) = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let (mut ours, theirs) = memory::pair(1);
        // A reply of 1 MiB to each call: more than the way holds, and nobody reads.
        let service = |_, record: Bytes| async move {
            let head = void_reply(&record).head;
            Some(Message { head, payload: vec![0; 1 << 20].into() })
        };
        for xid in 0..16_u32 {
            ours.send(Message::new([xid.to_be_bytes(), [0; 4]].concat()));
        }
        std::future::poll_fn(|cx| ours.poll_flush(cx)).await.unwrap();
        let begun = clock.now();
        let error = host.connection(theirs, service).await.unwrap_err();
        drop(ours);
        (error, clock.now().since(begun), host.counts())
    });
    assert!(matches!(error, TransportError::TakesNothing { .. }), "{error}");
    assert!(elapsed <= Nanos::from_secs(76), "{elapsed}");
    assert_eq!((counts.connections_stalled, counts.bytes_in_flight), (1, 0));
}

#[test]
fn a_slow_reader_over_its_share_gets_on_as_fast_as_it_reads() {
    const CALLS: u32 = 32;
    let (took, counts) = in_world(async move |clock| {
        let limits = Limits { bytes_in_flight_max: 2 << 20, ..Limits::default() };
        let host = Host::new(&clock, limits);
        let (mut ours, theirs) = memory::pair(1);
        let service = |_, record: Bytes| async move {
            let head = void_reply(&record).head;
            Some(Message { head, payload: vec![0; 1 << 20].into() })
        };
        let own = host.clone();
        clock.spawn(async move {
            own.connection(theirs, service).await.ok();
        });
        for xid in 0..CALLS {
            // Large enough to ask for a share of their own.
            let mut call = [xid.to_be_bytes(), [0; 4]].concat();
            call.resize(100_000, 0);
            ours.send(Message::new(call));
        }
        let begun = clock.now();
        for _ in 0..CALLS {
            let received = std::future::poll_fn(|cx| {
                assert!(!matches!(ours.poll_flush(cx), std::task::Poll::Ready(Err(_))));
                ours.poll_receive(cx)
            });
            received.await.unwrap().unwrap();
            clock.sleep(MS).await;
        }
        let took = clock.now().since(begun);
        (took, host.counts())
    });
    assert_eq!(took, MS * u64::from(CALLS));
    assert_eq!(counts.bytes_in_flight, 0);
}

#[test]
fn a_draining_host_answers_what_it_has_read_and_nothing_else() {
    let (drained, took, answered, new) = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let rpc = connect(&clock, &host, 1, after(&clock, MS * 50));
        let idle = connect(&clock, &host, 2, after(&clock, MS * 50));
        call(&idle, 0).await.unwrap();
        let begun = clock.now();
        let drain = async {
            clock.sleep(MS * 10).await;
            host.drain(MS * 1000).await
        };
        let late = async {
            clock.sleep(MS * 20).await;
            call(&rpc, 0).await
        };
        let (answered, drained, late) = tokio::join!(calls(&rpc, 3, 0), drain, late);
        (drained, clock.now().since(begun), answered, late)
    });
    assert_eq!(drained, Drained::default());
    assert_eq!(took, MS * 50);
    assert!(answered.iter().all(|time| *time.as_ref().unwrap() == MS * 50), "{answered:?}");
    assert!(matches!(new, Err(CallError::Closed | CallError::Transport(_))), "{new:?}");
}

#[test]
fn after_the_grace_period_calls_are_abandoned_and_counted() {
    let (drained, took, answers) = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let rpc = connect(&clock, &host, 1, after(&clock, Nanos::from_secs(60)));
        let drain = async {
            clock.sleep(MS).await;
            let begun = clock.now();
            (host.drain(MS * 1000).await, clock.now().since(begun))
        };
        let (answers, (drained, took)) = tokio::join!(calls(&rpc, 3, 0), drain);
        (drained, took, answers)
    });
    assert_eq!(drained, Drained { calls_abandoned: 3, connections_abandoned: 1 });
    assert_eq!(took, MS * 1000);
    assert!(answers.iter().all(Result::is_err));
}

/// Measures itself: how long each reply took to leave, by tag.
#[derive(Clone)]
struct Timed {
    clock: Clock,
    sent: Arc<parking_lot::Mutex<Vec<(u32, Nanos)>>>,
    queued: Arc<AtomicU64>,
}

impl Service for Timed {
    fn call(
        &self,
        _: Peer,
        record: Bytes,
        arrived: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let (xid, _) = peek(&record).unwrap();
        let queued = self.clock.now().since(arrived.unwrap());
        self.queued.fetch_add(queued.as_nanos(), Ordering::Relaxed);
        let payload = Bytes::from(vec![0; 1 << 20]);
        async move {
            let message = Message { payload, ..void_reply(&record) };
            Some(Reply { message, tag: xid })
        }
    }

    fn is_timed(&self) -> bool {
        true
    }

    fn sent(&self, _: &Peer, tag: u32, since_reply: Nanos) {
        self.sent.lock().push((tag, since_reply));
    }
}

#[test]
fn a_service_learns_when_the_last_byte_of_a_reply_has_left() {
    let sent = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let sent = Arc::default();
        let service =
            Timed { clock: clock.clone(), sent: Arc::clone(&sent), queued: Arc::default() };
        let (mut ours, theirs) = memory::pair(1);
        clock.spawn(async move {
            host.connection(theirs, service).await.ok();
        });
        // The way holds 4 MiB, so the fifth reply has to wait, and the sixth call with it. The
        // tag 0 is not reported.
        for xid in 0..6_u32 {
            ours.send(Message::new([xid.to_be_bytes(), [0; 4]].concat()));
        }
        std::future::poll_fn(|cx| ours.poll_flush(cx)).await.unwrap();
        clock.sleep(MS * 7).await;
        for _ in 0..6 {
            std::future::poll_fn(|cx| ours.poll_receive(cx)).await.unwrap().unwrap();
        }
        clock.sleep(MS).await;
        sent.lock().clone()
    });
    let at_once = |tag| (tag, Nanos::ZERO);
    assert_eq!(sent, [at_once(1), at_once(2), at_once(3), (4, MS * 7), at_once(5)]);
}

#[test]
fn datagrams_over_a_limit_are_dropped_and_counted() {
    let (answered, counts) = in_world(async move |clock| {
        let limits = Limits { calls_per_connection_max: 3, ..Limits::default() };
        let host = Host::new(&clock, limits);
        let impairments = Impairments {
            seed: 1,
            lost: 0,
            fragment_bytes: None,
            duplicated: 0,
            latency: MS,
            jitter: Nanos::ZERO,
        };
        let (mut ours, theirs) = lossy::pair(&clock, impairments).unwrap();
        let (own, service) = (host.clone(), after(&clock, MS * 10));
        clock.spawn(async move { own.listen_datagrams(theirs, service).await });
        let route = Route { peer: ours.local_addr().unwrap(), local: None };
        for xid in 0..5_u32 {
            let message = Message::new([xid.to_be_bytes(), [0; 4]].concat());
            std::future::poll_fn(|cx| ours.poll_send(cx, &message, &route)).await.unwrap();
        }
        let mut answered = Vec::new();
        let receive = std::future::poll_fn(|cx| {
            while let std::task::Poll::Ready(datagram) = ours.poll_receive(cx) {
                answered.push(peek(&datagram.unwrap().bytes).unwrap().0);
            }
            std::task::Poll::<()>::Pending
        });
        clock.within(MS * 100, receive).await.unwrap_err();
        (answered, host.counts())
    });
    assert_eq!(answered, [0, 1, 2]);
    assert_eq!((counts.datagrams, counts.datagrams_dropped), (5, 2));
}
