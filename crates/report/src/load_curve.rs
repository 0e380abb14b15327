//! The report of load curves: response time over throughput, of one server or several, with base,
//! slope, knee and saturation.
//!
//! As with the study, [`LoadCurves`] is plain data, and the page needs no script and no network.

use maud::{Markup, html};
use perf::stats::Interval;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::Numbers;
use super::canvas::{
    self, Area, Axis, Chart, Drawn, Frame, Ink, draw_dashes, draw_line, draw_marker, scaled,
};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::{UNKNOWN, distinct, interval, number, tied};
use super::page::{list, method, page, section, table};

/// Everything the report shows.
#[derive(Clone, Debug, Default)]
pub struct LoadCurves {
    pub title: String,
    /// What was measured, as name and value.
    pub facts: Vec<(String, String)>,
    /// Rules that are not held, and what differs from the benchmark's own.
    pub notes: Vec<String>,
    pub servers: Vec<LoadCurve>,
    /// Which of several servers is faster, as far as the points show it.
    pub compared: Vec<String>,
    pub tables: Vec<Numbers>,
    /// "How this was measured", one paragraph each.
    pub method: Vec<String>,
    /// The command line that makes this report again.
    pub command: String,
}

/// One server. Throughput in operations a second, response times in milliseconds.
#[derive(Clone, Debug, Default)]
pub struct LoadCurve {
    pub name: String,
    /// In the order of their loads.
    pub points: Vec<LoadPoint>,
    pub base_ms: Option<f64>,
    /// The line of the slope: what it is at no load, and how much it grows with each operation a
    /// second; it is drawn up to the knee.
    pub line: Option<(f64, f64)>,
    pub knee: Option<(f64, f64)>,
    /// The highest throughput of a valid point; the line of the slope ends there without a knee.
    pub highest_per_s: Option<f64>,
    pub saturation_per_s: Option<f64>,
    /// The same with their intervals, as name and value.
    pub numbers: Vec<(String, String)>,
}

#[derive(Clone, Copy, Debug, Default)]
pub struct LoadPoint {
    pub per_s: f64,
    pub response_ms: f64,
    pub interval_ms: Option<Interval>,
    pub worth: Worth,
}

perf::named! {
    /// What a point is worth.
    #[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
    pub enum Worth {
        #[default]
        Valid => "valid",
        /// More was offered than the server can do: not on the curve.
        Over => "over",
        /// It does not hold the rules.
        Invalid => "invalid",
    }
}

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &LoadCurves) -> String {
    let sections = html! {
        (section("The curve in numbers", numbers(&report.servers)))
        (section("Beside each other", list(&report.compared)))
        (section("Response time over throughput", figures(&report.servers)))
        (section("What to know before trusting it", list(&report.notes)))
        @for numbers in &report.tables { (table(numbers)) }
        (section("How this was measured", method(&report.method, &report.command)))
    };
    page(&report.title, &report.facts, &sections)
}

/// A column for each server.
fn numbers(servers: &[LoadCurve]) -> Option<Markup> {
    let all = servers.iter().flat_map(|server| &server.numbers);
    let names = distinct(all.map(|(name, _)| name.as_str()));
    let columns = std::iter::once(String::new()).chain(servers.iter().map(|s| s.name.clone()));
    let row = |name: &str| {
        let of = |server: &LoadCurve| {
            let found = server.numbers.iter().find(|(own, _)| own == name);
            found.map_or_else(|| UNKNOWN.to_owned(), |(_, value)| tied(value))
        };
        std::iter::once(name.to_owned()).chain(servers.iter().map(of)).collect()
    };
    let rows: Vec<Vec<String>> = names.iter().map(|name| row(name)).collect();
    (!rows.is_empty()).then(|| Table { columns: columns.collect(), rows }.render())
}

