//! Calls that outlive their connections: cuts, outages, and servers that are gone, in worlds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use bytes::Bytes;
use client::session::Session;
use net::call::{Event, Events, Options, Recovery, Rpc, Target, Traits};
use net::clock::Clock;
use net::clock::world::World;
use net::error::{CallError, ConnectError};
use net::serve::{Host, Limits};
use net::shape::profile::Profile;
use net::transport::{Transport, memory};
use parking_lot::Mutex;
use perf::units::Nanos;
use server::CommitMode;
use server::store::mem::MemStore;
use testkit::outage::Outage;
use testkit::{Site, in_world};
use wire::nfs3::{StableHow, create::CreateHow};
use wire::record::Message;
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;

const NULL: Target = Target { program: 100_003, version: 3, procedure: 0 };
const SECOND: Nanos = Nanos::from_secs(1);

async fn call(rpc: &Rpc) -> Result<Nanos, CallError> {
    let answer = rpc.call(NULL, OpaqueAuth::NONE, |_| {}, Bytes::new()).await;
    answer.map(|answer| answer.response_time())
}

/// The events of a client, in words, and the listener that notes it.
fn listener() -> (Arc<Mutex<Vec<&'static str>>>, Events) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = Arc::clone(&seen);
    let events = Events::new(move |event| {
        own.lock().push(match event {
            Event::NotResponding => "not responding",
            Event::Responding => "responding",
            Event::Disconnected { .. } => "disconnected",
            Event::Reconnected => "reconnected",
        });
    });
    (seen, events)
}

fn site(clock: &Clock) -> Arc<Site<MemStore>> {
    let profile: Profile = "lan-1g".parse().unwrap();
    Arc::new(Site::in_memory(clock, profile.links(), CommitMode::Concurrent))
}

async fn session(clock: &Clock, outage: &Outage, options: Options) -> Session {
    let site = site(clock);
    let rpc = site.persistent(outage, options).await.unwrap();
    site.session(rpc).await.unwrap()
}

/// Writes 64 pieces of a file at once, reads them back and compares.
async fn copy(session: &Session) {
    let how = CreateHow::Guarded(Default::default());
    let file = session.create(session.root(), b"copy", how).await.unwrap().obj.unwrap();
    let piece = |number: u64| Bytes::from(vec![u8::try_from(number).unwrap(); 8192]);
    let writes = (0..64).map(|n| session.write(file, n * 8192, piece(n), StableHow::Unstable));
    for written in futures_util::future::join_all(writes).await {
        assert_eq!(written.unwrap().reply.count, 8192);
    }
    let reads = (0..64).map(|n| session.read(file, n * 8192, 8192));
    for (number, read) in (0..).zip(futures_util::future::join_all(reads).await) {
        assert_eq!(read.unwrap().data, piece(number));
    }
}

/// How long 16 WRITEs of a megabyte take over 100 Mbit/s, and a GETATTR that comes a little later.
fn beside_a_writer(nconnect: u32) -> (Nanos, Nanos) {
    let (world, profile) = (World::new(), "5ms/100m".parse::<Profile>().unwrap());
    let clock = world.clock();
    let test = async move {
        let site = Arc::new(Site::in_memory(&clock, profile.links(), CommitMode::Concurrent));
        let options = Options { nconnect, ..Options::stream() };
        let rpc = site.persistent(&Outage::default(), options).await.unwrap();
        let session = site.session(rpc).await.unwrap();
        let how = CreateHow::Guarded(Default::default());
        let file = session.create(session.root(), b"large", how).await.unwrap().obj.unwrap();
        let begun = clock.now();
        let data = Bytes::from(vec![7; 1 << 20]);
        let writes =
            (0..16).map(|n| session.write(file, n << 20, data.clone(), StableHow::Unstable));
        let written = async {
            let written = futures_util::future::join_all(writes).await;
            written.into_iter().for_each(|written| drop(written.unwrap()));
            clock.now().since(begun)
        };
        let looked = async {
            clock.sleep(Nanos::from_millis(50)).await;
            let began = clock.now();
            session.getattr(file).await.unwrap();
            clock.now().since(began)
        };
        tokio::join!(written, looked)
    };
    world.run(test).unwrap()
}

#[test]
fn who_looks_at_a_file_does_not_wait_for_all_that_a_writer_has_outstanding() {
    for nconnect in [1, 2] {
        let (written, looked) = beside_a_writer(nconnect);
        let one_write = Nanos::from_millis(90);
        assert!(looked < one_write * 2, "{looked} over {nconnect} connections");
        // 16 MiB take 1.34 s; of several connections each has a link of its own.
        let all = Nanos::from_millis(1_390) / u64::from(nconnect) + Nanos::from_millis(50);
        assert!(written < all, "{written} over {nconnect} connections: the link stood still");
    }
}

