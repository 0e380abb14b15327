//! Rust source, seen as code alone or as comments alone.
//!
//! A forbidden name in a string or a comment is no use of it, and a word of warning in a string
//! is no comment. So the text is split into two views of the same shape: in each, every
//! character that belongs elsewhere is a space, and lines and columns stay where they were.

use std::iter;

use super::Tree;
use super::finding::Finding;

/// The two views of one source text.
#[derive(Debug)]
pub(super) struct Views {
    /// Without comments and without what stands in string and character literals.
    pub(super) code: String,
    /// Only the comments, documentation included.
    pub(super) comments: String,
}

impl Views {
    pub(super) fn of(text: &str) -> Self {
        let mut code = String::with_capacity(text.len());
        let mut comments = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let (kind, length) = token(rest, code.chars().next_back());
            let (piece, after) = rest.split_at(length);
            let blank = piece.chars().map(|c| if c == '\n' { '\n' } else { ' ' });
            match kind {
                Kind::Code => {
                    code.push_str(piece);
                    comments.extend(blank);
                }
                Kind::Comment => {
                    code.extend(blank);
                    comments.push_str(piece);
                }
                Kind::Literal => {
                    code.extend(blank.clone());
                    comments.extend(blank);
                }
            }
            rest = after;
        }
        Self { code, comments }
    }
}

enum Kind {
    Code,
    Comment,
    Literal,
}

/// The kind of what `rest` starts with, and how many bytes of it belong together.
fn token(rest: &str, before: Option<char>) -> (Kind, usize) {
    if rest.starts_with("//") {
        (Kind::Comment, rest.find('\n').unwrap_or(rest.len()))
    } else if rest.starts_with("/*") {
        (Kind::Comment, block_comment(rest))
    } else if rest.starts_with('"') {
        (Kind::Literal, quoted(rest, '"'))
    } else if let Some(length) = raw_string(rest, before) {
        (Kind::Literal, length)
    } else if is_character(rest) {
        (Kind::Literal, quoted(rest, '\''))
    } else {
        (Kind::Code, rest.chars().next().map_or(0, char::len_utf8))
    }
}

/// Length of a block comment with those nested in it.
fn block_comment(rest: &str) -> usize {
    let mut depth = 0_usize;
    let mut at = 0;
    while let Some(step) = rest[at..].find(['/', '*']) {
        at += step;
        if rest[at..].starts_with("/*") {
            depth += 1;
            at += 2;
        } else if rest[at..].starts_with("*/") {
            depth -= 1;
            at += 2;
            if depth == 0 {
                return at;
            }
        } else {
            at += 1;
        }
    }
    rest.len()
}

/// Length of a literal that ends at the next `quote` without a backslash before it.
fn quoted(rest: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, character) in rest.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if character == quote => return at + character.len_utf8(),
            _ => {}
        }
    }
    rest.len()
}

/// Length of a raw string, unless its `r` ends a longer word or begins a raw identifier.
fn raw_string(rest: &str, before: Option<char>) -> Option<usize> {
    let after_r = rest.strip_prefix('r')?;
    // `br"..."` and `cr"..."` are raw strings too; the letter before stays in the code.
    if before.is_some_and(|c| is_word(c) && c != 'b' && c != 'c') {
        return None;
    }
    let hashes = after_r.len() - after_r.trim_start_matches('#').len();
    let content = after_r[hashes..].strip_prefix('"')?;
    let end: String = iter::once('"').chain(iter::repeat_n('#', hashes)).collect();
    let length = content.find(&end).map_or(content.len(), |at| at + end.len());
    Some(1 + hashes + 1 + length)
}

/// A character literal, as opposed to a lifetime: an escape, or a quote after one character.
fn is_character(rest: &str) -> bool {
    let mut characters = rest.chars();
    characters.next() == Some('\'')
        && match characters.next() {
            Some('\\') => true,
            Some(_) => characters.next() == Some('\''),
            None => false,
        }
}

pub(super) fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

/// Whether a line has these words, and not as a part of longer ones.
pub(super) fn has_words(line: &str, words: &str) -> bool {
    line.match_indices(words).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + words.len()..].chars().next();
        ![before, after].into_iter().flatten().any(is_word)
    })
}

/// Lines with their numbers, counted from 1.
pub(super) fn numbered(text: &str) -> impl Iterator<Item = (usize, &str)> {
    (1..).zip(text.split('\n'))
}

/// How many lines come before the tests at the foot of the file; all of them when none do.
///
/// `code` is the view without comments. A file that is all tests has no such lines.
pub(super) fn lines_before_tests(path: &str, code: &str) -> usize {
    if path.contains("/tests/") || path.contains("/benches/") || path.ends_with("/tests.rs") {
        return 0;
    }
    let lines: Vec<&str> = code.lines().collect();
    let foot = lines.windows(2).position(|pair| {
        pair[0].trim() == "#[cfg(test)]" && pair[1].contains("mod ") && pair[1].contains('{')
    });
    foot.unwrap_or(lines.len())
}

