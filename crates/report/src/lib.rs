//! The report of `nfskit study`: what the time goes to, what the model says, what was gained.
//!
//! [`StudyReport`] is plain data that the study fills in. From it come two views:
//!
//! - [`html`]: one file that needs no network and no script, reads well on a screen (light or
//!   dark), on paper and to a screen reader. Every plot has the same parts: a title, a legend, axes
//!   with units, a sentence that says what to see, and the numbers as a table beneath.
//! - [`summary()`]: at most [`SUMMARY_LINES_MAX`] lines of plain text.
//!
//! ```text
//!  StudyReport --> page.rs (sections) --> cycles.rs, throughput.rs, transfers.rs, latency.rs
//!             |                              each: figure = legend + canvas + caption + table
//!             `-> summary.rs
//! ```
//!
//! Numbers may be missing, not finite or absurdly large: a plot leaves such points out, a table
//! prints a dash. A section without data does not appear.

mod canvas;
pub mod curves;
mod cycles;
pub mod doctor;
mod figure;
mod latency;
pub mod load_curve;
mod number;
mod page;
mod panels;
pub mod policies;
mod summary;
mod throughput;
pub mod trace;
mod transfers;

use perf::histogram::Histogram;
use perf::record::{Durability, Warning};
use perf::stats::Interval;

pub use page::{html, partial};
pub use summary::{SUMMARY_LINES_MAX, summary};

/// Everything the report shows. Empty lists and texts are left out of it.
#[derive(Clone, Debug, Default)]
pub struct StudyReport {
    pub title: String,
    /// When it was made, as it is to be printed.
    pub generated_at: String,
    /// The command line that makes this report again, quoted for a shell.
    pub command: String,
    /// What was measured, in words.
    pub target: String,
    pub durability: Option<Durability>,
    /// The link between client and server, in words: real or emulated, L, o, g, G.
    pub link: String,
    /// Machine and system, as name and value.
    pub environment: Vec<(String, String)>,
    pub warnings: Vec<Warning>,
    pub headline: Headline,
    pub parameters: Vec<Parameter>,
    pub cycles: Vec<Cycle>,
    /// One plot each.
    pub throughput: Vec<ThroughputPlot>,
    pub steps: Vec<Step>,
    /// One plot each.
    pub transfers: Vec<TransferPlot>,
    /// One pair of plots each.
    pub latency: Vec<LatencyPlot>,
    /// Further tables, each a section of its own.
    pub tables: Vec<Numbers>,
    /// "How this was measured", one paragraph each.
    pub method: Vec<String>,
    /// Name of the file with the raw data, such as `run.json`.
    pub raw_data: String,
}

/// What the reader takes home.
#[derive(Clone, Debug, Default)]
pub struct Headline {
    /// Which term dominates the cycle, and what removing it gained.
    pub sentence: String,
    /// Gain predicted and measured, limit, efficiency, best window.
    pub facts: Vec<Fact>,
}

/// One number of the headline.
#[derive(Clone, Debug, Default)]
pub struct Fact {
    pub label: String,
    /// With its unit.
    pub value: String,
    /// A few words beneath, or nothing.
    pub note: String,
}

/// A fitted or given parameter of the model.
#[derive(Clone, Debug, Default)]
pub struct Parameter {
    /// Its symbol, such as `T_prop`.
    pub name: String,
    pub value: f64,
    pub unit: String,
    pub ci95: Option<Interval>,
    /// How many measurements it rests on.
    pub n: Option<u64>,
    /// How it was measured, as a sentence.
    pub how: String,
}

/// Where one call's time goes in one configuration.
#[derive(Clone, Debug, Default)]
pub struct Cycle {
    /// Such as `8 KiB, stall, 1 thread, N=1`.
    pub name: String,
    /// In the order of a call's way. The same name has the same colour in all cycles.
    pub terms: Vec<Term>,
    /// The cycle as measured, to stand beside the sum of the terms.
    pub measured_us: Option<f64>,
}

