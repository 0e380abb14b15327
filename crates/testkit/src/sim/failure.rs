//! What was not as the reference has it.

use std::fmt;

/// What was not as the reference has it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failure {
    /// In which way: two failures with the same words are taken to be the same.
    pub way: String,
    /// What was expected and seen, where and when.
    pub what: String,
}

impl Failure {
    pub(crate) fn new(way: impl Into<String>, what: impl Into<String>) -> Self {
        Self { way: way.into(), what: what.into() }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.way, self.what)
    }
}
