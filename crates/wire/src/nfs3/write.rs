//! WRITE: bytes into a file (RFC 1813 section 3.3.7).

use crate::show::{Line, Show};
use crate::xdr::macros::{xdr_bulk, xdr_struct};

use super::{Failure, FileHandle, StableHow, WccData};

xdr_bulk! {
    /// `WRITE3args`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args<'a> {
        pub file: FileHandle,
        pub offset: u64,
        /// Bytes to write, as the client says. Decoding does not compare it with `data`: what to do
        /// when they differ is the server's decision.
        pub count: u32,
        pub stable: StableHow,
        /// The bytes, bounded by the message.
        pub data: &'a [u8] where len <= usize::MAX,
    }
}

/// `WRITE3res`
pub type Reply = Result<ReplyOk, ReplyFail>;

xdr_struct! {
    /// `WRITE3resok`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        pub file_wcc: WccData,
        /// Bytes written, which may be fewer than requested.
        pub count: u32,
        /// How stable they are: at least as requested.
        pub committed: StableHow,
        /// Changes when the server may have lost unstable data.
        pub verf: [u8; 8],
    }
}

/// `WRITE3resfail`: `file_wcc`.
pub type ReplyFail = Failure<WccData>;

impl Show for Args<'_> {
    fn show(&self, _name: &'static str, line: &mut Line) {
        self.file.show("file", line);
        self.offset.show("offset", line);
        self.count.show("count", line);
        self.stable.show("stable", line);
        line.payload("data", self.data);
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::nfs3::NfsStat3;
    use crate::testing::{FH, VERF, WCC, assert_bulk, golden};
    use crate::xdr::{Encode, from_bytes};

    pub(crate) const ARGS: &str = "
        00000005 a1a2a3a4 a5000000   # file
        00000001 00002000            # offset: 2^32 + 8192
        00000005                     # count
        00000002                     # stable: FILE_SYNC
        00000005 64617461 21000000   # data: data!
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS3_OK
        WCC                          # file_wcc
        00000005                     # count
        00000002                     # committed: FILE_SYNC
        0102030405060708             # verf
    ";
    pub(crate) const FAIL: &str = "
        0000001c                     # status: NFS3ERR_NOSPC (28)
        WCC                          # file_wcc
    ";

    const DATA: Args<'_> = Args {
        file: FH,
        offset: 0x1_0000_2000,
        count: 5,
        stable: StableHow::FileSync,
        data: b"data!",
    };

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, DATA);
        let ok = ReplyOk { file_wcc: WCC, count: 5, committed: StableHow::FileSync, verf: VERF };
        golden::<Reply>(OK, Ok(ok));
        let failure = ReplyFail { status: NfsStat3::NoSpc, detail: WCC };
        golden::<Reply>(FAIL, Err(failure));
    }

    #[test]
    fn head_payload_and_padding_are_the_arguments() {
        assert_bulk(&DATA);
    }

    #[test]
    fn a_count_that_differs_from_the_data_is_left_to_the_server() {
        let odd = Args { count: 9, ..DATA };
        assert_eq!(from_bytes(&odd.to_bytes()), Ok(odd));
    }
}
