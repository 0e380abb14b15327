//! Where plots are drawn: plotters on SVG, with colours that follow the page.
//!
//! plotters knows fixed colours and whole pixels; we want plots that turn dark with the page and
//! lines without stairs. So a plot is drawn [`FINE`] times as large as shown, in colours that
//! stand for roles ([`Ink`]), and afterwards every such colour is replaced by the style sheet's
//! variable of that role.
//!
//! An axis is always linear to plotters. A logarithmic one is linear in the exponent: [`Axis`]
//! does the conversion, chooses the ticks, and labels them with the value.

use maud::{Markup, PreEscaped, html};
use plotters::coord::Shift;
use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::number::{clipped, tick};

/// What a plot draws on.
pub(super) type Area<'a> = DrawingArea<SVGBackend<'a>, Shift>;
pub(super) type Chart<'a> = ChartContext<'a, SVGBackend<'a>, Plane>;
pub(super) type Plane = Cartesian2d<Positions, Positions>;
/// Writing into a string does not fail; the type is there because plotters has other backends.
pub(super) type Drawn = Result<(), DrawingAreaErrorKind<std::io::Error>>;

/// Width of every plot as shown, in CSS pixels: on a wide screen and on paper, and on a narrow one,
/// where the other would shrink until nobody could read it.
const WIDE: u32 = 820;
const NARROW: u32 = 350;
/// A plot that is not wider has room for fewer labels.
const NARROW_MAX: f64 = 500.0;
/// Units of the drawing per pixel shown.
const FINE: u32 = 4;

/// A colour by its role.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Ink {
    /// Text, and what was measured.
    Text,
    /// Axes and their labels.
    Axis,
    Grid,
    /// Text on a share.
    OnShare,
    /// A time in which nothing moves.
    Stall,
    /// A configuration, by its number.
    Series(usize),
    /// A share of a whole, by its number: lighter, because text stands on it.
    Share(usize),
}

/// How many colours series and shares have before they repeat.
pub(super) const COLOURS: usize = 6;

impl Ink {
    fn all() -> impl Iterator<Item = Self> {
        let fixed = [Self::Text, Self::Axis, Self::Grid, Self::OnShare, Self::Stall];
        let series = (0..COLOURS).map(Self::Series);
        fixed.into_iter().chain(series).chain((0..COLOURS).map(Self::Share))
    }

    /// The style sheet's variable of this role.
    pub(super) fn css(self) -> String {
        match self {
            Self::Text => "var(--ink)".into(),
            Self::Axis => "var(--axis)".into(),
            Self::Grid => "var(--grid)".into(),
            Self::OnShare => "var(--on-share)".into(),
            Self::Stall => "var(--stall)".into(),
            Self::Series(index) => format!("var(--series-{})", index % COLOURS),
            Self::Share(index) => format!("var(--share-{})", index % COLOURS),
        }
    }

    /// The colour that stands for this role until the drawing is done. Nothing else is drawn, so
    /// that any set of different colours serves.
    pub(super) fn colour(self) -> RGBColor {
        let code = |base: u8, index: usize| base + u8::try_from(index % COLOURS).unwrap_or(0);
        RGBColor(
            1,
            2,
            match self {
                Self::Text => 1,
                Self::Axis => 2,
                Self::Grid => 3,
                Self::OnShare => 4,
                Self::Stall => 5,
                Self::Series(index) => code(0x10, index),
                Self::Share(index) => code(0x20, index),
            },
        )
    }

    pub(super) fn filled(self) -> ShapeStyle {
        self.colour().filled()
    }

    /// A line, `pixels` wide as shown.
    pub(super) fn stroke(self, pixels: f64) -> ShapeStyle {
        self.colour().stroke_width(scaled(pixels).unsigned_abs())
    }

    /// Text of `pixels` height, anchored where `pos` says.
    pub(super) fn text(self, pixels: f64, horizontal: HPos, vertical: VPos) -> TextStyle<'static> {
        ("sans-serif", font_size(pixels))
            .into_font()
            .color(&self.colour())
            .pos(Pos::new(horizontal, vertical))
    }
}

/// Pixels as shown, in units of the drawing.
#[expect(clippy::cast_possible_truncation, reason = "sizes in a plot are small numbers")]
pub(super) fn scaled(pixels: f64) -> i32 {
    (pixels * f64::from(FINE)).round() as i32
}

