//! Bytes over time: a staircase where the transfer stalls, a straight line where it flows.

use maud::Markup;
use perf::series::{Point, Series};
use perf::units::Nanos;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

use super::canvas::{Axis, Chart, Drawn, Ink, draw_line, plot_width};
use super::figure::{Figure, Key, Swatch, Table};
use super::number::{UNKNOWN, distinct, number};
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
    let stalls = || panels.iter().flat_map(Panel::stalls);
    stalls().next()?;
    let waits = stalls().map(|stall| stall.label.as_str()).filter(|label| !label.is_empty());
    let text = match distinct(waits).as_slice() {
        [] => "nothing moves".into(),
        waits => format!("nothing moves: {}", waits.join(", ")),
    };
    Some(Key::new(Swatch::Area(Ink::Stall), text))
}

/// A transfer without what cannot be drawn, in order of time.
struct Panel<'a> {
    name: &'a str,
    points: Vec<(f64, f64)>,
    stalls: Option<Vec<&'a Stall>>,
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
            stalls: transfer.stalls.as_ref().map(|stalls| stalls.iter().filter(drawable).collect()),
        }
    }

    fn stalls(&self) -> impl Iterator<Item = &'a Stall> {
        self.stalls.iter().flatten().copied()
    }

    fn duration_ms(&self) -> f64 {
        self.points.last().map_or(0.0, |p| p.0)
    }

    fn mib(&self) -> f64 {
        self.points.iter().map(|p| p.1).fold(0.0, f64::max)
    }

    fn stalled_ms(&self) -> Option<f64> {
        self.stalls.as_ref()?;
        // The sum of no floats would be -0.
        Some(self.stalls().fold(0.0, |ms, stall| ms + stall.end_ms - stall.start_ms))
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
        let share = self.stalled_ms()? / self.duration_ms() * 100.0;
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
    let stalls = panels.iter().flat_map(Panel::stalls).map(|stall| stall.end_ms);
    let x = Axis::from_zero("time since start (ms)", times.chain(stalls));
    let y = Axis::from_zero("transferred (MiB)", panels.iter().map(Panel::mib));
    let heads: Vec<Head<'_>> = panels.iter().map(Panel::head).collect();
    panels::svg(&format!("{title}: bytes over time"), &heads, 190, (&x, &y), |index, chart| {
        draw(chart, index, &panels[index], &x, &y)
    })
}

fn draw(chart: &mut Chart<'_>, index: usize, panel: &Panel<'_>, x: &Axis, y: &Axis) -> Drawn {
    for stall in panel.stalls() {
        draw_stall(chart, stall, x, y)?;
    }
    draw_line(chart, panel.points.iter().copied(), Ink::Series(index).stroke(2.0))
}

/// A shaded stretch of time, with what it waited for and how long, where that fits.
fn draw_stall(chart: &Chart<'_>, stall: &Stall, x: &Axis, y: &Axis) -> Drawn {
    let plot = chart.plotting_area();
    let corners = [(stall.start_ms, y.low()), (stall.end_ms, y.high())];
    plot.draw(&Rectangle::new(corners, Ink::Stall.filled()))?;

    let ms = stall.end_ms - stall.start_ms;
    let pixels = ms * plot_width(chart) / x.high();
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
    let mut sentences =
        vec!["A flat stretch of the line is a time in which nothing moved.".to_owned()];
    if panels.len() > 1 {
        sentences
            .push(format!("All panels share one scale{}.", beside(panels).unwrap_or_default()));
    }
    let stalled = |panel: &Panel<'_>| {
        let (name, stalls) = (panel.name, panel.stalls.as_ref()?);
        Some(match panel.stalled_pct().filter(|_| !stalls.is_empty()) {
            Some(pct) => format!("“{name}” stands still for {pct:.0} % of its time"),
            None => format!("in “{name}” no stall was recorded"),
        })
    };
    let stalled: Vec<String> = panels.iter().filter_map(stalled).collect();
    if !stalled.is_empty() {
        sentences.push(format!("{}.", stalled.join("; ")));
    }
    sentences.join(" ")
}

/// Two lengths or heights that differ by less look the same.
const ALIKE: f64 = 0.05;

