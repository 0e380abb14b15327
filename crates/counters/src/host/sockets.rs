//! `/proc/net/sockstat` and `sockstat6`: sockets in use, and pages that they hold.

use std::collections::BTreeMap;

use super::nothing;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// Numbers by protocol and name (`TCP`, `mem`); they are states, not counters.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Sockets(BTreeMap<(String, String), u64>);

impl Sockets {
    pub fn of(&self, protocol: &str, name: &str) -> Option<u64> {
        self.0.get(&(protocol.to_owned(), name.to_owned())).copied()
    }
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is no protocol with names and numbers, or no line.
pub fn read(text: &[u8]) -> Result<Sockets, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Sockets::default();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let Some(tag) = line.next() else { continue };
        let Some(protocol) = tag.text.strip_suffix(':') else {
            return Err(tag.unexpected("a protocol and a colon"));
        };
        while let Some(name) = line.next() {
            let value = line.number()?;
            all.0.insert((protocol.to_owned(), name.text.to_owned()), value);
        }
    }
    if all.0.is_empty() { Err(nothing()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_stand_in_pairs() {
        let text = "sockets: used 290\nTCP: inuse 36 orphan 0 tw 3 alloc 38 mem 7\nUDP: inuse 1\n";
        let sockets = read(text.as_bytes()).unwrap();
        assert_eq!(sockets.of("TCP", "mem"), Some(7));
        assert_eq!((sockets.of("sockets", "used"), sockets.of("UDP", "mem")), (Some(290), None));
        assert!(read(b"TCP: inuse").unwrap_err().to_string().contains("line's end"));
        assert!(read(b"hello 1\n").is_err() && read(b"\n").is_err());
    }
}
