//! The report with the figures.

use harness::shell;
use load::recover::Parameter;
use report::curves::{CurvesPlot, CurvesReport, Line, html as page};

use super::findings::{difference_pct, model};
use super::outcome::Outcome;
use super::points::{Measured, Part};
use super::table::{amount, shown, summary};

pub(super) fn html(outcome: &Outcome) -> String {
    let environment = load::environment::describe();
    let server = outcome.url.clone().unwrap_or_else(|| "our own, in memory, one thread".to_owned());
    let facts = [
        ("Mix", format!("{}: {}", outcome.mix.name, outcome.mix.source)),
        ("Server", server),
        ("Machine", environment.kernel.unwrap_or_default()),
        ("Made", outcome.started.clone()),
    ];
    let findings = &outcome.findings;
    let agreement = format!("Live and world: {}.", findings.summary());
    let summaries = Part::ALL.into_iter().map(|part| summary(outcome, part).trim().to_owned());
    page(&CurvesReport {
        title: "Sensitivity to L, o and G".to_owned(),
        facts: facts.map(|(name, value)| (name.to_owned(), value)).into(),
        findings: summaries.filter(|summary| !summary.is_empty()).chain([agreement]).collect(),
        plots: Part::ALL.into_iter().filter_map(|part| plot(outcome, part)).collect(),
        method: METHOD.map(str::to_owned).into(),
        command: shell::own(),
    })
}

const METHOD: [&str; 3] = [
    "One mix of operations, with the same seed the same operations at the same moments, goes \
     through our client to our server; L and G are put in at the client's end of the connection, \
     o is spun by the server for each message. Baseline: L 10 us, o 80 us, 26 MB/s, as in the \
     paper (no o where the server is somebody else's). Response times are those at 400 operations \
     a second with Poisson arrivals, counted from the intended start: the operations' medians, \
     weighted by how many there were; saturation is what 16 outstanding operations reach. Live \
     points are medians of runs that went over all points in turn.",
    "The world is the same client and server in virtual time. It takes from the live baseline \
     the processor's time for an operation, 1 / saturation - 2 o, and how much of the response \
     time nothing else explains. All other points of it are predictions.",
    "The paper: Martin and Culler, NFS Sensitivity to High Performance Networks, SIGMETRICS 1999, \
     figures 5 to 8, 10 and 11.",
];

fn plot(outcome: &Outcome, part: Part) -> Option<CurvesPlot> {
    let pairs: Vec<(&Measured, &Measured)> = outcome.pairs(part).collect();
    let (baseline, _) = pairs.iter().find(|(live, _)| live.point.is_baseline())?;
    let points = |of: &dyn Fn(&(&Measured, &Measured)) -> Option<f64>| -> Vec<(f64, f64)> {
        pairs.iter().filter_map(|pair| Some((abscissa(pair.0), of(pair)?))).collect()
    };
    let line = |name: &str, is_line, points| Line { name: name.to_owned(), is_line, points };
    let (title, x, y) = match part {
        Part::Latency => ("Base response time against L", "L one way (us)", "response (us)"),
        Part::Overhead => ("Saturation against o", "o (us)", "operations a second"),
        Part::Bandwidth => ("Response time against 1 / G", "1 / G (MB/s)", "response (us)"),
    };
    let rows = pairs.iter().map(|(live, world)| {
        vec![
            amount(live),
            model(baseline, live).map_or_else(String::new, |value| shown(part, value)),
            shown(part, live.value.value),
            shown(part, world.value.value),
            format!("{:+.1} %", difference_pct(live, world)),
        ]
    });
    Some(CurvesPlot {
        title: title.to_owned(),
        caption: summary(outcome, part).trim().to_owned(),
        x: x.to_owned(),
        y: y.to_owned(),
        is_logarithmic: part != Part::Overhead,
        curves: vec![
            line("the paper's model", true, points(&|(live, _)| model(baseline, live))),
            line("live", false, points(&|(live, _)| Some(live.value.value))),
            line("in a world", false, points(&|(_, world)| Some(world.value.value))),
        ],
        columns: ["", "model", "live", "world", "differ"].map(str::to_owned).into(),
        rows: rows.collect(),
    })
}

fn abscissa(measured: &Measured) -> f64 {
    let parameter = measured.point.part.parameter();
    let amount = parameter.of(&measured.point.conditions);
    if parameter == Parameter::GapPerByte { 1e3 / amount } else { amount }
}
