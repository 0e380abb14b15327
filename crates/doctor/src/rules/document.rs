//! The table of all rules, as a document.

use std::fmt::Write;

use super::{ALL, About, Rule};

const HEAD: &str = "# Rules of nfskit doctor

This document is generated from the rules (`crates/doctor/src/rules/`); a test compares the two.
[Doctor](doctor.md) describes how rules work together. `--set RULE.NAME=NUMBER` sets a threshold.

";

/// The whole of `docs/doctor-rules.md`.
pub fn document() -> String {
    let mut out = HEAD.to_owned();
    for (about, title) in [
        (About::Mount, "Of a mount"),
        (About::Server, "Of a server"),
        (About::Host, "Of a host"),
        (About::Capture, "Of a capture"),
        (About::Record, "Of a run record"),
    ] {
        let rules: Vec<&Rule> = ALL.iter().copied().filter(|rule| rule.about == about).collect();
        if rules.is_empty() {
            continue;
        }
        writeln!(out, "## {title}\n").ok();
        for rule in rules {
            chapter(&mut out, rule);
        }
    }
    out.truncate(out.trim_end().len());
    out.push('\n');
    out
}

fn chapter(out: &mut String, rule: &Rule) {
    writeln!(out, "### {}\n", rule.name).ok();
    writeln!(out, "{}\n", rule.explanation).ok();
    let (layer, severity) = (rule.layer.name(), rule.severity.name());
    writeln!(out, "- **Layer, severity:** {layer}, {severity}").ok();
    let needs: Vec<String> = rule.needs.iter().map(|need| format!("`{need}`")).collect();
    writeln!(out, "- **Evidence:** {}", needs.join(", ")).ok();
    for threshold in rule.thresholds {
        let (name, default, of) = (threshold.name, threshold.default, threshold.of);
        writeln!(out, "- **Threshold** `{name}` = {default}: {of}").ok();
    }
    writeln!(out, "- **Remedy:** {}", rule.remedy).ok();
    writeln!(out, "- **Gain:** {}", rule.gain).ok();
    if !rule.explained_by.is_empty() {
        writeln!(out, "- **Explained by:** {}", rule.explained_by.join(", ")).ok();
    }
    writeln!(out, "- **Source:** {}\n", rule.source).ok();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_document_is_what_the_rules_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/doctor-rules.md");
        let document = document();
        if std::env::var_os("NFSKIT_UPDATE_DOCS").is_some() {
            std::fs::write(path, &document).unwrap();
        }
        let found = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            found == document,
            "docs/doctor-rules.md is old: NFSKIT_UPDATE_DOCS=1 cargo test -p nfskit-doctor document"
        );
    }
}