/// What must not stay in code, and every module's story at its head.
pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    let files = tree.rust();
    files
        .flat_map(|file| left_behind(&file.path, &file.text).chain(head(&file.path, &file.text)))
        .collect()
}

/// Code that says "not yet": it compiles, and fails where it runs or hides a failure.
fn left_behind(path: &str, text: &str) -> impl Iterator<Item = Finding> {
    const REMAINS: [(&str, &str); 4] = [
        ("todo!", "write it, or return an error that says what is missing"),
        ("unimplemented!", "write it, or return an error that says what is missing"),
        ("dbg!", "remove it"),
        ("#[ignore", "a test that does not run proves nothing: make it quick, or remove it"),
    ];
    let code = Views::of(text).code;
    let mut findings = Vec::new();
    for (number, line) in numbered(&code) {
        for (remains, advice) in REMAINS {
            let is_there = line.match_indices(remains).any(|(at, _)| {
                remains.starts_with('#') || !line[..at].chars().next_back().is_some_and(is_word)
            });
            if is_there {
                findings.push(Finding::at(path, number, format!("`{remains}` in code"), advice));
            }
        }
    }
    findings.into_iter()
}

/// The finding for a module under `src` that does not tell its story first.
fn head(path: &str, text: &str) -> Option<Finding> {
    let is_module = path.contains("src/") && !path.ends_with("/tests.rs");
    let advice = "begin with `//!`: what this module is and how it works";
    (is_module && !path.contains("/tests/") && !text.starts_with("//!"))
        .then(|| Finding::at(path, 1, "no module head", advice))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_view_has_no_comments_and_no_literals() {
        let text = "let a = \"x // \\\" y\"; // tail\n/* one /* two */ */ b";
        let views = Views::of(text);
        assert_eq!(views.code.split_whitespace().collect::<Vec<_>>(), ["let", "a", "=", ";", "b"]);
        let comments: Vec<&str> = views.comments.split_whitespace().collect();
        assert_eq!(comments, ["//", "tail", "/*", "one", "/*", "two", "*/", "*/"]);
    }

    #[test]
    fn raw_strings_end_at_their_own_hashes() {
        let views = Views::of("f(r#\"a \" // b\"#, br\"\\\", r#type, var\"c\") + d");
        assert_eq!(views.code.replace(' ', ""), "f(,b,r#type,var)+d");
    }

    #[test]
    fn a_lifetime_is_code_and_a_character_is_not() {
        let views = Views::of("fn f<'a>(x: &'a str) { g('\"', '\\'', '{', b'x'); h() }");
        assert_eq!(views.code.replace(' ', ""), "fnf<'a>(x:&'astr){g(,,,b);h()}");
    }

    #[test]
    fn views_keep_lines_and_columns() {
        let text = "a /* é\n */ b \"ü\nx\" c";
        let views = Views::of(text);
        for view in [&views.code, &views.comments] {
            let shape = |s: &str| s.lines().map(|l| l.chars().count()).collect::<Vec<_>>();
            assert_eq!(shape(view), shape(text));
        }
    }

    #[test]
    fn the_tests_at_the_foot_are_found() {
        let text = "fn a() {}\n\n#[cfg(test)]\nmod tests {\n}\n";
        assert_eq!(lines_before_tests("crates/x/src/a.rs", text), 2);
        assert_eq!(lines_before_tests("crates/x/src/a.rs", "#[cfg(test)]\nmod tests;\n"), 2);
        assert_eq!(lines_before_tests("crates/x/tests/it/main.rs", text), 0);
    }

    #[test]
    fn code_that_is_not_finished_is_found_and_names_that_contain_it_are_not() {
        let lines = |text| left_behind("a.rs", text).map(|f| f.line).collect::<Vec<_>>();
        assert_eq!(lines("//! x\nfn f() { todo!() }"), [Some(2)]);
        assert_eq!(lines("#[ignore = \"slow\"]\nfn f() {}\n dbg!(x);"), [Some(1), Some(3)]);
        assert!(lines("my_dbg!(x); // dbg!(x)\n\"todo!()\"").is_empty());
    }

    #[test]
    fn a_module_begins_with_its_story() {
        assert!(head("crates/x/src/lib.rs", "use std::fmt;").is_some());
        assert!(head("crates/x/src/lib.rs", "//! X.\n").is_none());
        assert!(head("crates/x/src/a/tests.rs", "use super::*;").is_none());
        assert!(head("crates/x/tests/it/main.rs", "mod a;").is_none());
    }
}
