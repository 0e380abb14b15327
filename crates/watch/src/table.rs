//! Rows of numbers with units, and what lies below a row.

use std::borrow::Cow;
use std::fmt::Write;

/// A table: its rows have a cell for each column, the first of which is their name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    pub title: String,
    pub columns: Vec<Column>,
    pub rows: Vec<Row>,
    /// Notes below it, a line each.
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
    pub parts: Vec<(Cow<'static, str>, f64)>,
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
        let mut text = String::new();
        self.show(column, kind, &mut text);
        text
    }

    /// The same at the end of a text.
    pub fn show(&self, column: usize, kind: Kind, text: &mut String) {
        match column.checked_sub(1) {
            None => text.push_str(&self.name),
            Some(at) => put(self.cells.get(at).copied().flatten(), kind, text),
        }
    }
}

/// A name from elsewhere, without what a terminal would obey.
pub fn plain(name: &str) -> String {
    name.chars().map(|c| if c.is_control() { '?' } else { c }).collect()
}

/// A number in at most seven characters.
pub fn show(value: Option<f64>, kind: Kind) -> String {
    let mut text = String::new();
    put(value, kind, &mut text);
    text
}

fn put(value: Option<f64>, kind: Kind, text: &mut String) {
    let Some(value) = value.filter(|value| value.is_finite()) else { return text.push('-') };
    match kind {
        Kind::Share => {
            fixed(value * 100.0, 0, text);
            text.push_str(" %");
        }
        Kind::Ms => digits(value, text),
        Kind::Name | Kind::Number => {
            let (divisor, suffix) = match value.abs() {
                0.0..9_999.5 => (1.0, None),
                9_999.5..1e6 => (1e3, Some('k')),
                1e6..1e9 => (1e6, Some('M')),
                1e9..1e12 => (1e9, Some('G')),
                _ => (1e12, Some('T')),
            };
            digits(value / divisor, text);
            text.extend(suffix);
        }
    }
}

/// Three digits, as far as there are any behind the point; a whole number without a point.
fn digits(value: f64, text: &mut String) {
    match value.abs() {
        0.0 => text.push('0'),
        0.0..0.0005 => text.push_str("<.001"),
        0.0005..0.9995 => fixed(value, 3, text),
        _ if value.fract() == 0.0 => fixed(value, 0, text),
        0.9995..9.995 => fixed(value, 2, text),
        9.995..99.95 => fixed(value, 1, text),
        _ => fixed(value, 0, text),
    }
}

/// So many digits behind the point. Of small numbers by their integer, which takes a fifth of the
/// time that the standard library's exact way takes: most of what a sample of `stat` costs.
fn fixed(value: f64, places: usize, text: &mut String) {
    const POWERS: [f64; 4] = [1.0, 10.0, 100.0, 1_000.0];
    let scaled = (value * POWERS[places.min(3)]).round();
    if places > 3 || !(0.0..1e9).contains(&scaled) {
        write!(text, "{value:.places$}").expect("a String takes everything");
        return;
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "below 10^9")]
    let mut left = scaled as u32;
    // From the last digit on; the point is one more, and zeros before it at least one.
    let mut letters = [0_u8; 12];
    let mut at = letters.len();
    loop {
        if places > 0 && letters.len() - at == places {
            at -= 1;
            letters[at] = b'.';
        }
        at -= 1;
        letters[at] = b'0' + u8::try_from(left % 10).unwrap_or(0);
        left /= 10;
        let written = letters.len() - at;
        if left == 0 && (places == 0 || written > places + 1) {
            break;
        }
    }
    text.extend(letters[at..].iter().copied().map(char::from));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_command_a_terminal() {
        assert_eq!(plain("/mnt/\u{1b}[2J\nä"), "/mnt/?[2J?ä");
    }

    #[test]
    fn a_number_is_written_as_the_standard_library_does() {
        for places in 0..4 {
            for number in 0..20_000_u32 {
                // A step that hits no tie, which both may round as they like.
                let value = f64::from(number) * 0.073_13 + 0.000_003;
                let mut text = String::new();
                fixed(value, places, &mut text);
                assert_eq!(text, format!("{value:.places$}"), "{value} {places}");
            }
        }
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