/// One share of a cycle.
#[derive(Clone, Debug, Default)]
pub struct Term {
    pub name: String,
    pub us: f64,
}

/// Throughput against the number of outstanding calls.
#[derive(Clone, Debug, Default)]
pub struct ThroughputPlot {
    /// Such as `8 KiB writes`.
    pub title: String,
    pub curves: Vec<Curve>,
    pub ceilings: Vec<Ceiling>,
}

/// One configuration over all window sizes.
#[derive(Clone, Debug, Default)]
pub struct Curve {
    /// Such as `stall, 1 thread`.
    pub name: String,
    pub points: Vec<CurvePoint>,
}

/// What N outstanding calls give.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CurvePoint {
    /// N: calls outstanding.
    pub n: u32,
    pub measured_mib_s: Option<f64>,
    /// Lowest and highest repetition, or an interval: the bars of the plot.
    pub spread_mib_s: Option<Interval>,
    pub predicted_mib_s: Option<f64>,
    /// By a run of the program in virtual time, with the same parameters.
    pub simulated_mib_s: Option<f64>,
}

impl CurvePoint {
    /// How far the prediction is above (+) or below (-) the measurement, in percent of the
    /// measurement.
    pub fn error_pct(&self) -> Option<f64> {
        percent_above(self.predicted_mib_s?, self.measured_mib_s?)
    }
}

/// What no window can exceed.
#[derive(Clone, Debug, Default)]
pub struct Ceiling {
    /// Such as `link` or `storage`.
    pub label: String,
    pub mib_s: f64,
}

/// One change that was applied, with what it was to give and what it gave.
#[derive(Clone, Debug, Default)]
pub struct Step {
    pub change: String,
    pub before_mib_s: f64,
    pub predicted_mib_s: f64,
    pub measured_mib_s: f64,
}

impl Step {
    pub fn predicted_gain_pct(&self) -> Option<f64> {
        percent_above(self.predicted_mib_s, self.before_mib_s)
    }

    pub fn measured_gain_pct(&self) -> Option<f64> {
        percent_above(self.measured_mib_s, self.before_mib_s)
    }

    /// As in [`CurvePoint::error_pct`].
    pub fn error_pct(&self) -> Option<f64> {
        percent_above(self.predicted_mib_s, self.measured_mib_s)
    }
}

/// Transfers beneath each other on one scale of time and bytes.
#[derive(Clone, Debug, Default)]
pub struct TransferPlot {
    pub title: String,
    pub transfers: Vec<Transfer>,
}

/// One transfer: bytes over time, and the times in which nothing moved.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    pub name: String,
    /// Milliseconds since the start, and MiB transferred by then.
    pub points: Vec<(f64, f64)>,
    /// None where it is not known when nothing moved.
    pub stalls: Option<Vec<Stall>>,
}

/// A time in which the transfer stood still.
#[derive(Clone, Debug, Default)]
pub struct Stall {
    pub start_ms: f64,
    pub end_ms: f64,
    /// What it waited for, such as `COMMIT`.
    pub label: String,
}

/// Response times beneath each other on one scale.
#[derive(Clone, Debug, Default)]
pub struct LatencyPlot {
    pub title: String,
    pub latencies: Vec<Latency>,
}

/// The response times of one configuration.
#[derive(Clone, Debug, Default)]
pub struct Latency {
    pub name: String,
    /// Milliseconds since the start, and the response time of the call in milliseconds. May be
    /// thinned beforehand, and is thinned further for the plot.
    pub calls: Vec<(f64, f64)>,
    /// All response times, never thinned.
    pub histogram: Histogram,
}

