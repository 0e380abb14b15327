//! Explains records: the report in HTML, and its summary for the terminal.

pub mod report;
