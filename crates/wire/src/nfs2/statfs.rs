//! STATFS: how full a file system is (RFC 1094 section 2.2.18).

use crate::xdr::macros::xdr_struct;

use super::{FHandle, NfsStat2};

xdr_struct! {
    /// `fhandle`
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct Args {
        pub file: FHandle,
    }
}

/// `statfsres`
pub type Reply = Result<ReplyOk, NfsStat2>;

xdr_struct! {
    /// The numbers of `statfsres`.
    #[derive(Clone, Copy, Debug, Eq, PartialEq)]
    pub struct ReplyOk {
        /// Bytes the server would like to see in a READ or WRITE.
        pub tsize: u32,
        /// Bytes in a block.
        pub bsize: u32,
        /// Blocks in total.
        pub blocks: u32,
        /// Blocks that are free.
        pub bfree: u32,
        /// Blocks that are free for everybody.
        pub bavail: u32,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::testing::{FH2, golden};

    pub(crate) const ARGS: &str = "
        FH2                          # file
    ";
    pub(crate) const OK: &str = "
        00000000                     # status: NFS_OK
        00002000 00001000            # tsize: 8192, bsize: 4096
        10000000 08000000 04000000   # blocks: 1 TiB, bfree, bavail
    ";
    pub(crate) const FAIL: &str = "
        00000005                     # status: NFSERR_IO
    ";

    #[test]
    fn bytes_are_those_of_the_rfc() {
        golden(ARGS, Args { file: FH2 });
        let ok =
            ReplyOk { tsize: 8192, bsize: 4096, blocks: 1 << 28, bfree: 1 << 27, bavail: 1 << 26 };
        golden::<Reply>(OK, Ok(ok));
        golden::<Reply>(FAIL, Err(NfsStat2::Io));
    }
}
