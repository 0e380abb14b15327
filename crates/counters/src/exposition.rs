//! Pages of metrics in Prometheus's text format, version 0.0.4, as `nfskit serve --metrics` and
//! others give them.
//!
//! A series is a name, labels and a number. Comments, and with them types and helps, are passed
//! over: what a number means, its reader knows by its name.

use super::fields::Line;
use super::problem::{Found, Problem, Wrong};
use super::rpc::bounded;

/// Series of one page, at most: our own pages have 30,000, and some more for each export.
pub const SERIES_MAX: usize = 1 << 18;

/// Labels of one series, at most.
pub const LABELS_MAX: usize = 32;

/// What one line says.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    pub name: String,
    pub labels: Vec<(String, String)>,
    pub value: f64,
}

impl Series {
    /// The value of a label.
    pub fn label(&self, name: &str) -> Option<&str> {
        self.labels.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }
}

/// Reads a page, in its order.
///
/// # Errors
/// The first line that is broken; [`Wrong::Nothing`] where there is no series at all.
pub fn read(text: &[u8]) -> Result<Vec<Series>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Vec::new();
    for line in Line::all(&text) {
        bounded(&line)?;
        let trimmed = line.trimmed();
        if trimmed.is_empty() || trimmed.starts_with('#') {
            continue;
        }
        if all.len() == SERIES_MAX {
            let wrong = Wrong::TooMany { what: "series", max: SERIES_MAX };
            return Err(Problem { line: line.number, column: 1, wrong });
        }
        let mut rest = Rest { line: line.number, whole: line.whole(), at: 0 };
        all.push(rest.series()?);
    }
    if all.is_empty() {
        return Err(Problem { line: 1, column: 1, wrong: Wrong::Nothing });
    }
    Ok(all)
}

/// What is left of a line, from the byte `at` on.
#[derive(Debug)]
struct Rest<'a> {
    line: usize,
    whole: &'a str,
    at: usize,
}

impl<'a> Rest<'a> {
    fn series(&mut self) -> Result<Series, Problem> {
        self.blanks();
        let name = self.name("the name of a series")?.to_owned();
        let mut labels = Vec::new();
        if self.take('{') {
            loop {
                self.blanks();
                if self.take('}') {
                    break;
                }
                if labels.len() == LABELS_MAX {
                    let wrong = Wrong::TooMany { what: "labels of a series", max: LABELS_MAX };
                    return Err(self.wrong(wrong));
                }
                labels.push(self.one_label()?);
                self.blanks();
                if !self.take(',') && !self.left().starts_with('}') {
                    return Err(self.unexpected("`,` or `}`"));
                }
            }
        }
        Ok(Series { name, labels, value: self.value()? })
    }

    /// A sign behind blanks.
    fn sign(&mut self, sign: char, expected: &'static str) -> Result<(), Problem> {
        self.blanks();
        if self.take(sign) { Ok(()) } else { Err(self.unexpected(expected)) }
    }

    fn one_label(&mut self) -> Result<(String, String), Problem> {
        let name = self.name("the name of a label")?.to_owned();
        self.sign('=', "`=`")?;
        self.sign('"', "a value in quotes")?;
        let mut value = String::new();
        loop {
            let next = self.left().chars().next();
            let Some(next) = next else { return Err(self.unexpected("a closing quote")) };
            self.at += next.len_utf8();
            match next {
                '"' => return Ok((name, value)),
                '\\' => {
                    let escaped = self.left().chars().next();
                    let Some(escaped) = escaped else {
                        return Err(self.unexpected("an escaped character"));
                    };
                    self.at += escaped.len_utf8();
                    value.push(if escaped == 'n' { '\n' } else { escaped });
                }
                other => value.push(other),
            }
        }
    }

    /// A number, and the time of day that may follow it.
    fn value(&mut self) -> Result<f64, Problem> {
        self.blanks();
        let word = self.left().split_whitespace().next().unwrap_or("");
        let value = word.parse().map_err(|_| self.unexpected("a number"))?;
        self.at += word.len();
        self.blanks();
        let time = self.left().split_whitespace().next();
        if time.is_some_and(|time| time.parse::<i64>().is_err()) {
            return Err(self.unexpected("the line's end, or a time"));
        }
        Ok(value)
    }

    fn name(&mut self, expected: &'static str) -> Result<&'a str, Problem> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | ':');
        let left = self.left();
        let end = left.find(|c| !is_name(c)).unwrap_or(left.len());
        if end == 0 {
            return Err(self.unexpected(expected));
        }
        self.at += end;
        Ok(&left[..end])
    }

    fn blanks(&mut self) {
        self.at += self.left().len() - self.left().trim_start().len();
    }

    fn take(&mut self, wanted: char) -> bool {
        let is_there = self.left().starts_with(wanted);
        self.at += if is_there { wanted.len_utf8() } else { 0 };
        is_there
    }

    fn left(&self) -> &'a str {
        &self.whole[self.at..]
    }

    fn unexpected(&self, expected: &'static str) -> Problem {
        let found = match self.left().split_whitespace().next() {
            Some(word) => Found::word(word),
            None => Found::End,
        };
        self.wrong(Wrong::Unexpected { expected, found })
    }

    fn wrong(&self, wrong: Wrong) -> Problem {
        let column = self.whole[..self.at].chars().count() + 1;
        Problem { line: self.line, column, wrong }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_have_names_labels_and_numbers() {
        let text = b"# HELP a_total One.\n# TYPE a_total counter\na_total 7\n\
            a_bucket{x=\"a\\\\b\\\"c\\nd,}\", le=\"+Inf\",} 0.5 1700000000000\nb NaN\nc +Inf\n";
        let series = read(text).unwrap();
        assert_eq!((series[0].name.as_str(), series[0].value), ("a_total", 7.0));
        assert_eq!(series[1].label("x"), Some("a\\b\"c\nd,}"));
        assert_eq!((series[1].label("le"), series[1].label("y")), (Some("+Inf"), None));
        assert!(series[2].value.is_nan() && series[3].value == f64::INFINITY);
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert_eq!(
            problem("a 1\nb{x=\"1\"} y\n"),
            "line 2, column 10: \"y\" where a number is expected"
        );
        assert!(problem("a{x=1} 2").contains("column 5: \"1}\" where a value in quotes"));
        assert!(problem("a{x=\"1").contains("the line's end where a closing quote"));
        assert!(problem("a{x=\"1\" y=\"2\"} 2").contains("where `,` or `}`"));
        assert!(problem("a 1 soon").contains("\"soon\" where the line's end"));
        assert!(problem("<html>").contains("where the name of a series"));
        assert!(problem("# nothing\n").contains("no NFS counters"));
    }
}
