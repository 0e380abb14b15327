//! What was wrong with a link that was requested.

use thiserror::Error;

use super::names::KEYS;
use super::names::NAMES;
use crate::shape::conditions::Impossible;

/// What is wrong, and in which line of which file if it came from one.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct ProfileError {
    pub file: Option<String>,
    pub line: Option<usize>,
    pub cause: Cause,
}

#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Cause {
    #[error(
        "unknown link profile {name:?}; known are {known}, LATENCY/RATE such as 1ms/1g or \
         50us/100m, and a file NAME.toml; each may be changed: NAME,KEY=VALUE,...",
        known = NAMES.join(", ")
    )]
    Unknown { name: String },
    #[error("{text:?} is no LATENCY/RATE such as 1ms/1g or 50us/100m: {why}")]
    Numbers { text: String, why: String },
    #[error("unknown key {key:?}; known are {known}, and there.KEY and back.KEY for one direction",
            known = KEYS.join(", "))]
    UnknownKey { key: String },
    #[error("{key} is of the endpoint and not of a direction: without there. and back.")]
    OfTheEndpoint { key: String },
    #[error("{key} is given twice")]
    Twice { key: String },
    #[error("{got:?} is not KEY=VALUE, such as L=5ms")]
    NoValue { got: String },
    #[error("{key}={got}: {why}")]
    Value { key: String, got: String, why: String },
    #[error("{place}{key}: {got} is impossible; possible is {possible}",
            key = .what.key, got = .what.got, possible = .what.possible)]
    Impossible { place: &'static str, what: Impossible },
    #[error("cannot be read: {why}")]
    Unreadable { why: String },
    #[error("{why}")]
    Toml { why: String },
}

impl ProfileError {
    pub(super) fn of(cause: Cause) -> Self {
        Self { file: None, line: None, cause }
    }

    pub(super) fn at(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    pub(super) fn within(mut self, file: &str) -> Self {
        self.file = Some(file.to_owned());
        self
    }
}

impl std::error::Error for ProfileError {}

impl std::fmt::Display for ProfileError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (&self.file, self.line) {
            (Some(file), Some(line)) => write!(f, "{file}, line {line}: ")?,
            (Some(file), None) => write!(f, "{file}: ")?,
            (None, _) => {}
        }
        self.cause.fmt(f)
    }
}
