//! Explains a path: `server_study` measures it in order, `probe` its parameters alone; `explain`
//! says where the time goes, with the formula and the simulation of `models` side by side; `model`
//! computes without measuring. `directory` is the study through a mount.

mod directory;
mod explain;
pub mod model;
mod models;
pub mod probe;
pub mod server_study;
