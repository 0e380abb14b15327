//! The run record of a probe; `nfskit model` reads its `model.path`.

use harness::records;
use perf::record::{Run as Record, Target, Warning};
use serde_json::json;

use super::notes;
use super::probed::Probed;
use super::screen::parameters;

pub(super) fn json(outcome: &Probed) -> String {
    let mut record = records::begin(outcome.started.clone());
    record.target = Target {
        kind: "server".to_owned(),
        url: Some(outcome.url.clone()),
        version: Some(outcome.version),
        proto: Some(outcome.proto.to_owned()),
        ..Target::default()
    };
    record.workload.name = "probe".to_owned();
    let given =
        [("link", json!(outcome.link.to_string())), ("commit_bytes", outcome.commit_bytes.into())];
    records::parameters(&mut record, given);
    records::limit_to(&mut record, outcome.link.mib_per_s(), &["throughput_mib_per_s"]);
    path(&mut record, outcome);
    sweep(&mut record, outcome);
    record.metric("repeats", outcome.repeats as f64, "");
    outcome.saved().write(&mut record.model);
    records::neighbours(&mut record, outcome.neighbours_share);
    for (code, notes) in notes::unidentified(outcome) {
        record.warnings.push(Warning::new(&format!("not-identified-{code}"), &notes, ""));
    }
    record.to_json_pretty()
}

/// The parameters of the path, and the single WRITEs that they are from.
fn path(record: &mut Record, outcome: &Probed) {
    for parameter in parameters(outcome) {
        record.estimate(parameter.key, &parameter.estimate, parameter.unit, parameter.n);
        let name = format!("{}_at_most", parameter.key);
        record.metric_if_known(&name, parameter.estimate.at_most(), parameter.unit);
        if parameter.at_least {
            record.metric(&format!("{}_at_least", parameter.key), 1.0, "");
        }
    }
    for &(bytes, unstable, stable) in &outcome.findings.writes_us {
        record.metric(&format!("write_unstable_us_{bytes}b"), unstable, "us");
        record.metric(&format!("write_file_sync_us_{bytes}b"), stable, "us");
    }
}

/// Several calls outstanding, beside the prediction.
fn sweep(record: &mut Record, outcome: &Probed) {
    let explanation = &outcome.explanation;
    for row in &explanation.rows {
        let (size, n) = (row.configuration.call_bytes, row.configuration.outstanding);
        let name = |what: &str| format!("{what}_mib_per_s_{size}b_n{n}");
        record.metric_if_known(&name("throughput"), row.measured_mib_per_s, "MiB/s");
        record.metric(&name("predicted"), row.prediction.mib_per_s, "MiB/s");
    }
    record.metric("best_window", explanation.after.outstanding as f64, "calls");
    record.metric("best_call_bytes", f64::from(explanation.after.call_bytes), "B");
    if explanation.error_pct_median.is_finite() {
        record.metric("model_error_pct_median", explanation.error_pct_median, "%");
        record.metric("model_error_pct_worst", explanation.error_pct_worst, "%");
    }
    record.metric("windows_not_measured", outcome.unmeasured() as f64, "");
    record.metric("runs_not_answered", outcome.unanswered.0 as f64, "");
    records::errors(record, &explanation.errors);
    if let Some(gain) = outcome.gain() {
        record.metric("gain_predicted", gain.predicted, "ratio");
        record.metric("gain_measured", gain.measured, "ratio");
    }
    if let Some(forms) = explanation.forms.first().copied().flatten() {
        record.metric("error_pct_if_it_stops", forms.stall_pct, "%");
        record.metric("error_pct_if_it_works_on", forms.concurrent_pct, "%");
    }
}
