//! JSON that a person reads: indented, and a list of numbers on one line.

/// Indents objects and leaves everything within a list on one line: a series has thousands of
/// values, and a line for each would bury the rest.
#[derive(Default)]
pub(super) struct ListsOnOneLine {
    indent: usize,
    lists: usize,
    empty: bool,
}

impl ListsOnOneLine {
    fn separate<W: ?Sized + std::io::Write>(
        &self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        match (self.lists > 0, first) {
            (true, true) => Ok(()),
            (true, false) => out.write_all(b", "),
            (false, first) => {
                out.write_all(if first { b"\n" } else { b",\n" })?;
                write!(out, "{:width$}", "", width = 2 * self.indent)
            }
        }
    }
}

impl serde_json::ser::Formatter for ListsOnOneLine {
    fn begin_array<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.lists += 1;
        out.write_all(b"[")
    }

    fn end_array<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.lists -= 1;
        out.write_all(b"]")
    }

    fn begin_array_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.separate(out, first)
    }

    fn begin_object<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.indent += 1;
        self.empty = true;
        out.write_all(b"{")
    }

    fn end_object<W: ?Sized + std::io::Write>(&mut self, out: &mut W) -> std::io::Result<()> {
        self.indent -= 1;
        if !self.empty && self.lists == 0 {
            write!(out, "\n{:width$}", "", width = 2 * self.indent)?;
        }
        self.empty = false;
        out.write_all(b"}")
    }

    fn begin_object_key<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
        first: bool,
    ) -> std::io::Result<()> {
        self.empty = false;
        self.separate(out, first)
    }

    fn begin_object_value<W: ?Sized + std::io::Write>(
        &mut self,
        out: &mut W,
    ) -> std::io::Result<()> {
        out.write_all(b": ")
    }
}
