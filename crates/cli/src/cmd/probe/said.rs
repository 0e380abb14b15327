//! What these measurements cannot tell apart, in sentences, with what would.

use perf::model::transaction::Bound;

use super::Outcome;

/// A share of something by which it has to be known to be told from nothing.
const NOTHING: f64 = 0.05;

/// Each with a code for the record.
pub(super) fn unidentified(outcome: &Outcome) -> Vec<(&'static str, String)> {
    let mut said = Vec::new();
    let mut say = |code, text: String| said.push((code, text));
    let findings = &outcome.findings;
    if outcome.version == 2 {
        say(
            "stable",
            "T_op and T_B cannot be told apart: every WRITE of version 2 is stable, and T_B is in \
             T_op here; version=3 in the URL tells them apart"
                .to_owned(),
        );
    } else if findings.block_us.ci95.is_some_and(|ci95| ci95.lo <= 0.0) {
        say(
            "free-stability",
            "T_B does not show: FILE_SYNC takes no longer than UNSTABLE; the server keeps data in \
             memory, or in storage that is as fast, which cannot be told apart from here"
                .to_owned(),
        );
    }
    if findings.op_us.ci95.is_some_and(|ci95| ci95.lo <= NOTHING * findings.round_trip.value) {
        say(
            "operation",
            "T_op of the server is not told from 0: a WRITE without data takes hardly longer than \
             a NULL call, and what both take is in 2 T_prop"
                .to_owned(),
        );
    }
    match &outcome.concurrency.servers {
        Some(servers) if servers.at_least => say(
            "servers",
            "how many calls the server works on is a least number: NULL calls come no faster than \
             WRITEs, so the client or the way is the limit"
                .to_owned(),
        ),
        _ => {}
    }
    let saturates = outcome.explanation.rows.iter().any(|row| {
        !matches!(row.prediction.bound, Bound::Cycle(_)) && row.configuration.outstanding > 1
    });
    if !saturates {
        say(
            "saturation",
            "no window of the sweep fills the way: what limits in the end was seen in bursts only"
                .to_owned(),
        );
    }
    say(
        "way",
        "L and the fixed costs of both ends cannot be told apart from one end: 2 T_prop has them \
         all; a run behind a link with a known L, or a capture at the server, tells them apart"
            .to_owned(),
    );
    said
}
