//! The tables that people read: Markdown, one line for each row, and what was missed.

use std::fmt::Write as _;

use super::outcome::{Figure, Mode, Outcomes};
use super::rows::{ROWS, Row, SCALED, SCALING_TARGET, Unit};
use super::servers::Name;
use super::stats::Summary;

/// Text of all tables, the missed targets at the end.
pub(crate) fn text(outcomes: &Outcomes) -> String {
    let mut text = String::new();
    let mut missed = Vec::new();
    for mode in [Mode::Pinned, Mode::Unpinned] {
        let lines: Vec<Line> =
            ROWS.iter().filter_map(|row| Line::of(outcomes, mode, row)).collect();
        if lines.is_empty() {
            continue;
        }
        let _ =
            writeln!(text, "\n{}: throughput, and response time p50 (p99) in us\n", mode.label());
        text += "| operation | ours | Ganesha | unfs3 | ours/Ganesha | target | met \
                 | ours p50 | Ganesha p50 | p50 ratio |\n\
                 |---|--:|--:|--:|--:|--:|---|--:|--:|--:|\n";
        lines.iter().for_each(|line| text += &line.throughput);
        let _ = writeln!(text, "\n{}: server CPU, us per call or entry, s per GiB\n", mode.label());
        text += "| operation | ours | Ganesha | unfs3 | ours/Ganesha | target | met | client |\n\
                 |---|--:|--:|--:|--:|--:|---|--:|\n";
        lines.iter().for_each(|line| text += &line.cpu);
        missed.extend(lines.into_iter().flat_map(|line| line.missed));
    }
    text += &scaling(outcomes, &mut missed);
    match missed.is_empty() {
        true => text += "\nno target is missed\n",
        false => {
            let _ = writeln!(text, "\n{} targets are missed:", missed.len());
            missed.iter().for_each(|line| text += &format!("- {line}\n"));
        }
    }
    text
}

/// What a row says in the two tables of a mode.
struct Line {
    throughput: String,
    cpu: String,
    missed: Vec<String>,
}

impl Line {
    fn of(outcomes: &Outcomes, mode: Mode, row: &Row) -> Option<Self> {
        let ours = *row.peers.first()?;
        outcomes.summary(mode, row.name, ours, Figure::Rate)?;
        let view = View { outcomes, mode, row, ours };
        let (throughput, mut missed) = view.throughput();
        let (cpu, missed_cpu) = view.cpu();
        missed.extend(missed_cpu);
        Some(Self { throughput, cpu, missed })
    }
}

/// A row in a mode.
struct View<'a> {
    outcomes: &'a Outcomes,
    mode: Mode,
    row: &'a Row,
    ours: Name,
}

