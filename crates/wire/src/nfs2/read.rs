//! READ: bytes of a file (RFC 1094 section 2.2.7).

use crate::show::{Line, Show};
use crate::xdr::macros::{xdr_bulk, xdr_struct};

use super::{DATA_LEN_MAX, FHandle, Fattr2, NfsStat2};

xdr_struct! {
    /// `readargs`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FHandle,
        pub offset: u32,
        /// Bytes wanted.
        pub count: u32,
        /// Unused.
        pub totalcount: u32,
    }
}

/// `readres`
pub type Reply<'a> = Result<ReplyOk<'a>, NfsStat2>;

xdr_bulk! {
    /// The attributes after the read, and the bytes: fewer than requested at the end of the file.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk<'a> {
        pub attributes: Fattr2,
        /// At most [`DATA_LEN_MAX`] bytes.
        pub data: &'a [u8] where len <= DATA_LEN_MAX,
    }
}

impl Show for ReplyOk<'_> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.attributes.show("attributes", line);
        line.payload("data", self.data);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{ATTR2, FH2, assert_bulk, golden};
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const ARGS: &str = "
        FH2                          # file
        80002000                     # offset: 2^31 + 8192
        00001000 00000000            # count: 4096, totalcount
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        ATTR2                        # attributes
        00000005 64617461 21000000   # data: data!
    ";
    pub(crate) const FAIL: &str = "
        00000005                     # status: NFSERR_IO
    ";

    const DATA: ReplyOk<'_> = ReplyOk { attributes: ATTR2, data: b"data!" };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { file: FH2, offset: 0x8000_2000, count: 4096, totalcount: 0 };
        golden(ARGS, args);
        golden::<Reply<'_>>(OK, Ok(DATA));
        golden::<Reply<'_>>(FAIL, Err(NfsStat2::Io));
    }

    #[test]
    fn head_payload_and_padding_are_the_reply() {
        assert_bulk(&Reply::Ok(DATA));
        assert_bulk(&DATA);
        assert_bulk(&Reply::Err(NfsStat2::Io));
    }

    #[test]
    fn more_than_8_kib_are_refused() {
        let bytes = [0; DATA_LEN_MAX + 1];
        let of = |len| ReplyOk { attributes: ATTR2, data: &bytes[..len] }.to_bytes();
        assert!(from_bytes::<ReplyOk<'_>>(&of(DATA_LEN_MAX)).is_ok());
        let refused = of(DATA_LEN_MAX + 1);
        let error = from_bytes::<ReplyOk<'_>>(&refused).unwrap_err();
        assert_eq!(error.to_string(), "data at byte 68: 8193 bytes, at most 8192 are allowed");
    }
}
