//! Crates with known vulnerabilities, and those that nobody keeps any more: `Cargo.lock` against a
//! snapshot of the RustSec advisory database (`xtask/advisories.toml`), which needs no network.

use semver::{Version, VersionReq};
use toml::{Table, Value};

use super::Tree;
use super::finding::Finding;

const LOCK: &str = "Cargo.lock";
const SNAPSHOT: &str = "xtask/advisories.toml";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let text = |path| tree.file(path).map_or("", |file| &file.text);
    match findings(text(LOCK), text(SNAPSHOT)) {
        Ok(findings) => findings,
        Err(Broken { path, why }) => {
            vec![Finding::about(
                path,
                why,
                "correct it; the head of the snapshot says what is what",
            )]
        }
    }
}

#[derive(Debug)]
struct Broken {
    path: &'static str,
    why: String,
}

fn findings(lock: &str, snapshot: &str) -> Result<Vec<Finding>, Broken> {
    let snapshot_broken = |why: String| Broken { path: SNAPSHOT, why };
    let locked = tables(lock, "package").map_err(|why| Broken { path: LOCK, why })?;
    let mut findings = Vec::new();
    for advisory in tables(snapshot, "advisory").map_err(snapshot_broken)? {
        let word = |name| text(&advisory, name).map_err(snapshot_broken);
        let (id, package, what) = (word("id")?, word("package")?, word("what")?);
        let mut safe = ranges(&advisory, "patched").map_err(snapshot_broken)?;
        safe.extend(ranges(&advisory, "unaffected").map_err(snapshot_broken)?);
        for locked in locked.iter().filter(|locked| is_named(locked, package)) {
            let version = text(locked, "version").and_then(|version| {
                Version::parse(version).map_err(|error| format!("{version}: {error}"))
            });
            let version = version.map_err(|why| Broken { path: LOCK, why })?;
            if safe.iter().any(|range| range.matches(&version)) {
                continue;
            }
            let what = format!("{package} {version}: {id}: {what}");
            let advice =
                format!("cargo update -p {package}, or do without: cargo tree -i {package}");
            findings.push(Finding::about(LOCK, what, advice));
        }
    }
    Ok(findings)
}

fn is_named(locked: &Table, package: &str) -> bool {
    locked.get("name").and_then(Value::as_str) == Some(package)
}

/// The tables of `[[name]]`; a file without any is broken.
fn tables(text: &str, name: &str) -> Result<Vec<Table>, String> {
    let file: Table = text.parse().map_err(|error| format!("is no TOML: {error}"))?;
    let listed = file.get(name).and_then(Value::as_array);
    let tables: Vec<Table> =
        listed.into_iter().flatten().filter_map(|one| one.as_table().cloned()).collect();
    match tables.is_empty() {
        true => Err(format!("has no [[{name}]]")),
        false => Ok(tables),
    }
}

fn text<'a>(table: &'a Table, name: &str) -> Result<&'a str, String> {
    let found = table.get(name).and_then(Value::as_str);
    found.ok_or_else(|| format!("an entry has no `{name}`: {table:?}"))
}

/// Versions of which an advisory says that nothing is wrong with them.
fn ranges(advisory: &Table, name: &str) -> Result<Vec<VersionReq>, String> {
    let listed = advisory.get(name).and_then(Value::as_array).into_iter().flatten();
    listed
        .map(|range| {
            let range = range.as_str().unwrap_or_default();
            VersionReq::parse(range).map_err(|error| format!("{range:?}: {error}"))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SNAPSHOT: &str = r#"
        [[advisory]]
        id = "A-1"
        package = "cache"
        patched = [">=0.3.2, <0.4.0", ">=0.4.1"]
        unaffected = ["<0.2.0"]
        what = "frees twice"
        [[advisory]]
        id = "A-2"
        package = "left"
        patched = []
        what = "unmaintained"
    "#;

    fn of(name: &str, version: &str) -> Vec<String> {
        let lock = format!("[[package]]\nname = \"{name}\"\nversion = \"{version}\"");
        let findings = findings(&lock, SNAPSHOT).unwrap();
        findings.into_iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn versions_with_a_known_fault_are_found_and_others_are_not() {
        for version in ["0.2.0", "0.3.1", "0.4.0"] {
            let found = of("cache", version).join("");
            assert!(found.contains("A-1") && found.contains("frees twice"), "{version}: {found}");
        }
        for version in ["0.1.9", "0.3.2", "0.3.9", "0.4.1", "1.0.0", "0.4.2+build"] {
            assert_eq!(of("cache", version), Vec::<String>::new(), "{version}");
        }
        assert_eq!(of("caches", "0.3.1"), Vec::<String>::new());
    }

    #[test]
    fn what_is_never_patched_is_found_in_every_version() {
        assert!(of("left", "99.0.0").join("").contains("cargo tree -i left"));
    }

    #[test]
    fn broken_files_are_reported_and_not_passed() {
        let lock = "[[package]]\nname = \"a\"\nversion = \"1.0.0\"";
        let why = |lock, snapshot| findings(lock, snapshot).unwrap_err().why;
        assert!(why(lock, "").contains("has no [[advisory]]"));
        assert!(why("", SNAPSHOT).contains("has no [[package]]"));
        assert!(why(lock, "[[advisory]]\nid = \"A-1\"").contains("no `package`"));
        assert!(why(lock, &SNAPSHOT.replace(">=0.4.1", "newer")).contains("newer"));
    }
}
