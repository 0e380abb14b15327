//! What went wrong: a test failed, or it could not be run.

use std::fmt;

use super::Test;
use super::place::{Kind, Refused, Stat};
use crate::error::Error;

/// A result that is not what it must be.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Failed {
    pub test: Test,
    /// What was done.
    pub step: String,
    pub expected: String,
    pub seen: String,
}

impl fmt::Display for Failed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { test, step, expected, seen } = self;
        write!(f, "test{}: {step}: expected {expected}, seen {seen}", test.number())
    }
}

/// Why a test did not come to its end.
#[derive(Debug)]
pub enum Ended {
    Failed(Failed),
    /// The file system has not got what is tested; the answer.
    Unsupported(String),
    /// The target or the environment failed.
    Broken {
        error: Error,
        /// It answers, all the same: what was made can be removed.
        is_alive: bool,
    },
    /// It was stopped.
    Stopped,
}

impl From<Refused> for Ended {
    fn from(refused: Refused) -> Self {
        Self::Broken { is_alive: refused.known.is_some(), error: refused.error }
    }
}

/// What must be true of a file; what is `None` may be anything.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Expect {
    pub(super) kind: Option<Kind>,
    pub(super) mode: Option<u32>,
    pub(super) links: Option<u64>,
    pub(super) size: Option<u64>,
    pub(super) fileid: Option<u64>,
    pub(super) modified: Option<(i64, u32)>,
}

impl Expect {
    const ANYTHING: Self =
        Self { kind: None, mode: None, links: None, size: None, fileid: None, modified: None };
    /// An empty file with one name.
    pub(super) const EMPTY: Self =
        Self { kind: Some(Kind::File), links: Some(1), size: Some(0), ..Self::ANYTHING };
    pub(super) const DIR: Self = Self { kind: Some(Kind::Dir), ..Self::ANYTHING };
    pub(super) const SYMLINK: Self = Self { kind: Some(Kind::Symlink), ..Self::ANYTHING };

    /// Everything that is known of it, but for its times.
    pub(super) fn all(stat: &Stat) -> Self {
        Self {
            kind: Some(stat.kind),
            mode: Some(stat.mode),
            links: Some(stat.links),
            size: Some(stat.size),
            fileid: Some(stat.fileid),
            modified: None,
        }
    }

    /// The first thing that differs: what was expected, and what is seen.
    pub(super) fn difference(&self, seen: &Stat) -> Option<(String, String)> {
        fn differ<T: PartialEq>(expected: Option<T>, seen: T) -> Option<(T, T)> {
            expected.filter(|expected| *expected != seen).map(|expected| (expected, seen))
        }
        let text = |what: &str, (expected, seen): (u64, u64)| {
            (format!("{what} {expected}"), format!("{what} {seen}"))
        };
        let mode = |(expected, seen): (u32, u32)| {
            (format!("mode {expected:04o}"), format!("mode {seen:04o}"))
        };
        let time = |(seconds, nanos): (i64, u32)| format!("mtime {seconds}.{nanos:09}");
        let modified = |(expected, seen)| (time(expected), time(seen));
        differ(self.kind, seen.kind)
            .map(|(expected, seen)| (expected.to_string(), seen.to_string()))
            .or_else(|| differ(self.mode, seen.mode).map(mode))
            .or_else(|| differ(self.links, seen.links).map(|both| text("links", both)))
            .or_else(|| differ(self.size, seen.size).map(|both| text("size", both)))
            .or_else(|| differ(self.fileid, seen.fileid).map(|both| text("fileid", both)))
            .or_else(|| differ(self.modified, seen.modified).map(modified))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_difference_is_named_on_both_sides() {
        let stat =
            Stat { kind: Kind::File, mode: 0o644, links: 1, size: 0, fileid: 7, modified: (5, 0) };
        assert_eq!(Expect::EMPTY.difference(&stat), None);
        let long = Stat { size: 5, ..stat };
        let differs = |expected: &str, seen: &str| Some((expected.to_owned(), seen.to_owned()));
        assert_eq!(Expect::EMPTY.difference(&long), differs("size 0", "size 5"));
        assert_eq!(Expect::DIR.difference(&stat), differs("a directory", "a file"));
        let mode = Expect { mode: Some(0o666), ..Expect::EMPTY };
        assert_eq!(mode.difference(&stat), differs("mode 0666", "mode 0644"));
        let other = Stat { fileid: 8, ..stat };
        assert_eq!(Expect::all(&stat).difference(&other), differs("fileid 7", "fileid 8"));
        let timed = Expect { modified: Some((4, 9)), ..Expect::all(&stat) };
        let difference = timed.difference(&stat);
        assert_eq!(difference, differs("mtime 4.000000009", "mtime 5.000000000"));
    }
}