#[test]
fn a_connection_may_be_cut_at_every_call_and_every_reply() {
    for (nconnect, cut_at) in
        [1, 4].into_iter().flat_map(|n| (0..140).step_by(7).map(move |c| (n, c)))
    {
        for is_reply in [false, true] {
            in_world(async move |clock| {
                let outage = Outage::default();
                let options = Options { nconnect, ..Options::stream() };
                let session = session(&clock, &outage, options).await;
                match is_reply {
                    false => outage.cut_after_calls(cut_at),
                    true => outage.cut_after_replies(cut_at),
                }
                let begun = clock.now();
                copy(&session).await;
                let took = clock.now().since(begun);
                assert!(took < SECOND, "{took} with the cut at {cut_at}");
                let counters = session.rpc().counters();
                assert!(counters.transport.disconnects <= 1);
                let cuts = counters.transport.disconnects;
                assert_eq!(cuts == 1, cut_at <= 128, "{cut_at} {is_reply}");
                assert_eq!(counters.procedures[7].ops, 64);
            });
        }
    }
}

#[test]
fn what_is_not_idempotent_is_done_once_when_its_reply_is_cut_off() {
    in_world(async move |clock| {
        let outage = Outage::default();
        let session = session(&clock, &outage, Options::stream()).await;
        let root = session.root();
        for (round, name) in [b"a", b"b", b"c"].into_iter().enumerate() {
            outage.cut_after_replies(0);
            let how = CreateHow::Guarded(Default::default());
            session.create(root, name, how).await.unwrap();
            outage.cut_after_replies(0);
            session.rename((root, name), (root, b"other")).await.unwrap();
            outage.cut_after_replies(0);
            session.remove(root, b"other").await.unwrap();
            outage.cut_after_replies(0);
            session.mkdir(root, name, Default::default()).await.unwrap();
            outage.cut_after_replies(0);
            session.rmdir(root, name).await.unwrap();
            outage.cut_after_replies(0);
            session.create(root, name, CreateHow::Exclusive([7; 8])).await.unwrap();
            assert_eq!(outage.made(), 6 * (round as u64 + 1) + 1);
        }
        assert_eq!(session.rpc().retransmissions(), 18);
    });
}

#[test]
fn a_hard_client_waits_for_a_server_that_comes_back_and_says_so_once() {
    let world = World::new();
    let clock = world.clock();
    let (seen, events) = listener();
    let (took, counters) = world
        .run(async move {
            let outage = Outage::default();
            let timeo = SECOND;
            let options = Options { timeo, nconnect: 2, events, ..Options::stream() };
            let session = session(&clock, &outage, options).await;
            outage.begin();
            let begun = clock.now();
            let returns = async {
                clock.sleep(SECOND * 10).await;
                outage.end();
            };
            let calls = futures_util::future::join_all((0..10).map(|_| session.null()));
            let (answers, ()) = tokio::join!(calls, returns);
            assert!(answers.iter().all(Result::is_ok));
            (clock.now().since(begun), session.rpc().counters())
        })
        .unwrap();
    assert!((SECOND * 10..SECOND * 15).contains(&took), "{took}");
    // Nothing was under way when the connections broke.
    assert_eq!(*seen.lock(), ["not responding", "responding"]);
    assert_eq!(counters.procedures[0].ops, 10);
    assert!(counters.procedures[0].major_timeouts >= 10);
    assert!(counters.transport.connect_failures < 20, "{counters:?}: it must not be a busy loop");
}

#[test]
fn a_soft_client_fails_after_timeo_times_retrans() {
    let (error, took) = in_world(async move |clock| {
        let outage = Outage::default();
        let (recovery, timeo, retrans) = (Recovery::Soft, SECOND * 7, 3);
        let options = Options { recovery, timeo, retrans, ..Options::stream() };
        let session = session(&clock, &outage, options).await;
        outage.begin();
        let begun = clock.now();
        (session.null().await.unwrap_err(), clock.now().since(begun))
    });
    assert_eq!(took, SECOND * 21);
    assert_eq!(error.to_string(), "NULL to 127.1.0.1:2049: no reply within 21.0 s");
}

