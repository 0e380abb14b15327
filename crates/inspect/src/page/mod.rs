//! `--html`: the capture as a report.

mod tables;

use harness::shell;
use perf::histogram::Histogram;
use perf::units::Nanos;
use report::trace::{HeatMap, TraceReport, html};
use report::{Latency, LatencyPlot, Stall, Transfer, TransferPlot};
use trace::{Analyzer, Gap, Operation, OperationTotal, Point, ROWS, row_begins_us};

use super::screen::findings;
use crate::seen::Seen;

/// Operations whose response times have a plot of their own.
const PLOTS_MAX: usize = 4;

pub(super) fn text(seen: &Seen) -> String {
    let analyzer = &seen.analyzer;
    let (first, last) = analyzer.span_ns();
    let totals = analyzer.totals();
    html(&TraceReport {
        title: "What the capture says".to_owned(),
        facts: [
            ("Packets", analyzer.packets().to_string()),
            ("Time", Nanos::from_nanos(last.saturating_sub(first)).to_string()),
            ("Calls", totals.calls().to_string()),
            ("Without reply", totals.unanswered.to_string()),
        ]
        .map(|(name, value)| (name.to_owned(), value))
        .into(),
        findings: findings(seen),
        tables: tables::all(analyzer),
        cumulative: cumulative(analyzer),
        rates: rates(analyzer),
        latency: latency(analyzer),
        outstanding: outstanding(analyzer),
        heat: heat(analyzer),
        command: shell::own(),
    })
}

/// Milliseconds since the first packet.
fn ms(analyzer: &Analyzer, ns: u64) -> f64 {
    Nanos::from_nanos(ns.saturating_sub(analyzer.span_ns().0)).as_millis_f64()
}

fn sorted(analyzer: &Analyzer) -> Vec<(Operation, &OperationTotal)> {
    let mut all: Vec<_> = analyzer.totals().operations().collect();
    all.sort_by_key(|(operation, total)| (std::cmp::Reverse(total.calls), *operation));
    all
}

fn cumulative(analyzer: &Analyzer) -> TransferPlot {
    #[expect(clippy::cast_precision_loss, reason = "a place in a plot")]
    let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
    let moved = analyzer.series().points().iter().filter(|point| point.cumulative_bytes > 0);
    let points = moved.map(|point| (ms(analyzer, point.at_ns), mib(point.cumulative_bytes)));
    // Those of one connection are none of all: only where one server answered nobody nothing moved.
    let mut services = analyzer.flows().services();
    let stalls = match (services.next(), services.next()) {
        (Some(only), None) => Some(only.pace.gaps.iter()),
        _ => None,
    };
    let stall = |gap: &Gap| Stall {
        start_ms: ms(analyzer, gap.begin_ns),
        end_ms: ms(analyzer, gap.end_ns),
        label: gap.cause.name().to_owned(),
    };
    let stalls = stalls.map(|gaps| {
        let mut stalls: Vec<Stall> = gaps.map(stall).collect();
        stalls.sort_by(|a, b| a.start_ms.total_cmp(&b.start_ms));
        stalls
    });
    let name = "all connections".to_owned();
    TransferPlot {
        title: "Data read and written".to_owned(),
        transfers: vec![Transfer { name, points: points.collect(), stalls }],
    }
}

fn rates(analyzer: &Analyzer) -> Vec<(f64, f64)> {
    let rate = |point: &Point| {
        let seconds = Nanos::from_nanos(point.latency_ns.filter(|ns| *ns > 0)?).as_secs_f64();
        let rate = f64::from(point.bytes) / f64::from(1 << 20) / seconds;
        Some((ms(analyzer, point.at_ns), rate))
    };
    analyzer.series().moving().filter_map(rate).collect()
}

fn latency(analyzer: &Analyzer) -> LatencyPlot {
    let mut all = Histogram::new();
    let rows = sorted(analyzer);
    rows.iter().for_each(|(_, total)| all.merge(&total.latency));
    let calls = |points: &[Point]| {
        let timed = points.iter().filter_map(|point| Some((point.at_ns, point.latency_ns?)));
        timed.map(|(at, ns)| (ms(analyzer, at), Nanos::from_nanos(ns).as_millis_f64())).collect()
    };
    let (series, name) = (analyzer.series(), "all operations".to_owned());
    let mut latencies = vec![Latency { name, calls: calls(series.points()), histogram: all }];
    latencies.extend(rows.iter().take(PLOTS_MAX).map(|(operation, total)| Latency {
        name: operation.to_string(),
        calls: calls(series.points_of(*operation)),
        histogram: total.latency.clone(),
    }));
    LatencyPlot { title: "Response times".to_owned(), latencies }
}

fn outstanding(analyzer: &Analyzer) -> Vec<(f64, f64)> {
    let (begin, width) = analyzer.series().scale_ns();
    let at = |index: u64| ms(analyzer, begin + index * width);
    let columns = (0..).zip(analyzer.series().columns());
    columns.map(|(index, column)| (at(index), f64::from(column.outstanding_max))).collect()
}

fn heat(analyzer: &Analyzer) -> HeatMap {
    let (_, width) = analyzer.series().scale_ns();
    let columns = analyzer.series().columns().iter();
    let columns = columns.map(|column| column.rows.map(u64::from).into()).collect();
    let rows_us = (0..ROWS).map(row_begins_us).collect();
    HeatMap { column_ms: Nanos::from_nanos(width).as_millis_f64(), rows_us, columns }
}
