//! The report of `nfskit trace`: cumulative transfer, rate and time of each transaction, calls
//! outstanding, latencies over time, gaps.
//!
//! As with the study, [`TraceReport`] is plain data, and the page needs no script and no network.
//! The first three plots are those of Boumenot 2002, chapter 11.

use maud::{Markup, html};
use plotters::prelude::*;

use super::canvas::{Axis, Frame, Ink, chart, draw_line, scaled, svg};
use super::figure::{Figure, Table};
use super::number::{number, tied};
use super::page::{code, page, section, table};
use super::{LatencyPlot, Numbers, TransferPlot, latency, transfers};

/// Everything the report shows.
#[derive(Clone, Debug, Default)]
pub struct TraceReport {
    pub title: String,
    /// What was captured, as name and value.
    pub facts: Vec<(String, String)>,
    /// What the verdict is: of what, and its sentences.
    pub findings: Vec<(String, Vec<String>)>,
    pub tables: Vec<Numbers>,
    /// ct: bytes over time, with the gaps.
    pub cumulative: TransferPlot,
    /// st: milliseconds, and MiB/s of the transaction whose reply came then.
    pub rates: Vec<(f64, f64)>,
    /// rt: response times over time, and how often which.
    pub latency: LatencyPlot,
    /// Milliseconds, and most calls outstanding from then on.
    pub outstanding: Vec<(f64, f64)>,
    pub heat: HeatMap,
    /// The command line that makes this report again.
    pub command: String,
}

/// How many calls took how long, over time.
#[derive(Clone, Debug, Default)]
pub struct HeatMap {
    /// Width of a column.
    pub column_ms: f64,
    /// Where each row begins, in microseconds.
    pub rows_us: Vec<f64>,
    /// Calls by column, and in it by row.
    pub columns: Vec<Vec<u64>>,
}

/// Columns of the map as shown.
const HEAT_COLUMNS_MAX: usize = 120;
/// Dots of a plot: 100 bytes of SVG each.
const DOTS_MAX: usize = 2_000;

fn findings(findings: &[(String, Vec<String>)]) -> Option<Markup> {
    let content = html! {
        dl.facts {
            @for (name, sentences) in findings {
                div { dt { (name) } dd { @for sentence in sentences { div { (tied(sentence)) } } } }
            }
        }
    };
    (!findings.is_empty()).then_some(content)
}

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &TraceReport) -> String {
    let sections = html! {
        (section("Findings", findings(&report.findings)))
        @for numbers in &report.tables { (table(numbers)) }
        (section("Cumulative transfer (ct)", transfers::figure(&report.cumulative)))
        (figures("Rate of each transaction (st)", rates(&report.rates)))
        (section("Response times (rt)", response_times(&report.latency)))
        (figures("Latency over time", heat(&report.heat)))
        (figures("Calls outstanding", outstanding(&report.outstanding)))
        (section("How to make it again", code(&report.command)))
    };
    page(&report.title, &report.facts, &sections)
}

fn figures(heading: &str, figure: Option<Figure>) -> Markup {
    section(heading, figure.map(|figure| figure.render()))
}

fn response_times(plot: &LatencyPlot) -> Option<Markup> {
    let has_calls = plot.latencies.iter().any(|latency| !latency.histogram.is_empty());
    has_calls.then(|| latency::figures(plot))
}

/// Points that can be drawn, no more than the eye can tell apart.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let fit = |(x, y): &&(f64, f64)| x.is_finite() && y.is_finite() && *x >= 0.0 && *y > 0.0;
    let fit: Vec<(f64, f64)> = points.iter().filter(fit).copied().collect();
    fit.iter().step_by(fit.len().div_ceil(DOTS_MAX).max(1)).copied().collect()
}

fn rates(points: &[(f64, f64)]) -> Option<Figure> {
    let dots = thinned(points);
    dots.first()?;
    let x = Axis::from_zero("time (ms)", dots.iter().map(|dot| dot.0));
    let y = Axis::log10("MiB/s", dots.iter().map(|dot| dot.1));
    let title = "Bytes of a transaction over its response time".to_owned();
    let drawing = svg(260, &title, |area| {
        let chart = chart(area, &x, &y, Frame::default())?;
        let colour = Ink::Series(0).colour().mix(0.6).filled();
        for (ms, rate) in &dots {
            let at = (x.nearest(*ms), y.nearest(*rate));
            chart.plotting_area().draw(&Circle::new(at, scaled(1.6), colour))?;
        }
        Ok(())
    });
    let mut rates: Vec<f64> = dots.iter().map(|dot| dot.1).collect();
    rates.sort_by(f64::total_cmp);
    let mut table = Table::new(["", "MiB/s"]);
    for (name, at) in [("lowest", 0), ("median", rates.len() / 2), ("highest", rates.len() - 1)] {
        table.row([name.to_owned(), number(rates[at])]);
    }
    let caption = "Bands are transactions that went alike; a slope is one that waited.".to_owned();
    Some(Figure { title, legend: Vec::new(), drawing, caption, table })
}

