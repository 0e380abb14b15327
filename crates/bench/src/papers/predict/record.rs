//! The run record of upper load points predicted.

use harness::records;
use perf::record::Run;

use super::{AIMS, Outcome};
use crate::papers::begun;

pub(super) fn record(outcome: &Outcome) -> Run {
    let mut record = begun("papers-predict", &outcome.started, None);
    let given = [("link", outcome.link.clone()), ("overhead", outcome.overhead.to_string())];
    records::parameters(&mut record, given);
    add_servers(&mut record, outcome);
    for (kind, error) in &outcome.refused {
        record.warn("not-explained", &format!("{}: {error}", kind.name), "");
    }
    let (median, worst) = outcome.verdict();
    record.metric("predictions", outcome.errors_pct().len() as f64, "");
    records::errors(&mut record, &outcome.errors());
    record.metric("error_pct_median", median, "%");
    record.metric("error_pct_worst", worst, "%");
    record.metric("aim_pct_median", AIMS.0, "%");
    record.metric("aim_pct_worst", AIMS.1, "%");
    records::neighbours(&mut record, outcome.neighbours_share);
    record
}

fn add_servers(record: &mut Run, outcome: &Outcome) {
    let n = outcome.repeats as u64;
    for server in &outcome.servers {
        let key = server.kind.key;
        for found in &server.informed.fitted.parameters {
            record.estimate(&format!("{key}/{}", found.name), &found.estimate, found.unit, n);
        }
        for (form, error) in &server.forms {
            record.metric(&format!("{key}/typical_error/{}", form.name()), *error, "1");
        }
        for point in &server.points {
            let name = |what: &str| format!("{key}/{}/{what}", point.outstanding);
            record.estimate(&name("measured_per_s"), &point.measured, "1/s", n);
            record.estimate(&name("model_per_s"), &point.model, "1/s", n);
            record.metric(&name("server_us"), point.server_us, "us");
            if point.is_predicted {
                record.metric(&name("error_pct"), point.error_pct(), "%");
            }
        }
    }
}
