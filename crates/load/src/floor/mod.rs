//! Floors and ceilings: what the network and the storage do without NFS, to stand beside what NFS
//! does on them.
//!
//! - [`stream`]: bytes one way, over TCP and UDP.
//! - [`rtt`]: round trips of messages, one at a time, and whole transfers.
//! - [`spray`]: calls sent at a rate, and how many are lost.
//! - [`storage`]: sequential writes, reads and syncs of a local directory, and small appends.
//!
//! Everything here blocks and may be stopped. What was measured before something failed stays:
//! see [`Outcome`].

pub mod rtt;
pub mod spray;
pub mod storage;
pub mod stream;

use perf::units::Nanos;

use crate::cpu::Usage;
use crate::error::Error;

/// What was measured, and what ended it before its end.
#[derive(Debug)]
pub struct Outcome<T> {
    pub measured: T,
    pub failed: Option<Error>,
}

/// Called with the share that is done, from 0 to 1.
pub type Progress<'a> = &'a mut (dyn FnMut(f64) + Send);

perf::named! {
    /// The two ways that bytes go.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Protocol {
        Tcp => "tcp",
        Udp => "udp",
    }
}

/// Processor time of this process, as a far end tells it.
pub fn process_cpu() -> Nanos {
    Usage::now().process
}

/// MiB (2^20 bytes) in each second.
pub fn mib_per_s(bytes: u64, span: Nanos) -> f64 {
    bytes as f64 / f64::from(1 << 20) / span.as_secs_f64()
}
