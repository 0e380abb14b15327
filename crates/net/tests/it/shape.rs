//! Links around transports, in worlds: what arrives, when, and what is held meanwhile.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::task::Poll;

use bytes::Bytes;
use net::call::{Answer, Rpc, Target};
use net::clock::Clock;
use net::clock::world::World;
use net::error::CallError;
use net::processor::Processor;
use net::serve::{Host, Limits};
use net::shape::profile::Profile;
use net::shape::{
    Busy, BusyDatagrams, Counts, Direction, Overhead, Shape, Shaped, ShapedDatagrams, Side,
};
use net::transport::Transport;
use net::transport::datagram::{Datagrams, Route};
use net::transport::lossy::{self, Lossy};
use net::transport::memory::{self, Memory};
use net::transport::udp::Udp;
use perf::units::{Instant, Nanos};
use wire::record::Message;
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;

use crate::resetting;

const US: Nanos = Nanos::from_micros(1);
const MS: Nanos = Nanos::from_millis(1);

fn profile(text: &str) -> Profile {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn message(bytes: usize) -> Message {
    Message::new(vec![0; bytes])
}

/// Runs in a world of its own.
pub(crate) fn in_world<T: Send + 'static, F: Future<Output = T> + Send + 'static>(
    work: impl FnOnce(Clock) -> F,
) -> T {
    let world = World::new();
    world.run(work(world.clock())).unwrap()
}

/// Drives a transport until everything is sent, each message as soon as there is room.
async fn send_all(transport: &mut impl Transport, sizes: &[usize]) {
    let mut next = sizes.iter();
    std::future::poll_fn(|cx| {
        loop {
            let flushed = transport.poll_flush(cx).map(Result::unwrap);
            if next.len() == 0 {
                return flushed;
            }
            if transport.poll_ready(cx).map(Result::unwrap).is_pending() {
                return Poll::Pending;
            }
            transport.send(message(*next.next().unwrap()));
        }
    })
    .await;
}

/// Receives so many; when each came, and how long it was.
async fn receive(clock: &Clock, transport: &mut impl Transport, count: usize) -> Vec<(u64, usize)> {
    let mut came = Vec::new();
    for _ in 0..count {
        let record = std::future::poll_fn(|cx| transport.poll_receive(cx)).await;
        let bytes = record.unwrap().unwrap().len();
        came.push((clock.now().as_nanos() / 1000, bytes));
    }
    came
}

/// One way over a shaped connection in memory, with the shape's other end bare.
fn one_way(text: &str, sizes: &'static [usize]) -> (Vec<(u64, usize)>, Counts) {
    let shape = Shape::from(profile(text));
    let own = shape.clone();
    let came = in_world(async move |clock| {
        let (ours, mut theirs) = memory::pair(1);
        let mut shaped = Shaped::new(ours, own, &clock).unwrap();
        clock.clone().spawn(async move {
            send_all(&mut shaped, sizes).await;
            // The peer gets what is under way before we go.
            std::future::pending::<()>().await;
        });
        receive(&clock, &mut theirs, sizes.len()).await
    });
    (came, shape.counts(Side::There))
}

#[test]
fn on_a_stream_everything_arrives_in_its_order_and_at_its_time() {
    // 8 ns for a byte, of which the mark has 4.
    let (came, counts) = one_way("100us/1g", &[1246, 2496, 121]);
    assert_eq!(came, [(110, 1246), (130, 2496), (131, 121)]);
    assert_eq!((counts.messages, counts.bytes), (3, 1250 + 2500 + 125));
    assert_eq!((counts.held, counts.held_bytes), (0, 0));
    assert_eq!((counts.held_max, counts.held_bytes_max), (3, 3875));
}

#[test]
fn on_a_lossy_stream_nothing_is_lost_and_all_wait_for_what_was() {
    let sizes: &[usize] = &[100; 400];
    let (came, counts) = one_way("1ms/100m,loss=5%,corrupt=1%,reorder=5%:3ms,duplicate=50%", sizes);
    assert_eq!(came.len(), 400);
    assert!(came.is_sorted(), "in order");
    assert_eq!((counts.lost(), counts.duplicated, counts.corrupted), (0, 0, 0));
    assert!((8..50).contains(&counts.retransmitted), "{counts:?}");
    assert!(came.last().unwrap().0 >= 200_000, "the last waited for a timer: {came:?}");
}

#[test]
fn a_full_queue_holds_the_sender_up_and_loses_nothing() {
    // 64 KiB at 1 Gbit/s take 524 us; 64 messages of 8 KiB take 4194 us.
    let (came, counts) = one_way("lan-1g,queue=64K", &[8188; 64]);
    assert_eq!(came.len(), 64);
    assert_eq!(came.last().unwrap().0, 64 * 65_536 / 1000 + 100, "the link was never idle");
    // What waits, what is on its way for 100 us, and one message over.
    assert!(counts.held_bytes_max <= (64 << 10) + 3 * 8192, "{counts:?}");
    let (_, unbounded) = one_way("lan-1g", &[8188; 64]);
    assert_eq!(unbounded.held_bytes_max, 64 * 8192);
}

#[test]
fn a_full_queue_stops_the_reading_of_a_peer_and_goes_on() {
    let shape = Shape::from(profile("1ms/100m,queue=64K"));
    let own = shape.clone();
    let came = in_world(async move |clock| {
        let (mut ours, theirs) = memory::pair(1);
        clock.clone().spawn(async move {
            send_all(&mut ours, &[16 << 10; 100]).await;
            std::future::pending::<()>().await;
        });
        let mut shaped = Shaped::new(theirs, own, &clock).unwrap();
        receive(&clock, &mut shaped, 100).await
    });
    let bytes = 100 * ((16 << 10) + 4);
    assert_eq!(came.last().unwrap().0, 1000 + bytes * 80 / 1000, "the link was never idle");
    let counts = shape.counts(Side::Back);
    assert!(counts.held_bytes_max <= 6 * (16 << 10), "{counts:?}");
}

#[test]
fn conditions_change_under_a_connection_and_what_is_under_way_keeps_its_time() {
    let came = in_world(async |clock| {
        let shape = Shape::from(profile("L=10ms"));
        let (ours, mut theirs) = memory::pair(1);
        let mut shaped = Shaped::new(ours, &shape, &clock).unwrap();
        let at = clock.clone();
        clock.clone().spawn(async move {
            let mut send = async |bytes| {
                std::future::poll_fn(|cx| shaped.poll_ready(cx)).await.unwrap();
                shaped.send(message(bytes));
            };
            send(1).await;
            shape.replace(profile("L=30ms"), at.now());
            send(2).await;
            shape.replace(profile("none"), at.now());
            send(3).await;
            std::future::poll_fn(|cx| shaped.poll_flush(cx)).await.unwrap();
            at.sleep(Nanos::from_secs(1)).await;
            shaped.send(message(4));
            std::future::poll_fn(|cx| shaped.poll_flush(cx)).await.unwrap();
            std::future::pending::<()>().await;
        });
        receive(&clock, &mut theirs, 4).await
    });
    // The third stays behind the second: a stream keeps its order.
    assert_eq!(came, [(10_000, 1), (30_000, 2), (30_000, 3), (1_030_000, 4)]);
}

#[test]
fn what_is_held_is_forgotten_with_the_connection() {
    let shape = Shape::from(profile("L=1s"));
    let own = shape.clone();
    in_world(async move |clock| {
        let (ours, theirs) = memory::pair(1);
        let mut shaped = Shaped::new(ours, &own, &clock).unwrap();
        for _ in 0..10 {
            shaped.send(message(996));
        }
        assert_eq!(own.counts(Side::There).held_bytes, 10_000);
        assert_eq!(shaped.unsent_bytes(), 10_000);
        drop(theirs);
        drop(shaped);
    });
    let counts = shape.counts(Side::There);
    assert_eq!((counts.held, counts.held_bytes, counts.held_max), (0, 0, 10));
}

/// A client's and a server's end, which pass what they are given at once.
fn sockets(clock: &Clock) -> (Lossy, Lossy) {
    lossy::pair_through(clock, &Shape::default()).unwrap()
}

fn to(socket: &impl Datagrams) -> Route {
    Route { peer: socket.local_addr().unwrap(), local: None }
}

/// Sends datagrams of `bytes` that count from 0; gives what comes within a minute.
async fn through(
    clock: Clock,
    shape: Shape,
    count: u32,
    bytes: usize,
    every: Nanos,
) -> Vec<(u64, u32, usize)> {
    let (ours, mut theirs) = sockets(&clock);
    let route = to(&theirs);
    let mut shaped = ShapedDatagrams::new(ours, shape, &clock).unwrap();
    let own = clock.clone();
    clock.spawn(async move {
        for number in 0..count {
            let mut head = number.to_be_bytes().to_vec();
            head.resize(bytes.max(4), 0);
            let message = Message::new(head);
            std::future::poll_fn(|cx| shaped.poll_send(cx, &message, &route)).await.unwrap();
            own.sleep(every).await;
        }
        std::future::poll_fn(|cx| shaped.poll_flush(cx)).await.unwrap();
        std::future::pending::<()>().await;
    });
    let mut came = Vec::new();
    let all = async {
        loop {
            let datagram = std::future::poll_fn(|cx| theirs.poll_receive(cx)).await.unwrap();
            let number = u32::from_be_bytes(datagram.bytes[..4].try_into().unwrap());
            came.push((clock.now().as_nanos() / 1000, number, datagram.bytes.len()));
        }
    };
    clock.within(Nanos::from_secs(60), all).await.unwrap_err();
    came
}

#[test]
fn every_datagram_arrives_is_lost_with_a_cause_or_comes_twice() {
    for seed in 1..=10 {
        let text = format!("lossy,seed={seed},queue=64K,partition=1s:100ms");
        let shape = Shape::from(profile(&text));
        let own = shape.clone();
        let came = in_world(async move |clock| through(clock, own, 2000, 3000, MS).await);
        let counts = shape.counts(Side::There);
        assert_eq!(counts.messages, 2000);
        assert_eq!(counts.messages - counts.lost() + counts.duplicated, came.len() as u64);
        // Three fragments, 1 % each.
        assert!((30..90).contains(&counts.lost_by_chance), "seed {seed}: {counts:?}");
        assert!((80..=110).contains(&counts.lost_in_partition), "seed {seed}: {counts:?}");
        assert_eq!((counts.held, counts.held_bytes, counts.lost_at_held), (0, 0, 0));
        let overtaken = came.windows(2).filter(|two| two[0].1 > two[1].1).count();
        assert!(overtaken > 5, "seed {seed}: {overtaken} overtaken");
    }
}

#[test]
fn datagrams_beyond_the_queue_are_lost_and_the_rest_arrives_at_the_rate_of_the_link() {
    // 60 at once, of 8 KiB without headers; 64 KiB fit.
    let shape = Shape::from(profile("lan-1g,queue=64K"));
    let own = shape.clone();
    let came = in_world(async move |clock| through(clock, own, 60, 8192, Nanos::ZERO).await);
    let times: Vec<u64> = came.iter().map(|&(at, ..)| at).collect();
    assert_eq!(times, [165, 231, 296, 362, 427, 493, 558, 624]);
    assert_eq!(shape.counts(Side::There).lost_at_queue, 52);
}

#[test]
fn each_peer_of_a_socket_has_a_link_of_its_own() {
    in_world(async |clock| {
        let shape = Shape::from(profile("1ms/1m"));
        let (ours, _theirs) = sockets(&clock);
        let mut shaped = ShapedDatagrams::new(ours, &shape, &clock).unwrap();
        let peer = |host: u8| Route {
            peer: SocketAddr::new(IpAddr::from(Ipv4Addr::new(10, 0, 0, host)), 700),
            local: None,
        };
        let mut departs = Vec::new();
        for host in [1, 1, 2] {
            let sent = message(1250);
            std::future::poll_fn(|cx| shaped.poll_send(cx, &sent, &peer(host))).await.unwrap();
            departs.push(shape.counts(Side::There).held);
        }
        std::future::poll_fn(|cx| shaped.poll_flush(cx)).await.unwrap();
        // 10 ms for each message: two behind each other, and the third beside them.
        assert_eq!(clock.now(), Instant::EPOCH + MS * 21);
        assert_eq!(departs, [1, 2, 3]);
    });
}

#[test]
fn a_flood_is_lost_where_the_emulator_is_full_and_not_queued() {
    in_world(async |clock| {
        let shape = Shape::from(profile("L=10s"));
        let (ours, theirs) = sockets(&clock);
        let route = to(&theirs);
        let mut shaped = ShapedDatagrams::new(ours, &shape, &clock).unwrap();
        let large = message(60_000);
        for _ in 0..3000 {
            std::future::poll_fn(|cx| shaped.poll_send(cx, &large, &route)).await.unwrap();
        }
        let counts = shape.counts(Side::There);
        assert!(counts.held_bytes_max <= (128 << 20) + 60_000, "{counts:?}");
        assert_eq!(counts.lost_at_held, 3000 - counts.held, "{counts:?}");
        let empty = message(0);
        let mut small = ShapedDatagrams::new(sockets(&clock).0, &shape, &clock).unwrap();
        for _ in 0..600_000 {
            std::future::poll_fn(|cx| small.poll_send(cx, &empty, &route)).await.unwrap();
        }
        let held = shape.counts(Side::There).held - counts.held;
        assert_eq!(held, (128 << 20) / 256, "empty ones are bounded, too");
    });
}

#[test]
fn a_damaged_datagram_has_one_wrong_bit() {
    let mut came = in_world(async |clock| {
        let (ours, mut theirs) = sockets(&clock);
        let route = to(&theirs);
        let mut shaped = ShapedDatagrams::new(ours, profile("corrupt=100%"), &clock).unwrap();
        let sent = Message { head: vec![0; 10], payload: Bytes::from(vec![0; 90]) };
        std::future::poll_fn(|cx| shaped.poll_send(cx, &sent, &route)).await.unwrap();
        std::future::poll_fn(|cx| theirs.poll_receive(cx)).await.unwrap().bytes.to_vec()
    });
    came.retain(|&byte| byte != 0);
    assert_eq!(came.iter().map(|byte| byte.count_ones()).sum::<u32>(), 1, "{came:?}");
}

#[test]
fn a_relay_passes_messages_on_through_a_direction() {
    in_world(async |clock| {
        let shape = Shape::from(profile("1ms/1g,loss=50%"));
        let mut stream = Direction::new(&shape, Side::There, &clock).unwrap();
        for number in 0..100_u8 {
            stream.admit(clock.now(), number, 125);
        }
        let mut there = Vec::new();
        while let Some(number) = std::future::poll_fn(|cx| stream.poll_arrived(cx)).await {
            there.push(number);
        }
        assert_eq!(there, (0..100).collect::<Vec<_>>());
    });
}

/// A busy end and a bare one, in a world where the busy one has one core.
fn busy(clock: &Clock, overhead: Overhead) -> (Busy<Memory>, Memory, Processor) {
    let (ours, theirs) = memory::pair(1);
    let processor = Processor::of_world(clock, 1);
    (Busy::new(ours, overhead, &processor, clock).unwrap(), theirs, processor)
}

#[test]
fn overhead_is_processor_time_once_for_each_message_one_after_the_other() {
    let overhead = Overhead { send: US * 50, receive: US * 30 };
    let (came, load) = in_world(async move |clock| {
        let (mut ours, mut theirs, processor) = busy(&clock, overhead);
        clock.clone().spawn(async move {
            send_all(&mut ours, &[100; 4]).await;
            std::future::pending::<()>().await;
        });
        (receive(&clock, &mut theirs, 4).await, processor.load())
    });
    assert_eq!(came, [(50, 100), (100, 100), (150, 100), (200, 100)]);
    assert_eq!((load.jobs, load.busy), (4, US * 200));
    let (came, load) = in_world(async move |clock| {
        let (mut ours, mut theirs, processor) = busy(&clock, overhead);
        send_all(&mut theirs, &[7; 3]).await;
        let came = receive(&clock, &mut ours, 3).await;
        // Sending waits in the same line.
        send_all(&mut ours, &[1]).await;
        (came, (clock.now(), processor.load()))
    });
    assert_eq!(came, [(30, 7), (60, 7), (90, 7)]);
    assert_eq!(load.0, Instant::EPOCH + US * 140);
    assert_eq!(load.1.jobs, 4);
}

#[test]
fn overhead_and_link_come_one_behind_the_other_and_each_keeps_its_own() {
    // o limits the rate to one message in 50 us; the link adds its latency to each.
    let came = in_world(async |clock| {
        let (ours, mut theirs) = memory::pair(1);
        let shape = Shape::from(profile("1ms/1g,o.send=50us"));
        let processor = Processor::of_world(&clock, 1);
        let mut ours = shape.around(ours, &processor, &clock).unwrap();
        clock.clone().spawn(async move {
            send_all(&mut ours, &[121; 3]).await;
            std::future::pending::<()>().await;
        });
        receive(&clock, &mut theirs, 3).await
    });
    assert_eq!(came, [(1051, 121), (1101, 121), (1151, 121)]);
}

#[test]
fn overhead_of_datagrams_is_spent_once_for_each() {
    in_world(async |clock| {
        let (ours, mut theirs) = sockets(&clock);
        let (route, back) = (to(&theirs), to(&ours));
        let processor = Processor::of_world(&clock, 1);
        let overhead = Overhead { send: US * 50, receive: US * 30 };
        let mut busy = BusyDatagrams::new(ours, overhead, &processor, &clock).unwrap();
        for _ in 0..3 {
            std::future::poll_fn(|cx| busy.poll_send(cx, &message(4), &route)).await.unwrap();
        }
        std::future::poll_fn(|cx| busy.poll_flush(cx)).await.unwrap();
        assert_eq!(clock.now(), Instant::EPOCH + US * 150);
        for _ in 0..2 {
            std::future::poll_fn(|cx| theirs.poll_send(cx, &message(4), &back)).await.unwrap();
        }
        for _ in 0..2 {
            std::future::poll_fn(|cx| busy.poll_receive(cx)).await.unwrap();
        }
        assert_eq!(clock.now(), Instant::EPOCH + US * 210);
        assert_eq!(processor.load().busy, US * 210);
    });
}

#[test]
fn in_the_real_world_overhead_keeps_the_thread_busy_that_does_the_work() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        let (ours, mut theirs) = memory::pair(1);
        let processor = Processor::real(&clock);
        let overhead = Overhead { send: MS * 2, receive: MS };
        let mut ours = Busy::new(ours, overhead, &processor, &clock).unwrap();
        let begun = clock.now();
        ours.send(message(4));
        assert!(clock.now().since(begun) >= MS * 2, "spent before it is sent");
        std::future::poll_fn(|cx| ours.poll_flush(cx)).await.unwrap();
        theirs.send(message(4));
        std::future::poll_fn(|cx| theirs.poll_flush(cx)).await.unwrap();
        std::future::poll_fn(|cx| ours.poll_receive(cx)).await.unwrap();
        assert!(processor.load().busy >= MS * 3);
    })
    .unwrap();
}

