//! What is wrong in a text, and where.

use std::fmt;

use thiserror::Error;

/// The first thing that is wrong. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
#[error("line {line}, column {column}: {wrong}")]
pub struct Problem {
    pub line: usize,
    pub column: usize,
    pub wrong: Wrong,
}

/// What it is.
#[derive(Clone, Debug, Eq, Error, PartialEq)]
pub enum Wrong {
    #[error("{found} where {expected} is expected")]
    Unexpected { expected: &'static str, found: Found },
    #[error("{what} has {found} numbers; at least {expected} are expected")]
    TooFew { what: String, expected: usize, found: usize },
    #[error("{what} comes a second time")]
    Twice { what: String },
    #[error("more than {max} {what}")]
    TooMany { what: &'static str, max: usize },
    #[error("the text ends within this line")]
    CutOff,
    #[error("there are no NFS counters in it")]
    Nothing,
}

/// A word of the text, or that there is none.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Found {
    Word(String),
    End,
}

/// Characters of a word that a message shows.
const SHOWN_MAX: usize = 40;

impl Found {
    pub(super) fn word(word: &str) -> Self {
        Self::Word(word.chars().take(SHOWN_MAX).collect())
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Word(word) => write!(f, "{word:?}"),
            Self::End => f.write_str("the line's end"),
        }
    }
}