/// A table beneath its heading: the first column is text.
#[derive(Clone, Debug, Default)]
pub struct Numbers {
    pub title: String,
    pub caption: String,
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Numbers {
    pub fn new<const N: usize>(
        title: &str,
        caption: &str,
        columns: [&str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        let columns = columns.map(str::to_owned).into();
        let rows = rows.into_iter().map(Vec::from).collect();
        Self { title: title.to_owned(), caption: caption.to_owned(), columns, rows }
    }
}

/// How far `value` is above `base`, in percent of `base`; `None` where that has no meaning.
fn percent_above(value: f64, base: f64) -> Option<f64> {
    let percent = (value / base - 1.0) * 100.0;
    (base > 0.0 && percent.is_finite()).then_some(percent)
}

#[cfg(test)]
mod fixtures {
    use super::*;

    /// A report with one of everything, with the numbers given by `value` in turn.
    pub(super) fn report(mut value: impl FnMut() -> f64) -> StudyReport {
        let interval = Interval { lo: value(), hi: value() };
        StudyReport {
            title: "A study".into(),
            generated_at: "today".into(),
            command: "nfskit study".into(),
            target: "embedded server".into(),
            durability: Some(Durability::Memory),
            link: "loopback".into(),
            environment: vec![("Kernel".into(), "Linux".into())],
            warnings: vec![Warning::new("noisy", "It was noisy.", "repeat it.")],
            headline: Headline {
                sentence: "The link dominates.".into(),
                facts: vec![Fact {
                    label: "Limit".into(),
                    value: "118 MiB/s".into(),
                    note: "the link".into(),
                }],
            },
            parameters: vec![Parameter {
                name: "T_prop".into(),
                value: value(),
                unit: "µs".into(),
                ci95: Some(interval),
                n: Some(7),
                how: "By hand.".into(),
            }],
            cycles: vec![Cycle {
                name: "cycle one".into(),
                terms: ["T_prop", "T_ser"]
                    .map(|name| Term { name: name.into(), us: value() })
                    .into(),
                measured_us: Some(value()),
            }],
            throughput: vec![ThroughputPlot {
                title: "8 KiB writes".into(),
                curves: ["curve one", "curve two"]
                    .map(|name| Curve {
                        name: name.into(),
                        points: [1, 2, 64]
                            .map(|n| CurvePoint {
                                n,
                                measured_mib_s: Some(value()),
                                spread_mib_s: Some(interval),
                                predicted_mib_s: Some(value()),
                                simulated_mib_s: None,
                            })
                            .into(),
                    })
                    .into(),
                ceilings: vec![Ceiling { label: "ceiling one".into(), mib_s: value() }],
            }],
            steps: vec![Step {
                change: "step one".into(),
                before_mib_s: value(),
                predicted_mib_s: value(),
                measured_mib_s: value(),
            }],
            transfers: vec![TransferPlot {
                title: "transfers".into(),
                transfers: vec![Transfer {
                    name: "transfer one".into(),
                    points: [(); 3].map(|()| (value(), value())).into(),
                    stalls: Some(vec![Stall {
                        start_ms: value(),
                        end_ms: value(),
                        label: "COMMIT".into(),
                    }]),
                }],
            }],
            latency: vec![LatencyPlot {
                title: "latencies".into(),
                latencies: vec![Latency {
                    name: "latency one".into(),
                    calls: [(); 3].map(|()| (value(), value())).into(),
                    histogram: [(); 3]
                        .map(|()| perf::units::Nanos::from_secs_f64(value()))
                        .into_iter()
                        .collect(),
                }],
            }],
            tables: vec![Numbers {
                title: "table one".into(),
                caption: "A caption.".into(),
                columns: vec!["name".into()],
                rows: vec![vec!["cell one".into()]],
            }],
            method: vec!["We looked.".into()],
            raw_data: "run.json".into(),
        }
    }

    /// Numbers that no plot is made for, in an order that mixes them.
    pub(super) fn wild() -> impl FnMut() -> f64 {
        let numbers = [
            f64::NAN,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::MAX,
            f64::MIN,
            f64::MIN_POSITIVE,
            -0.0,
            1e99,
            -1e-99,
            1.0,
            1e18,
        ];
        let mut turn = 0;
        move || {
            turn += 7;
            numbers[turn % numbers.len()]
        }
    }
}
