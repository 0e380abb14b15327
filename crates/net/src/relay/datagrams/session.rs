//! One client's datagrams, and the socket of its own towards the server.

use std::collections::BTreeMap;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use parking_lot::Mutex;
use perf::units::Instant;
use tokio::sync::mpsc;

use super::{Admitted, BATCH_MAX, Line, arrivals, lease};
use crate::clock::Alarm;
use crate::relay::ledger::{Ledger, Loss};
use crate::relay::links::HostLink;
use crate::relay::state::{ENTRY_BYTES, Event, Relay, Side, message};
use crate::relay::tap::{Eye, Seen};
use crate::serve::budget::Lent;
use crate::serve::host::{Ending, Phase};
use crate::shape;
use crate::transport::datagram::{Datagrams, Route};

/// What is on its way in one direction, by when it is due.
#[derive(Default)]
struct Holding {
    held: BTreeMap<(Instant, u64), (Bytes, Lent)>,
    bytes: usize,
    sequence: u64,
}

impl Holding {
    fn hold(&mut self, admitted: Admitted) {
        let Admitted { due, bytes, lent } = admitted;
        self.bytes += bytes.len();
        self.sequence += 1;
        self.held.insert((due, self.sequence), (bytes, lent));
    }

    /// Takes what comes until nothing can come any more. Who has a place in the queue has counted
    /// a datagram as held, and may be about to send it: that is waited for.
    async fn rest_of(&mut self, queue: &mut mpsc::Receiver<Admitted>) {
        queue.close();
        while let Some(admitted) = queue.recv().await {
            self.hold(admitted);
        }
    }

    fn due(&self) -> Option<Instant> {
        self.held.first_key_value().map(|(&(due, _), _)| due)
    }

    /// What counts as held: with what each costs beside its bytes.
    fn retained_bytes(&self) -> usize {
        self.bytes + self.held.len() * ENTRY_BYTES
    }

    /// What is due at `now`.
    fn pop(&mut self, now: Instant) -> Option<(Instant, Bytes)> {
        if self.due()? > now {
            return None;
        }
        let ((due, _), (bytes, _)) = self.held.pop_first()?;
        self.bytes -= bytes.len();
        Some((due, bytes))
    }
}

type Timer = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One client's datagrams.
pub(super) struct Session<F, D> {
    relay: Relay,
    front: Arc<Mutex<F>>,
    /// Towards the server.
    socket: D,
    server: Route,
    client: Route,
    queue: mpsc::Receiver<Admitted>,
    there: Holding,
    there_bytes: Arc<AtomicUsize>,
    /// As in [`Line`].
    allowed_bytes: Arc<AtomicUsize>,
    back: Holding,
    link: Arc<HostLink>,
    alarm: Option<Alarm>,
    ending: Ending,
    /// Until it is looked whether anything has passed.
    idle: Option<Timer>,
    active: bool,
    /// The server's host has reported that nobody listens, and nothing has come since.
    is_unreachable: bool,
    /// Held to tell of one datagram.
    eye: Arc<Mutex<Eye>>,
}

impl<F: Datagrams, D: Datagrams> Session<F, D> {
    pub(super) fn new(
        relay: &Relay,
        front: Arc<Mutex<F>>,
        socket: D,
        server: SocketAddr,
        client: Route,
        queue: mpsc::Receiver<Admitted>,
        line: &Line,
    ) -> Self {
        Self {
            relay: relay.clone(),
            front,
            socket,
            server: Route { peer: server, local: None },
            client,
            queue,
            there: Holding::default(),
            there_bytes: Arc::clone(&line.held_bytes),
            allowed_bytes: Arc::clone(&line.allowed_bytes),
            back: Holding::default(),
            link: Arc::clone(&line.link),
            alarm: None,
            ending: relay.ending(),
            idle: None,
            active: false,
            is_unreachable: false,
            eye: Arc::clone(&line.eye),
        }
    }

