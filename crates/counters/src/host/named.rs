//! `/proc/meminfo`, `/proc/vmstat`, `/proc/net/snmp6`: a name and a number on each line.

use std::collections::BTreeMap;

use super::nothing;
use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// Numbers by their names, without the colon of `meminfo`.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Named(BTreeMap<String, u64>);

impl Named {
    pub fn of(&self, name: &str) -> Option<u64> {
        self.0.get(name).copied()
    }

    /// What came since `before`, of names that are counters.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let since = |(name, now): (&String, &u64)| {
            (name.clone(), difference(*now, before.of(name).unwrap_or(0)))
        };
        Self(self.0.iter().map(since).collect())
    }

    /// As in `MemTotal: 123 kB`.
    pub fn bytes_of(&self, name: &str) -> Option<u64> {
        self.of(name).map(|kib| kib.saturating_mul(1024))
    }
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is a name with something else than a number, or no line.
pub fn read(text: &[u8]) -> Result<Named, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut named = Named::default();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        let Some(name) = line.next() else { continue };
        let value = line.number()?;
        named.0.insert(name.text.trim_end_matches(':').to_owned(), value);
    }
    if named.0.is_empty() { Err(nothing()) } else { Ok(named) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_are_read_with_and_without_colons() {
        let named = read(b"MemTotal:       16318668 kB\nDirty: 12 kB\nnr_dirty 7\n").unwrap();
        assert_eq!(named.bytes_of("Dirty"), Some(12_288));
        assert_eq!((named.of("nr_dirty"), named.of("Writeback")), (Some(7), None));
        assert!(read(b"Dirty: much").unwrap_err().to_string().contains("column 8: \"much\""));
        assert!(read(b"\n\n").is_err());
    }
}
