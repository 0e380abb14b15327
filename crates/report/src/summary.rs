//! The report in a terminal: at most 40 lines of plain text, so that it stays on the screen.
//!
//! Headline first, then the terms, then predicted beside measured for every window, then what
//! the changes gave. When that does not fit, first the empty lines give way, then whole throughput
//! tables, last one first, with a line in their place: the report in HTML has everything.

use super::number::{clipped, count, interval, number, optional, percent};
use super::{Curve, Numbers, Parameter, Step, StudyReport, ThroughputPlot};

/// No summary is longer.
pub const SUMMARY_LINES_MAX: usize = 40;

/// The report in at most [`SUMMARY_LINES_MAX`] lines of about `width` columns, without colours.
pub fn summary(report: &StudyReport, width: usize) -> String {
    let width = width.max(WIDTH_MIN);
    let head = head(report, width);
    let parameters = parameters(&report.parameters, width);
    let end = [steps(&report.steps, width), foot(report, width)].concat();

    let tables: Vec<Block> =
        report.throughput.iter().flat_map(|plot| throughput(plot, width)).collect();

    let further: Vec<Block> = report.tables.iter().map(|table| numbers(table, width)).collect();

    let fixed = head.len() + parameters.len() + further.concat().len() + end.len();
    let tables = fitting(tables, SUMMARY_LINES_MAX.saturating_sub(fixed));
    let blocks: Vec<Block> = [vec![head, parameters], tables, further, vec![end]]
        .concat()
        .into_iter()
        .filter(|block| !block.is_empty())
        .collect();
    let mut lines = spaced(blocks);
    lines.truncate(SUMMARY_LINES_MAX);
    lines.iter().map(|line| format!("{}\n", line.trim_end())).collect()
}

/// All blocks, with an empty line between them if there is room for it.
fn spaced(blocks: Vec<Block>) -> Block {
    let count: usize = blocks.iter().map(Vec::len).sum();
    if count + blocks.len() > SUMMARY_LINES_MAX + 1 {
        return blocks.concat();
    }
    blocks.join(&String::new())
}

/// Narrower than this no table can be read.
const WIDTH_MIN: usize = 60;
const SENTENCE_LINES_MAX: usize = 4;
const PARAMETERS_MAX: usize = 9;
const STEPS_MAX: usize = 4;
const FURTHER_ROWS_MAX: usize = 6;

type Block = Vec<String>;

fn head(report: &StudyReport, width: usize) -> Block {
    let mut lines = vec![clipped(&report.title, width)];
    let durability = report.durability.map(|d| format!("durability {d}"));
    let about = [Some(report.target.clone()), durability, Some(report.link.clone())];
    let about: Vec<String> = about.into_iter().flatten().filter(|text| !text.is_empty()).collect();
    if !about.is_empty() {
        lines.push(clipped(&about.join("; "), width));
    }
    lines.extend(wrapped(&report.headline.sentence, width, SENTENCE_LINES_MAX));
    let facts: Vec<String> = report
        .headline
        .facts
        .iter()
        .map(|fact| format!("{}: {}", fact.label, fact.value))
        .collect();
    lines.extend(wrapped(&facts.join(" | "), width, 2));
    lines.retain(|line| !line.is_empty());
    lines
}

fn parameters(parameters: &[Parameter], width: usize) -> Block {
    let row = |p: &Parameter| {
        vec![p.name.clone(), number(p.value), p.unit.clone(), interval(p.ci95), count(p.n)]
    };
    let head = ["term", "value", "unit", "95 % interval", "n"];
    let rows = parameters.iter().take(PARAMETERS_MAX).map(row).collect();
    with_rest(aligned(&head, rows, width), parameters.len(), PARAMETERS_MAX)
}

/// A further table, without its caption.
fn numbers(numbers: &Numbers, width: usize) -> Block {
    let columns: Vec<&str> = numbers.columns.iter().map(String::as_str).collect();
    let rows = numbers.rows.iter().take(FURTHER_ROWS_MAX).cloned().collect();
    let table = with_rest(aligned(&columns, rows, width), numbers.rows.len(), FURTHER_ROWS_MAX);
    [vec![clipped(&numbers.title, width)], table].concat()
}

/// The curves side by side, as many as fit beneath one heading; rows are the windows.
fn throughput(plot: &ThroughputPlot, width: usize) -> Vec<Block> {
    let per_table = ((width - WINDOW_COLUMNS) / columns(&plot.curves)).max(1);
    plot.curves
        .chunks(per_table)
        .map(|curves| throughput_table(&plot.title, curves, width))
        .filter(|block| !block.is_empty())
        .collect()
}

/// Columns of the window size.
const WINDOW_COLUMNS: usize = 5;
/// Columns of one curve: three numbers with their space, or four where some points were simulated.
fn columns(curves: &[Curve]) -> usize {
    if is_simulated(curves) { 41 } else { 33 }
}

fn is_simulated(curves: &[Curve]) -> bool {
    curves.iter().flat_map(|curve| &curve.points).any(|point| point.simulated_mib_s.is_some())
}

