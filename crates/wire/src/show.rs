//! How values appear in a line that people read.

use std::fmt::{Display, Write};

use crate::xdr::{DecodeError, List, Reader};

/// Characters after which a line is cut off.
pub const LINE_LEN_MAX: usize = 1000;

/// Bytes of a name or handle that are shown.
const OPAQUE_SHOWN_MAX: usize = 80;

/// A line that grows word by word up to [`LINE_LEN_MAX`].
#[derive(Debug)]
pub struct Line {
    text: String,
}

impl Line {
    pub(crate) fn new(first: &str) -> Self {
        Self { text: first.to_owned() }
    }

    /// Appends ` name=value`, or ` value` when the name is empty.
    pub fn field(&mut self, name: &'static str, value: impl Display) {
        match name {
            "" => self.word(value),
            _ => self.word(format_args!("{name}={value}")),
        }
    }

    /// Appends ` word`.
    pub fn word(&mut self, word: impl Display) {
        if self.text.len() <= LINE_LEN_MAX {
            write!(self.text, " {word}").expect("writing to a String cannot fail");
        }
    }

    /// Appends a payload as its length.
    pub fn payload(&mut self, name: &'static str, payload: &[u8]) {
        self.field(name, format_args!("[{} bytes]", payload.len()));
    }

    pub(crate) fn end(mut self, outcome: Result<(), DecodeError>, r: &Reader<'_>) -> String {
        match (outcome, r.rest().len()) {
            (Ok(()), 0) => {}
            (Ok(()), have) => self.word(format_args!("(+{have} bytes)")),
            (Err(error), _) => self.word(format_args!("(malformed: {error})")),
        }
        if self.text.len() > LINE_LEN_MAX {
            self.text = self.text.chars().take(LINE_LEN_MAX).collect();
            self.text.push_str("...");
        }
        self.text
    }
}

/// How a value appears in a line under the name its holder gives it.
pub trait Show {
    fn show(&self, name: &'static str, line: &mut Line);
}

macro_rules! show_by_display {
    ($($type:ty)*) => {
        $(impl Show for $type {
            fn show(&self, name: &'static str, line: &mut Line) {
                line.field(name, self);
            }
        })*
    };
}
show_by_display! { u32 u64 bool }

impl Show for () {
    fn show(&self, _name: &'static str, _line: &mut Line) {}
}

impl Show for &[u8] {
    fn show(&self, name: &'static str, line: &mut Line) {
        let shown = &self[..self.len().min(OPAQUE_SHOWN_MAX)];
        let dots = if shown.len() < self.len() { ".." } else { "" };
        line.field(name, format_args!("\"{}{dots}\"", shown.escape_ascii()));
    }
}

impl<const N: usize> Show for [u8; N] {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, Hex(self));
    }
}

impl<T: Show> Show for Option<T> {
    fn show(&self, name: &'static str, line: &mut Line) {
        if let Some(value) = self {
            value.show(name, line);
        }
    }
}

impl<T: Show> Show for Vec<T> {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, format_args!("[{}]", self.len()));
    }
}

impl<T: Show> Show for List<T> {
    fn show(&self, name: &'static str, line: &mut Line) {
        self.0.show(name, line);
    }
}

impl<T: Show, F: Show> Show for Result<T, F> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        match self {
            Ok(value) => {
                line.word("OK");
                value.show("", line);
            }
            Err(failure) => failure.show("", line),
        }
    }
}

/// Bytes as hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Hex<'a>(pub &'a [u8]);

impl Display for Hex<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
