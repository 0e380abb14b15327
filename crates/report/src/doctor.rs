//! The report of `nfskit doctor`: for each mount or server the verdict, where the time of its calls
//! goes, the evidence, what to try, and what else was seen.
//!
//! As with the study, [`DoctorReport`] is plain data, and the page needs no script and no network.

use maud::{Markup, html};

use super::number::tied;
use super::page::{code, list, page, section, table};
use super::{Cycle, Numbers, cycles};

/// Everything the report shows.
#[derive(Clone, Debug, Default)]
pub struct DoctorReport {
    pub title: String,
    /// What was looked at, as name and value.
    pub facts: Vec<(String, String)>,
    pub subjects: Vec<Subject>,
    /// Where the time of calls goes, a bar for each mount, in us of a mean call.
    pub times: Vec<Cycle>,
    /// What was passed over, and why.
    pub ignored: Vec<String>,
    /// The command line that makes this report again.
    pub command: String,
}

/// A mount, a server or the host.
#[derive(Clone, Debug, Default)]
pub struct Subject {
    pub title: String,
    /// The first finding, with how sure it is.
    pub verdict: String,
    /// As name and value: time, evidence, floor, what to try first, its gain.
    pub facts: Vec<(String, String)>,
    pub findings: Numbers,
    pub contradictions: Vec<String>,
    pub fine: Vec<String>,
    pub missing: Vec<String>,
}

/// The report as one HTML file: no script, nothing fetched.
pub fn html(report: &DoctorReport) -> String {
    let sections = html! {
        @for subject in &report.subjects { (section(&subject.title, Some(content(subject)))) }
        (section("Where the time of a call goes", cycles::figure(&report.times)))
        (section("What was ignored", list(&report.ignored)))
        (section("How to make it again", code(&report.command)))
    };
    page(&report.title, &report.facts, &sections)
}

fn content(subject: &Subject) -> Markup {
    html! {
        p.sentence { (tied(&subject.verdict)) }
        dl.facts {
            @for (name, value) in &subject.facts {
                @if !value.is_empty() { div { dt { (name) } dd { (tied(value)) } } }
            }
        }
        (table(&subject.findings))
        (named("What does not go together", &subject.contradictions))
        (named("What is well", &subject.fine))
        (named("What could not be seen", &subject.missing))
    }
}

fn named(heading: &str, sentences: &[String]) -> Markup {
    html! {
        @if let Some(sentences) = list(sentences) { h3 { (heading) } (sentences) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_on_the_page_and_text_is_escaped() {
        let report = DoctorReport {
            title: "nfskit doctor".into(),
            subjects: vec![Subject {
                title: "/mnt/<data>".into(),
                verdict: "calls wait in the client".into(),
                facts: vec![
                    ("try first".into(), "nconnect=8".into()),
                    ("floor".into(), String::new()),
                ],
                fine: vec!["0 of 10 calls retransmitted".into()],
                ..Subject::default()
            }],
            ignored: vec!["junk: is no output that is known".into()],
            command: "nfskit doctor --html r".into(),
            ..DoctorReport::default()
        };
        let page = html(&report);
        for text in ["/mnt/&lt;data&gt;", "nconnect=8", "What is well", "junk: is no output"] {
            assert!(page.contains(text), "{text}");
        }
        assert!(!page.contains("<script") && !page.contains("floor"));
        assert!(!html(&DoctorReport::default()).contains("<h2>"));
    }
}