impl View<'_> {
    /// The line of the table of throughput, and what is missed in it.
    fn throughput(&self) -> (String, Vec<String>) {
        let (row, target) = (self.row, self.row.target);
        let wanted = match self.mode {
            Mode::Unpinned => target.throughput_unpinned.or(target.throughput),
            Mode::Pinned | Mode::Doubled => target.throughput,
        };
        let by = self.compare(Name::Ganesha, Figure::Rate);
        let of_local = self.compare(Name::Local, Figure::Rate);
        let of_plain = self.compare(Name::Ours, Figure::Rate);
        let rate = self.see(self.ours, Figure::Rate);
        let p50 = self.compare(Name::Ganesha, Figure::P50);
        // The aim of a memory store is stated for one core.
        let on_one = |wanted: Option<f64>| wanted.filter(|_| self.mode == Mode::Pinned);
        let mut verdict = self.verdict();
        verdict.at_least("throughput", by, wanted, "");
        verdict.at_least("of a local write", of_local, target.of_local, "");
        verdict.at_least("of ours without a log", of_plain, target.of_plain, "");
        verdict.at_least("rate", rate, on_one(target.rate), "/s");
        verdict.at_most("p50", p50, target.p50, "");
        let latency = |name| latency(self.see(name, Figure::P50), self.see(name, Figure::P99));
        let mut line = cells(&[
            row.name.to_owned(),
            shown_rate(row.unit, rate),
            shown_rate(row.unit, self.see(Name::Ganesha, Figure::Rate)),
            shown_rate(row.unit, self.see(Name::Unfs3, Figure::Rate)),
            shown_ratio(by),
            verdict.targets(),
            verdict.met().to_owned(),
            latency(self.ours),
            latency(Name::Ganesha),
            shown_ratio(p50),
        ]);
        let others =
            [(Name::Local, "locally", of_local), (Name::Ours, "without the log", of_plain)];
        for (name, how, ratio) in others.into_iter().filter(|&(name, ..)| name != self.ours) {
            let Some(other) = self.see(name, Figure::Rate) else { continue };
            let (other, ratio) = (shown_rate(row.unit, Some(other)), shown_ratio(ratio));
            line += &format!("| the same, {how} | {other} | | | {ratio} | | | | | |\n");
        }
        (line, verdict.missed)
    }

    /// The line of the table of CPU time, and what is missed in it.
    fn cpu(&self) -> (String, Vec<String>) {
        let (row, target) = (self.row, self.row.target);
        let by = self.compare(Name::Ganesha, Figure::Cpu);
        let of_unfs3 = self.compare(Name::Unfs3, Figure::Cpu);
        let cpu = self.see(self.ours, Figure::Cpu);
        let each = cpu.map(|cpu| scaled(cpu, cpu_scale(row.unit)));
        let mut verdict = self.verdict();
        verdict.at_most("CPU", by, target.cpu, "");
        match of_unfs3 {
            Some(_) => verdict.at_most("CPU to unfs3's", of_unfs3, target.cpu_of_unfs3, ""),
            None => verdict.at_most("unfs3's CPU", each, target.unfs3_us, " us"),
        }
        verdict.at_most("CPU", each, target.cpu_each, cpu_unit(row.unit));
        let line = cells(&[
            row.name.to_owned(),
            shown_cpu(row.unit, cpu),
            shown_cpu(row.unit, self.see(Name::Ganesha, Figure::Cpu)),
            shown_cpu(row.unit, self.see(Name::Unfs3, Figure::Cpu)),
            shown_ratio(by),
            verdict.targets(),
            verdict.met().to_owned(),
            shown_cpu(row.unit, self.see(self.ours, Figure::ClientCpu)),
        ]);
        (line, verdict.missed)
    }

    fn see(&self, name: Name, figure: Figure) -> Option<Summary> {
        self.outcomes.summary(self.mode, self.row.name, name, figure)
    }

    /// Ours to another's.
    fn compare(&self, name: Name, figure: Figure) -> Option<Summary> {
        let (ours, other) = ((self.mode, self.ours), (self.mode, name));
        self.outcomes.ratio(ours, other, self.row.name, figure)
    }

    fn verdict(&self) -> Verdict {
        let what = format!("{}, {}", self.row.name, self.mode.label());
        Verdict { what, ..Verdict::default() }
    }
}

fn cells(cells: &[String]) -> String {
    format!("| {} |\n", cells.join(" | "))
}

/// Targets of a line, and which of them are missed.
#[derive(Default)]
struct Verdict {
    what: String,
    targets: Vec<String>,
    missed: Vec<String>,
}

impl Verdict {
    fn at_least(&mut self, of: &str, got: Option<Summary>, wanted: Option<f64>, unit: &str) {
        self.note(of, got, wanted, ">=", unit, |got, wanted| got >= wanted);
    }

    fn at_most(&mut self, of: &str, got: Option<Summary>, wanted: Option<f64>, unit: &str) {
        self.note(of, got, wanted, "<=", unit, |got, wanted| got <= wanted);
    }

    fn note(
        &mut self,
        of: &str,
        got: Option<Summary>,
        wanted: Option<f64>,
        sign: &str,
        unit: &str,
        holds: fn(f64, f64) -> bool,
    ) {
        let Some(wanted) = wanted else { return };
        let first = if self.targets.is_empty() { "" } else { of };
        self.targets.push(format!("{first} {sign} {wanted}{unit}").trim().to_owned());
        match got {
            Some(got) if holds(got.median, wanted) => {}
            Some(got) => {
                let got = got.median;
                self.missed.push(format!(
                    "{}: {of} {got:.2}{unit}, target {sign} {wanted}{unit}",
                    self.what
                ));
            }
            None => self.missed.push(format!("{}: {of} was not measured", self.what)),
        }
    }

    fn targets(&self) -> String {
        self.targets.join(", ")
    }

    fn met(&self) -> &'static str {
        match (self.targets.is_empty(), self.missed.is_empty()) {
            (true, _) => "",
            (false, true) => "yes",
            (false, false) => "NO",
        }
    }
}

/// Two connections on two cores, to one on one.
fn scaling(outcomes: &Outcomes, missed: &mut Vec<String>) -> String {
    let mut text = String::new();
    for row in SCALED {
        let factor =
            |name| outcomes.ratio((Mode::Doubled, name), (Mode::Pinned, name), row, Figure::Rate);
        let Some(ours) = factor(Name::Ours) else { continue };
        let mut verdict =
            Verdict { what: format!("{row}, {}", Mode::Doubled.label()), ..Verdict::default() };
        verdict.at_least("scaling", Some(ours), Some(SCALING_TARGET), "");
        let (ours, ganesha) = (shown_ratio(Some(ours)), shown_ratio(factor(Name::Ganesha)));
        let (target, met) = (verdict.targets(), verdict.met());
        let _ = writeln!(text, "| {row} | {ours} | {ganesha} | {target} | {met} |");
        missed.append(&mut verdict.missed);
    }
    match text.is_empty() {
        true => text,
        false => format!(
            "\ntwo cores and two connections, to one and one: factor in throughput\n\n\
             | operation | ours | Ganesha | target | met |\n|---|--:|--:|--:|---|\n{text}"
        ),
    }
}

