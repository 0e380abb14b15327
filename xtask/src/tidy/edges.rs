//! Which crate may be built on which: the diagram of the architecture, as a table.

use super::Tree;
use super::finding::Finding;
use super::manifest::{Entry, entries, first_string, is_dependencies};

/// Our crates by folder, each with what it may name under `[dependencies]`.
const EDGES: [(&str, &[&str]); 23] = [
    (
        "bench",
        &[
            "client", "counters", "harness", "load", "net", "perf", "report", "server", "trace",
            "wire", "world",
        ],
    ),
    ("cache", &[]),
    ("checks", &["client", "doctor", "load", "net", "perf", "report", "wire"]),
    (
        "cli",
        &[
            "bench", "cache", "checks", "client", "counters", "doctor", "fuse", "harness",
            "inspect", "load", "net", "perf", "proxy", "report", "server", "study", "watch",
            "wire", "world",
        ],
    ),
    ("client", &["cache", "net", "perf", "wire"]),
    ("counters", &[]),
    ("doctor", &["counters", "perf", "report", "trace"]),
    ("fuse", &["client", "net", "perf", "wire"]),
    (
        "harness",
        &[
            "cache", "client", "doctor", "fuse", "load", "net", "perf", "proxy", "server", "trace",
            "wire", "world",
        ],
    ),
    ("inspect", &["harness", "net", "perf", "report", "trace", "wire"]),
    ("load", &["client", "net", "perf", "wire"]),
    ("net", &["perf", "wire"]),
    ("log", &[]),
    ("perf", &[]),
    ("proxy", &["cache", "client", "log", "net", "perf", "server", "wire"]),
    ("report", &["perf"]),
    ("server", &["log", "perf", "wire"]),
    ("study", &["client", "doctor", "harness", "load", "net", "perf", "report", "server", "world"]),
    ("testkit", &["cache", "client", "fuse", "load", "net", "perf", "server", "wire", "world"]),
    ("trace", &["perf", "wire"]),
    ("watch", &["counters", "perf", "wire"]),
    ("wire", &[]),
    ("world", &["client", "load", "net", "perf", "server", "wire"]),
];

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let manifests = tree.files().iter().filter_map(|file| {
        let folder = file.path.strip_prefix("crates/")?.strip_suffix("/Cargo.toml")?;
        Some((file, folder))
    });
    manifests.flat_map(|(file, folder)| check_manifest(&file.path, folder, &file.text)).collect()
}

fn check_manifest(path: &str, folder: &str, text: &str) -> Vec<Finding> {
    let Some(allowed) = allowed(folder) else {
        let what = format!("crate `{folder}` has no place in the architecture");
        return vec![Finding::about(path, what, "add it to xtask/src/tidy/edges.rs")];
    };
    let entries = entries(text);
    let edges = entries.iter().filter(|entry| is_dependencies(entry.section));
    edges
        .filter_map(|entry| {
            let target = ours(entry)?;
            let what = format!("`{folder}` may not be built on `{target}`");
            let advice = if target == "testkit" {
                "testkit is for tests: move it to [dev-dependencies]".to_owned()
            } else {
                format!("`{folder}` may name {}: move the code, not the wall", list(allowed))
            };
            (!allowed.contains(&target)).then(|| Finding::at(path, entry.line, what, advice))
        })
        .collect()
}

fn allowed(folder: &str) -> Option<&'static [&'static str]> {
    let edge = EDGES.iter().find(|(name, _)| *name == folder);
    edge.map(|(_, allowed)| *allowed)
}

/// The folder of the crate of ours that a dependency means, whatever name it is given.
fn ours<'a>(entry: &Entry<'a>) -> Option<&'a str> {
    let renamed = entry.value.split_once("package").and_then(|(_, rest)| first_string(rest));
    let package = renamed.unwrap_or(entry.key);
    let folder = match package {
        "nfskit" => "cli",
        _ => package.strip_prefix("nfskit-").unwrap_or(package),
    };
    allowed(folder).map(|_| folder)
}

fn list(names: &[&str]) -> String {
    match names {
        [] => "none of our crates".to_owned(),
        _ => names.join(", "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(folder: &str, text: &str) -> Vec<Option<usize>> {
        let findings = check_manifest("Cargo.toml", folder, text);
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn edges_follow_the_table() {
        let text = "[dependencies]\nbytes = \"1\"\nwire.workspace = true\nnet.workspace = true\n";
        assert!(lines("client", text).is_empty());
        assert_eq!(lines("server", text), [Some(4)]);
        assert_eq!(lines("perf", text), [Some(3), Some(4)]);
    }

    #[test]
    fn another_name_for_a_crate_is_no_way_around() {
        let text = "[dependencies]\nlink = { package = \"nfskit-net\", path = \"../net\" }\n";
        assert_eq!(lines("wire", text), [Some(2)]);
    }

    #[test]
    fn testkit_is_only_for_tests() {
        let text = "[dependencies]\ntestkit.workspace = true\n";
        assert_eq!(lines("cli", text), [Some(2)]);
        assert!(lines("cli", "[dev-dependencies]\ntestkit.workspace = true\n").is_empty());
    }

    #[test]
    fn a_crate_without_a_place_is_found() {
        assert_eq!(lines("utils", ""), [None]);
    }
}
