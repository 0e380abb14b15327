//! Tables as text, for a terminal of any width, or a file.

use std::fmt::Write;

use crate::table::{Kind, Table};

/// A table with its title, its rows and what is to be said besides.
pub fn table(table: &Table) -> String {
    let mut text = format!("{}\n", table.title);
    if !table.rows.is_empty() {
        write_rows(&mut text, table);
    }
    for note in &table.notes {
        writeln!(text, "  {note}").expect("a String takes everything");
    }
    text
}

fn write_rows(text: &mut String, table: &Table) {
    let shown: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| {
            let columns = table.columns.iter().enumerate();
            columns.map(|(at, column)| row.shown(at, column.kind)).collect()
        })
        .collect();
    let widths: Vec<usize> = table
        .columns
        .iter()
        .enumerate()
        .map(|(at, column)| {
            let cells = shown.iter().map(|row| row[at].chars().count());
            cells.chain([column.name.len()]).max().unwrap_or(0)
        })
        .collect();
    let heads: Vec<String> = table.columns.iter().map(|column| column.name.to_owned()).collect();
    for row in std::iter::once(&heads).chain(&shown) {
        let mut line = String::from(" ");
        for (at, cell) in row.iter().enumerate() {
            let blanks = widths[at].saturating_sub(cell.chars().count());
            let (before, after) = match table.columns[at].kind {
                Kind::Name => (1, blanks),
                _ => (2 + blanks, 0),
            };
            line.extend(std::iter::repeat_n(' ', before));
            line.push_str(cell);
            line.extend(std::iter::repeat_n(' ', after));
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::table::Row;

    #[test]
    fn names_stand_left_and_numbers_right() {
        let mut one = Table::new("title", &[("name", Kind::Name), ("calls/s", Kind::Number)]);
        let row = |name: &str, cell| Row { name: name.into(), cells: vec![cell], ..Row::default() };
        one.rows = vec![row("a", Some(12_345.0)), row("longer", None)];
        one.notes.push("a note".to_owned());
        let expected = "title\n  name    calls/s\n  a         12.3k\n  longer        -\n  a note\n";
        assert_eq!(table(&one), expected);
        one.rows.clear();
        assert_eq!(table(&one), "title\n  a note\n");
    }
}