/// All of it; and without what is over the saturation, where that presses the rest to the floor.
fn figures(servers: &[LoadCurve]) -> Option<Markup> {
    let highest = |keep: fn(&LoadPoint) -> bool| {
        let points = servers.iter().flat_map(|server| &server.points).filter(|point| keep(point));
        points.map(|point| point.response_ms).filter(|ms| ms.is_finite()).fold(0.0, f64::max)
    };
    let (all_ms, shown_ms) = (highest(|_| true), highest(|point| point.worth != Worth::Over));
    let sight_ms = if shown_ms > 0.0 { SIGHT * shown_ms } else { all_ms };
    let figure = figure(servers, sight_ms.min(all_ms))?;
    Some(figure.render())
}

/// What is over the saturation is drawn up to so many times the highest response time of the
/// others; the table has it all.
const SIGHT: f64 = 2.0;

fn figure(servers: &[LoadCurve], sight_ms: f64) -> Option<Figure> {
    let points = || servers.iter().flat_map(|server| &server.points);
    let seen = |point: &&LoadPoint| point.per_s.is_finite() && point.response_ms <= sight_ms;
    points().find(seen)?;
    let throughputs = points().filter(seen).map(|point| point.per_s);
    let saturations = servers.iter().filter_map(|server| server.saturation_per_s);
    let x = Axis::from_zero("operations a second", throughputs.chain(saturations));
    let y =
        Axis::from_zero("response time (ms)", points().filter(seen).map(|p| top_ms(p, sight_ms)));
    let title = "Response time over throughput";
    let left_out = points().filter(|point| !seen(point)).count();
    let mut caption = caption(servers);
    if left_out > 0 {
        caption += &format!(" {left_out} more lie above the plot, and are in the table.");
    }
    Some(Figure {
        title: title.to_owned(),
        legend: legend(servers),
        drawing: canvas::svg(420, title, |area| draw(area, servers, &x, &y)),
        caption,
        table: beneath(servers),
    })
}

/// How high a point reaches, with its interval, unless that presses the rest to the floor.
fn top_ms(point: &LoadPoint, sight_ms: f64) -> f64 {
    let end = point.interval_ms.map_or(0.0, |interval| interval.hi.min(SIGHT * sight_ms));
    // Not a number is none of the two.
    point.response_ms.max(end)
}

/// What is drawn, and nothing of what is not.
fn caption(servers: &[LoadCurve]) -> String {
    let mut caption = String::from(
        "Markers are the load points with their intervals, joined where the server kept up with \
         its load.",
    );
    let is_worth =
        |worth| servers.iter().flat_map(|server| &server.points).any(|point| point.worth == worth);
    caption += match (is_worth(Worth::Invalid), is_worth(Worth::Over)) {
        (true, true) => " Hollow ones do not hold the rules, or are over the saturation.",
        (true, false) => " Hollow ones do not hold the rules.",
        (false, true) => " Hollow ones are over the saturation.",
        (false, false) => "",
    };
    let any = |has: fn(&LoadCurve) -> bool| servers.iter().any(has);
    let dashed = [
        any(|server| server.base_ms.is_some()).then_some("the base"),
        any(|server| server.line.is_some()).then_some("the slope"),
        any(|server| server.saturation_per_s.is_some()).then_some("upright the saturation"),
    ];
    let drawn: Vec<&str> = dashed.into_iter().flatten().collect();
    if !drawn.is_empty() {
        caption += &format!(" Dashes: {}.", drawn.join(", "));
    }
    if servers.iter().any(|server| server.knee.is_some()) {
        caption += " The large ring is the knee.";
    }
    caption
}

fn legend(servers: &[LoadCurve]) -> Vec<Key> {
    let key =
        |(index, server): (usize, &LoadCurve)| Key::new(Swatch::Marker(index), server.name.clone());
    servers.iter().enumerate().map(key).collect()
}

