//! Rows of numbers with units, and what lies below a row.

/// A table: its rows have a cell for each column, the first of which is their name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// What is to be said besides, a line each.
    pub notes: Vec<String>,
}

/// One column.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Column {
    pub name: &'static str,
    pub kind: Kind,
}

/// What the numbers of a column are.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Name,
    /// A number of anything, with a suffix of 1000s where it is large.
    Number,
    /// Milliseconds.
    Ms,
    /// A part of one.
    Share,
}

/// One row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Row {
    pub name: String,
    /// Behind the name.
    pub cells: Vec<Option<f64>>,
    /// What its history shows: calls a second, and what a call takes.
    pub calls_per_s: Option<f64>,
    pub ms: Option<f64>,
    /// Where the time of a call goes, in milliseconds.
    pub parts: Vec<(String, f64)>,
    /// Of all the others: it stays at the top.
    pub is_sum: bool,
    pub below: Option<Box<Table>>,
}

impl Table {
    pub fn new(title: impl Into<String>, columns: &[(&'static str, Kind)]) -> Self {
        let columns = columns.iter().map(|(name, kind)| Column { name, kind: *kind });
        Self { title: title.into(), columns: columns.collect(), ..Self::default() }
    }
}

impl Row {
    /// A cell as it is shown; `-` is not known.
    pub fn shown(&self, column: usize, kind: Kind) -> String {
        match column.checked_sub(1) {
            None => self.name.clone(),
            Some(at) => show(self.cells.get(at).copied().flatten(), kind),
        }
    }
}

/// A name from elsewhere, without what a terminal would obey.
pub fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A number in at most seven characters.
pub fn show(value: Option<f64>, kind: Kind) -> String {
    let Some(value) = value.filter(|value| value.is_finite()) else { return "-".to_owned() };
    match kind {
        Kind::Share => format!("{:.0} %", value * 100.0),
        Kind::Ms => digits(value, ""),
        Kind::Name | Kind::Number => match value.abs() {
            0.0..9_999.5 => digits(value, ""),
            9_999.5..1e6 => digits(value / 1e3, "k"),
            1e6..1e9 => digits(value / 1e6, "M"),
            1e9..1e12 => digits(value / 1e9, "G"),
            _ => digits(value / 1e12, "T"),
        },
    }
}

/// Three digits, as far as there are any behind the point; a whole number without a point.
fn digits(value: f64, suffix: &str) -> String {
    match value.abs() {
        0.0 => format!("0{suffix}"),
        0.0..0.0005 => format!("<.001{suffix}"),
        0.0005..0.9995 => format!("{value:.3}{suffix}"),
        _ if value.fract() == 0.0 => format!("{value:.0}{suffix}"),
        0.9995..9.995 => format!("{value:.2}{suffix}"),
        9.995..99.95 => format!("{value:.1}{suffix}"),
        _ => format!("{value:.0}{suffix}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_command_a_terminal() {
        assert_eq!(plain("/mnt/\u{1b}[2J\nä"), "/mnt/?[2J?ä");
    }

    #[test]
    fn numbers_fit_seven_characters() {
        let shown = |value| show(Some(value), Kind::Number);
        let cases = [
            (0.0, "0"),
            (0.0001, "<.001"),
            (0.25, "0.250"),
            (0.9996, "1.00"),
            (7.0, "7"),
            (12.34, "12.3"),
            (9_999.4, "9999"),
            (12_345.0, "12.3k"),
            (123_456_789.0, "123M"),
            (4.2e9, "4.20G"),
            (1e15, "1000T"),
        ];
        for (value, text) in cases {
            assert_eq!(shown(value), text);
            assert!(shown(value).len() <= 7);
        }
        assert_eq!(show(Some(0.123), Kind::Share), "12 %");
        assert_eq!(show(Some(12_345.6), Kind::Ms), "12346");
        assert_eq!(
            (show(None, Kind::Ms), show(Some(f64::NAN), Kind::Ms)),
            ("-".into(), "-".into())
        );
    }
}
