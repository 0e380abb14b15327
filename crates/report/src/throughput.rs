//! Throughput against the number of outstanding calls: the model's line through the measured
//! points, beneath the ceilings of link and storage.

use maud::Markup;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    self, Area, Axis, Chart, Drawn, Frame, Ink, draw_dashes, draw_line, draw_marker, fitted,
};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::{interval, number, optional, percent};
use super::{Ceiling, Curve, CurvePoint, ThroughputPlot};

/// One plot; nothing without a single point.
pub(super) fn figure(plot: &ThroughputPlot) -> Option<Markup> {
    let axes = Axes::of(plot)?;
    let figure = Figure {
        title: plot.title.clone(),
        legend: legend(plot, &axes),
        drawing: canvas::svg(
            380,
            &format!("{}: throughput against outstanding calls", plot.title),
            |area| draw(area, plot, &axes),
        ),
        caption: caption(plot),
        table: table(plot),
    };
    Some(figure.render())
}

struct Axes {
    x: Axis,
    y: Axis,
}

impl Axes {
    /// Ceilings far above everything measured would press the curves to the floor: they are left
    /// out here and stay in the legend.
    fn of(plot: &ThroughputPlot) -> Option<Self> {
        let points = || plot.curves.iter().flat_map(|curve| &curve.points);
        let rates: Vec<f64> = points().flat_map(rates).collect();
        let largest = rates.iter().copied().fold(0.0, f64::max);
        let ceilings = plot.ceilings.iter().map(|ceiling| ceiling.mib_s);
        let near = ceilings.filter(|mib_s| *mib_s <= largest * CEILING_SIGHT);
        (!rates.is_empty()).then(|| Self {
            x: Axis::log2("outstanding calls N", points().map(|p| f64::from(p.n))),
            y: Axis::from_zero("throughput (MiB/s)", rates.iter().copied().chain(near)),
        })
    }
}

/// A ceiling up to this many times the highest point is drawn.
const CEILING_SIGHT: f64 = 1.8;

/// Everything of a point that is drawn on the axis of throughput.
fn rates(point: &CurvePoint) -> Vec<f64> {
    let spread = point.spread_mib_s.map(|spread| spread.hi);
    [point.measured_mib_s, spread, point.predicted_mib_s]
        .into_iter()
        .flatten()
        .filter(|rate| (0.0..1e100).contains(rate))
        .collect()
}

fn draw(area: &Area<'_>, plot: &ThroughputPlot, axes: &Axes) -> Drawn {
    let frame = Frame { top: 8.0, ..Frame::default() };
    let mut chart = canvas::chart(area, &axes.x, &axes.y, frame)?;
    for ceiling in &plot.ceilings {
        draw_ceiling(&mut chart, ceiling, axes)?;
    }
    for (index, curve) in plot.curves.iter().enumerate() {
        draw_model(&mut chart, index, curve, axes)?;
    }
    for (index, curve) in plot.curves.iter().enumerate() {
        let middle = (plot.curves.len() - 1) as f64 / 2.0;
        draw_measured(&chart, index, curve, axes, (index as f64 - middle) * ASIDE)?;
    }
    Ok(())
}

fn draw_ceiling(chart: &mut Chart<'_>, ceiling: &Ceiling, axes: &Axes) -> Drawn {
    let Some(y) = axes.y.position(ceiling.mib_s) else { return Ok(()) };
    let (left, right) = (axes.x.low(), axes.x.high());
    draw_dashes(chart, [(left, y), (right, y)], (6.0, 4.0), Ink::Axis.stroke(1.5))?;
    let style = Ink::Axis.text(12.0, HPos::Left, VPos::Bottom);
    let label = fitted(&ceiling_text(ceiling), 300.0, 12.0);
    chart.plotting_area().draw(&Text::new(format!("\u{a0}\u{a0}{label}"), (left, y), style))
}

fn draw_model(chart: &mut Chart<'_>, index: usize, curve: &Curve, axes: &Axes) -> Drawn {
    let line = curve.points.iter().filter_map(|p| position(p.n, p.predicted_mib_s, axes));
    draw_line(chart, line, Ink::Series(index).stroke(2.0))
}

/// Measured points of different configurations stand this far apart (in doublings of N), so that
/// their bars can be distinguished where they meet.
const ASIDE: f64 = 0.055;

