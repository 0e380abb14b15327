//! Which file a record means: the bytes of its stable handle, which only the server makes.

use std::fmt;

/// At most [`Key::BYTES_MAX`] bytes.
#[derive(Clone, Copy, Eq, Hash, Ord, PartialEq, PartialOrd)]
pub struct Key {
    len: u8,
    bytes: [u8; Self::BYTES_MAX],
}

impl Key {
    pub const BYTES_MAX: usize = 48;

    /// None for what is longer, or empty.
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let len = u8::try_from(bytes.len()).ok().filter(|&len| len > 0)?;
        let mut own = [0; Self::BYTES_MAX];
        own.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(Self { len, bytes: own })
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Key({self})")
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes().iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}