    /// Ready when it is over.
    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let phase = self.ending.phase(cx);
        if phase == Phase::Abandoning || self.is_idle(cx) {
            return Poll::Ready(());
        }
        let mut front_is_gone = false;
        loop {
            match self.queue.poll_recv(cx) {
                Poll::Ready(Some(admitted)) => {
                    self.active = true;
                    self.there.hold(admitted);
                }
                Poll::Ready(None) => {
                    front_is_gone = true;
                    break;
                }
                Poll::Pending => break,
            }
        }
        if phase == Phase::Serving {
            self.receive(cx);
        }
        loop {
            self.hand_on(cx);
            let next = self.there.due().into_iter().chain(self.back.due()).min();
            let Some(due) = next else {
                let over = front_is_gone || phase > Phase::Serving;
                return if over { Poll::Ready(()) } else { Poll::Pending };
            };
            if self.alarm.is_none() {
                self.alarm = self.relay.0.clock.alarm().ok();
            }
            let Some(alarm) = &mut self.alarm else {
                // Out of descriptors: without a timer there is no session.
                return Poll::Ready(());
            };
            if alarm.poll_at(cx, due).is_pending() {
                return Poll::Pending;
            }
        }
    }

    /// Whether nothing has passed for as long as may be.
    fn is_idle(&mut self, cx: &mut Context<'_>) -> bool {
        loop {
            let clock = &self.relay.0.clock;
            let idle_max = self.relay.0.limits.idle_max;
            let timer = self.idle.get_or_insert_with(|| {
                let clock = clock.clone();
                Box::pin(async move { clock.sleep(idle_max).await })
            });
            if timer.as_mut().poll(cx).is_pending() {
                return false;
            }
            self.idle = None;
            if !std::mem::take(&mut self.active) {
                return true;
            }
        }
    }

    /// Puts what the server has sent onto the link.
    fn receive(&mut self, cx: &mut Context<'_>) {
        let relay = self.relay.clone();
        let shared = &*relay.0;
        for _ in 0..BATCH_MAX {
            let bytes = match self.socket.poll_receive(cx) {
                Poll::Pending => return,
                Poll::Ready(Ok(datagram)) => datagram.bytes,
                Poll::Ready(Err(cause)) => {
                    // An answer to what was sent before: nobody took it.
                    self.refused(&cause);
                    continue;
                }
            };
            (self.active, self.is_unreachable) = (true, false);
            let now = shared.clock.now();
            self.eye.lock().see(now, Seen::Came(Side::Server, &bytes));
            let ledger = &shared.back;
            for (due, bytes) in arrivals(shared, &self.link, shape::Side::Back, now, bytes) {
                let fits = self.back.retained_bytes() < shared.limits.held_bytes_max;
                match lease(&shared.budget, bytes).filter(|_| fits) {
                    Some((bytes, lent)) => {
                        ledger.hold(bytes.len() as u64);
                        self.back.hold(Admitted { due, bytes, lent });
                    }
                    None => ledger.drop_one(Loss::NoRoom),
                }
            }
        }
        cx.waker().wake_by_ref();
    }

    /// Tells, once, that the server's host refuses what is sent to it.
    fn refused(&mut self, cause: &io::Error) {
        if cause.kind() == io::ErrorKind::ConnectionRefused && !self.is_unreachable {
            self.is_unreachable = true;
            let (client, server) = (self.client.peer, self.server.peer);
            (self.relay.0.events)(Event::NobodyListens { client, server });
        }
    }

    /// Sends what is due.
    fn hand_on(&mut self, cx: &mut Context<'_>) {
        let relay = self.relay.clone();
        let shared = &*relay.0;
        let now = shared.clock.now();
        while let Some((due, bytes)) = self.there.pop(now) {
            let len = bytes.len();
            self.there_bytes.fetch_sub(len + ENTRY_BYTES, Ordering::Relaxed);
            let mut sent = self.socket.poll_send(cx, &message(bytes.clone()), &self.server);
            if let Poll::Ready(Err(cause)) = &sent
                && cause.kind() == io::ErrorKind::ConnectionRefused
            {
                // That was the answer to an earlier one; this one has not been sent yet.
                self.refused(cause);
                sent = self.socket.poll_send(cx, &message(bytes.clone()), &self.server);
            }
            if settle(&shared.there, due, now, len, &sent) {
                self.eye.lock().see(now, Seen::Left(Side::Server, &bytes));
            }
        }
        while let Some((due, bytes)) = self.back.pop(now) {
            let len = bytes.len();
            if !self.may_get(len) {
                shared.back.lose(1, len as u64, Loss::Unproven);
                continue;
            }
            // Whoever waits for the socket would take its waker from those who share it.
            let mut nobody = Context::from_waker(Waker::noop());
            let sent =
                self.front.lock().poll_send(&mut nobody, &message(bytes.clone()), &self.client);
            if settle(&shared.back, due, now, len, &sent) {
                self.eye.lock().see(now, Seen::Left(Side::Client, &bytes));
            }
        }
    }

    /// Whether so many bytes may go to the client. The server cannot tell: to it all datagrams come
    /// from this host, which it may trust.
    fn may_get(&self, len: usize) -> bool {
        let host = self.client.peer.ip().to_canonical();
        if host.is_loopback() || self.relay.0.seats.holds(host) {
            return true;
        }
        let take = |allowed: usize| allowed.checked_sub(len);
        self.allowed_bytes.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_ok()
    }

    /// Counts what was not passed on.
    pub(super) async fn finish(&mut self) {
        self.there.rest_of(&mut self.queue).await;
        let ledgers = [&self.relay.0.there, &self.relay.0.back];
        for (ledger, holding) in ledgers.into_iter().zip([&self.there, &self.back]) {
            ledger.lose(holding.held.len() as u64, holding.bytes as u64, Loss::Ended);
        }
    }
}

