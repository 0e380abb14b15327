//! A mounted NFS file system: the adapter between the kernel's FUSE and [`client::files`].
//!
//! - [`session`]: mounting, and the end of it.
//! - `abi`: the bytes that the kernel and we exchange; pure.
//! - `device`: /dev/fuse, and putting it into the tree of files.
//! - `dispatch`: reads requests, and answers at once what needs no waiting.
//! - `fs`: one method for each operation.
//! - `nodes`, `opens`: what the kernel holds of ours.
//! - `caller`, `again`: who asks, and who does so once more; `looked_up`: when an open began.
//! - [`question`]: whether a mount has a cache on a disk, and all of a file in it.
//! - `mounts`, `tuning`: what the system says of mounts, and how much it caches for one.

mod abi;
mod again;
mod attributes;
mod caller;
mod device;
mod dispatch;
pub mod errno;
mod fs;
mod inflight;
#[cfg(test)]
mod kernel_tests;
mod looked_up;
pub mod mounts;
mod nodes;
mod notify;
mod opens;
pub mod question;
pub mod session;
mod tuning;

pub use abi::init::KernelCache;
