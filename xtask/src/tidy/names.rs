//! Names that a folder may not use: the walls between crates that Cargo does not see.
//!
//! Paths are read from the code with their `use` trees unfolded: `use tokio::{net, time as t}`
//! names `tokio::net` and `tokio::time`.

use super::Tree;
use super::finding::Finding;
use super::source::{Views, is_word};

/// Names in source files of crates, and who may use them.
const RULES: [Rule; 9] = [
    outside_net("tokio::net", SOCKETS),
    outside_net("tokio::spawn", "spawn through net::clock, so that a world can run it"),
    outside_net("tokio::task::spawn", "spawn through net::clock, so that a world can run it"),
    outside_net("tokio::time", "it ticks in milliseconds: wait through net::clock"),
    Rule { in_tests: false, ..outside_net("std::net::Tcp*", SOCKETS) },
    Rule { in_tests: false, ..outside_net("std::net::UdpSocket", SOCKETS) },
    // The module itself, or all of it, would hide the two lines above.
    outside_net("std::net$", "name the address types one by one: `use std::net::SocketAddr`"),
    outside_net("std::thread::sleep", "wait through net::clock, or return when to be woken"),
    Rule {
        forbids: "net",
        holds_in: Some(&["counters", "perf", "report", "server", "trace", "wire"]),
        in_tests: true,
        advice: "this crate knows neither sockets nor the clock: take what you need as arguments",
    },
];

struct Rule {
    /// A path and all below it; `*` at the end continues the last word, `$` ends the path there.
    forbids: &'static str,
    /// The crates where it holds; `None`: all but net.
    holds_in: Option<&'static [&'static str]>,
    /// Whether it holds in integration tests too, which play peers of all sorts.
    in_tests: bool,
    /// What to do instead.
    advice: &'static str,
}

const SOCKETS: &str = "sockets live in net: use net's transports";

const fn outside_net(forbids: &'static str, advice: &'static str) -> Rule {
    Rule { forbids, holds_in: None, in_tests: true, advice }
}

pub(super) fn check(tree: &Tree) -> Vec<Finding> {
    tree.rust().flat_map(|file| check_file(&file.path, &file.text)).collect()
}

fn check_file(path: &str, text: &str) -> Vec<Finding> {
    let Some((folder, rest)) = path.strip_prefix("crates/").and_then(|rest| rest.split_once('/'))
    else {
        return Vec::new();
    };
    let is_test = rest.starts_with("tests/");
    let rules: Vec<&Rule> = RULES.iter().filter(|rule| rule.holds(folder, is_test)).collect();
    let code = Views::of(text).code;
    let uses = paths(&code).into_iter();
    uses.filter_map(|used| {
        let rule = rules.iter().find(|rule| rule.matches(&used.path))?;
        let what = format!("`{}` may not be named in crates/{folder}", used.path);
        Some(Finding::at(path, used.line, what, rule.advice))
    })
    .collect()
}

impl Rule {
    fn holds(&self, folder: &str, is_test: bool) -> bool {
        let holds = match self.holds_in {
            Some(folders) => folders.contains(&folder),
            None => folder != "net",
        };
        holds && (self.in_tests || !is_test)
    }

    fn matches(&self, path: &str) -> bool {
        if let Some(stem) = self.forbids.strip_suffix('*') {
            return path.starts_with(stem);
        }
        if let Some(exact) = self.forbids.strip_suffix('$') {
            return path == exact || path.strip_prefix(exact) == Some("::*");
        }
        path.strip_prefix(self.forbids)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
    }
}

/// A path of at least two words, or a whole `use` of one, as it stands in the code.
#[derive(Debug, Eq, PartialEq)]
struct Path {
    path: String,
    line: usize,
}

/// Every path in the code, with `use` trees unfolded.
fn paths(code: &str) -> Vec<Path> {
    let words = words(code);
    let mut found = Vec::new();
    let mut at = 0;
    while at < words.len() {
        at = unfold(&words, at, "", &mut found);
    }
    found
}

