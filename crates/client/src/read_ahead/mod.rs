//! Reading ahead of a sequential reader.
//!
//! [`streams`] decides which parts of a file are fetched before they are requested; [`budget`]
//! bounds what is held for readers that have not come yet, over all files of a mount, and
//! [`holders`] decides who gives way when there is no more room. The opens of [`crate::files`]
//! fetch.

pub mod budget;
pub mod holders;
pub mod streams;
