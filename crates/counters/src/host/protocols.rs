//! `/proc/net/snmp` and `/proc/net/netstat`: a line of names, then one of numbers, both with the
//! protocol's name. Columns differ between kernels, so they are found by name.

use std::collections::BTreeMap;

use super::nothing;
use crate::difference;
use crate::fields::Line;
use crate::problem::{Found, Problem, Wrong};
use crate::rpc::{NUMBERS_MAX, bounded};

/// Numbers by protocol and name (`Tcp`, `RetransSegs`).
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Protocols(BTreeMap<(String, String), u64>);

impl Protocols {
    pub fn of(&self, protocol: &str, name: &str) -> Option<u64> {
        self.0.get(&(protocol.to_owned(), name.to_owned())).copied()
    }

    /// What came since `before`.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let since = |(name, now): (&(String, String), &u64)| {
            (name.clone(), difference(*now, before.0.get(name).copied().unwrap_or(0)))
        };
        Self(self.0.iter().map(since).collect())
    }

    /// Puts those of another file beside them.
    pub fn join(&mut self, other: Self) {
        self.0.extend(other.0);
    }
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is broken, or none that is known.
pub fn read(text: &[u8]) -> Result<Protocols, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Protocols::default();
    let mut names: Option<(&str, Vec<&str>)> = None;
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let Some(tag) = line.next() else { continue };
        let Some(protocol) = tag.text.strip_suffix(':') else {
            return Err(tag.unexpected("a protocol and a colon"));
        };
        match names.take().filter(|(of, _)| *of == protocol) {
            None => {
                if let Some(word) = line.words().nth(NUMBERS_MAX) {
                    let wrong = Wrong::TooMany { what: "names in a line", max: NUMBERS_MAX };
                    return Err(word.wrong(wrong));
                }
                names = Some((protocol, line.words().map(|word| word.text).collect()));
            }
            Some((_, names)) => {
                let numbers = line.numbers(protocol, 0, NUMBERS_MAX)?;
                if numbers.len() != names.len() {
                    let (expected, found) = (names.len(), numbers.len());
                    let Found::Word(what) = Found::word(protocol) else { continue };
                    return Err(tag.wrong(Wrong::TooFew { what, expected, found }));
                }
                for (name, number) in names.into_iter().zip(numbers) {
                    all.0.insert((protocol.to_owned(), name.to_owned()), number);
                }
            }
        }
    }
    if all.0.is_empty() { Err(nothing()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "Tcp: RtoMin MaxConn OutSegs RetransSegs\nTcp: 200 -1 1000 7\n\
        Udp: InDatagrams RcvbufErrors\nUdp: 5 2\n";

    #[test]
    fn numbers_are_found_by_their_names() {
        let all = read(TEXT.as_bytes()).unwrap();
        assert_eq!(all.of("Tcp", "RetransSegs"), Some(7));
        assert_eq!((all.of("Udp", "RcvbufErrors"), all.of("Udp", "OutSegs")), (Some(2), None));
        let later = read(TEXT.replace("1000 7", "1500 17").as_bytes()).unwrap();
        assert_eq!(later.since(&all).of("Tcp", "RetransSegs"), Some(10));
    }

    #[test]
    fn what_is_broken_has_its_place() {
        let problem = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
        assert!(problem("Tcp: A B\nTcp: 1\n").contains("Tcp has 1 numbers; at least 2"));
        assert!(problem("hello 1\n").contains("a protocol and a colon"));
        assert!(problem("Tcp: A\n").contains("no NFS counters"));
    }
}