fn throughput_table(title: &str, curves: &[Curve], width: usize) -> Block {
    let mut windows: Vec<u32> = curves.iter().flat_map(|c| &c.points).map(|p| p.n).collect();
    windows.sort_unstable();
    windows.dedup();
    if windows.is_empty() {
        return Vec::new();
    }
    let mut lines = throughput_head(clipped(&format!("{title}, MiB/s"), width), curves);
    let is_simulated = is_simulated(curves);
    for n in windows {
        let cells = curves.iter().map(|curve| throughput_cells(curve, n, is_simulated));
        lines.push(format!("{n:>WINDOW_COLUMNS$}{}", cells.collect::<String>()));
    }
    lines
}

fn throughput_head(heading: String, curves: &[Curve]) -> Block {
    let (columns, is_simulated) = (columns(curves), is_simulated(curves));
    let mut names = format!("{:>WINDOW_COLUMNS$}", "");
    let mut heads = format!("{:>WINDOW_COLUMNS$}", "N");
    for curve in curves {
        let name = clipped(&curve.name, columns - 2);
        names += &format!("{name:>columns$}");
        heads += &match is_simulated {
            true => format!("{:>11}{:>11}{:>10}{:>9}", "formula", "simulated", "measured", "error"),
            false => format!("{:>12}{:>11}{:>10}", "predicted", "measured", "error"),
        };
    }
    // One line for both where the heading fits before the first name.
    let heading_chars = heading.chars().count();
    match names.char_indices().nth(heading_chars + 1) {
        Some((at, _)) if names[..at].trim().is_empty() => vec![heading + &names[at - 1..], heads],
        _ => vec![heading, names, heads],
    }
}

/// The numbers of one curve with `n` outstanding calls.
fn throughput_cells(curve: &Curve, n: u32, is_simulated: bool) -> String {
    let point = curve.points.iter().find(|p| p.n == n).copied().unwrap_or_default();
    let rates = [point.predicted_mib_s, point.simulated_mib_s, point.measured_mib_s];
    let [predicted, simulated, measured] = rates.map(optional);
    let error = percent(point.error_pct());
    match is_simulated {
        true => format!("{predicted:>11}{simulated:>11}{measured:>10}{error:>9}"),
        false => format!("{predicted:>12}{measured:>11}{error:>10}"),
    }
}

fn steps(steps: &[Step], width: usize) -> Block {
    let row = |step: &Step| {
        vec![
            clipped(&step.change, width.saturating_sub(60).max(16)),
            number(step.before_mib_s),
            number(step.predicted_mib_s),
            number(step.measured_mib_s),
            percent(step.predicted_gain_pct()),
            percent(step.measured_gain_pct()),
        ]
    };
    let head =
        ["change, MiB/s", "before", "predicted", "measured", "predicted gain", "measured gain"];
    let rows = steps.iter().take(STEPS_MAX).map(row).collect();
    with_rest(aligned(&head, rows, width), steps.len(), STEPS_MAX)
}

fn foot(report: &StudyReport, width: usize) -> Block {
    let mut lines = Vec::new();
    if let Some(first) = report.warnings.first() {
        let count = match report.warnings.len() {
            1 => String::from("Warning"),
            n => format!("{n} warnings, the first"),
        };
        lines.push(clipped(&format!("{count}: {}", first.text), width));
    }
    if !report.raw_data.is_empty() {
        lines.push(clipped(&format!("Raw data: {}", report.raw_data), width));
    }
    lines
}

/// The first of `blocks` that fit into `lines`; then how many did not.
fn fitting(mut blocks: Vec<Block>, lines: usize) -> Vec<Block> {
    let count = blocks.len();
    let height = |blocks: &[Block]| blocks.iter().map(Vec::len).sum::<usize>();
    if height(&blocks) <= lines {
        return blocks;
    }
    while !blocks.is_empty() && height(&blocks) >= lines {
        blocks.pop();
    }
    let missing = count - blocks.len();
    blocks.push(vec![format!("({missing} of {count} throughput tables: see the report)")]);
    blocks
}

fn with_rest(mut lines: Block, count: usize, shown: usize) -> Block {
    if count > shown {
        lines.push(format!("({} more in the report)", count - shown));
    }
    lines
}

