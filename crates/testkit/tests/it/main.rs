//! Tests of production code in worlds.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]
#![expect(clippy::result_large_err, reason = "replies are made where they are sent")]

mod basic;
mod close_to_open;
mod crash;
mod curve;
mod datagrams;
mod files;
mod first;
mod floor;
mod greedy;
mod host;
mod hostile;
mod idle_readers;
mod leaving;
mod losses;
mod making;
mod mix;
mod mixture;
mod network;
mod nhfsstone;
mod on_disk;
mod on_disk_names;
mod operations;
mod persistent;
mod proxy;
mod read_ahead;
mod recover;
mod restarts;
mod searching;
mod simulation;
mod throughput;
mod version2;
mod write_behind;
