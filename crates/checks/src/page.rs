//! What was found, as a report in HTML: the phases as a table, and what they come to.

use doctor::reach::Cause;
use report::Numbers;
use report::doctor::{DoctorReport, Subject};

use crate::text::{WELL, besides, outcome};
use crate::{Checked, Step};

/// The page; `probed` is what a probe of the same server has found.
pub fn page(checked: &Checked, probed: Option<Subject>, command: String) -> String {
    let subjects = [Some(subject(checked)), probed];
    report::doctor::html(&DoctorReport {
        title: "nfskit doctor".to_owned(),
        facts: vec![("Server".to_owned(), checked.target.clone())],
        subjects: subjects.into_iter().flatten().collect(),
        command,
        ..DoctorReport::default()
    })
}

fn subject(checked: &Checked) -> Subject {
    let besides = besides(checked).map(|sentence| ("besides".to_owned(), sentence));
    let failed = checked.failed();
    let causes = failed.map_or(&[][..], |(_, failed)| &failed.causes);
    let verdict = failed.map(|(phase, failed)| format!("It fails at {phase}: {}.", failed.what));
    Subject {
        title: checked.target.clone(),
        verdict: verdict.unwrap_or_else(|| WELL.to_owned()),
        facts: besides.chain((1..).zip(causes).map(likely)).collect(),
        findings: phases(checked),
        ..Subject::default()
    }
}

fn likely((number, cause): (usize, &Cause)) -> (String, String) {
    (format!("likely cause {number}"), format!("{}; try: {}", cause.what, cause.check))
}

fn phases(checked: &Checked) -> Numbers {
    Numbers {
        title: "Phases of a mount".to_owned(),
        caption: "`no` is a phase that a mount can do without.".to_owned(),
        columns: ["phase", "", "ms", "what"].map(str::to_owned).into(),
        rows: checked.steps.iter().map(row).collect(),
    }
}

fn row(step: &Step) -> Vec<String> {
    let ms = step.ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.1}"));
    let (how, what) = outcome(step);
    vec![step.phase.name().to_owned(), how.to_owned(), ms, what.to_owned()]
}
