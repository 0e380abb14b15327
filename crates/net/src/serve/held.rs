//! Hosts that the service has nothing for. A mount of theirs is to fail at once and not by its own
//! limit, so that they get a refusal ([`Service::refuse`]), and their connections are not closed at
//! once: kernels make such a one again without a pause, thousands of times a second.
//!
//! They are few, also of one host, so that who connects without number gains nothing: what comes
//! when all places are taken is closed. Of each a few calls are answered, one after the other, and
//! of datagrams a few in a second.

use std::future::pending;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::Arc;

use parking_lot::Mutex;
use perf::units::{Instant, Nanos};

use super::{Carrier, Peer, Service};
use crate::clock::Clock;
use crate::transport::tcp::Refused;

/// They fit the descriptors that are left beside connections; guess.
const HELD_MAX: usize = 48;

/// mount(8) and `nfskit doctor` make ten within a second, since they try versions; guess.
const HELD_OF_HOST_MAX: usize = 16;

/// How long one is held; guess.
const HOLD: Nanos = Nanos::from_secs(10);

/// How long one has its place although its peer has closed it, so that who makes one after the
/// other gets no more answers than others.
const HOLD_CLOSED: Nanos = Nanos::from_secs(1);

/// Datagrams of strangers that one socket answers in a second; guess: more than mounts there are.
const ANSWERED_PER_SECOND_MAX: u32 = 64;

/// The hosts of those that are held, each as often as it has some.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Arc<Mutex<Vec<IpAddr>>>); // guards itself

impl Held {
    /// Refuses its calls and closes it after a while, or closes it now if there is no place.
    pub(super) fn hold(&self, mut refused: Refused, clock: &Clock, service: impl Service + Sync) {
        let Some(place) = self.take(refused.peer().ip()) else { return };
        let own = clock.clone();
        clock.spawn(async move {
            let began = own.now();
            let peer = Peer {
                address: refused.peer(),
                carrier: Carrier::Stream,
                is_proven: true,
                local: refused.local(),
                owner: None,
            };
            // Who is named meanwhile comes again, when its connection is closed.
            let is_stranger = || !service.is_for(peer.address.ip());
            let refuse = |call: &[u8]| service.refuse(&peer, call).filter(|_| is_stranger());
            let answer = async {
                if refused.answer(refuse).await.is_ok() && is_stranger() {
                    // What else comes is not read.
                    pending::<()>().await;
                }
            };
            own.within(HOLD, pin!(answer)).await.ok();
            drop(refused);
            own.sleep(HOLD_CLOSED.saturating_sub(own.now().since(began))).await;
            drop(place);
        });
    }

    fn take(&self, host: IpAddr) -> Option<Place> {
        let mut hosts = self.0.lock();
        let of_host = hosts.iter().filter(|&&held| held == host).count();
        (hosts.len() < HELD_MAX && of_host < HELD_OF_HOST_MAX).then(|| {
            hosts.push(host);
            Place { held: self.clone(), host }
        })
    }
}

/// Given back when this is dropped.
#[derive(Debug)]
struct Place {
    held: Held,
    host: IpAddr,
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut hosts = self.held.0.lock();
        if let Some(at) = hosts.iter().position(|&held| held == self.host) {
            hosts.swap_remove(at);
        }
    }
}

/// How many datagrams of strangers have been answered lately.
#[derive(Debug, Default)]
pub(super) struct Answered {
    since: Option<Instant>,
    count: u32,
}

impl Answered {
    /// Whether one more may be.
    pub(super) fn one_more(&mut self, now: Instant) -> bool {
        let is_over = |since: Instant| now.since(since) >= Nanos::from_secs(1);
        if self.since.is_none_or(is_over) {
            *self = Self { since: Some(now), count: 0 };
        }
        self.count += 1;
        self.count <= ANSWERED_PER_SECOND_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_datagrams_so_many_are_answered_in_a_second() {
        let (mut answered, at) =
            (Answered::default(), |ms| Instant::EPOCH + Nanos::from_millis(ms));
        let mut count = |ms| (0..1000).filter(|_| answered.one_more(at(ms))).count();
        let max = ANSWERED_PER_SECOND_MAX as usize;
        assert_eq!([count(5), count(1004), count(1005), count(1006)], [max, 0, max, 0]);
    }

    #[test]
    fn a_host_has_few_places_and_all_have_not_many() {
        let (held, host) = (Held::default(), |number: u8| IpAddr::from([10, 0, 0, number]));
        let own: Vec<_> = (0..=HELD_OF_HOST_MAX).map(|_| held.take(host(1))).collect();
        assert_eq!(own.iter().flatten().count(), HELD_OF_HOST_MAX);
        let mut others = Vec::new();
        for number in 2..100 {
            others.extend(held.take(host(number)));
        }
        assert_eq!(others.len(), HELD_MAX - HELD_OF_HOST_MAX);
        drop(own);
        assert!(held.take(host(1)).is_some(), "a place comes back");
    }
}
