//! STATFS (RFC 1094 section 2.2.18).

use wire::nfs2::Procedure::Statfs;
use wire::nfs2::statfs::{Args, Reply, ReplyOk};

use crate::status::nfsstat2;
use crate::store::{Space, Store};

use super::Context;
use super::attributes::clamp;

/// Bytes in the smallest block we speak of.
const BLOCK_BYTES_MIN: u32 = 4096;

/// Most blocks, since many clients keep them in signed numbers.
const BLOCKS_MAX: u64 = i32::MAX.cast_unsigned() as u64;

pub(super) async fn run<S: Store>(cx: &Context<'_, S>, args: Args) -> Reply {
    let file = cx.handle(&args.file)?;
    let found = cx.store.space(cx.caller, &file).await;
    let space = found.result.map_err(|status| nfsstat2(Statfs, status))?;
    Ok(blocks_of(&space, cx.transfer_bytes_max()))
}

/// Blocks are as large as they must be for their number to fit: 4 KiB up to 8 TiB.
fn blocks_of(space: &Space, tsize: u32) -> ReplyOk {
    let mut bsize = BLOCK_BYTES_MIN;
    while bsize < 1 << 31 && space.bytes_total / u64::from(bsize) > BLOCKS_MAX {
        bsize *= 2;
    }
    let blocks = |bytes: u64| clamp((bytes / u64::from(bsize)).min(BLOCKS_MAX));
    ReplyOk {
        tsize,
        bsize,
        blocks: blocks(space.bytes_total),
        bfree: blocks(space.bytes_free),
        bavail: blocks(space.bytes_available),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(bytes_total: u64) -> (u32, u32) {
        let (bytes_free, bytes_available) = (bytes_total, bytes_total);
        let (files_total, files_free, files_available) = (0, 0, 0);
        let space = Space {
            bytes_total,
            bytes_free,
            bytes_available,
            files_total,
            files_free,
            files_available,
        };
        let reply = blocks_of(&space, 8192);
        assert_eq!((reply.blocks, reply.blocks), (reply.bfree, reply.bavail));
        (reply.bsize, reply.blocks)
    }

    #[test]
    fn blocks_grow_so_that_their_number_fits() {
        assert_eq!(of(0), (4096, 0));
        assert_eq!(of(1 << 40), (4096, 1 << 28));
        assert_eq!(of((1 << 43) - 1), (4096, i32::MAX.cast_unsigned()));
        assert_eq!(of(1 << 43), (8192, 1 << 30));
        assert_eq!(of(u64::MAX), (1 << 31, i32::MAX.cast_unsigned()));
    }
}
