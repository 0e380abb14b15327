//! What `nfskit bench curve` left: a curve of response time, or of a closed loop a sweep of
//! outstanding calls. From its record or its CSV, which name the same numbers.
//!
//! Points at which the server did not keep up are left out: they have no steady state, and their
//! response time is that of the run's length. So are those from which on the throughput does not
//! grow.

use harness::output;
use perf::model::curve::{Curve, Point as CurvePoint};
use perf::model::sweep::{OUTSTANDING_MAX, SweepPoint};
use perf::record::Run as Record;

use super::{Names, Source, SourceError, choose, csv};

/// A load point.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RecordedPoint {
    /// Where it stands: its row, or its place in the record.
    row: usize,
    /// Operations a second, or outstanding.
    load: f64,
    per_s: f64,
    response_us: Option<f64>,
    is_over: bool,
    /// It does not hold a rule of the benchmark.
    is_invalid: bool,
}

impl RecordedPoint {
    fn of(row: usize, load: f64, per_s: f64, response_us: Option<f64>, verdict: &str) -> Self {
        let (is_over, is_invalid) = (verdict == "over", verdict.starts_with("INVALID"));
        Self { row, load, per_s, response_us, is_over, is_invalid }
    }

    /// Both numbers say that something was done.
    fn check(&self) -> Result<(), String> {
        above_0(self.row, "load", self.load)?;
        above_0(self.row, "achieved throughput", self.per_s)
    }
}

fn above_0(row: usize, what: &str, got: f64) -> Result<(), String> {
    match got.is_finite() && got > 0.0 {
        true => Ok(()),
        false => Err(format!("row {row}: the {what} is {got}: it has to be above 0")),
    }
}

const COLUMNS: [&str; 6] =
    ["target", "load", "achieved_per_s", "response_us", "verdict", "operation"];

/// Lines of a table at most: a thousand points of twenty operations.
const LINES_MAX: usize = 100_000;

pub(super) fn is_csv(text: &str) -> bool {
    text.starts_with("target,load,")
}

pub(super) fn of_csv(text: &str, of: Option<&str>) -> Result<Source, SourceError> {
    let mut rows = csv::rows(text);
    let columns = csv::columns(rows.next(), COLUMNS)?;
    let mut targets = Names::default();
    let mut points: Vec<(usize, RecordedPoint)> = Vec::new();
    for fields in rows {
        let fields = fields?;
        let row = fields.0;
        if row > LINES_MAX {
            return Err(format!("row {row}: more than {LINES_MAX} rows").into());
        }
        let [target, load, per_s, response, verdict, operation] = csv::picked(&fields, columns)?;
        // The others are parts of it.
        if operation != "all" {
            continue;
        }
        let load = csv::number(row, "load", load)?;
        let per_s = csv::number(row, "achieved_per_s", per_s)?;
        let response_us = match response.is_empty() {
            true => None,
            false => Some(csv::number(row, "response_us", response)?),
        };
        let own = targets.number(target.to_owned());
        points.push((own, RecordedPoint::of(row, load, per_s, response_us, verdict)));
    }
    let own = choose("servers", &targets.names, of)?;
    let points: Vec<RecordedPoint> =
        points.into_iter().filter(|(target, _)| *target == own).map(|(_, point)| point).collect();
    // With N outstanding, more than N a second are answered wherever a call takes less than a
    // second; at a rate, hardly more than were requested.
    let above = points.iter().filter(|point| point.per_s > 1.5 * point.load).count();
    Ok(source(points.clone(), 2 * above > points.len())?)
}

pub(super) fn of_record(record: &Record) -> Result<Source, String> {
    let mut points = Vec::new();
    let mut is_closed = false;
    for (name, metric) in record.metrics() {
        let Some(point) = name.strip_suffix("/achieved_per_s") else { continue };
        let outstanding = point.strip_prefix("outstanding/");
        is_closed |= outstanding.is_some();
        let load = outstanding.or_else(|| point.strip_prefix("load/"));
        let load = load.ok_or_else(|| format!("unknown point {point:?}"))?;
        let load = load.parse().map_err(|_| format!("point {point:?} has no load"))?;
        let verdict = record.other.get("verdicts").and_then(|verdicts| verdicts.get(point));
        let verdict = verdict.and_then(|verdict| verdict.as_str()).unwrap_or_default();
        let response_us = record.value(&format!("{point}/response_us"));
        let row = points.len() + 1;
        points.push(RecordedPoint::of(row, load, metric.value, response_us, verdict));
    }
    source(points, is_closed)
}

