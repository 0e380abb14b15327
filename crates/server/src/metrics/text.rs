//! Prometheus's text format, version 0.0.4.
//!
//! ```text
//! # HELP name help
//! # TYPE name counter
//! name{label="value"} 1
//! ```
//!
//! All samples of a family stand together, spans are in seconds and sizes in bytes, and what only
//! ever grows ends in `_total`.

use std::fmt::{Display, Write};

use super::histogram::{BUCKETS, Distribution, bound};

/// What an HTTP answer with a page says of it.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// A page of metrics that grows family by family.
#[derive(Clone, Debug, Default)]
pub struct Page {
    text: String,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Kind {
    Counter,
    Gauge,
    Histogram,
}

/// The samples of one name.
#[derive(Debug)]
pub struct Family<'p> {
    page: &'p mut Page,
    name: &'static str,
}

/// A number that somebody else keeps. Its name says what kind it is: a counter's ends in `_total`.
#[derive(Clone, Debug, PartialEq)]
pub struct Reading {
    pub name: &'static str,
    pub help: &'static str,
    pub labels: Vec<(&'static str, String)>,
    pub value: f64,
}

impl Reading {
    /// One without labels.
    pub const fn new(name: &'static str, help: &'static str, value: f64) -> Self {
        Self { name, help, labels: Vec::new(), value }
    }

    #[must_use]
    pub fn of(mut self, label: &'static str, value: impl Into<String>) -> Self {
        self.labels.push((label, value.into()));
        self
    }
}

impl Page {
    pub fn family(&mut self, name: &'static str, kind: Kind, help: &str) -> Family<'_> {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
            Kind::Histogram => "histogram",
        };
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}\n# TYPE {name} {kind}"));
        Family { page: self, name }
    }

    /// Readings in any order; those of one name become one family.
    pub fn readings(&mut self, readings: &[Reading]) {
        for (index, first) in readings.iter().enumerate() {
            if readings[..index].iter().any(|earlier| earlier.name == first.name) {
                continue;
            }
            let counts = first.name.ends_with("_total");
            let kind = if counts { Kind::Counter } else { Kind::Gauge };
            let mut family = self.family(first.name, kind, first.help);
            for reading in readings.iter().filter(|reading| reading.name == first.name) {
                let labels: Vec<_> =
                    reading.labels.iter().map(|(name, value)| (*name, value.as_str())).collect();
                family.sample(&labels, reading.value);
            }
        }
    }

    pub fn as_str(&self) -> &str {
        &self.text
    }

    pub fn into_string(self) -> String {
        self.text
    }

    fn line(&mut self, line: impl Display) {
        writeln!(self.text, "{line}").expect("writing to a String cannot fail");
    }
}

impl Family<'_> {
    pub fn sample(&mut self, labels: &[(&str, &str)], value: impl Display) {
        self.line("", labels, None, value);
    }

    /// A line of a histogram that somebody else keeps: `_bucket`, `_sum` or `_count`.
    pub fn suffixed(&mut self, suffix: &'static str, labels: &[(&str, &str)], value: impl Display) {
        self.line(suffix, labels, None, value);
    }

    pub(super) fn distribution(&mut self, labels: &[(&str, &str)], of: &Distribution) {
        let mut count = 0;
        for bucket in 0..BUCKETS {
            count += of.counts[bucket];
            let le =
                bound(bucket).map_or_else(|| "+Inf".to_owned(), |at| at.as_secs_f64().to_string());
            self.line("_bucket", labels, Some(&le), count);
        }
        // Divided, not multiplied by 1e-9: that is exact to the last digit shown.
        self.line("_sum", labels, None, of.total.as_nanos() as f64 / 1e9);
        self.line("_count", labels, None, count);
    }

    fn line(
        &mut self,
        suffix: &str,
        labels: &[(&str, &str)],
        le: Option<&str>,
        value: impl Display,
    ) {
        let labels = labels.iter().copied().chain(le.map(|le| ("le", le)));
        let mut text = String::new();
        for (name, value) in labels {
            let comma = if text.is_empty() { "" } else { "," };
            let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
            write!(text, "{comma}{name}=\"{value}\"").expect("writing to a String cannot fail");
        }
        let name = self.name;
        match text.is_empty() {
            true => self.page.line(format_args!("{name}{suffix} {value}")),
            false => self.page.line(format_args!("{name}{suffix}{{{text}}} {value}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_family_has_its_help_its_type_and_its_samples() {
        let mut page = Page::default();
        let mut family = page.family("a_total", Kind::Counter, "One \\ two\nthree \"four\".");
        family.sample(&[], 7);
        family.sample(&[("x", "a\\b\"c\nd"), ("y", "")], 0.5);
        assert_eq!(
            page.as_str(),
            "# HELP a_total One \\\\ two\\nthree \"four\".\n# TYPE a_total counter\na_total 7\n\
             a_total{x=\"a\\\\b\\\"c\\nd\",y=\"\"} 0.5\n"
        );
    }

    #[test]
    fn readings_of_one_name_stand_together() {
        let reading = |name, of: &str| Reading::new(name, "help", 1.0).of("of", of);
        let mut page = Page::default();
        page.readings(&[reading("a", "1"), reading("b_total", "1"), reading("a", "2")]);
        let expected = "# HELP a help\n# TYPE a gauge\na{of=\"1\"} 1\na{of=\"2\"} 1\n\
            # HELP b_total help\n# TYPE b_total counter\nb_total{of=\"1\"} 1\n";
        assert_eq!(page.as_str(), expected);
    }

    #[test]
    fn a_distribution_is_cumulative_and_in_seconds() {
        let mut page = Page::default();
        let mut of = Distribution::default();
        of.add_nothing(2);
        of.counts[BUCKETS - 1] = 1;
        page.family("s", Kind::Histogram, "h").distribution(&[("p", "x")], &of);
        let lines: Vec<_> = page.as_str().lines().collect();
        assert_eq!(lines.len(), 2 + BUCKETS + 2);
        assert_eq!(lines[2], "s_bucket{p=\"x\",le=\"0.000001024\"} 2");
        assert_eq!(lines[1 + BUCKETS], "s_bucket{p=\"x\",le=\"+Inf\"} 3");
        assert_eq!(lines[2 + BUCKETS..], ["s_sum{p=\"x\"} 0", "s_count{p=\"x\"} 3"]);
    }
}
