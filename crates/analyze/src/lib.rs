//! Explains records: the report in HTML, and its summary for the terminal. Reads what others have
//! counted, and says what captures of the network show.

pub mod capture;
pub mod counters;
pub mod fuzzing;
pub mod report;
pub mod trace;
