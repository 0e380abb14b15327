//! `/proc/net/softnet_stat`: a line of hexadecimal numbers for each processor.

use super::nothing;
use crate::difference;
use crate::fields::Line;
use crate::problem::Problem;
use crate::rpc::bounded;

/// Of one processor, or of all.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Softnet {
    pub processed: u64,
    /// The backlog was full (`net.core.netdev_max_backlog`).
    pub dropped: u64,
    /// There was more to do than one turn allows (`net.core.netdev_budget`).
    pub squeezed: u64,
}

impl Softnet {
    /// Of all processors.
    pub fn sum(all: &[Self]) -> Self {
        all.iter().fold(Self::default(), |sum, one| Self {
            processed: sum.processed.saturating_add(one.processed),
            dropped: sum.dropped.saturating_add(one.dropped),
            squeezed: sum.squeezed.saturating_add(one.squeezed),
        })
    }

    /// What came since `before`. These are 32 bits.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            processed: difference(self.processed, before.processed),
            dropped: difference(self.dropped, before.dropped),
            squeezed: difference(self.squeezed, before.squeezed),
        }
    }
}

/// Reads the file's content.
///
/// # Errors
/// The first line that is not of hexadecimal numbers, or none.
pub fn read(text: &[u8]) -> Result<Vec<Softnet>, Problem> {
    let text = String::from_utf8_lossy(text);
    let mut all = Vec::new();
    for mut line in Line::all(&text) {
        bounded(&line)?;
        if line.trimmed().is_empty() {
            continue;
        }
        let mut number = || {
            let word = line.word();
            u64::from_str_radix(word.text, 16).map_err(|_| word.unexpected("a hexadecimal number"))
        };
        all.push(Softnet { processed: number()?, dropped: number()?, squeezed: number()? });
    }
    if all.is_empty() { Err(nothing()) } else { Ok(all) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_processor_has_a_line() {
        let all =
            read(b"0000ff00 00000001 0000000a 00000000\n00000100 00000000 00000000\n").unwrap();
        let sum = Softnet::sum(&all);
        assert_eq!(sum, Softnet { processed: 0x1_0000, dropped: 1, squeezed: 10 });
        assert_eq!(sum.since(&all[0]).processed, 0x100);
        assert!(read(b"zz 1 2").unwrap_err().to_string().contains("a hexadecimal number"));
        assert!(read(b"").is_err());
    }
}