fn outstanding(points: &[(f64, f64)]) -> Option<Figure> {
    let dots = thinned(points);
    dots.first()?;
    let x = Axis::from_zero("time (ms)", dots.iter().map(|dot| dot.0));
    let y = Axis::from_zero("calls", dots.iter().map(|dot| dot.1));
    let title = "Most calls without a reply, over time".to_owned();
    let drawing = svg(200, &title, |area| {
        let mut chart = chart(area, &x, &y, Frame::default())?;
        let line = dots.iter().map(|(ms, calls)| (x.nearest(*ms), y.nearest(*calls)));
        draw_line(&mut chart, line, Ink::Series(1).stroke(1.5))
    });
    let most = dots.iter().map(|dot| dot.1).fold(0.0, f64::max);
    let mut table = Table::new(["", "calls"]);
    table.row(["most".to_owned(), number(most)]);
    let caption = match most {
        ..=1.0 => "Never more than one: the client waits for each reply before it calls again.",
        _ => "Where the line is at one, the client waits for each reply before it calls again.",
    };
    let caption = caption.to_owned();
    Some(Figure { title, legend: Vec::new(), drawing, caption, table })
}

fn heat(heat: &HeatMap) -> Option<Figure> {
    let together = heat.columns.len().div_ceil(HEAT_COLUMNS_MAX).max(1);
    let columns: Vec<Vec<u64>> = heat
        .columns
        .chunks(together)
        .map(|columns| {
            let row = |row: usize| columns.iter().filter_map(|column| column.get(row)).sum();
            (0..heat.rows_us.len()).map(row).collect()
        })
        .collect();
    let used = |row: &usize| columns.iter().any(|column| column[*row] > 0);
    let first = (0..heat.rows_us.len()).find(used)?;
    let last = (0..heat.rows_us.len()).rfind(used)?;
    let most = columns.iter().flatten().copied().max()?;
    let ms = heat.column_ms * together as f64;
    let end_ms = ms * columns.len() as f64;
    let x = Axis::from_zero("time (ms)", [end_ms]);
    let top_us = heat.rows_us.get(last + 1).copied().unwrap_or(heat.rows_us[last] * 1.4);
    let y = Axis::log10("response time (us)", [heat.rows_us[first], top_us]);
    let title = "Calls by response time".to_owned();
    let drawing = svg(280, &title, |area| {
        let chart = chart(area, &x, &y, Frame::default())?;
        for (index, column) in columns.iter().enumerate() {
            for row in (first..=last).filter(|row| column[*row] > 0) {
                let above = heat.rows_us.get(row + 1).copied().unwrap_or(top_us);
                // By orders of magnitude, so that a few slow calls among many are seen.
                let share = (column[row] as f64).ln_1p() / (most as f64).ln_1p();
                let colour = Ink::Series(0).colour().mix(0.15 + 0.85 * share).filled();
                let (left, right) = (ms * index as f64, ms * (index + 1) as f64);
                let corners = [
                    (x.nearest(left), y.nearest(heat.rows_us[row])),
                    (x.nearest(right), y.nearest(above)),
                ];
                chart.plotting_area().draw(&Rectangle::new(corners, colour))?;
            }
        }
        Ok(())
    });
    let mut table = Table::new(["response time from (us)", "calls"]);
    for row in first..=last {
        let calls: u64 = columns.iter().map(|column| column[row]).sum();
        table.row([number(heat.rows_us[row]), calls.to_string()]);
    }
    let caption = "The darker, the more calls, by orders of magnitude.".to_owned();
    Some(Figure { title, legend: Vec::new(), drawing, caption, table })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_on_the_page_and_text_is_escaped() {
        let report = TraceReport {
            title: "A <trace>".into(),
            findings: vec![("gaps".into(), vec!["Stalls are commits.".into()])],
            rates: vec![(1.0, 20.0), (f64::NAN, 1.0)],
            outstanding: vec![(0.0, 1.0), (5.0, 16.0)],
            heat: HeatMap {
                column_ms: 1.0,
                rows_us: vec![1.0, 1.4, 2.0, 2.8],
                columns: vec![vec![0, 5, 0, 0], vec![0, 0, 1, 0]],
            },
            command: "nfskit trace f --html r".into(),
            ..TraceReport::default()
        };
        let page = html(&report);
        for text in
            ["A &lt;trace&gt;", "Stalls are commits.", "(st)", "Latency over time", "outstanding"]
        {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<script"));
    }

    #[test]
    fn a_report_without_data_has_no_empty_sections() {
        assert!(!html(&TraceReport::default()).contains("<h2>"));
    }
}
