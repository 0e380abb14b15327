//! The calls to a server, one file for each kind of call.

pub(crate) mod bulk;
pub(crate) mod commit;
pub(crate) mod listing;
pub(crate) mod names;
pub(crate) mod small;

/// Bytes that show their place: the word at a multiple of 8 is made of its offset.
pub(crate) fn pattern(offset: u64, len: usize) -> Vec<u8> {
    let words = (offset / 8)..;
    words.take(len.div_ceil(8)).flat_map(word).take(len).collect()
}

/// Whether `data` is the [`pattern`] at `offset`; whole words, and no memory of its own.
pub(crate) fn is_pattern(offset: u64, data: &[u8]) -> bool {
    let words = data.chunks_exact(8);
    words.remainder().is_empty() && words.zip(offset / 8..).all(|(got, index)| got == word(index))
}

/// The word number `index` of the pattern.
pub(crate) fn word(index: u64) -> [u8; 8] {
    (index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_part_of_the_pattern_is_the_pattern_at_its_offset() {
        let whole = pattern(0, 4096);
        assert_eq!(pattern(512, 1024), whole[512..1536]);
        assert_ne!(whole[..8], whole[8..16]);
        assert!(is_pattern(512, &whole[512..1536]));
        assert!(!is_pattern(512, &whole[520..1536]));
    }
}
