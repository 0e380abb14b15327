//! What may be in our tree: licences, sources and versions of all crates, by `deny.toml`, from what
//! cargo knows of them. It needs no network and no other tool, so that it is always checked.
//!
//! cargo-deny checks the same and more (advisories of today); of advisories [`crate::tidy`] has a
//! snapshot, whose age is printed.

use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

use serde_json::Value as Json;
use spdx::{Expression, LicenseReq, ParseMode};
use toml::Table;

const RULES: &str = "deny.toml";
const SNAPSHOT: &str = "xtask/advisories.toml";

/// A snapshot of advisories that is older is complained of, where somebody reads it.
const SNAPSHOT_DAYS_MAX: i64 = 90;

/// Where cargo has a crate of the one registry from.
const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

pub(crate) fn run(root: &Path) -> Result<(), String> {
    let read = |path: &str| {
        let text = std::fs::read_to_string(root.join(path));
        let table = text.map_err(|why| why.to_string())?.parse::<Table>();
        table.map_err(|why| why.to_string())
    };
    let rules = read(RULES).map_err(|why| format!("{RULES}: {why}"))?;
    let metadata = metadata(root)?;
    let findings = findings(&metadata, &allowed(&rules)?)?;
    if !findings.is_empty() {
        return Err(findings.join("\n"));
    }
    let snapshot = read(SNAPSHOT).map_err(|why| format!("{SNAPSHOT}: {why}"))?;
    let taken = snapshot.get("taken").and_then(toml::Value::as_str).and_then(days);
    let taken = taken.ok_or_else(|| format!("{SNAPSHOT}: `taken` is no date"))?;
    let age = days_until(SystemTime::now()) - taken;
    println!("deny: the snapshot of advisories is {age} days old; `cargo deny check` has today's");
    if age > SNAPSHOT_DAYS_MAX {
        println!("deny: renew it: the head of {SNAPSHOT} says how");
    }
    Ok(())
}

/// What cargo knows of all crates that are built here: of others it may not have the manifests.
fn metadata(root: &Path) -> Result<Json, String> {
    let rustc = Command::new("rustc").arg("-vV").output();
    let version = rustc.map_err(|error| format!("rustc does not start: {error}"))?.stdout;
    let version = String::from_utf8_lossy(&version);
    let host = version.lines().find_map(|line| line.strip_prefix("host: "));
    let mut command = Command::new(crate::check::cargo_program());
    command.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    command.args(["--filter-platform", host.ok_or("rustc names no host")?]);
    let output = command.current_dir(root).output();
    let output = output.map_err(|error| format!("cargo does not start: {error}"))?;
    if !output.status.success() {
        return Err(String::from_utf8_lossy(&output.stderr).into_owned());
    }
    serde_json::from_slice(&output.stdout).map_err(|error| format!("cargo metadata: {error}"))
}

fn allowed(rules: &Table) -> Result<Vec<String>, String> {
    let licenses = rules.get("licenses").and_then(|licenses| licenses.get("allow"));
    let listed = licenses.and_then(toml::Value::as_array).into_iter().flatten();
    let allowed: Vec<String> = listed.filter_map(|one| Some(one.as_str()?.to_owned())).collect();
    match allowed.is_empty() {
        true => Err(format!("{RULES} allows no licence")),
        false => Ok(allowed),
    }
}

/// What is wrong with which crate.
fn findings(metadata: &Json, allowed: &[String]) -> Result<Vec<String>, String> {
    let packages = metadata["packages"].as_array().filter(|packages| !packages.is_empty());
    let packages = packages.ok_or("cargo metadata tells of no packages")?;
    let mut findings = Vec::new();
    for package in packages {
        let text = |key: &str| package[key].as_str().unwrap_or_default();
        let mut find =
            |what: String| findings.push(format!("{} {}: {what}", text("name"), text("version")));
        let license = text("license");
        if !fits(license, allowed) {
            find(format!("the licence {license:?} is not among those of {RULES}"));
        }
        let source = text("source");
        if !source.is_empty() && source != REGISTRY {
            find(format!("it comes from {source}"));
        }
        for dependency in package["dependencies"].as_array().into_iter().flatten() {
            let is_ours = source.is_empty();
            let is_any = dependency["req"] == "*" && dependency["path"].is_null();
            if is_ours && is_any {
                find(format!("any version of {} will do", dependency["name"]));
            }
        }
    }
    Ok(findings)
}

/// Whether an expression of SPDX holds with these licences; `/` is how `OR` was written before.
fn fits(expression: &str, allowed: &[String]) -> bool {
    let is_allowed = |required: &LicenseReq| {
        let license = required.license.id();
        license.is_some_and(|license| allowed.iter().any(|one| one == license.name))
    };
    // An exception permits more than the licence alone.
    Expression::parse_mode(expression, ParseMode::LAX).is_ok_and(|it| it.evaluate(is_allowed))
}

/// Days since 1970 of a date as `2026-06-20`.
fn days(date: &str) -> Option<i64> {
    let begins = humantime::parse_rfc3339(&format!("{date}T00:00:00Z")).ok()?;
    Some(days_until(begins))
}

fn days_until(time: SystemTime) -> i64 {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs() / 86_400).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn allowed() -> Vec<String> {
        ["MIT", "Apache-2.0", "Unicode-3.0"].map(str::to_owned).to_vec()
    }

    #[test]
    fn a_licence_fits_if_what_it_asks_for_is_allowed() {
        let good = [
            "MIT",
            "GPL-3.0 OR MIT",
            "MIT/Apache-2.0",
            "(MIT OR GPL-3.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception OR GPL-3.0",
            "GPL-3.0 OR MIT AND Unicode-3.0",
        ];
        for text in good {
            assert!(fits(text, &allowed()), "{text}");
        }
        let bad = ["", "GPL-3.0", "MIT AND GPL-3.0", "(MIT", "MIT)", "MIT OR", "MIT Apache-2.0"];
        for text in bad {
            assert!(!fits(text, &allowed()), "{text}");
        }
    }

    #[test]
    fn a_crate_of_another_licence_or_source_or_of_any_version_is_found() {
        let package = |license: &str, source: Json, req: &str| {
            let dependencies = json!([{ "name": "b", "req": req, "path": null }]);
            let package = json!({
                "name": "a", "version": "1.0.0", "license": license, "source": source,
                "dependencies": dependencies,
            });
            findings(&json!({ "packages": [package] }), &allowed()).unwrap().join("\n")
        };
        assert_eq!(package("MIT", Json::Null, "^1"), "");
        assert_eq!(package("MIT", REGISTRY.into(), "*"), "", "others may");
        assert!(package("GPL-3.0", REGISTRY.into(), "^1").contains("a 1.0.0: the licence"));
        assert!(
            package("MIT", "git+https://example.org/a".into(), "^1").contains("comes from git")
        );
        assert!(package("MIT", Json::Null, "*").contains("any version of \"b\""));
        assert!(findings(&json!({}), &allowed()).is_err(), "nothing was looked at");
    }

    #[test]
    fn a_date_is_a_number_of_days() {
        assert_eq!(days("1970-01-01"), Some(0));
        assert_eq!(days("2000-03-01"), Some(11_017));
        assert_eq!(days("2026-06-20"), Some(20_624));
        assert_eq!(days("soon"), None);
    }
}
