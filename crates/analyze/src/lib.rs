//! Explains records: the report in HTML, and its summary for the terminal. Reads what others have
//! counted.

pub mod counters;
pub mod report;
