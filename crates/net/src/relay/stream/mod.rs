//! One connection of a client and one to the server, driven by one task.
//!
//! In each direction a record is read, put onto the link, held until it is due, and given to the
//! other end, in the order in which it came. Reading stops where a direction holds as much as it
//! may, or as long as the bytes that all may hold together are used up. The end of a direction is
//! passed on behind its last record; the other goes on until it ends, too.
//!
//! A reset is passed on in the same way, and as a reset. What its sender's system would still have
//! had goes with it: records that wait to be read here, and those from the first on that had to be
//! retransmitted.

mod half;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use self::half::{Next, Way};
use super::state::{Relay, Side};
use super::tap::{Eye, Leg, Opened, Seen};
use crate::clock::Alarm;
use crate::error::TransportError;
use crate::serve::Carrier;
use crate::serve::host::{Ending, Phase};
use crate::serve::patience::{Observed, Patience};
use crate::serve::seats::Seated;
use crate::transport::Transport;

/// Relays; see [`Relay::connection`].
pub(super) async fn relay(
    relay: &Relay,
    seated: &Seated,
    mut client: impl Transport,
    mut server: impl Transport,
) -> Result<(), (Side, TransportError)> {
    let shared = &*relay.0;
    let now = shared.clock.now();
    let limits = crate::serve::Limits {
        idle_max: shared.limits.idle_max,
        stall_max: shared.limits.stall_max,
        ..crate::serve::Limits::default()
    };
    let link = shared.links.of(client.peer().ip().to_canonical(), &shared.shape);
    let mut pair = Pair {
        relay,
        seated,
        records: 0,
        there: Way::new(relay, Arc::clone(&link), Side::Client, now),
        back: Way::new(relay, link, Side::Server, now),
        alarm: None,
        ending: relay.ending(),
        client_patience: Patience::new(&limits, now),
        server_patience: Patience::new(&limits, now),
        timer: None,
        eye: Eye::open(shared.tap.as_ref(), now, || Opened {
            carrier: Carrier::Stream,
            client: leg(&client),
            server: leg(&server),
        }),
        failed: None,
    };
    let ended = std::future::poll_fn(|cx| pair.poll(&mut client, &mut server, cx)).await;
    pair.close();
    if let Err((side, cause)) = &ended
        && cause.is_reset()
    {
        match side {
            Side::Client => server.abort(),
            Side::Server => client.abort(),
        }
    }
    ended
}

fn leg(transport: &impl Transport) -> Leg {
    let peer = transport.peer();
    Leg { peer, own: transport.local().unwrap_or(peer) }
}

type Failed = (Side, TransportError);
type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

struct Pair<'r> {
    relay: &'r Relay,
    seated: &'r Seated,
    /// Those that had come when it was last looked.
    records: u64,
    there: Way<'r>,
    back: Way<'r>,
    /// For the next message that is due; made when there is one.
    alarm: Option<Alarm>,
    ending: Ending,
    client_patience: Patience,
    server_patience: Patience,
    /// Until the next look at the two.
    timer: Option<Timer>,
    eye: Eye,
    /// One end has broken; what the other direction still holds is passed on.
    failed: Option<Failed>,
}

