//! The log as a whole, on a simulated disk.

#![expect(clippy::unwrap_used, reason = "what fails here fails a test")]

mod answered;
mod damage;
mod every_step;
mod lives;
mod power_cuts;
mod room;
mod seeds;
mod several;
mod simulated;
