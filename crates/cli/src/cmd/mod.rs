//! The commands, one file each: a few dozen lines of glue.

pub(crate) mod basic;
pub(crate) mod compare;
pub(crate) mod curve;
pub(crate) mod doctor;
pub(crate) mod floors;
pub(crate) mod fsx;
pub(crate) mod generated;
pub(crate) mod link;
pub(crate) mod mix;
pub(crate) mod model;
pub(crate) mod mount;
pub(crate) mod nhfsstone;
pub(crate) mod papers;
pub(crate) mod policies;
pub(crate) mod probe;
pub(crate) mod seqwrite;
pub(crate) mod serve;
pub(crate) mod study;
pub(crate) mod suite13;
pub(crate) mod tasks;
pub(crate) mod trace;
