//! NFS version 2 over a memory store and over a directory.

mod cookies;
mod data;
mod hostile;
mod names;
mod random;
pub(crate) mod replies;
mod world;
