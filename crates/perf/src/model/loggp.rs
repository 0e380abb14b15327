//! LogGP: what a message costs on its way (Martin & Culler 1999, section 2).
//!
//! The same value predicts (in the models) and delays (in `net::shape`), so that what is
//! explained and what is injected cannot drift apart.
//!
//! ```text
//!  submitted      starts         departs (link free)          arrives
//!      |--- wait ---|---- bytes x G ----|-------- L --------------|
//!                                       |-- g --| earliest next start
//! ```
//!
//! The overhead o is not part of a link: it is processor time, spent in the endpoints.

use crate::units::{Instant, Nanos};

/// One direction of a link.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Link {
    /// L: time from a message's last byte leaving to its arrival.
    pub latency: Nanos,
    /// g: pause between two messages, counted from the last byte of the first.
    pub gap: Nanos,
    /// G: time per byte, in picoseconds (1 Gbit/s is 8,000).
    pub gap_per_byte_ps: u64,
}

/// When one message leaves and arrives.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Passage {
    /// The last byte has left; the link is busy until here.
    pub departs: Instant,
    /// The whole message is at the far end.
    pub arrives: Instant,
}

impl Link {
    /// Time to put `bytes` onto the link (T_ser of the transaction cycle).
    pub fn serialization(&self, bytes: u64) -> Nanos {
        let picoseconds = u128::from(bytes) * u128::from(self.gap_per_byte_ps);
        Nanos::from_nanos(u64::try_from(picoseconds / 1_000).unwrap_or(u64::MAX))
    }

    /// Most bytes per second the link can carry; infinite without a G.
    pub fn bytes_per_sec(&self) -> f64 {
        match self.gap_per_byte_ps {
            0 => f64::INFINITY,
            ps => 1e12 / ps as f64,
        }
    }

    /// True when messages pass as if there were no link.
    pub fn is_transparent(&self) -> bool {
        *self == Self::default()
    }
}

/// The state of one direction of a link: until when it is busy.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occupancy {
    free_at: Instant,
}

impl Occupancy {
    /// Until when what was admitted keeps the link busy, its gap included.
    pub fn free_at(&self) -> Instant {
        self.free_at
    }

    /// Puts a message of `bytes`, submitted at `now`, onto the link behind those before it.
    pub fn admit(&mut self, link: &Link, now: Instant, bytes: u64) -> Passage {
        let departs = now.max(self.free_at) + link.serialization(bytes);
        debug_assert!(departs >= now && departs >= self.free_at, "one message after the other");
        self.free_at = departs + link.gap;
        Passage { departs, arrives: departs + link.latency }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIGABIT: Link =
        Link { latency: Nanos::from_micros(100), gap: Nanos::ZERO, gap_per_byte_ps: 8_000 };

    #[test]
    fn a_block_of_8_kib_takes_65_536_ns_on_a_gigabit() {
        assert_eq!(GIGABIT.serialization(8192), Nanos::from_nanos(65_536));
        assert_eq!(GIGABIT.bytes_per_sec(), 125e6);
    }

    #[test]
    fn messages_queue_for_the_bandwidth_and_overlap_in_the_latency() {
        let mut link = Occupancy::default();
        let first = link.admit(&GIGABIT, Instant::EPOCH, 8192);
        let second = link.admit(&GIGABIT, Instant::EPOCH, 8192);
        assert_eq!(first.arrives.as_nanos(), 165_536);
        assert_eq!(second.arrives.as_nanos(), 165_536 + 65_536);
        let later = link.admit(&GIGABIT, Instant::from_nanos(1_000_000), 1000);
        assert_eq!(later.departs.as_nanos(), 1_008_000);
    }

    #[test]
    fn the_gap_separates_messages_but_delays_none_that_comes_alone() {
        let slow = Link { gap: Nanos::from_micros(10), ..Link::default() };
        let mut link = Occupancy::default();
        assert_eq!(link.admit(&slow, Instant::EPOCH, 100).arrives, Instant::EPOCH);
        assert_eq!(link.admit(&slow, Instant::EPOCH, 100).arrives.as_nanos(), 10_000);
    }
}
