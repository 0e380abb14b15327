//! The simplest file system that is plainly right, for production code to be compared with.
//!
//! - [`tree`]: names, as a map from paths to what is there, and what each operation does to it.
//! - [`content`]: the bytes of a file, those that are stable and those that may be lost.
//! - [`register`]: what readers may see of a value that many write.
//! - [`shared`]: what whoever opens a file that somebody else writes must see.
//!
//! An operation has a *set* of outcomes that may be seen. Without faults it has one member. Which
//! faults add which members is one table, [`tree::Doubt`].

pub mod content;
pub mod register;
pub mod shared;
pub mod tree;
