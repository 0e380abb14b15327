//! Open queueing: calls come at a rate that does not depend on how they are served.
//!
//! The parts of Martin & Culler 1999, section 4.1 ([`line::Line`], [`cache::Cache`]), and the model
//! of a file server that they put together from them ([`file_server::FileServer`]).

pub mod cache;
pub mod file_server;
pub mod line;
