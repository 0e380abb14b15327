//! Mixes that are written in files: a line for each operation, with its share in percent.
//!
//! ```text
//! # reading with some names
//! getattr 40
//! lookup  25.5%
//! read    34.5
//! ```
//!
//! With `SFS MIXFILE VERSION 2` as the first line it is a mix file of the SFS benchmarks, which
//! has the same lines. Operations that are not named have no share. Names are read in letters of
//! any case; empty lines, and what follows a `#`, are not read.

use client::url::Version;
use thiserror::Error;

use super::operation::Operation;

/// Lines of a mix, at most.
pub const LINES_MAX: usize = 10_000;

/// How far the sum may be from 100: shares that were rounded for printing are.
pub const SUM_TOLERANCE: f64 = 0.5;

/// What SFS writes in the first line, and a number.
pub const SFS_HEAD: &str = "SFS MIXFILE VERSION";

/// A mix that cannot be read. Lines and columns count from 1, columns in characters.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Unreadable {
    #[error("line {line}, column {column}: {wrong}")]
    At { line: usize, column: usize, wrong: Wrong },
    #[error("the shares add up to {sum:.2}, not to 100")]
    Sum { sum: f64 },
    #[error("there is no operation in it")]
    Empty,
}

/// What is wrong at a place.
#[derive(Clone, Debug, Error, PartialEq)]
pub enum Wrong {
    #[error("{found:?} is not an operation; known are {known}", known = known(None))]
    Unknown { found: String },
    #[error("{name} is obsolete: servers do nothing for it, and a mix has none of it")]
    Obsolete { name: &'static str },
    #[error("NFS version 2 has no {operation}; it has {known}", known = known(Some(Version::Two)))]
    Lacking { operation: Operation },
    #[error("{operation} has no share: a percentage is expected behind it")]
    NoShare { operation: String },
    #[error("{found:?} where a percentage is expected")]
    NotANumber { found: String },
    #[error("a share of {found}; it lies between 0 and 100")]
    OutOfRange { found: String },
    #[error("{operation} comes a second time; the first is in line {first}")]
    Twice { operation: Operation, first: usize },
    #[error("{found:?} behind the share, where nothing is expected")]
    Trailing { found: String },
    #[error("version {found:?} of SFS's mix files; version 2 is known")]
    SfsVersion { found: String },
    #[error("more than {LINES_MAX} lines")]
    TooLong,
}

fn known(version: Option<Version>) -> String {
    let is_in = |operation: &Operation| version.is_none_or(|version| operation.is_in(version));
    let names = Operation::ALL.into_iter().filter(is_in).map(Operation::name);
    names.collect::<Vec<_>>().join(", ")
}

/// Reads a mix for this version, or for any. The shares sum to 100 within [`SUM_TOLERANCE`].
///
/// # Errors
/// The first thing that is wrong.
pub fn read(text: &[u8], version: Option<Version>) -> Result<Vec<(Operation, f64)>, Unreadable> {
    let text = String::from_utf8_lossy(text);
    let mut shares: Vec<(Operation, f64, usize)> = Vec::new();
    let mut is_first = true;
    for (line, number) in text.lines().zip(1..) {
        let at = |column, wrong| Unreadable::At { line: number, column, wrong };
        if number > LINES_MAX {
            return Err(at(1, Wrong::TooLong));
        }
        let content = line.split('#').next().unwrap_or("");
        if content.trim().is_empty() {
            continue;
        }
        if std::mem::take(&mut is_first) && content.trim_start().starts_with(SFS_HEAD) {
            sfs_head(content).map_err(|(column, wrong)| at(column, wrong))?;
            continue;
        }
        let share = share(content, version).map_err(|(column, wrong)| at(column, wrong))?;
        let Some((operation, share)) = share else { continue };
        if let Some((.., first)) = shares.iter().find(|(other, ..)| *other == operation) {
            let column = words(content).next().map_or(1, |(column, _)| column);
            return Err(at(column, Wrong::Twice { operation, first: *first }));
        }
        shares.push((operation, share, number));
    }
    let sum: f64 = shares.iter().map(|(_, share, _)| share).sum();
    match sum {
        _ if shares.is_empty() => Err(Unreadable::Empty),
        sum if (sum - 100.0).abs() > SUM_TOLERANCE + 1e-9 => Err(Unreadable::Sum { sum }),
        _ => Ok(shares.into_iter().map(|(operation, share, _)| (operation, share)).collect()),
    }
}

fn sfs_head(content: &str) -> Result<(), (usize, Wrong)> {
    let mut words = words(content).skip(3);
    match words.next() {
        Some((_, "2")) => match words.next() {
            None => Ok(()),
            Some((column, found)) => Err((column, Wrong::Trailing { found: shown(found) })),
        },
        Some((column, found)) => Err((column, Wrong::SfsVersion { found: shown(found) })),
        None => Err((1, Wrong::SfsVersion { found: String::new() })),
    }
}

/// The operation and the share of one line; none for what is obsolete and has no share.
fn share(
    content: &str,
    version: Option<Version>,
) -> Result<Option<(Operation, f64)>, (usize, Wrong)> {
    let mut words = words(content);
    let Some((name_column, name)) = words.next() else { return Ok(None) };
    let obsolete = obsolete(name);
    let operation = match (obsolete, name.parse::<Operation>()) {
        (None, Err(_)) => return Err((name_column, Wrong::Unknown { found: shown(name) })),
        (Some(_), _) => None,
        (None, Ok(operation)) => Some(operation),
    };
    let Some((column, number)) = words.next() else {
        return Err((name_column, Wrong::NoShare { operation: shown(name) }));
    };
    let share = percentage(number).map_err(|wrong| (column, wrong))?;
    // `25 %` is as good as `25%`.
    let trailing = words.find(|(_, word)| *word != "%" || number.ends_with('%'));
    if let Some((column, found)) = trailing {
        return Err((column, Wrong::Trailing { found: shown(found) }));
    }
    match (operation, obsolete) {
        (None, Some(name)) if share > 0.0 => Err((name_column, Wrong::Obsolete { name })),
        (None, _) => Ok(None),
        (Some(operation), _) => match version {
            Some(version) if share > 0.0 && !operation.is_in(version) => {
                Err((name_column, Wrong::Lacking { operation }))
            }
            _ => Ok(Some((operation, share))),
        },
    }
}

/// The names of what version 2 has and nobody serves.
fn obsolete(name: &str) -> Option<&'static str> {
    let is = |known: &str| name.eq_ignore_ascii_case(known);
    match () {
        () if is("root") => Some("ROOT"),
        () if is("wrcache") || is("writecache") => Some("WRITECACHE"),
        () => None,
    }
}

