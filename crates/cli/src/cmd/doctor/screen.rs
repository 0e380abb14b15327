//! The findings on a terminal.

use std::fmt::Write;

use doctor::Report;
use doctor::finding::{Finding, Gain};

/// Columns of a line, as other commands have them.
const WIDTH: usize = 100;
const HEAD: usize = 12;

pub(super) fn text(reports: &[Report]) -> String {
    if reports.is_empty() {
        return "there is no NFS mount on this host\n".to_owned();
    }
    reports.iter().map(report).collect::<Vec<String>>().join("\n")
}

fn report(report: &Report) -> String {
    let mut out = String::new();
    let fact = |name: &str| {
        let found = report.facts.iter().find(|(key, _)| key == name);
        found.map_or("?", |(_, value)| value.as_str())
    };
    writeln!(out, "{}: {}, NFS v{}", report.name, fact("server"), fact("version")).ok();
    line(&mut out, "options", fact("options"));
    let since = if report.is_lifetime { "; an average since the mount" } else { "" };
    match report.findings.split_first() {
        None => line(&mut out, "verdict", &format!("nothing stands out{since}")),
        Some((first, others)) => {
            let sure = first.found.certainty.name();
            line(&mut out, "verdict", &format!("{} ({sure}{since})", first.found.what));
            grounds(&mut out, first);
            for other in others {
                let (layer, severity) = (other.rule.layer.name(), other.found.severity.name());
                line(&mut out, "besides", &format!("{} ({layer}, {severity})", other.found.what));
                line(&mut out, "", &format!("try: {}; {}", other.found.remedy, gain(other)));
            }
        }
    }
    if !report.fine.is_empty() {
        line(&mut out, "well", &report.fine.join("; "));
    }
    for missing in &report.missing {
        line(&mut out, "not seen", &format!("{} (run: {})", missing.what, missing.run));
    }
    out
}

fn grounds(out: &mut String, finding: &Finding) {
    let found = &finding.found;
    line(out, "evidence", &found.evidence.join("; "));
    line(out, "against", &found.against.join("; "));
    line(out, "try first", &found.remedy);
    line(out, "gain", &gain(finding));
    for below in &finding.below {
        line(out, "explains", &below.found.what);
    }
}

fn gain(finding: &Finding) -> String {
    match &finding.found.gain {
        Gain::Faster { of, least, most, model } => {
            format!("{least:.1} to {most:.1} times the {of} (by {model})")
        }
        Gain::Unpredicted(why) => format!("cannot be predicted from this: {why}"),
    }
}

/// A head and its text, in as many lines as that needs; nothing without a text.
fn line(out: &mut String, head: &str, text: &str) {
    let (mut column, mut head) = (0, head);
    for word in text.split_whitespace() {
        if column > 0 && column + 1 + word.chars().count() > WIDTH {
            out.push('\n');
            column = 0;
        }
        if column == 0 {
            write!(out, "  {head:<HEAD$}").ok();
            (column, head) = (HEAD + 2, "");
        } else {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += word.chars().count();
    }
    if column > 0 {
        out.push('\n');
    }
}
