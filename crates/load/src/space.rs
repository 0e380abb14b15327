//! Is there room for the files? Checked before the first is made.

use std::iter::Sum;

use client::session::Session;
use wire::nfs3::FileHandle;

use crate::error::Error;

/// File systems give room in pieces of this, mostly.
pub const ALLOCATED_BYTES: u64 = 4 << 10;

/// What a set of files needs, beside names that come and go.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Need {
    pub bytes: u64,
    pub inodes: u64,
}

impl Sum for Need {
    fn sum<I: Iterator<Item = Self>>(needs: I) -> Self {
        needs.fold(Self::default(), |sum, one| Self {
            bytes: sum.bytes + one.bytes,
            inodes: sum.inodes + one.inodes,
        })
    }
}

/// Asks the server for the room that this user has (FSSTAT). A server that does not count files
/// says none of any, and is believed to have enough.
///
/// # Errors
/// [`Error::NoRoom`], or the call failed.
pub(crate) async fn check(session: &Session, dir: FileHandle, need: Need) -> Result<(), Error> {
    let free = session.fsstat(dir).await?;
    let lacks_bytes = free.tbytes > 0 && free.abytes < need.bytes;
    let lacks_files = free.tfiles > 0 && free.afiles < need.inodes;
    if lacks_bytes || lacks_files {
        return Err(Error::NoRoom {
            need_bytes: need.bytes,
            free_bytes: free.abytes,
            need_files: need.inodes,
            free_files: free.afiles,
        });
    }
    Ok(())
}
