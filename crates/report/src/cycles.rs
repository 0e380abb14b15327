//! Where one call's time goes: a bar for each configuration, its terms stacked in order.

use maud::Markup;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    self, Area, Axis, Chart, Drawn, Frame, Ink, fitted, is_narrow, plot_width, scaled,
};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::{distinct, number, optional, percent};
use super::{Cycle, percent_above};

/// All cycles on one scale of time; nothing for an empty list.
pub(super) fn figure(cycles: &[Cycle]) -> Option<Markup> {
    let cycles: Vec<Bar<'_>> = cycles.iter().map(Bar::new).collect();
    // A term's index is its colour.
    let terms = distinct(cycles.iter().flat_map(|bar| &bar.terms).map(|(name, _)| *name));
    if cycles.is_empty() {
        return None;
    }
    let mut legend: Vec<Key> = terms
        .iter()
        .enumerate()
        .map(|(index, term)| Key::new(Swatch::Area(Ink::Share(index)), *term))
        .collect();
    if cycles.iter().any(|bar| bar.measured_us.is_some()) {
        legend.push(Key::new(Swatch::Diamond, "cycle as measured"));
    }
    let figure = Figure {
        title: "One call's cycle, term by term".into(),
        legend,
        drawing: drawing(&cycles, &terms),
        caption: caption(&cycles),
        table: table(&cycles, &terms),
    };
    Some(figure.render())
}

/// A cycle without what cannot be drawn.
struct Bar<'a> {
    name: &'a str,
    terms: Vec<(&'a str, f64)>,
    sum_us: f64,
    measured_us: Option<f64>,
}

impl<'a> Bar<'a> {
    fn new(cycle: &'a Cycle) -> Self {
        let drawable = |us: &f64| (0.0..1e100).contains(us);
        let terms: Vec<_> = cycle
            .terms
            .iter()
            .filter(|term| drawable(&term.us))
            .map(|term| (term.name.as_str(), term.us))
            .collect();
        Self {
            name: &cycle.name,
            sum_us: terms.iter().map(|(_, us)| us).sum(),
            terms,
            measured_us: cycle.measured_us.filter(drawable),
        }
    }

    fn largest(&self) -> Option<(&'a str, f64)> {
        let by_time = |a: &(&str, f64), b: &(&str, f64)| a.1.total_cmp(&b.1);
        self.terms.iter().copied().max_by(by_time)
    }

    /// "model 248 µs, measured 251 µs (-1.2 %)"
    fn sums(&self) -> String {
        let model = format!("model {} µs", number(self.sum_us));
        let Some(us) = self.measured_us else { return model };
        let error = percent(percent_above(self.sum_us, us));
        format!("{model}, measured {} µs ({error})", number(us))
    }
}

fn drawing(bars: &[Bar<'_>], terms: &[&str]) -> Markup {
    let ends = bars.iter().flat_map(|bar| [Some(bar.sum_us), bar.measured_us]).flatten();
    let x = Axis::from_zero("time of one call (µs)", ends);
    let rows = bars.len() as f64;
    let y = Axis::from_zero("", [rows / 1.06]);
    let height = u32::try_from(bars.len()).unwrap_or(u32::MAX).saturating_mul(ROW_PIXELS);
    canvas::svg(height.saturating_add(56), "Stacked bars, one for each configuration", |area| {
        draw(area, bars, terms, &x, &y)
    })
}

fn draw(area: &Area<'_>, bars: &[Bar<'_>], terms: &[&str], x: &Axis, y: &Axis) -> Drawn {
    let frame = Frame { top: 4.0, without_y: true, ..Frame::default() };
    let chart = canvas::chart(area, x, y, frame)?;
    for (row, bar) in bars.iter().rev().enumerate() {
        draw_bar(&chart, row as f64, bar, terms, x)?;
    }
    Ok(())
}

fn draw_bar(chart: &Chart<'_>, row: f64, bar: &Bar<'_>, terms: &[&str], x: &Axis) -> Drawn {
    let rows = (row + 0.10, row + 0.54);
    draw_terms(chart, rows, bar, terms, plot_width(chart) / x.high())?;
    if let Some(us) = bar.measured_us {
        draw_measured(chart, rows, us)?;
    }
    draw_texts(chart, row, bar, x)
}

