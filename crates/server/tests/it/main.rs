//! The engine through encoded RPC messages, over a memory store.

#![expect(clippy::result_large_err, reason = "replies are taken apart where they come")]
#![expect(clippy::unwrap_used, reason = "these are tests")]

mod commits;
mod data;
mod exports;
mod held;
mod listing;
mod malformed;
mod metrics;
mod mount;
mod names;
mod nfs2;
mod permissions;
mod prometheus;
mod properties;
mod read_only;
mod recorded_replies;
mod reference;
mod replies;
mod rpc;
mod sim;
mod threads;
mod unproven;
mod world;
