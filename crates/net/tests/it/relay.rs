//! The relay in worlds: exact times, ends, bounds, and peers that misbehave.

use std::future::poll_fn;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};

use bytes::Bytes;
use net::clock::Clock;
use net::clock::world::World;
use net::error::TransportError;
use net::relay::{Limits, Loss, Relay, Side};
use net::shape::LinkPair;
use net::shape::conditions::Ppm;
use net::shape::profile::Profile;
use net::transport::Transport;
use net::transport::datagram::{Datagram, Datagrams, Route};
use net::transport::lossy::{self, Impairments, Lossy};
use net::transport::memory::{self, Memory};
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use tokio::sync::oneshot;
use wire::record::Message;

use crate::resetting::{self, Resets};
use crate::shape::in_world;

type Ended = oneshot::Receiver<Result<(), (Side, TransportError)>>;

fn relay(clock: &Clock, links: LinkPair, limits: Limits) -> Relay {
    Relay::new(clock, links.into(), limits, Arc::new(|_| {}), None)
}

/// A client and a server with a relay between them, and how that ends.
fn between(clock: &Clock, relay: &Relay) -> (Memory, Memory, Ended) {
    let (client, front) = memory::pair(1);
    let (server, ended) = behind(clock, relay, front);
    (client, server, ended)
}

/// The same with a client that can reset its connection.
fn between_resetting(clock: &Clock, relay: &Relay) -> (Resets, Memory, Ended) {
    let (client, front) = resetting::of(memory::pair(1));
    let (server, ended) = behind(clock, relay, front);
    (client, server, ended)
}

/// The server behind a relay that carries what comes to `front`.
fn behind(clock: &Clock, relay: &Relay, front: impl Transport + 'static) -> (Memory, Ended) {
    let (back, server) = memory::pair(2);
    let (sender, ended) = oneshot::channel();
    let relay = relay.clone();
    clock.spawn(async move {
        sender.send(relay.connection(front, back).await).ok();
    });
    (server, ended)
}

/// The same of datagrams, with a socket for one client; `front` makes of it what the relay has.
fn datagrams_between<D: Datagrams + 'static>(
    clock: &Clock,
    relay: &Relay,
    front: impl FnOnce(Lossy) -> D,
) -> (Lossy, Lossy) {
    let (client, end) = lossy::pair(clock, FAIR).unwrap();
    let (back, server) = lossy::pair(clock, FAIR).unwrap();
    let back = Mutex::new(Some(back));
    let (relay, front, address) = (relay.clone(), front(end), server.local_addr().unwrap());
    clock.spawn(async move {
        let dial = |_| back.lock().take().ok_or_else(|| io::Error::other("only one"));
        relay.listen_datagrams(front, address, dial).await;
    });
    (client, server)
}

fn bytes(len: usize, fill: u8) -> Message {
    Message { head: Vec::new(), payload: Bytes::from(vec![fill; len]) }
}

async fn send(transport: &mut impl Transport, message: Message) {
    poll_fn(|cx| transport.poll_ready(cx)).await.unwrap();
    transport.send(message);
    poll_fn(|cx| transport.poll_flush(cx)).await.unwrap();
}

async fn receive(transport: &mut impl Transport) -> Option<Bytes> {
    poll_fn(|cx| transport.poll_receive(cx)).await.unwrap()
}

fn link(latency: Nanos, gap_per_byte_ps: u64) -> LinkPair {
    LinkPair::symmetric(Link { latency, gap: Nanos::ZERO, gap_per_byte_ps })
}

const FAIR: Impairments = Impairments {
    seed: 1,
    lost: 0,
    fragment_bytes: None,
    duplicated: 0,
    latency: Nanos::ZERO,
    jitter: Nanos::ZERO,
};

const MS: Nanos = Nanos::from_millis(1);

