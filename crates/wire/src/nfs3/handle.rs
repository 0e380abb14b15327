//! File handles: up to 64 bytes that only the server understands.

use std::fmt;

use crate::dissect::{Hex, Line, Show};
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
    pub fn new(handle: &[u8]) -> Option<Self> {
        let mut bytes = [0; HANDLE_LEN_MAX];
        bytes.get_mut(..handle.len())?.copy_from_slice(handle);
        let len = u8::try_from(handle.len()).ok()?;
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
impl crate::testing::Sample<'_> for FileHandle {
    fn sample(entropy: &mut crate::testing::Entropy<'_>) -> Self {
        Self::new(entropy.bytes(HANDLE_LEN_MAX)).unwrap()
    }
}