impl Pair<'_> {
    fn poll(
        &mut self,
        client: &mut impl Transport,
        server: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failed>> {
        self.look(client, server, cx)?;
        if self.seated.seat().is_revoked() {
            return Poll::Ready(Ok(()));
        }
        let ended = self.advance(client, server, cx);
        self.sit(client, server);
        ended
    }

    /// Keeps the seat while something is on its way: a message, or the reply to a call.
    fn sit(&mut self, client: &impl Transport, server: &impl Transport) {
        let records = self.there.records + self.back.records;
        if records != std::mem::replace(&mut self.records, records) {
            self.relay.0.seats.look_at(self.relay.0.clock.now());
            self.seated.is_active();
        }
        let is_held = !self.there.held.is_empty() || !self.back.held.is_empty();
        let is_behind = client.unsent_bytes() > 0 || server.unsent_bytes() > 0;
        let is_awaited = self.there.records > self.back.records;
        self.seated.seat().is_busy(is_held || is_behind || is_awaited);
    }

    fn advance(
        &mut self,
        client: &mut impl Transport,
        server: &mut impl Transport,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(), Failed>> {
        let phase = self.ending.phase(cx);
        if phase == Phase::Abandoning {
            return Poll::Ready(Ok(()));
        }
        loop {
            let reads = phase == Phase::Serving && self.failed.is_none();
            let clock = &self.relay.0.clock;
            let (eye, now) = (&mut self.eye, &|| clock.now());
            let there = self.there.pump(client, server, reads, now, eye, cx);
            let there = there.unwrap_or_else(|failed| self.there.give_up(&mut self.failed, failed));
            let back = self.back.pump(server, client, reads, now, eye, cx);
            let back = back.unwrap_or_else(|failed| self.back.give_up(&mut self.failed, failed));
            if let Some(failed) = &self.failed {
                if reads {
                    // Once more, to hand on and not to read.
                    continue;
                }
                if self.there.is_over(server) && self.back.is_over(client) {
                    return Poll::Ready(Err(failed.clone()));
                }
            }
            let ended = |way: &Way<'_>| match reads {
                true => way.passed_end,
                false => way.held.is_empty(),
            };
            if ended(&self.there) && ended(&self.back) {
                let unsent = client.unsent_bytes() + server.unsent_bytes();
                return if unsent == 0 { Poll::Ready(Ok(())) } else { Poll::Pending };
            }
            let due = match (there, back) {
                (Next::Due(there), Next::Due(back)) => there.min(back),
                (Next::Due(due), Next::Woken) | (Next::Woken, Next::Due(due)) => due,
                (Next::Woken, Next::Woken) => return Poll::Pending,
            };
            let alarm = match &mut self.alarm {
                Some(alarm) => alarm,
                None => {
                    let made = clock.alarm();
                    // Out of descriptors: that ends this connection alone.
                    self.alarm.insert(made.map_err(|cause| (Side::Client, cause.into()))?)
                }
            };
            if alarm.poll_at(cx, due).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Tells of the ends that nobody has seen.
    fn close(&mut self) {
        let now = self.relay.0.clock.now();
        for way in [&self.there, &self.back] {
            if !way.passed_end {
                self.eye.see(now, Seen::LeftEnd(way.from.other()));
            }
        }
    }

    /// Gives up the connection if it is time.
    fn look(
        &mut self,
        client: &impl Transport,
        server: &impl Transport,
        cx: &mut Context<'_>,
    ) -> Result<(), Failed> {
        loop {
            let timer = self.timer.get_or_insert_with(|| {
                let clock = self.relay.0.clock.clone();
                let interval = self.client_patience.interval();
                self.seated.seat().watch(cx.waker());
                Box::pin(async move { clock.sleep(interval).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return Ok(());
            }
            self.timer = None;
            let now = self.relay.0.clock.now();
            let held = self.there.held.len() + self.back.held.len();
            let seen_at_client = observed(&self.there, client, &self.back, held);
            let seen_at_server = observed(&self.back, server, &self.there, held);
            self.relay.0.seats.look_at(now);
            let is_short = self.relay.0.seats.is_full(now);
            let client_is = self.client_patience.look(now, seen_at_client, is_short);
            let server_is = self.server_patience.look(now, seen_at_server, false);
            client_is.map_err(|cause| (Side::Client, cause))?;
            server_is.map_err(|cause| (Side::Server, cause))?;
        }
    }
}

/// What an end has done: `from` it and `to` it are the two directions.
fn observed(from: &Way<'_>, end: &impl Transport, to: &Way<'_>, held: usize) -> Observed {
    let unsent_bytes = end.unsent_bytes();
    Observed {
        records: from.records,
        within_record: end.is_within_record() && !from.is_held_up(),
        sent_bytes: to.given_bytes - (unsent_bytes as u64).min(to.given_bytes),
        unsent_bytes,
        calls: held,
    }
}