/// Columns as wide as their widest cell: the first to the left, the others to the right.
fn aligned(head: &[&str], rows: Vec<Vec<String>>, width: usize) -> Block {
    if rows.is_empty() {
        return Vec::new();
    }
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let columns = |index: usize| {
        let cells = rows.iter().chain([&head]).filter_map(move |row| row.get(index));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(columns).collect();
    let line = |row: &Vec<String>| {
        let mut line = String::new();
        for (index, (cell, width)) in row.iter().zip(&widths).enumerate() {
            line += &match index {
                0 => format!("{cell:<width$}"),
                _ => format!("  {cell:>width$}"),
            };
        }
        clipped(&line, width)
    };
    [&head].into_iter().chain(&rows).map(line).collect()
}

/// Words on lines of at most `width`, at most `lines_max` of them.
fn wrapped(text: &str, width: usize, lines_max: usize) -> Block {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(clipped(word, width)),
        }
    }
    if lines.len() > lines_max {
        lines.truncate(lines_max);
        if let Some(last) = lines.last_mut() {
            *last = clipped(&format!("{last} …"), width);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CurvePoint;
    use crate::fixtures::{report, wild};

    fn study(sizes: usize) -> StudyReport {
        let curve = |name: &str| Curve {
            name: name.into(),
            points: (0..7)
                .map(|exponent| CurvePoint {
                    n: 1 << exponent,
                    measured_mib_s: Some(20.0),
                    spread_mib_s: None,
                    predicted_mib_s: Some(21.0),
                    simulated_mib_s: None,
                })
                .collect(),
        };
        let mut report = report(|| 5.0);
        report.throughput = vec![
            ThroughputPlot {
                title: "8 KiB writes".into(),
                curves: vec![curve("stall"), curve("concurrent")],
                ceilings: Vec::new(),
            };
            sizes
        ];
        report
    }

    #[test]
    fn predicted_stands_beside_measured_for_every_window() {
        let text = summary(&study(1), 80);
        let expected = "\
8 KiB writes, MiB/s              stall                       concurrent
    N   predicted   measured     error   predicted   measured     error
    1        21.0       20.0    +5.0 %        21.0       20.0    +5.0 %
    2        21.0       20.0    +5.0 %        21.0       20.0    +5.0 %
";
        assert!(text.contains(expected), "{text}");
        assert!(text.contains("\n   64        21.0"), "{text}");
    }

    #[test]
    fn a_simulation_stands_between_formula_and_measurement_where_there_is_one() {
        let mut report = study(1);
        for curve in &mut report.throughput[0].curves {
            curve.points[0].simulated_mib_s = Some(20.5);
        }
        let text = summary(&report, 96);
        let expected = "    N    formula  simulated  measured    error    formula";
        assert!(text.contains(expected), "{text}");
        let first = "\n    1       21.0       20.5      20.0   +5.0 %       21.0";
        assert!(text.contains(first), "{text}");
        assert!(text.contains("\n    2       21.0          –      20.0"), "{text}");
    }

    #[test]
    fn it_begins_with_the_result_and_ends_with_where_to_look() {
        let text = summary(&study(1), 80);
        let lines: Vec<&str> = text.lines().collect();
        let head = [
            "A study",
            "embedded server; durability memory; loopback",
            "The link dominates.",
            "Limit: 118 MiB/s",
        ];
        assert_eq!(lines[..4], head);
        assert_eq!(lines.last(), Some(&"Raw data: run.json"));
        assert!(text.contains("T_prop   5.00    µs   5.00 to 5.00  7"), "{text}");
    }

    #[test]
    fn a_further_table_is_there_and_throughput_gives_way_to_it() {
        for sizes in [1, 9] {
            let text = summary(&study(sizes), 80);
            assert!(text.contains("table one\nname\ncell one\n"), "{text}");
        }
    }

    #[test]
    fn two_sizes_with_two_configurations_fit_whole() {
        let text = summary(&study(2), 80);
        assert_eq!(text.matches("8 KiB writes").count(), 2);
        assert!(!text.contains("see the report"));
    }

    #[test]
    fn what_does_not_fit_is_announced() {
        let text = summary(&study(9), 80);
        assert!(text.contains("of 9 throughput tables: see the report)"), "{text}");
        assert!(text.contains("Raw data: run.json"));
    }

    #[test]
    fn it_never_exceeds_its_lines_and_hardly_its_width() {
        for width in [0, 60, 80, 200] {
            for sizes in 0..12 {
                let mut report = study(sizes);
                report.headline.sentence = "words and ".repeat(500);
                report.title = "x".repeat(5000);
                report.parameters = vec![report.parameters[0].clone(); 40];
                report.steps = vec![report.steps[0].clone(); 40];
                report.warnings = vec![report.warnings[0].clone(); 40];
                let text = summary(&report, width);
                assert!(text.lines().count() <= SUMMARY_LINES_MAX);
                let widest = text.lines().map(|line| line.chars().count()).max();
                assert!(widest <= Some(width.max(72)), "{widest:?} of {width}");
            }
        }
    }

    #[test]
    fn control_characters_stay_out_of_the_terminal() {
        let mut report = study(1);
        report.title = "\u{1b}[31mred\r\n".into();
        report.throughput[0].curves[0].name = "\u{7}bell".into();
        let text = summary(&report, 80);
        assert!(!text.contains(|c: char| c.is_control() && c != '\n'));
    }

    #[test]
    fn nothing_and_nonsense_are_summed_up_too() {
        assert_eq!(summary(&StudyReport::default(), 80), "");
        let mut value = wild();
        for _ in 0..11 {
            let text = summary(&report(&mut value), 80);
            assert!(!text.contains("NaN") && !text.contains("inf"));
            value();
        }
    }
}