#[test]
fn each_record_arrives_when_the_link_says_in_both_directions() {
    let world = World::new();
    let clock = world.clock();
    let times = world.run(async move {
        // 1 us for each byte there, and back only the latency.
        let links = LinkPair {
            there: Link { latency: MS, gap: Nanos::from_micros(50), gap_per_byte_ps: 1_000_000 },
            back: Link { latency: Nanos::from_micros(7), ..Link::default() },
        };
        let relay = relay(&clock, links, Limits::default());
        let (mut client, mut server, _) = between(&clock, &relay);
        let mut times = Vec::new();
        for fill in 0..3 {
            client.send(bytes(96, fill));
        }
        poll_fn(|cx| client.poll_flush(cx)).await.unwrap();
        for fill in 0..3 {
            assert_eq!(receive(&mut server).await.unwrap(), vec![fill; 96]);
            times.push(clock.now().as_nanos());
        }
        send(&mut server, bytes(4096, 9)).await;
        receive(&mut client).await.unwrap();
        times.push(clock.now().as_nanos());
        let counts = relay.counts();
        assert_eq!((counts.there.passed, counts.there.passed_bytes), (3, 300));
        assert_eq!((counts.there.held, counts.back.passed_bytes), (0, 4100));
        assert_eq!(counts.there.late.max(), Nanos::ZERO);
        times
    });
    // 100 bytes with the mark take 100 us; behind each come 50 us of pause.
    assert_eq!(times.unwrap(), [1_100_000, 1_250_000, 1_400_000, 1_407_000]);
}

#[test]
fn records_of_odd_lengths_come_out_as_they_went_in() {
    in_world(async move |clock| {
        let relay = relay(&clock, link(MS, 10), Limits::default());
        let (mut client, mut server, _) = between(&clock, &relay);
        for len in [0, 1, 2, 3, 5, 4097, 70_001, 1_000_003] {
            // A head of odd length, as our own messages never have it.
            send(&mut client, Message::new(vec![7; len])).await;
            assert_eq!(receive(&mut server).await.unwrap(), vec![7; len]);
        }
    });
}

#[test]
fn the_end_of_one_direction_comes_behind_its_last_record_and_the_other_goes_on() {
    in_world(async move |clock| {
        let relay = relay(&clock, link(MS, 0), Limits::default());
        let (mut client, mut server, ended) = between(&clock, &relay);
        send(&mut client, bytes(8, 1)).await;
        client.end_sending();
        assert_eq!(receive(&mut server).await.unwrap(), vec![1; 8]);
        assert_eq!(receive(&mut server).await, None);
        for fill in 0..3 {
            send(&mut server, bytes(8, fill)).await;
            assert_eq!(receive(&mut client).await.unwrap(), vec![fill; 8]);
        }
        server.end_sending();
        assert_eq!(receive(&mut client).await, None);
        assert!(ended.await.unwrap().is_ok());
        assert_eq!(relay.counts().connections, 0);
    });
}

#[test]
fn who_vanishes_takes_the_other_end_with_him_but_not_what_he_has_sent() {
    in_world(async move |clock| {
        let relay = relay(&clock, link(MS, 0), Limits::default());
        let (mut client, mut server, ended) = between(&clock, &relay);
        send(&mut client, bytes(8, 1)).await;
        drop(client);
        assert_eq!(receive(&mut server).await.unwrap(), vec![1; 8]);
        assert_eq!(receive(&mut server).await, None);
        // The reply finds nobody.
        send(&mut server, bytes(8, 2)).await;
        let (side, cause) = ended.await.unwrap().unwrap_err();
        assert_eq!(side, Side::Client, "{cause}");
        assert_eq!(relay.counts().broken, 1);
    });
}

#[test]
fn what_was_sent_arrives_although_its_sender_takes_no_reply_any_more() {
    in_world(async move |clock| {
        let mut links = link(Nanos::from_millis(10), 0);
        links.back.latency = MS;
        let relay = relay(&clock, links, Limits::default());
        let (mut client, mut server, ended) = between(&clock, &relay);
        for fill in 0..3 {
            send(&mut client, bytes(8, fill)).await;
        }
        clock.sleep(Nanos::from_micros(1)).await;
        drop(client);
        // Finds nobody long before the calls are due.
        send(&mut server, bytes(8, 9)).await;
        for fill in 0..3 {
            assert_eq!(receive(&mut server).await.unwrap(), vec![fill; 8]);
        }
        assert_eq!(receive(&mut server).await, None);
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_millis(10));
        assert!(ended.await.unwrap().is_err());
        let counts = relay.counts();
        assert_eq!((counts.there.passed, counts.there.held, counts.bytes_held), (3, 0, 0));
    });
}