/// Reads one path at `at`, with `prefix` before it; returns where reading goes on.
///
/// In braces after `::` each part between commas is a path with the same prefix.
fn unfold(words: &[(&str, usize)], at: usize, prefix: &str, found: &mut Vec<Path>) -> usize {
    let mut path = prefix.to_owned();
    let mut at = at;
    let line = words[at].1;
    loop {
        match words.get(at) {
            Some(("{", _)) if path.ends_with("::") => {
                at += 1;
                while let Some((word, _)) = words.get(at) {
                    match *word {
                        "}" => return at + 1,
                        "," => at += 1,
                        _ => at = unfold(words, at, &path, found),
                    }
                }
                return at;
            }
            Some((word, _)) if *word == "*" || word.starts_with(is_word) => {
                match (*word, path.strip_suffix("::")) {
                    // `use std::net::{self}` names `std::net`.
                    ("self", Some(parent)) => path = parent.to_owned(),
                    _ => path.push_str(word),
                }
                at += 1;
            }
            _ => at += 1,
        }
        match words.get(at) {
            Some(("::", _)) if !path.is_empty() => {
                path.push_str("::");
                at += 1;
            }
            _ => break,
        }
    }
    let path = path.trim_end_matches("::");
    if path.contains("::") {
        found.push(Path { path: path.to_owned(), line });
    }
    // `as name` is a new name, not a use of one.
    match words.get(at) {
        Some(("as", _)) if !prefix.is_empty() => at + 2,
        _ => at,
    }
}

/// The code as words, `::`, and single other characters, each with its line.
fn words(code: &str) -> Vec<(&str, usize)> {
    let mut words = Vec::new();
    let mut line = 1;
    let mut rest = code;
    while let Some(first) = rest.chars().next() {
        let length = if is_word(first) {
            rest.find(|c| !is_word(c)).unwrap_or(rest.len())
        } else if rest.starts_with("::") {
            2
        } else {
            first.len_utf8()
        };
        let (word, after) = rest.split_at(length);
        if first == '\n' {
            line += 1;
        }
        if !first.is_whitespace() {
            words.push((word, line));
        }
        rest = after;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(path: &str, text: &str) -> Vec<String> {
        let findings = check_file(path, text);
        findings.into_iter().map(|finding| finding.what).collect()
    }

    #[test]
    fn use_trees_unfold_into_whole_paths() {
        let code = "use std::{fmt, net::{self, IpAddr, Tcp as T}};\nlet x = a::b::<C>(d::E::F);";
        let found: Vec<String> = paths(code).into_iter().map(|found| found.path).collect();
        let expected =
            ["std::fmt", "std::net", "std::net::IpAddr", "std::net::Tcp", "a::b", "d::E::F"];
        assert_eq!(found, expected);
        assert_eq!(paths(code).last().map(|found| found.line), Some(2));
    }

    #[test]
    fn only_net_may_name_sockets_time_and_spawn() {
        let text = "use tokio::{net::TcpStream, sync::mpsc, time as t};\n\
                    fn f() { tokio::spawn(g()); std::thread::sleep(x); tokio::task::spawn_blocking(h) }";
        assert_eq!(named("crates/client/src/a.rs", text).len(), 4);
        assert!(named("crates/net/src/a.rs", text).is_empty());
        assert!(named("xtask/src/main.rs", text).is_empty());
    }

    #[test]
    fn address_types_are_free_and_sockets_are_not() {
        let path = "crates/server/src/a.rs";
        assert!(named(path, "use std::net::{IpAddr, SocketAddr};").is_empty());
        assert_eq!(named(path, "use std::net::{IpAddr, TcpListener};").len(), 1);
        assert_eq!(named(path, "use std::net;").len(), 1);
        assert_eq!(named(path, "use std::net::*;").len(), 1);
        assert_eq!(named(path, "let s = std::net::UdpSocket::bind(a);").len(), 1);
    }

    #[test]
    fn an_integration_test_may_play_a_peer_but_not_sleep() {
        let path = "crates/cli/tests/it/peer.rs";
        assert!(named(path, "use std::net::{TcpListener, TcpStream};").is_empty());
        assert_eq!(named(path, "std::thread::sleep(x);").len(), 1);
    }

    #[test]
    fn the_engine_does_not_know_the_network() {
        let text = "use net::clock;\nuse crate::net::x;";
        let what = "`net::clock` may not be named in crates/server";
        assert_eq!(named("crates/server/src/a.rs", text), [what]);
        assert!(named("crates/client/src/a.rs", text).is_empty());
    }

    #[test]
    fn comments_and_strings_name_nothing() {
        let text = "//! tokio::time is banned\nlet x = \"tokio::spawn\"; /* std::net::TcpStream */";
        assert!(named("crates/load/src/a.rs", text).is_empty());
    }
}
