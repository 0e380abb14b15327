//! The commands, one file each: a few dozen lines of glue.

pub(crate) mod cache;
pub(crate) mod doctor;
pub(crate) mod generated;
pub(crate) mod link;
pub(crate) mod log;
pub(crate) mod mount;
pub(crate) mod serve;
pub(crate) mod stat;
pub(crate) mod top;
