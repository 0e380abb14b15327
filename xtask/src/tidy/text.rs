//! The shape of text: size, blanks, width, marks that a merge leaves.

use super::Tree;
use super::finding::Finding;
use super::source::{Views, lines_before_tests, numbered};
use super::tree::File;

/// Larger files make every clone slower for ever; measurements that need more belong elsewhere.
const FILE_BYTES_MAX: usize = 512 * 1024;
/// As in rustfmt.toml, which leaves comments and long literals alone.
const RUST_COLUMNS_MAX: usize = 100;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.files().iter().flat_map(check_file).collect()
}

fn check_file(file: &File) -> Vec<Finding> {
    let mut findings = Vec::new();
    if file.bytes > FILE_BYTES_MAX {
        let what = format!("{} bytes; at most {FILE_BYTES_MAX}", file.bytes);
        findings.push(Finding::about(&file.path, what, "make it smaller, or generate it"));
    }
    findings.extend(merge_marks(&file.path, &file.text));
    if is_written_by_hand(&file.path) {
        findings.extend(blanks(&file.path, &file.text));
    }
    if file.path.ends_with(".rs") {
        findings.extend(wide_lines(&file.path, &file.text));
    }
    findings
}

fn is_written_by_hand(path: &str) -> bool {
    let suffixes = [".rs", ".md", ".toml", ".sh"];
    path.starts_with(".ci/") || suffixes.iter().any(|suffix| path.ends_with(suffix))
}

fn merge_marks(path: &str, text: &str) -> Vec<Finding> {
    // Seven equal signs alone may underline a heading; the marks around them are enough.
    let marks = ["<<<<<<< ", "||||||| ", ">>>>>>> "];
    numbered(text)
        .filter(|(_, line)| marks.iter().any(|mark| line.starts_with(mark)))
        .map(|(number, _)| Finding::at(path, number, "a mark of a merge", "finish the merge"))
        .collect()
}

fn blanks(path: &str, text: &str) -> Vec<Finding> {
    let mut findings = Vec::new();
    for (number, line) in numbered(text) {
        if line.contains('\t') {
            findings.push(Finding::at(path, number, "a tab", "use spaces, `\\t` in a literal"));
        }
        if line.ends_with(char::is_whitespace) {
            findings.push(Finding::at(path, number, "a blank at the end of the line", "remove it"));
        }
    }
    if !text.is_empty() && !text.ends_with('\n') {
        let last = text.lines().count();
        findings.push(Finding::at(path, last, "the last line does not end", "end it"));
    }
    findings
}

/// Lines that are too wide, but for addresses and, in tests, literals: both may not break.
fn wide_lines(path: &str, text: &str) -> Vec<Finding> {
    let code = Views::of(text).code;
    let before_tests = lines_before_tests(path, &code);
    let comments = Views::of(text).comments;
    let lines = numbered(text).zip(code.split('\n')).zip(comments.split('\n'));
    let too_wide = lines.filter(|(((number, line), code), comments)| {
        let has_literal = || {
            let known = code.chars().zip(comments.chars());
            let blank = known.map(|(c, d)| c == ' ' && d == ' ');
            line.chars().zip(blank).any(|(c, blank)| blank && c != ' ')
        };
        line.chars().count() > RUST_COLUMNS_MAX
            && !line.contains("://")
            && !(*number > before_tests && has_literal())
    });
    too_wide
        .map(|(((number, line), _), _)| {
            let columns = line.chars().count();
            let what = format!("{columns} columns; at most {RUST_COLUMNS_MAX}");
            Finding::at(path, number, what, "break the line")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(findings: Vec<Finding>) -> Vec<Option<usize>> {
        findings.into_iter().map(|finding| finding.line).collect()
    }

    #[test]
    fn tabs_and_blanks_at_the_end_are_found() {
        assert_eq!(lines(blanks("a.md", "a\n\tb\nc \nd\r\n")), [Some(2), Some(3), Some(4)]);
        assert_eq!(lines(blanks("a.md", "a\nb")), [Some(2)]);
        assert!(blanks("a.md", "a\n  b\n").is_empty());
    }

    #[test]
    fn marks_of_a_merge_are_found_and_underlined_headings_are_not() {
        let text = "Title\n=======\n<<<<<<< ours\n>>>>>>> theirs\n";
        assert_eq!(lines(merge_marks("a.md", text)), [Some(3), Some(4)]);
    }

    #[test]
    fn wide_lines_are_found_but_for_addresses_and_literals_in_tests() {
        let wide = "x".repeat(RUST_COLUMNS_MAX);
        let text = format!(
            "// {wide}\nf(\"{wide}\");\n// https://{wide}\n#[cfg(test)]\nmod tests {{\n\
             f(\"{wide}\");\n// {wide}\n}}\n"
        );
        assert_eq!(lines(wide_lines("crates/x/src/a.rs", &text)), [Some(1), Some(2), Some(7)]);
        assert!(wide_lines("a.rs", &"é".repeat(RUST_COLUMNS_MAX)).is_empty());
    }

    #[test]
    fn a_large_file_is_found_whatever_it_holds() {
        let file = |bytes| File { path: "trace.pcap".to_owned(), bytes, text: String::new() };
        assert!(check_file(&file(FILE_BYTES_MAX)).is_empty());
        assert_eq!(check_file(&file(FILE_BYTES_MAX + 1)).len(), 1);
    }
}
