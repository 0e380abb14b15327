//! Tests of production code in worlds.

mod network;
mod throughput;
