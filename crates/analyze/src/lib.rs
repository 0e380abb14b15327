//! Explains records: the report in HTML.
