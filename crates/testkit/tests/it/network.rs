//! The RPC layer over links, in worlds: exact delays, limits, and ends of connections.

use bytes::Bytes;
use client::error::Error;
use load::study::Subject;
use net::call::{Rpc, Target};
use net::clock::Clock;
use net::clock::world::World;
use net::error::CallError;
use net::serve::{Host, Limits, Peer};
use net::shape::profile::Profile;
use net::transport::{Transport, memory};
use perf::units::Nanos;
use server::CommitMode;
use testkit::{Site, in_world};
use wire::record::Message;
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;

const NULL: Target = Target { program: 100_003, version: 3, procedure: 0 };

async fn call(rpc: &Rpc) -> Result<Nanos, CallError> {
    rpc.call(NULL, OpaqueAuth::NONE, |_| {}, Bytes::new())
        .await
        .map(|answer| answer.response_time())
}

/// A reply without results to the call in `record`.
fn void_reply(record: &[u8]) -> Message {
    let (xid, _) = peek(record).unwrap();
    Message::new(ReplyHeader::success(xid).to_bytes())
}

#[test]
fn a_null_call_takes_twice_the_latency_and_its_bytes_time() {
    let world = World::new();
    let clock = world.clock();
    let profile: Profile = "lan-1g".parse().unwrap();
    let response_time = world
        .run(async move {
            let site = Site::in_memory(&clock, profile.links(), CommitMode::Concurrent);
            site.connect().await.unwrap().null().await.unwrap().response_time()
        })
        .unwrap();
    // AUTH_SYS call: 4 mark + 24 header + 8 + 28 credential + 8 verifier; reply: 4 + 24.
    let bytes = (4 + 24 + 8 + 28 + 8) + (4 + 24);
    assert_eq!(response_time, Nanos::from_nanos(2 * 100_000 + bytes * 8));
}

#[test]
fn a_caller_learns_when_the_last_byte_of_its_message_has_left() {
    let world = World::new();
    let clock = world.clock();
    let profile: Profile = "lan-1g".parse().unwrap();
    let (handed, answer) = world
        .run(async move {
            let site = Site::in_memory(&clock, profile.links(), CommitMode::Concurrent);
            let rpc = site.rpc();
            let (handed, sent) = tokio::sync::oneshot::channel();
            let call = rpc.call_sent(NULL, OpaqueAuth::NONE, |_| {}, Bytes::new(), Some(handed));
            let (answer, sent) = tokio::join!(call, sent);
            (sent.unwrap(), answer.unwrap())
        })
        .unwrap();
    // 4 mark + 24 header + 8 credential + 8 verifier, 8 ns each.
    assert_eq!(handed.since(answer.sent), Nanos::from_nanos(44 * 8));
}

/// A service that answers after a time that the call's XID decides: later calls sooner.
async fn reversed(clock: Clock, record: Bytes) -> Option<Message> {
    let (xid, _) = peek(&record).unwrap();
    clock.sleep(Nanos::from_millis(100 - u64::from(xid))).await;
    Some(void_reply(&record))
}

fn serve<F, Fut>(clock: &Clock, limits: Limits, service: F) -> Rpc
where
    F: Fn(Peer, Bytes) -> Fut + Clone + Send + Sync + 'static,
    Fut: Future<Output = Option<Message>> + Send + 'static,
{
    let (ours, theirs) = memory::pair(1);
    let host = Host::new(clock, limits);
    clock.spawn(async move {
        host.connection(theirs, service).await.ok();
    });
    Rpc::start(ours, clock, Nanos::from_secs(1), 0)
}

/// A server that answers each call after `span`.
fn serve_after(clock: &Clock, span: Nanos, limits: Limits) -> Rpc {
    let own = clock.clone();
    serve(clock, limits, move |_, record: Bytes| {
        let clock = own.clone();
        async move {
            clock.sleep(span).await;
            Some(void_reply(&record))
        }
    })
}

#[test]
fn replies_are_matched_to_calls_in_any_order() {
    let times = in_world(async move |clock| {
        let own = clock.clone();
        let service = move |_, record| reversed(own.clone(), record);
        let rpc = serve(&clock, Limits::default(), service);
        let (first, second, third) = tokio::join!(call(&rpc), call(&rpc), call(&rpc));
        [first, second, third].map(Result::unwrap)
    });
    assert_eq!(times, [100, 99, 98].map(Nanos::from_millis));
}

#[test]
fn a_connection_over_its_limit_of_calls_reads_no_more_until_one_is_answered() {
    let times = in_world(async move |clock| {
        let limits = Limits { calls_per_connection_max: 2, ..Limits::default() };
        let rpc = serve_after(&clock, Nanos::from_millis(10), limits);
        let (a, b, c) = tokio::join!(call(&rpc), call(&rpc), call(&rpc));
        [a, b, c].map(Result::unwrap)
    });
    assert_eq!(times, [10, 10, 20].map(Nanos::from_millis));
}

