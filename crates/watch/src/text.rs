//! Tables as text, for a terminal of any width, or a file.

use crate::table::{Kind, Table};

/// A table with its title, its rows and its notes.
pub fn table(table: &Table) -> String {
    let mut text = format!("{}\n", table.title);
    if !table.rows.is_empty() {
        write_rows(&mut text, table);
    }
    text.extend(table.notes.iter().map(|note| format!("  {note}\n")));
    text
}

/// Cells are written once, behind each other, and from there into their lines.
fn write_rows(text: &mut String, table: &Table) {
    let columns = table.columns.len();
    let mut cells = String::new();
    let mut ends = Vec::with_capacity((table.rows.len() + 1) * columns);
    for column in &table.columns {
        cells.push_str(column.name);
        ends.push(cells.len());
    }
    for row in &table.rows {
        for (at, column) in table.columns.iter().enumerate() {
            row.show(at, column.kind, &mut cells);
            ends.push(cells.len());
        }
    }
    let cell = |number: usize| {
        let begin = number.checked_sub(1).map_or(0, |before| ends[before]);
        &cells[begin..ends[number]]
    };
    let mut widths = vec![0; columns];
    for number in 0..ends.len() {
        let width = &mut widths[number % columns];
        *width = letters(cell(number)).max(*width);
    }
    for line in 0..=table.rows.len() {
        text.push(' ');
        for (at, column) in table.columns.iter().enumerate() {
            let cell = cell(line * columns + at);
            let blanks = widths[at].saturating_sub(letters(cell));
            let (before, after) = match column.kind {
                Kind::Name => (1, blanks),
                _ => (2 + blanks, 0),
            };
            text.extend(std::iter::repeat_n(' ', before));
            text.push_str(cell);
            text.extend(std::iter::repeat_n(' ', after));
        }
        text.truncate(text.trim_end_matches(' ').len());
        text.push('\n');
    }
}

/// Characters; numbers have no others than ASCII's.
fn letters(cell: &str) -> usize {
    if cell.is_ascii() { cell.len() } else { cell.chars().count() }
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