fn draw(area: &Area<'_>, servers: &[LoadCurve], x: &Axis, y: &Axis) -> Drawn {
    let mut chart = canvas::chart(area, x, y, Frame { top: 8.0, ..Frame::default() })?;
    for (index, server) in servers.iter().enumerate() {
        draw_signature(&mut chart, index, server, x, y)?;
    }
    for (index, server) in servers.iter().enumerate() {
        draw_points(&mut chart, index, server, x, y)?;
    }
    Ok(())
}

/// Base, slope, knee and saturation.
fn draw_signature(
    chart: &mut Chart<'_>,
    index: usize,
    server: &LoadCurve,
    x: &Axis,
    y: &Axis,
) -> Drawn {
    let mut dashes = |from: (f64, f64), to: (f64, f64)| {
        draw_dashes(chart, [from, to], (5.0, 4.0), Ink::Series(index).stroke(1.2))
    };
    if let Some(per_s) = server.saturation_per_s.and_then(|per_s| x.position(per_s)) {
        dashes((per_s, y.low()), (per_s, y.high()))?;
    }
    let knee_per_s = server.knee.map(|(per_s, _)| per_s);
    let knee_per_s = knee_per_s.or(server.highest_per_s).unwrap_or(0.0);
    if let Some(base) = server.base_ms.and_then(|ms| y.position(ms)) {
        dashes((x.low(), base), (x.nearest(knee_per_s), base))?;
    }
    if let Some((intercept, slope)) = server.line {
        let to = (x.nearest(knee_per_s), y.nearest(intercept + slope * knee_per_s));
        dashes((x.low(), y.nearest(intercept)), to)?;
    }
    let knee = server.knee.and_then(|(per_s, ms)| x.position(per_s).zip(y.position(ms)));
    knee.map_or(Ok(()), |at| draw_knee(chart, index, at))
}

fn draw_knee(chart: &Chart<'_>, index: usize, at: (f64, f64)) -> Drawn {
    let ring = Circle::new(at, scaled(9.0), Ink::Series(index).stroke(1.5));
    chart.plotting_area().draw(&ring)?;
    let style = Ink::Axis.text(12.0, HPos::Right, VPos::Bottom);
    let text = Text::new("knee".to_owned(), (-scaled(9.0), -scaled(7.0)), style);
    chart.plotting_area().draw(&(EmptyElement::at(at) + text))
}

fn draw_points(
    chart: &mut Chart<'_>,
    index: usize,
    server: &LoadCurve,
    x: &Axis,
    y: &Axis,
) -> Drawn {
    let at = |point: &LoadPoint| Some((x.position(point.per_s)?, y.position(point.response_ms)?));
    let joined = server.points.iter().filter(|point| point.worth != Worth::Over).filter_map(at);
    draw_line(chart, joined, Ink::Series(index).stroke(2.0))?;
    let (plot, stroke) = (chart.plotting_area(), Ink::Series(index).stroke(1.5));
    for point in &server.points {
        let Some((px, py)) = at(point) else { continue };
        if let Some(interval) = point.interval_ms {
            let (low, high) = (y.nearest(interval.lo), y.nearest(interval.hi));
            plot.draw(&PathElement::new([(px, low), (px, high)], stroke))?;
        }
        match point.worth {
            Worth::Valid => draw_marker(chart, (px, py), index, 4.0)?,
            Worth::Over | Worth::Invalid => {
                plot.draw(&Circle::new((px, py), scaled(4.0), stroke))?;
            }
        }
    }
    Ok(())
}

