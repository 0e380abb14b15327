//! File handles: 32 bytes that only the server understands (RFC 1094 section 2.3.3).

use std::fmt;

use crate::show::{Hex, Line, Show};
use crate::xdr::{Decode, DecodeError, Encode, Reader};

use super::HANDLE_LEN;

/// A file handle.
#[derive(Clone, Copy, Eq, Hash, PartialEq)]
pub struct FHandle(pub [u8; HANDLE_LEN]);

impl FHandle {
    pub const fn as_bytes(&self) -> &[u8; HANDLE_LEN] {
        &self.0
    }
}

impl Encode for FHandle {
    fn encode(&self, out: &mut Vec<u8>) {
        self.0.encode(out);
    }
}

impl Decode<'_> for FHandle {
    fn decode(r: &mut Reader<'_>) -> Result<Self, DecodeError> {
        r.array().map(Self)
    }
}

impl fmt::Display for FHandle {
    /// Hexadecimal, without the zeros at the end that fill most handles up; the first 24 bytes.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN_LEN: usize = 24;
        let end = self.0.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        match end > SHOWN_LEN {
            true => write!(f, "{}..", Hex(&self.0[..SHOWN_LEN])),
            false => write!(f, "{}", Hex(&self.0[..end])),
        }
    }
}

impl fmt::Debug for FHandle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FHandle({})", Hex(&self.0))
    }
}

impl Show for FHandle {
    fn show(&self, name: &'static str, line: &mut Line) {
        line.field(name, self);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{FH2, golden};
    use crate::xdr::from_bytes;

    #[test]
    fn handles_have_32_bytes_and_no_length_before_them() {
        golden("FH2", FH2);
        let error = from_bytes::<FHandle>(&[7; 31]).unwrap_err();
        assert_eq!(error.to_string(), "value at byte 0: needs 32 bytes, 31 are left");
        let error = from_bytes::<FHandle>(&[7; 36]).unwrap_err();
        assert_eq!(
            error.to_string(),
            "end of message at byte 32: 4 bytes after the end of the message"
        );
    }

    #[test]
    fn handles_are_shown_without_what_fills_them_up() {
        assert_eq!(FH2.to_string(), "a1a2a3a4a5");
        assert_eq!(FHandle([0; 32]).to_string(), "");
        assert_eq!(FHandle([0xab; 32]).to_string(), "ab".repeat(24) + "..");
    }
}
