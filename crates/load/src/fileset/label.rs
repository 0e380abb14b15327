//! Names of a set: eight letters and a number, inline, so that an operation allocates nothing.

use std::fmt::{self, Write};

/// Letters, and the digits of the largest number.
const LEN_MAX: usize = 8 + 10;

/// See the module's head.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct Label {
    len: u8,
    bytes: [u8; LEN_MAX],
}

impl Label {
    /// `prefix` and at least five digits.
    pub(super) fn new(prefix: &[u8; 8], number: u32) -> Self {
        let mut label = Self { len: 8, bytes: [0; LEN_MAX] };
        label.bytes[..8].copy_from_slice(prefix);
        // Ten digits hold every number.
        write!(label, "{number:05}").ok();
        label
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Write for Label {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let begin = usize::from(self.len);
        let place = self.bytes.get_mut(begin..begin + text.len()).ok_or(fmt::Error)?;
        place.copy_from_slice(text.as_bytes());
        self.len += u8::try_from(text.len()).map_err(|_| fmt::Error)?;
        Ok(())
    }
}

impl fmt::Debug for Label {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", String::from_utf8_lossy(self.as_bytes()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_letters_and_digits_of_any_number() {
        assert_eq!(Label::new(b"dir_ent.", 7).as_bytes(), b"dir_ent.00007");
        assert_eq!(Label::new(b"dir_ent.", u32::MAX).as_bytes(), b"dir_ent.4294967295");
    }
}