fn percentage(text: &str) -> Result<f64, Wrong> {
    let number = text.strip_suffix('%').unwrap_or(text);
    let share: f64 = match number.parse() {
        Ok(share) if !f64::is_nan(share) => share,
        _ => return Err(Wrong::NotANumber { found: shown(text) }),
    };
    // What is a little over is found by the sum.
    match (0.0..=100.0 + SUM_TOLERANCE).contains(&share) {
        true => Ok(share.abs()),
        false => Err(Wrong::OutOfRange { found: shown(text) }),
    }
}

/// Words with their columns.
fn words(content: &str) -> impl Iterator<Item = (usize, &str)> {
    let column = |word: &str| {
        let begin = word.as_ptr().addr() - content.as_ptr().addr();
        content[..begin].chars().count() + 1
    };
    content.split_whitespace().map(move |word| (column(word), word))
}

/// As much of a word as a message needs.
fn shown(word: &str) -> String {
    word.chars().take(40).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn problem(text: &str) -> String {
        read(text.as_bytes(), Some(Version::Two)).unwrap_err().to_string()
    }

    #[test]
    fn a_mix_is_read_in_both_forms() {
        let ours = b"# mine\n\n getattr 40 # a comment\nLOOKUP 25.5%\nRead\t34.3 %\nroot 0\n";
        let expected =
            [(Operation::Getattr, 40.0), (Operation::Lookup, 25.5), (Operation::Read, 34.3)];
        assert_eq!(read(ours, None).unwrap(), expected);
        let sfs = b"SFS MIXFILE VERSION 2\n#\n# comment\nnull 0%\naccess 60%\ncommit 40%\n";
        let shares = read(sfs, Some(Version::Three)).unwrap();
        assert_eq!(shares[2], (Operation::Commit, 40.0));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        assert!(problem("read 50\nwrote 50").starts_with("line 2, column 1: \"wrote\" is not an"));
        assert_eq!(problem("  read x"), "line 1, column 8: \"x\" where a percentage is expected");
        assert_eq!(
            problem("read -5"),
            "line 1, column 6: a share of -5; it lies between 0 and 100"
        );
        assert!(problem("read inf").contains("column 6: a share of inf"));
        assert!(problem("read nan").contains("column 6: \"nan\" where"));
        assert!(problem("read 50\nread 50").contains("line 2, column 1: read comes a second time"));
        assert!(problem("read 50 50").contains("column 9: \"50\" behind the share"));
        assert!(problem("read").contains("read has no share"));
        assert!(problem("root 1").contains("ROOT is obsolete"));
        assert!(
            problem("\n access 1").starts_with("line 2, column 2: NFS version 2 has no access")
        );
        assert!(problem("SFS MIXFILE VERSION 3").contains("column 21: version \"3\""));
    }

    #[test]
    fn the_sum_is_a_hundred_within_rounding() {
        assert_eq!(problem("read 50\nwrite 47.2"), "the shares add up to 97.20, not to 100");
        assert!(read(b"read 50\nwrite 49.5", None).is_ok());
        assert!(read(b"read 50\nwrite 50.5", None).is_ok());
        assert!(read(b"read 50\nwrite 50.6", None).is_err());
        assert_eq!(problem("# nothing\n"), "there is no operation in it");
    }
}
