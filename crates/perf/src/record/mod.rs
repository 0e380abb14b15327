//! The run record: what every measurement leaves behind, as one JSON object.
//!
//! `docs/formats/run-record.md` has the field table and an example. Three rules hold:
//!
//! - What we do not know we keep: unknown fields survive reading and writing, at every level, so
//!   that an older program may touch a newer program's record.
//! - Order is preserved: names appear in the order they were measured, which is the order in which
//!   a reader wants them.
//! - Only finite numbers are written, since JSON has no other, and none above a physical limit that
//!   the record states: see [`Run::limit`]. What is not so is left out where the record is written
//!   (`record/sound.rs`), whoever put it there, and a warning stands in its place.

mod durability;
mod lists;
mod read;
mod sound;

use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

pub use self::durability::{Durability, DurabilityMismatch, UnknownDurability};
use self::lists::ListsOnOneLine;
pub use self::read::RecordError;
use crate::histogram::{DecodeError, Histogram};
use crate::series::Series;
use crate::stats::{Estimate, Interval};
use crate::units::Nanos;

/// The schema this module reads and writes.
pub const SCHEMA: &str = "nfskit.run/1";

/// One measurement: what was run, where, against what, and what came out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Run {
    schema: String,
    pub tool: Tool,
    /// When the run started, RFC 3339.
    pub started: String,
    #[serde(default)]
    pub environment: Environment,
    #[serde(default)]
    pub target: Target,
    #[serde(default)]
    pub workload: Workload,
    #[serde(default)]
    metrics: IndexMap<String, Metric>,
    #[serde(default)]
    histograms: IndexMap<String, HistogramEntry>,
    #[serde(default)]
    series: IndexMap<String, SeriesEntry>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    limits: Vec<Limit>,
    /// Predictions with their parameters and errors, by model.
    #[serde(default)]
    pub model: Map<String, Value>,
    #[serde(default)]
    pub warnings: Vec<Warning>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Which program measured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Tool {
    pub version: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The machine that measured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Environment {
    /// System, release and machine, as `uname -srm` prints them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub kernel: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpus: Option<u32>,
    /// Bytes of main memory.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<u64>,
    /// The hypervisor or container the machine lives in, `none` on bare metal.
    #[serde(rename = "virtual", default, skip_serializing_if = "Option::is_none")]
    pub virtualization: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock_resolution_ns: Option<u64>,
    /// Load averages over 1, 5 and 15 minutes, at the start.
    #[serde(default, skip_serializing_if = "is_not_finite")]
    pub load_average: Option<[f64; 3]>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What was measured.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Target {
    /// `embedded`, `server`, `directory` or another word of the tool's.
    #[serde(default)]
    pub kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Version of the NFS protocol.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<u32>,
    /// `tcp` or `udp`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub proto: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rsize: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wsize: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub durability: Option<Durability>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mount_options: Option<String>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What was run against the target.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
pub struct Workload {
    #[serde(default)]
    pub name: String,
    #[serde(default)]
    pub parameters: Map<String, Value>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// One number that came out.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Metric {
    pub value: f64,
    pub unit: String,
    /// Lower and upper end of the 95 % interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ci95: Option<[f64; 2]>,
    /// How many repetitions the value rests on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub n: Option<u64>,
    /// Of a result, which values are the better ones; `None` for a number that says how the run
    /// went, such as its length or the load that was offered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub better: Option<Better>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Which of two values is the better one.
#[derive(Clone, Copy, Debug, Deserialize, Eq, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// Of a rate.
    Larger,
    /// Of a time.
    Smaller,
}

/// A distribution: the whole of it, encoded, and those of the usual quantiles that so many values
/// show.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct HistogramEntry {
    pub unit: String,
    /// HdrHistogram's plain V2 encoding in base64, values in `unit`.
    pub hdr: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p50: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p90: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p999: Option<u64>,
    pub max: u64,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Values over time, as two lists of equal length.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct SeriesEntry {
    pub unit: String,
    /// Microseconds since the start of the run.
    pub t_us: Vec<u64>,
    pub v: Vec<f64>,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// What no number of some names can exceed, whatever was measured.
#[derive(Clone, Debug, Deserialize, PartialEq, Serialize)]
pub struct Limit {
    /// Metrics whose names begin so.
    pub names: String,
    pub most: f64,
    pub unit: String,
    /// Whose limit it is.
    pub of: String,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// Something the reader must know before trusting a number, and what to try about it.
#[derive(Clone, Debug, Deserialize, Eq, PartialEq, Serialize)]
pub struct Warning {
    /// A short constant word for programs, such as `client-was-bottleneck`.
    pub code: String,
    pub text: String,
    #[serde(rename = "try", default, skip_serializing_if = "String::is_empty")]
    pub try_: String,
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

impl Run {
    pub fn new(tool: Tool, started: impl Into<String>) -> Self {
        Self {
            schema: SCHEMA.into(),
            tool,
            started: started.into(),
            environment: Environment::default(),
            target: Target::default(),
            workload: Workload::default(),
            metrics: IndexMap::new(),
            histograms: IndexMap::new(),
            series: IndexMap::new(),
            limits: Vec::new(),
            model: Map::new(),
            warnings: Vec::new(),
            other: Map::new(),
        }
    }

    /// Adds a number, replacing an earlier one of this name. One that is not finite, or beyond what
    /// is possible, becomes a warning where the record is written.
    pub fn metric(&mut self, name: &str, value: f64, unit: &str) -> &mut Self {
        self.add_metric(name, value, unit, None, None)
    }

    /// Adds a number that is not always known.
    pub fn metric_if_known(&mut self, name: &str, value: Option<f64>, unit: &str) -> &mut Self {
        match value {
            Some(value) => self.metric(name, value, unit),
            None => self,
        }
    }

    /// Adds an estimate that rests on `n` repetitions, with its interval.
    pub fn estimate(&mut self, name: &str, e: &Estimate, unit: &str, n: u64) -> &mut Self {
        self.add_metric(name, e.value, unit, e.ci95, Some(n))
    }

    fn add_metric(
        &mut self,
        name: &str,
        value: f64,
        unit: &str,
        ci95: Option<Interval>,
        n: Option<u64>,
    ) -> &mut Self {
        let ci95 = ci95.map(|ci| [ci.lo, ci.hi]);
        let (unit, better, other) = (unit.into(), None, Map::new());
        let metric = Metric { value, unit, ci95, n, better, other };
        self.metrics.insert(name.into(), metric);
        self
    }

    /// Marks a number as a result of the run, by which two places may be compared. One that is not
    /// there is passed over.
    pub fn result(&mut self, name: &str, better: Better) -> &mut Self {
        if let Some(metric) = self.metrics.get_mut(name) {
            metric.better = Some(better);
        }
        self
    }

    /// Adds a distribution of times, in nanoseconds. Of no times there is none.
    pub fn histogram(&mut self, name: &str, histogram: &Histogram) -> &mut Self {
        if !histogram.is_empty() {
            self.histograms.insert(name.into(), histogram.into());
        }
        self
    }

    /// Adds values over time. Thin them first: see [`Series::thinned`].
    pub fn series(&mut self, name: &str, series: &Series) -> &mut Self {
        self.series.insert(name.into(), series.into());
        self
    }

    /// States that no metric whose name begins with `names` can be above `most`, and whose limit
    /// that is. One that is becomes a warning.
    pub fn limit(&mut self, names: &str, most: f64, unit: &str, of: &str) -> &mut Self {
        let (names, unit, of) = (names.into(), unit.into(), of.into());
        if most.is_finite() {
            self.limits.push(Limit { names, most, unit, of, other: Map::new() });
        }
        self
    }

    /// Adds a warning and what to try about it (may be empty).
    pub fn warn(&mut self, code: &str, text: &str, try_: &str) -> &mut Self {
        self.warnings.push(Warning::new(code, text, try_));
        self
    }

    pub fn metrics(&self) -> &IndexMap<String, Metric> {
        &self.metrics
    }

    pub fn histograms(&self) -> &IndexMap<String, HistogramEntry> {
        &self.histograms
    }

    /// The value of a metric, if the run has it and it is a number.
    pub fn value(&self, name: &str) -> Option<f64> {
        self.metrics.get(name).map(|metric| metric.value).filter(|value| value.is_finite())
    }

    /// The record as one line of JSON, without the line's end.
    pub fn to_json(&self) -> String {
        serde_json::to_string(&*self.sound())
            .expect("keys are text and nothing here fails to serialize")
    }

    /// The record as JSON for eyes: objects indented, lists on one line.
    pub fn to_json_pretty(&self) -> String {
        let mut text = Vec::new();
        let mut serializer =
            serde_json::Serializer::with_formatter(&mut text, ListsOnOneLine::default());
        self.sound().serialize(&mut serializer).expect("keys are text and a Vec takes every byte");
        String::from_utf8(text).expect("JSON is text")
    }
}

impl Warning {
    pub fn new(code: &str, text: &str, try_: &str) -> Self {
        Self { code: code.into(), text: text.into(), try_: try_.into(), other: Map::new() }
    }
}

impl From<&Histogram> for HistogramEntry {
    fn from(histogram: &Histogram) -> Self {
        let quantile_ns = |q| histogram.quantile_if_known(q).map(Nanos::as_nanos);
        Self {
            unit: "ns".into(),
            hdr: histogram.to_base64(),
            p50: quantile_ns(0.5),
            p90: quantile_ns(0.9),
            p99: quantile_ns(0.99),
            p999: quantile_ns(0.999),
            max: histogram.max().as_nanos(),
            other: Map::new(),
        }
    }
}

impl HistogramEntry {
    /// The whole distribution. Only meaningful when `unit` is `ns`.
    pub fn decode(&self) -> Result<Histogram, DecodeError> {
        Histogram::from_base64(&self.hdr)
    }
}

impl From<&Series> for SeriesEntry {
    fn from(series: &Series) -> Self {
        Self {
            unit: series.unit().into(),
            t_us: series.points().iter().map(|p| p.t_us).collect(),
            v: series.points().iter().map(|p| p.value).collect(),
            other: Map::new(),
        }
    }
}

fn is_not_finite(load: &Option<[f64; 3]>) -> bool {
    load.is_none_or(|averages| !averages.iter().all(|v| v.is_finite()))
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::series::Point;

    const DOCUMENT: &str = include_str!("../../../../docs/formats/run-record.md");

    fn example() -> &'static str {
        let (_, after) = DOCUMENT.split_once("```json\n").unwrap();
        after.split_once("```").unwrap().0
    }

    pub(super) fn minimal() -> Run {
        let tool = Tool { version: "0.1.0".into(), ..Tool::default() };
        Run::new(tool, "2026-01-02T03:04:05Z")
    }

    #[test]
    fn the_documents_example_is_a_record_that_reads_and_writes_unchanged() {
        let run = Run::from_json(example()).unwrap();
        assert_eq!(run.to_json_pretty().trim(), example().trim());
        let wait = &run.histograms()["write_response"];
        let histogram = wait.decode().unwrap();
        assert_eq!(HistogramEntry::from(&histogram), *wait);
        assert_eq!(run.other.len(), 0, "the document names no field we do not know");
    }

    #[test]
    fn the_document_names_every_field_of_the_example() {
        fn names(value: &Value, into: &mut Vec<String>) {
            for (name, value) in value.as_object().into_iter().flatten() {
                into.push(name.clone());
                names(value, into);
            }
        }
        let (table, _) = DOCUMENT.split_once("## Example").unwrap();
        let mut fields = serde_json::from_str::<Value>(example()).unwrap();
        // Names of measurements and parameters are the run's own.
        for (section, inner) in [("metrics", true), ("histograms", true), ("series", true)] {
            let entries = fields[section].as_object_mut().unwrap();
            let first = entries.values().next().cloned().unwrap();
            fields[section] = if inner { first } else { Value::Null };
        }
        fields["model"] = Value::Null;
        fields["workload"]["parameters"] = Value::Null;
        let mut all = Vec::new();
        names(&fields, &mut all);
        for name in all {
            assert!(table.contains(&format!("`{name}`")), "{name} is not in the table");
        }
    }

    #[test]
    fn unknown_fields_survive_at_every_level() {
        let text = json!({
            "schema": SCHEMA, "new": {"deep": [1, 2]},
            "tool": {"version": "9", "new": 1}, "started": "then",
            "environment": {"new": "e"}, "target": {"kind": "server", "new": true},
            "workload": {"name": "w", "parameters": {}, "new": null},
            "metrics": {"m": {"value": 1.5, "unit": "s", "new": "m"}},
            "histograms": {}, "series": {"s": {"unit": "B", "t_us": [], "v": [], "new": 0}},
            "model": {}, "warnings": [{"code": "c", "text": "t", "new": {}}],
        });
        let run = Run::from_json(&text.to_string()).unwrap();
        let written: Value = serde_json::from_str(&run.to_json()).unwrap();
        assert_eq!(written, text);
    }

    #[test]
    fn a_result_is_marked_and_what_is_not_there_is_passed_over() {
        let mut run = minimal();
        run.metric("calls", 5.0, "calls").metric("call_us", 2.0, "us");
        run.result("call_us", Better::Smaller).result("absent", Better::Larger);
        let read = Run::from_json(&run.to_json()).unwrap();
        let better = |name: &str| read.metrics()[name].better;
        assert_eq!((better("calls"), better("call_us")), (None, Some(Better::Smaller)));
        assert_eq!(read.metrics().len(), 2);
    }

    #[test]
    fn names_keep_the_order_of_measurement() {
        let mut run = minimal();
        run.metric("z", 1.0, "s").metric("a", 2.0, "s").metric("m", 3.0, "s");
        let read = Run::from_json(&run.to_json()).unwrap();
        let names: Vec<_> = read.metrics().keys().collect();
        assert_eq!(names, ["z", "a", "m"]);
    }

    fn any_run() -> impl Strategy<Value = Run> {
        let finite = || -1e300..1e300f64;
        let metrics = proptest::collection::vec((".*", finite(), ".*", any::<u64>()), 0..5);
        let times = proptest::collection::vec(any::<u64>(), 0..20);
        let points = proptest::collection::vec((any::<u64>(), finite()), 0..20);
        (metrics, times, points, ".*").prop_map(|(metrics, times, points, text)| {
            let mut run = minimal();
            for (name, value, unit, n) in metrics {
                let ci95 = Some(Interval { lo: value - 1.0, hi: value + 1.0 });
                run.metric(&format!("{name}2"), value, &unit);
                run.estimate(&name, &Estimate { value, ci95 }, &unit, n);
            }
            let histogram: Histogram = times.into_iter().map(Nanos::from_nanos).collect();
            run.histogram("h", &histogram);
            let mut series = Series::new(&*text);
            for (t_us, value) in points {
                series.push_point(Point { t_us, value });
            }
            run.series(&text, &series).warn(&text, "text", "");
            run.target.url = Some(text.clone());
            run.other.insert(format!("x-{text}"), json!([1, {"a": null, "b": {}}, [], {}]));
            run
        })
    }

    proptest! {
        #[test]
        fn writing_and_reading_is_identity(run in any_run()) {
            prop_assert_eq!(&Run::from_json(&run.to_json()).unwrap(), &run);
            prop_assert_eq!(&Run::from_json(&run.to_json_pretty()).unwrap(), &run);
        }

        #[test]
        fn reading_never_panics(text in ".*", cut in 0usize..2000) {
            let _ = Run::from_json(&text);
            if let Some(broken_off) = example().get(..cut.min(example().len() - 3)) {
                prop_assert!(Run::from_json(broken_off).is_err());
            }
        }
    }
}
