//! Tests of production code in worlds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod close_to_open;
mod datagrams;
mod files;
mod host;
mod losses;
mod mixture;
mod network;
mod persistent;
mod throughput;
mod version2;
mod write_behind;
