//! Connections of hosts that the service has nothing for, which are not closed at once. Kernels
//! make such a one again without a pause, thousands of times a second for as long as somebody
//! waits for it, and their calls never come to a time limit.
//!
//! No byte of them is read. They are few, also of one host, so that who connects without number
//! gains nothing: what comes when all places are taken is closed.

use std::net::IpAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use perf::units::Nanos;

use crate::clock::Clock;
use crate::transport::tcp::Refused;

/// They fit the descriptors that are left beside connections; guess.
const HELD_MAX: usize = 32;

/// A mount has one or two; guess.
const HELD_OF_HOST_MAX: usize = 4;

/// How long one is held, and how long a host may wait that is named meanwhile; guess.
const HOLD: Nanos = Nanos::from_secs(10);

/// The hosts of those that are held, each as often as it has some.
#[derive(Clone, Debug, Default)]
pub(super) struct Held(Arc<Mutex<Vec<IpAddr>>>); // guards itself

impl Held {
    /// Closes it after a while, or now if there is no place.
    pub(super) fn hold(&self, refused: Refused, clock: &Clock) {
        let Some(place) = self.take(refused.host) else { return };
        let own = clock.clone();
        clock.spawn(async move {
            own.sleep(HOLD).await;
            drop((refused, place));
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

#[cfg(test)]
mod tests {
    use super::*;

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