/// plotters divides by 1.24, to make its sizes those of a bitmap font.
fn font_size(pixels: f64) -> f64 {
    pixels * 1.24 * f64::from(FINE)
}

/// A plot of `height` pixels, drawn by `draw`; `label` describes it to those who cannot see it.
/// It is drawn twice, and the style sheet chooses the one that fits.
pub(super) fn svg(height: u32, label: &str, draw: impl Fn(&Area<'_>) -> Drawn) -> Markup {
    html! {
        (of_width(WIDE, "wide", height, label, &draw))
        (of_width(NARROW, "narrow", height, label, &draw))
    }
}

fn of_width(
    width: u32,
    class: &str,
    height: u32,
    label: &str,
    draw: impl Fn(&Area<'_>) -> Drawn,
) -> Markup {
    let (width, height) = (width * FINE, height * FINE);
    let mut drawing = String::new();
    let drawn = {
        let area = SVGBackend::with_string(&mut drawing, (width, height)).into_drawing_area();
        draw(&area).and_then(|()| area.present())
    };
    // Only what stands between the tags: the tag itself is ours, without a fixed size.
    let inside = drawing
        .split_once('>')
        .and_then(|(_, rest)| rest.rsplit_once("</svg>"))
        .map(|(inside, _)| inside);
    match (drawn, inside) {
        (Ok(()), Some(inside)) => html! {
            svg class=(class) viewBox=(format!("0 0 {width} {height}")) role="img"
                aria-label=(label) {
                (PreEscaped(in_page_colours(inside)))
            }
        },
        _ => {
            html! { p class=(class) { "This plot could not be drawn; the table has its numbers." } }
        }
    }
}

/// Width of an area as shown, in CSS pixels.
pub(super) fn width(area: &Area<'_>) -> f64 {
    f64::from(area.dim_in_pixel().0) / f64::from(FINE)
}

/// Width of what is drawn into, and whether that is narrow.
pub(super) fn plot_width(chart: &Chart<'_>) -> f64 {
    f64::from(chart.plotting_area().dim_in_pixel().0) / f64::from(FINE)
}

pub(super) fn is_narrow(width: f64) -> bool {
    width <= NARROW_MAX
}

/// Room for labels at the left of a chart.
pub(super) fn left_pixels(width: f64) -> f64 {
    if is_narrow(width) { 58.0 } else { 68.0 }
}

/// Room at the right of one.
pub(super) const RIGHT_PIXELS: f64 = 14.0;

fn in_page_colours(drawing: &str) -> String {
    Ink::all().fold(drawing.to_owned(), |text, ink| {
        let RGBColor(r, g, b) = ink.colour();
        text.replace(&format!("\"#{r:02X}{g:02X}{b:02X}\""), &format!("\"{}\"", ink.css()))
    })
}

/// One axis: what it is called, how far it goes, and where its ticks are.
#[derive(Clone, Debug)]
pub(super) struct Axis {
    label: String,
    scale: Scale,
    /// Positions (exponents on a logarithmic scale), never equal.
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Scale {
    Linear,
    Log2,
    Log10,
}

impl Axis {
    /// From zero to a little above the largest of `values`.
    pub(super) fn from_zero(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let largest = plottable(values).fold(0.0, f64::max);
        let high = if largest > 0.0 { largest * 1.06 } else { 1.0 };
        let step = round_step(high / 8.0);
        let ticks =
            (0..TICKS_MAX).map(|i| i as f64 * step).take_while(|tick| *tick <= high).collect();
        Self { label: label.into(), scale: Scale::Linear, low: 0.0, high, ticks }
    }

    /// Powers of two that enclose `values`, with a little room beside them.
    pub(super) fn log2(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = exponents(Scale::Log2, values);
        let (first, last) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        let (low, high, ticks) = (first - MARGIN, last + MARGIN, whole_steps(first, last));
        Self { label: label.into(), scale: Scale::Log2, low, high, ticks }
    }

    /// 1, 2 or 5 times a power of ten on both sides of `values`; ticks at powers of ten, and
    /// between them where there are few.
    pub(super) fn log10(label: &str, values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = exponents(Scale::Log10, values);
        let (first, last) = (low.floor(), high.ceil().max(low.floor() + 1.0));
        let between = || {
            let decades = whole_steps(first, last).into_iter();
            decades.flat_map(|decade| [1.0, 2.0, 5.0].map(|factor: f64| decade + factor.log10()))
        };
        let low = between().filter(|e| *e <= low + ROUNDING).fold(first, f64::max);
        let high = between().filter(|e| *e >= high && *e > low).fold(last, f64::min);
        let ticks = if last - first <= 2.0 {
            between().filter(|e| (low..=high).contains(e)).collect()
        } else {
            let mut decades = whole_steps(first, last);
            decades.retain(|e| (low..=high).contains(e));
            decades
        };
        Self { label: label.into(), scale: Scale::Log10, low, high, ticks }
    }

    /// Where `value` stands; `None` where the axis has no place for it.
    pub(super) fn position(&self, value: f64) -> Option<f64> {
        let position = self.scale.position(value)?;
        (self.low..=self.high).contains(&position).then_some(position)
    }

    /// Where `value` stands, or the nearest end of the axis.
    pub(super) fn nearest(&self, value: f64) -> f64 {
        match self.scale.position(value) {
            Some(position) => position.clamp(self.low, self.high),
            None => self.low,
        }
    }

    pub(super) fn low(&self) -> f64 {
        self.low
    }

    pub(super) fn high(&self) -> f64 {
        self.high
    }

    fn positions(&self) -> Positions {
        Positions { low: self.low, high: self.high, ticks: self.ticks.clone() }
    }

    /// Every so manieth tick has a label, so that none touches the next in so many pixels.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a small number of ticks"
    )]
    fn labels_every(&self, pixels: f64) -> usize {
        let widths = self.ticks.iter().map(|tick| self.tick_label(*tick).chars().count());
        let widest = widths.max().unwrap_or(0) as f64 * LETTER_PIXELS + LABEL_GAP_PIXELS;
        let apart = pixels / self.ticks.len().saturating_sub(1).max(1) as f64;
        ((widest / apart.max(1.0)).ceil() as usize).clamp(1, self.ticks.len().max(1))
    }

    fn tick_label(&self, position: f64) -> String {
        match self.scale {
            Scale::Linear => tick(position),
            Scale::Log2 => tick(position.exp2()),
            Scale::Log10 => tick(10f64.powf(position)),
        }
    }
}

impl Scale {
    fn position(self, value: f64) -> Option<f64> {
        let position = match self {
            Self::Linear => value,
            Self::Log2 => value.log2(),
            Self::Log10 => value.log10(),
        };
        position.is_finite().then_some(position)
    }
}

/// An axis as plotters wants it.
#[derive(Clone, Debug)]
pub(super) struct Positions {
    low: f64,
    high: f64,
    ticks: Vec<f64>,
}

impl Ranged for Positions {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    #[expect(clippy::cast_possible_truncation, reason = "the cast saturates, which clips")]
    fn map(&self, position: &f64, (first, last): (i32, i32)) -> i32 {
        let share = (position - self.low) / (self.high - self.low);
        (f64::from(first) + share * f64::from(last - first)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _most: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> std::ops::Range<f64> {
        self.low..self.high
    }
}

/// Room beside the powers of two of an axis.
const MARGIN: f64 = 0.25;

/// A digit of a tick's label, and what has to be between two labels.
const LETTER_PIXELS: f64 = 7.0;
const LABEL_GAP_PIXELS: f64 = 6.0;

/// Most ticks on an axis that can still be read.
const TICKS_MAX: usize = 12;

/// What an axis can be made for: finite, and not so large that arithmetic on it is not.
fn plottable(values: impl IntoIterator<Item = f64>) -> impl Iterator<Item = f64> {
    values.into_iter().filter(|v| v.abs() < 1e100)
}

/// The logarithm of 0.5 and that of 5 less one are the same number, but for this.
const ROUNDING: f64 = 1e-9;

/// The least and the largest exponent of `values`; 0 to 1 when none has any.
fn exponents(scale: Scale, values: impl IntoIterator<Item = f64>) -> (f64, f64) {
    let exponents = plottable(values).filter_map(|value| scale.position(value));
    let (low, high) = exponents.fold((f64::MAX, f64::MIN), |(low, high), exponent| {
        (low.min(exponent), high.max(exponent))
    });
    if low <= high { (low, high) } else { (0.0, 1.0) }
}

/// Whole numbers from `first` to `last`, in larger steps when there would be too many.
fn whole_steps(first: f64, last: f64) -> Vec<f64> {
    let every = ((last - first) / TICKS_MAX as f64).ceil().max(1.0);
    (0..=TICKS_MAX).map(|i| first + every * i as f64).take_while(|step| *step <= last).collect()
}

/// The smallest of 1, 2, 5 times a power of ten that is not below `step`.
fn round_step(step: f64) -> f64 {
    let power = 10f64.powf(step.log10().floor());
    [1.0, 2.0, 5.0, 10.0]
        .map(|factor| factor * power)
        .into_iter()
        .find(|round| *round >= step * (1.0 - 1e-9))
        .unwrap_or(step)
}

/// How a chart's frame differs from the usual.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    /// Room above, in pixels.
    pub(super) top: f64,
    /// Several charts beneath each other share the lowest one's axis of x.
    pub(super) without_x_labels: bool,
    /// No ticks and labels on y.
    pub(super) without_y: bool,
}

/// Axes, grid and labels, ready to be drawn into.
pub(super) fn chart<'a>(
    area: &Area<'a>,
    x: &Axis,
    y: &Axis,
    frame: Frame,
) -> Result<Chart<'a>, DrawingAreaErrorKind<std::io::Error>> {
    let bottom = if frame.without_x_labels { 6.0 } else { 46.0 };
    let left = if frame.without_y { 8.0 } else { left_pixels(width(area)) };
    let mut chart = ChartBuilder::on(area)
        .margin_top(scaled(frame.top))
        .margin_right(scaled(RIGHT_PIXELS))
        .x_label_area_size(scaled(bottom))
        .y_label_area_size(scaled(left))
        .build_cartesian_2d(x.positions(), y.positions())?;

    let every = x.labels_every(width(area) - left - RIGHT_PIXELS);
    let x_label = |position: &f64| {
        let number = x.ticks.iter().position(|tick| tick == position).unwrap_or(0);
        match frame.without_x_labels || number % every != 0 {
            true => String::new(),
            false => x.tick_label(*position),
        }
    };
    let y_label = |position: &f64| y.tick_label(*position);
    let mut mesh = chart.configure_mesh();
    mesh.x_labels(TICKS_MAX + 1)
        .y_labels(TICKS_MAX + 1)
        .x_label_formatter(&x_label)
        .y_label_formatter(&y_label)
        .light_line_style(TRANSPARENT)
        .bold_line_style(Ink::Grid.stroke(1.0))
        .axis_style(Ink::Axis.stroke(1.0))
        .set_all_tick_mark_size(scaled(4.0))
        .label_style(Ink::Axis.text(12.0, HPos::Center, VPos::Center))
        .axis_desc_style(Ink::Text.text(12.5, HPos::Center, VPos::Center))
        .x_desc(&x.label)
        .y_desc(&y.label);
    if frame.without_x_labels {
        mesh.x_desc("");
    }
    if frame.without_y {
        mesh.disable_y_mesh().disable_y_axis().y_desc("");
    }
    mesh.draw()?;
    Ok(chart)
}

