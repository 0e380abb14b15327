//! Write-behind with a log, in worlds: an origin in memory that takes its time, and proxies that
//! are killed.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests")]

mod above;
mod beside;
mod callers;
mod conflicts;
mod crowd;
mod joined;
mod late;
mod lease;
mod links;
mod origin;
mod outage;
mod refused;
mod rights;
mod seeds;
mod stage;
mod steps;
mod times;
mod turns;