#[test]
fn who_gives_up_on_a_server_that_is_gone_for_good_leaves_nothing_behind() {
    let world = World::new();
    let clock = world.clock();
    let (seen, events) = listener();
    world
        .run(async move {
            let outage = Outage::default();
            let options = Options { events, in_flight_max: 4, ..Options::stream() };
            let session = session(&clock, &outage, options).await;
            outage.begin();
            for _ in 0..100 {
                // Far more than may be under way.
                let interrupted = clock.within(SECOND * 2, session.null()).await;
                assert!(interrupted.is_err());
            }
            outage.end();
            assert!(clock.within(SECOND * 10, session.null()).await.unwrap().is_ok());
            let counters = session.rpc().counters();
            assert_eq!(counters.transport.in_flight, 0);
        })
        .unwrap();
    assert!(seen.lock().len() <= 2, "{:?}", seen.lock());
}

/// A client of servers that `serve` makes, and how many there have been.
async fn client_of(
    clock: &Clock,
    options: Options,
    serve: impl Fn(u32, memory::Memory) + Send + 'static,
) -> (Rpc, Arc<AtomicU32>) {
    let made = Arc::new(AtomicU32::new(0));
    let counted = Arc::clone(&made);
    let connect = move |_| {
        let number = counted.fetch_add(1, Ordering::Relaxed);
        let (ours, theirs) = memory::pair(u16::try_from(number % 60_000).unwrap());
        serve(number, theirs);
        std::future::ready(Ok(ours))
    };
    (Rpc::persistent(connect, clock, options).await.unwrap(), made)
}

fn void_reply(record: &[u8]) -> Message {
    let (xid, _) = peek(record).unwrap();
    Message::new(ReplyHeader::success(xid).to_bytes())
}

#[test]
fn a_server_that_closes_at_once_for_ever_is_called_ever_more_slowly() {
    let made = in_world(async move |clock| {
        let own = clock.clone();
        // The first answers, all others close.
        let serve = move |number, theirs| {
            let host = Host::new(&own, Limits::default());
            let service = |_, record: Bytes| async move { Some(void_reply(&record)) };
            if number == 0 {
                let clock = own.clone();
                own.spawn(async move {
                    let served = host.connection(theirs, service);
                    clock.within(SECOND, served).await.ok();
                });
            }
        };
        let (rpc, made) = client_of(&clock, Options::stream(), serve).await;
        call(&rpc).await.unwrap();
        clock.sleep(SECOND * 2).await;
        let waited = clock.within(SECOND * 60, call(&rpc)).await;
        assert!(waited.is_err());
        made.load(Ordering::Relaxed)
    });
    assert!((10..30).contains(&made), "{made} connections in a minute");
}

#[test]
fn who_never_answers_is_no_server_and_fails_the_calls_of_hard_clients_too() {
    let (closed, garbage, silent) = in_world(async move |clock| {
        let (rpc, _) = client_of(&clock, Options::stream(), |_, _| {}).await;
        let closed = call(&rpc).await.unwrap_err();
        let own = clock.clone();
        let garbage = move |_, theirs| {
            let host = Host::new(&own, Limits::default());
            let service = |_, _| async { Some(Message::new(vec![0xff; 3])) };
            own.spawn(async move { host.connection(theirs, service).await.unwrap_or(()) });
        };
        let (rpc, _) = client_of(&clock, Options::stream(), garbage).await;
        let garbage = call(&rpc).await.unwrap_err();
        let held = Mutex::new(Vec::new());
        let silent = move |_, theirs| held.lock().push(theirs);
        let (rpc, _) = client_of(&clock, Options::stream(), silent).await;
        (closed, garbage, call(&rpc).await.unwrap_err())
    });
    assert!(matches!(closed, CallError::Closed | CallError::Transport(_)), "{closed}");
    assert!(matches!(garbage, CallError::Malformed(_)), "{garbage}");
    assert_eq!(silent.to_string(), "no reply within 20.0 s");
}

#[test]
fn a_first_connection_that_fails_is_an_error_unless_one_insists() {
    in_world(async move |clock| {
        let outage = Outage::default();
        outage.begin();
        let site = site(&clock);
        let refused = site.persistent(&outage, Options::stream()).await.unwrap_err();
        assert!(matches!(refused, ConnectError::Refused { .. }));
        let options = Options { insist: true, ..Options::stream() };
        let rpc = site.persistent(&outage, options).await.unwrap();
        let returns = async {
            clock.sleep(SECOND * 1_000).await;
            outage.end();
        };
        let (answer, ()) = tokio::join!(call(&rpc), returns);
        answer.unwrap();
    });
}

