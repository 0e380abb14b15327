//! What a command says on standard error.

use std::fmt::Display;
use std::io::Write;

/// Writes to standard error, where somebody reads it or not.
pub fn complain(text: impl Display) {
    write!(std::io::stderr().lock(), "{text}").ok();
}

/// The same, as a line of ours.
pub fn say(text: impl Display) {
    complain(format_args!("nfskit: {text}\n"));
}
