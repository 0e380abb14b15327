//! A report of curves: one number over another, as a model has it, as it was measured, as a world
//! has it; with the tables behind them.
//!
//! As with the study, [`CurvesReport`] is plain data, and the page needs no script and no network.

use maud::{Markup, html};

use super::canvas::{self, Area, Axis, Drawn, Frame, Ink, draw_line, draw_marker};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::number;
use super::page::{all, list, method, page, section};

/// Everything the report shows.
#[derive(Clone, Debug, Default)]
pub struct CurvesReport {
    pub title: String,
    /// What was measured, as name and value.
    pub facts: Vec<(String, String)>,
    /// What comes out, a sentence each.
    pub findings: Vec<String>,
    pub plots: Vec<CurvesPlot>,
    /// "How this was measured", one paragraph each.
    pub method: Vec<String>,
    /// The command line that makes this report again.
    pub command: String,
}

/// Some curves on the same axes.
#[derive(Clone, Debug, Default)]
pub struct CurvesPlot {
    pub title: String,
    pub caption: String,
    /// The axes with their units.
    pub x: String,
    pub y: String,
    /// Both axes in powers of ten: for what goes over some of them.
    pub is_logarithmic: bool,
    pub curves: Vec<Line>,
    /// The numbers: a heading for each column, then the rows.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

/// One curve.
#[derive(Clone, Debug, Default)]
pub struct Line {
    pub name: String,
    /// Drawn as a line; otherwise as markers.
    pub is_line: bool,
    pub points: Vec<(f64, f64)>,
}

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &CurvesReport) -> String {
    let sections = html! {
        (section("What comes out", list(&report.findings)))
        (section("Curves", all(&report.plots, figure)))
        (section("How this was measured", method(&report.method, &report.command)))
    };
    page(&report.title, &report.facts, &sections)
}

/// Nothing without a single point.
fn figure(plot: &CurvesPlot) -> Option<Markup> {
    let finite = |(x, y): &(f64, f64)| x.is_finite() && y.is_finite();
    let points: Vec<(f64, f64)> =
        plot.curves.iter().flat_map(|line| &line.points).copied().filter(finite).collect();
    points.first()?;
    let axis = |label: &str, of: fn(&(f64, f64)) -> f64| {
        let values = points.iter().map(of);
        match plot.is_logarithmic {
            true => Axis::log10(label, values),
            false => Axis::from_zero(label, values),
        }
    };
    let (x, y) = (axis(&plot.x, |point| point.0), axis(&plot.y, |point| point.1));
    let figure = Figure {
        title: plot.title.clone(),
        legend: plot.curves.iter().enumerate().map(key).collect(),
        drawing: canvas::svg(380, &plot.title, |area| draw(area, plot, &x, &y)),
        caption: plot.caption.clone(),
        table: table(plot),
    };
    Some(figure.render())
}

fn key((index, line): (usize, &Line)) -> Key {
    let swatch = match line.is_line {
        true => Swatch::Line(Ink::Series(index)),
        false => Swatch::Marker(index),
    };
    Key::new(swatch, line.name.clone())
}

/// The numbers that were given, or those of the points.
fn table(plot: &CurvesPlot) -> Table {
    if !plot.rows.is_empty() {
        return Table { columns: plot.columns.clone(), rows: plot.rows.clone() };
    }
    let mut table = Table::new(
        ["curve".to_owned(), plot.x.clone(), plot.y.clone()].each_ref().map(String::as_str),
    );
    for line in &plot.curves {
        for (x, y) in &line.points {
            table.row([line.name.clone(), number(*x), number(*y)]);
        }
    }
    table
}

fn draw(area: &Area<'_>, plot: &CurvesPlot, x: &Axis, y: &Axis) -> Drawn {
    let mut chart = canvas::chart(area, x, y, Frame { top: 8.0, ..Frame::default() })?;
    for (index, line) in plot.curves.iter().enumerate() {
        let points =
            line.points.iter().filter_map(|(px, py)| Some((x.position(*px)?, y.position(*py)?)));
        if line.is_line {
            draw_line(&mut chart, points, Ink::Series(index).stroke(2.0))?;
            continue;
        }
        for at in points {
            draw_marker(&chart, at, index, 4.0)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> CurvesReport {
        let line = |name: &str, is_line, points| Line { name: name.into(), is_line, points };
        CurvesReport {
            title: "Sensitivity".into(),
            facts: vec![("Mix".into(), "a <mix>".into())],
            findings: vec!["It grows by 2.".into()],
            plots: vec![CurvesPlot {
                title: "Response time against L".into(),
                x: "L (us)".into(),
                y: "response (us)".into(),
                is_logarithmic: true,
                curves: vec![
                    line("model", true, vec![(10.0, 300.0), (40_000.0, 80_300.0)]),
                    line("live", false, vec![(10.0, f64::NAN), (-1.0, 2.0), (150.0, 620.0)]),
                ],
                ..CurvesPlot::default()
            }],
            method: vec!["We looked.".into()],
            command: "nfskit papers sensitivity".into(),
        }
    }

    #[test]
    fn everything_is_on_the_page_and_text_is_escaped() {
        let page = html(&report());
        for text in ["a &lt;mix&gt;", "It grows", "Response time against L", "live", "We looked."] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<script"));
    }

    #[test]
    fn a_report_without_data_has_no_empty_sections() {
        assert!(!html(&CurvesReport::default()).contains("<h2>"));
    }
}
