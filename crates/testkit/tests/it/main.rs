//! Tests of production code in worlds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod network;
mod throughput;
