//! The report of a simulation: utilization over time, and the curve.

use harness::shell;
use report::curves::{CurvesPlot, CurvesReport, Line, html as page};

use super::{LoadPoint, Simulated, screen};

pub(super) fn html(simulated: &Simulated) -> String {
    let Simulated { topology, outcome, started, .. } = simulated;
    let facts = screen::setting(topology)
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .chain([("made".to_owned(), started.clone())])
        .collect();
    let mut findings = vec![format!(
        "{:.1} operations a second, {} at the mean, {} for 95 of 100.",
        outcome.per_s,
        outcome.response_time.mean(),
        outcome.response_time.quantile(0.95)
    )];
    findings.extend(outcome.servers.iter().enumerate().map(|(number, server)| {
        format!(
            "Server {}: processor {:.0} %, disk {:.0} % busy.",
            number + 1,
            100.0 * server.processor_utilization,
            100.0 * server.disk_utilization
        )
    }));
    let mut plots = vec![utilization(simulated)];
    if !simulated.curve.is_empty() {
        plots.push(curve(&simulated.curve));
    }
    page(&CurvesReport {
        title: "Simulated system".to_owned(),
        facts,
        findings,
        plots,
        method: vec![
            "The client and the server of this program in virtual time; links, processors and \
             disks take the time that the topology states, and code takes none."
                .to_owned(),
        ],
        command: shell::own(),
    })
}

fn utilization(simulated: &Simulated) -> CurvesPlot {
    let servers = &simulated.outcome.servers;
    let line = |name: String, points| Line { name, is_line: true, points };
    let mut curves = Vec::new();
    // More servers would be lines over lines; they are all alike.
    for (number, server) in servers.iter().enumerate().take(2) {
        let points = |of: fn(&world::simulate::Slice) -> f64| -> Vec<(f64, f64)> {
            let slices = server.over_time.iter();
            slices.map(|slice| (slice.until.as_millis_f64(), 100.0 * of(slice))).collect()
        };
        curves.push(line(format!("processor {}", number + 1), points(|slice| slice.processor)));
        curves.push(line(format!("disk {}", number + 1), points(|slice| slice.disk)));
    }
    let rows = servers.first().map_or(&[][..], |server| &server.over_time);
    CurvesPlot {
        title: "Utilization over time".to_owned(),
        caption: String::new(),
        x: "ms since the warm-up".to_owned(),
        y: "busy (%)".to_owned(),
        is_logarithmic: false,
        curves,
        columns: ["until (ms)", "processor 1 (%)", "disk 1 (%)"].map(str::to_owned).into(),
        rows: rows
            .iter()
            .map(|slice| {
                [slice.until.as_millis_f64(), 100.0 * slice.processor, 100.0 * slice.disk]
                    .map(|value| format!("{value:.1}"))
                    .into()
            })
            .collect(),
    }
}

fn curve(points: &[LoadPoint]) -> CurvesPlot {
    let line = |name: &str, of: fn(&LoadPoint) -> f64| Line {
        name: name.to_owned(),
        is_line: true,
        points: points.iter().map(|point| (point.per_s, of(point))).collect(),
    };
    CurvesPlot {
        title: "Response time over throughput".to_owned(),
        caption: String::new(),
        x: "operations a second".to_owned(),
        y: "response time (ms)".to_owned(),
        is_logarithmic: false,
        curves: vec![
            line("mean", |point| point.mean.as_millis_f64()),
            line("95 of 100", |point| point.p95.as_millis_f64()),
        ],
        columns: ["offered (1/s)", "achieved (1/s)", "mean", "95 of 100", "processor", "disk"]
            .map(str::to_owned)
            .into(),
        rows: points
            .iter()
            .map(|point| {
                vec![
                    format!("{:.1}", point.asked_per_s),
                    format!("{:.1}", point.per_s),
                    point.mean.to_string(),
                    point.p95.to_string(),
                    format!("{:.0} %", 100.0 * point.processor),
                    format!("{:.0} %", 100.0 * point.disk),
                ]
            })
            .collect(),
    }
}
