//! `cargo xtask tidy`: checks of the repository itself, for what the compiler does not see.
//!
//! A check is a pure function from the tree (paths and texts) to findings, so that its tests
//! need no files. A finding says where, what, and what to do about it. Errors fail the run;
//! warnings are a ratchet on growth and only ask for attention.

mod advisories;
mod book;
mod edges;
mod finding;
mod glossary;
mod growth;
mod links;
mod manifest;
mod manifests;
mod names;
mod promises;
mod source;
mod text;
mod tree;
mod wording;

use std::path::Path;

use self::finding::{Finding, Weight};

pub(crate) use tree::Tree;

/// Reads the tree at `root`, runs every check, prints what they found.
pub(crate) fn run(root: &Path) -> Result<(), String> {
    let tree = Tree::read(root)?;
    let findings: Vec<Finding> = CHECKS.iter().flat_map(|check| check(&tree)).collect();
    for finding in &findings {
        println!("{finding}");
    }
    let errors = findings.iter().filter(|f| f.weight == Weight::Error).count();
    let warnings = findings.len() - errors;
    let files = tree.files().len();
    println!("tidy: {files} files, {errors} errors, {warnings} warnings");
    match errors {
        0 => Ok(()),
        _ => Err("tidy: the tree has errors, listed above".to_owned()),
    }
}

/// Prints how long the functions of each crate are.
pub(crate) fn print_functions(root: &Path) -> Result<(), String> {
    print!("{}", growth::table(&Tree::read(root)?));
    Ok(())
}

const CHECKS: [fn(&Tree) -> Vec<Finding>; 12] = [
    advisories::check,
    book::check,
    edges::check,
    glossary::check,
    growth::check,
    links::check,
    manifests::check,
    names::check,
    promises::check,
    source::check,
    text::check,
    wording::check,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_finding_prints_where_what_and_what_to_do() {
        let finding = Finding::at("crates/wire/src/lib.rs", 7, "a tab", "use spaces");
        let printed = "error: crates/wire/src/lib.rs:7: a tab\n    use spaces";
        assert_eq!(finding.to_string(), printed);
        let printed = "warning: README.md: long\n    split it";
        let warning = Finding::about("README.md", "long", "split it").warning();
        assert_eq!(warning.to_string(), printed);
    }
}
