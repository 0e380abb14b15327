//! Worlds are what they say: repeatable, and honest about what a crash leaves.

#![expect(clippy::unwrap_used, reason = "these are tests")]

mod crashes;
mod digest;
mod far;
mod predict;
mod probe;
mod simulate;
mod tape;
mod thesis;
mod traces;
mod verdicts;
mod whatif;
mod write_log;
