//! File handles: up to 64 bytes that only the server understands.

use std::fmt;

use crate::show::{Hex, Line, Show};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

use super::HANDLE_LEN_MAX;

/// Bytes of a handle that are shown: enough to tell files apart.
const SHOWN_LEN: usize = 16;

/// A file handle, inline, so that it can be copied, compared and hashed without an allocation.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct FileHandle {
    len: u8,
    bytes: [u8; HANDLE_LEN_MAX], // zero from `len` on, so that equality can be derived
}

impl FileHandle {
    /// A handle of these bytes; none when there are more than [`HANDLE_LEN_MAX`].
    #[expect(clippy::cast_possible_truncation, reason = "at most HANDLE_LEN_MAX, which is 64")]
    pub const fn new(handle: &[u8]) -> Option<Self> {
        if handle.len() > HANDLE_LEN_MAX {
            return None;
        }
        let mut bytes = [0; HANDLE_LEN_MAX];
        bytes.split_at_mut(handle.len()).0.copy_from_slice(handle);
        let len = handle.len() as u8;
        Some(Self { len, bytes })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl Encode for FileHandle {
    fn encode(&self, out: &mut Vec<u8>) {
        self.as_bytes().encode(out);
    }
}

impl Decode<'_> for FileHandle {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let handle = r.opaque(HANDLE_LEN_MAX)?;
        Ok(Self::new(handle).expect("opaque() returned at most HANDLE_LEN_MAX bytes"))
    }
}

impl fmt::Display for FileHandle {
    /// Hexadecimal, shortened with `..`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.as_bytes().split_at_checked(SHOWN_LEN) {
            Some((shown, [_, ..])) => write!(f, "{}..", Hex(shown)),
            _ => write!(f, "{}", Hex(self.as_bytes())),
        }
    }
}

impl fmt::Debug for FileHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FileHandle({})", Hex(self.as_bytes()))
    }
}

impl Show for FileHandle {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::golden;
    use crate::xdr::from_bytes;

    #[test]
    fn handles_of_0_to_64_bytes_are_taken_and_longer_ones_refused() {
        golden("00000000", FileHandle::new(&[]).unwrap());
        let longest = FileHandle::new(&[7; HANDLE_LEN_MAX]).unwrap();
        assert_eq!(from_bytes(&longest.to_bytes()), Ok(longest));
        assert_eq!(FileHandle::new(&[7; HANDLE_LEN_MAX + 1]), None);
        let error = from_bytes::<FileHandle>(&[0, 0, 0, 65]).unwrap_err();
        assert_eq!(error.to_string(), "value at byte 0: 65 bytes, at most 64 are allowed");
    }

    #[test]
    fn trailing_zeros_make_a_difference() {
        assert_ne!(FileHandle::new(&[1]), FileHandle::new(&[1, 0]));
    }

    #[test]
    fn long_handles_are_shortened_for_display() {
        let shown = |len| FileHandle::new(&[0xab; 64][..len]).unwrap().to_string();
        assert_eq!(shown(16), "ab".repeat(16));
        assert_eq!(shown(17), "ab".repeat(16) + "..");
    }
}
