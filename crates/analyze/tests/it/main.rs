//! Captures made by hand: what is found in them, however they are cut, packed and damaged.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod files;
mod frames;
mod hostile;
mod layers;
mod streams;
