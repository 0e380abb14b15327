//! Bytes over time: a staircase where the transfer stalls, a straight line where it flows.

use maud::Markup;
use perf::series::{Point, Series};
use perf::units::Nanos;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Axis, Chart, Drawn, Ink, WIDTH};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::{UNKNOWN, number};
use super::panels::{self, Head};
use super::{Stall, Transfer, TransferPlot};

/// One plot, a panel for each transfer; nothing without a single point.
pub(super) fn figure(plot: &TransferPlot) -> Option<Markup> {
    let panels: Vec<Panel<'_>> = plot.transfers.iter().map(Panel::new).collect();
    if panels.iter().all(|panel| panel.points.is_empty()) {
        return None;
    }
    let mut legend: Vec<Key> = panels
        .iter()
        .enumerate()
        .map(|(index, panel)| Key::new(Swatch::Line(Ink::Series(index)), panel.name))
        .collect();
    legend.extend(stall_key(&panels));
    let figure = Figure {
        title: plot.title.clone(),
        legend,
        drawing: drawing(&plot.title, &panels),
        caption: caption(&panels),
        table: table(&panels),
    };
    Some(figure.render())
}

/// What the shaded times mean: also there for stalls too short to be labelled.
fn stall_key(panels: &[Panel<'_>]) -> Option<Key> {
    let stalls = || panels.iter().flat_map(|panel| &panel.stalls);
    stalls().next()?;
    let mut waits: Vec<&str> = Vec::new();
    for stall in stalls().filter(|stall| !stall.label.is_empty()) {
        if !waits.contains(&stall.label.as_str()) {
            waits.push(&stall.label);
        }
    }
    let text = match waits.as_slice() {
        [] => "nothing moves".into(),
        waits => format!("nothing moves: {}", waits.join(", ")),
    };
    Some(Key::new(Swatch::Area(Ink::Stall), text))
}

/// A transfer without what cannot be drawn, in order of time.
struct Panel<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
    stalls: Vec<&'a Stall>,
}

impl<'a> Panel<'a> {
    fn new(transfer: &'a Transfer) -> Self {
        let drawable = |stall: &&Stall| {
            (0.0..LONGEST_MS).contains(&stall.start_ms)
                && (stall.start_ms..LONGEST_MS).contains(&stall.end_ms)
        };
        Self {
            name: &transfer.name,
            points: thinned(&transfer.points),
            stalls: transfer.stalls.iter().filter(drawable).collect(),
        }
    }

    fn duration_ms(&self) -> f64 {
        self.points.last().map_or(0.0, |p| p.0)
    }

    fn mib(&self) -> f64 {
        self.points.iter().map(|p| p.1).fold(0.0, f64::max)
    }

    fn stalled_ms(&self) -> f64 {
        self.stalls.iter().map(|s| s.end_ms - s.start_ms).sum()
    }

    fn head(&self) -> Head<'a> {
        let [mib, ms, mib_s] = [self.mib(), self.duration_ms(), self.mib_s()].map(number);
        let mut note = format!("{mib} MiB in {ms} ms: {mib_s} MiB/s");
        if let Some(pct) = self.stalled_pct().filter(|pct| *pct > 0.0) {
            note += &format!(", {pct:.0} % of the time standing still");
        }
        Head { name: self.name, note }
    }

    fn mib_s(&self) -> f64 {
        self.mib() / self.duration_ms() * 1e3
    }

    /// The stalled part of the whole time, in percent.
    fn stalled_pct(&self) -> Option<f64> {
        let share = self.stalled_ms() / self.duration_ms() * 100.0;
        share.is_finite().then_some(share)
    }
}

/// At most [`POINTS_MAX`] of `points` (milliseconds and MiB), in order of time.
fn thinned(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let mut series = Series::default();
    for &(t_ms, value) in drawable(points) {
        let t_us = Nanos::from_micros_f64(t_ms * 1e3).as_nanos() / 1_000;
        series.push_point(Point { t_us, value });
    }
    let in_ms = |p: &Point| (p.t_us as f64 * 1e-3, p.value);
    series.thinned(POINTS_MAX).points().iter().map(in_ms).collect()
}

