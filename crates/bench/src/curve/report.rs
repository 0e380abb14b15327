//! The report with the curves drawn.

use harness::records::{number, quantile_ms};
use harness::shell;
use load::curve::Point;
use load::mix::Operation;
use perf::stats::Interval;
use report::Numbers;
use report::load_curve::{LoadCurve, LoadCurves, LoadPoint, Worth, html as page};

use super::beside;
use super::outcome::{Outcome, Server};
use super::text::{
    self, OF_AN_OPERATION, few_failed, shown_load, typical, us_per_operation, verdict,
};

pub(super) fn html(outcome: &Outcome) -> String {
    let settings = &outcome.settings;
    let environment = load::environment::describe();
    let facts = [
        ("Mix", format!("{}: {}", settings.mix.name, settings.mix.source)),
        ("Load", text::load(outcome)),
        ("Generator", text::generator(outcome)),
        ("Cached", text::CACHED.to_owned()),
        ("Durable", text::durable(outcome).to_owned()),
        ("Machine", environment.kernel.unwrap_or_default()),
        ("Made", outcome.started.clone()),
    ];
    let notes = outcome.servers.iter().flat_map(|server| notes(outcome, server));
    page(&LoadCurves {
        title: format!("Load curve, {}", settings.mix.name),
        facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
        notes: text::neighbours(outcome).into_iter().chain(notes).collect(),
        compared: beside::names(outcome)
            .into_iter()
            .chain(beside::lines(outcome))
            .map(|(what, sentence)| format!("{what}: {sentence}"))
            .collect(),
        servers: outcome.servers.iter().map(curve).collect(),
        tables: outcome.servers.iter().flat_map(tables).collect(),
        method: METHOD.map(str::to_owned).into(),
        command: shell::own(),
    })
}

const METHOD: [&str; 4] = [
    "A mix of operations in exact shares on files whose number grows with the highest load, as \
     SPEC SFS has it: 10 MiB for each operation a second unless bounded, of which one in ten is \
     touched. Lower loads touch fewer of them, in proportion. Every operation is one call.",
    "In an open loop operations start by a schedule, whatever the server does, and response times \
     count from when one was meant to start. Several servers are measured in alternation.",
    "A point holds the rules when the mix is within 1.5 points of what it should be, under 1 % of \
     the operations failed, nine in ten of the files that may be touched were, the generator was \
     neither busy nor late, and what was offered came, unless no higher load came either.",
    "Intervals of points are those of batch means (Student's t, 20 batches in a run); those of \
     base, slope, saturation and overall response time come from drawing these batches again a \
     thousand times, and so do those of ratios of two servers: they hold for this run, and other \
     days differ by more. Only points that hold the rules count. The knee is the point with the \
     most throughput for its response time, the slope that of the least-squares line up to it; \
     a saturation is given where a higher load was tried in vain. The overall response time is the \
     area under the curve, which begins at the origin, over the highest throughput, as SPEC \
     publishes it.",
];

fn notes(outcome: &Outcome, server: &Server) -> Vec<String> {
    let of = match outcome.servers.len() {
        1 => String::new(),
        _ => format!("{}: ", server.name),
    };
    let mut notes: Vec<String> = Vec::new();
    if let Some(broken) = &server.measured.broken {
        notes.push(format!("{of}PARTIAL: {}", broken.why));
    }
    for point in &server.measured.points {
        let breaches = point.breaches.iter();
        notes.extend(breaches.map(|breach| format!("{of}at {}: {breach}", shown_load(point))));
        let failed = few_failed(point).into_iter();
        notes
            .extend(failed.map(|failed| format!("{of}at {}: failed: {failed}", shown_load(point))));
    }
    let deviations = outcome.deviations(server);
    if !deviations.is_empty() {
        notes.push(format!("{of}not as SFS 3.0: {}", deviations.join("; ")));
    }
    notes
}

fn curve(server: &Server) -> LoadCurve {
    let mut curve = LoadCurve {
        name: server.name.clone(),
        points: server.measured.points.iter().filter_map(point).collect(),
        ..LoadCurve::default()
    };
    let lines = text::lines(server.signature.as_ref());
    curve.numbers = lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
    if let Some(signature) = &server.signature {
        let highest_per_s = signature.highest_per_s.value;
        curve.base_ms = signature.base_us.map(|base| base.value / 1e3);
        curve.knee = signature.knee.map(|(per_s, response_us)| (per_s, response_us / 1e3));
        curve.highest_per_s = Some(highest_per_s);
        curve.saturation_per_s = signature.is_saturated.then_some(highest_per_s);
        if let (Some(slope), Some(intercept)) = (&signature.slope, &signature.intercept_us) {
            curve.line = Some((intercept.value / 1e3, slope.value / 1e3));
        }
    }
    curve
}

fn point(point: &Point) -> Option<LoadPoint> {
    let response = point.response_us()?;
    let interval = response.ci95.map(|ci| Interval { lo: ci.lo / 1e3, hi: ci.hi / 1e3 });
    Some(LoadPoint {
        per_s: point.outcome.achieved_per_s(),
        response_ms: response.value / 1e3,
        interval_ms: interval,
        worth: match (point.is_valid(), point.is_over()) {
            (_, true) => Worth::Over,
            (false, false) => Worth::Invalid,
            (true, false) => Worth::Valid,
        },
    })
}

fn tables(server: &Server) -> Vec<Numbers> {
    let mut tables = vec![Numbers {
        title: format!("Points of {}", server.name),
        columns: COLUMNS.map(str::to_owned).into(),
        rows: server.measured.points.iter().map(row).collect(),
        ..Numbers::default()
    }];
    tables.extend(typical(&server.measured.points).map(|point| Numbers {
        title: format!("Operations of {} at {}, ms", server.name, shown_load(point)),
        columns: ["", "times", "p50", "p90", "p99", "p99.9", "max"].map(str::to_owned).into(),
        rows: operations(point),
        ..Numbers::default()
    }));
    tables
}

const COLUMNS: [&str; 10] = [
    "load",
    "achieved/s",
    "mean (ms)",
    "p50 (ms)",
    "p99 (ms)",
    "p99.9 (ms)",
    "late",
    "held",
    "generator (us/op)",
    "verdict",
];

fn row(point: &Point) -> Vec<String> {
    let (run, times) = (&point.outcome, point.outcome.response_times());
    let ms = |share| quantile_ms(&times, share);
    let mean = run.response_mean().map_or(f64::NAN, |mean| mean.as_millis_f64());
    vec![
        shown_load(point),
        format!("{:.1}", run.achieved_per_s()),
        number(mean),
        ms(0.5),
        ms(0.99),
        ms(0.999),
        run.late.to_string(),
        run.held.to_string(),
        us_per_operation(point).map_or_else(|| "–".to_owned(), |us| format!("{us:.1}")),
        verdict(point),
    ]
}

fn operations(point: &Point) -> Vec<Vec<String>> {
    let known = Operation::ALL.into_iter().filter_map(|operation| {
        let times = &point.outcome.operations.get(&operation)?.response_time;
        let counted = [operation.name().to_owned(), times.count().to_string()];
        let quantiles = OF_AN_OPERATION.map(|share| quantile_ms(times, share));
        Some(counted.into_iter().chain(quantiles).collect())
    });
    known.collect()
}
