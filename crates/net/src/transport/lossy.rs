//! Datagrams inside one process, for worlds: late, lost and duplicated as a seed decides.
//!
//! What becomes of each is decided by [`crate::shape::lane`], as for real sockets.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::model::loggp::Link;
use perf::units::{Instant, Nanos};
use wire::record::Message;

use super::datagram::{Datagram, Datagrams, Route};
use crate::clock::{Alarm, Clock};
use crate::shape::conditions::{Conditions, Jitter, Ppm};
use crate::shape::profile::Profile;
use crate::shape::{Damage, Follower, Shape, Side};

/// Datagrams on their way in one direction; more are lost.
const QUEUE_MAX: usize = 4096;

/// What happens to datagrams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Impairments {
    pub seed: u64,
    /// Of a thousand, how many never arrive.
    pub lost: u64,
    /// Larger datagrams are cut into fragments of so many bytes, each of which may be lost, and
    /// with it the datagram. Without it they are lost as a whole.
    pub fragment_bytes: Option<u64>,
    /// Of a thousand, how many arrive twice.
    pub duplicated: u64,
    /// How long each takes, and by how much at most longer: more than the distance between two
    /// lets them arrive in another order.
    pub latency: Nanos,
    pub jitter: Nanos,
}

impl Impairments {
    /// The same, in parameters of a link.
    pub fn conditions(&self) -> Conditions {
        let share = |thousandths: u64| {
            let ppm = thousandths.min(1000) * 1000;
            Ppm(u32::try_from(ppm).unwrap_or(Ppm::ALL.0))
        };
        let link = Link { latency: self.latency, ..Link::default() };
        Conditions {
            lost: share(self.lost),
            duplicated: share(self.duplicated),
            jitter: match self.jitter {
                Nanos::ZERO => Jitter::None,
                span => Jitter::Uniform(span),
            },
            mtu: self.fragment_bytes.map(|bytes| u16::try_from(bytes).unwrap_or(u16::MAX)),
            ..link.into()
        }
    }
}

/// The connection conditions as they are now; a test may change it.
pub type SharedImpairments = Arc<Mutex<Impairments>>;

/// One end.
#[derive(Debug)]
pub struct Lossy {
    clock: Clock,
    shared: Option<(SharedImpairments, Arc<Mutex<Impairments>>)>,
    shape: Shape,
    lane: Follower,
    incoming: Arc<Mutex<Queue>>,
    outgoing: Arc<Mutex<Queue>>,
    alarm: Alarm,
    own: SocketAddr,
    peer: SocketAddr,
}

#[derive(Debug, Default)]
struct Queue {
    sequence: u64,
    datagrams: BTreeMap<(Instant, u64), Bytes>,
    receiver: Option<Waker>,
}

/// Two ends that reach each other; the first is the client's.
///
/// # Errors
/// The system has no more timers to give; a world always has.
pub fn pair(clock: &Clock, impairments: Impairments) -> io::Result<(Lossy, Lossy)> {
    pair_under(clock, &Arc::new(Mutex::new(impairments)))
}

/// As [`pair`], under conditions that may change.
///
/// # Errors
/// As [`pair`].
pub fn pair_under(clock: &Clock, shared: &SharedImpairments) -> io::Result<(Lossy, Lossy)> {
    let impairments = *shared.lock();
    let mut ends = pair_through(clock, &shape(impairments, clock.now()))?;
    // Both ends are the same link, so that what one has seen holds for the other.
    let known = Arc::new(Mutex::new(impairments));
    for end in [&mut ends.0, &mut ends.1] {
        end.shared = Some((Arc::clone(shared), Arc::clone(&known)));
    }
    Ok(ends)
}

/// As [`pair`], through an emulated link whose `there` is from the first end to the second.
///
/// # Errors
/// As [`pair`].
pub fn pair_through(clock: &Clock, shape: &Shape) -> io::Result<(Lossy, Lossy)> {
    let (there, back) = (Arc::default(), Arc::default());
    let (client, server) = (1, 2);
    let address = |host: u8| SocketAddr::from((Ipv4Addr::new(127, 1, 1, host), u16::from(host)));
    let end = |incoming: &Arc<_>, outgoing: &Arc<_>, own, peer, side| {
        Ok::<_, io::Error>(Lossy {
            clock: clock.clone(),
            shared: None,
            shape: shape.clone(),
            lane: shape.follower(side),
            incoming: Arc::clone(incoming),
            outgoing: Arc::clone(outgoing),
            alarm: clock.alarm()?,
            own: address(own),
            peer: address(peer),
        })
    };
    let first = end(&back, &there, client, server, Side::There)?;
    let second = end(&there, &back, server, client, Side::Back)?;
    Ok((first, second))
}

fn shape(impairments: Impairments, now: Instant) -> Shape {
    let profile = Profile::symmetric("impairments", impairments.conditions());
    Shape::new(Profile { seed: impairments.seed, ..profile }, now)
}

impl Lossy {
    /// Takes over conditions that have changed.
    fn look_up(&mut self, now: Instant) {
        let Some((shared, known)) = &self.shared else {
            return;
        };
        let (impairments, mut known) = (*shared.lock(), known.lock());
        if impairments != *known {
            *known = impairments;
            let profile = Profile::symmetric("impairments", impairments.conditions());
            self.shape.replace(profile, now);
        }
    }

    fn pass_on(&self, arrives: Instant, bytes: Bytes) {
        let mut queue = self.outgoing.lock();
        if queue.datagrams.len() < QUEUE_MAX {
            queue.sequence += 1;
            let at = (arrives, queue.sequence);
            queue.datagrams.insert(at, bytes);
        }
        let receiver = queue.receiver.take();
        drop(queue);
        receiver.into_iter().for_each(Waker::wake);
    }
}

impl Datagrams for Lossy {
    fn poll_receive(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<Datagram>> {
        let mut queue = self.incoming.lock();
        let next = queue.datagrams.first_key_value().map(|(&(arrives, _), _)| arrives);
        queue.receiver = Some(cx.waker().clone());
        drop(queue);
        let Some(arrives) = next else {
            return Poll::Pending;
        };
        ready!(self.alarm.poll_at(cx, arrives));
        let Some((_, bytes)) = self.incoming.lock().datagrams.pop_first() else {
            return Poll::Pending;
        };
        let route = Route { peer: self.peer, local: Some(self.own.ip()) };
        Poll::Ready(Ok(Datagram { bytes, route }))
    }

    fn poll_send(
        &mut self,
        _cx: &mut Context<'_>,
        message: &Message,
        _route: &Route,
    ) -> Poll<io::Result<()>> {
        let now = self.clock.now();
        self.look_up(now);
        let mut bytes = Bytes::from(message.to_vec());
        let sent_bytes = bytes.len() as u64;
        let fate = self.lane.lane(&self.shape).datagram(now, sent_bytes);
        self.lane.tally(&self.shape).decided(sent_bytes, &fate);
        if let Some(again) = fate.again {
            self.pass_on(again, bytes.clone());
        }
        if let Ok(arrives) = fate.arrival {
            if let Some(bit) = fate.flipped_bit {
                bytes.flip(bit);
            }
            self.pass_on(arrives, bytes);
        }
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.own)
    }
}