/// Points of one line: several for every pixel across.
const POINTS_MAX: usize = 1_500;

/// The points (milliseconds and a value) that have a place in a plot.
pub(super) fn drawable(points: &[(f64, f64)]) -> impl Iterator<Item = &(f64, f64)> {
    points.iter().filter(|(t_ms, value)| (0.0..LONGEST_MS).contains(t_ms) && value.abs() < 1e100)
}

/// A hundred days: what is later is not a time of a run.
const LONGEST_MS: f64 = 8.64e9;

fn drawing(title: &str, panels: &[Panel<'_>]) -> Markup {
    let times = panels.iter().map(Panel::duration_ms);
    let stalls = panels.iter().flat_map(|p| &p.stalls).map(|s| s.end_ms);
    let x = Axis::from_zero("time since start (ms)", times.chain(stalls));
    let y = Axis::from_zero("transferred (MiB)", panels.iter().map(Panel::mib));
    let heads: Vec<Head<'_>> = panels.iter().map(Panel::head).collect();
    panels::svg(&format!("{title}: bytes over time"), &heads, 190, (&x, &y), |index, chart| {
        draw(chart, index, &panels[index], &x, &y)
    })
}

fn draw(chart: &mut Chart<'_>, index: usize, panel: &Panel<'_>, x: &Axis, y: &Axis) -> Drawn {
    for stall in &panel.stalls {
        draw_stall(chart, stall, x, y)?;
    }
    let points = panel.points.iter().copied();
    chart.draw_series(LineSeries::new(points, Ink::Series(index).stroke(2.0)))?;
    Ok(())
}

/// A shaded stretch of time, with what it waited for and how long, where that fits.
fn draw_stall(chart: &Chart<'_>, stall: &Stall, x: &Axis, y: &Axis) -> Drawn {
    let plot = chart.plotting_area();
    let corners = [(stall.start_ms, y.low()), (stall.end_ms, y.high())];
    plot.draw(&Rectangle::new(corners, Ink::Stall.filled()))?;

    let ms = stall.end_ms - stall.start_ms;
    let pixels = ms * f64::from(WIDTH - 82) / x.high();
    let lines = [stall.label.clone(), format!("{} ms", number(ms))];
    let longest = lines.iter().map(|line| line.chars().count()).max().unwrap_or(0);
    if pixels < 7.0 * longest as f64 {
        return Ok(());
    }
    for (line, share) in lines.into_iter().zip([0.97, 0.86]) {
        let style = Ink::Text.text(11.5, HPos::Center, VPos::Top);
        let at = ((stall.start_ms + stall.end_ms) / 2.0, y.high() * share);
        plot.draw(&Text::new(line, at, style))?;
    }
    Ok(())
}

fn caption(panels: &[Panel<'_>]) -> String {
    let told = |panel: &Panel<'_>| {
        let name = panel.name;
        match panel.stalled_pct().filter(|_| !panel.stalls.is_empty()) {
            Some(pct) => format!("“{name}” stands still for {pct:.0} % of its time"),
            None => format!("in “{name}” no stall was recorded"),
        }
    };
    let told: Vec<String> = panels.iter().map(told).collect();
    format!(
        "A flat stretch of the line is a time in which no byte was acknowledged; all panels share \
         one scale, so the shorter line is the faster transfer. {}.",
        told.join("; ")
    )
}

fn table(panels: &[Panel<'_>]) -> Table {
    let mut table = Table::new([
        "transfer",
        "MiB",
        "time (ms)",
        "MiB/s",
        "stalls",
        "stalled (ms)",
        "longest stall (ms)",
        "stalled share",
    ]);
    for panel in panels {
        let longest = panel.stalls.iter().map(|s| s.end_ms - s.start_ms).fold(0.0, f64::max);
        table.row([
            panel.name.to_owned(),
            number(panel.mib()),
            number(panel.duration_ms()),
            number(panel.mib_s()),
            panel.stalls.len().to_string(),
            number(panel.stalled_ms()),
            number(longest),
            panel.stalled_pct().map_or_else(|| UNKNOWN.into(), |pct| format!("{pct:.1} %")),
        ]);
    }
    table
}
