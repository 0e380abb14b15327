//! The transaction cycle under other conditions: without a network, with few daemons, over several
//! servers, on striped disks, in datagrams that get lost. And the model that it replaced.
//!
//! All build on [`super::transaction`]; what they add is in docs/models.md, section 13.

pub mod cascade;
pub mod daemons;
pub mod datagram;
pub mod interim;
pub mod loopback;
pub mod raid;

/// Mbit/s (10^6 bits a second), the unit of the thesis, of so many bytes in so many us.
pub fn mbit_per_s(bytes: f64, us: f64) -> f64 {
    bytes * 8.0 / us
}
