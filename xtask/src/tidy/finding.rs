//! What is wrong, or grows, and what to do about it.

use std::fmt;

/// One thing that is wrong, or that grows.
#[derive(Debug, Eq, PartialEq)]
pub(crate) struct Finding {
    pub(super) path: String,
    /// Counted from 1; `None` when it is about the file as a whole.
    pub(super) line: Option<usize>,
    pub(super) what: String,
    /// What to do about it.
    pub(super) advice: String,
    pub(super) weight: Weight,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Weight {
    Error,
    Warning,
}

impl Finding {
    pub(super) fn at(
        path: &str,
        line: usize,
        what: impl Into<String>,
        advice: impl Into<String>,
    ) -> Self {
        Self { line: Some(line), ..Self::about(path, what, advice) }
    }

    pub(super) fn about(path: &str, what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self {
            path: path.to_owned(),
            line: None,
            what: what.into(),
            advice: advice.into(),
            weight: Weight::Error,
        }
    }

    pub(super) fn warning(self) -> Self {
        Self { weight: Weight::Warning, ..self }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let weight = match self.weight {
            Weight::Error => "error",
            Weight::Warning => "warning",
        };
        write!(f, "{weight}: {}", self.path)?;
        if let Some(line) = self.line {
            write!(f, ":{line}")?;
        }
        write!(f, ": {}\n    {}", self.what, self.advice)
    }
}
