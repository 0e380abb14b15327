//! What a record may say, checked where it is written: whatever computed a number, and wherever it
//! was put, one that is none or that cannot be does not leave the program.
//!
//! | found | becomes |
//! |---|---|
//! | a metric that is not finite | the warning `not-finite` |
//! | a metric above a limit of the record, or above [`RATE_MAX`] | the warning `above-limit` |
//! | an interval with an end that is not finite | no interval |
//! | an interval that goes beyond a limit of the record | one that ends there |
//! | `null` in `model` (what JSON makes of a number that is none) | the warning `not-finite` |
//!
//! A [`crate::series::Series`] takes none but finite values itself.

use std::borrow::Cow;

use serde_json::Value;

use super::{Limit, Metric, Run};

/// No path of one machine is faster: ten ports of 800 Gbit/s, and what its memory copies in a
/// second. Of all metrics in MiB/s.
const RATE_MAX: f64 = 1e6;

/// Metrics that are ends of a limit's own measurement may be this much above it.
const TOLERATED: f64 = 1e-9;

impl Run {
    /// The record as it may be written.
    pub(super) fn sound(&self) -> Cow<'_, Self> {
        let fits = |(name, metric): (&String, &Metric)| {
            self.why_not(name, metric).is_none() && self.possible(name, metric) == metric.ci95
        };
        let is_sound = self.metrics.iter().all(fits) && !self.model.values().any(has_null);
        if is_sound {
            return Cow::Borrowed(self);
        }
        let mut run = self.clone();
        let bad = self.metrics.iter().filter_map(|(name, metric)| {
            let (code, text, advice) = self.why_not(name, metric)?;
            Some((name.clone(), code, text, advice))
        });
        for (name, code, text, advice) in bad {
            run.metrics.shift_remove(&name);
            run.warn(code, &text, advice);
        }
        for (name, metric) in &mut run.metrics {
            metric.ci95 = self.possible(name, metric);
        }
        let mut nulls = Vec::new();
        for (name, value) in &mut run.model {
            without_nulls(name, value, &mut nulls);
        }
        run.model.retain(|_, value| !value.is_null());
        for path in nulls {
            let text = format!("model.{path} came out as no number and is left out");
            run.warn("not-finite", &text, REPETITIONS);
        }
        Cow::Owned(run)
    }

    /// The interval, as far as it is finite and below the limits.
    fn possible(&self, name: &str, metric: &Metric) -> Option<[f64; 2]> {
        let [lo, hi] = metric.ci95.filter(|&ends| is_finite(ends))?;
        let of = self.limits.iter().filter(|limit| limit.is_of(name, metric));
        let most = of.map(|limit| limit.most.max(metric.value)).fold(f64::INFINITY, f64::min);
        Some([lo, hi.min(most)])
    }

    /// Code, text and advice of the warning that takes a metric's place.
    fn why_not(&self, name: &str, metric: &Metric) -> Option<(&'static str, String, &'static str)> {
        let Metric { value, unit, .. } = metric;
        if !value.is_finite() {
            let text = format!("{name} came out as {value} and is left out");
            return Some(("not-finite", text, REPETITIONS));
        }
        let broken =
            |limit: &&Limit| limit.is_of(name, metric) && *value > limit.most * (1.0 + TOLERATED);
        let (most, of) = match self.limits.iter().find(broken) {
            Some(limit) => (limit.most, limit.of.as_str()),
            None if unit == "MiB/s" && *value > RATE_MAX => (RATE_MAX, "any path of one machine"),
            None => return None,
        };
        let text = format!(
            "{name} came out as {value} {unit}, above the {most} {unit} of {of}, and is left out"
        );
        Some(("above-limit", text, "longer runs; and report it, since this cannot be"))
    }
}

impl Limit {
    fn is_of(&self, name: &str, metric: &Metric) -> bool {
        name.starts_with(&self.names) && metric.unit == self.unit
    }
}

const REPETITIONS: &str = "look at the number of repetitions behind it";

fn is_finite(ends: [f64; 2]) -> bool {
    ends.iter().all(|end| end.is_finite())
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(values) => values.iter().any(has_null),
        Value::Object(members) => members.values().any(has_null),
        _ => false,
    }
}

