//! Charts beneath each other on common axes, so that they compare at a glance.

use maud::Markup;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{
    self, Area, Axis, Chart, Drawn, Frame, Ink, RIGHT_PIXELS, fitted, is_narrow, left_pixels,
    plot_width, scaled, width,
};

/// What stands above a panel: its name on the left, its numbers in short on the right.
pub(super) struct Head<'a> {
    pub(super) name: &'a str,
    pub(super) note: String,
}

/// A drawing of one panel for each of `heads`, `pixels` high each; `draw` fills them by number.
pub(super) fn svg(
    label: &str,
    heads: &[Head<'_>],
    pixels: u32,
    (x, y): (&Axis, &Axis),
    draw: impl Fn(usize, &mut Chart<'_>) -> Drawn,
) -> Markup {
    let count = u32::try_from(heads.len()).unwrap_or(u32::MAX).max(1);
    let height = pixels.saturating_mul(count).saturating_add(AXIS_PIXELS);
    canvas::svg(height, label, |area| {
        for (index, (area, head)) in split(area, count).iter().zip(heads).enumerate() {
            draw_head(area, head)?;
            let top = if is_narrow(width(area)) { 40.0 } else { 30.0 };
            let frame =
                Frame { top, without_x_labels: index + 1 < heads.len(), ..Frame::default() };
            draw(index, &mut canvas::chart(area, x, y, frame)?)?;
        }
        Ok(())
    })
}

/// Panels of dots: x from zero, y in powers of ten.
pub(super) struct Dots<'a> {
    pub(super) x: &'a str,
    pub(super) y: &'a str,
    /// Dots of a panel on a wide screen, at most: a narrow one has half of them.
    pub(super) most: usize,
    /// One part in so many of them are the highest there are.
    pub(super) highest_part: usize,
    pub(super) panel_pixels: u32,
    pub(super) radius: f64,
    pub(super) opacity: f64,
}

impl Dots<'_> {
    /// A panel for each of `heads`; nothing without a single dot.
    pub(super) fn svg(
        &self,
        label: &str,
        heads: &[Head<'_>],
        points: &[Vec<(f64, f64)>],
    ) -> Option<Markup> {
        let chosen = |most| points.iter().map(|points| self.chosen(points, most)).collect();
        let (wide, narrow): (Vec<_>, Vec<_>) = (chosen(self.most), chosen(self.most / 2));
        wide.iter().flatten().next()?;
        let x = Axis::from_zero(self.x, wide.iter().flatten().map(|dot| dot.0));
        let y = Axis::log10(self.y, wide.iter().flatten().map(|dot| dot.1));
        Some(svg(label, heads, self.panel_pixels, (&x, &y), |index, chart| {
            let dots = if is_narrow(plot_width(chart)) { &narrow } else { &wide };
            let colour = Ink::Series(index).colour().mix(self.opacity).filled();
            dots[index].iter().try_for_each(|(along, up)| {
                let at = (*along, y.nearest(*up));
                chart.plotting_area().draw(&Circle::new(at, scaled(self.radius), colour))
            })
        }))
    }

    /// At most so many, in order of x: the highest, which are what one looks for, and of the others
    /// an even choice, which keeps the shape of the crowd.
    pub(super) fn chosen(&self, points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
        let mut dots: Vec<(f64, f64)> = points.iter().copied().filter(|dot| dot.1 > 0.0).collect();
        if dots.len() > most {
            let highest = most / self.highest_part;
            dots.sort_unstable_by(|a, b| b.1.total_cmp(&a.1));
            let mut others = dots.split_off(highest);
            others.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
            dots.extend(others.iter().step_by(others.len().div_ceil(most - highest)));
        }
        dots.sort_unstable_by(|a, b| a.0.total_cmp(&b.0));
        dots
    }
}

/// Room for the lowest panel's axis of x.
const AXIS_PIXELS: u32 = 40;

/// `count` equal areas beneath each other; the lowest has the axis of x in addition.
fn split<'a>(area: &Area<'a>, count: u32) -> Vec<Area<'a>> {
    let (_, height) = area.dim_in_pixel();
    let axis = scaled(f64::from(AXIS_PIXELS)).unsigned_abs();
    let each = height.saturating_sub(axis) / count;
    let mut areas = Vec::new();
    let mut rest = area.clone();
    for _ in 1..count {
        let (upper, lower) = rest.split_vertically(each);
        areas.push(upper);
        rest = lower;
    }
    areas.push(rest);
    areas
}

fn draw_head(area: &Area<'_>, head: &Head<'_>) -> Drawn {
    let (top, left, right) = (8.0, left_pixels(width(area)), width(area) - RIGHT_PIXELS);
    if is_narrow(width(area)) {
        // Beneath each other, from the edge on.
        let lines = [(head.name, 4.0, 12.5, Ink::Text), (&head.note, 20.0, 11.0, Ink::Axis)];
        for (text, top, size, ink) in lines {
            let style = ink.text(size, HPos::Left, VPos::Top);
            let text = fitted(text, width(area) - 12.0, size);
            area.draw(&Text::new(text, (scaled(6.0), scaled(top)), style))?;
        }
        return Ok(());
    }
    let note_pixels = 6.8 * head.note.chars().count() as f64;
    let name = fitted(head.name, right - left - note_pixels, 13.0);
    let style = Ink::Text.text(13.0, HPos::Left, VPos::Top);
    area.draw(&Text::new(name, (scaled(left), scaled(top)), style))?;
    let style = Ink::Axis.text(12.0, HPos::Right, VPos::Top);
    let at = (scaled(right), scaled(top));
    area.draw(&Text::new(head.note.clone(), at, style))
}
