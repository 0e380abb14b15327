//! NFS server engine and stores; no sockets, no clock.
//!
//! - [`engine`]: one call in, one reply out. `proc3` has one file for each procedure of NFS v3.
//! - [`export`]: what is exported, and file handles. `mountd`, `portmap`: how it is found.
//! - [`store`]: where files are kept: a directory, memory.
//! - [`types`], [`durable`]: what engine and stores say to each other.

pub mod durable;
pub mod engine;
pub mod export;
pub mod store;
pub mod types;

mod mountd;
mod portmap;
mod proc3;
mod status;