#[test]
fn bytes_in_flight_are_bounded_over_all_connections() {
    let world = World::new();
    let clock = world.clock();
    let limits = Limits { bytes_in_flight_max: 1024, ..Limits::default() };
    let times = world
        .run(async move {
            let rpc = serve_after(&clock, Nanos::from_millis(10), limits);
            let (a, b) = tokio::join!(call(&rpc), call(&rpc));
            [a, b].map(Result::unwrap)
        })
        .unwrap();
    assert_eq!(times, [10, 20].map(Nanos::from_millis));
}

#[test]
fn a_call_without_reply_fails_at_its_limit_and_a_late_reply_is_counted_and_dropped() {
    let (error, bad_xids) = in_world(async move |clock| {
        let rpc = serve_after(&clock, Nanos::from_millis(1_500), Limits::default());
        let error = call(&rpc).await.unwrap_err();
        clock.sleep(Nanos::from_secs(2)).await;
        (error, rpc.bad_xids())
    });
    assert_eq!(error.to_string(), "no reply within 1.00 s");
    assert_eq!(bad_xids, 1);
}

#[test]
fn an_echo_is_distinguished_from_a_server() {
    let error = in_world(async move |clock| {
        let service = |_, record: Bytes| async move { Some(Message::new(record.to_vec())) };
        let rpc = serve(&clock, Limits::default(), service);
        call(&rpc).await.unwrap_err()
    });
    assert!(matches!(error, CallError::Echo), "{error}");
}

#[test]
fn all_calls_fail_when_the_server_answers_garbage() {
    let errors = in_world(async move |clock| {
        let service = |_, _| async move { Some(Message::new(vec![0xff; 3])) };
        let rpc = serve(&clock, Limits::default(), service);
        let (a, b) = tokio::join!(call(&rpc), call(&rpc));
        [a.unwrap_err(), b.unwrap_err()]
    });
    for error in errors {
        assert!(matches!(error, CallError::Malformed(_)), "{error}");
    }
}

#[test]
fn a_server_that_dies_ends_every_wait_and_every_later_call() {
    let (first, second) = in_world(async move |clock| {
        let (ours, theirs) = memory::pair(1);
        let rpc = Rpc::start(ours, &clock, Nanos::from_secs(1), 0);
        let dying = async {
            clock.sleep(Nanos::from_millis(5)).await;
            drop(theirs);
        };
        let (first, ()) = tokio::join!(call(&rpc), dying);
        (first.unwrap_err(), call(&rpc).await.unwrap_err())
    });
    assert!(matches!(first, CallError::Closed | CallError::Transport(_)), "{first}");
    assert!(matches!(second, CallError::Closed | CallError::Transport(_)), "{second}");
}

#[test]
fn an_error_of_the_server_names_procedure_and_address() {
    let error = in_world(async move |clock| {
        let site = Site::in_memory(&clock, Default::default(), CommitMode::Concurrent);
        let session = site.connect().await.unwrap();
        session.lookup(session.root(), b"absent").await.unwrap_err()
    });
    assert!(matches!(error, Error::Status { .. }));
    assert!(error.to_string().starts_with("LOOKUP to 127.1.0.1:2049: "), "{error}");
}

#[test]
fn a_peer_that_floods_with_unsolicited_replies_is_given_up() {
    let error = in_world(async move |clock| {
        let (ours, mut theirs) = memory::pair(1);
        clock.spawn(async move {
            let mut xid = 1_000_000;
            loop {
                for _ in 0..100 {
                    theirs.send(Message::new(ReplyHeader::success(xid).to_bytes()));
                    xid += 1;
                }
                if std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.is_err() {
                    return; // given up
                }
            }
        });
        let rpc = Rpc::start(ours, &clock, Nanos::from_secs(1), 0);
        call(&rpc).await.unwrap_err()
    });
    assert!(matches!(error, CallError::Unsolicited { .. }), "{error}");
}

#[test]
fn what_is_no_call_ends_the_connection_after_earlier_calls_are_answered() {
    let (first, second) = in_world(async move |clock| {
        let own = clock.clone();
        let numbered = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
        let service = move |_, record: Bytes| {
            let number = numbered.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
            let clock = own.clone();
            async move {
                if number == 1 {
                    return None;
                }
                clock.sleep(Nanos::from_millis(10)).await;
                Some(void_reply(&record))
            }
        };
        let rpc = serve(&clock, Limits::default(), service);
        tokio::join!(call(&rpc), call(&rpc))
    });
    assert_eq!(first.unwrap(), Nanos::from_millis(10));
    assert!(matches!(second, Err(CallError::Closed)), "{second:?}");
}