/// Counts what has become of a datagram; true if it was sent.
fn settle(
    ledger: &Ledger,
    due: Instant,
    now: Instant,
    len: usize,
    sent: &Poll<io::Result<()>>,
) -> bool {
    match sent {
        Poll::Ready(Ok(())) => ledger.pass(due, now, len as u64),
        Poll::Ready(Err(cause)) if cause.kind() == io::ErrorKind::ConnectionRefused => {
            ledger.lose(1, len as u64, Loss::Unreachable);
        }
        Poll::Ready(Err(_)) | Poll::Pending => ledger.lose(1, len as u64, Loss::Unsent),
    }
    matches!(sent, Poll::Ready(Ok(())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serve::budget::Budget;

    #[test]
    fn the_end_of_a_session_waits_for_a_datagram_that_has_its_place_already() {
        let (sender, mut queue) = mpsc::channel(4);
        let lease = || lease(&Budget::new(1 << 20), Bytes::from_static(b"call")).unwrap();
        let admitted = || {
            let (bytes, lent) = lease();
            Admitted { due: Instant::EPOCH, bytes, lent }
        };
        sender.try_send(admitted()).unwrap_or_else(|_| panic!("there is room"));
        let place = sender.try_reserve().unwrap_or_else(|_| panic!("there is room"));
        let mut holding = Holding::default();
        {
            let mut cx = Context::from_waker(Waker::noop());
            let mut rest = std::pin::pin!(holding.rest_of(&mut queue));
            assert!(rest.as_mut().poll(&mut cx).is_pending());
            place.send(admitted());
            assert!(rest.as_mut().poll(&mut cx).is_ready());
        }
        assert_eq!((holding.held.len(), holding.bytes), (2, 8));
        assert_eq!(holding.retained_bytes(), 8 + 2 * ENTRY_BYTES);
        assert!(sender.is_closed());
    }
}
