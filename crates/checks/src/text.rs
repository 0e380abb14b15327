//! What was found, on a terminal.

use std::fmt;

use doctor::reach::{Answering, Phase};
use perf::printable::in_one_line;

use crate::{AFTER_A_FAILURE, Checked, Difference, Failed, Outcome, Step};

/// The verdict where nothing failed.
pub(crate) const WELL: &str = "Every phase that a mount needs is well.";

/// The phases a line each, what was seen besides, and the verdict.
pub fn text(checked: &Checked) -> String {
    let (shown, left): (Vec<_>, Vec<_>) = checked.steps.iter().partition(|step| !is_left(step));
    let mut text = format!("{}\n\n", checked.target);
    text.extend(shown.into_iter().map(line));
    text.push_str(&not_tried(&left));
    text.push_str(&besides_text(checked));
    text.push_str(&match checked.failed() {
        Some((phase, failed)) => verdict(phase, failed),
        None => format!("\n{WELL}\n"),
    });
    text
}

/// The phases that come after one that failed, on a line.
fn not_tried(left: &[&Step]) -> String {
    let names: Vec<_> = left.iter().map(|step| step.phase.name()).collect();
    match names.is_empty() {
        true => String::new(),
        false => format!("  not tried, since {AFTER_A_FAILURE}: {}\n", names.join(", ")),
    }
}

fn besides_text(checked: &Checked) -> String {
    let sentences = besides(checked).map(|sentence| in_one_line(&sentence));
    let lines: String = sentences.map(|sentence| format!("  {sentence}\n")).collect();
    if lines.is_empty() { lines } else { format!("\n{lines}") }
}

/// What was seen besides the phases, in sentences.
pub(crate) fn besides(checked: &Checked) -> impl Iterator<Item = String> {
    [times(checked), clocks(checked), others(checked)].into_iter().flatten()
}

/// A phase after one that failed.
fn is_left(step: &Step) -> bool {
    matches!(&step.outcome, Outcome::Skipped(why) if why == AFTER_A_FAILURE)
}

fn line(step: &Step) -> String {
    let ms = step.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1} ms"));
    let (how, what) = outcome(step);
    format!("  {:<14}{how:<8}{ms:>10}  {}\n", step.phase, in_one_line(what))
}

/// The outcome in a word, and its sentence.
pub(crate) fn outcome(step: &Step) -> (&'static str, &str) {
    match &step.outcome {
        Outcome::Done(what) => ("ok", what),
        Outcome::Failed(failed) if failed.is_optional => ("no", &failed.what),
        Outcome::Failed(failed) => ("FAILED", &failed.what),
        Outcome::Skipped(why) => ("-", why),
    }
}

fn times(checked: &Checked) -> Option<String> {
    let (connect, null) = checked.connect_ms.zip(checked.null_ms)?;
    let says = match checked.answering {
        Answering::AsFastAsTcp => "NULL is answered about as fast as the network lets it",
        Answering::SlowServer => {
            "the server takes its time for a call that does nothing: its processors or threads are \
             busy, or a relay, proxy or balancer before it accepts connections"
        }
        Answering::Unknown => return None,
    };
    let slower = getattr(checked).filter(|ms| *ms > GETATTR_RATIO * null.max(connect));
    let slower = slower.filter(|ms| *ms > GETATTR_MS).map_or_else(String::new, |ms| {
        format!(
            "; GETATTR took {ms:.1} ms, which is what the server waits for before it answers (a \
             disk, or an origin behind it)"
        )
    });
    Some(format!("NULL takes {null:.3} ms, a TCP connection {connect:.3} ms: {says}{slower}."))
}

/// By how much GETATTR must be slower than NULL to be worth a word: it is one call, and one that is
/// quick on every server that has what it needs. Guesses.
const GETATTR_RATIO: f64 = 10.0;
const GETATTR_MS: f64 = 5.0;

