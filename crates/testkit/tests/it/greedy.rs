//! Clients that take what others need, in worlds: what it costs those others.

use std::net::Ipv4Addr;
use std::sync::Arc;

use bytes::Bytes;
use net::call::{Rpc, Target};
use net::clock::Clock;
use net::clock::world::World;
use net::error::TransportError;
use net::serve::{Drained, Host, Limits, Peer, Reply, Service};
use net::transport::Transport;
use net::transport::memory::{self, Memory};
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use testkit::in_world;
use wire::record::Message;
use wire::rpc::{OpaqueAuth, ReplyHeader, peek};
use wire::xdr::Encode;

const MIB: usize = 1 << 20;
const SECOND: Nanos = Nanos::from_secs(1);
const HEALTHY: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
const HOSTILE: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 66);

/// Answers a call of procedure n with n bytes, as a READ would be, and says so before.
#[derive(Clone, Default)]
struct Reader {
    /// What was requested, in the order in which it was answered.
    answered: Arc<Mutex<Vec<usize>>>, // guards the list
}

fn requested_bytes(record: &[u8]) -> usize {
    let word = record[20..24].try_into().unwrap();
    u32::from_be_bytes(word) as usize
}

impl Service for Reader {
    fn call(
        &self,
        _: Peer,
        record: Bytes,
        _: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        static ZEROS: [u8; MIB] = [0; MIB];
        let (xid, _) = peek(&record).unwrap();
        let head = ReplyHeader::success(xid).to_bytes();
        let payload = Bytes::from_static(&ZEROS).slice(..requested_bytes(&record));
        self.answered.lock().push(payload.len());
        async move { Some(Reply { message: Message { head, payload }, tag: 0 }) }
    }

    fn reply_bytes_max(&self, record: &[u8]) -> usize {
        requested_bytes(record)
    }
}

fn target(bytes: usize) -> Target {
    Target { program: 100_003, version: 3, procedure: u32::try_from(bytes).unwrap() }
}

/// A connection to the host, and how it ended.
fn connect(clock: &Clock, host: &Host, from: Ipv4Addr, port: u16) -> (Memory, Ended) {
    connect_to(Reader::default(), clock, host, from, port)
}

fn connect_to(
    service: Reader,
    clock: &Clock,
    host: &Host,
    from: Ipv4Addr,
    port: u16,
) -> (Memory, Ended) {
    let (ours, theirs) =
        memory::pair_between((from, port).into(), (Ipv4Addr::LOCALHOST, 2049).into());
    let (host, ended) = (host.clone(), Ended::default());
    let tell = Arc::clone(&ended);
    clock.spawn(async move {
        let outcome = host.connection(theirs, service).await;
        *tell.lock() = Some(outcome);
    });
    (ours, ended)
}

type Ended = Arc<Mutex<Option<Result<(), TransportError>>>>; // guards how it ended

/// Connections that ask for so many replies of 1 MiB each, and take none.
async fn never_readers(clock: &Clock, host: &Host, count: u16, calls: u32) -> Vec<(Memory, Ended)> {
    never_readers_of(&Reader::default(), clock, host, count, (calls, MIB)).await
}

/// The same with replies of so many bytes.
async fn never_readers_of(
    service: &Reader,
    clock: &Clock,
    host: &Host,
    count: u16,
    (calls, bytes): (u32, usize),
) -> Vec<(Memory, Ended)> {
    let mut all = Vec::new();
    for number in 0..count {
        let (mut ours, ended) = connect_to(service.clone(), clock, host, HOSTILE, 1000 + number);
        for xid in 0..calls {
            let words = [xid, 0, 2, 100_003, 3, u32::try_from(bytes).unwrap(), 0, 0, 0, 0];
            ours.send(Message::new(words.iter().flat_map(|word| word.to_be_bytes()).collect()));
        }
        std::future::poll_fn(|cx| ours.poll_flush(cx)).await.unwrap();
        all.push((ours, ended));
    }
    all
}

/// How long a call for so many bytes takes.
async fn response_time(rpc: &Rpc, bytes: usize) -> Nanos {
    let answer = rpc.call(target(bytes), OpaqueAuth::NONE, |_| {}, Bytes::new()).await;
    answer.unwrap().response_time()
}

