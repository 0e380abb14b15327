//! What a client remembers of files, and for how long: decisions without I/O.
//!
//! - [`attributes`]: attributes by handle, how long they are good, and whether somebody else has
//!   changed a file since; [`ours`] tells our own changes from those of others.
//! - [`names`]: which name leads to which handle, or to nothing.
//! - [`rights`]: what a caller may do, as the server answered (ACCESS).
//! - [`searchers`]: on whose behalf a directory's names were requested.
//! - [`singly`]: directories whose names are requested one by one, and are listed instead.
//! - [`state`]: a file's state, as a cache on a disk has it.
//!
//! Each has a stated maximum; when it is full, what was used longest ago is forgotten, which costs
//! a call and never an answer.

pub mod attributes;
pub mod moved;
pub mod names;
pub mod ours;
pub mod rights;
pub mod searchers;
pub mod singly;
pub mod state;
