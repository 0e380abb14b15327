//! Tests of production code in worlds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod host;
mod network;
mod throughput;
