//! A cursor over one received message. Every step checks what is left before it takes.

use super::{Decode, DecodeError, DecodeErrorKind, padding};

/// Where decoding stands. Cheap to clone: a clone looks ahead.
#[derive(Clone, Debug)]
pub struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Offset of the next byte from the start of the message.
    pub const fn at(&self) -> usize {
        self.at
    }

    /// Everything not yet taken.
    pub fn rest(&self) -> &'a [u8] {
        &self.bytes[self.at..]
    }

    /// Decodes a value and names it, should it fail.
    pub fn field<T: Decode<'a>>(&mut self, name: &'static str) -> Result<T, DecodeError> {
        T::decode(self).map_err(|error| error.in_field(name))
    }

    /// [`Self::opaque`] with a name, should it fail.
    pub fn opaque_field(
        &mut self,
        name: &'static str,
        len_max: usize,
    ) -> Result<&'a [u8], DecodeError> {
        self.opaque(len_max).map_err(|error| error.in_field(name))
    }

    #[inline]
    pub fn u32(&mut self) -> Result<u32, DecodeError> {
        Ok(u32::from_be_bytes(self.chunk()?))
    }

    #[inline]
    pub fn u64(&mut self) -> Result<u64, DecodeError> {
        Ok(u64::from_be_bytes(self.chunk()?))
    }

    /// A fixed opaque: `N` bytes and their padding.
    pub fn array<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let bytes = self.chunk()?;
        self.take(padding(N).len())?;
        Ok(bytes)
    }

    /// A variable opaque or string of at most `len_max` bytes, without its padding.
    pub fn opaque(&mut self, len_max: usize) -> Result<&'a [u8], DecodeError> {
        let at = self.at;
        let got = self.u32()? as usize;
        if got > len_max {
            return Err(DecodeErrorKind::TooLong { max: len_max, got }.at(at));
        }
        let padded = self.take(got.saturating_add(padding(got).len()))?;
        Ok(&padded[..got])
    }

    /// The next `need` bytes.
    #[inline]
    pub fn take(&mut self, need: usize) -> Result<&'a [u8], DecodeError> {
        match self.rest().get(..need) {
            Some(taken) => {
                self.at += need;
                Ok(taken)
            }
            None => Err(self.truncated(need)),
        }
    }

    /// Checks that nothing is left.
    ///
    /// # Errors
    /// `Trailing` when there is.
    pub fn finish(self) -> Result<(), DecodeError> {
        match self.rest().len() {
            0 => Ok(()),
            have => Err(DecodeErrorKind::Trailing { have }.at(self.at).in_field("end of message")),
        }
    }

    #[inline]
    fn chunk<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        match self.rest().first_chunk() {
            Some(chunk) => {
                self.at += N;
                Ok(*chunk)
            }
            None => Err(self.truncated(N)),
        }
    }

    #[cold]
    fn truncated(&self, need: usize) -> DecodeError {
        let have = self.rest().len();
        DecodeErrorKind::Truncated { need, have }.at(self.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::xdr::{Encode, from_bytes};

    #[test]
    fn an_opaque_over_its_maximum_is_refused_before_its_bytes_are_looked_at() {
        let mut r = Reader::new(&[0, 0, 0, 9]);
        let error = r.opaque_field("name", 8).unwrap_err();
        assert_eq!(error.to_string(), "name at byte 0: 9 bytes, at most 8 are allowed");
    }

    #[test]
    fn missing_padding_is_truncation_and_its_value_does_not_matter() {
        let bytes = [0, 0, 0, 1, b'x', 7, 7, 7];
        assert_eq!(Reader::new(&bytes).opaque(8), Ok(&b"x"[..]));
        let error = Reader::new(&bytes[..7]).opaque(8).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Truncated { need: 4, have: 3 });
        assert_eq!(error.at, 4);
    }

    #[test]
    fn a_length_near_the_end_of_the_address_space_is_truncation() {
        let error = Reader::new(&[0xff; 8]).opaque(usize::MAX).unwrap_err();
        assert!(matches!(error.kind, DecodeErrorKind::Truncated { have: 4, .. }));
    }

    #[test]
    fn booleans_are_0_or_1() {
        assert_eq!(from_bytes::<bool>(&[0, 0, 0, 1]), Ok(true));
        let error = from_bytes::<bool>(&[0, 0, 0, 2]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::BadBool { value: 2 });
    }

    #[test]
    fn trailing_bytes_are_an_error_for_whoever_asks() {
        let error = from_bytes::<u32>(&[0; 6]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Trailing { have: 2 });
        assert_eq!(error.at, 4);
    }

    #[test]
    fn fixed_opaques_are_padded_too() {
        assert_eq!([1u8, 2, 3, 4, 5].to_bytes(), [1, 2, 3, 4, 5, 0, 0, 0]);
        assert_eq!(from_bytes(&[1, 2, 3, 4, 5, 0, 0, 0]), Ok([1u8, 2, 3, 4, 5]));
    }

    #[test]
    fn an_array_that_claims_four_billion_elements_costs_nothing() {
        let error = from_bytes::<Vec<u64>>(&[0xff, 0xff, 0xff, 0xff, 0, 0]).unwrap_err();
        assert_eq!(error.kind, DecodeErrorKind::Truncated { need: 8, have: 2 });
    }
}
