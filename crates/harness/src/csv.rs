//! What `--csv` writes: comma-separated values (RFC 4180), with the names of the columns in the
//! first line.

use std::fmt;
use std::io::{self, Write};

use ::csv::{ErrorKind, Writer, WriterBuilder};
use serde::Serialize;

/// Rows are many: they are written in pieces of this size.
const BUFFER_BYTES: usize = 1 << 20;

/// Rows with a field for each column. [`Rows::end`] has the first failure.
pub struct Rows<W: Write> {
    out: Writer<W>,
    failed: Option<::csv::Error>,
}

impl<W: Write> Rows<W> {
    /// With a first row of `columns`, which are names with commas between them.
    pub fn new(out: W, columns: &str) -> Self {
        let mut builder = WriterBuilder::new();
        let out = builder.has_headers(false).buffer_capacity(BUFFER_BYTES).from_writer(out);
        let mut rows = Self { out, failed: None };
        rows.failed = rows.out.write_record(columns.split(',')).err();
        rows
    }

    /// Adds a row: a tuple, whose parts that are tuples or arrays are as many fields. `None` is an
    /// empty field.
    pub fn add(&mut self, row: impl Serialize) {
        if self.failed.is_none() {
            self.failed = self.out.serialize(row).err();
        }
    }

    /// # Errors
    /// The first thing that could not be written.
    pub fn end(mut self) -> io::Result<W> {
        if let Some(failed) = self.failed.take() {
            return Err(match failed.into_kind() {
                ErrorKind::Io(cause) => cause,
                kind => io::Error::other(format!("{kind:?}")),
            });
        }
        self.out.flush()?;
        self.out.into_inner().map_err(|error| io::Error::other(error.to_string()))
    }
}

impl<W: Write> fmt::Debug for Rows<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rows").field("failed", &self.failed).finish_non_exhaustive()
    }
}

/// All rows that `fill` adds, as a text.
pub fn text(columns: &str, fill: impl FnOnce(&mut Rows<Vec<u8>>)) -> String {
    let mut rows = Rows::new(Vec::new(), columns);
    fill(&mut rows);
    // Nothing fails to be written to memory.
    rows.end().ok().and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_with_a_comma_or_a_quote_is_quoted_and_what_is_not_known_is_empty() {
        let written = text("place,lo,hi,calls", |rows| {
            rows.add(("/mnt/nfs", ["1.0", "2.0"], Some(3)));
            rows.add(("/mnt/a,b \"c\"", ["1.0", "2.0"], None::<u32>));
        });
        assert_eq!(
            written,
            "place,lo,hi,calls\n/mnt/nfs,1.0,2.0,3\n\"/mnt/a,b \"\"c\"\"\",1.0,2.0,\n"
        );
        assert_eq!(text("a,b", |_| {}), "a,b\n");
    }

    #[test]
    fn what_cannot_be_written_is_reported_with_its_kind() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::BrokenPipe.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut rows = Rows::new(Gone, "a");
        rows.add(["1"]);
        assert_eq!(rows.end().err().map(|error| error.kind()), Some(io::ErrorKind::BrokenPipe));
    }
}
