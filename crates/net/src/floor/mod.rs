//! The network's floor: messages between two processes through the kernel's sockets, and nothing
//! else. What NFS can reach over a network lies above it.
//!
//! Sockets block here, each in a thread of its own, because that is the shortest way through the
//! kernel: one system call for a message and none to wait for it. So nothing of this runs in a
//! world; what decides ([`arrivals`], [`protocol`], `mark.rs`) is plain code.
//!
//! - [`far`]: the far end, a server with limits. Who speaks something else, or nothing, is left.
//! - [`near`]: the near end: streams; [`echo`] and `transfer.rs`: messages and transfers that are
//!   answered.
//! - [`rpc`]: NULL calls of any RPC program, one at a time.
//! - [`spray`]: calls sent at a rate, whether they are answered or not.
//! - [`protocol`]: what the two ends tell each other.
//! - [`arrivals`]: which datagrams came, which twice and which late.
//! - [`kernel_counts`]: what the kernel says became of the others.
//! - [`pace`]: exact waits of a thread.

pub mod arrivals;
pub mod echo;
pub mod error;
pub mod far;
mod far_datagrams;
pub mod kernel_counts;
mod lines;
mod mark;
pub mod near;
pub mod pace;
pub mod protocol;
pub mod rpc;
mod sockets;
pub mod spray;
mod spray_service;
mod transfer;

pub use self::sockets::pattern;

/// Smallest message: an RPC call without credential, arguments or results.
pub const MESSAGE_BYTES_MIN: usize = 40;
/// Largest datagram of IPv4 without its headers.
pub const DATAGRAM_BYTES_MAX: usize = 65_507;