/// How panels compare, which is another thing for transfers of the same bytes and for those of the
/// same time; nothing for a single one.
fn beside(panels: &[Panel<'_>]) -> Option<String> {
    let drawn: Vec<&Panel<'_>> =
        panels.iter().filter(|panel| panel.mib_s().is_finite() && panel.mib() > 0.0).collect();
    let alike = |value: &dyn Fn(&Panel<'_>) -> f64| {
        let values = drawn.iter().map(|panel| value(panel));
        let least = values.clone().fold(f64::INFINITY, f64::min);
        values.fold(0.0, f64::max) <= (1.0 + ALIKE) * least
    };
    let by_rate = |a: &&&Panel<'_>, b: &&&Panel<'_>| a.mib_s().total_cmp(&b.mib_s());
    let (fastest, slowest) = (drawn.iter().max_by(by_rate)?, drawn.iter().min_by(by_rate)?);
    if drawn.len() < 2 {
        return None;
    }
    let how = match (alike(&|panel| panel.mib()), alike(&|panel| panel.duration_ms())) {
        (true, true) => "; here all lines end at about the same point",
        (true, false) => " and the bytes are the same, so the shorter line is the faster transfer",
        (false, true) => " and the times are the same, so the higher line is the faster transfer",
        (false, false) => {
            ", but neither bytes nor times are the same: the steeper line is the \
                           faster transfer"
        }
    };
    let rates = format!(
        "“{}” with {} MiB/s, “{}” with {}",
        fastest.name,
        number(fastest.mib_s()),
        slowest.name,
        number(slowest.mib_s())
    );
    Some(match alike(&|panel| panel.mib_s()) {
        true => format!("{how}; their rates differ by less than 5 % ({rates})"),
        false => format!("{how}: {rates}"),
    })
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
        let longest = panel.stalls().map(|s| s.end_ms - s.start_ms).fold(0.0, f64::max);
        let of_stalls =
            |value: String| panel.stalls.as_ref().map_or_else(|| UNKNOWN.into(), |_| value);
        table.row([
            panel.name.to_owned(),
            number(panel.mib()),
            number(panel.duration_ms()),
            number(panel.mib_s()),
            of_stalls(panel.stalls().count().to_string()),
            of_stalls(number(panel.stalled_ms().unwrap_or(0.0))),
            of_stalls(number(longest)),
            panel.stalled_pct().map_or_else(|| UNKNOWN.into(), |pct| format!("{pct:.1} %")),
        ]);
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two transfers at a constant rate, each of so many milliseconds and MiB.
    fn sentence(transfers: &[(f64, f64)]) -> String {
        let names = ["first", "second", "third"];
        let transfers: Vec<Transfer> = transfers
            .iter()
            .zip(names)
            .map(|(&(ms, mib), name)| Transfer {
                name: name.to_owned(),
                points: vec![(0.0, 0.0), (ms / 2.0, mib / 2.0), (ms, mib)],
                stalls: Some(Vec::new()),
            })
            .collect();
        caption(&transfers.iter().map(Panel::new).collect::<Vec<_>>())
    }

    #[test]
    fn a_transfer_without_stalls_has_stalled_for_no_time_and_not_for_less() {
        let (name, points) = ("all".to_owned(), vec![(0.0, 0.0), (100.0, 8.0)]);
        let transfer = Transfer { name, points, stalls: Some(Vec::new()) };
        let stalled = Panel::new(&transfer).stalled_pct().unwrap();
        assert_eq!(format!("{stalled:.1} %"), "0.0 %");
    }

    #[test]
    fn which_line_is_the_faster_transfer_depends_on_what_was_held_the_same() {
        let same_bytes = sentence(&[(100.0, 10.0), (400.0, 10.0)]);
        assert!(same_bytes.contains("the shorter line is the faster transfer: “first” with 100 "));
        let same_time = sentence(&[(400.0, 10.0), (400.0, 40.0)]);
        assert!(same_time.contains("the higher line is the faster transfer: “second” with 100 "));
        let neither = sentence(&[(100.0, 10.0), (400.0, 80.0)]);
        assert!(neither.contains("the steeper line is the faster transfer: “second” with 200 "));
        for text in [same_time, neither] {
            assert!(!text.contains("shorter line"), "{text}");
        }
    }

    #[test]
    fn alike_transfers_and_a_single_one_have_no_faster_line() {
        let alike = sentence(&[(100.0, 10.0), (101.0, 10.0)]);
        assert!(alike.contains("differ by less than 5 %") && !alike.contains("faster"), "{alike}");
        let single = sentence(&[(100.0, 10.0)]);
        assert!(!single.contains("faster") && !single.contains("panels"), "{single}");
        assert!(single.ends_with("in “first” no stall was recorded."), "{single}");
        assert!(!sentence(&[(100.0, 10.0), (0.0, 0.0)]).contains("faster"));
    }

    #[test]
    fn of_stalls_that_are_not_known_nothing_is_stated() {
        let stalls = |stalls| {
            let points = vec![(0.0, 0.0), (40.0, 1.0)];
            let transfer = Transfer { name: "one".to_owned(), points, stalls };
            let panels = [Panel::new(&transfer)];
            (caption(&panels), table(&panels).rows[0][4..].to_vec())
        };
        let (sentence, numbers) = stalls(None);
        assert!(!sentence.contains("stall") && !sentence.contains("still"), "{sentence}");
        assert_eq!(numbers, [UNKNOWN; 4]);
        let one = Stall { start_ms: 10.0, end_ms: 20.0, label: "COMMIT".to_owned() };
        let (sentence, numbers) = stalls(Some(vec![one]));
        assert!(sentence.contains("“one” stands still for 25 % of its time"), "{sentence}");
        assert_eq!(numbers, ["1", "10.0", "10.0", "25.0 %"]);
    }
}
