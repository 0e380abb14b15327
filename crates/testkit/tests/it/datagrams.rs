//! Calls over datagrams: in worlds that lose, repeat and mix them up, and over real sockets.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use client::mount::{self, Options};
use client::session::Credential;
use client::transfer::Limit;
use client::url::Target as Url;
use load::scratch::Scratch;
use load::seqwrite::{self, Workload};
use net::call::{Rpc, Target};
use net::clock::Clock;
use net::error::CallError;
use net::serve::{Host, Limits};
use net::transport::datagram::Datagrams;
use net::transport::lossy::{self, Impairments};
use net::transport::udp::Udp;
use perf::units::Nanos;
use server::{Engine, EngineConfig, Export, Exports, Transport};
use testkit::in_world;
use wire::nfs3::StableHow;
use wire::record::Message;
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;
use world::server::{everyone_is_root, service};

const NULL: Target = Target { program: 100_003, version: 3, procedure: 0 };
const MS: Nanos = Nanos::from_millis(1);
const CALM: Impairments = Impairments {
    seed: 1,
    lost: 0,
    fragment_bytes: None,
    duplicated: 0,
    latency: MS,
    jitter: Nanos::ZERO,
};

/// A client and the number of calls that its server has got.
fn client(clock: &Clock, impairments: Impairments, limit: Nanos) -> (Rpc, Arc<AtomicU32>) {
    let (ours, theirs) = lossy::pair(clock, impairments).unwrap();
    let got = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&got);
    let service = move |_, record: Bytes| {
        counted.fetch_add(1, Ordering::Relaxed);
        let (xid, _) = peek(&record).unwrap();
        async move { Some(Message::new(ReplyHeader::success(xid).to_bytes())) }
    };
    let host = Host::new(clock, Limits::default());
    let server = theirs.local_addr().unwrap();
    clock.spawn(async move { host.listen_datagrams(theirs, service).await });
    (Rpc::start_datagrams(ours, server, clock, limit, 0), got)
}

async fn call(rpc: &Rpc) -> Result<Nanos, CallError> {
    let answer = rpc.call(NULL, OpaqueAuth::NONE, |_| {}, Bytes::new()).await;
    answer.map(|answer| answer.response_time())
}

#[test]
fn without_impairments_a_call_is_sent_once_and_takes_a_network_round_trip() {
    in_world(async move |clock| {
        let (rpc, got) = client(&clock, CALM, Nanos::from_secs(60));
        for _ in 0..100 {
            assert_eq!(call(&rpc).await.unwrap(), MS * 2);
        }
        assert_eq!((rpc.retransmissions(), got.load(Ordering::Relaxed)), (0, 100));
    });
}

#[test]
fn every_call_is_answered_once_whatever_is_lost_repeated_or_late() {
    for seed in 1..=20 {
        let impairments = Impairments { seed, lost: 200, duplicated: 100, jitter: MS * 20, ..CALM };
        let (times, again, got) = in_world(async move |clock| {
            let (rpc, got) = client(&clock, impairments, Nanos::from_secs(120));
            let calls = (0..300).map(|_| call(&rpc));
            let times = futures_util::future::join_all(calls).await;
            (times, rpc.retransmissions(), got.load(Ordering::Relaxed))
        });
        assert!(times.iter().all(Result::is_ok), "seed {seed}: {times:?}");
        // A third of the exchanges fails at one end or the other.
        assert!((60..400).contains(&again), "seed {seed}: {again} sent again");
        assert!(got >= 300, "seed {seed}");
    }
}

#[test]
fn a_call_into_the_void_fails_at_its_limit() {
    let (error, took, again) = in_world(async move |clock| {
        let impairments = Impairments { lost: 1000, ..CALM };
        let (rpc, _) = client(&clock, impairments, Nanos::from_secs(20));
        let begun = clock.now();
        let error = call(&rpc).await.unwrap_err();
        (error, clock.now().since(begun), rpc.retransmissions())
    });
    assert_eq!(error.to_string(), "no reply within 20.0 s");
    assert_eq!((took, again), (Nanos::from_secs(20), 4), "after 1, 3, 7 and 15 s");
}

/// An engine on a memory store behind a real socket.
fn serve(clock: &Clock) -> SocketAddr {
    let socket = Udp::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap();
    let address = socket.local_addr().unwrap();
    let exports = Exports::one(Export::ruled(everyone_is_root()), testkit::memory_store(clock));
    let engine = Arc::new(Engine::new(exports, EngineConfig::default()));
    let service = service(&engine, Transport::Datagram);
    let host = Host::new(clock, Limits::default());
    clock.spawn(async move { host.listen_datagrams(socket, service).await });
    address
}

fn options() -> Options {
    let machine_name = "test".to_owned();
    let credential = Credential { machine_name, uid: 0, gid: 0, gids: Vec::new() };
    let options = Options::persistent(credential);
    Options { reply_limit: Nanos::from_secs(60), persistence: None, ..options }
}

fn url(server: SocketAddr) -> Url {
    let port = server.port();
    format!("nfs://127.0.0.1/?proto=udp&nfsport={port}&mountport={port}").parse().unwrap()
}

#[test]
fn a_file_is_written_over_udp() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        let target = url(serve(&clock));
        let mounted = mount::mount(&clock, &target, &options()).await.unwrap();
        let session = mounted.session;
        assert_eq!(session.sizes().write_bytes_max, 32 << 10);
        let scratch = Scratch::create(&session, "udp").await.unwrap();
        let file = scratch.file(&session, "f").await.unwrap();
        let workload = Workload {
            call_bytes: 32 << 10,
            outstanding: 16,
            file_bytes: 8 << 20,
            total_bytes: 8 << 20,
            commit_bytes: 4 << 20,
            stable: StableHow::Unstable,
            limit: Limit::default(),
        };
        let data = seqwrite::pattern(32 << 10);
        seqwrite::run(&clock, &session, file, &data, workload).await.unwrap();
        scratch.remove(&session).await.unwrap();
    })
    .unwrap();
}

#[test]
fn where_nobody_listens_a_mount_over_udp_fails_at_once() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        let gone = Udp::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap().local_addr().unwrap();
        let (target, options) = (url(gone), options());
        let mount = mount::mount(&clock, &target, &options);
        let error = clock.within(Nanos::from_secs(20), mount).await.unwrap().unwrap_err();
        assert!(error.to_string().ends_with("nothing listens on that port"), "{error}");
    })
    .unwrap();
}