fn draw_measured(chart: &Chart<'_>, index: usize, curve: &Curve, axes: &Axes, aside: f64) -> Drawn {
    let (plot, stroke) = (chart.plotting_area(), Ink::Series(index).stroke(1.5));
    let half = (axes.x.high() - axes.x.low()) * 0.006;
    for point in &curve.points {
        let Some((x, y)) = position(point.n, point.measured_mib_s, axes) else { continue };
        let at = (x + aside, y);
        if let Some(spread) = point.spread_mib_s {
            let (low, high) = (axes.y.nearest(spread.lo), axes.y.nearest(spread.hi));
            plot.draw(&PathElement::new([(at.0, low), (at.0, high)], stroke))?;
            for end in [low, high] {
                plot.draw(&PathElement::new([(at.0 - half, end), (at.0 + half, end)], stroke))?;
            }
        }
        draw_marker(chart, at, index, 4.5)?;
    }
    Ok(())
}

fn position(n: u32, mib_s: Option<f64>, axes: &Axes) -> Option<(f64, f64)> {
    Some((axes.x.position(f64::from(n))?, axes.y.position(mib_s?)?))
}

fn legend(plot: &ThroughputPlot, axes: &Axes) -> Vec<Key> {
    let mut keys = Vec::new();
    for (index, curve) in plot.curves.iter().enumerate() {
        let marker = Swatch::Marker(index);
        keys.push(Key::new(marker, format!("{}, measured", curve.name)));
        let line = Swatch::Line(Ink::Series(index));
        keys.push(Key::new(line, format!("{}, model", curve.name)));
    }
    for ceiling in &plot.ceilings {
        let text = ceiling_text(ceiling);
        keys.push(match axes.y.position(ceiling.mib_s) {
            Some(_) => Key::new(Swatch::Dashes(Ink::Axis), text),
            None => Key::new(Swatch::Nothing, format!("{text}: above this plot")),
        });
    }
    keys
}

fn ceiling_text(ceiling: &Ceiling) -> String {
    format!("{}, {} MiB/s", ceiling.label, number(ceiling.mib_s))
}

/// The most of a curve, in words.
fn peak(curve: &Curve) -> Option<String> {
    let measured = |p: &CurvePoint| p.measured_mib_s.filter(|v| v.is_finite()).map(|v| (v, p.n));
    let (mib_s, n) = curve.points.iter().filter_map(measured).max_by(|a, b| a.0.total_cmp(&b.0))?;
    let last = curve.points.iter().filter(|p| measured(p).is_some()).map(|p| p.n).max();
    // At the last window it may go on rising.
    let verb = if Some(n) == last { "has its most" } else { "peaks" };
    Some(format!("{} {verb}, {} MiB/s, with N = {n}", curve.name, number(mib_s)))
}

fn caption(plot: &ThroughputPlot) -> String {
    let peaks: Vec<String> = plot.curves.iter().filter_map(peak).collect();
    let errors = plot.curves.iter().flat_map(|curve| &curve.points);
    let worst = errors.filter_map(CurvePoint::error_pct).max_by(|a, b| a.abs().total_cmp(&b.abs()));

    let mut caption = String::from(
        "Lines are the model, markers the measured medians with their spread; where a line is \
         flat, the model has more outstanding calls gain nothing.",
    );
    if !peaks.is_empty() {
        caption += &format!(" Measured: {}.", peaks.join("; "));
    }
    if let Some(worst) = worst {
        caption += &format!(" The model is off by {} at worst.", percent(Some(worst)));
    }
    caption
}

fn table(plot: &ThroughputPlot) -> Table {
    let mut table = Table::new([
        "configuration",
        "N",
        "measured (MiB/s)",
        "spread (MiB/s)",
        "model (MiB/s)",
        "error",
        "simulated (MiB/s)",
    ]);
    for curve in &plot.curves {
        for point in &curve.points {
            table.row([
                curve.name.clone(),
                point.n.to_string(),
                optional(point.measured_mib_s),
                interval(point.spread_mib_s),
                optional(point.predicted_mib_s),
                percent(point.error_pct()),
                optional(point.simulated_mib_s),
            ]);
        }
    }
    table
}