/// Leaves out what is `null`, and a list that has one in it, whose other values would stand in
/// each other's places.
fn without_nulls(path: &str, value: &mut Value, removed: &mut Vec<String>) {
    match value {
        Value::Object(members) => {
            for (name, member) in members.iter_mut() {
                without_nulls(&format!("{path}.{name}"), member, removed);
            }
            members.retain(|_, member| !member.is_null());
        }
        Value::Array(values) if values.iter().any(Value::is_null) => *value = Value::Null,
        Value::Array(values) => {
            for (at, member) in values.iter_mut().enumerate() {
                without_nulls(&format!("{path}[{at}]"), member, removed);
            }
            if values.iter().any(Value::is_null) {
                *value = Value::Null;
            }
        }
        _ => {}
    }
    if value.is_null() {
        removed.push(path.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::record::tests::minimal;
    use crate::series::{Point, Series};
    use crate::stats::{Estimate, Interval};

    #[test]
    fn what_is_not_finite_becomes_a_warning_and_never_a_null() {
        let mut run = minimal();
        run.metric("gain", f64::NAN, "%");
        let wild = Interval { lo: 1.0, hi: f64::INFINITY };
        let estimate = Estimate { value: 2.0, ci95: Some(wild) };
        run.estimate("rtt", &estimate, "us", 3);
        run.environment.load_average = Some([0.5, f64::NAN, 0.1]);
        let mut series = Series::new("us");
        for (t_us, value) in [(1, 2.0), (2, f64::NAN), (3, 4.0)] {
            series.push_point(Point { t_us, value });
        }
        run.series("s", &series);
        run.model.insert("rows".into(), json!([{"error_pct": f64::NAN, "n": 1}, {"n": 2}]));
        run.model.insert("list".into(), json!([1.0, f64::INFINITY]));
        assert!(!run.to_json().contains("null"), "{}", run.to_json());
        let read = Run::from_json(&run.to_json()).unwrap();
        assert_eq!((run.value("gain"), read.value("gain")), (None, None));
        assert_eq!(read.metrics()["rtt"].ci95, None);
        assert_eq!(read.series["s"].v, [2.0, 4.0]);
        assert_eq!(read.model["rows"], json!([{"n": 1}, {"n": 2}]));
        let texts: Vec<&str> = read.warnings.iter().map(|warning| &*warning.text).collect();
        for part in ["gain came out as NaN", "model.rows[0].error_pct", "model.list"] {
            assert!(texts.iter().any(|text| text.starts_with(part)), "{part}: {texts:?}");
        }
        assert!(read.warnings.iter().all(|warning| warning.code == "not-finite"));
    }

    #[test]
    fn no_value_is_written_above_a_limit_that_the_record_states() {
        let mut run = minimal();
        run.limit("throughput_", 119.2, "MiB/s", "the emulated link");
        run.metric("throughput_n1", 119.2, "MiB/s").metric("throughput_n2", 119.5, "MiB/s");
        run.metric("storage_mib_per_s", 900.0, "MiB/s").metric("throughput_calls", 9e3, "1/s");
        // A quotient of bytes and of no time.
        run.metric("abandoned", 1_700_629.0, "MiB/s");
        let read = Run::from_json(&run.to_json_pretty()).unwrap();
        let names: Vec<&String> = read.metrics().keys().collect();
        assert_eq!(names, ["throughput_n1", "storage_mib_per_s", "throughput_calls"]);
        let texts: Vec<&str> = read.warnings.iter().map(|warning| &*warning.text).collect();
        assert!(
            texts[0].starts_with("throughput_n2 came out as 119.5 MiB/s, above the 119.2 MiB/s")
        );
        assert!(texts[1].contains("1000000 MiB/s of any path"), "{texts:?}");
        assert!(read.warnings.iter().all(|warning| warning.code == "above-limit"));
    }

    #[test]
    fn an_interval_ends_where_its_limit_is() {
        let mut run = minimal();
        run.limit("throughput", 119.2, "MiB/s", "the emulated link");
        let wide = |value| Estimate { value, ci95: Some(Interval { lo: 90.0, hi: 140.0 }) };
        run.estimate("throughput", &wide(110.0), "MiB/s", 3);
        run.estimate("storage", &wide(110.0), "MiB/s", 3);
        let read = Run::from_json(&run.to_json()).unwrap();
        assert_eq!(read.metrics()["throughput"].ci95, Some([90.0, 119.2]));
        assert_eq!(read.metrics()["storage"].ci95, Some([90.0, 140.0]));
    }

    proptest! {
        #[test]
        fn whatever_is_put_in_is_written_as_finite_numbers_below_the_limits(
            bits in proptest::collection::vec(any::<u64>(), 1..20),
        ) {
            let mut run = minimal();
            run.limit("m", 1e3, "MiB/s", "a link");
            for (at, bits) in bits.iter().enumerate() {
                let value = f64::from_bits(*bits);
                let ci95 = Some(Interval { lo: -value, hi: value });
                run.estimate(&format!("m{at}"), &Estimate { value, ci95 }, "MiB/s", 1);
                run.model.insert(format!("x{at}"), json!({"y": value}));
            }
            let text = run.to_json();
            prop_assert!(!text.contains("null"));
            let read = Run::from_json(&text).unwrap();
            prop_assert!(read.metrics().values().all(|metric| metric.value <= 1e3));
            let ends = |metric: &Metric| metric.ci95.is_none_or(|[_, hi]| hi <= 1e3);
            prop_assert!(read.metrics().values().all(ends));
        }
    }
}
