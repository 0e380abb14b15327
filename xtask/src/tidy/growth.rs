//! A ratchet on growth: long functions and long files are sometimes right, and a warning; what no
//! screen shows is never.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::Tree;
use super::finding::Finding;
use super::source::{Views, is_word, lines_before_tests};

/// More is a warning.
const FUNCTION_LINES_USUAL: usize = 70;
/// More is an error.
const FUNCTION_LINES_MAX: usize = 90;
const FILE_LINES_MAX: usize = 800;

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|file| check_file(&file.path, &file.text)).collect()
}

/// A table of how long the functions of each crate are, tests left out, and its longest ones.
pub(super) fn table(tree: &Tree) -> String {
    let mut crates = BTreeMap::<&str, Vec<(usize, String)>>::new();
    for file in tree.rust() {
        let code = Views::of(&file.text).code;
        let before_tests = lines_before_tests(&file.path, &code);
        let crate_name = file.path.trim_start_matches("crates/").split('/').next().unwrap_or("");
        let functions = functions(&code).into_iter().filter(|f| f.line <= before_tests);
        let named = functions.map(|f| (f.lines, format!("{}:{} {}", file.path, f.line, f.name)));
        crates.entry(crate_name).or_default().extend(named);
    }
    let mut table = format!("{:<10} functions median  p90  p99  max\n", "crate");
    for (name, mut functions) in crates.into_iter().filter(|(_, functions)| !functions.is_empty()) {
        functions.sort_unstable();
        let count = functions.len();
        let lines_at = |percent: usize| functions[(count * percent).div_ceil(100) - 1].0;
        let [p50, p90, p99, max] = [50, 90, 99, 100].map(lines_at);
        let longest = &functions[count - 1].1;
        let _ =
            writeln!(table, "{name:<10} {count:>9} {p50:>6} {p90:>4} {p99:>4} {max:>4}  {longest}");
    }
    table
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let code = Views::of(text).code;
    let before_tests = lines_before_tests(path, &code);
    let mut findings = Vec::new();
    if before_tests > FILE_LINES_MAX {
        let what = format!("{before_tests} lines before the tests, more than {FILE_LINES_MAX}");
        findings.push(Finding::about(path, what, "is this one idea? split it by ideas").warning());
    }
    for function in functions(&code) {
        let Function { name, line, lines } = function;
        if lines <= FUNCTION_LINES_USUAL || line > before_tests {
            continue;
        }
        let finding = |max| {
            let what = format!("`{name}` has {lines} lines, more than {max}");
            Finding::at(path, line, what, "let it decide, and helpers compute")
        };
        findings.push(match lines > FUNCTION_LINES_MAX {
            true => finding(FUNCTION_LINES_MAX),
            false => finding(FUNCTION_LINES_USUAL).warning(),
        });
    }
    findings
}

struct Function<'a> {
    name: &'a str,
    line: usize,
    lines: usize,
}

/// Every function with a body, from `fn` to its closing brace.
fn functions(code: &str) -> Vec<Function<'_>> {
    let starts = code
        .match_indices("fn ")
        .filter(|(at, _)| !code[..*at].chars().next_back().is_some_and(is_word));
    starts
        .filter_map(|(at, _)| {
            let rest = &code[at + 3..];
            let name = &rest[..rest.find(|c| !is_word(c)).unwrap_or(rest.len())];
            let length = body_end(rest)?;
            Some(Function {
                name,
                line: 1 + code[..at].matches('\n').count(),
                lines: 1 + rest[..length].matches('\n').count(),
            })
        })
        .filter(|function| !function.name.is_empty())
        .collect()
}

/// Where the body closes; `None` for a declaration, which ends with `;` before any brace.
fn body_end(rest: &str) -> Option<usize> {
    let mut braces = 0_usize;
    let mut brackets = 0_usize; // `;` in `[u8; 4]` ends nothing
    for (at, character) in rest.char_indices() {
        match character {
            '[' => brackets += 1,
            ']' => brackets = brackets.saturating_sub(1),
            ';' if braces == 0 && brackets == 0 => return None,
            '{' => braces += 1,
            '}' if braces == 1 => return Some(at),
            '}' => braces = braces.checked_sub(1)?,
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::finding::Weight;

    #[test]
    fn functions_are_measured_to_their_closing_brace() {
        let code =
            "trait T { fn declared(x: [u8; 4]); }\nfn one() {}\nfn three(f: fn(u8)) {\n  { }\n}\n";
        let measured: Vec<_> = functions(code).iter().map(|f| (f.name, f.line, f.lines)).collect();
        assert_eq!(measured, [("one", 2, 1), ("three", 3, 3)]);
    }

    #[test]
    fn a_long_function_and_a_long_file_are_warnings_and_a_longer_function_an_error() {
        let of_lines = |lines: usize| format!("fn long() {{\n{}}}\n", "x();\n".repeat(lines - 2));
        let long = of_lines(FUNCTION_LINES_USUAL + 1);
        let weights = |text: &str| -> Vec<Weight> {
            let findings = check_file("crates/x/src/a.rs", text);
            findings.into_iter().map(|finding| finding.weight).collect()
        };
        assert!(weights(&of_lines(FUNCTION_LINES_USUAL)).is_empty());
        assert_eq!(weights(&long), [Weight::Warning]);
        assert_eq!(weights(&of_lines(FUNCTION_LINES_MAX)), [Weight::Warning]);
        assert_eq!(weights(&of_lines(FUNCTION_LINES_MAX + 1)), [Weight::Error]);
        let in_tests = format!("#[cfg(test)]\nmod tests {{\n{long}}}\n");
        assert!(check_file("crates/x/src/a.rs", &in_tests).is_empty());
        let lines = "\n".repeat(FILE_LINES_MAX + 1);
        assert_eq!(check_file("crates/x/src/a.rs", &lines).len(), 1);
    }
}
