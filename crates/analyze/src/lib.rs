//! Explains records: the report in HTML, and its summary for the terminal; and what captures of
//! the network say.

pub mod capture;
pub mod report;
pub mod trace;
