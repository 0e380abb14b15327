//! What every manifest owes the workspace: its lints, and a reason for each dependency.

use super::Tree;
use super::finding::Finding;
use super::manifest::{entries, first_string};
use super::source::numbered;

const REASONS: &str = "docs/dependencies.md";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    let is_member = |path: &str| {
        path.ends_with("/Cargo.toml") && (path.starts_with("crates/") || path.starts_with("xtask/"))
    };
    for file in tree.files().iter().filter(|file| is_member(&file.path)) {
        findings.extend(inherits_lints(&file.path, &file.text));
    }
    let Some(root) = tree.file("Cargo.toml") else {
        findings.push(Finding::about("Cargo.toml", "is missing", "every check starts from it"));
        return findings;
    };
    match tree.file(REASONS) {
        Some(reasons) => {
            findings.extend(reasons_for(&root.text, &reasons.text));
            let used: String = tree
                .files()
                .iter()
                .filter(|file| file.path.ends_with("Cargo.toml"))
                .flat_map(|file| [file.text.as_str(), "\n"])
                .collect();
            findings.extend(reasons_without_dependency(&used, &reasons.text));
        }
        None => findings.push(Finding::about(
            REASONS,
            "is missing",
            "make it a table with a row for each dependency: its name in backticks, what it saves",
        )),
    }
    findings.extend(stated_versions(tree, &root.text));
    findings
}

/// A crate does not inherit the workspace's lints by itself.
fn inherits_lints(path: &str, text: &str) -> Option<Finding> {
    let inherits = entries(text).iter().any(|entry| {
        entry.section == "lints" && entry.key == "workspace" && entry.value.starts_with("true")
    });
    let advice = "add `[lints]` with `workspace = true`";
    (!inherits).then(|| Finding::about(path, "does not inherit the lints", advice))
}

/// Dependencies in the workspace's table that no row of the document explains.
fn reasons_for(root: &str, reasons: &str) -> Vec<Finding> {
    entries(root)
        .iter()
        .filter(|entry| entry.section == "workspace.dependencies")
        .filter(|entry| !entry.value.contains("path ="))
        .filter(|entry| !rows(reasons).any(|(_, name)| name == entry.key))
        .map(|entry| {
            let what = format!("`{}` has no row in {REASONS}", entry.key);
            let advice = "say there what it saves, what it costs, and what else was considered";
            Finding::at("Cargo.toml", entry.line, what, advice)
        })
        .collect()
}

/// Rows of the document about what no manifest names any more.
fn reasons_without_dependency(manifests: &str, reasons: &str) -> Vec<Finding> {
    let entries = entries(manifests);
    let is_used = |name: &str| {
        let mut dependencies = entries.iter().filter(|e| e.section.ends_with("dependencies"));
        dependencies.any(|entry| entry.key == name)
    };
    rows(reasons)
        .filter(|(_, name)| !is_used(name))
        .map(|(line, name)| {
            let what = format!("`{name}` is no dependency of any crate");
            Finding::at(REASONS, line, what, "remove the row")
        })
        .collect()
}

/// Table rows whose first cell is a name in backticks: line and name.
fn rows(reasons: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(reasons).filter_map(|(line, text)| {
        let cell = text.trim_start().strip_prefix('|')?.split('|').next()?;
        let name = cell.trim().strip_prefix('`')?.split('`').next()?;
        Some((line, name))
    })
}

/// Versions that a document states must be those of the manifest.
fn stated_versions(tree: &Tree, root: &str) -> Vec<Finding> {
    let entries = entries(root);
    let fact = |key: &str| {
        let mut facts = entries.iter().filter(|entry| entry.section == "workspace.package");
        facts.find(|entry| entry.key == key).and_then(|entry| first_string(entry.value))
    };
    let claims = [
        ("nfskit ", fact("version")),
        ("nfskit v", fact("version")),
        ("Rust ", fact("rust-version")),
        ("rustc ", fact("rust-version")),
        ("rust-version = \"", fact("rust-version")),
    ];
    let mut findings = Vec::new();
    for path in ["README.md", "CONTRIBUTING.md", "ARCHITECTURE.md"] {
        let Some(file) = tree.file(path) else {
            continue;
        };
        for (word, truth) in claims {
            let Some(truth) = truth else { continue };
            findings.extend(wrong_claims(path, &file.text, word, truth));
        }
    }
    findings
}

/// Version numbers right behind `word` that are not `truth`.
fn wrong_claims(path: &str, text: &str, word: &str, truth: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        for (at, _) in line.match_indices(word) {
            let claim = line[at + word.len()..].trim_start_matches([' ', '>', '=', '`']);
            let end = claim.find(|c: char| c != '.' && !c.is_ascii_digit());
            let claim = claim[..end.unwrap_or(claim.len())].trim_end_matches('.');
            if claim.contains('.') && claim != truth && claim != format!("{truth}.0") {
                let what = format!("`{word}{claim}`, but the manifest says {truth}");
                findings.push(Finding::at(path, number, what, "state the manifest's version"));
            }
        }
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: &str = "[workspace.package]\nversion = \"0.1.0\"\nrust-version = \"1.88\"\n\
                        [workspace.dependencies]\nwire = { path = \"crates/wire\" }\nbytes = \"1\"\n";

    #[test]
    fn a_crate_without_the_lints_is_found() {
        assert!(inherits_lints("a/Cargo.toml", "[package]\nname = \"a\"\n").is_some());
        assert!(inherits_lints("a/Cargo.toml", "[lints]\nworkspace = true\n").is_none());
    }

    #[test]
    fn a_dependency_needs_its_row_and_a_row_its_dependency() {
        let line =
            |findings: Vec<Finding>| findings.into_iter().map(|f| f.line).collect::<Vec<_>>();
        let table = "| crate | saves |\n|---|---|\n| `bytes` | slices |\n";
        assert!(reasons_for(ROOT, table).is_empty());
        assert_eq!(line(reasons_for(ROOT, "`bytes` saves much")), [Some(6)]);
        assert!(reasons_without_dependency(ROOT, table).is_empty());
        assert_eq!(line(reasons_without_dependency(ROOT, "| `bytez` | |")), [Some(1)]);
    }

    #[test]
    fn a_missing_document_is_a_finding_and_no_panic() {
        let findings = check(&Tree::of(&[("Cargo.toml", ROOT)]));
        assert_eq!(findings.len(), 1);
        assert_eq!(findings[0].path, REASONS);
    }

    #[test]
    fn versions_in_the_readme_are_those_of_the_manifest() {
        let check = |text| stated_versions(&Tree::of(&[("README.md", text)]), ROOT).len();
        assert_eq!(check("nfskit 0.1.0 needs Rust 1.88 or newer."), 0);
        assert_eq!(check("Build with Rust 1.88.0."), 0);
        assert_eq!(check("nfskit 0.2.0 needs Rust >= 1.85."), 2);
        assert_eq!(check("nfskit serve speaks NFS 3. Rust 2024 is an edition."), 0);
    }
}
