//! The binary as a user runs it: real processes, real sockets on the loopback, real signals.
//!
//! Nothing here sleeps. A program is waited for by what it prints, by the files it makes or by its
//! end, always with a deadline, and is killed when its test ends: see [`program`].

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod basic;
mod bench;
mod capture;
mod crash_test;
mod curve;
mod cycle;
mod doctor;
mod examples;
mod exits;
mod exports;
mod floors;
mod hostile;
mod idle;
mod interrupts;
mod lies;
mod link;
mod log_gains;
mod memory;
mod model;
mod mount;
mod nhfsstone;
mod observed;
mod papers;
mod pasted;
mod peer;
mod policies;
mod probe;
mod program;
mod proxy;
mod reach;
mod rpc;
mod serve;
mod served;
mod simulate;
mod stat;
mod storage;
mod study;
mod suite13;
mod targets;
mod tasks;
mod trace;
mod usage;
mod versions;
mod whatif;
mod write_log;
