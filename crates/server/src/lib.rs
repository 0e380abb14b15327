//! NFS server engine and stores; no sockets, no clock.

pub mod durable;
pub mod store;
pub mod types;
