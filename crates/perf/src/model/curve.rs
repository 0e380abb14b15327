//! A curve of response time over throughput, as benchmarks publish it: read, checked, and summed up
//! in one number.
//!
//! ```text
//! # a comment
//! throughput_per_s  response_ms
//! 3037              1.1
//! 6071              1.3
//! ```
//!
//! Columns are parted by spaces, tabs, commas or semicolons. The first line names them with their
//! units, without which a number means nothing: throughput in `per_s`, response time in `us`, `ms`
//! or `s`. Throughput grows from row to row; what a server does beyond its saturation, where curves
//! turn back, is not a function of the throughput.
//!
//! Overall response time: area under the curve from the origin (0, 0), with straight lines between
//! the points, over the largest throughput. It is what SPECsfs97 publishes; that the curve begins
//! at the origin and not flat at the first point was found by computing published results again.

use thiserror::Error;

/// Rows that a table may have.
pub const ROWS_MAX: usize = 10_000;

/// One load point.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Point {
    /// Calls a second.
    pub per_s: f64,
    /// Mean response time, us.
    pub response_us: f64,
}

/// Load points in the order of their throughput. Valid by construction.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    points: Vec<Point>,
}

/// What is wrong with a table, and in which row: of the file where there is one (the heading is
/// row 1), else of the points (the first is row 1).
#[derive(Clone, Debug, Error, PartialEq)]
pub enum CurveError {
    #[error("{got} rows of numbers: at least {need} are needed")]
    TooFew { got: usize, need: usize },
    #[error("row {row}: more than {most} rows")]
    TooMany { row: usize, most: usize },
    #[error(
        "row {row}: the heading has to name two columns with their units, \
         as in \"{example}\"; it says {text:?}"
    )]
    Units { row: usize, example: &'static str, text: String },
    #[error("row {row}: {need} numbers are needed, got {text:?}")]
    Row { row: usize, need: usize, text: String },
    #[error("row {row}: the {what} is {got}: it has to be a finite number above 0")]
    NotPositive { row: usize, what: &'static str, got: f64 },
    #[error("row {row}: the {what} is {got}: it has to be {need}")]
    NotOneOf { row: usize, what: &'static str, got: f64, need: &'static str },
    #[error("row {row}: the throughput of {got} a second does not exceed the {before} before it")]
    NotIncreasing { row: usize, before: f64, got: f64 },
}

/// Points that make a curve; fewer are a number or two.
pub const POINTS_MIN: usize = 2;

impl Curve {
    /// Fails where a value is not above 0, the throughput does not grow, or points are too few.
    pub fn new(points: Vec<Point>) -> Result<Self, CurveError> {
        Self::checked(points.into_iter().enumerate().map(|(i, point)| (i + 1, point)).collect())
    }

    /// Reads a table, see the module's head.
    pub fn parse(text: &str) -> Result<Self, CurveError> {
        let (unit_us, rows) = rows(text, "throughput_per_s response_ms", ROWS_MAX, heading)?;
        let point = |(row, [per_s, response]): (usize, [f64; 2])| {
            (row, Point { per_s, response_us: response * unit_us })
        };
        Self::checked(rows.into_iter().map(point).collect())
    }

    fn checked(rows: Vec<(usize, Point)>) -> Result<Self, CurveError> {
        let mut before = 0.0;
        for &(row, Point { per_s, response_us }) in &rows {
            for (what, got) in [("throughput", per_s), ("response time", response_us)] {
                if !(got.is_finite() && got > 0.0) {
                    return Err(CurveError::NotPositive { row, what, got });
                }
            }
            if per_s <= before {
                return Err(CurveError::NotIncreasing { row, before, got: per_s });
            }
            before = per_s;
        }
        if rows.len() < POINTS_MIN {
            return Err(CurveError::TooFew { got: rows.len(), need: POINTS_MIN });
        }
        Ok(Self { points: rows.into_iter().map(|(_, point)| point).collect() })
    }

    pub fn points(&self) -> &[Point] {
        &self.points
    }

    /// The largest throughput, calls a second.
    pub fn peak_per_s(&self) -> f64 {
        self.points[self.points.len() - 1].per_s
    }

    /// See the module's head; us.
    pub fn overall_response_us(&self) -> f64 {
        let (mut area, mut before) = (0.0, Point { per_s: 0.0, response_us: 0.0 });
        for &point in &self.points {
            let mean_us = f64::midpoint(before.response_us, point.response_us);
            area += mean_us * (point.per_s - before.per_s);
            before = point;
        }
        area / self.peak_per_s()
    }
}

/// The number of a row, and its numbers.
pub(super) type Row<const N: usize> = (usize, [f64; N]);

/// Row by row, so many numbers below a heading that means something; comments and empty lines left
/// out.
pub(super) fn rows<T, const N: usize>(
    text: &str,
    example: &'static str,
    most: usize,
    heading: impl Fn(&[&str]) -> Option<T>,
) -> Result<(T, Vec<Row<N>>), CurveError> {
    let mut meaning = None;
    let mut rows = Vec::new();
    for (row, line) in (1..).zip(text.lines()) {
        if row > most {
            return Err(CurveError::TooMany { row, most });
        }
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let cells: Vec<&str> = line
            .split(|c: char| c.is_whitespace() || c == ',' || c == ';')
            .filter(|cell| !cell.is_empty())
            .collect();
        if meaning.is_none() {
            let units = || CurveError::Units { row, example, text: clip(line) };
            meaning = Some(heading(&cells).ok_or_else(units)?);
            continue;
        }
        let numbers: Vec<f64> = cells.iter().map_while(|cell| cell.parse().ok()).collect();
        match <[f64; N]>::try_from(numbers) {
            Ok(numbers) if cells.len() == N => rows.push((row, numbers)),
            _ => return Err(CurveError::Row { row, need: N, text: clip(line) }),
        }
    }
    let meaning = meaning.ok_or(CurveError::TooFew { got: 0, need: POINTS_MIN })?;
    Ok((meaning, rows))
}

/// How many us the unit of response times is.
fn heading(cells: &[&str]) -> Option<f64> {
    let [rate, response] = cells else { return None };
    if !is_rate(rate) || is_rate(response) {
        return None;
    }
    match response.rsplit('_').next() {
        Some("us") => Some(1.0),
        Some("ms") => Some(1e3),
        Some("s") => Some(1e6),
        _ => None,
    }
}

/// Whether a column is named as calls a second.
pub(super) fn is_rate(cell: &str) -> bool {
    cell.ends_with("per_s") || cell.ends_with("/s")
}

/// So much of a line as an error should repeat.
fn clip(line: &str) -> String {
    line.chars().take(60).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    type Published = (&'static str, f64, &'static [(f64, f64)]);

    /// SPECsfs97 results of Network Appliance, 2000 and 2001: name, overall response time as
    /// published (ms), and the table (calls a second, ms).
    #[rustfmt::skip]
    pub(crate) const PUBLISHED: [Published; 5] = [
        ("F840, 2 nodes", 1.56, &[
            (3037.0, 1.1), (6071.0, 1.3), (9135.0, 1.4), (13147.0, 1.2), (16242.0, 1.3),
            (18983.0, 1.4), (21771.0, 1.9), (24532.0, 2.0), (27650.0, 2.4), (30555.0, 3.5),
        ]),
        ("F840, 16 nodes", 1.58, &[
            (25025.0, 0.9), (49940.0, 1.2), (74807.0, 1.3), (99889.0, 1.5), (128_059.0, 1.4),
            (154_587.0, 1.6), (178_734.0, 1.8), (202_428.0, 2.2), (225_822.0, 2.5),
            (250_573.0, 3.0),
        ]),
        ("F840, 12 nodes", 1.59, &[
            (18276.0, 1.1), (36463.0, 1.3), (54667.0, 1.4), (76739.0, 1.2), (95504.0, 1.4),
            (112_621.0, 1.5), (129_201.0, 1.9), (147_215.0, 2.0), (165_972.0, 2.5),
            (182_152.0, 3.5), (182_548.0, 3.6),
        ]),
        ("F820c, version 3", 1.55, &[
            (1338.0, 1.1), (2687.0, 1.2), (4128.0, 1.2), (5425.0, 1.3), (6894.0, 1.4),
            (8163.0, 1.8), (9498.0, 1.7), (10934.0, 2.0), (12238.0, 2.2), (13546.0, 2.4),
            (13789.0, 2.5), (14053.0, 2.5), (14186.0, 2.6),
        ]),
        ("F840c", 1.55, &[
            (2644.0, 1.1), (5302.0, 1.2), (7964.0, 1.5), (11561.0, 1.1), (14176.0, 1.3),
            (16340.0, 1.3), (19139.0, 1.7), (21603.0, 2.4), (24096.0, 2.6), (25659.0, 3.6),
            (25973.0, 3.5),
        ]),
    ];

    pub(crate) fn curve(points: &[(f64, f64)]) -> Curve {
        let point = |&(per_s, ms): &(f64, f64)| Point { per_s, response_us: ms * 1e3 };
        Curve::new(points.iter().map(point).collect()).unwrap()
    }

    #[test]
    fn five_published_curves_have_their_overall_response_time_to_the_digit() {
        for (name, published_ms, points) in PUBLISHED {
            let overall_ms = curve(points).overall_response_us() / 1e3;
            assert_eq!((overall_ms * 100.0).round() / 100.0, published_ms, "{name}: {overall_ms}");
        }
    }

    #[test]
    fn a_table_is_read_with_its_units_whatever_parts_its_columns() {
        let want = curve(&[(100.0, 1.5), (200.0, 2.0)]);
        for text in [
            "throughput_per_s response_ms\n100 1.5\n200 2.0\n",
            "# ours\n\nops/s,response_us\r\n100,1500\r\n200,2000",
            "calls_per_s;mean_s\n100;0.0015 # base\n200;0.002",
        ] {
            assert_eq!(Curve::parse(text).as_ref(), Ok(&want), "{text}");
        }
    }

    #[test]
    fn bad_input_is_reported_with_its_row_and_reason() {
        let error = |text: &str| Curve::parse(text).unwrap_err().to_string();
        let heading = "throughput_per_s response_ms\n";
        assert!(error("100 1.5\n200 2").starts_with("row 1: the heading has to name two columns"));
        assert!(error("throughput response\n1 2").contains("units"));
        assert!(error("response_ms throughput_per_s\n1 2").contains("units"));
        assert_eq!(error(""), "0 rows of numbers: at least 2 are needed");
        assert_eq!(error(heading), "0 rows of numbers: at least 2 are needed");
        assert_eq!(error(&format!("{heading}100 1.5")), "1 rows of numbers: at least 2 are needed");
        assert_eq!(
            error(&format!("{heading}100 1\n\n90 2")),
            "row 4: the throughput of 90 a second does not exceed the 100 before it"
        );
        assert_eq!(
            error(&format!("{heading}100 -1\n200 2")),
            "row 2: the response time is -1000: it has to be a finite number above 0"
        );
        assert!(error(&format!("{heading}NaN 1\n200 2")).contains("row 2: the throughput is NaN"));
        assert!(error(&format!("{heading}1 1\n2 inf")).contains("row 3: the response time is inf"));
        assert!(error(&format!("{heading}1 1\n2 two")).starts_with("row 3: 2 numbers are needed"));
        assert!(error(&format!("{heading}1 1 1\n2 2")).starts_with("row 2: 2 numbers"));
        assert!(error(&"\n".repeat(ROWS_MAX + 1)).contains("more than"));
    }
}