/// Answers calls that come as datagrams, from behind this link.
fn serve(socket: impl Datagrams + 'static, clock: &Clock, shape: &Shape) -> (SocketAddr, Host) {
    let address = socket.local_addr().unwrap();
    let socket = shape.around_datagrams(socket, &Processor::real(clock), clock).unwrap();
    let host = Host::new(clock, Limits::default());
    let serving = host.clone();
    let service = |_, record: Bytes| async move {
        let (xid, _) = peek(&record).ok()?;
        Some(Message::new(ReplyHeader::success(xid).to_bytes()))
    };
    clock.spawn(async move { serving.listen_datagrams(socket, service).await });
    (address, host)
}

/// A client of a server's, behind this link.
fn client(
    socket: impl Datagrams + 'static,
    server: SocketAddr,
    clock: &Clock,
    shape: &Shape,
) -> Rpc {
    let socket = shape.around_datagrams(socket, &Processor::real(clock), clock).unwrap();
    Rpc::start_datagrams(socket, server, clock, Nanos::from_secs(60), 0)
}

async fn null(rpc: &Rpc) -> Result<Answer, CallError> {
    let null = Target { program: 100_003, version: 3, procedure: 0 };
    rpc.call(null, OpaqueAuth::NONE, |_| {}, Bytes::new()).await
}