#[test]
fn a_frozen_connection_is_replaced_after_a_major_timeout() {
    let (took, bad_xids) = in_world(async move |clock| {
        let own = clock.clone();
        let held = Mutex::new(Vec::new());
        // The second connection takes everything and never answers.
        let serve = move |number, theirs: memory::Memory| {
            if number == 1 {
                held.lock().push(theirs);
                return;
            }
            let clock = own.clone();
            own.spawn(async move {
                let host = Host::new(&clock, Limits::default());
                let service = |_, record: Bytes| async move { Some(void_reply(&record)) };
                let served = host.connection(theirs, service);
                let limit = if number == 0 { SECOND } else { SECOND * 1_000 };
                clock.within(limit, served).await.ok();
            });
        };
        let (rpc, _) = client_of(&clock, Options::stream(), serve).await;
        call(&rpc).await.unwrap();
        clock.sleep(SECOND * 2).await;
        let begun = clock.now();
        call(&rpc).await.unwrap();
        (clock.now().since(begun), rpc.bad_xids())
    });
    // The new connection had carried no reply, so that the next is made after a pause.
    assert_eq!((took, bad_xids), (SECOND * 120 + Nanos::from_millis(100), 0));
}

#[test]
fn replies_that_come_twice_are_counted_and_dropped() {
    let bad_xids = in_world(async move |clock| {
        let own = clock.clone();
        let serve = move |_, theirs| {
            let (clock, host) = (own.clone(), Host::new(&own, Limits::default()));
            // Slower than the client's patience, and it answers each copy of a call.
            let service = move |_, record: Bytes| {
                let clock = clock.clone();
                async move {
                    clock.sleep(SECOND * 4).await;
                    Some(void_reply(&record))
                }
            };
            own.spawn(async move { host.connection(theirs, service).await.unwrap_or(()) });
        };
        let options = Options { timeo: SECOND, retrans: 10, ..Options::stream() };
        let (rpc, made) = client_of(&clock, options, serve).await;
        assert_eq!(call(&rpc).await.unwrap(), SECOND * 4);
        clock.sleep(SECOND * 100).await;
        assert_eq!(made.load(Ordering::Relaxed), 1);
        rpc.bad_xids()
    });
    assert_eq!(bad_xids, 2, "it was sent again after 1 and 3 s");
}

#[test]
fn one_of_four_connections_that_dies_is_made_up_for_by_the_others() {
    let world = World::new();
    let clock = world.clock();
    let (seen, events) = listener();
    world
        .run(async move {
            let outage = Outage::default();
            let options = Options { nconnect: 4, events, ..Options::stream() };
            let session = session(&clock, &outage, options).await;
            copy(&session).await;
            assert_eq!(outage.made(), 4);
            session.remove(session.root(), b"copy").await.unwrap();
            outage.cut_after_replies(20);
            copy(&session).await;
            assert_eq!(outage.made(), 5);
            let transport = session.rpc().counters().transport;
            assert_eq!((transport.connects, transport.disconnects), (5, 1));
        })
        .unwrap();
    assert_eq!(*seen.lock(), ["disconnected", "reconnected"]);
}

/// A server that does with each connection what its number and a seed decide, and with one in
/// eight what it should.
async fn misbehave(clock: Clock, seed: u64, number: u64, mut theirs: memory::Memory) {
    let choice = (seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (number % 32)) + number * 7;
    let host = Host::new(&clock, Limits::default());
    match choice % 8 {
        0 => {
            let service = |_, record: Bytes| async move { Some(void_reply(&record)) };
            // Not for ever.
            let served = host.connection(theirs, service);
            clock.within(Nanos::from_millis(3), served).await.ok();
        }
        // Closes.
        1 => {}
        // Unsolicited replies, without end.
        2 => loop {
            for xid in 1_000_000..1_000_100 {
                theirs.send(Message::new(ReplyHeader::success(xid).to_bytes()));
            }
            if std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.is_err() {
                return;
            }
        },
        3 => clock.sleep(SECOND * 1_000).await,
        other => {
            let service = move |_, record: Bytes| async move {
                match other {
                    4 => Some(Message::new(vec![0xff; 3])),
                    5 => Some(Message::new(record.to_vec())),
                    6 => Some(Message::new(vec![0; 1 << 20])),
                    _ => None,
                }
            };
            host.connection(theirs, service).await.ok();
        }
    }
}

