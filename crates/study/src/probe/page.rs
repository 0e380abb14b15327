//! The report of a probe: throughput over calls outstanding, as predicted and as measured.

use harness::shell;
use report::curves::{CurvesPlot, CurvesReport, Line, html as page};

use super::notes;
use super::probed::Probed;
use super::screen::{Parameter, best, parameters};
use crate::explain::{Row, bytes};
use crate::model::or_dash;

pub(super) fn html(outcome: &Probed) -> String {
    let explanation = &outcome.explanation;
    let mut facts = vec![
        ("Server".to_owned(), outcome.url.clone()),
        ("Link".to_owned(), outcome.link.to_string()),
        ("Made".to_owned(), outcome.started.clone()),
    ];
    facts.extend(parameters(outcome).iter().map(fact));
    let first = explanation.first_sentence();
    let form = Some(notes::form(outcome)).filter(|form| !form.is_empty());
    let notes = notes::unidentified(outcome).into_iter().map(|(_, note)| note);
    let notes = notes::neighbours(outcome).into_iter().chain(notes);
    let sizes = explanation.sizes().into_iter();
    page(&CurvesReport {
        title: "A server, seen from its client".to_owned(),
        facts,
        findings: [best(outcome)].into_iter().chain(first).chain(form).chain(notes).collect(),
        plots: sizes.map(|size| plot(outcome, size)).collect(),
        method: METHOD.map(str::to_owned).into(),
        command: shell::own(),
    })
}

fn fact(parameter: &Parameter) -> (String, String) {
    let Parameter { name, estimate, unit, at_least, .. } = parameter;
    let interval = match (estimate.at_most(), estimate.ci95) {
        (Some(most), _) => format!(" (at most {most:.3})"),
        (None, Some(ci95)) => format!(" ({:.3} to {:.3})", ci95.lo, ci95.hi),
        (None, None) => String::new(),
    };
    let least = if *at_least { "at least " } else { "" };
    ((*name).to_owned(), format!("{least}{:.3} {unit}{interval}", estimate.value))
}

const METHOD: [&str; 2] = [
    "NULL calls, single WRITEs of 1 KiB to 1 MiB (UNSTABLE and FILE_SYNC in turn), bursts of both \
     with many calls outstanding, COMMITs: docs/models.md, sections 6 and 19. Each parameter is \
     the median over its rounds, with a 95 % interval that does not take neighbours for \
     independent.",
    "Predictions use only these parameters; no number was adjusted to the sweep that they stand \
     beside.",
];

fn plot(outcome: &Probed, size: u32) -> CurvesPlot {
    let rows: Vec<&Row> = outcome.explanation.curve(0, size).collect();
    let line = |name: &str, is_line, of: fn(&Row) -> Option<f64>| {
        let point = |row: &&Row| Some((row.configuration.outstanding as f64, of(row)?));
        Line { name: name.to_owned(), is_line, points: rows.iter().filter_map(point).collect() }
    };
    CurvesPlot {
        title: format!("WRITEs of {}", bytes(size)),
        x: "calls outstanding".to_owned(),
        y: "MiB/s".to_owned(),
        is_logarithmic: true,
        curves: vec![
            line("predicted", true, |row| Some(row.prediction.mib_per_s)),
            line("measured", false, |row| row.measured_mib_per_s),
        ],
        columns: ["outstanding", "predicted", "measured", "error"].map(str::to_owned).into(),
        rows: rows.iter().map(|row| cells(row)).collect(),
        ..CurvesPlot::default()
    }
}

fn cells(row: &Row) -> Vec<String> {
    let predicted = format!("{:.1}", row.prediction.mib_per_s);
    let measured = row.measured_mib_per_s.map(|measured| format!("{measured:.1}"));
    let error = row.error_pct().map(|error| format!("{error:+.1} %"));
    let [measured, error] = [measured, error].map(or_dash);
    vec![row.configuration.outstanding.to_string(), predicted, measured, error]
}
