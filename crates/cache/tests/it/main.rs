//! The cache as its users have it, in memory and in folders, and what breaks it.

#![allow(clippy::unwrap_used, reason = "a test may fail")]
#![allow(clippy::cast_possible_truncation, reason = "sizes and bytes of tests are small")]

mod crash;
mod damage;
mod folders;
mod limits;
mod using;