#[test]
fn silence_ends_a_connection_and_so_does_a_peer_that_takes_nothing() {
    in_world(async move |clock| {
        let limits = Limits {
            idle_max: Nanos::from_secs(100),
            stall_max: Nanos::from_secs(20),
            held_bytes_max: 64 << 20,
            ..Limits::default()
        };
        let relay = relay(&clock, LinkPair::default(), limits);
        let (client, server, ended) = between(&clock, &relay);
        let (_, cause) = ended.await.unwrap().unwrap_err();
        assert!(matches!(cause, TransportError::Idle { .. }), "{cause}");
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_secs(100));
        drop((client, server));

        let (mut client, server, ended) = between(&clock, &relay);
        let taken = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&taken);
        clock.spawn(async move {
            // More than the memory transports hold, to a server that does not read.
            loop {
                client.send(bytes(1 << 20, 0));
                if poll_fn(|cx| client.poll_flush(cx)).await.is_err() {
                    return;
                }
                count.fetch_add(1, Ordering::Relaxed);
            }
        });
        let (side, cause) = ended.await.unwrap().unwrap_err();
        assert_eq!(side, Side::Server);
        assert!(taken.load(Ordering::Relaxed) < 100, "{taken:?} MiB that nobody takes from it");
        assert!(matches!(cause, TransportError::TakesNothing { .. }), "{cause}");
        assert_eq!(relay.counts().given_up, 2);
        drop(server);
    });
}

#[test]
fn what_is_held_is_bounded_and_all_of_it_arrives() {
    in_world(async move |clock| {
        let (held_bytes_max, bytes_max) = (1 << 20, 3 << 20);
        let limits = Limits { held_bytes_max, bytes_max, ..Limits::default() };
        // 64 KiB take 65 ms.
        let relay = relay(&clock, link(Nanos::from_secs(1), 1_000_000), limits);
        let mut ends = Vec::new();
        for _ in 0..4 {
            let (mut client, mut server, _) = between(&clock, &relay);
            let (done, all) = oneshot::channel();
            clock.spawn(async move {
                for _ in 0..160 {
                    send(&mut client, bytes(64 << 10, 3)).await;
                }
                poll_fn(|cx| client.poll_receive(cx)).await.ok();
            });
            clock.spawn(async move {
                for _ in 0..160 {
                    receive(&mut server).await.unwrap();
                }
                done.send(()).ok();
            });
            ends.push(all);
        }
        let most = Arc::new(Mutex::new(0));
        let (watched, own, seen) = (relay.clone(), clock.clone(), Arc::clone(&most));
        let watcher = clock.spawn(async move {
            loop {
                own.sleep(Nanos::from_millis(10)).await;
                let counts = watched.counts();
                let mut most = seen.lock();
                *most = counts.there.held_bytes.max(*most);
                assert!(counts.bytes_held <= bytes_max as u64);
            }
        });
        for end in ends {
            end.await.unwrap();
        }
        watcher.abort();
        assert!(*most.lock() > 1 << 20, "several held something: {}", most.lock());
        assert!(*most.lock() <= bytes_max as u64, "{}", most.lock());
        assert_eq!(relay.counts().bytes_held, 0);
    });
}

#[test]
fn a_change_holds_for_what_comes_after_it_and_nothing_is_overtaken() {
    in_world(async move |clock| {
        let relay = relay(&clock, link(Nanos::from_millis(10), 0), Limits::default());
        let (mut client, mut server, _) = between(&clock, &relay);
        send(&mut client, bytes(8, 1)).await;
        clock.sleep(MS).await;
        relay.shape().replace(link(MS, 0).into(), clock.now());
        send(&mut client, bytes(8, 2)).await;
        assert_eq!(receive(&mut server).await.unwrap(), vec![1; 8]);
        assert_eq!(receive(&mut server).await.unwrap(), vec![2; 8]);
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_millis(10));
        send(&mut client, bytes(8, 3)).await;
        receive(&mut server).await.unwrap();
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_millis(11));
    });
}

#[test]
fn connections_of_a_host_share_its_link_first_in_first_out() {
    in_world(async move |clock| {
        // 1 us for each byte.
        let relay = relay(&clock, link(MS, 1_000_000), Limits::default());
        let (mut first, mut at_first, _) = between(&clock, &relay);
        let (mut second, mut at_second, _) = between(&clock, &relay);
        let (mut other, front) =
            memory::pair_between(([127, 1, 0, 9], 1).into(), ([127, 1, 0, 1], 1).into());
        let (back, mut at_other) = memory::pair(2);
        let own = relay.clone();
        clock.spawn(async move { drop(own.connection(front, back).await) });
        for fill in 0..5 {
            send(&mut first, bytes(9_996, fill)).await;
        }
        clock.sleep(MS).await;
        send(&mut second, bytes(96, 1)).await;
        send(&mut other, bytes(96, 2)).await;
        receive(&mut at_other).await.unwrap();
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_micros(2_100), "another host's");
        receive(&mut at_second).await.unwrap();
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_micros(51_100));
        for _ in 0..5 {
            receive(&mut at_first).await.unwrap();
        }
        assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_micros(51_100), "all were before it");
    });
}

