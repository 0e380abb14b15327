//! The links: one in each direction for each client host, whatever comes from it.
//!
//! All connections and sockets of a host share its link, first in, first out. So what a client
//! sends over a new connection never passes what it sent over an older one, unless jitter, losses
//! or reordering have it so.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Weak};

use parking_lot::Mutex;
use perf::units::Instant;

use crate::shape::{self, Follower, Shape};

/// The links of all hosts from which something comes now: at most one for each connection and
/// source of datagrams.
#[derive(Debug, Default)]
pub(super) struct Links {
    /// Guards the list while a host is looked up.
    of_hosts: Mutex<HashMap<IpAddr, Weak<HostLink>>>,
}

/// Both directions of a host's link, for as long as something of the host is relayed.
#[derive(Debug)]
pub(super) struct HostLink {
    there: Mutex<OneWay>,
    back: Mutex<OneWay>,
}

/// One direction of a host's link; held while a message is decided about.
#[derive(Debug)]
pub(super) struct OneWay {
    pub(super) follower: Follower,
    /// When the last reset of a connection arrives: nothing of a younger one is there before it.
    pub(super) reset_at: Instant,
}

impl Links {
    /// The link of `host`: the one that its other connections have, if there are any.
    pub(super) fn of(&self, host: IpAddr, shape: &Shape) -> Arc<HostLink> {
        let mut of_hosts = self.of_hosts.lock();
        if let Some(link) = of_hosts.get(&host).and_then(Weak::upgrade) {
            return link;
        }
        of_hosts.retain(|_, link| link.strong_count() > 0);
        let link = Arc::new(HostLink::new(shape));
        of_hosts.insert(host, Arc::downgrade(&link));
        link
    }
}

impl HostLink {
    fn new(shape: &Shape) -> Self {
        let one_way =
            |side| Mutex::new(OneWay { follower: shape.follower(side), reset_at: Instant::EPOCH });
        Self { there: one_way(shape::Side::There), back: one_way(shape::Side::Back) }
    }

    pub(super) fn one_way(&self, side: shape::Side) -> &Mutex<OneWay> {
        match side {
            shape::Side::There => &self.there,
            shape::Side::Back => &self.back,
        }
    }
}
