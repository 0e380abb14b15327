//! Links between documents: the file is there, and so is the heading.

use std::collections::{BTreeMap, BTreeSet};

use super::Tree;
use super::finding::Finding;
use super::source::numbered;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let anchors: BTreeMap<&str, BTreeSet<String>> =
        tree.markdown().map(|file| (file.path.as_str(), anchors(&file.text))).collect();
    let mut findings = Vec::new();
    for file in tree.markdown() {
        for (line, target) in links(&file.text) {
            if let Some(what) = broken(tree, &anchors, &file.path, &target) {
                let advice = "correct the link, or write what it points to";
                findings.push(Finding::at(&file.path, line, what, advice));
            }
        }
    }
    findings
}

/// Why a link leads nowhere, if so. Links to other hosts are not followed.
fn broken(
    tree: &Tree,
    anchors: &BTreeMap<&str, BTreeSet<String>>,
    from: &str,
    target: &str,
) -> Option<String> {
    if target.contains("://") || target.starts_with("mailto:") {
        return None;
    }
    let (file, anchor) = target.split_once('#').unwrap_or((target, ""));
    let path = if file.is_empty() { from.to_owned() } else { resolve(from, file) };
    if tree.file(&path).is_none() && !tree.is_folder(&path) {
        return Some(format!("link to `{file}`: no such file"));
    }
    let known = anchors.get(path.as_str());
    if anchor.is_empty() || known.is_none_or(|anchors| anchors.contains(anchor)) {
        return None;
    }
    Some(format!("link to `{target}`: no heading `#{anchor}` there"))
}

/// The path from the root that `link` means in the file `from`.
fn resolve(from: &str, link: &str) -> String {
    let folder = match (link.starts_with('/'), from.rsplit_once('/')) {
        (false, Some((folder, _))) => folder,
        _ => "",
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(link.split('/')) {
        match part {
            "" | "." => {}
            // Above the root there is nothing: the part stays, and no file has it.
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    parts.join("/")
}

/// Targets of `[text](target)` and `[name]: target`, outside of code.
pub(super) fn links(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    for (number, line) in prose(text) {
        let line = without_code(line);
        for (at, _) in line.match_indices("](") {
            let target = &line[at + 2..];
            let target = &target[..closing(target)];
            found.push((number, destination(target)));
        }
        if let Some((name, target)) = line.trim_start().split_once("]: ")
            && name.starts_with('[')
            && !name.starts_with("[^")
        {
            found.push((number, destination(target)));
        }
    }
    found
}

/// Where the parenthesis that opened before `rest` closes.
fn closing(rest: &str) -> usize {
    let mut depth = 1;
    for (at, character) in rest.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    rest.len()
}

/// The address in `<address>` or `address "title"`.
fn destination(target: &str) -> String {
    let target = target.trim();
    let address = match target.strip_prefix('<') {
        Some(rest) => rest.split('>').next(),
        None => target.split_whitespace().next(),
    };
    address.unwrap_or("").to_owned()
}

/// What headings are called in links, as the usual hosts make them, and explicit `id`s.
fn anchors(text: &str) -> BTreeSet<String> {
    let mut anchors = BTreeSet::new();
    for (_, line) in prose(text) {
        for marker in ["id=\"", "name=\""] {
            for (at, _) in line.match_indices(marker) {
                let id = line[at + marker.len()..].split('"').next();
                anchors.extend(id.map(str::to_owned));
            }
        }
        let heading = line.trim_start_matches('#');
        let level = line.len() - heading.len();
        if (1..=6).contains(&level) && heading.starts_with(' ') {
            let slug = slug(heading);
            let unused = |slug: &String| !anchors.contains(slug);
            let numbered = (1..).map(|n| format!("{slug}-{n}"));
            anchors.extend(std::iter::once(slug.clone()).chain(numbered).find(unused));
        }
    }
    anchors
}

/// A heading in small letters, spaces as hyphens, without punctuation and without link targets.
fn slug(heading: &str) -> String {
    let mut shown = String::new();
    let mut rest = heading.trim().trim_end_matches('#').trim_end();
    while let Some((text, link)) = rest.split_once("](") {
        shown.push_str(text);
        rest = link.get(closing(link) + 1..).unwrap_or("");
    }
    shown.push_str(rest);
    shown
        .chars()
        .filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'))
        .flat_map(char::to_lowercase)
        .map(|c| if c == ' ' { '-' } else { c })
        .collect()
}

/// Lines outside of fenced code.
pub(super) fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut fence = None;
    numbered(text).filter(move |(_, line)| {
        let line = line.trim_start();
        let marker = ["```", "~~~"].into_iter().find(|marker| line.starts_with(marker));
        match (fence, marker) {
            (None, Some(_)) => {
                fence = marker;
                false
            }
            (Some(_), _) => {
                if marker == fence {
                    fence = None;
                }
                false
            }
            (None, None) => true,
        }
    })
}

/// The line with what stands between backticks left out.
pub(super) fn without_code(line: &str) -> String {
    let mut pieces: Vec<&str> = line.split('`').step_by(2).collect();
    if line.matches('`').count() % 2 == 1 {
        // An odd backtick opens nothing: what follows it is prose.
        pieces.extend(line.rsplit('`').next());
    }
    pieces.join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn findings(files: &[(&str, &str)]) -> Vec<String> {
        let findings = check(&Tree::of(files));
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn links_to_files_folders_and_headings_are_followed() {
        let text = "[a](docs/a.md) [b](docs) [c](docs/a.md#two-words-and-code) [d](#here)\n# Here\n\
                    [e](https://example.org/x#y) [f](<docs/a.md> \"title\")\n[g]: docs/a.md\n";
        let files =
            [("README.md", text), ("docs/a.md", "## Two words, and `code`\n[up](../README.md)")];
        assert_eq!(findings(&files), [""; 0]);
    }

    #[test]
    fn broken_links_say_what_is_not_there() {
        let text = "[a](b.md) [c](#nowhere)\n[up](../../x.md)\n[d]: e.md\n";
        let expected = [
            "link to `b.md`: no such file",
            "link to `#nowhere`: no heading `#nowhere` there",
            "link to `../../x.md`: no such file",
            "link to `e.md`: no such file",
        ];
        assert_eq!(findings(&[("docs/a.md", text)]), expected);
    }

    #[test]
    fn code_has_no_links() {
        let text = "`[a](b.md)`\n```\n[c](d.md)\n# no heading\n```\n~~~\n```\n[e](f.md)\n~~~\n";
        assert_eq!(findings(&[("a.md", text)]), [""; 0]);
        assert!(anchors(text).is_empty());
    }

    #[test]
    fn equal_headings_are_numbered() {
        let anchors = anchors("# A b\n## A b\n### A-b_c (d)!\n<a id=\"own\"></a>\n");
        let anchors: Vec<&str> = anchors.iter().map(String::as_str).collect();
        assert_eq!(anchors, ["a-b", "a-b-1", "a-b_c-d", "own"]);
    }

    #[test]
    fn a_target_may_hold_parentheses() {
        let target = links("see [x](a_(b).md), and (so on)");
        assert_eq!(target, [(1, "a_(b).md".to_owned())]);
    }
}