/// A line through points.
pub(super) fn draw_line(
    chart: &mut Chart<'_>,
    points: impl IntoIterator<Item = (f64, f64)>,
    stroke: ShapeStyle,
) -> Drawn {
    chart.draw_series(LineSeries::new(points, stroke)).map(drop)
}

/// A straight line of dashes, whose lengths and spaces are pixels as shown.
pub(super) fn draw_dashes(
    chart: &mut Chart<'_>,
    ends: [(f64, f64); 2],
    (dash, space): (f64, f64),
    stroke: ShapeStyle,
) -> Drawn {
    let line = DashedLineSeries::new(ends, scaled(dash), scaled(space), stroke);
    chart.draw_series(line).map(drop)
}

/// Draws a measured point: configurations differ in shape as well as in colour.
pub(super) fn draw_marker(chart: &Chart<'_>, at: (f64, f64), index: usize, pixels: f64) -> Drawn {
    let (plot, colour, size) = (chart.plotting_area(), Ink::Series(index).filled(), scaled(pixels));
    match Shape::of(index) {
        Shape::Circle => plot.draw(&Circle::new(at, size, colour)),
        Shape::Square => {
            let corners = [(-size, -size), (size, size)];
            plot.draw(&(EmptyElement::at(at) + Rectangle::new(corners, colour)))
        }
        Shape::Triangle => {
            let (wide, high) = (size * 5 / 4, size * 3 / 2);
            let corners = vec![(0, -high), (wide, size), (-wide, size)];
            plot.draw(&(EmptyElement::at(at) + Polygon::new(corners, colour)))
        }
    }
}