fn getattr(checked: &Checked) -> Option<f64> {
    let is_done =
        |step: &&Step| step.phase == Phase::Getattr && matches!(step.outcome, Outcome::Done(_));
    checked.steps.iter().find(is_done)?.ms
}

fn clocks(checked: &Checked) -> Option<String> {
    let unknown = "How far the clocks differ is not known: --write compares them.";
    let unknown = checked.failed().is_none().then(|| unknown.to_owned());
    checked.clock.map(|clock| clock.to_string()).or(unknown)
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { ahead_ms, error_ms } = *self;
        let which = if ahead_ms > 0.0 { "ahead of" } else { "behind" };
        match self.is_seen() {
            true => write!(
                f,
                "The server's clock is {:.0} ms {which} ours, give or take {error_ms:.0} ms: make \
                 and caches go by it (chronyc tracking, on both).",
                ahead_ms.abs()
            ),
            false => {
                write!(f, "The clocks differ by no more than can be seen, {error_ms:.0} ms.")
            }
        }
    }
}

fn others(checked: &Checked) -> Option<String> {
    let each = checked.others.iter().map(|other| match (&other.why, other.answers) {
        (Some(why), false) => format!("{} no ({why})", other.what),
        (_, answers) => format!("{} {}", other.what, if answers { "yes" } else { "no" }),
    });
    let each = each.collect::<Vec<_>>().join("; ");
    (!each.is_empty()).then(|| format!("Also tried: {each}."))
}

fn verdict(phase: Phase, failed: &Failed) -> String {
    let mut text = format!(
        "\nIt fails at {phase}: {}.\n\n  likely causes, the likeliest first\n",
        in_one_line(&failed.what)
    );
    for (number, cause) in failed.causes.iter().enumerate() {
        let [what, check] = [&cause.what, &cause.check].map(|sentence| in_one_line(sentence));
        text.push_str(&format!("  {}. {what}\n     try: {check}\n", number + 1));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sentence(null_ms: f64, getattr_ms: f64) -> String {
        let step = Step {
            phase: Phase::Getattr,
            ms: Some(getattr_ms),
            outcome: Outcome::Done("a directory".to_owned()),
        };
        let (connect_ms, null_ms) = (Some(0.031), Some(null_ms));
        let answering = doctor::reach::answering(connect_ms, null_ms);
        let steps = vec![step];
        let of = Checked::of("nfs://server/".to_owned());
        times(&Checked { steps, connect_ms, null_ms, answering, ..of }).unwrap()
    }

    #[test]
    fn a_server_adds_no_line_by_the_name_of_an_export() {
        let evil = "/e\x1b[31mvil\nok   everything is fine (grp\x1b]0;title\x07)".to_owned();
        let step = |outcome| Step { phase: Phase::Exports, ms: None, outcome };
        let failed = Failed { what: evil.clone(), causes: Vec::new(), is_optional: false };
        let steps = vec![step(Outcome::Done(evil)), step(Outcome::Failed(failed))];
        let text = text(&Checked { steps, ..Checked::of("nfs://server/".to_owned()) });
        let shown = "/e\\u{1b}[31mvil\\nok   everything is fine (grp\\u{1b}]0;title\\u{7})";
        assert_eq!(text.matches(shown).count(), 3, "{text}");
        assert!(!text.contains(['\x1b', '\x07']), "{text}");
    }

    #[test]
    fn a_server_that_answers_null_at_once_and_getattr_late_is_not_called_fast() {
        let late = sentence(0.06, 115.6);
        assert!(late.contains("NULL is answered about as fast"), "{late}");
        assert!(late.contains("GETATTR took 115.6 ms"), "{late}");
        assert!(!sentence(0.06, 0.3).contains("GETATTR"));
        assert!(!sentence(0.06, 3.0).contains("GETATTR"));
        let relay = sentence(9.874, 10.1);
        assert!(relay.contains("a relay") && !relay.contains("GETATTR"), "{relay}");
    }
}