fn localhost() -> Udp {
    Udp::bind((Ipv4Addr::LOCALHOST, 0).into()).unwrap()
}

#[test]
fn calls_over_udp_are_delayed_at_either_end() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        let far = Shape::from(profile("L=10ms,o=100us"));
        for (here, there) in [(&far, &Shape::default()), (&Shape::default(), &far)] {
            let (server, _) = serve(localhost(), &clock, there);
            let rpc = client(Udp::connect(server).unwrap(), server, &clock, here);
            let took = null(&rpc).await.unwrap().response_time();
            assert!(took >= MS * 20 + US * 200, "{} ns", took.as_nanos());
        }
    })
    .unwrap();
}

#[test]
fn calls_that_the_link_loses_are_sent_again() {
    let (far, lost) = in_world(async |clock| {
        let (ours, theirs) = sockets(&clock);
        let far = Shape::from(profile("lossy,loss=30%"));
        let (server, _) = serve(theirs, &clock, &far);
        let rpc = client(ours, server, &clock, &Shape::default());
        for _ in 0..50 {
            null(&rpc).await.unwrap();
        }
        let lost = [Side::There, Side::Back].map(|side| far.counts(side).lost_by_chance);
        (rpc.retransmissions(), lost)
    });
    assert!(lost[0] > 5 && lost[1] > 5 && far >= lost[0] + lost[1], "{far} for {lost:?}");
}

