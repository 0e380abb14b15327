//! Words that do not belong in the tree, and one that does.

use super::Tree;
use super::finding::Finding;
use super::links::{prose, without_code};
use super::source::{Views, has_words, is_word, numbered};
use super::tree::File;

/// Notes to oneself: an issue is found again, a note is not.
const NOTES: [&str; 3] = ["TODO", "FIXME", "XXX"];
/// Folders of one machine. In two pieces, so that this line is not its own finding; `/tmp` by
/// itself is an ordinary example.
const MACHINE_FOLDERS: [&str; 4] = [
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/tmp", "/wt"),
    concat!("/tmp", "/target"),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = tree.files().iter().flat_map(check_file).collect();
    findings.extend(changelog(tree));
    findings
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = notes(&file.path, &file.text);
    findings.extend(machine_folders(&file.path, &file.text));
    findings
}

/// Notes in comments of sources, in prose of documents, anywhere in scripts and manifests.
fn notes(path: &str, text: &str) -> Vec<Finding> {
    let advice = "do it, or say in a sentence what is not done and why";
    let found = |(number, line): (usize, &str)| {
        let note = NOTES.into_iter().find(|note| has_words(line, note))?;
        Some(Finding::at(path, number, format!("`{note}`"), advice))
    };
    if path.ends_with(".rs") {
        numbered(&Views::of(text).comments).filter_map(found).collect()
    } else if path.ends_with(".md") {
        let lines = prose(text).map(|(number, line)| (number, without_code(line)));
        lines.filter_map(|(number, line)| found((number, &line))).collect()
    } else if path.ends_with(".toml") || path.starts_with(".ci/") {
        numbered(text).filter_map(found).collect()
    } else {
        Vec::new()
    }
}

/// Absolute paths that exist on one machine only.
fn machine_folders(path: &str, text: &str) -> Vec<Finding> {
    let starts_a_path = |line: &str, at: usize| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| is_word(c) || matches!(c, '.' | '-' | '/' | ']' | '}' | ')'))
    };
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        for folder in MACHINE_FOLDERS {
            if line.match_indices(folder).any(|(at, _)| starts_a_path(line, at)) {
                let what = format!("`{folder}` is a folder of one machine");
                let advice = "name it from the root of the repository, or as /srv/... or /mnt/...";
                findings.push(Finding::at(path, number, what, advice));
            }
        }
    }
    findings
}

fn changelog(tree: &Tree) -> Option<Finding> {
    let path = "CHANGELOG.md";
    let Some(file) = tree.file(path) else {
        return Some(Finding::about(path, "is missing", "begin it with `## Unreleased`"));
    };
    let is_there = file.text.lines().any(|line| line.trim_end() == "## Unreleased");
    let advice = "add it: each change that users notice has its line there";
    (!is_there).then(|| Finding::about(path, "no section `## Unreleased`", advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_are_found_where_they_are_notes() {
        let count = |path: &str, text: &str| notes(path, text).len();
        assert_eq!(count("a.rs", "// TODO: more\nlet x = \"FIXME\"; /* XXX */"), 2);
        assert_eq!(count("a.md", "TODO\n`FIXME` is forbidden\n```\nXXX\n```\n"), 1);
        assert_eq!(count("a.toml", "# FIXME"), 1);
        assert_eq!(count("a.rs", "// mktemp -d run.XXXXXX, TODOS"), 0);
    }

    #[test]
    fn folders_of_one_machine_are_found() {
        let count = |text: &str| machine_folders("a.md", text).len();
        let home = MACHINE_FOLDERS[1];
        assert_eq!(count(&format!("see {home}x and `{home}y`")), 1);
        assert_eq!(count(&format!("nfs://server{home}x, $DIR{home}")), 0);
        assert_eq!(count("cargo run -- serve /tmp/export"), 0);
    }

    #[test]
    fn the_changelog_has_a_place_for_the_next_change() {
        let check = |files| changelog(&Tree::of(files)).map(|finding| finding.what);
        assert_eq!(check(&[]).as_deref(), Some("is missing"));
        assert!(check(&[("CHANGELOG.md", "# Changelog\n\n## 0.1.0\n")]).is_some());
        assert_eq!(check(&[("CHANGELOG.md", "# Changelog\n\n## Unreleased\n")]), None);
    }
}
