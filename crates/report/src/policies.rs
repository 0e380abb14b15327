//! The report of `nfskit bench policies`: every write() call of several policies, beside what the
//! paper's figures show.
//!
//! As with the study, [`PoliciesReport`] is plain data, and the page needs no script and no
//! network.

use maud::{Markup, html};

use super::figure::{Figure, Table};
use super::latency;
use super::number::tied;
use super::page::{method, page, section, table};
use super::panels::{Dots, Head};
use super::{LatencyPlot, Numbers};

/// Everything the report shows.
#[derive(Clone, Debug, Default)]
pub struct PoliciesReport {
    pub title: String,
    /// What was measured, as name and value.
    pub facts: Vec<(String, String)>,
    pub findings: Vec<Finding>,
    /// Calls in their order, one plot each.
    pub calls: Vec<CallPlot>,
    /// How often which time, one plot each.
    pub spreads: Vec<SpreadPlot>,
    pub tables: Vec<Numbers>,
    /// "How this was measured", one paragraph each.
    pub method: Vec<String>,
    /// The command line that makes this report again.
    pub command: String,
}

/// Something the paper found.
#[derive(Clone, Debug)]
pub struct Finding {
    pub seen: Seen,
    pub text: String,
}

perf::named! {
    /// Whether it is so here, too.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub enum Seen {
        AsThere => "seen",
        /// The same, but much more of it or much less.
        OfAnotherSize => "seen, but of another size",
        Not => "not seen",
        /// What was measured does not decide it.
        Unknown => "cannot be decided",
    }
}

/// The time of every call by its number, one panel for each policy.
#[derive(Clone, Debug, Default)]
pub struct CallPlot {
    pub title: String,
    pub caption: String,
    pub policies: Vec<Calls>,
}

#[derive(Clone, Debug, Default)]
pub struct Calls {
    pub name: String,
    /// Its numbers in short.
    pub note: String,
    /// In microseconds.
    pub micros: Vec<f64>,
}

/// Distributions, with a sentence of what to see.
#[derive(Clone, Debug, Default)]
pub struct SpreadPlot {
    pub plot: LatencyPlot,
    pub caption: String,
}

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &PoliciesReport) -> String {
    let sections = html! {
        (findings(&report.findings))
        @for numbers in &report.tables { (table(numbers)) }
        (figures("Every call", report.calls.iter().filter_map(calls)))
        (figures("How often which time", report.spreads.iter().filter_map(spread)))
        (section("How this was measured", method(&report.method, &report.command)))
    };
    page(&report.title, &report.facts, &sections)
}

fn findings(findings: &[Finding]) -> Markup {
    let content = html! {
        ul {
            @for finding in findings {
                li {
                    b { (finding.seen.name()) ": " }
                    (tied(&finding.text))
                }
            }
        }
    };
    section(
        "What the paper found, and what is seen here",
        (!findings.is_empty()).then_some(content),
    )
}

fn figures(heading: &str, figures: impl Iterator<Item = Figure>) -> Markup {
    let figures: Vec<Markup> = figures.map(|figure| figure.render()).collect();
    let content = html! { @for figure in &figures { (figure) } };
    section(heading, (!figures.is_empty()).then_some(content))
}

fn calls<'a>(plot: &'a CallPlot) -> Option<Figure> {
    let head = |calls: &'a Calls| Head { name: &calls.name, note: calls.note.clone() };
    let heads: Vec<Head<'_>> = plot.policies.iter().map(head).collect();
    let crowds: Vec<Vec<(f64, f64)>> = plot.policies.iter().map(numbered).collect();
    let drawing = DOTS.svg(&plot.title, &heads, &crowds)?;
    let (title, caption) = (plot.title.clone(), plot.caption.clone());
    Some(Figure { title, legend: Vec::new(), drawing, caption, table: calls_table(plot) })
}

fn calls_table(plot: &CallPlot) -> Table {
    let mut table = Table::new(["policy", "calls", "numbers"]);
    for calls in &plot.policies {
        table.row([calls.name.clone(), calls.micros.len().to_string(), calls.note.clone()]);
    }
    table
}

/// As many dots as the eye can distinguish, and 100 bytes of SVG each.
const DOTS: Dots<'_> = Dots {
    x: "number of the call",
    y: "write() (us)",
    most: 1_600,
    highest_part: 4,
    panel_pixels: 150,
    radius: 1.6,
    opacity: 0.6,
};

/// The time of each call by its number.
fn numbered(calls: &Calls) -> Vec<(f64, f64)> {
    let numbered = calls.micros.iter().enumerate().map(|(at, micros)| (at as f64, *micros));
    numbered.filter(|(_, micros)| micros.is_finite()).collect()
}

fn spread(plot: &SpreadPlot) -> Option<Figure> {
    let figure = latency::distribution(&plot.plot)?;
    Some(Figure { title: plot.plot.title.clone(), caption: plot.caption.clone(), ..figure })
}

#[cfg(test)]
mod tests {
    use perf::histogram::Histogram;
    use perf::units::Nanos;

    use super::*;
    use crate::Latency;

    fn report() -> PoliciesReport {
        let mut histogram = Histogram::new();
        histogram.record(Nanos::from_micros(12));
        let latency = Latency { name: "hashed, fast".into(), calls: Vec::new(), histogram };
        PoliciesReport {
            title: "Five policies".into(),
            facts: vec![("Link".into(), "a <fast> one".into())],
            findings: vec![Finding { seen: Seen::Not, text: "nothing grows".into() }],
            calls: vec![CallPlot {
                title: "Figure 2".into(),
                caption: "Spikes.".into(),
                policies: vec![Calls {
                    name: "linux-2.4.4".into(),
                    note: "mean 12 us".into(),
                    micros: (0..5_000_u32).map(|n| f64::from(n % 85)).collect(),
                }],
            }],
            spreads: vec![SpreadPlot {
                plot: LatencyPlot { title: "Figure 5".into(), latencies: vec![latency] },
                caption: "Two servers.".into(),
            }],
            tables: vec![Numbers {
                title: "Table 1".into(),
                columns: vec!["server".into(), "lock".into()],
                rows: vec![vec!["fast".into(), "115".into()]],
                ..Numbers::default()
            }],
            method: vec!["We looked.".into()],
            command: "nfskit bench policies".into(),
        }
    }

    #[test]
    fn everything_is_on_the_page_and_text_is_escaped() {
        let page = html(&report());
        for text in [
            "Five policies",
            "a &lt;fast&gt; one",
            "not seen: ",
            "Figure 2",
            "linux-2.4.4",
            "Figure 5",
            "Table 1",
            "115",
            "We looked.",
            "nfskit bench policies",
        ] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<script"));
    }

    #[test]
    fn a_report_without_data_has_no_empty_sections_and_strange_numbers_no_dots() {
        assert!(!html(&PoliciesReport::default()).contains("<h2>"));
        let calls =
            Calls { micros: vec![f64::NAN, f64::INFINITY, -1.0, 0.0, 2.0], ..Calls::default() };
        let dots = |calls: &Calls, most| DOTS.chosen(&numbered(calls), most);
        assert_eq!(dots(&calls, DOTS.most), [(4.0, 2.0)]);
        let many = Calls { micros: vec![3.0; 100_000], ..Calls::default() };
        assert!(dots(&many, DOTS.most).len() <= DOTS.most + 1);
        // The slowest stay, however few there may be.
        let mut spiky = many;
        spiky.micros[7] = 900.0;
        assert!(dots(&spiky, DOTS.most / 2).contains(&(7.0, 900.0)));
    }
}
