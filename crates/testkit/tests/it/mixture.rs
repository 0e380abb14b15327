//! Random mixtures of calls, limits and readers in worlds: every call is answered, soon, and
//! nothing is left.

use std::task::Poll;

use bytes::Bytes;
use net::clock::Clock;
use net::serve::{Host, Limits, Peer, Reply, Service};
use net::transport::{Transport, memory};
use perf::units::{Instant, Nanos};
use testkit::in_world;
use wire::record::Message;
use wire::rpc::{ReplyHeader, peek};
use wire::xdr::Encode;

/// Numbers without a pattern, the same for the same seed (xorshift64, Marsaglia 2003).
#[derive(Clone)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }

    fn bytes(&mut self) -> usize {
        let end = [1, 100, 9_000, 70_000, 300_000][usize::try_from(self.below(5)).unwrap()];
        usize::try_from(4 * self.below(1 + end / 4)).unwrap()
    }
}

/// Answers at once or late, with little or much, as the XID decides; and says so beforehand or not.
#[derive(Clone)]
struct Whims(Clock);

fn whims_of(xid: u32) -> (Nanos, usize) {
    let mut random = Random(u64::from(xid).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let late = random.below(4) * random.below(2_000);
    (Nanos::from_micros(late), random.bytes())
}

impl Service for Whims {
    fn call(
        &self,
        _: Peer,
        record: Bytes,
        _: Option<Instant>,
    ) -> impl Future<Output = Option<Reply>> + Send + use<> {
        let clock = self.0.clone();
        async move {
            let (xid, _) = peek(&record).unwrap();
            let (late, bytes) = whims_of(xid);
            if late > Nanos::ZERO {
                clock.sleep(late).await;
            }
            let head = ReplyHeader::success(xid).to_bytes();
            Some(Message { head, payload: vec![0; bytes].into() }.into())
        }
    }

    fn reply_bytes_max(&self, record: &[u8]) -> usize {
        let (xid, _) = peek(record).unwrap();
        if xid % 2 == 0 { whims_of(xid).1 } else { 0 }
    }
}

/// Sends calls with XIDs from `first` on and reads the replies at a pace of its own.
async fn client(clock: &Clock, mut ours: memory::Memory, mut random: Random, first: u32) {
    const CALLS: u32 = 60;
    let mut answered = [false; CALLS as usize];
    let mut sent = 0;
    for _ in 0..CALLS {
        let reply = std::future::poll_fn(|cx| {
            while sent < CALLS && ours.poll_ready(cx).is_ready() {
                let mut call = [(first + sent).to_be_bytes(), [0; 4]].concat();
                call.resize(8 + random.bytes(), 0);
                ours.send(Message::new(call));
                sent += 1;
            }
            assert!(!matches!(ours.poll_flush(cx), Poll::Ready(Err(_))));
            ours.poll_receive(cx)
        });
        let (xid, _) = peek(&reply.await.unwrap().unwrap()).unwrap();
        let at = usize::try_from(xid - first).unwrap();
        assert!(!std::mem::replace(&mut answered[at], true), "{xid} twice");
        if random.below(3) == 0 {
            clock.sleep(Nanos::from_micros(random.below(3_000))).await;
        }
    }
}

#[test]
fn every_call_of_any_mixture_is_answered_soon_and_nothing_is_left() {
    for seed in 1..=30 {
        let (took, counts) = in_world(async move |clock| {
            let mut random = Random(u64::wrapping_mul(seed, 0x2545_f491_4f6c_dd1d));
            let limits = Limits {
                calls_per_connection_max: 1 + usize::try_from(random.below(40)).unwrap(),
                bytes_in_flight_max: 16_384 << random.below(9),
                ..Limits::default()
            };
            let host = Host::new(&clock, limits);
            let clients = (1..=4_u32).map(|number| {
                let (ours, theirs) = memory::pair(u16::try_from(number).unwrap());
                let (host, service) = (host.clone(), Whims(clock.clone()));
                clock.spawn(async move {
                    host.connection(theirs, service).await.ok();
                });
                let own = Random(random.below(u64::MAX) | 1);
                client(&clock, ours, own, number << 16)
            });
            let begun = clock.now();
            futures_util::future::join_all(clients).await;
            let took = clock.now().since(begun);
            host.drain(Nanos::from_secs(1)).await;
            (took, host.counts())
        });
        // Whoever is woken only by the look at idle connections comes after 15 s.
        assert!(took < Nanos::from_secs(10), "seed {seed}: {took}");
        assert_eq!((counts.served_now, counts.bytes_in_flight), (0, 0), "seed {seed}");
    }
}