/// The terms behind each other, with their numbers where those fit.
fn draw_terms(
    chart: &Chart<'_>,
    (low, high): (f64, f64),
    bar: &Bar<'_>,
    terms: &[&str],
    pixels_per_us: f64,
) -> Drawn {
    let plot = chart.plotting_area();
    let mut from = 0.0;
    for (name, us) in &bar.terms {
        let share = Ink::Share(terms.iter().position(|term| term == name).unwrap_or(0));
        let to = from + us;
        plot.draw(&Rectangle::new([(from, low), (to, high)], share.filled()))?;
        let label = number(*us);
        if us * pixels_per_us > 8.0 * label.len() as f64 {
            let style = Ink::OnShare.text(12.0, HPos::Center, VPos::Center);
            plot.draw(&Text::new(label, ((from + to) / 2.0, (low + high) / 2.0), style))?;
        }
        from = to;
    }
    Ok(())
}

/// The cycle as measured: a diamond, and an upright line through it.
fn draw_measured(chart: &Chart<'_>, (low, high): (f64, f64), us: f64) -> Drawn {
    let (wide, size) = (scaled(5.0), scaled(7.0));
    let corners = vec![(0, -size), (wide, 0), (0, size), (-wide, 0)];
    let diamond = Polygon::new(corners, Ink::Text.filled());
    chart.plotting_area().draw(&(EmptyElement::at((us, (low + high) / 2.0)) + diamond))?;
    let line = [(us, low - 0.04), (us, high + 0.04)];
    chart.plotting_area().draw(&PathElement::new(line, Ink::Text.stroke(1.5)))
}

/// Name and sums beside each other, or beneath.
fn draw_texts(chart: &Chart<'_>, row: f64, bar: &Bar<'_>, x: &Axis) -> Drawn {
    let (plot, width) = (chart.plotting_area(), plot_width(chart));
    let (text, sums) =
        if is_narrow(width) { (row + 0.88, row + 0.67) } else { (row + 0.74, row + 0.74) };
    let name = fitted(bar.name, if is_narrow(width) { width } else { width - 306.0 }, 13.0);
    let style = Ink::Text.text(13.0, HPos::Left, VPos::Center);
    plot.draw(&Text::new(name, (0.0, text), style))?;
    let (at, side) = if is_narrow(width) { (0.0, HPos::Left) } else { (x.high(), HPos::Right) };
    let style = Ink::Axis.text(12.0, side, VPos::Center);
    plot.draw(&Text::new(bar.sums(), (at, sums), style))
}

/// Height of one configuration, with its text.
const ROW_PIXELS: u32 = 66;

fn caption(bars: &[Bar<'_>]) -> String {
    let largest = |bar: &Bar<'_>| {
        let (name, us) = bar.largest()?;
        let share = us / bar.sum_us * 100.0;
        let text =
            format!("in “{}” the largest term is {name} with {share:.0} % of the cycle", bar.name);
        share.is_finite().then_some(text)
    };
    let start = "A term's width is its time in one call; the diamond is the cycle as measured, \
                 so a gap between it and the end of the bar is what the model misses.";
    let heaviest = bars.iter().max_by(|a, b| a.sum_us.total_cmp(&b.sum_us));
    match heaviest.and_then(largest) {
        Some(text) => format!("{start} The longest cycle: {text}."),
        None => start.into(),
    }
}

fn table(bars: &[Bar<'_>], terms: &[&str]) -> Table {
    let mut table = Table::new(["configuration"]);
    table.columns.extend(terms.iter().map(|term| format!("{term} (µs)")));
    table.columns.extend(["sum (µs)", "measured (µs)", "error"].map(String::from));
    for bar in bars {
        let of_term = |name: &&str| {
            let found = bar.terms.iter().filter(|(term, _)| term == name).map(|(_, us)| us);
            number(found.sum())
        };
        let mut row = vec![bar.name.to_owned()];
        row.extend(terms.iter().map(of_term));
        row.push(number(bar.sum_us));
        row.push(optional(bar.measured_us));
        row.push(percent(bar.measured_us.and_then(|us| percent_above(bar.sum_us, us))));
        table.rows.push(row);
    }
    table
}