fn beneath(servers: &[LoadCurve]) -> Table {
    let mut table = Table::new(["server", "operations a second", "response (ms)", "", "worth"]);
    for server in servers {
        for point in &server.points {
            table.row([
                server.name.clone(),
                number(point.per_s),
                number(point.response_ms),
                point.interval_ms.map_or_else(String::new, |ends| interval(Some(ends))),
                point.worth.name().to_owned(),
            ]);
        }
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report() -> LoadCurves {
        let point = |per_s, response_ms, worth| LoadPoint {
            per_s,
            response_ms,
            interval_ms: Some(Interval { lo: response_ms * 0.9, hi: response_ms * 1.1 }),
            worth,
        };
        let server = |name: &str, factor: f64| LoadCurve {
            name: name.into(),
            points: vec![
                point(100.0 * factor, 1.0, Worth::Valid),
                point(200.0 * factor, 1.2, Worth::Invalid),
                point(300.0 * factor, 1.5, Worth::Valid),
                point(310.0 * factor, 700.0, Worth::Over),
            ],
            base_ms: Some(1.0),
            line: Some((0.8, 0.002 / factor)),
            knee: Some((300.0 * factor, 1.5)),
            highest_per_s: Some(310.0 * factor),
            saturation_per_s: Some(310.0 * factor),
            numbers: vec![("base".into(), "1.00 ms".into())],
        };
        LoadCurves {
            title: "Load curves".into(),
            facts: vec![("Mix".into(), "a <mix>".into())],
            notes: vec!["time: 10 s a point".into()],
            servers: vec![server("ours", 1.0), server("theirs", 0.5)],
            compared: vec!["B is faster".into()],
            tables: vec![Numbers {
                title: "Operations of ours".into(),
                columns: vec!["operation".into(), "p99".into()],
                rows: vec![vec!["read".into(), "2.0".into()]],
                ..Numbers::default()
            }],
            method: vec!["We looked.".into()],
            command: "nfskit bench curve".into(),
        }
    }

    #[test]
    fn both_servers_are_on_the_page_with_what_they_are_worth() {
        let page = html(&report());
        assert!(page.contains("The large ring is the knee") && page.contains("B is faster"));
        let texts = ["a &lt;mix&gt;", "ours", "theirs", "knee", "We looked.", "invalid", "over"];
        for text in texts {
            assert!(page.contains(text), "{text}");
        }
        // 700 ms do not press 1.5 ms to the floor.
        assert!(page.contains("2 more lie above the plot"));
        assert!(!page.contains("<script"));
    }

    #[test]
    fn the_plot_is_as_high_as_its_intervals_up_to_a_limit() {
        let top = |hi| {
            let interval_ms = Some(Interval { lo: 0.1, hi });
            top_ms(&LoadPoint { response_ms: 2.27, interval_ms, ..LoadPoint::default() }, 2.27)
        };
        assert_eq!([top(4.4), top(1e9), top(f64::NAN)], [4.4, 4.54, 4.54]);
        assert_eq!(top_ms(&LoadPoint { response_ms: 2.0, ..LoadPoint::default() }, 2.27), 2.0);
    }

    #[test]
    fn the_caption_says_nothing_of_what_is_not_drawn() {
        let mut report = report();
        for server in &mut report.servers {
            (server.knee, server.saturation_per_s, server.line) = (None, None, None);
            server.points.retain(|point| point.worth == Worth::Valid);
        }
        let page = html(&report);
        for absent in ["knee</text>", "large ring", "ollow ones", "saturation", "the slope"] {
            assert!(!page.contains(absent), "{absent}");
        }
        assert!(page.contains("Dashes: the base."));
    }

    #[test]
    fn numbers_from_another_world_are_left_out() {
        assert!(!html(&LoadCurves::default()).contains("<h2>"));
        for wild in [f64::NAN, f64::INFINITY, -1.0, 0.0, 1e300] {
            let mut report = report();
            for server in &mut report.servers {
                server.points.iter_mut().for_each(|point| point.response_ms = wild);
                (server.base_ms, server.line) = (Some(wild), Some((wild, wild)));
                (server.knee, server.saturation_per_s) = (Some((wild, wild)), Some(wild));
            }
            let page = html(&report);
            assert!(page.ends_with("</html>") && !page.contains("NaN"), "{wild}");
        }
    }
}
