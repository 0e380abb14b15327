//! Tables in text: each column is as wide as what is in it. For a terminal, or for a document.

use std::fmt::Write;

/// A table: its rows have a cell for each column.
#[derive(Clone, Debug)]
pub struct Table {
    columns: Vec<Column>,
    rows: Vec<Vec<String>>,
}

/// A column's name, and at which side its cells are aligned.
#[derive(Clone, Debug)]
pub struct Column {
    name: String,
    is_right: bool,
}

/// A column of words.
pub fn left(name: impl Into<String>) -> Column {
    Column { name: name.into(), is_right: false }
}

/// A column of numbers.
pub fn right(name: impl Into<String>) -> Column {
    Column { name: name.into(), is_right: true }
}

impl Table {
    pub fn new(columns: impl IntoIterator<Item = Column>) -> Self {
        Self { columns: columns.into_iter().collect(), rows: Vec::new() }
    }

    /// With these rows.
    pub fn of<S: Into<String>, R: IntoIterator<Item = S>>(
        columns: impl IntoIterator<Item = Column>,
        rows: impl IntoIterator<Item = R>,
    ) -> Self {
        let mut table = Self::new(columns);
        rows.into_iter().for_each(|row| table.row(row));
        table
    }

    /// Adds a row, from left to right; where cells are missing at its end, they are empty.
    pub fn row<S: Into<String>>(&mut self, cells: impl IntoIterator<Item = S>) {
        let mut row: Vec<String> = cells.into_iter().map(Into::into).collect();
        debug_assert!(row.len() <= self.columns.len(), "a cell without a column: {row:?}");
        row.resize(self.columns.len(), String::new());
        self.rows.push(row);
    }

    /// Lines for a terminal.
    pub fn text(&self) -> String {
        let widths: Vec<usize> = (0..self.columns.len()).map(|at| self.width(at)).collect();
        let mut text = String::new();
        let names: Vec<String> = self.columns.iter().map(|column| column.name.clone()).collect();
        for cells in std::iter::once(&names).chain(&self.rows) {
            let mut line = String::new();
            for ((cell, column), width) in cells.iter().zip(&self.columns).zip(&widths) {
                let gap = if line.is_empty() { "" } else { "  " };
                // Writing to a String does not fail.
                match column.is_right {
                    true => write!(line, "{gap}{cell:>width$}").ok(),
                    false => write!(line, "{gap}{cell:<width$}").ok(),
                };
            }
            text.push_str(line.trim_end());
            text.push('\n');
        }
        text
    }

    /// The same in Markdown.
    pub fn markdown(&self) -> String {
        let names: Vec<&str> = self.columns.iter().map(|column| column.name.as_str()).collect();
        let mut text = format!("| {} |\n|{}\n", names.join(" | "), "---|".repeat(names.len()));
        for row in &self.rows {
            text.push_str(&format!("| {} |\n", row.join(" | ")));
        }
        text
    }

    /// One of the two.
    pub fn shown(&self, in_markdown: bool) -> String {
        if in_markdown { self.markdown() } else { self.text() }
    }

    fn width(&self, at: usize) -> usize {
        let cells = self.rows.iter().map(|row| row[at].as_str());
        let all = cells.chain([self.columns[at].name.as_str()]);
        all.map(|cell| cell.chars().count()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_what_is_in_them() {
        let mut table = Table::new([left(""), right("calls"), left("what")]);
        table.row(["a long name", "7", "µs"]);
        table.row(["b", "123456"]);
        let text = "              calls  what\na long name       7  µs\nb            123456\n";
        assert_eq!(table.text(), text);
        let markdown = "|  | calls | what |\n|---|---|---|\n| a long name | 7 | µs |\n\
                        | b | 123456 |  |\n";
        assert_eq!(table.markdown(), markdown);
        assert_eq!(table.shown(true), markdown);
    }
}
