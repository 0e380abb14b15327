//! Closed queueing networks: a fixed number of callers, each of which thinks, calls, and waits for
//! its reply before it thinks again.
//!
//! Real clients are closed: a server that is slow gets fewer calls. [`network`] says what a network
//! is, [`exact`] and [`approximate`] solve it, [`bounds`] need no solution, [`closed_server`] is
//! the file server of the open model with its callers.
//!
//! Source: Lazowska, Zahorjan, Graham, Sevcik 1984, *Quantitative System Performance*, chapters 5
//! to 8; Reiser and Lavenberg 1980 for the mean value analysis.

pub mod approximate;
pub mod bounds;
pub mod closed_server;
pub mod exact;
pub mod network;

#[cfg(test)]
mod chain;
