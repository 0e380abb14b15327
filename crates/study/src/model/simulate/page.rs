//! The report of a simulation: utilization over time, and the curve.

use harness::records::{known, quantile};
use harness::shell;
use perf::units::Nanos;
use report::curves::{CurvesPlot, CurvesReport, Line, html as page};
use world::simulate::{KindOutcome, Outcome, Slice};

use super::screen;
use super::simulated::{LoadPoint, Simulated, shortfall};

pub(super) fn html(simulated: &Simulated) -> String {
    let Simulated { topology, outcome, started, .. } = simulated;
    let facts = screen::setting(topology)
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(name, value)| (name.trim().to_owned(), value.trim().to_owned()))
        .chain([("made".to_owned(), started.clone())])
        .collect();
    let has_curve = !simulated.curve.is_empty();
    let curve = has_curve.then(|| curve(&simulated.curve));
    page(&CurvesReport {
        title: "Simulated system".to_owned(),
        facts,
        findings: shortfall(simulated).into_iter().chain(findings(outcome)).collect(),
        plots: std::iter::once(utilization(simulated)).chain(curve).collect(),
        method: vec![
            "The client and the server of this program in virtual time; links, processors and \
             disks take the time that the topology states, and code takes none."
                .to_owned(),
        ],
        command: shell::own(),
    })
}

fn findings(outcome: &Outcome) -> Vec<String> {
    let mean = known(outcome.response_mean());
    let p95 = quantile(&outcome.response_time, 0.95);
    let per_s = outcome.per_s;
    let all = format!("{per_s:.1} operations a second, {mean} at the mean, {p95} for 95 of 100.");
    let servers = outcome.servers.iter().enumerate().map(|(at, server)| {
        let shares = [server.processor_utilization, server.disk_utilization];
        let [processor, disk] = shares.map(|share| 100.0 * share);
        format!("Server {}: processor {processor:.0} %, disk {disk:.0} % busy.", at + 1)
    });
    let kinds = outcome.kinds.iter().filter(|_| outcome.kinds.len() > 1).map(|kind| {
        let (KindOutcome { clients, link, per_s, .. }, mean) = (kind, known(kind.response_mean));
        format!(
            "{clients} clients behind {link}: {per_s:.1} operations a second, {mean} at the mean."
        )
    });
    let links = outcome.links.iter().map(|link| {
        let [there, back] = [link.there, link.back].map(|share| 100.0 * share);
        let name = &link.name;
        format!("Link {name}: {there:.0} % busy to the server, {back:.0} % back.")
    });
    std::iter::once(all).chain(kinds).chain(servers).chain(links).collect()
}

fn utilization(simulated: &Simulated) -> CurvesPlot {
    let servers = &simulated.outcome.servers;
    let line = |name: String, points| Line { name, is_line: true, points };
    let mut curves = Vec::new();
    // More servers would be lines over lines; they are all alike.
    for (number, server) in servers.iter().enumerate().take(2) {
        let points = |of: fn(&Slice) -> f64| -> Vec<(f64, f64)> {
            let slices = server.over_time.iter();
            slices.map(|slice| (slice.until.as_millis_f64(), 100.0 * of(slice))).collect()
        };
        curves.push(line(format!("processor {}", number + 1), points(|slice| slice.processor)));
        curves.push(line(format!("disk {}", number + 1), points(|slice| slice.disk)));
    }
    let rows = servers.first().map_or(&[][..], |server| &server.over_time);
    CurvesPlot {
        title: "Utilization over time".to_owned(),
        x: "ms since the warm-up".to_owned(),
        y: "busy (%)".to_owned(),
        curves,
        columns: ["until (ms)", "processor 1 (%)", "disk 1 (%)"].map(str::to_owned).into(),
        rows: rows.iter().map(busy).collect(),
        ..CurvesPlot::default()
    }
}

fn busy(slice: &Slice) -> Vec<String> {
    let values = [slice.until.as_millis_f64(), 100.0 * slice.processor, 100.0 * slice.disk];
    values.map(|value| format!("{value:.1}")).into()
}

fn curve(points: &[LoadPoint]) -> CurvesPlot {
    let line = |name: &str, of: fn(&LoadPoint) -> Option<Nanos>| Line {
        name: name.to_owned(),
        is_line: true,
        points: points
            .iter()
            .filter_map(|point| Some((point.per_s, of(point)?.as_millis_f64())))
            .collect(),
    };
    CurvesPlot {
        title: "Response time over throughput".to_owned(),
        x: "operations a second".to_owned(),
        y: "response time (ms)".to_owned(),
        curves: vec![line("mean", |point| point.mean), line("95 of 100", |point| point.p95)],
        columns: ["offered (1/s)", "achieved (1/s)", "mean", "95 of 100", "processor", "disk"]
            .map(str::to_owned)
            .into(),
        rows: points.iter().map(cells).collect(),
        ..CurvesPlot::default()
    }
}

fn cells(point: &LoadPoint) -> Vec<String> {
    let [offered, achieved] = [point.offered_per_s, point.per_s].map(|rate| format!("{rate:.1}"));
    let [mean, p95] = [point.mean, point.p95].map(known);
    let busy = [point.processor, point.disk];
    let [processor, disk] = busy.map(|share| format!("{:.0} %", 100.0 * share));
    vec![offered, achieved, mean, p95, processor, disk]
}