fn scaled(summary: Summary, by: f64) -> Summary {
    let Summary { median, min, max, runs } = summary;
    Summary { median: median * by, min: min * by, max: max * by, runs }
}

fn shown_rate(unit: Unit, rate: Option<Summary>) -> String {
    let Some(rate) = rate else { return String::new() };
    let (value, spread) = (rate.median, rate.spread_pct());
    match unit {
        Unit::Bytes => format!("{:.0} MiB/s ±{spread:.0}%", value * 1024.0),
        Unit::Calls | Unit::Entries => format!("{value:.0}/s ±{spread:.0}%"),
    }
}

fn shown_ratio(ratio: Option<Summary>) -> String {
    ratio.map_or_else(String::new, |ratio| {
        format!("{:.2} ({:.2}-{:.2})", ratio.median, ratio.min, ratio.max)
    })
}

fn shown_cpu(unit: Unit, cpu: Option<Summary>) -> String {
    cpu.map_or_else(String::new, |cpu| {
        format!("{:.2} ±{:.0}%", cpu.median * cpu_scale(unit), cpu.spread_pct())
    })
}

/// From ns for each unit to what is shown.
fn cpu_scale(unit: Unit) -> f64 {
    match unit {
        Unit::Bytes => 1e-9,
        Unit::Calls | Unit::Entries => 1e-3,
    }
}

fn cpu_unit(unit: Unit) -> &'static str {
    match unit {
        Unit::Bytes => " s/GiB",
        Unit::Calls | Unit::Entries => " us",
    }
}

fn latency(p50: Option<Summary>, p99: Option<Summary>) -> String {
    match (p50, p99) {
        (Some(p50), Some(p99)) => {
            format!("{:.0} ({:.0})", p50.median / 1000.0, p99.median / 1000.0)
        }
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers::measure::Sample;

    fn outcomes(ours: u64, cpu_ns: u64) -> Outcomes {
        let mut outcomes = Outcomes::default();
        let row = ROWS.iter().find(|row| row.name == "GETATTR x64").unwrap();
        let sample = |amount, server_cpu_ns| Sample {
            amount,
            calls: amount,
            seconds: 1.0,
            server_cpu_ns,
            p50_ns: 2_000,
            p99_ns: 9_000,
            ..Sample::default()
        };
        for mode in [Mode::Pinned, Mode::Doubled] {
            outcomes.add(mode, row, Name::Ganesha, 0, sample(1_000, 10_000_000));
            outcomes.add(mode, row, Name::Ours, 0, sample(ours, cpu_ns));
        }
        outcomes
    }

    #[test]
    fn a_target_that_is_met_says_yes_and_none_is_missed() {
        let mut good = outcomes(3_000, 7_000_000);
        let row = ROWS.iter().find(|row| row.name == "GETATTR x64").unwrap();
        let twice = Sample { amount: 6_000, seconds: 1.0, ..Sample::default() };
        good.add(Mode::Doubled, row, Name::Ours, 0, twice);
        let text = text(&good);
        assert!(
            text.contains(
                "| GETATTR x64 | 3000/s ±0% | 1000/s ±0% |  | 3.00 (3.00-3.00) | >= 3 | yes |"
            ),
            "{text}"
        );
        assert!(
            text.contains(
                "| GETATTR x64 | 2.33 ±0% | 10.00 ±0% |  | 0.23 (0.23-0.23) | <= 0.25, unfs3's CPU <= 8 us | yes |"
            ),
            "{text}"
        );
        assert!(text.contains("no target is missed"), "{text}");
    }

    #[test]
    fn what_is_missed_has_its_number() {
        let text = text(&outcomes(2_000, 8_000_000));
        assert!(text.contains("throughput 2.00, target >= 3"), "{text}");
        assert!(text.contains("CPU 0.40, target <= 0.25"), "{text}");
        assert!(text.contains("scaling 1.00, target >= 1.7"), "{text}");
        assert!(text.contains("| NO |"), "{text}");
    }

    #[test]
    fn nothing_measured_is_an_empty_table() {
        assert_eq!(text(&Outcomes::default()), "\nno target is missed\n");
    }
}
