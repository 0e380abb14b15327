//! WRITE: bytes into a file (RFC 1094 section 2.2.9). They are stable when the reply comes.

use crate::show::{Line, Show};
use crate::xdr::macros::xdr_bulk;

use super::{AttrStat, DATA_LEN_MAX, FHandle};

xdr_bulk! {
    /// `writeargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub file: FHandle,
        /// Unused.
        pub beginoffset: u32,
        pub offset: u32,
        /// Unused.
        pub totalcount: u32,
        /// At most [`DATA_LEN_MAX`] bytes.
        pub data: &'a [u8] where len <= DATA_LEN_MAX,
    }
}

/// `attrstat`: the attributes after the write.
pub type Reply = AttrStat;

impl Show for Args<'_> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.file.show("file", line);
        self.offset.show("offset", line);
        line.payload("data", self.data);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs2::NfsStat2;
    use crate::testing::{ATTR2, FH2, assert_bulk, golden};
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const ARGS: &str = "
        FH2                          # file
        00000000 80002000 00000005   # beginoffset, offset: 2^31 + 8192, totalcount
        00000005 64617461 21000000   # data: data!
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        ATTR2                        # attributes
    ";
    pub(crate) const FAIL: &str = "
        0000001c                     # status: NFSERR_NOSPC (28)
    ";

    const DATA: Args<'_> =
        Args { file: FH2, beginoffset: 0, offset: 0x8000_2000, totalcount: 5, data: b"data!" };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, DATA);
        golden::<Reply>(OK, Ok(ATTR2));
        golden::<Reply>(FAIL, Err(NfsStat2::NoSpc));
    }

    #[test]
    fn head_payload_and_padding_are_the_arguments() {
        assert_bulk(&DATA);
    }

    #[test]
    fn more_than_8_kib_are_refused() {
        let bytes = [0; DATA_LEN_MAX + 1];
        let of = |len| Args { data: &bytes[..len], ..DATA }.to_bytes();
        assert!(from_bytes::<Args<'_>>(&of(DATA_LEN_MAX)).is_ok());
        let refused = of(DATA_LEN_MAX + 1);
        let error = from_bytes::<Args<'_>>(&refused).unwrap_err();
        assert_eq!(error.to_string(), "data at byte 44: 8193 bytes, at most 8192 are allowed");
    }
}
