//! What the file should contain: bytes in memory, plainly right.

use fastrand::Rng;

use super::fault::Fault;

/// Bytes of a difference that are shown.
const SHOWN_BYTES: usize = 16;

#[derive(Debug, Default)]
pub(super) struct Model {
    content: Vec<u8>,
}

impl Model {
    pub(super) fn size(&self) -> u64 {
        self.content.len() as u64
    }

    pub(super) fn truncate(&mut self, size: u64) {
        self.content.resize(index(size), 0);
    }

    pub(super) fn write(&mut self, offset: u64, data: &[u8]) {
        let (from, to) = (index(offset), index(offset) + data.len());
        if self.content.len() < to {
            self.content.resize(to, 0);
        }
        self.content[from..to].copy_from_slice(data);
    }

    /// Compares `got`, read at `offset` with `len` requested, all of it within the file.
    pub(super) fn check(&self, offset: u64, len: u64, got: &[u8]) -> Result<(), Fault> {
        let expected = &self.content[index(offset)..index(offset + len)];
        let first = expected.iter().zip(got).position(|(expected, got)| expected != got);
        if let Some(first) = first {
            let wrong = expected.iter().zip(got).filter(|(expected, got)| expected != got).count();
            let shown = |bytes: &[u8]| bytes[first..].iter().copied().take(SHOWN_BYTES).collect();
            return Err(Fault::Content {
                offset: offset + first as u64,
                expected: shown(expected),
                got: shown(got),
                wrong: wrong as u64,
                read: got.len() as u64,
            });
        }
        match got.len() as u64 {
            got if got == len => Ok(()),
            got => Err(Fault::Short { offset, expected: len, got }),
        }
    }
}

/// Bytes for operation `number` to write: no two operations write the same.
pub(super) fn data(seed: u64, number: u64, len: u32) -> Vec<u8> {
    let mut data = vec![0; len as usize];
    Rng::with_seed(seed.rotate_left(32) ^ number).fill(&mut data);
    data
}

/// Offsets stay below [`super::options::FILE_BYTES_MAX`], which fits everywhere.
fn index(offset: u64) -> usize {
    usize::try_from(offset).unwrap_or(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hole_and_what_truncation_adds_are_zeros() {
        let mut model = Model::default();
        model.write(3, b"ab");
        model.truncate(4);
        model.truncate(6);
        assert!(model.check(0, 6, b"\0\0\0a\0\0").is_ok());
        assert_eq!(model.size(), 6);
    }

    #[test]
    fn a_wrong_byte_is_reported_with_its_place_and_a_short_read_with_its_length() {
        let mut model = Model::default();
        model.write(0, b"abcdef");
        let wrong = model.check(1, 5, b"bXdeX").unwrap_err();
        let text = wrong.to_string();
        assert!(text.contains("offset 2") && text.contains("2 of 5 bytes"), "{text}");
        let short = model.check(0, 6, b"abc").unwrap_err();
        assert!(matches!(short, Fault::Short { offset: 0, expected: 6, got: 3 }));
    }
}