#[test]
fn who_takes_no_replies_keeps_nobody_waiting() {
    let (times, used, gone, counts) = in_world(async move |clock| {
        let limits = Limits { bytes_in_flight_max: 16 * MIB, ..Limits::default() };
        let host = Host::new(&clock, limits);
        let hostile = never_readers(&clock, &host, 24, 20).await;
        clock.sleep(Nanos::from_millis(1)).await;
        let used = host.counts().bytes_in_flight;
        let rpc = |from, port| {
            let (ours, _) = connect(&clock, &host, from, port);
            Rpc::start(ours, &clock, SECOND * 100, 0)
        };
        // Small calls of anybody, first ones and others, and large ones of another host.
        let (near, far) = (rpc(HOSTILE, 700), rpc(HEALTHY, 700));
        let mut times = Vec::new();
        for _ in 0..100 {
            times.push(response_time(&near, 300).await);
            times.push(response_time(&far, 300).await);
            times.push(response_time(&far, MIB).await);
            times.push(response_time(&rpc(HEALTHY, 701), 60_000).await);
            clock.sleep(Nanos::from_millis(100)).await;
        }
        let gone = hostile.iter().filter(|(_, ended)| ended.lock().is_some()).count();
        (times, used, gone, host.counts())
    });
    assert!(times.iter().all(|&time| time == Nanos::ZERO), "{times:?}");
    // What one host may hold: half, and first records until a quarter is left.
    assert!((8 * MIB as u64..=11 * MIB as u64).contains(&used), "{used}");
    // Others of theirs wait, so those who take nothing are given up after 5 s and not 60; some take
    // their turn after them.
    assert!(gone >= 8, "{gone} of 24 after 10 s");
    assert_eq!(counts.connections_stalled, gone as u64);
}

/// Where among the calls that came at the same moment the one of a connection that was there is
/// answered, when ten others for each processor begin with so many calls for so many bytes.
fn place_among_those_who_begin(calls: u32, bytes: usize) -> (Option<usize>, usize) {
    let turns = std::thread::available_parallelism().map_or(1, usize::from);
    let connections = 10 * u16::try_from(turns).unwrap();
    let answered = in_world(async move |clock| {
        let (host, service) = (Host::new(&clock, Limits::default()), Reader::default());
        let (ours, _) = connect_to(service.clone(), &clock, &host, HEALTHY, 700);
        let rpc = Rpc::start(ours, &clock, SECOND * 100, 0);
        response_time(&rpc, 8).await;
        // All tasks are in the runtime's queue, the one of the small call behind the others.
        let requested = (calls, bytes);
        let hostile = never_readers_of(&service, &clock, &host, connections, requested).await;
        response_time(&rpc, 8).await;
        drop(hostile);
        service.answered.lock().clone()
    });
    (answered.iter().rposition(|&bytes| bytes == 8), turns)
}

#[test]
fn a_small_call_is_answered_before_large_ones_that_came_at_the_same_moment() {
    let (place, turns) = place_among_those_who_begin(2, MIB);
    assert!(place.is_some_and(|place| place <= 1 + turns), "{place:?}, {turns} processors");
}

#[test]
fn a_small_call_is_answered_before_the_first_ones_of_many_who_begin() {
    let (place, turns) = place_among_those_who_begin(1, 16);
    assert!(place.is_some_and(|place| place <= 1 + turns), "{place:?}, {turns} processors");
}

#[test]
fn in_a_world_that_a_task_of_the_real_one_runs_large_calls_are_answered_at_once() {
    let in_a_task = async {
        let world = World::new();
        let clock = world.clock();
        let large = async move {
            let host = Host::new(&clock, Limits::default());
            let (ours, _) = connect(&clock, &host, HEALTHY, 700);
            response_time(&Rpc::start(ours, &clock, SECOND * 100, 0), MIB).await
        };
        world.run(large).unwrap()
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    assert_eq!(runtime.block_on(in_a_task), Nanos::ZERO);
}

#[test]
fn who_takes_no_replies_is_given_up_late_where_nobody_waits() {
    let (after_30, after_80, used) = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let hostile = never_readers(&clock, &host, 4, 20).await;
        let gone = || hostile.iter().filter(|(_, ended)| ended.lock().is_some()).count();
        clock.sleep(SECOND * 30).await;
        let after_30 = gone();
        clock.sleep(SECOND * 50).await;
        (after_30, gone(), host.counts().bytes_in_flight)
    });
    assert_eq!((after_30, after_80, used), (0, 4, 0));
}

#[test]
fn a_server_that_ends_does_not_wait_beyond_its_grace_for_who_takes_nothing() {
    let (took, drained) = in_world(async move |clock| {
        let host = Host::new(&clock, Limits::default());
        let _hostile = never_readers(&clock, &host, 150, 10).await;
        clock.sleep(SECOND).await;
        let begun = clock.now();
        let drained = host.drain(SECOND * 2).await;
        (clock.now().since(begun), drained)
    });
    assert_eq!(took, SECOND * 2);
    assert_eq!(drained, Drained { calls_abandoned: 0, connections_abandoned: 150 });
}