/// The shape that goes with a configuration's colour.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Shape {
    Circle,
    Square,
    Triangle,
}

impl Shape {
    pub(super) fn of(index: usize) -> Self {
        [Self::Circle, Self::Square, Self::Triangle][index % 3]
    }
}

/// The text shortened to about `pixels` of width at `size` pixels of height.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a count of characters; negative becomes zero"
)]
pub(super) fn fitted(text: &str, pixels: f64, size: f64) -> String {
    clipped(text, (pixels / (size * 0.56)) as usize) // mean width of a sans-serif's letter
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|t| axis.tick_label(*t)).collect()
    }

    #[test]
    fn ticks_are_round_numbers_or_powers() {
        let linear = Axis::from_zero("MiB/s", [12.0, 118.0]);
        assert_eq!(labels(&linear), ["0", "20", "40", "60", "80", "100", "120"]);
        let windows = Axis::log2("N", [1.0, 64.0]);
        assert_eq!(labels(&windows), ["1", "2", "4", "8", "16", "32", "64"]);
        let decades = Axis::log10("ms", [0.6, 118.0]);
        assert_eq!(labels(&decades), ["1", "10", "100"]);
        assert_eq!(decades.tick_label(decades.high()), "200");
        let narrow = Axis::log10("ms", [0.5, 7.0]);
        assert_eq!(labels(&narrow), ["0.5", "1", "2", "5", "10"]);
    }

    #[test]
    fn every_axis_has_a_length_and_few_ticks() {
        let values = [0.0, -3.0, 1.0, f64::NAN, f64::INFINITY, f64::MAX, 1e99, f64::MIN_POSITIVE];
        for a in values {
            for b in values {
                for axis in
                    [Axis::from_zero("", [a, b]), Axis::log2("", [a, b]), Axis::log10("", [a, b])]
                {
                    assert!(axis.low < axis.high, "{axis:?} of {a} and {b}");
                    assert!(axis.high.is_finite() && axis.low.is_finite());
                    assert!(axis.ticks.len() <= 3 * TICKS_MAX + 1, "{axis:?} of {a} and {b}");
                    let inside = |tick: &f64| (axis.low..=axis.high).contains(tick);
                    assert!(axis.ticks.iter().all(inside), "{axis:?} of {a} and {b}");
                }
            }
        }
    }

    #[test]
    fn what_lies_outside_has_no_position() {
        let axis = Axis::log2("N", [1.0, 64.0]);
        assert_eq!(axis.position(8.0), Some(3.0));
        assert_eq!([0.0, -1.0, 1e9, f64::NAN].map(|v| axis.position(v)), [None; 4]);
        assert_eq!(axis.nearest(1e9), axis.high());
        assert_eq!(axis.nearest(f64::NAN), axis.low());
    }

    #[test]
    fn labels_that_would_touch_are_left_out() {
        let axis = Axis::from_zero("ms", [11_000.0]);
        assert_eq!((axis.labels_every(740.0), axis.labels_every(180.0)), (1, 2));
        assert_eq!(axis.labels_every(0.0), axis.ticks.len());
    }

    #[test]
    fn a_plot_is_drawn_for_wide_and_for_narrow_screens() {
        let drawn = std::cell::RefCell::new(Vec::new());
        let markup = svg(100, "a plot", |area| {
            drawn.borrow_mut().push(is_narrow(width(area)));
            Ok(())
        });
        assert_eq!(*drawn.borrow(), [false, true]);
        for class in ["class=\"wide\"", "class=\"narrow\""] {
            assert!(markup.0.contains(class), "{}", markup.0);
        }
    }

    #[test]
    fn long_names_end_in_an_ellipsis() {
        assert_eq!(fitted("short", 100.0, 12.0), "short");
        assert_eq!(fitted("not quite short", 70.0, 12.0), "not quite…");
        assert_eq!(fitted("none", -5.0, 12.0), "…");
    }
}