fn source(mut points: Vec<RecordedPoint>, is_closed: bool) -> Result<Source, String> {
    points.iter().try_for_each(RecordedPoint::check)?;
    let invalid = points.iter().filter(|point| point.is_invalid).count();
    if invalid > 0 {
        output::say(format_args!(
            "{invalid} of {} points do not hold a rule of the benchmark (see their verdicts): \
             what is made of them rests on them as well",
            points.len()
        ));
    }
    points.sort_by(|a, b| a.load.total_cmp(&b.load));
    match is_closed {
        true => points.iter().map(observed).collect::<Result<_, _>>().map(Source::Sweep),
        false => curve(&points),
    }
}

/// Those that the server sustained, as long as the throughput grows.
fn curve(points: &[RecordedPoint]) -> Result<Source, String> {
    let mut curve: Vec<CurvePoint> = Vec::new();
    for &RecordedPoint { row, per_s, response_us, .. } in points.iter().filter(|one| !one.is_over) {
        let Some(response_us) = response_us else { continue };
        above_0(row, "response time", response_us)?;
        if curve.last().is_some_and(|before| before.per_s >= per_s) {
            break;
        }
        curve.push(CurvePoint { per_s, response_us });
    }
    Curve::new(curve).map(Source::curve).map_err(|error| error.to_string())
}

fn observed(point: &RecordedPoint) -> Result<SweepPoint, String> {
    let RecordedPoint { row, load, per_s, .. } = *point;
    if load.fract() != 0.0 || load > OUTSTANDING_MAX.into() {
        return Err(format!("row {row}: {load} is no number of outstanding calls"));
    }
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked")]
    Ok(SweepPoint { outstanding: load as u32, per_s })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "target,load,offered_per_s,achieved_per_s,achieved_lo,achieved_hi,\
        response_us,response_lo,response_hi,verdict,late,held,failed,touched,accessed,operation,\
        count,p50_us,p99_us,p999_us";

    fn line(target: &str, load: &str, per_s: &str, us: &str, verdict: &str, op: &str) -> String {
        format!("{target},{load},1,{per_s},,,{us},,,{verdict},0,0,0,1,1,{op},9,1,1,1\n")
    }

    #[test]
    fn a_table_of_one_server_is_a_curve_without_the_point_beyond_its_saturation() {
        let mut text = format!("{HEADING}\n");
        text += &line("nfs://a/", "200", "198.5", "900", "valid", "all");
        text += &line("nfs://a/", "200", "198.5", "900", "valid", "READ");
        text += &line("nfs://a/", "100", "99.5", "800", "\"INVALID: a, b\"", "all");
        text += &line("nfs://a/", "400", "250", "90000", "over", "all");
        let Ok(Source::Curve(curve, _)) = of_csv(&text, None) else { panic!("{text}") };
        let points: Vec<(f64, f64)> =
            curve.points().iter().map(|point| (point.per_s, point.response_us)).collect();
        assert_eq!(points, [(99.5, 800.0), (198.5, 900.0)]);
        // Two servers: which?
        text += &line("nfs://b/", "100", "99.5", "800", "valid", "all");
        assert!(
            of_csv(&text, None).unwrap_err().to_string().contains("--of, of nfs://a/, nfs://b/")
        );
        assert!(of_csv(&text, Some("//a")).is_ok());
        assert!(of_csv(&text, Some("//b")).unwrap_err().to_string().contains("1 rows of numbers"));
    }

    #[test]
    fn a_closed_loop_is_a_sweep() {
        let mut text = format!("{HEADING}\n");
        text += &line("nfs://a/", "4", "7600", "500", "valid", "all");
        text += &line("nfs://a/", "1", "1980", "500", "valid", "all");
        let Ok(Source::Sweep(observed)) = of_csv(&text, None) else { panic!("{text}") };
        let point = |outstanding, per_s| SweepPoint { outstanding, per_s };
        assert_eq!(observed, [point(1, 1980.0), point(4, 7600.0)]);
    }

    #[test]
    fn bad_rows_are_reported_with_their_reason() {
        let error =
            |rows: &str| of_csv(&format!("{HEADING}\n{rows}"), None).unwrap_err().to_string();
        let row = |load, per_s, us| line("nfs://a/", load, per_s, us, "valid", "all");
        assert!(error("").contains("0 servers"));
        assert!(error(&row("100", "99", "1")).contains("1 rows of numbers"));
        assert!(error(&row("x", "99", "1")).contains("row 2: load is \"x\""));
        assert!(error(&row("100", "NaN", "1")).contains("row 2: the achieved throughput is NaN"));
        assert!(error(&row("100", "-1", "1")).contains("row 2: the achieved throughput is -1"));
        assert!(error(&row("100", "99", "-1")).contains("row 2: the response time is -1"));
        assert!(error("nfs://a/,100\n").contains("row 2: at least 16 fields are needed, got 2"));
        assert!(
            of_csv("target,load,operation\n", None).unwrap_err().to_string().contains("no column")
        );
    }
}
