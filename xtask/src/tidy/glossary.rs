//! The words of the field: the glossary in `docs/style.md` says which word stands for what, and
//! which ones do not stand for it in documents, help texts, doc comments and identifiers.

use super::Tree;
use super::finding::Finding;
use super::links::{prose, without_code};
use super::source::{Views, has_words, is_word, numbered};

const GLOSSARY: &str = "docs/style.md";

/// What quotes, what is as it was, and what is a rule about words itself.
const EXEMPT: [&str; 3] = ["CHANGELOG.md", "docs/adr/", GLOSSARY];

/// What ends a row whose words may stand in documents.
const IN_CODE: &str = "(in code)";

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let glossary = tree.file(GLOSSARY).map(|file| entries(&file.text)).unwrap_or_default();
    if glossary.is_empty() {
        let advice = "rows of a table: the field's word | `not this`, `nor this` |";
        return vec![Finding::about(GLOSSARY, "has no glossary", advice)];
    }
    let files = tree.markdown().chain(tree.rust());
    let read = files.filter(|file| !EXEMPT.iter().any(|exempt| file.path.starts_with(exempt)));
    read.flat_map(|file| findings(&glossary, &file.path, &file.text)).collect()
}

/// A word of the field, and those that are not to be used for it.
#[derive(Debug, Eq, PartialEq)]
struct Entry {
    word: String,
    not: Vec<String>,
    /// Not in code, while documents may have them.
    is_of_code: bool,
}

impl Entry {
    fn is_for(&self, path: &str) -> bool {
        !self.is_of_code || path.ends_with(".rs")
    }
}

/// The rows of the table below the heading `Glossary`.
fn entries(text: &str) -> Vec<Entry> {
    let after = text.lines().skip_while(|line| !line.contains("Glossary"));
    let rows = after.filter_map(|line| line.strip_prefix("| ")?.strip_suffix(" |"));
    let entry = |row: &str| {
        let (word, not) = row.split_once(" | ")?;
        let is_of_code = not.ends_with(IN_CODE);
        let not: Vec<String> = not.split('`').skip(1).step_by(2).map(str::to_lowercase).collect();
        (!not.is_empty()).then(|| Entry { word: word.to_owned(), not, is_of_code })
    };
    rows.filter_map(entry).collect()
}

fn findings(glossary: &[Entry], path: &str, text: &str) -> Vec<Finding> {
    let lines: Vec<(usize, String)> = match path.ends_with(".md") {
        true => prose(text).map(|(number, line)| (number, without_code(line))).collect(),
        false => doc_comments(text).map(|(number, line)| (number, without_code(line))).collect(),
    };
    let glossary: Vec<&Entry> = glossary.iter().filter(|entry| entry.is_for(path)).collect();
    let mut found = Vec::new();
    for (number, line) in lines {
        let line = line.to_lowercase();
        for Entry { word, not, .. } in &glossary {
            for phrase in not.iter().filter(|phrase| has_words(&line, phrase)) {
                let advice = format!("the field says \"{word}\" ({GLOSSARY})");
                found.push(Finding::at(path, number, format!("\"{phrase}\""), advice));
            }
        }
    }
    if path.ends_with(".rs") {
        found.extend(identifiers(&glossary, path, &Views::of(text).code));
    }
    found
}

/// Identifiers with one of the words in them: `sky`, `in_the_sky`, `SkyColour`.
fn identifiers(glossary: &[&Entry], path: &str, code: &str) -> Vec<Finding> {
    let mut found = Vec::new();
    for (number, line) in numbered(code) {
        for identifier in line.split(|c| !is_word(c)).filter(|word| !word.is_empty()) {
            let words = words(identifier);
            let not = |entry: &&&Entry| entry.not.iter().any(|phrase| words.contains(phrase));
            if let Some(Entry { word, .. }) = glossary.iter().find(not) {
                let advice = format!("the field says \"{word}\" ({GLOSSARY})");
                found.push(Finding::at(path, number, format!("`{identifier}`"), advice));
            }
        }
    }
    found
}

/// The words of an identifier, without capitals.
fn words(identifier: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for c in identifier.chars() {
        if c == '_' || c.is_uppercase() {
            words.push(String::new());
        }
        if let Some(last) = words.last_mut().filter(|_| c != '_') {
            last.extend(c.to_lowercase());
        }
    }
    words
}

fn doc_comments(text: &str) -> impl Iterator<Item = (usize, &str)> {
    numbered(text).filter(|(_, line)| {
        let line = line.trim_start();
        line.starts_with("///") || line.starts_with("//!")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const STYLE: &str = "# Style\n| a | `b` |\n## Glossary\n\n| the field's word | not |\n|---|---|\n\
                         | network round trip | `there and back`, `way over` |\n| plain | no code |\n\
                         | store | `pantry` |\n| requested | `bidden` (in code) |\n";

    #[test]
    fn the_table_below_the_heading_is_the_glossary() {
        let not = vec!["there and back".to_owned(), "way over".to_owned()];
        let entry = |word: &str, not, is_of_code| Entry { word: word.to_owned(), not, is_of_code };
        let round_trip = entry("network round trip", not, false);
        let store = entry("store", vec!["pantry".to_owned()], false);
        let requested = entry("requested", vec!["bidden".to_owned()], true);
        assert_eq!(entries(STYLE), [round_trip, store, requested]);
        assert!(entries("| a | `b` |").is_empty());
    }

    #[test]
    fn words_are_found_in_documents_and_doc_comments() {
        let count =
            |path: &str, text: &str| check(&Tree::of(&[(GLOSSARY, STYLE), (path, text)])).len();
        assert_eq!(
            count("README.md", "One there and back.\nA way over.\n`way over` is code.\n"),
            2
        );
        assert_eq!(
            count("a.rs", "/// There and back.\n//! way over\nlet x = \"way over\"; // way over"),
            2
        );
        assert_eq!(count("a.md", "there and backwards, a railway over"), 0);
        let code = "struct PantryDoor;\nfn open_pantry() {} // a pantry\nlet x = \"pantry\";";
        assert_eq!(count("a.rs", code), 2);
        assert_eq!(count("a.rs", "struct Pantryless;\nlet pantries = a::p;"), 0);
        assert_eq!(count("CHANGELOG.md", "there and back"), 0);
        assert_eq!(count("a.md", "bidden"), 0);
        assert_eq!(count("a.rs", "/// bidden\nlet is_bidden = true;"), 2);
        assert_eq!(check(&Tree::of(&[(GLOSSARY, "# Style")])).len(), 1);
    }
}