#[test]
fn every_call_is_answered_in_the_end_whatever_a_server_does_in_between() {
    for seed in 1..=8 {
        let (made, took) = in_world(async move |clock| {
            let own = clock.clone();
            let serve = move |number: u32, theirs| {
                // The first shows that it is a server at all.
                let behaves = number == 0;
                let (clock, number) = (own.clone(), u64::from(number));
                let seed = if behaves { 0 } else { seed };
                own.spawn(misbehave(clock, seed, number * u64::from(!behaves), theirs));
            };
            // Under seeds whose good connections are many, calls stay on their lanes.
            let traits = match seed {
                6 | 8 => Traits::UNKNOWN,
                _ => Traits { is_idempotent: |_| true, ..Traits::UNKNOWN },
            };
            let options = Options { nconnect: 3, timeo: SECOND, traits, ..Options::stream() };
            let (rpc, made) = client_of(&clock, options, serve).await;
            call(&rpc).await.unwrap();
            clock.sleep(SECOND).await;
            let begun = clock.now();
            let calls = futures_util::future::join_all((0..200).map(|_| call(&rpc))).await;
            // What is no reply at all may carry the number of a call; that call fails.
            let failed = calls.iter().filter(|call| call.is_err()).count();
            assert!(failed < 100, "seed {seed}: {failed} failed: {calls:?}");
            (made.load(Ordering::Relaxed), clock.now().since(begun))
        });
        assert!(made < 2_000 && took < SECOND * 600, "seed {seed}: {made} connections, {took}");
    }
}

/// A server with several connections that a client makes again from the port of the one before.
/// Notes from which ports each call came, and breaks every connection `cut_after` calls after it
/// was made, without an answer to the last.
#[derive(Clone, Default)]
struct Ports(Arc<Mutex<Came>>);

#[derive(Default)]
struct Came {
    made: u16,
    /// Nobody reaches the server from this port any more.
    closed: Option<u16>,
    /// Which calls came, and from where.
    calls: std::collections::BTreeMap<u32, Vec<u16>>,
}

impl Ports {
    /// Calls of a client with four connections.
    async fn client(&self, clock: &Clock, cut_after: u32) -> Rpc {
        let (own, at) = (self.clone(), clock.clone());
        let connect = move |before: Option<std::net::SocketAddr>| {
            let mut came = own.0.lock();
            let port = before.map_or(1000 + came.made, |before| before.port());
            if came.closed == Some(port) {
                let address = std::net::SocketAddr::from(([127, 1, 0, 1], 2049));
                return std::future::ready(Err(ConnectError::Refused { address }));
            }
            came.made += 1;
            let (ours, theirs) = memory::pair(port);
            at.spawn(own.clone().serve(at.clone(), port, cut_after, theirs));
            std::future::ready(Ok(ours))
        };
        let options = Options { nconnect: 4, ..Options::stream() };
        Rpc::persistent(connect, clock, options).await.unwrap()
    }

    async fn serve(self, clock: Clock, port: u16, cut_after: u32, mut theirs: memory::Memory) {
        for number in 1..=cut_after {
            let received = std::future::poll_fn(|cx| theirs.poll_receive(cx)).await;
            let Ok(Some(record)) = received else {
                return;
            };
            let xid = peek(&record).unwrap().0;
            self.0.lock().calls.entry(xid).or_default().push(port);
            clock.sleep(Nanos::from_millis(1)).await;
            if number == cut_after || self.0.lock().closed == Some(port) {
                return;
            }
            theirs.send(void_reply(&record));
            std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.ok();
        }
    }

    /// How many calls came more than once, and how many of them from more than one port.
    fn again(&self) -> (usize, usize) {
        let came = self.0.lock();
        let again = || came.calls.values().filter(|ports| ports.len() > 1);
        (again().count(), again().filter(|ports| ports.iter().any(|p| *p != ports[0])).count())
    }
}

#[test]
fn a_call_that_changes_something_is_retransmitted_from_the_port_that_it_came_from() {
    let (again, elsewhere) = in_world(async move |clock| {
        let ports = Ports::default();
        let rpc = ports.client(&clock, 5).await;
        for _ in 0..20 {
            for answer in futures_util::future::join_all((0..16).map(|_| call(&rpc))).await {
                answer.unwrap();
            }
        }
        ports.again()
    });
    assert!(again > 40, "{again} retransmitted");
    assert_eq!(elsewhere, 0);
}

#[test]
fn a_call_whose_connection_cannot_be_made_again_goes_elsewhere_after_a_major_timeout() {
    let (took, elsewhere) = in_world(async move |clock| {
        let ports = Ports::default();
        let rpc = ports.client(&clock, 1000).await;
        futures_util::future::join_all((0..16).map(|_| call(&rpc))).await;
        ports.0.lock().closed = Some(1001);
        let begun = clock.now();
        for answer in futures_util::future::join_all((0..16).map(|_| call(&rpc))).await {
            answer.unwrap();
        }
        (clock.now().since(begun), ports.again().1)
    });
    assert!((SECOND * 120..SECOND * 245).contains(&took), "{took}");
    assert!(elsewhere > 0);
}
