//! The run record of changes verified.

use harness::records;
use perf::model::saved::SavedPath;
use perf::model::whatif::of_path::Spread;
use perf::record::Run;

use super::{AIMS_PCT, Outcome};
use crate::papers::begun;

pub(super) fn record(outcome: &Outcome) -> Run {
    let mut record = begun("papers-whatif", &outcome.started, None);
    records::parameters(&mut record, [("link", outcome.link.clone())]);
    let n = outcome.repeats as u64;
    record.metric("base_per_s", outcome.base_per_s, "1/s");
    for verified in &outcome.verified {
        let name = |what: &str| format!("{}/{what}", verified.name);
        record.estimate(&name("measured_gain"), &verified.measured, "ratio", n);
        record.metric(&name("formula_gain"), verified.formula, "ratio");
        record.metric(&name("mva_gain"), verified.closed, "ratio");
        if let Some(world) = verified.world {
            record.metric(&name("simulation_gain"), world, "ratio");
        }
        record.metric(&name("believed_gain"), verified.believed.1, "ratio");
        record.metric(&name("error_pct"), verified.error_pct(), "%");
        record.metric(&name("formula_error_pct"), verified.formula_error_pct(), "%");
    }
    record.metric("error_pct_median", outcome.median_pct(), "%");
    record.metric("error_pct_worst", outcome.worst_pct(), "%");
    record.metric("aim_pct_median", AIMS_PCT.0, "%");
    record.metric("aim_pct_worst", AIMS_PCT.1, "%");
    SavedPath::of(&outcome.base, &Spread::default(), Vec::new()).write(&mut record.model);
    records::neighbours(&mut record, outcome.neighbours_share);
    record
}
