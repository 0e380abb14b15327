//! The book of the documents: `docs/SUMMARY.md` lists each of them once, so that none is left out
//! of what mdBook makes.

use super::Tree;
use super::finding::Finding;
use super::links::links;

const SUMMARY: &str = "docs/SUMMARY.md";

/// Most lines of the README: one goes through it before one decides.
const README_LINES_MAX: usize = 150;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings: Vec<Finding> = summary(tree);
    findings.extend(readme(tree));
    findings
}

fn summary(tree: &Tree) -> Vec<Finding> {
    let Some(summary) = tree.file(SUMMARY) else {
        return vec![Finding::about(SUMMARY, "is missing", "list the documents in it")];
    };
    let listed: Vec<String> =
        links(&summary.text).into_iter().map(|(_, link)| format!("docs/{link}")).collect();
    let documents = tree.markdown().filter(|file| file.path.starts_with("docs/"));
    let others = documents.filter(|file| file.path != SUMMARY);
    let counted =
        others.map(|file| (&file.path, listed.iter().filter(|link| **link == file.path).count()));
    let advice = "a line of its own in docs/SUMMARY.md";
    counted
        .filter(|(_, count)| *count != 1)
        .map(|(path, count)| {
            Finding::about(path, format!("is {count} times in {SUMMARY}, not once"), advice)
        })
        .collect()
}

fn readme(tree: &Tree) -> Option<Finding> {
    let path = "README.md";
    let lines = tree.file(path)?.text.lines().count();
    let advice = "move what is not for a newcomer to docs/tour.md or docs/features.md";
    let what = format!("has {lines} lines, more than {README_LINES_MAX}");
    (lines > README_LINES_MAX).then(|| Finding::about(path, what, advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_document_is_in_the_book_once() {
        let count = |summary: &str| {
            summary_of(&[(SUMMARY, summary), ("docs/a.md", ""), ("docs/b/c.md", ""), ("x.md", "")])
        };
        assert_eq!(count("- [A](a.md)\n- [C](b/c.md)\n"), 0);
        assert_eq!(count("- [A](a.md)\n"), 1);
        assert_eq!(count("- [A](a.md)\n- [A](a.md)\n- [C](b/c.md)\n"), 1);
        assert_eq!(summary_of(&[("docs/a.md", "")]), 1);
    }

    fn summary_of(files: &[(&str, &str)]) -> usize {
        summary(&Tree::of(files)).len()
    }

    #[test]
    fn the_readme_is_short() {
        let found = |lines: usize| readme(&Tree::of(&[("README.md", &"x\n".repeat(lines))]));
        assert!(found(150).is_none() && found(151).is_some());
    }
}
