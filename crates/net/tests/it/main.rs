//! What the crate promises over its public interface: over real sockets of the loopback, and in
//! virtual time.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

#[cfg(target_os = "linux")]
mod crowd;
mod host;
mod relay;
mod resetting;
mod shape;
mod stalled;
mod tcp;
mod udp;
