//! Who looks at what passes: a capture.

use std::net::SocketAddr;
use std::sync::Arc;

use bytes::Bytes;
use perf::units::Instant;

use super::state::Side;
use crate::serve::Carrier;

/// One end of the relay as the network sees it: a peer, and the address of ours that it talks to.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Leg {
    pub peer: SocketAddr,
    pub own: SocketAddr,
}

/// A connection, or a source of datagrams, that begins.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Opened {
    pub carrier: Carrier,
    pub client: Leg,
    pub server: Leg,
}

/// Something that passed, or ended.
#[derive(Clone, Copy, Debug)]
pub enum Seen<'a> {
    /// A record or datagram has come from that side.
    Came(Side, &'a Bytes),
    /// It has been given to that side.
    Left(Side, &'a Bytes),
    /// That side sends nothing more.
    CameEnd(Side),
    /// That side is sent nothing more.
    LeftEnd(Side),
}

/// Looks at one connection or source of datagrams. It must not wait.
pub trait Watcher: Send {
    fn see(&mut self, at: Instant, seen: Seen<'_>);
}

/// Makes a watcher for whatever begins; none when it looks no more.
pub type Tap = Arc<dyn Fn(Instant, &Opened) -> Option<Box<dyn Watcher>> + Send + Sync>;

/// The watcher of one connection, if there is one.
pub(super) struct Eye(Option<Box<dyn Watcher>>);

impl Eye {
    pub(super) fn open(tap: Option<&Tap>, at: Instant, opened: impl FnOnce() -> Opened) -> Self {
        Self(tap.and_then(|tap| tap(at, &opened())))
    }

    pub(super) fn see(&mut self, at: Instant, seen: Seen<'_>) {
        if let Some(watcher) = &mut self.0 {
            watcher.see(at, seen);
        }
    }
}