#[test]
fn a_server_that_ends_still_sends_the_replies_that_the_link_holds() {
    in_world(async |clock| {
        let (ours, theirs) = sockets(&clock);
        let far = Shape::from(profile("there.L=200ms"));
        let (server, host) = serve(theirs, &clock, &far);
        let rpc = client(ours, server, &clock, &Shape::default());
        let end = async {
            clock.sleep(MS).await;
            assert_eq!(far.counts(Side::There).held, 1);
            host.drain(Nanos::from_secs(60)).await
        };
        let (answer, drained) = futures_util::future::join(null(&rpc), end).await;
        assert_eq!(answer.unwrap().response_time(), MS * 200);
        assert_eq!(drained.connections_abandoned, 0);
    });
}

#[test]
fn a_server_that_is_not_there_is_found_out_through_a_link_too() {
    net::runtime::block_on(async {
        let clock = Clock::real();
        let gone = localhost().local_addr().unwrap();
        let far = Shape::from(profile("L=5ms"));
        let rpc = client(Udp::connect(gone).unwrap(), gone, &clock, &far);
        // The refusal is that of a datagram that was held.
        let refused = null(&rpc).await.unwrap_err();
        assert!(matches!(refused, CallError::NobodyListens), "{refused}");
        assert_eq!(far.counts(Side::There).held, 0);
    })
    .unwrap();
}

#[test]
fn what_is_on_its_way_goes_with_a_connection_that_its_peer_resets() {
    in_world(async |clock| {
        let (mut peer, own) = resetting::of(memory::pair(1));
        let mut own = Shaped::new(own, profile("1ms/1m"), &clock).unwrap();
        send_all(peer.transport(), &[1000, 1000]).await;
        assert_eq!(receive(&clock, &mut own, 1).await, [(9_032, 1000)]);
        peer.reset();
        let received = std::future::poll_fn(|cx| own.poll_receive(cx)).await;
        assert!(received.unwrap_err().is_reset());
        assert_eq!(clock.now(), Instant::EPOCH + US * 9_032);
    });
}
