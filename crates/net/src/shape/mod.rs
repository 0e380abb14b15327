//! Links that are emulated around real transports, and in worlds around those of worlds.
//!
//! A message to send waits here until the link would have delivered it, then goes to the transport
//! below; a message from below waits here in the same way before it is passed up. So either end
//! may be wrapped, and the other need not know.
//!
//! - [`conditions`]: what a direction is like; [`profile`]: both, with a name, from text or a file.
//! - [`lane`]: decides what becomes of each message. When it leaves and arrives is decided by
//!   [`perf::model::loggp`], the type that also predicts.
//! - [`Shape`]: the conditions as they are now, and what was counted; they may be replaced.
//! - [`Direction`]: a lane and what it holds, for transports and for relays.
//! - [`Shaped`] and [`ShapedDatagrams`]: around a connection, and around a socket of datagrams.
//! - [`Busy`] and [`BusyDatagrams`]: o, which is no part of a link: processor time of an endpoint.
//! - [`calibration`]: what this machine can do of it.
//!
//! The link adds its delays to those of the transport below, which it cannot remove: what a
//! loopback connection costs by itself is measured, not hidden. Bytes are those of the RPC record
//! with its mark; headers of IP, UDP and TCP are added where there is an MTU, Ethernet's are not.

mod around;
pub mod calibration;
pub mod conditions;
mod controls;
mod datagrams;
mod direction;
mod held;
pub mod lane;
mod overhead;
pub mod profile;
mod stream;
mod tally;

use perf::model::loggp::Link;

pub use self::conditions::{Conditions, Overhead};
pub use self::controls::{Follower, Shape, Side};
pub use self::datagrams::ShapedDatagrams;
pub use self::direction::{Damage, Direction};
pub use self::held::{HELD_TOGETHER_BYTES_MAX, Held};
pub use self::overhead::{Busy, BusyDatagrams};
pub use self::stream::Shaped;
pub use self::tally::{Counts, Tally};

/// L, g and G of both directions: what most links are requested.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LinkPair {
    /// From the wrapped end to its peer.
    pub there: Link,
    pub back: Link,
}

impl LinkPair {
    pub fn symmetric(link: Link) -> Self {
        Self { there: link, back: link }
    }
}
