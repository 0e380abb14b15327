//! Is there room for the files? Asked before the first is made.

use client::session::Session;
use wire::nfs3::FileHandle;

use crate::error::Error;
use crate::fileset::Layout;

/// What a file takes beside its bytes, at most: the rest of its last block.
const BLOCK_BYTES: u64 = 4 << 10;

/// What files grow by while they are written, in percent.
const GROWTH_PERCENT: u64 = 10;

/// What a set of files needs.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Need {
    pub bytes: u64,
    /// Files, directories and links.
    pub files: u64,
}

impl Need {
    pub fn of(layout: &Layout) -> Self {
        let bytes: u64 =
            layout.lengths().iter().map(|bytes| bytes.next_multiple_of(BLOCK_BYTES)).sum();
        let dirs = layout.dirs() as u64;
        let files = (layout.files + layout.entries + layout.symlinks) as u64 + dirs;
        let bytes = bytes + bytes / 100 * GROWTH_PERCENT + dirs * BLOCK_BYTES;
        Self { bytes, files }
    }
}

/// Asks the server for the room that this user has (FSSTAT). A server that does not count files
/// says none of any, and is believed to have enough.
///
/// # Errors
/// [`Error::NoRoom`], or the call failed.
pub(super) async fn check(
    session: &Session,
    dir: FileHandle,
    layout: &Layout,
) -> Result<(), Error> {
    let need = Need::of(layout);
    let free = session.fsstat(dir).await?;
    let lacks_bytes = free.tbytes > 0 && free.abytes < need.bytes;
    let lacks_files = free.tfiles > 0 && free.afiles < need.files;
    if lacks_bytes || lacks_files {
        return Err(Error::NoRoom {
            need_bytes: need.bytes,
            free_bytes: free.abytes,
            need_files: need.files,
            free_files: free.afiles,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_needs_whole_blocks_and_room_to_grow() {
        let layout = Layout::of_bytes(10 << 20, 1);
        let need = Need::of(&layout);
        assert!(need.bytes > (10 << 20) && need.bytes < (13 << 20), "{need:?}");
        assert_eq!(need.files, (layout.files + 120 + layout.dirs()) as u64);
    }
}
