//! Response times: call by call over time, and how often which.
//!
//! Both axes of the distribution are logarithmic. Among ten thousand calls of 0.2 ms a stall
//! shows as five calls of 200 ms: on linear axes that is a bar without height at the far end of
//! an empty plot, and it may be most of the time of the run.

use maud::{Markup, html};
use perf::histogram::Histogram;
use perf::units::Nanos;
use plotters::prelude::*;

use super::canvas::{Axis, Chart, Drawn, Ink, draw_dashes, draw_line};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::number;
use super::panels::{self, Dots, Head};
use super::transfers::drawable;
use super::{Latency, LatencyPlot};

/// Two figures, over time and as a distribution, each only with data.
pub(super) fn figures(plot: &LatencyPlot) -> Markup {
    html! {
        @if let Some(figure) = over_time(plot) { (figure.render()) }
        @if let Some(figure) = distribution(plot) { (figure.render()) }
    }
}

fn over_time(plot: &LatencyPlot) -> Option<Figure> {
    let title = format!("{}: every call over time", plot.title);
    let calls = |latency: &Latency| drawable(&latency.calls).copied().collect();
    let crowds: Vec<Vec<(f64, f64)>> = plot.latencies.iter().map(calls).collect();
    let drawing = DOTS.svg(&title, &heads(plot), &crowds)?;
    Some(Figure {
        title,
        legend: legend(plot, Swatch::Marker(0)),
        drawing,
        caption: "A dot is a call. Where there are too many to draw, some stand for all, and the \
                  slowest are always among them. Dots that rise together are calls that waited \
                  for the same thing. The scale of response time is logarithmic."
            .into(),
        table: table(plot),
    })
}

/// As many dots as the eye can distinguish, and 100 bytes of SVG each.
const DOTS: Dots<'_> = Dots {
    x: "time since start (ms)",
    y: "response (ms)",
    most: 1_200,
    highest_part: 2,
    panel_pixels: 180,
    radius: 1.8,
    opacity: 0.55,
};

pub(super) fn distribution(plot: &LatencyPlot) -> Option<Figure> {
    let counted: Vec<_> = plot.latencies.iter().map(|l| bars(&l.histogram)).collect();
    let all = || counted.iter().flatten();
    all().next()?;

    let edges = all().flat_map(|bar| [bar.low_ms, bar.high_ms]);
    let x = Axis::log10("response time (ms)", edges);
    // From half a call, so that a single call has a bar of some height.
    let y = Axis::log10("calls", all().map(|bar| bar.count as f64).chain([0.5]));
    let title = format!("{}: how often which response time", plot.title);
    let drawing = panels::svg(&title, &heads(plot), 170, (&x, &y), |index, chart| {
        draw_bars(chart, index, &counted[index], &x, &y)?;
        draw_quantiles(chart, &plot.latencies[index].histogram, &x, &y)
    });
    Some(Figure {
        title,
        legend: legend(plot, Swatch::Area(Ink::Text)),
        drawing,
        caption: "Both scales are logarithmic: a low bar far to the right is a few slow calls, \
                  which can take more of the run than all the fast ones. Upright lines: the \
                  median (solid) and the 99th percentile (dashed)."
            .into(),
        table: table(plot),
    })
}

/// Calls within one step of response time.
#[derive(Clone, Copy, Debug, PartialEq)]
struct BarOfCalls {
    low_ms: f64,
    high_ms: f64,
    count: u64,
}

/// The histogram in [`STEPS_PER_DECADE`] equal steps per power of ten, empty ones left out.
fn bars(histogram: &Histogram) -> Vec<BarOfCalls> {
    let mut bars: Vec<BarOfCalls> = Vec::new();
    for bucket in histogram.buckets() {
        let middle_ms = (bucket.low.as_millis_f64() + bucket.high.as_millis_f64()) / 2.0;
        if middle_ms <= 0.0 {
            continue; // zero has no place on a logarithmic scale
        }
        let step = (middle_ms.log10() * STEPS_PER_DECADE).floor();
        let low_ms = 10f64.powf(step / STEPS_PER_DECADE);
        match bars.last_mut().filter(|bar| bar.low_ms == low_ms) {
            Some(bar) => bar.count = bar.count.saturating_add(bucket.count),
            None => bars.push(BarOfCalls {
                low_ms,
                high_ms: 10f64.powf((step + 1.0) / STEPS_PER_DECADE),
                count: bucket.count,
            }),
        }
    }
    bars
}

const STEPS_PER_DECADE: f64 = 20.0;

fn draw_bars(chart: &Chart<'_>, index: usize, bars: &[BarOfCalls], x: &Axis, y: &Axis) -> Drawn {
    for bar in bars {
        let corners = [
            (x.nearest(bar.low_ms), y.low()),
            (x.nearest(bar.high_ms), y.nearest(bar.count as f64)),
        ];
        let shape = Rectangle::new(corners, Ink::Series(index).filled());
        chart.plotting_area().draw(&shape)?;
    }
    Ok(())
}

/// The median as a solid line, the 99th percentile as a dashed one.
fn draw_quantiles(chart: &mut Chart<'_>, histogram: &Histogram, x: &Axis, y: &Axis) -> Drawn {
    let (stroke, ends) = (Ink::Text.stroke(1.2), [y.low(), y.high()]);
    let at = |q| x.position(histogram.quantile_if_known(q)?.as_millis_f64());
    if let Some(median) = at(0.5) {
        draw_line(chart, ends.map(|end| (median, end)), stroke)?;
    }
    if let Some(p99) = at(0.99) {
        draw_dashes(chart, ends.map(|end| (p99, end)), (4.0, 3.0), stroke)?;
    }
    Ok(())
}

fn heads(plot: &LatencyPlot) -> Vec<Head<'_>> {
    plot.latencies.iter().map(head).collect()
}

fn head(latency: &Latency) -> Head<'_> {
    let known = |(name, q)| {
        let time = latency.histogram.quantile_if_known(q)?;
        Some(format!("{name} {} ms", number(time.as_millis_f64())))
    };
    let times: Vec<String> =
        [("p50", 0.5), ("p99", 0.99), ("max", 1.0)].into_iter().filter_map(known).collect();
    let note = match latency.histogram.count() {
        0 => String::new(),
        calls => format!("{calls} calls: {}", times.join(", ")),
    };
    Head { name: &latency.name, note }
}

fn legend(plot: &LatencyPlot, like: Swatch) -> Vec<Key> {
    let swatch = |index| match like {
        Swatch::Marker(_) => Swatch::Marker(index),
        _ => Swatch::Area(Ink::Series(index)),
    };
    let names = plot.latencies.iter().enumerate();
    names.map(|(index, latency)| Key::new(swatch(index), &latency.name)).collect()
}

fn table(plot: &LatencyPlot) -> Table {
    let mut table = Table::new([
        "configuration",
        "calls",
        "mean (ms)",
        "min (ms)",
        "p50 (ms)",
        "p90 (ms)",
        "p99 (ms)",
        "p99.9 (ms)",
        "max (ms)",
    ]);
    for latency in &plot.latencies {
        let histogram = &latency.histogram;
        let at = |q| number(histogram.quantile_if_known(q).map_or(f64::NAN, Nanos::as_millis_f64));
        table.row([
            latency.name.clone(),
            histogram.count().to_string(),
            number(histogram.mean().as_millis_f64()),
            number(histogram.min().as_millis_f64()),
            at(0.5),
            at(0.9),
            at(0.99),
            at(0.999),
            number(histogram.max().as_millis_f64()),
        ]);
    }
    table
}
