//! A reader of Prometheus's text format that takes nothing for granted: what it accepts, a
//! monitoring system accepts.

use std::collections::BTreeMap;

/// The families of a page, by name.
#[derive(Debug)]
pub(crate) struct Scrape {
    kinds: BTreeMap<String, String>,
    samples: Vec<Sample>,
}

#[derive(Clone, Debug, PartialEq)]
struct Sample {
    name: String,
    labels: BTreeMap<String, String>,
    value: f64,
}

impl Scrape {
    #[track_caller]
    pub(crate) fn of(page: &str) -> Self {
        assert!(page.is_empty() || page.ends_with('\n'));
        let mut scrape = Self { kinds: BTreeMap::new(), samples: Vec::new() };
        let (mut helped, mut family) = (None, String::new());
        for line in page.lines() {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').expect("a help text");
                assert!(!help.is_empty());
                helped = Some(name.to_owned());
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').expect("a type");
                assert_eq!(helped.take().as_deref(), Some(name), "HELP stands before TYPE");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{kind}");
                assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
                assert!(is_name(name), "{name}");
                let before = scrape.kinds.insert(name.to_owned(), kind.to_owned());
                assert_eq!(before, None, "{name} comes twice");
                family = name.to_owned();
            } else {
                let sample = sample(line);
                let suffix = sample.name.strip_prefix(&family).expect("a sample of its family");
                match scrape.kinds[&family].as_str() {
                    "histogram" => assert!(["_bucket", "_sum", "_count"].contains(&suffix)),
                    _ => assert_eq!(suffix, ""),
                }
                let twin =
                    |other: &Sample| (&other.name, &other.labels) == (&sample.name, &sample.labels);
                assert!(!scrape.samples.iter().any(twin), "{line} comes twice");
                scrape.samples.push(sample);
            }
        }
        scrape.check_histograms();
        scrape
    }

    /// The value of a sample: its only one with these labels and perhaps others.
    #[track_caller]
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let fits = |sample: &&Sample| {
            sample.name == name
                && labels.iter().all(|(label, value)| {
                    sample.labels.get(*label).is_some_and(|found| found == value)
                })
        };
        let found: Vec<_> = self.samples.iter().filter(fits).collect();
        match found[..] {
            [sample] => sample.value,
            _ => panic!("{} samples of {name} {labels:?}", found.len()),
        }
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.samples.iter().any(|sample| sample.name == name)
    }

    pub(crate) fn families(&self) -> impl Iterator<Item = &str> {
        self.kinds.keys().map(String::as_str)
    }

    /// Buckets grow, the last one is infinite and the count; the sum fits.
    fn check_histograms(&self) {
        for (family, _) in self.kinds.iter().filter(|(_, kind)| *kind == "histogram") {
            let (buckets, sum) = (format!("{family}_bucket"), format!("{family}_sum"));
            for total in self.samples.iter().filter(|s| s.name == format!("{family}_count")) {
                let mut below = (f64::NEG_INFINITY, 0.0);
                for bucket in self.samples.iter().filter(|sample| sample.name == buckets) {
                    let mut labels = bucket.labels.clone();
                    let le = labels.remove("le").expect("a bound");
                    if labels == total.labels {
                        let le: f64 = le.parse().unwrap();
                        assert!(le > below.0 && bucket.value >= below.1, "{bucket:?}");
                        below = (le, bucket.value);
                    }
                }
                assert_eq!(below, (f64::INFINITY, total.value), "{total:?}");
                let sums = |s: &&Sample| s.name == sum && s.labels == total.labels;
                assert_eq!(self.samples.iter().filter(sums).count(), 1);
            }
        }
    }
}

fn is_name(name: &str) -> bool {
    name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == ':')
        && !name.starts_with(|c: char| c.is_ascii_digit())
}

#[track_caller]
fn sample(line: &str) -> Sample {
    let at = line.find(['{', ' ']).expect("a name, then labels or a value");
    let (name, rest) = line.split_at(at);
    assert!(is_name(name), "{line}");
    let mut labels = BTreeMap::new();
    let rest = match rest.strip_prefix('{') {
        None => rest,
        Some(mut rest) => loop {
            let (label, after) = rest.split_once("=\"").expect("a label");
            assert!(is_name(label), "{line}");
            let (value, after) = quoted(after);
            assert_eq!(labels.insert(label.to_owned(), value), None, "{line}");
            match after.strip_prefix(',') {
                Some(more) => rest = more,
                None => break after.strip_prefix('}').expect("the end of the labels"),
            }
        },
    };
    let value = rest.strip_prefix(' ').expect("a space").parse().expect("a number");
    Sample { name: name.to_owned(), labels, value }
}

/// A value up to its closing quote, and what follows it.
fn quoted(text: &str) -> (String, &str) {
    let mut value = String::new();
    let mut chars = text.char_indices();
    while let Some((at, char)) = chars.next() {
        match char {
            '"' => return (value, &text[at + 1..]),
            '\\' => match chars.next() {
                Some((_, 'n')) => value.push('\n'),
                Some((_, escaped @ ('\\' | '"'))) => value.push(escaped),
                other => panic!("{other:?} is escaped"),
            },
            char => value.push(char),
        }
    }
    panic!("{text} has no end");
}

#[test]
fn the_reader_reads() {
    let page =
        "# HELP a_total x\n# TYPE a_total counter\na_total{b=\"\\\\\\\"\\n,}\",c=\"\"} 1.5\n";
    let scrape = Scrape::of(page);
    assert_eq!(scrape.value("a_total", &[("b", "\\\"\n,}")]), 1.5);
    assert!(scrape.has("a_total") && scrape.families().eq(["a_total"]));
}
