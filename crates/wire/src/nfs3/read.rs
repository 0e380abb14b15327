//! READ: bytes of a file (RFC 1813 section 3.3.6).

use crate::show::{Line, Show};
use crate::xdr::macros::{xdr_bulk, xdr_struct};

use super::{Failure, FileHandle, PostOpAttr};

xdr_struct! {
    /// `READ3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FileHandle,
        pub offset: u64,
        /// Bytes wanted.
        pub count: u32,
    }
}

/// `READ3res`
pub type Reply<'a> = Result<ReplyOk<'a>, ReplyFail>;

xdr_bulk! {
    /// `READ3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk<'a> {
        pub file_attributes: PostOpAttr,
        /// Bytes read, as the server says; decoding does not compare it with `data`.
        pub count: u32,
        /// The read reached the end of the file.
        pub eof: bool,
        /// The bytes, bounded by the message.
        pub data: &'a [u8] where len <= usize::MAX,
    }
}

/// `READ3resfail`: `file_attributes`.
pub type ReplyFail = Failure<PostOpAttr>;

impl Show for ReplyOk<'_> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.file_attributes.show("file_attributes", line);
        self.count.show("count", line);
        self.eof.show("eof", line);
        line.payload("data", self.data);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{ATTR, FH, assert_bulk, golden};
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # file
        00000001 00002000            # offset: 2^32 + 8192
        00001000                     # count: 4096
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        00000001 ATTR                # file_attributes
        00000005                     # count
        00000001                     # eof
        00000005 64617461 21000000   # data: data!
    ";
    pub(crate) const FAIL: &str = "
        00000005                     # status: NFS3ERR_IO
        00000001 ATTR                # file_attributes
    ";

    const DATA: ReplyOk<'_> =
        ReplyOk { file_attributes: Some(ATTR), count: 5, eof: true, data: b"data!" };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        let args = Args { file: FH, offset: 0x1_0000_2000, count: 4096 };
        golden(ARGS, args);
        golden::<Reply<'_>>(OK, Ok(DATA));
        let failure = ReplyFail { status: NfsStat3::Io, detail: Some(ATTR) };
        golden::<Reply<'_>>(FAIL, Err(failure));
    }

    #[test]
    fn head_payload_and_padding_are_the_reply() {
        assert_bulk(&Reply::Ok(DATA));
        assert_bulk(&DATA);
        assert_bulk(&Reply::Err(NfsStat3::Io.into()));
    }

    #[test]
    fn a_count_that_differs_from_the_data_is_left_to_the_client() {
        let odd = ReplyOk { count: 9, ..DATA };
        assert_eq!(from_bytes(&odd.to_bytes()), Ok(odd));
    }
}
