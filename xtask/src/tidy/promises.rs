//! Tests that documents name beside what they promise: there is a function of that name.
//!
//! A name of six words or more in back quotes is one of a test. Metrics and fields are shorter.

use std::collections::BTreeSet;

use super::Tree;
use super::finding::Finding;
use super::source::{is_word, numbered};

const WORDS_LEAST: usize = 6;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let known: BTreeSet<&str> = tree.rust().flat_map(|file| functions(&file.text)).collect();
    let mut findings = Vec::new();
    for file in tree.markdown() {
        for (line, text) in numbered(&file.text) {
            for name in quoted(text).filter(|name| is_test(name) && !known.contains(name)) {
                let what = format!("`{name}`: no such test");
                let advice = "name the test that shows it, or withdraw the promise";
                findings.push(Finding::at(&file.path, line, what, advice));
            }
        }
    }
    findings
}

fn functions(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("fn ").skip(1);
    after.map(|rest| rest.split(|letter| !is_word(letter)).next().unwrap_or_default())
}

/// What stands between back quotes.
fn quoted(line: &str) -> impl Iterator<Item = &str> {
    line.split('`').skip(1).step_by(2)
}

fn is_test(name: &str) -> bool {
    let is_plain = |letter: char| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    name.split('_').count() >= WORDS_LEAST
        && name.split('_').all(|word| !word.is_empty() && word.chars().all(is_plain))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_test_that_is_not_there_is_found_and_what_is_no_test_is_not() {
        let code = "#[test]\nfn a_name_is_found_in_memory() {}\n";
        let text = "holds: `a_name_is_found_in_memory`\n\
                    | x | `a_name_is_found_in_the_wood`, `nfskit_store_sync_failures_total` |\n\
                    `_and_odd_seeds_of_the_same`, `A_B_C_D_E_F`\n";
        let tree = Tree::of(&[("crates/a/src/lib.rs", code), ("docs/a.md", text)]);
        let findings: Vec<String> = check(&tree).iter().map(|f| f.to_string()).collect();
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert!(findings[0].contains("docs/a.md:2: `a_name_is_found_in_the_wood`: no such test"));
    }
}
