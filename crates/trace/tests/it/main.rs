//! Captures made by hand: what is found in them, however they are cut, packed and damaged.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod compounds;
mod copies;
mod endings;
mod files;
mod frames;
mod gaps;
mod hangs;
mod hostile;
mod layers;
mod network;
mod round_trips;
mod scopes;
mod security;
mod streams;
mod verdicts;
mod waits;
