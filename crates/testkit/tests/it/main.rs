//! Tests of production code in worlds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod datagrams;
mod files;
mod host;
mod mixture;
mod network;
mod throughput;
