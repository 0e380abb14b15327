//! What a command says on standard error.

use std::fmt::Display;
use std::io::Write;

use perf::printable::in_lines;

/// Writes to standard error, where somebody reads it or not. A terminal does not obey what is in
/// names that others have given: of an export, of a file.
pub fn complain(text: impl Display) {
    write!(std::io::stderr().lock(), "{}", in_lines(&text.to_string())).ok();
}

/// The same, as a line of ours.
pub fn say(text: impl Display) {
    complain(format_args!("nfskit: {text}\n"));
}
