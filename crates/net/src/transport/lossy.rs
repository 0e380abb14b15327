//! Datagrams inside one process, for worlds: late, lost and duplicated as a seed decides.

use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::{Instant, Nanos};
use wire::record::Message;

use super::datagram::{Datagram, Datagrams, Route};
use crate::clock::{Alarm, Clock};

/// Datagrams on their way in one direction; more are lost.
const QUEUE_MAX: usize = 4096;

/// What happens to datagrams.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Weather {
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

/// The weather as it is now; a test may change it.
pub type Sky = Arc<Mutex<Weather>>;

/// One end.
#[derive(Debug)]
pub struct Lossy {
    clock: Clock,
    sky: Sky,
    random: u64,
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
pub fn pair(clock: &Clock, weather: Weather) -> io::Result<(Lossy, Lossy)> {
    pair_under(clock, &Arc::new(Mutex::new(weather)))
}

/// As [`pair`], in weather that may change.
///
/// # Errors
/// As [`pair`].
pub fn pair_under(clock: &Clock, sky: &Sky) -> io::Result<(Lossy, Lossy)> {
    let seed = sky.lock().seed;
    let (there, back) = (Arc::default(), Arc::default());
    let (client, server) = (1, 2);
    let address = |host: u8| SocketAddr::from((Ipv4Addr::new(127, 1, 1, host), u16::from(host)));
    let end = |incoming: &Arc<_>, outgoing: &Arc<_>, own, peer| {
        Ok::<_, io::Error>(Lossy {
            clock: clock.clone(),
            sky: Arc::clone(sky),
            random: (seed ^ u64::from(own)).max(1),
            incoming: Arc::clone(incoming),
            outgoing: Arc::clone(outgoing),
            alarm: clock.alarm()?,
            own: address(own),
            peer: address(peer),
        })
    };
    Ok((end(&back, &there, client, server)?, end(&there, &back, server, client)?))
}

impl Lossy {
    /// A number below `end` (xorshift64, Marsaglia 2003).
    fn below(&mut self, end: u64) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        (self.random >> 11) % end.max(1)
    }

    fn pass_on(&mut self, bytes: Bytes, weather: &Weather) {
        let late = Nanos::from_nanos(self.below(weather.jitter.as_nanos() + 1));
        let arrives = self.clock.now() + weather.latency + late;
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
        let weather = *self.sky.lock();
        let mut copies = match self.below(1000) {
            fate if fate < weather.lost => 0,
            fate if fate < weather.lost + weather.duplicated => 2,
            _ => 1,
        };
        let bytes = Bytes::from(message.to_vec());
        let fragments =
            weather.fragment_bytes.map_or(1, |size| (bytes.len() as u64).div_ceil(size));
        for _ in 1..fragments {
            if self.below(1000) < weather.lost {
                copies = 0;
            }
        }
        for _ in 0..copies {
            self.pass_on(bytes.clone(), &weather);
        }
        Poll::Ready(Ok(()))
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        Ok(self.own)
    }
}