#[test]
fn connections_that_always_have_something_to_send_share_a_link_and_none_starves() {
    in_world(async move |clock| {
        // A full queue takes what comes at the right moment, and one of each.
        for (queue_bytes_max, least) in [(None, 190), (Some(66_000), 60)] {
            let mut profile = Profile::from(link(MS, 1_000_000));
            profile.there.queue_bytes_max = queue_bytes_max;
            let events = Arc::new(|_| {});
            let relay = Relay::new(&clock, profile.into(), Limits::default(), events, None);
            let counts = [1_usize, 2, 4].map(|_| Arc::new(AtomicUsize::new(0)));
            for count in &counts {
                let (mut client, mut server, _) = between(&clock, &relay);
                let count = Arc::clone(count);
                clock.spawn(async move {
                    while poll_fn(|cx| client.poll_ready(cx)).await.is_ok() {
                        client.send(bytes(9_996, 1));
                    }
                });
                clock.spawn(async move {
                    while receive(&mut server).await.is_some() {
                        count.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            clock.sleep(Nanos::from_secs(6)).await;
            let counts = counts.map(|count| count.load(Ordering::Relaxed));
            assert!(counts.iter().all(|count| *count >= least), "{counts:?}");
            relay.drain(Nanos::ZERO).await;
        }
    });
}

#[test]
fn what_a_client_that_resets_would_still_have_is_not_relayed_and_nothing_comes_before_it() {
    in_world(async move |clock| {
        // 10 ms for each record.
        let relay = relay(&clock, link(MS, 1_000_000), Limits::default());
        let (mut client, mut server, ended) = between_resetting(&clock, &relay);
        for fill in 0..100 {
            send(client.transport(), bytes(9_996, fill)).await;
        }
        clock.sleep(Nanos::from_millis(20)).await;
        client.reset();
        let (mut again, mut at_again, _) = between(&clock, &relay);
        send(&mut again, bytes(96, 200)).await;
        let mut came = 0;
        while let Some(record) = receive(&mut server).await {
            assert_eq!(record[0], came);
            came += 1;
        }
        assert!((10..=14).contains(&came), "{came}: what takes 100 ms waits for the link");
        let (side, cause) = ended.await.unwrap().unwrap_err();
        assert!(side == Side::Client && cause.is_reset(), "{side}: {cause}");
        receive(&mut at_again).await.unwrap();
        let before = Nanos::from_millis(10) * u64::from(came) + MS;
        assert_eq!(clock.now(), Instant::EPOCH + before + Nanos::from_micros(100));
        assert_eq!((relay.counts().there.held, relay.counts().bytes_held), (0, 0));
    });
}

#[test]
fn what_was_lost_is_not_retransmitted_by_a_client_that_has_reset() {
    in_world(async move |clock| {
        let profile = |lost| {
            let mut profile = Profile::from(link(MS, 0));
            profile.there.lost = lost;
            profile
        };
        let events = Arc::new(|_| {});
        let relay = Relay::new(&clock, profile(Ppm::NONE).into(), Limits::default(), events, None);
        let (mut client, mut server, ended) = between_resetting(&clock, &relay);
        for (fill, lost) in [(1, Ppm::NONE), (2, Ppm::ALL), (3, Ppm::NONE)] {
            relay.shape().replace(profile(lost), clock.now());
            send(client.transport(), bytes(96, fill)).await;
            clock.sleep(Nanos::from_micros(100)).await;
        }
        client.reset();
        assert_eq!(receive(&mut server).await.unwrap(), vec![1; 96]);
        assert_eq!(receive(&mut server).await, None);
        assert_eq!(clock.now(), Instant::EPOCH + MS);
        assert!(ended.await.unwrap().is_err());
        assert_eq!(relay.counts().there.lost.get(&Loss::Ended), Some(&2));
    });
}

#[test]
fn a_relay_that_ends_hands_on_what_is_on_its_way() {
    in_world(async move |clock| {
        for (grace, arrives) in [(Nanos::from_secs(1), true), (MS, false)] {
            let relay = relay(&clock, link(Nanos::from_millis(10), 0), Limits::default());
            let (mut client, mut server, ended) = between(&clock, &relay);
            send(&mut client, bytes(8, 1)).await;
            clock.sleep(Nanos::from_micros(1)).await;
            let began = clock.now();
            relay.drain(grace).await;
            assert!(clock.now().since(began) <= Nanos::from_millis(10));
            assert!(ended.await.unwrap().is_ok());
            assert_eq!(receive(&mut server).await.is_some(), arrives);
            let lost = relay.counts().there.lost.get(&Loss::Ended).copied();
            assert_eq!(lost, (!arrives).then_some(1));
            assert_eq!(relay.counts().there.held, 0);
        }
    });
}

#[test]
fn datagrams_go_both_ways_with_the_delay_of_the_link() {
    in_world(async move |clock| {
        let relay = relay(&clock, link(MS, 0), Limits::default());
        let (mut client, mut server) = datagrams_between(&clock, &relay, |front| front);
        let address = server.local_addr().unwrap();
        let nowhere = Route { peer: address, local: None };
        for len in [1, 2, 3, 8192, 60_000] {
            let began = clock.now();
            let call = Message::new(vec![5; len]);
            poll_fn(|cx| client.poll_send(cx, &call, &nowhere)).await.unwrap();
            let called = poll_fn(|cx| server.poll_receive(cx)).await.unwrap();
            assert_eq!(called.bytes, vec![5; len]);
            poll_fn(|cx| server.poll_send(cx, &call, &called.route)).await.unwrap();
            let answered = poll_fn(|cx| client.poll_receive(cx)).await.unwrap();
            assert_eq!(answered.bytes, vec![5; len]);
            assert_eq!(clock.now().since(began), Nanos::from_millis(2));
        }
        let counts = relay.counts();
        assert_eq!((counts.there.passed, counts.back.passed, counts.sessions), (5, 5, 1));
        // A session on which nothing passes ends.
        clock.sleep(Limits::default().idle_max * 2).await;
        let counts = relay.counts();
        assert_eq!((counts.sessions, counts.bytes_held), (0, 0));
        // There is no other socket for another session.
        let call = Message::new(vec![5; 8]);
        poll_fn(|cx| client.poll_send(cx, &call, &nowhere)).await.unwrap();
        clock.sleep(MS).await;
        assert_eq!(relay.counts().there.lost.get(&Loss::NoSession), Some(&1));
    });
}

/// What comes from a loopback here comes from another host.
#[derive(Debug)]
struct FromElsewhere<D>(D);

impl<D: Datagrams> Datagrams for FromElsewhere<D> {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        let peer = (Ipv4Addr::new(10, 0, 0, 7), 700).into();
        self.0.poll_receive(cx).map_ok(|Datagram { bytes, route }| {
            let route = Route { peer, ..route };
            Datagram { bytes, route }
        })
    }

    fn poll_send(
        &mut self,
        cx: &mut Context<'_>,
        message: &Message,
        route: &Route,
    ) -> Poll<io::Result<()>> {
        self.0.poll_send(cx, message, route)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }
}

#[test]
fn who_may_not_be_who_it_says_gets_at_most_three_times_what_it_sent_through_a_relay() {
    in_world(async move |clock| {
        let relay = relay(&clock, link(MS, 0), Limits::default());
        let (mut client, mut server) = datagrams_between(&clock, &relay, FromElsewhere);
        let address = server.local_addr().unwrap();
        let nowhere = Route { peer: address, local: None };
        let mut answered = async |reply_bytes: usize| {
            let call = Message::new(vec![5; 100]);
            poll_fn(|cx| client.poll_send(cx, &call, &nowhere)).await.unwrap();
            let called = poll_fn(|cx| server.poll_receive(cx)).await.unwrap();
            let reply = Message::new(vec![6; reply_bytes]);
            poll_fn(|cx| server.poll_send(cx, &reply, &called.route)).await.unwrap();
            let answer = poll_fn(|cx| client.poll_receive(cx));
            clock.within(MS * 10, answer).await.is_ok()
        };
        assert!(answered(300).await && !answered(301).await);
        let lost = relay.counts().back.lost.get(&Loss::Unproven).copied();
        assert_eq!(lost, Some(1));
        // What was not used is left: 300 of the last call, and as much of this one.
        assert!(answered(600).await && !answered(301).await && answered(600).await);
        // A connection of the same host: the handshake has shown who it is.
        let of_that_host = (Ipv4Addr::new(10, 0, 0, 7), 1000).into();
        let (_client, front) = memory::pair_between(of_that_host, address);
        let (back, _server) = memory::pair(2);
        let own = relay.clone();
        clock.spawn(async move { drop(own.connection(front, back).await) });
        clock.sleep(MS).await;
        assert!(answered(60_000).await);
    });
}

#[test]
fn a_full_queue_holds_up_a_stream_and_drops_datagrams() {
    in_world(async move |clock| {
        // 1 us for each byte, and room for what takes 66 ms.
        let mut profile = Profile::from(link(MS, 1_000_000));
        profile.there.queue_bytes_max = Some(66_000);
        let relay = Relay::new(&clock, profile.into(), Limits::default(), Arc::new(|_| {}), None);
        let (mut client, mut server, _) = between(&clock, &relay);
        clock.spawn(async move {
            for _ in 0..50 {
                send(&mut client, bytes(9_996, 1)).await;
            }
            poll_fn(|cx| client.poll_receive(cx)).await.ok();
        });
        for passed in 1..=50_u64 {
            receive(&mut server).await.unwrap();
            let counts = relay.counts().there;
            assert!(counts.held_bytes <= 80_000, "{}", counts.held_bytes);
            assert_eq!(clock.now(), Instant::EPOCH + Nanos::from_millis(10 * passed + 1));
        }
        assert!(relay.counts().there.lost.is_empty());

        let (mut client, mut server) = datagrams_between(&clock, &relay, |front| front);
        let address = server.local_addr().unwrap();
        let nowhere = Route { peer: address, local: None };
        for _ in 0..10 {
            let call = Message::new(vec![5; 10_000]);
            poll_fn(|cx| client.poll_send(cx, &call, &nowhere)).await.unwrap();
        }
        for _ in 0..6 {
            poll_fn(|cx| server.poll_receive(cx)).await.unwrap();
        }
        assert_eq!(relay.counts().there.lost.get(&Loss::Queue), Some(&4));
    });
}

#[test]
fn a_bad_link_repeats_and_damages_datagrams_and_all_is_counted() {
    in_world(async move |clock| {
        let mut profile = Profile::from(link(MS, 0));
        profile.there.duplicated = Ppm::ALL;
        profile.back.corrupted = Ppm::ALL;
        let relay = Relay::new(&clock, profile.into(), Limits::default(), Arc::new(|_| {}), None);
        let (mut client, mut server) = datagrams_between(&clock, &relay, |front| front);
        let address = server.local_addr().unwrap();
        let call = Message::new(vec![0; 64]);
        let nowhere = Route { peer: address, local: None };
        poll_fn(|cx| client.poll_send(cx, &call, &nowhere)).await.unwrap();
        for _ in 0..2 {
            let called = poll_fn(|cx| server.poll_receive(cx)).await.unwrap();
            assert_eq!(called.bytes, vec![0; 64]);
            poll_fn(|cx| server.poll_send(cx, &call, &called.route)).await.unwrap();
            let answered = poll_fn(|cx| client.poll_receive(cx)).await.unwrap();
            let ones: u32 = answered.bytes.iter().map(|byte| byte.count_ones()).sum();
            assert_eq!(ones, 1);
        }
        let counts = relay.counts();
        assert_eq!((counts.there.duplicated, counts.there.passed), (1, 2));
        assert_eq!((counts.back.corrupted, counts.back.passed), (2, 2));
        assert_eq!((counts.there.held, counts.bytes_held), (0, 0));
    });
}

#[test]
fn nobody_gets_more_by_a_relay_than_by_himself() {
    use net::relay::Callers::{Everybody, Vouched};
    let own = rustix::process::geteuid().as_raw();
    let from = |port| SocketAddr::from(([127, 0, 0, 1], port));
    let (privileged, any) = (from(700), from(40_000));
    assert!(Vouched.vouch(any, Some(own)) && Vouched.vouch(any, Some(0)));
    assert!(!Vouched.vouch(privileged, Some(own + 1)), "where everybody may have such ports");
    assert!(Vouched.vouch(privileged, None) && !Vouched.vouch(any, None));
    assert!(Everybody.vouch(any, None) && Everybody.vouch(any, Some(own + 1)));
}
