//! What these measurements cannot tell apart, in sentences, with what would.

use perf::model::transaction::{Bound, Server};

use super::Outcome;
use crate::cmd::study::explain::Forms;

/// A share of something by which it has to be known to be told from nothing.
const NOTHING: f64 = 0.05;

/// How the server treats its disk, as far as that can be told: by the form that fits the sweep
/// better.
pub(super) fn form(outcome: &Outcome) -> String {
    let explanation = &outcome.explanation;
    let Some(forms) = explanation.forms.first().copied().flatten() else { return String::new() };
    let Forms { stall_pct, concurrent_pct } = forms;
    if !forms.is_told(explanation.choice.noise_pct) {
        return format!(
            "Whether the server stops for its disk or works on cannot be told apart: the two forms \
             are off by {stall_pct:.1} and {concurrent_pct:.1} % at the median."
        );
    }
    match forms.better() {
        Server::Stall => format!(
            "The server stops for its disk, by the form that fits better: {stall_pct:.1} % off at \
             the median, and {concurrent_pct:.1} % if it worked on."
        ),
        Server::Concurrent => format!(
            "The server works on while its disk does, by the form that fits better: \
             {concurrent_pct:.1} % off at the median, and {stall_pct:.1} % if it stopped."
        ),
    }
}

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
    let forms = outcome.explanation.forms.first().copied().flatten();
    if forms.is_some_and(|forms| !forms.is_told(outcome.explanation.choice.noise_pct)) {
        say("form", form(outcome));
    }
    say(
        "way",
        "L and the fixed costs of both ends cannot be told apart from one end: 2 T_prop has them \
         all; a run behind a link with a known L, or a capture at the server, tells them apart"
            .to_owned(),
    );
    said
}
