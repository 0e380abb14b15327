//! Predicted beside measured, for a terminal or a document.

use std::fmt::Write as _;

use harness::compared::is_wide;
use harness::table::{Table, left, right};
use perf::stats::Estimate;

use super::{Outcome, Point, SATURATED, Server};

pub(super) fn text(outcome: &Outcome, markdown: bool) -> String {
    let mut text = String::new();
    let Outcome { link, overhead, took, repeats, .. } = outcome;
    writeln!(
        text,
        "WRITEs of 8 KiB behind {link}, o {overhead} at the server; medians of {repeats} runs; \
         {:.0} s",
        took.as_secs_f64()
    )
    .ok();
    for server in &outcome.servers {
        section(&mut text, server, markdown);
    }
    for (kind, error) in &outcome.refused {
        writeln!(text, "\n{}: {error}", kind.name).ok();
    }
    writeln!(text, "\n{}", outcome.summary()).ok();
    text
}

fn section(text: &mut String, server: &Server, markdown: bool) {
    let forms = server.forms.iter().map(|(form, error)| {
        let percent = 100.0 * error;
        format!("{} {percent:.1} %", form.name())
    });
    let forms = forms.collect::<Vec<_>>().join(", ");
    let chosen = server.informed.form.name();
    writeln!(text, "\n{}: {chosen} (typical errors: {forms})", server.kind.name).ok();
    let parameters = server
        .informed
        .fitted
        .parameters
        .iter()
        .map(|found| format!("{} {}", found.name, spread(&found.estimate, 1)));
    writeln!(text, "{}", parameters.collect::<Vec<_>>().join("; ")).ok();
    let mut table = Table::new([
        right("outstanding"),
        left("measured (range), calls/s"),
        left("model (95 %)"),
        right("error"),
        right("processor, us"),
    ]);
    server.points.iter().for_each(|point| table.row(row(point)));
    writeln!(text, "\n{}", table.shown(markdown).trim_end()).ok();
}

fn row(point: &Point) -> [String; 5] {
    let name = match (point.outstanding, point.is_predicted) {
        (SATURATED, _) => format!("saturation {SATURATED}"),
        (outstanding, true) => outstanding.to_string(),
        (outstanding, false) => format!("fitted {outstanding}"),
    };
    [
        name,
        spread(&point.measured, 0),
        spread(&point.model, 0),
        format!("{:+.1} %", point.error_pct()),
        format!("{:.0}", point.server_us),
    ]
}

fn spread(estimate: &Estimate, places: usize) -> String {
    let value = estimate.value;
    match estimate.ci95 {
        Some(ci95) if is_wide(&ci95) => format!("{value:.places$} (no interval)"),
        Some(ci95) => format!("{value:.places$} ({:.places$} to {:.places$})", ci95.lo, ci95.hi),
        None => format!("{value:.places$}"),
    }
}

#[cfg(test)]
mod tests {
    use perf::stats::Interval;

    use super::*;

    #[test]
    fn an_interval_that_says_nothing_is_not_printed() {
        let of = |lo, hi| Estimate { value: 13.9, ci95: Some(Interval { lo, hi }) };
        assert_eq!(spread(&of(0.0, 1_310_203.7), 1), "13.9 (no interval)");
        assert_eq!(spread(&of(12.0, 15.25), 1), "13.9 (12.0 to 15.2)");
    }
}
